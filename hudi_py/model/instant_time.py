"""
Instant times: text as on disk, and moments.

Source: rules/timeline 2.2 to 2.4; Hudi ``HoodieInstantTimeGenerator``.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Final

from hudi_py.errors import ConfigError, CorruptMetadata

EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FORMAT: Final = "%Y%m%d%H%M%S"
_NO_LIMIT: Final = "00000000000000000"
_HOUR: Final = timedelta(hours=1)
_DURATION: Final = re.compile(r"([0-9]+)\s*(ms|s|m|h|d|w)")
_UNITS: Final = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def format_instant_time(moment: datetime) -> str:
    """
    17 digits, ``yyyyMMddHHmmssSSS``, in the moment's own zone.

    Args:
        moment: Aware; the caller chose the zone (``hoodie.table.timeline.timezone``).
    """
    # %Y has no leading zeros on every platform
    return f"{moment.year:04d}{moment:%m%d%H%M%S}{moment.microsecond // 1000:03d}"


def is_time(text: str) -> bool:
    """Whether *text* can be the time of an instant file: digits, a date or not (``00000000000002`` is none)."""
    return text.isdecimal() and text.isascii()


def iso_utc(epoch_ms: int) -> str:
    """ISO 8601 in UTC, to the millisecond; the last moment of the calendar for everything behind it."""
    try:
        moment = EPOCH + timedelta(milliseconds=epoch_ms)
    except OverflowError:
        return "9999-12-31T23:59:59.999Z"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def time_before(now: datetime, span: timedelta, zone: tzinfo) -> str:
    """
    The instant time *span* before *now*, or smaller; zeros, smaller than any, when that is before the calendar begins.

    Where the zone's clocks go back within the next hour, what was written after they did bears smaller times than this
    moment: the time is then as much smaller, so that nothing that is younger than *span* lies before it (K-8).
    """
    try:
        moment = (now - span).astimezone(timezone.utc)
        local = moment.astimezone(zone).replace(tzinfo=None)
        later = (moment + _HOUR).astimezone(zone).replace(tzinfo=None)
        return format_instant_time(min(local, later - _HOUR))
    except OverflowError:
        return _NO_LIMIT


def parse_duration(text: str) -> timedelta | None:
    """A whole number with its unit (``90m``, ``36h``, ``7d``); None when *text* is none, the longest when too long."""
    duration = _DURATION.fullmatch(text.strip())
    if duration is None:
        return None
    try:
        return timedelta(**{_UNITS[duration[2]]: int(duration[1])})
    except OverflowError:
        return timedelta.max


def parse_instant_time(text: str, zone: tzinfo) -> datetime:
    """
    The moment of a 14-digit or longer instant time; 14 digits mean the end of that second, as in Hudi.

    Raises:
        ValueError: Not a date.
    """
    digits = text + "999" if len(text) == 14 else text[:17]
    if len(digits) != 17 or not digits.isdigit():
        raise ValueError(f"{text!r} is not an instant time")
    moment = datetime.strptime(digits[:14], _FORMAT).replace(tzinfo=zone)
    return moment + timedelta(milliseconds=int(digits[14:]))


def next_instant_time(now: datetime, last: str | None) -> str:
    """
    An instant time for *now* that is larger than *last*.

    A clock that stands still or went back does not matter: the time then goes on a millisecond after *last*.

    Raises:
        CorruptMetadata: *last* lies at the end of the calendar, or behind *now* and was never a date: whatever follows
            it would make all later times as meaningless.
    """
    candidate = format_instant_time(now)
    if last is None or candidate > last:
        return candidate
    try:
        after = format_instant_time(parse_instant_time(last, timezone.utc) + timedelta(milliseconds=1))
    except (ValueError, OverflowError):
        after = ""
    if after <= last:
        raise CorruptMetadata(
            f"the timeline has an instant of the time {last}, and no date is larger; nothing was written. Remove that "
            "instant's files if nobody knows it"
        )
    return after


def resolve_time(time: str | datetime, *, now: datetime, zone: tzinfo) -> str:
    """
    An instant time from what a user gave: a moment (one without zone is in *zone*), or as text digits, ISO 8601, or a
    duration counted back from *now* (``36h``, ``7d``).

    Raises:
        ConfigError: None of these.
    """
    if isinstance(time, datetime):
        return resolve_time(time.isoformat(), now=now, zone=zone)
    if not isinstance(time, str):
        raise ConfigError(f"{time!r} is not a time; give a text or a datetime")
    text = time.strip()
    if text.isdigit() and text.isascii() and len(text) >= 14:
        return text
    if text.isdigit() and text.isascii() and len(text) == 8:
        return text + "000000000"
    span = parse_duration(text)
    if span is not None:
        return time_before(now, span, zone)
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        local = (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(zone)
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            f"{text!r} is not a time; give an instant (20261121063000000), ISO 8601 (2026-11-21T06:30) or a duration "
            "(36h)"
        ) from error
    return format_instant_time(local)

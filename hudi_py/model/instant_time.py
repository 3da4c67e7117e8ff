"""
Instant times: converts between text as on disk and datetimes.

Source: rules/timeline 2.2 to 2.4; Hudi ``HoodieInstantTimeGenerator``.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Final

from hudi_py.errors import ConfigError, CorruptMetadata

INIT_TIME: Final = "00000000000000"
"""Instants that begin so are those that filled a new metadata table; they have no peer in the data table."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_CALENDAR_BEGINS: Final = datetime(1, 1, 1)  # noqa: DTZ001 - of any zone
_CALENDAR_ENDS: Final = datetime(9999, 12, 31, 23, 59, 59, 999_000)  # noqa: DTZ001 - of any zone
# Smaller than every time, so that nothing counts as older.
_NO_LIMIT: Final = "00000000000000000"
# 06:30:00 or 063000 after the date, without a fraction; not the seconds of an offset.
_WHOLE_SECOND: Final = re.compile(r"[^0-9W+:-][0-9]{2}:?[0-9]{2}:?[0-9]{2}(?![0-9.,])")
_HOUR: Final = timedelta(hours=1)
_LAST_OF_SECOND: Final = timedelta(milliseconds=999)
_DURATION: Final = re.compile(r"([0-9]+)\s*(ms|s|m|h|d|w)")
_DAY_DIGITS: Final = 8
_LENGTHS: Final = (14, 17)
_UNITS: Final = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def format_instant_time(moment: datetime) -> str:
    """
    Return *moment* as 17 digits, ``yyyyMMddHHmmssSSS``, in its own time zone.

    Args:
        moment: Timezone-aware; the caller converts it to the table's zone (``hoodie.table.timeline.timezone``).
    """
    # Not %Y: on some platforms it writes years without leading zeros.
    return f"{moment.year:04d}{moment:%m%d%H%M%S}{moment.microsecond // 1000:03d}"


def is_time(text: str) -> bool:
    """Return whether *text* can be the time of an instant: digits, not always a date (``00000000000002`` is not)."""
    return text.isdecimal() and text.isascii()


def is_beginning(time: str | datetime | None) -> bool:
    """
    Return whether a range that begins at *time* begins with the table: nothing was given, or zeros.

    Hudi's readers spell the beginning as ``0`` or ``000``, which is not a valid instant. An empty text is no time at
    all: it comes from a variable that was never set, and the whole table is not what was asked for.
    """
    return time is None or (isinstance(time, str) and set(time.strip()) == {"0"})


def moment_of(epoch_ms: int, zone: tzinfo = timezone.utc) -> datetime:
    """
    Return the time of *epoch_ms*, milliseconds since 1970, in *zone*.

    Files of a table may hold any number: for one beyond the calendar this is a moment in its last or first year.
    """
    try:
        return (EPOCH + timedelta(milliseconds=epoch_ms)).astimezone(zone)
    except OverflowError:
        end = _CALENDAR_ENDS if epoch_ms > 0 else _CALENDAR_BEGINS
        return end.replace(tzinfo=zone)


def iso_utc(epoch_ms: int) -> str:
    """Return ISO 8601 in UTC with milliseconds; the last moment of year 9999 for later times."""
    return moment_of(epoch_ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def time_before(now: datetime, span: timedelta, zone: tzinfo) -> str:
    """
    Return the instant time *span* before *now*, or an earlier one; zeros if that is before the calendar begins.

    If the zone's clocks are set back within the hour after that moment, instants written after the change have smaller
    times although they are younger. The result is then earlier by the same amount, so that no instant younger than
    *span* has a smaller time (K-8).
    """
    try:
        moment = (now - span).astimezone(timezone.utc)
        # Computed in UTC and converted once: arithmetic on local times would ignore that clocks are set back.
        local = moment.astimezone(zone).replace(tzinfo=None)
        later = (moment + _HOUR).astimezone(zone).replace(tzinfo=None)
        return format_instant_time(min(local, later - _HOUR))
    except OverflowError:
        return _NO_LIMIT


def parse_duration(text: str) -> timedelta | None:
    """Parse a whole number with a unit (``90m``, ``36h``, ``7d``); None if invalid, ``timedelta.max`` if too long."""
    duration = _DURATION.fullmatch(text.strip())
    if duration is None:
        return None
    try:
        return timedelta(**{_UNITS[duration[2]]: int(duration[1])})
    except (OverflowError, ValueError):  # the second of more digits than Python reads
        return timedelta.max


def instant_epoch_ms(text: str, zone: tzinfo) -> int:
    """Return milliseconds since 1970 of an instant time; arguments and errors as of `parse_instant_time`."""
    return (parse_instant_time(text, zone) - EPOCH) // timedelta(milliseconds=1)


def parse_instant_time(text: str, zone: tzinfo) -> datetime:
    """
    Return the datetime of an instant time with 14 or more digits; 14 digits mean the end of that second, as in Hudi.

    Raises:
        ValueError: *text* is not a date.
    """
    digits = text + "999" if len(text) == 14 else text[:17]
    if len(digits) != 17 or not digits.isdigit():
        raise ValueError(f"{text!r} is not an instant time")
    # Not strptime, which takes twice as long: the page of a table asks for tens of thousands.
    year, month, day = int(digits[:4]), int(digits[4:6]), int(digits[6:8])
    hour, minute, second = int(digits[8:10]), int(digits[10:12]), int(digits[12:14])
    return datetime(year, month, day, hour, minute, second, int(digits[14:]) * 1000, zone)


def next_instant_time(now: datetime, last: str | None) -> str:
    """
    Return an instant time for *now* that is larger than *last*.

    If the clock has not advanced or was set back, the result is one millisecond after *last*.

    Raises:
        CorruptMetadata: *last* is larger than *now* and is not a date, or the last moment of the calendar. Counting on
            from there would make all later times meaningless too.
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
            f"the timeline has an instant with the time {last}, and no valid time is larger; nothing was written. "
            "Find out which writer created that instant, and delete its files if it is not needed"
        )
    return after


def resolve_time(time: str | datetime, *, now: datetime, zone: tzinfo, to_end_of_second: bool = False) -> str:
    """
    Return the instant time that a user's input stands for.

    Args:
        time: A datetime, or a text: digits of an instant time, a date as 8 digits, ISO 8601, or a duration before
            *now* (``36h``, ``7d``). Times without a zone are in *zone*.
        now: Current time, timezone-aware.
        zone: Time zone of the table.
        to_end_of_second: A text that ends with whole seconds (``2026-11-21 06:30:00``) stands for the last millisecond
            of that second, as for the readers of Hudi (``HoodieInstantTimeGenerator.getInstantForDateString``); else
            for the first. Digits, dates, fractions and datetimes mean the same in both.

    Raises:
        ConfigError: *time* has none of these forms, or consists of digits that are not a date (30 February).
    """
    if isinstance(time, datetime):
        return resolve_time(time.isoformat(timespec="microseconds"), now=now, zone=zone)
    if not isinstance(time, str):
        raise ConfigError(f"{time!r} is not a time; give a text or a datetime")
    text = time.strip()
    if text.isdigit() and text.isascii() and len(text) >= _DAY_DIGITS:
        return _checked(text + "000000000" if len(text) == _DAY_DIGITS else text)
    span = parse_duration(text)
    if span is not None:
        return time_before(now, span, zone)
    try:
        # Python 3.10 does not read Z.
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        local = (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(zone)
        if to_end_of_second and _WHOLE_SECOND.search(text):
            local += _LAST_OF_SECOND
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            f"{text!r} is not a time; give an instant (20261121063000000), ISO 8601 (2026-11-21T06:30) or a duration "
            "(36h)"
        ) from error
    return format_instant_time(local)


def _checked(digits: str) -> str:
    try:
        if len(digits) in _LENGTHS:
            parse_instant_time(digits, timezone.utc)
            return digits
    except ValueError:
        pass
    raise ConfigError(
        f"{digits!r} is not a date; an instant is yyyyMMddHHmmss, with or without milliseconds (20261121063000000)"
    )

"""
Instant times: text as on disk, and moments.

Source: format/timeline 2.2 to 2.4; Hudi ``HoodieInstantTimeGenerator``.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Final

from hudi_py.errors import ConfigError

_FORMAT: Final = "%Y%m%d%H%M%S"
_DURATION: Final = re.compile(r"(\d+)\s*(ms|s|m|h|d|w)")
_UNITS: Final = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def format_instant_time(moment: datetime) -> str:
    """
    17 digits, ``yyyyMMddHHmmssSSS``, in the moment's own zone.

    Args:
        moment: Aware; the caller chose the zone (``hoodie.table.timeline.timezone``).
    """
    return moment.strftime(_FORMAT) + f"{moment.microsecond // 1000:03d}"


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
    """
    candidate = format_instant_time(now)
    if last is None or candidate > last:
        return candidate
    try:
        after = parse_instant_time(last, timezone.utc) + timedelta(milliseconds=1)
    except ValueError:  # no date (times of metadata-table services): only the digits count
        return str(int(last[:17]) + 1).zfill(17)
    return format_instant_time(after)


def resolve_time(text: str, *, now: datetime, zone: tzinfo) -> str:
    """
    An instant time from what a user typed: digits, ISO 8601, or a duration counted back from *now* (``36h``, ``7d``).

    Raises:
        ConfigError: None of these.
    """
    text = text.strip()
    if text.isdigit() and len(text) >= 14:
        return text
    if text.isdigit() and len(text) == 8:
        return text + "000000000"
    duration = _DURATION.fullmatch(text)
    if duration:
        span = timedelta(**{_UNITS[duration[2]]: int(duration[1])})
        return format_instant_time((now - span).astimezone(zone))
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as error:
        raise ConfigError(
            f"{text!r} is not a time; give an instant (20261121063000000), ISO 8601 (2026-11-21T06:30) or a duration "
            "(36h)"
        ) from error
    return format_instant_time((moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(zone))

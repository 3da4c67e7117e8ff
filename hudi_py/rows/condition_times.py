"""
Dates and times that conditions and expressions have as text, as Spark SQL casts them. Pure.

``2030-6-29``, ``2030-6`` and ``2030`` (their first days), and times like ``2030-6-29 8:30``,
``2030-06-29T08:30:00.5Z``, ``2030-06-29 08:30:00 Europe/Paris``; an offset may also follow the minutes, as in ISO 8601.
Refused are, as there, ``20300629`` and weeks; and what Spark reads and has no single meaning here: a time without a
date (of today), a date with a time where a date is asked for (Spark passes the time over), years that Python does not
have.

Source: Spark 3.5 ``SparkDateTimeUtils.stringToDate``, ``parseTimestampString``, ``getZoneId``.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_DATE: Final = r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?"
_ONLY_DATE: Final = re.compile(_DATE, re.ASCII)
_TIME: Final = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?(?: *([A-Za-z+-].*))?)?", re.ASCII
)
_OFFSET: Final = re.compile(
    r"(?:UTC|GMT|UT)?(?:([+-])(?:(\d\d)(\d\d)(\d\d)?|(\d{1,2})(?::(\d{1,2})(?::(\d\d))?)?))", re.ASCII
)
_UTC_NAMES: Final = ("Z", "z", "UTC", "GMT", "UT")
_SIXTIETH_MAX: Final = 59
_OFFSET_MAX: Final = timedelta(hours=18)
"""Of Java's clocks."""


def day_of(text: str) -> date:
    """
    A date.

    Raises:
        ValueError: The text is not one.
    """
    found = _ONLY_DATE.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    return date(*(int(part or 1) for part in found.groups()))


def moment_of(text: str) -> datetime:
    """
    A time, with or without a zone; a date is its first moment.

    Raises:
        ValueError: The text is not one.
    """
    text = text.strip()
    found = _TIME.fullmatch(text)
    if found is None:
        day = day_of(text)
        return datetime(day.year, day.month, day.day)  # noqa: DTZ001 - what it counts as is the caller's to say
    *numbers, fraction, zone = found.groups()
    micros = int((fraction or "")[:6].ljust(6, "0"))
    moment = datetime(*(int(number or 0) for number in numbers), micros)  # type: ignore[arg-type,call-arg] # noqa: DTZ001
    return moment if zone is None else _in_zone(moment, zone)


def _in_zone(moment: datetime, name: str) -> datetime:
    """The moment at which the clocks of a zone show this; the earlier one of an hour that they show twice."""
    found = _OFFSET.fullmatch(name)
    if found is not None:
        return moment.replace(tzinfo=timezone(_offset(*found.groups())))
    if name in _UTC_NAMES:
        return moment.replace(tzinfo=timezone.utc)
    if not name[0].isupper():  # of the names that are files, such as localtime
        raise ValueError(name)
    try:
        return moment.replace(tzinfo=ZoneInfo(name)).astimezone(timezone.utc)
    except (ZoneInfoNotFoundError, OverflowError, OSError):
        raise ValueError(name) from None


def _offset(sign: str, *parts: str | None) -> timedelta:
    hours, minutes, seconds = (int(plain or marked or 0) for plain, marked in zip(parts[:3], parts[3:], strict=True))
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if minutes > _SIXTIETH_MAX or seconds > _SIXTIETH_MAX or offset > _OFFSET_MAX:
        raise ValueError(offset)
    return -offset if sign == "-" else offset

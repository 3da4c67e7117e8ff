"""
Patterns of dates and times as in ``hoodie.keygen.timebased.*.dateformat``: those of Joda-Time. Pure.

Served are the letters that print numbers, and offsets (``Z``, ``ZZ``); names of months, days and zones depend on the
language of the machine that writes, so they are refused.

Source: Joda-Time 2 ``DateTimeFormat.parsePatternTo``; Hudi ``HoodieDateTimeParser``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Final

import attrs

from hudi_py.errors import ConfigError

_TOKEN: Final = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+", re.DOTALL)
_PRINTED: Final[Mapping[str, Callable[[datetime], int]]] = {
    "y": lambda time: time.year,
    "Y": lambda time: time.year,
    "x": lambda time: time.isocalendar().year,
    "w": lambda time: time.isocalendar().week,
    "e": lambda time: time.isoweekday(),
    "M": lambda time: time.month,
    "D": lambda time: time.timetuple().tm_yday,
    "d": lambda time: time.day,
    "H": lambda time: time.hour,
    "k": lambda time: time.hour or 24,
    "m": lambda time: time.minute,
    "s": lambda time: time.second,
}
_PARSED: Final[Mapping[str, str]] = {"y": "year", "Y": "year", "M": "month", "d": "day", "H": "hour", "m": "minute",
                                     "s": "second", "S": "fraction", "Z": "offset"}  # fmt: skip
_MONTH_NAME: Final = 3  # three M or more print the name of the month


def _pieces(pattern: str) -> Iterator[tuple[str, str]]:
    """
    Split a pattern.

    Returns:
        Pairs of letter and its run, or of ``""`` and literal text.
    """
    position = 0
    while position < len(pattern):
        match = _TOKEN.match(pattern, position)
        if match is None:
            raise ConfigError(f"the time pattern {pattern!r} has a single quote without its end")
        position = match.end()
        text = match[0]
        if match[1]:
            yield match[1], text
        elif text.startswith("'"):
            yield "", text[1:-1].replace("''", "'") or "'"
        else:
            yield "", text


@attrs.frozen
class JodaPattern:
    """
    A pattern that prints and parses times.

    Args:
        pattern: For instance ``yyyy/MM/dd``.

    Raises:
        ConfigError: A letter is not served, or a quote is not closed.
    """

    pattern: str

    def __attrs_post_init__(self) -> None:
        """Refuse what would be printed in another way than by Joda-Time."""
        for letter, run in _pieces(self.pattern):
            if letter and letter not in {*_PRINTED, "S", "Z"}:
                raise ConfigError(f"the time pattern {self.pattern!r} has the letter {letter!r}, which is not served")
            if (letter == "M" and len(run) >= _MONTH_NAME) or (letter == "Z" and len(run) > len("ZZ")):
                raise ConfigError(f"the time pattern {self.pattern!r} has {run!r}, a name, which is not served")

    @property
    def has_offset(self) -> bool:
        """Whether a text says its own offset from UTC."""
        return any(letter == "Z" for letter, _ in _pieces(self.pattern))

    def text(self, time: datetime) -> str:
        """
        Print a time.

        Args:
            time: In the zone that is to be printed.
        """
        return "".join(_text_of(letter, run, time) if letter else run for letter, run in _pieces(self.pattern))

    def parse(self, text: str, zone: tzinfo) -> datetime | None:
        """
        Parse the whole of *text*.

        Args:
            text: For instance ``2026/11/22``.
            zone: Of texts without an offset.

        Returns:
            The time in the zone that it was read in, cut to milliseconds; None if the text does not have this form, or
            names a time that does not exist, as in the hour that is left out in spring.

        Raises:
            ConfigError: The pattern cannot be parsed, only printed.
        """
        match = re.fullmatch(self._regex(), text, re.IGNORECASE | re.ASCII)
        if match is None:
            return None
        found = {name: value for name, value in match.groupdict().items() if value is not None}
        fraction = int((found.pop("fraction", "") + "000")[:3])  # milliseconds: Joda-Time cuts the rest off
        offset = found.pop("offset", None)
        try:
            fields = {name: int(value) for name, value in found.items()}
            local = datetime(fields.pop("year"), fields.pop("month", 1), fields.pop("day", 1), **fields)  # type: ignore[arg-type]  # noqa: DTZ001
            time = local.replace(tzinfo=zone if offset is None else _offset(offset))
            utc = time.astimezone(timezone.utc)
        except (ValueError, OverflowError):
            return None
        if utc.astimezone(time.tzinfo).replace(tzinfo=None) != local:  # in a gap of the zone
            return None
        return time + timedelta(milliseconds=fraction)

    def _regex(self) -> str:
        pieces = list(_pieces(self.pattern))
        names = [_PARSED.get(letter) for letter, _ in pieces if letter]
        if None in names or "year" not in names or len({*names}) != len(names):
            raise ConfigError(
                f"the time pattern {self.pattern!r} cannot be parsed: it needs a year, each field once, and of the "
                f"letters {' '.join(_PARSED)} only"
            )
        parts = []
        for at, (letter, run) in enumerate(pieces):
            if not letter:
                parts.append(re.escape(run))
                continue
            # digits that follow directly belong to the next field
            is_followed = at + 1 < len(pieces) and pieces[at + 1][0] not in ("", "Z")
            parts.append(f"(?P<{_PARSED[letter]}>{_digits(letter, len(run), self.pattern, is_followed=is_followed)})")
        return "".join(parts)


def _text_of(letter: str, run: str, time: datetime) -> str:
    if letter == "Z":
        text = time.strftime("%z")[:5]
        return text if len(run) == 1 else f"{text[:3]}:{text[3:]}"
    if letter == "S":
        return f"{time.microsecond // 1000:03d}".ljust(len(run), "0")[: len(run)]
    number = _PRINTED[letter](time)
    if letter in "yYx" and len(run) == len("yy"):  # the century is left out
        number %= 100
    return str(number).rjust(len(run), "0")


def _digits(letter: str, count: int, pattern: str, *, is_followed: bool) -> str:
    if letter in "yY":
        if count == len("yy"):
            raise ConfigError(f"the time pattern {pattern!r} has years of two digits, whose century is not known")
        return rf"\d{{{count}}}" if is_followed else r"\d{1,9}"
    if letter == "Z":
        return r"Z|[+-]\d{2}(?::?\d{2})?"
    if letter == "S":
        return rf"\d{{1,{count}}}"
    return rf"\d{{{count}}}" if is_followed else r"\d{1,2}"


def _offset(text: str) -> timezone:
    if text in ("Z", "z"):
        return timezone.utc
    minutes = int(text[1:3]) * 60 + int(text[3:].lstrip(":") or 0)
    return timezone(timedelta(minutes=minutes if text[0] == "+" else -minutes))

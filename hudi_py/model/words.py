"""Numbers in words for people: sizes, counts, spans. Pure."""

from __future__ import annotations

import re
import shlex
from datetime import timedelta
from decimal import Decimal
from typing import Final

_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB")
_SIZE: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,6})?)\s*([kmgtp]?i?b|)", re.IGNORECASE)
_FACTORS: Final = {
    "": 1, "b": 1, "ib": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgtp", 1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgtp", 1)},
}  # fmt: skip
_SPANS: Final = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))


def human_bytes(count: int | None, *, unknown: str = "?") -> str:
    """Return a size like ``1.4 MB``, in decimal units; *unknown* for None."""
    if count is None:
        return unknown
    size = float(count)
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            return f"{int(size)} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError


def parse_bytes(text: str) -> int | None:
    """Parse a size: a whole number of bytes, or a number with a unit (``1GB``, ``1.5 GiB``); None if it is neither."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None
    return int(Decimal(found[1]) * _FACTORS[found[2].lower()])


def human_span(span: timedelta | float) -> str:
    """Return a span (or seconds) like ``2.5 h``, in the largest unit that it reaches; below a second ``40 ms``."""
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    if 0 < seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    for length, unit in _SPANS:
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def counted(number: int, noun: str) -> str:
    """Return number and noun, in the plural unless it is one: ``1 file``, ``2 files``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def why_unread(error: Exception) -> str:
    """Return why a file that somebody named could not be read, without the number and the path of Python's text."""
    if isinstance(error, UnicodeError):
        return "it is not text in UTF-8"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def shell_word(text: str) -> str:
    r"""
    Return *text* as one word of a shell, for a command that people copy from a message.

    Control characters, line ends included, become escapes of bash, zsh and ksh: ``$'a\\nb'``.
    """
    if text.isprintable():
        return shlex.quote(text)
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + "".join(each if each.isprintable() else _escaped(each) for each in escaped) + "'"


def _escaped(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a name that is not UTF-8
        code -= 0xDC00
        return f"\\x{code:02x}"
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

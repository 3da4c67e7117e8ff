"""Numbers in words for people: sizes, counts, spans. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB")
_SPANS: Final = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))


def human_bytes(count: int | None) -> str:
    """Return a size like ``1.4 MB``, in decimal units; ``?`` for None."""
    if count is None:
        return "?"
    size = float(count)
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            return f"{int(size)} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError


def human_span(span: timedelta | float) -> str:
    """Return a span (or seconds) like ``2.5 h``, in the largest unit that it reaches."""
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    for length, unit in _SPANS:
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def counted(number: int, noun: str) -> str:
    """Return number and noun, in the plural unless it is one: ``1 file``, ``2 files``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"

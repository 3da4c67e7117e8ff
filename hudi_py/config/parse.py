"""
How the text of a setting becomes a value: one function for each kind of value.

Each raises `ValueError` for a text that is not one; its message completes the sentence "not valid (...)".
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from hudi_py.model.instant_time import parse_duration
from hudi_py.model.tag import Tag


def as_text(value: str) -> str:
    """Return the text as it is."""
    return value


def flag(value: str) -> bool:
    """Return whether the text says true, in any case."""
    lowered = value.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError("true or false")
    return lowered == "true"


_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,19}")  # int() also accepts 1_000 and digits of other scripts; Java does not
_TOO_LONG: Final = re.compile(r"\+?[0-9]{20,}")
LONG_MAX: Final = (1 << 63) - 1
"""The largest ``long`` of Java."""


def _float(value: str) -> float:
    """Return NaN if the text is not a number: every comparison with it is false, so range checks refuse it."""
    try:
        return float(value) if value.isascii() and "_" not in value else math.nan
    except ValueError:
        return math.nan


def a_name(value: str) -> str:
    """Return the text; a blank one is refused, because it would count as given."""
    if not value.strip():
        raise ValueError("a name; leave the setting out for none")
    return value


_TAG: Final = re.compile(r"([A-Za-z0-9 +._:/@-]{1,128})=([A-Za-z0-9 +._:/@=-]{1,256})")


def object_tag(value: str) -> Tag:
    """Return the key and value of a tag on objects; what S3 does not take is refused."""
    found = _TAG.fullmatch(value.strip())
    if found is None or found[1].lower().startswith("aws:"):
        raise ValueError("KEY=VALUE of letters, digits, blanks and + - . _ : / @, the key without aws: before it")
    return Tag(found[1], found[2])


def whole(minimum: int) -> Callable[[str], int]:
    """Return a parser of whole numbers from *minimum* to the largest ``long`` of Java."""

    def parse(value: str) -> int:
        text = value.strip()
        # A text that is not a number counts as one below the minimum, so both mistakes get the same message.
        parsed = int(text) if _WHOLE.fullmatch(text) else minimum - 1
        if parsed > LONG_MAX or _TOO_LONG.fullmatch(text):
            raise ValueError(f"a whole number of at most {LONG_MAX}")
        if parsed < minimum:
            raise ValueError(f"a whole number of at least {minimum}")
        return parsed

    return parse


def number(value: str) -> float:
    """Return a finite number of at least 0."""
    parsed = _float(value)
    if not 0 <= parsed < float("inf"):
        raise ValueError("a number of at least 0")
    return parsed


def share(value: str) -> float:
    """Return a share above 0; 1 is all."""
    parsed = _float(value)
    if not 0 < parsed <= 1:
        raise ValueError("a number above 0 and up to 1")
    return parsed


def duration(value: str) -> timedelta:
    """Return the span that a text such as ``36h`` stands for; an empty span is refused."""
    span = parse_duration(value)
    if not span:
        raise ValueError("a duration such as 90m, 36h or 7d")
    return span


def one_of(*choices: str) -> Callable[[str], str]:
    """Return a parser that accepts these words, in any case, and returns them in capitals."""

    def parse(value: str) -> str:
        upper = value.strip().upper()
        if upper not in choices:
            raise ValueError("one of " + ", ".join(choices))
        return upper

    return parse


def pattern(value: str) -> str:
    """Return the text if it is a regular expression that means the same in Java and here, see `java_pattern`."""
    try:
        java_pattern(value)
    except re.error as error:
        raise ValueError(f"a regular expression: {error}") from None
    return value


def java_pattern(value: str) -> re.Pattern[str]:
    """
    Compile a regular expression that was written for Java.

    Raises:
        re.error: It is none, or Java reads it in another way.
    """
    with warnings.catch_warnings():
        # ``[a-z&&[^x]]`` is an intersection in Java, and a set of these characters here.
        warnings.simplefilter("error", FutureWarning)
        try:
            return re.compile(value, re.ASCII)  # as in Java, \d and \w stand for no letters but those of ASCII
        except FutureWarning as warning:
            raise re.error(f"{warning}; Java takes it for another set of characters") from None


INDEXES: Final = (
    *("BLOOM", "SIMPLE", "BUCKET"),
    *("GLOBAL_BLOOM", "GLOBAL_SIMPLE", "RECORD_INDEX", "GLOBAL_RECORD_LEVEL_INDEX"),
)


def index(value: str) -> str:
    """Return the name of an index, in capitals; others are refused because their keys would not be found."""
    upper = value.strip().upper()
    if upper not in INDEXES:
        raise ValueError(
            "BLOOM or SIMPLE (keys are looked up in the files of their partition), GLOBAL_BLOOM, GLOBAL_SIMPLE, "
            "RECORD_INDEX or GLOBAL_RECORD_LEVEL_INDEX (in all partitions), or BUCKET; with another index Apache Hudi "
            "expects keys elsewhere; write such a table with Apache Hudi"
        )
    return upper


def names(value: str) -> tuple[str, ...]:
    """Return the parts between commas, without blanks and empty parts."""
    return tuple(part.strip() for part in value.split(",") if part.strip())

"""
Types of new columns of CSV and JSON files, where a guess could change a value: then text or a decimal is taken.

Arrow reads ``007`` as 7, ``12345678901234567890`` as 1.2345678901234567e+19, and ``true`` and ``1`` of one column both
as true. Pure.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from hudi_py.formats.arrow_types import compute

_DIGITS_MAX: Final = 38  # of a decimal
_WHOLE: Final = r"^\s*(0|-?[1-9][0-9]*)\s*$"
_NUMBER: Final = r"^\s*-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"
_NO_NUMBER: Final = r"^\s*[-+]?([nN][aA][nN]|[iI]nf(inity)?)\s*$"
_TRUTH: Final = r"^\s*(true|false|True|False|TRUE|FALSE)\s*$"


def is_doubtful(arrow: pa.DataType) -> bool:
    """Return whether values that Arrow took for a type have to be compared with their text in the file."""
    types = pa.types
    return types.is_integer(arrow) or types.is_floating(arrow) or types.is_boolean(arrow) or types.is_time(arrow)


def settled(guessed: Any, texts: Any) -> Any:
    """
    Return a column of a CSV file in the type in which no value changes.

    Args:
        guessed: As Arrow read it, n values.
        texts: Their texts in the file, n of them.
    """
    types, arrow = pa.types, guessed.type
    if types.is_boolean(arrow):
        return guessed if _all(texts, _TRUTH) else texts
    if types.is_integer(arrow):
        return guessed if _all(texts, _WHOLE) else texts
    if not types.is_floating(arrow) or not _all(texts, f"{_NUMBER}|{_NO_NUMBER}"):
        return texts
    numbers = texts.filter(compute.fill_null(compute.match_substring_regex(texts, _NUMBER), False))
    exact = _decimals(compute.utf8_trim_whitespace(numbers))
    if exact is None:
        return guessed if compute.any(compute.match_substring_regex(texts, "[eEnN]")).as_py() else texts
    if _is_same(guessed.filter(compute.fill_null(compute.match_substring_regex(texts, _NUMBER), False)), exact):
        return guessed
    return _as_decimals(texts) if len(numbers) == len(texts) - texts.null_count else texts


def settled_decimals(guessed: Any, exact: Any) -> Any:
    """
    Return a column of a JSON file as floating-point numbers if that changes none of them, else as decimals.

    Args:
        guessed: As Arrow read it, n floating-point numbers.
        exact: The same as decimals.
    """
    return guessed if _is_same(guessed, exact) else _as_decimals(exact.cast(pa.string()))


def _all(texts: Any, pattern: str) -> bool:
    return compute.all(compute.match_substring_regex(texts, pattern)).as_py() is not False


def _is_same(guessed: Any, exact: Any) -> bool:
    """Return whether floating-point numbers are shown as the decimals are."""
    try:
        # Compared as they are shown: 0.1 is not exact as a float, and still reads as 0.1.
        shown = guessed.cast(pa.string()).cast(exact.type)
    except pa.ArrowInvalid:  # more digits than the decimals have
        return False
    return compute.all(compute.equal(shown, exact)).as_py() is not False


def _as_decimals(texts: Any) -> Any:
    """Return decimals with as many digits as are needed; texts where these are too many."""
    found = _decimals(compute.utf8_trim_whitespace(texts))
    return texts if found is None else found


def _decimals(texts: Any) -> Any:
    if compute.any(compute.match_substring_regex(texts, "[eE]")).as_py():
        return None
    parts = compute.replace_substring_regex(texts, r"^-?([0-9]*)(\.([0-9]*?)0*)?$", r"\3")
    scale = compute.max(compute.utf8_length(parts)).as_py() or 0
    whole = compute.max(compute.utf8_length(compute.replace_substring_regex(texts, r"^-?([0-9]*).*$", r"\1"))).as_py()
    digits = (whole or 0) + scale
    return None if digits > _DIGITS_MAX else texts.cast(pa.decimal128(max(digits, 1), scale))

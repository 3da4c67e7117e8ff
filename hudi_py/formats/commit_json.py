"""
JSON as Jackson's default pretty printer writes it: commit metadata of timeline layout 1.

Objects take one line per field with an indent of two blanks and ``"key" : value``; arrays stay on their line
(``[ a, b ]``), empty ones are ``{ }`` and ``[ ]``; UTF-8, no newline at the end (rules/timeline 4.5).
"""

from __future__ import annotations

import json
import math
import re
from json.encoder import encode_basestring
from typing import Any, Final

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.bounds import check_json

# Escaped backslashes are matched too, so that the "u" after one is not taken for the start of an escape.
_ESCAPE: Final = re.compile(r"\\\\|\\u00[01][0-9a-f]")
_JAVA_PLAIN_MIN, _JAVA_PLAIN_MAX = 1e-3, 1e7  # Double.toString leaves out the exponent between these two


def decode_json(data: bytes, source: str) -> dict[str, Any]:
    """
    Decode one JSON object; field order is kept.

    Raises:
        CorruptMetadata: Not UTF-8, not JSON, or not an object.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorruptMetadata(f"{source}: not UTF-8 (byte {error.start} of {len(data)})") from error
    try:
        check_json(text)
        value = json.loads(text, parse_constant=_no_constant)
        if "\\ud" in text.lower():
            _check_surrogates(value)
    except json.JSONDecodeError as error:
        offset = len(text[: error.pos].encode())
        raise CorruptMetadata(f"{source}: not JSON: {error.msg} (byte {offset} of {len(data)})") from error
    except (ValueError, RecursionError) as error:
        raise CorruptMetadata(f"{source}: not JSON: {error} (somewhere in {len(data)} bytes)") from error
    if not isinstance(value, dict):
        raise CorruptMetadata(f"{source}: {type(value).__name__} instead of a JSON object (byte 0 of {len(data)})")
    return value


def encode_json(value: dict[str, Any]) -> bytes:
    """Encode *value* as Jackson does, fields in the order of the dict."""
    return _format(value, "\n").encode("utf-8")


def _format(value: Any, line: str) -> str:
    """Format a value; *line* is a line break with the indent of the enclosing object."""
    if isinstance(value, str):
        return _format_text(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return format_double(value)
    if isinstance(value, dict):
        if not value:
            return "{ }"
        inner = line + "  "
        fields = [f"{_format_text(key)} : {_format(item, inner)}" for key, item in value.items()]
        return "{" + inner + ("," + inner).join(fields) + line + "}"
    if isinstance(value, (list, tuple)):
        return "[ " + ", ".join([_format(item, line) for item in value]) + " ]" if value else "[ ]"
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _format_text(text: str) -> str:
    quoted = encode_basestring(text)
    if "\\u00" in quoted:  # Jackson writes the hex digits of control characters in upper case
        quoted = _ESCAPE.sub(lambda match: match[0][:2] + match[0][2:].upper(), quoted)
    return quoted


def format_double(value: float) -> str:
    """
    Write a double as ``Double.toString`` of Java 19 and later does.

    NaN and infinities are in quotes, as Jackson writes them. Source: the Javadoc of ``Double.toString``.
    """
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    if value == 0 or _JAVA_PLAIN_MIN <= abs(value) < _JAVA_PLAIN_MAX:
        plain = repr(value)
        if "e" not in plain:
            return plain
    sign, digits, exponent = _decimal_parts(value)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _decimal_parts(value: float) -> tuple[str, str, int]:
    """Return the sign, the shortest significant digits, and the exponent of the first digit."""
    mantissa, _, exponent = f"{value!r}e0".partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    leading_zeros = len(whole + fraction) - len(digits)
    first = int(exponent.partition("e")[0]) + len(whole) - 1 - leading_zeros
    return ("-" if value < 0 else ""), digits.rstrip("0"), first


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _check_surrogates(value: Any) -> None:
    """Raise if a text has half a surrogate pair: UTF-8 cannot express it, so it could be read but never written."""
    json.dumps(value, ensure_ascii=False).encode("utf-8")

"""
Conditions at random, with what Spark SQL means by them said once more: row by row, in plain Python.

Each is a text, and a function from a row to True, False or None (SQL's null). The texts are Spark SQL too, with
``spark.sql.parser.escapedStringLiterals`` and in the time zone UTC.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

UTC = timezone.utc
NAN = float("nan")
SCHEMA = pa.schema([
    ("s", pa.string()), ("i", pa.int32()), ("l", pa.int64()), ("f", pa.float32()), ("d", pa.float64()),
    ("b", pa.bool_()), ("day", pa.date32()), ("t", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us")),
    ("dec", pa.decimal128(9, 2)), ("bin", pa.binary()),
    ("nest", pa.struct([("n", pa.int32()), ("deep", pa.struct([("s", pa.string())]))])),
])  # fmt: skip
COMPARED = ("s", "i", "l", "f", "d", "b", "day", "t", "local", "dec", "nest.n", "nest.deep.s")
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
STRINGS = ["", "a", "ab", "abc", "b", "a%b", "a_b", "ü", "\uff00", "\U00010000", "a\nb"]
PATTERNS = ["%", "a%", "ab%", "a", "%b", "%b%", "_", "__", "a_%", "%\\%%", "a\\_b", "", "_b", "ü%", "a%b"]


class Asked(NamedTuple):
    """A condition."""

    text: str
    of: Callable[[dict[str, Any]], bool | None]


def some_value(rng, column):
    """A value of a column, seldom another than before; None for nulls is not among them."""
    at = datetime(2024, 1, 1, 0, 0, rng.randrange(9), rng.randrange(2), UTC)
    return {
        "s": lambda: rng.choice(STRINGS),
        "i": lambda: rng.randrange(-9, 9),
        "l": lambda: rng.randrange(-9, 9),
        "f": lambda: rng.choice([NAN, 0.0, -0.0, 0.5, -2.5, math.inf, _float32(0.1)]),
        "d": lambda: rng.choice([NAN, 0.0, -0.0, 0.5, 2.5, -math.inf, 0.1]),
        "b": lambda: rng.random() < 0.5,
        "day": lambda: date(2024, 1, 1) + timedelta(rng.randrange(9)),
        "t": lambda: at,
        "local": lambda: at.replace(tzinfo=None),
        "dec": lambda: Decimal(rng.randrange(-999, 999)) / 4 // Decimal("0.01") * Decimal("0.01"),
        "bin": lambda: bytes([rng.randrange(256)]),
        "nest": lambda: {"n": _or_null(rng, 0.3, rng.randrange(-9, 9)),
                         "deep": _or_null(rng, 0.3, {"s": _or_null(rng, 0.3, rng.choice(STRINGS))})},
        "nest.n": lambda: rng.randrange(-9, 9),
        "nest.deep.s": lambda: rng.choice(STRINGS),
    }[column]()  # fmt: skip


def some_rows(rng, names):
    """Few values of a narrow range, so that bounds often rule out; columns of nulls, and columns without any."""
    count = rng.randrange(0, 12)
    columns = {}
    for name in names:
        pool = [some_value(rng, name) for _ in range(rng.randrange(1, 4))]
        nulls = rng.choice([0, 0.3, 1])
        columns[name] = [_or_null(rng, nulls, rng.choice(pool)) for _ in range(count)]
    return columns


def some_condition(rng, names, depth=2):
    """A tree of conditions on columns of `SCHEMA`."""
    kind = rng.choice(["leaf", "leaf", "not", "and", "or"]) if depth else "leaf"
    if kind == "leaf":
        return _leaf(rng, rng.choice([each for each in (*COMPARED, "bin", "nest") if each.split(".")[0] in names]))
    if kind == "not":
        part = some_condition(rng, names, depth - 1)
        return Asked(f"not ({part.text})", lambda row: negated(part.of(row)))
    parts = [some_condition(rng, names, depth - 1) for _ in range(rng.randrange(2, 4))]
    text = f" {kind} ".join(f"({part.text})" for part in parts)
    join = conjunction if kind == "and" else disjunction
    return Asked(text, lambda row: join([part.of(row) for part in parts]))


# --- logic of three values --------------------------------------------------------------------------------------------
def negated(value):
    return None if value is None else not value


def conjunction(values):
    return False if False in values else None if None in values else True


def disjunction(values):
    return True if True in values else None if None in values else False


def compared(value, operator, wanted):
    """Spark SQL's comparison of two values."""
    if value is None or wanted is None:
        return None
    if isinstance(value, float) != isinstance(wanted, float) and not isinstance(value, bool):
        value, wanted = float(value), float(wanted)
    first, second = _ordered(value), _ordered(wanted)
    return {"=": first == second, "!=": first != second, "<": first < second, "<=": first <= second,
            ">": first > second, ">=": first >= second}[operator]  # fmt: skip


def has_form(text, pattern):
    """Whether a text is like a pattern, one character at a time."""
    if not pattern:
        return not text
    first, rest = pattern[0], pattern[1:]
    if first == "%":
        return has_form(text, rest) or bool(text and has_form(text[1:], pattern))
    if first == "\\":
        first, rest = rest[0], rest[1:]
    elif first == "_" and text:
        first = text[0]
    return bool(text) and text[0] == first and has_form(text[1:], rest)


def _ordered(value):
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value


# --- conditions on one column -----------------------------------------------------------------------------------------
def _leaf(rng, column):
    def value_in(row):
        found = row
        for name in column.split("."):
            found = None if found is None else found[name]
        return found

    if column in ("bin", "nest") or rng.random() < 0.15:
        is_null = rng.random() < 0.5
        return Asked(f"{column} is {'' if is_null else 'not '}null", lambda row: (value_in(row) is None) is is_null)
    kinds = ["compare", "compare", "in", "between", *["like"] * 2 * column.endswith("s")]
    is_negated, kind = rng.random() < 0.3, rng.choice(kinds)
    word = f"{column} {'not ' * is_negated}{kind}"
    sign = negated if is_negated else lambda value: value
    if kind == "compare":
        operator, (text, wanted) = rng.choice(OPERATORS), _literal(rng, column)
        return Asked(f"{column} {operator} {text}", lambda row: compared(value_in(row), operator, wanted))
    if kind == "in":
        given = [_literal(rng, column, in_list=True) for _ in range(rng.randrange(1, 4))]
        return Asked(
            f"{word} ({', '.join(text for text, _ in given)})",
            lambda row: sign(disjunction([compared(value_in(row), "=", wanted) for _, wanted in given])),
        )
    if kind == "between":
        (low, least), (high, greatest) = _literal(rng, column), _literal(rng, column)
        return Asked(
            f"{word} {low} and {high}",
            lambda row: sign(
                conjunction([compared(value_in(row), ">=", least), compared(value_in(row), "<=", greatest)])
            ),
        )
    pattern = rng.choice(PATTERNS)
    return Asked(
        f"{word} '{pattern}'",
        lambda row: None if value_in(row) is None else sign(has_form(value_in(row), pattern)),
    )


def _literal(rng, column, *, in_list=False):
    """Text of a value, and what it is compared as; in lists Spark SQL takes text in quotes for nothing but text."""
    if rng.random() < 0.08:
        return "null", None
    value = some_value(rng, column)
    if isinstance(value, str):
        return f"'{value}'", value
    if isinstance(value, bool):
        return rng.choice(["{}", *["'{}'"] * (not in_list)]).format(str(value).lower()), value
    if isinstance(value, datetime):
        text = value.replace(tzinfo=None).isoformat(" ")
        return rng.choice(["timestamp '{}'", *["'{}'"] * (not in_list)]).format(text), value
    if isinstance(value, date):
        return rng.choice(["date '{}'", *["'{}'"] * (not in_list)]).format(value), value
    if in_list and isinstance(value, float):
        value = value if math.isfinite(value) else 0.5
    elif isinstance(value, float) and not math.isfinite(value):
        return f"'{str(value).replace('inf', 'Infinity')}'", value
    elif isinstance(value, float) and rng.random() < 0.3:
        return f"'{value!r}'", value
    number = rng.choice([str(int(value)), f"{int(value)}.5", f"{int(value)}5e-1", "0.1"])
    return number, float(number) if "e" in number else Decimal(number) if "." in number else int(number)


def _float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def _or_null(rng, share, value):
    return None if rng.random() < share else value

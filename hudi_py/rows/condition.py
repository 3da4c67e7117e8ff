"""
Conditions on columns as users give them: text, tuples, or expressions of `Column`. Pure.

`hudi_py.rows.predicate` binds them to the types of a table's columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Final, TypeAlias

import attrs

from hudi_py.errors import ConfigError

IS_NULL: Final = "is null"
IS_NOT_NULL: Final = "is not null"
_COMPARISONS: Final = ("=", "!=", "<", "<=", ">", ">=")
_OTHER_SPELLINGS: Final = {"==": "=", "<>": "!="}
_SHAPE: Final = re.compile(
    r"\s*(?:`(?P<quoted>[^`]+)`|(?P<plain>[^\s`=!<>]+))\s*"
    r"(?:(?P<nulls>is\s+(?:not\s+)?null)\s*|(?P<operator>!=|<>|<=|>=|==?|<|>)\s*(?P<value>.*?)\s*)",
    re.IGNORECASE | re.DOTALL,
)
_QUOTES: Final = frozenset("'\"")
_SECOND: Final = re.compile(r"\s(?:and|or)\s.*(?:[=<>]|\s(?:is|in|like|between)\s)", re.IGNORECASE | re.DOTALL)
"""Behind a value without quotes: another condition."""
_FORMS: Final = (
    f"COLUMN OP VALUE with one of {' '.join(_COMPARISONS)}, or COLUMN is null, COLUMN is not null; in Python also "
    '("COLUMN", "OP", value) or hudi_py.Column("COLUMN") > value'
)


@attrs.frozen
class Condition:
    """
    A condition on one column.

    Args:
        column: Name of a column, a meta column perhaps.
        operator: One of ``= != < <= > >=``, ``is null``, ``is not null``.
        text: The value; empty where the operator takes none.
    """

    column: str
    operator: str
    text: str

    def __bool__(self) -> bool:  # `a and b`, `a < b < c` would lose a condition without a word
        raise TypeError("a condition has no truth value; give several as a list: where=[first, second]")


Where: TypeAlias = str | Condition | tuple[object, ...] | Sequence[str | Condition | tuple[object, ...]]
"""One condition, or several that all have to be met; each as text, as a tuple or as a `Condition`."""


@attrs.frozen(eq=False)
class Column:
    """
    A column by name, to be compared: ``Column("fare") > 20``, ``Column("city").is_not_null()``.

    Values are of the column's type: numbers, text, ``bool``, ``Decimal``, ``date``, ``datetime`` (UTC without a zone).

    Raises:
        ConfigError: A value is of another kind.
    """

    name: str

    def __eq__(self, value: object) -> Condition:  # type: ignore[override]
        return _condition(self.name, "=", value)

    def __ne__(self, value: object) -> Condition:  # type: ignore[override]
        return _condition(self.name, "!=", value)

    def __lt__(self, value: object) -> Condition:
        return _condition(self.name, "<", value)

    def __le__(self, value: object) -> Condition:
        return _condition(self.name, "<=", value)

    def __gt__(self, value: object) -> Condition:
        return _condition(self.name, ">", value)

    def __ge__(self, value: object) -> Condition:
        return _condition(self.name, ">=", value)

    __hash__ = None  # type: ignore[assignment]  # equal names compare to a condition

    def is_null(self) -> Condition:
        """The column holds no value."""
        return Condition(self.name, IS_NULL, "")

    def is_not_null(self) -> Condition:
        """The column holds a value."""
        return Condition(self.name, IS_NOT_NULL, "")


def conditions_of(where: Where) -> tuple[Condition, ...]:
    """
    The conditions in *where*.

    Raises:
        ConfigError: One has none of the forms.
    """
    if isinstance(where, (str, Condition)) or _is_condition(where):
        return (_one(where),)
    try:
        return tuple(map(_one, where))
    except TypeError:
        raise ConfigError(f"{where!r} is not a condition; write {_FORMS}") from None


def parse_condition(text: str) -> Condition:
    """
    A condition from ``COLUMN OP VALUE``; a name or a value may stand in quotes (`` ` `` and ``'`` or ``"``).

    Raises:
        ConfigError: It has another form.
    """
    found = _SHAPE.fullmatch(text)
    if found is None:
        raise ConfigError(f"{text!r} is not a condition; write {_FORMS}")
    column = found["quoted"] or found["plain"]
    if found["nulls"] is not None:
        return Condition(column, _operator(found["nulls"]), "")
    return Condition(column, _operator(found["operator"]), _value(found["value"], text))


def _value(text: str, condition: str) -> str:
    """
    A value without its quotes.

    Raises:
        ConfigError: It goes on behind its quotes, or with a second condition: taken for one value, it would be met by
            no row, without a word.
    """
    quote = text[:1]
    if quote in _QUOTES:
        inner = text[1:-1].replace(quote * 2, "")
        if len(text) > 1 and text.endswith(quote) and quote not in inner:
            return text[1:-1].replace(quote * 2, quote)
    elif not _SECOND.search(text):
        return text
    raise ConfigError(
        f"{condition!r} is not one condition; give each condition by itself, all have to be met (there is no OR); a "
        "quote within a quoted value is written twice"
    )


def _operator(text: object) -> str:
    word = " ".join(str(text).lower().split())
    return _OTHER_SPELLINGS.get(word, word)


def _is_condition(given: object) -> bool:
    """Whether a tuple is one condition, not several: no operator alone is a condition."""
    return isinstance(given, tuple) and len(given) in (2, 3) and isinstance(given[1], str) and _is_operator(given[1])


def _is_operator(text: str) -> bool:
    return _operator(text) in {*_COMPARISONS, IS_NULL, IS_NOT_NULL}


def _one(given: object) -> Condition:
    if isinstance(given, Condition):
        return given
    if isinstance(given, str):
        return parse_condition(given)
    if isinstance(given, tuple) and _is_condition(given) and isinstance(given[0], str):
        column, operator, *values = given
        return _condition(column, _operator(operator), *values)
    raise ConfigError(f"{given!r} is not a condition; write {_FORMS}")


def _condition(column: str, operator: str, *values: Any) -> Condition:
    takes_value = operator in _COMPARISONS
    if len(values) != takes_value:
        raise ConfigError(f"({column!r}, {operator!r}) takes {'one value' if takes_value else 'no value'}")
    return Condition(column, operator, _text_of(column, *values) if values else "")


def _text_of(column: str, value: Any) -> str:
    """The value as `Condition.text` has it."""
    plain = value.item() if hasattr(value, "item") else value  # NumPy's scalars
    if isinstance(plain, str):
        return plain
    if isinstance(plain, bool):
        return str(plain).lower()
    if isinstance(plain, (int, float, Decimal)):
        return str(plain)
    if isinstance(plain, date):
        return plain.isoformat()
    hint = f'; write "{column} {IS_NULL}"' if plain is None else ""
    raise ConfigError(f"a condition on {column}: {value!r} cannot be compared with a column{hint}")

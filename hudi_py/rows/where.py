"""Converts all forms in which users write conditions: text, tuples, expressions, and lists of these. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from hudi_py.errors import ConfigError
from hudi_py.rows.condition import (
    COMPARISONS,
    Condition,
    IsNull,
    Not,
    Where,
    all_of,
    any_of,
    compare,
    like,
    one_of,
    path_of,
)
from hudi_py.rows.condition_text import OTHER_SPELLINGS, parse_condition

_FORMS: Final = (
    'text such as "fare > 20 and city in (\'Rome\', \'Oslo\')", a tuple such as ("fare", ">", 20) or ("city", "in", '
    '["Rome", "Oslo"]), or hudi_py.Column("fare") > 20'
)
_NULLS: Final = {"is null": False, "is not null": True}
_WITH_VALUE: Final = (*COMPARISONS, "in", "not in", "like", "not like", "between", "not between")


def conditions_of(where: Where) -> tuple[Condition, ...]:
    """
    Convert *where* to conditions; all of them have to be met.

    Raises:
        ConfigError: A condition has none of the forms.
    """
    if isinstance(where, (str, Condition)) or _is_tuple_form(where):
        return (_one(where),)
    # What is in a mapping, or in bytes, are not conditions.
    if isinstance(where, (bytes, Mapping)) or not isinstance(where, Iterable):
        raise ConfigError(f"{where!r} is not a condition; write {_FORMS}")
    given = list(where)
    # Only lists of lists mean "or": a tuple inside a list is a single condition.
    inner = [isinstance(each, list) for each in given]
    if given and all(inner):
        return (any_of([_all(each) for each in given]),)
    return tuple(map(_one, given))


def narrowing(where: Where, what: str) -> tuple[Condition, ...]:
    """
    Convert the *where* of a statement that changes rows: without one, it changes all of them.

    Args:
        where: As for `conditions_of`.
        what: The statement, for the message.

    Raises:
        ConfigError: It was given without a condition, such as a list that came out empty; or as `conditions_of`.
    """
    found = conditions_of(where)
    if not found and where != ():
        raise ConfigError(
            f"where={where!r} has no condition, and {what} would change all rows; leave where= out if all are meant"
        )
    return found


def _all(given: Any) -> Condition:
    # An empty inner list would be met by every row, and with it the whole condition.
    if not given:
        raise ConfigError("a list of conditions is empty; leave it out, or leave out where=")
    return all_of(map(_one, given))


def _one(given: object) -> Condition:
    if isinstance(given, Condition):
        return given
    if isinstance(given, str):
        return parse_condition(given)
    if isinstance(given, tuple) and _is_tuple_form(given) and isinstance(given[0], str):
        column, operator, *values = given
        return _of_tuple(column, _operator(operator), values)
    raise ConfigError(f"{given!r} is not a condition; write {_FORMS}")


def _is_tuple_form(given: object) -> bool:
    """Whether a tuple is one condition and not several: an operator in second place is not a condition itself."""
    return isinstance(given, tuple) and len(given) in (2, 3) and isinstance(given[1], str) and _is_operator(given[1])


def _is_operator(text: str) -> bool:
    operator = _operator(text)
    return operator in _WITH_VALUE or operator in _NULLS


def _operator(text: object) -> str:
    word = " ".join(str(text).lower().split())
    return OTHER_SPELLINGS.get(word, word)


def _of_tuple(column: str, operator: str, values: list[Any]) -> Condition:
    takes_value = operator not in _NULLS
    if len(values) != takes_value:
        raise ConfigError(f"({column!r}, {operator!r}) takes {'one value' if takes_value else 'no value'}")
    if operator in _NULLS:
        found: Condition = IsNull(path_of(column))
        return Not(found) if _NULLS[operator] else found
    if operator in COMPARISONS:
        return compare(column, operator, values[0])
    found = _worded(column, operator.removeprefix("not "), values[0])
    return Not(found) if operator.startswith("not ") else found


def _worded(column: str, operator: str, value: Any) -> Condition:
    if operator == "in":
        return one_of(column, value)
    if operator == "like":
        return like(column, value)
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence) or len(value) != 2:
        raise ConfigError(f"({column!r}, 'between') takes a pair: the least value and the greatest")
    return all_of((compare(column, ">=", value[0]), compare(column, "<=", value[1])))

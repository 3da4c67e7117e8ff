"""
Conditions on columns: trees of frozen values, and `Column`, whose comparisons return such trees. Pure.

`hudi_py.rows.condition_text` parses them from text, `hudi_py.rows.where` accepts every form that users write (`Where`),
and `hudi_py.rows.predicate` binds them to the types of a table's columns.

``str(condition)`` is text that `parse_condition` parses into the same condition.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, TypeAlias

import attrs

from hudi_py.errors import ConfigError

COMPARISONS: Final = ("=", "!=", "<", "<=", ">", ">=")
Path: TypeAlias = tuple[str, ...]
"""Names from a column of the table down to a field of its structs; most conditions have just one."""

_PLAIN_NAME: Final = re.compile(r"[^\W\d]\w*")
_PART: Final = re.compile(r"`((?:[^`]|``)+)`|([^`.]+)")


@attrs.frozen
class Word:
    """A value without quotes that is not a number: meant as text, or as the name of a column."""

    text: str


Value: TypeAlias = bool | int | float | str | Decimal | date | datetime | Word | None
"""What a column is compared with; None is SQL's null."""


class Condition:
    """
    A condition is true, false or null for a row, and selects rows for which it is true. Combine with ``&, |, ~``.

    Its subclasses: `And`, `Or`, `Not`, `Comparison`, `IsIn`, `Like`, `IsNull`.
    """

    __slots__ = ()

    def __and__(self, other: Condition) -> Condition:
        return all_of((self, _checked(other)))

    def __or__(self, other: Condition) -> Condition:
        return any_of((self, _checked(other)))

    def __invert__(self) -> Condition:
        # Also right for null, which stays null however often it is negated.
        return self.part if isinstance(self, Not) else Not(self)

    def __bool__(self) -> bool:  # `a and b`, `a < b < c` would silently drop a condition
        raise TypeError(
            "a condition has no truth value; combine two with & or |, or give a list: where=[first, second]"
        )


One: TypeAlias = str | Condition | tuple[object, ...]
Where: TypeAlias = One | Sequence[One] | Sequence[Sequence[One]]
"""
One condition, or several that all have to be met; written as text, as tuples or as expressions of `Column`.

For a list of lists, all conditions of at least one inner list have to be met, as in pyarrow.
"""


@attrs.frozen
class And(Condition):
    """True where all *parts* are true; two parts or more, and no part is itself an `And`."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " and ".join(f"({part})" if isinstance(part, Or) else str(part) for part in self.parts)


@attrs.frozen
class Or(Condition):
    """True where one of *parts* is true; two parts or more, and no part is itself an `Or`."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " or ".join(map(str, self.parts))


@attrs.frozen
class Not(Condition):
    """True where *part* is false; null where it is null."""

    part: Condition

    def __str__(self) -> str:
        part = self.part
        if isinstance(part, (IsIn, Like, IsNull)):
            return part.text(negated=True)
        return f"not ({part})"


@attrs.frozen
class Comparison(Condition):
    """
    A column compared with a value.

    Args:
        path: The column.
        operator: One of `COMPARISONS`.
        value: The value to compare with.
    """

    path: Path
    operator: str
    value: Value

    def __str__(self) -> str:
        return f"{name_of(self.path)} {self.operator} {_literal(self.value)}"


@attrs.frozen
class IsIn(Condition):
    """
    A column that equals one of some values.

    Args:
        path: The column.
        values: The values. An empty tuple matches no row, and every row if negated.
    """

    path: Path
    values: tuple[Value, ...]

    def text(self, *, negated: bool = False) -> str:
        """The condition in SQL."""
        return f"{name_of(self.path)} {'not ' * negated}in ({', '.join(map(_literal, self.values))})"

    __str__ = text


@attrs.frozen
class Like(Condition):
    r"""
    A text that matches a pattern: ``%`` matches any characters, ``_`` one character; ``\`` before either escapes it.

    Args:
        path: The column.
        pattern: The pattern; with None the condition is null.
    """

    path: Path
    pattern: str | None

    def text(self, *, negated: bool = False) -> str:
        """The condition in SQL."""
        return f"{name_of(self.path)} {'not ' * negated}like {_literal(self.pattern)}"

    __str__ = text


@attrs.frozen
class IsNull(Condition):
    """True where a column has no value, else false; never null."""

    path: Path

    def text(self, *, negated: bool = False) -> str:
        """The condition in SQL."""
        return f"{name_of(self.path)} is {'not ' * negated}null"

    __str__ = text


@attrs.frozen(eq=False)
class Column:
    """
    A column by name, to be compared: ``Column("fare") > 20``, ``Column("city").is_in(["Rome", "Oslo"])``.

    A field of a struct is named with dots: ``Column("place.city")``; a name that contains dots is put in backticks.
    Values are numbers, text, ``bool``, ``Decimal``, ``date``, ``datetime`` (UTC without a zone); text is converted to
    the type of the column.

    Raises:
        ConfigError: A value has another type.
    """

    name: str

    def __eq__(self, value: object) -> Condition:  # type: ignore[override]
        return compare(self.name, "=", value)

    def __ne__(self, value: object) -> Condition:  # type: ignore[override]
        return compare(self.name, "!=", value)

    def __lt__(self, value: object) -> Condition:
        return compare(self.name, "<", value)

    def __le__(self, value: object) -> Condition:
        return compare(self.name, "<=", value)

    def __gt__(self, value: object) -> Condition:
        return compare(self.name, ">", value)

    def __ge__(self, value: object) -> Condition:
        return compare(self.name, ">=", value)

    __hash__ = None  # type: ignore[assignment]  # equal names compare to a condition

    def __bool__(self) -> bool:  # `Column("paid") and Column("fare") > 20` would silently drop the first column
        raise TypeError(f"the column {self.name} has no truth value; write Column({self.name!r}) == True")

    def is_null(self) -> Condition:
        """The column holds no value."""
        return IsNull(path_of(self.name))

    def is_not_null(self) -> Condition:
        """The column holds a value."""
        return Not(self.is_null())

    def is_in(self, values: Iterable[object]) -> Condition:
        """The column holds one of *values*."""
        return one_of(self.name, values)

    isin = is_in
    """As pyarrow and PySpark call it."""

    def like(self, pattern: str) -> Condition:
        """The column's text matches *pattern*, see `Like`."""
        return like(self.name, pattern)

    def between(self, low: object, high: object) -> Condition:
        """The column holds a value from *low* to *high*, both of them included."""
        return all_of((compare(self.name, ">=", low), compare(self.name, "<=", high)))


def all_of(parts: Iterable[Condition]) -> Condition:
    """One condition that is met where all *parts* are; there must be a part."""
    # Flat, so that the printed text parses into the same tree again.
    flat = [each for part in parts for each in (part.parts if isinstance(part, And) else (part,))]
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def any_of(parts: Iterable[Condition]) -> Condition:
    """One condition that is met where one of *parts* is; there must be a part."""
    flat = [each for part in parts for each in (part.parts if isinstance(part, Or) else (part,))]
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def leaves_of(condition: Condition) -> Iterator[Condition]:
    """The conditions on single columns in the tree."""
    if isinstance(condition, (And, Or)):
        for part in condition.parts:
            yield from leaves_of(part)
    elif isinstance(condition, Not):
        yield from leaves_of(condition.part)
    else:
        yield condition


def map_leaves(condition: Condition, change: Callable[[Any], Condition]) -> Condition:
    """The same tree with each condition on a single column changed."""
    if isinstance(condition, (And, Or)):
        return type(condition)(tuple(map_leaves(part, change) for part in condition.parts))
    if isinstance(condition, Not):
        return Not(map_leaves(condition.part, change))
    return change(condition)


def compare(name: str, operator: str, value: object) -> Condition:
    """A comparison with a Python value; raises `ConfigError` if its type is not supported."""
    checked = value_of(name, value)
    # In SQL ``= null`` is true for no row, which nobody wants who writes None.
    if checked is None:
        raise ConfigError(
            f"a condition on {name}: None cannot be compared with a column; ask {name} is null or {name} is not null"
        )
    return Comparison(path_of(name), operator, checked)


def one_of(name: str, values: object) -> Condition:
    """A column that equals one of *values*; raises `ConfigError` if they are not a list of values."""
    # A text is iterable, too: its characters would silently become the values.
    if isinstance(values, (str, bytes, Condition, Column)) or not isinstance(values, Iterable):
        raise ConfigError(f"a condition on {name}: {values!r} is not a list of values; write {name} in (first, second)")
    return IsIn(path_of(name), tuple(value_of(name, value) for value in values))


def like(name: str, pattern: object) -> Condition:
    """A text that matches a pattern; raises `ConfigError` if the pattern is not a text."""
    if not isinstance(pattern, str):
        raise ConfigError(
            f"a condition on {name}: {pattern!r} is not a pattern; write it as text, as in {name} like 'a%'"
        )
    return Like(path_of(name), pattern)


def value_of(name: str, value: Any) -> Value:
    """
    The Python value of a value from Python, NumPy or pyarrow.

    Raises:
        ConfigError: Its type cannot be compared with columns.
    """
    try:
        plain = value.item() if hasattr(value, "item") else value.as_py() if hasattr(value, "as_py") else value
    except ValueError:  # an array of several values; refused below
        plain = value
    # NumPy gives times of nanoseconds, and those beyond the calendar, as numbers, which columns of numbers would equal.
    if _is_time_of_numpy(value) and isinstance(plain, int):
        plain = _whole_microseconds(value)
    if isinstance(plain, datetime) and plain != plain:  # noqa: PLR0124 - pandas' NaT, which is not a time
        return None
    # pandas' times have nanoseconds; cut off, `<` would leave out rows of the same microsecond.
    if getattr(plain, "nanosecond", 0):
        raise ConfigError(f"a condition on {name}: {value!r} has nanoseconds; give a time of whole microseconds")
    if plain is None or isinstance(plain, (bool, int, float, str, Decimal, date)):
        return plain
    raise ConfigError(f"a condition on {name}: {value!r} cannot be compared with a column")


def _is_time_of_numpy(value: Any) -> bool:
    return getattr(getattr(value, "dtype", None), "kind", "") in ("M", "m")


def _whole_microseconds(value: Any) -> Any:
    """A time of NumPy as a `datetime`; the value itself if it is none."""
    if value.dtype.kind == "M":
        micros = value.astype("datetime64[us]")
        if micros == value and isinstance(micros.item(), datetime):
            return micros.item()
    return value


def path_of(name: str) -> Path:
    """
    The names between the dots of *name*; a name in backticks may contain dots.

    Raises:
        ConfigError: A name is empty, or a backtick is missing.
    """
    parts, at = [], 0
    while found := _PART.match(name, at):
        quoted, plain = found.groups()
        parts.append(plain if quoted is None else quoted.replace("``", "`"))
        at = found.end()
        if at == len(name):
            return tuple(parts)
        if name[at] != ".":
            break
        at += 1
    raise ConfigError(f"{name!r} is not the name of a column; put a name with dots or backticks in it in backticks")


def name_of(path: Path) -> str:
    """The name of a column as it is written in conditions."""
    return ".".join(part if _PLAIN_NAME.fullmatch(part) else "`" + part.replace("`", "``") + "`" for part in path)


def _literal(value: Value) -> str:
    """A value as `parse_condition` parses it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return f"timestamp '{value.isoformat()}'"
    if isinstance(value, date):
        return f"date '{value.isoformat()}'"
    if isinstance(value, Word):
        return value.text
    if isinstance(value, float):  # with an exponent, because a number with a point is parsed as a decimal
        text = repr(value)
        return (text if "e" in text else f"{text}e0") if math.isfinite(value) else f"'{text}'"
    if isinstance(value, Decimal) and value.is_finite():
        text = f"{value:f}"
        return text if "." in text else f"{text}."
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


def _checked(other: object) -> Condition:
    if not isinstance(other, Condition):
        raise ConfigError(f"{other!r} is not a condition; put each comparison in parentheses: (a > 1) & (b = 2)")
    return other

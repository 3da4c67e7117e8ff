"""
Conditions bound to the columns of a table: which rows meet them. Pure.

Conditions mean what they mean in Spark SQL, with its three-valued logic: a comparison with null is null, ``not null``
is null, ``and`` is false if one side is false and ``or`` true if one side is true, whatever the other side is; ``in``
is null if no value is equal and one value is null. A row is returned only if the condition is true.
`hudi_py.rows.operand` says how values are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, Final, Protocol, TypeAlias

import attrs
import pyarrow as pa

from hudi_py.errors import ConfigError
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.rows.condition import (
    And,
    Comparison,
    Condition,
    IsIn,
    IsNull,
    Like,
    Not,
    Or,
    Path,
    Value,
    Word,
    leaves_of,
    map_leaves,
    name_of,
)
from hudi_py.rows.operand import Operand, is_in_mask, operand_of
from hudi_py.rows.pattern import Pattern, pattern_of


@attrs.frozen(kw_only=True)
class Bounds:
    """
    What is known about the values of one column in some rows.

    Args:
        minimum: Lower bound: bool, int (microseconds since 1970, UTC, for timestamps), float, str, date or Decimal.
            None if unknown.
        maximum: Upper bound; None if unknown.
        has_only_nulls: True if all values are known to be null.
        has_nulls: False if no value is null for certain.
    """

    minimum: Any = None
    maximum: Any = None
    has_only_nulls: bool = False
    has_nulls: bool = True


UNKNOWN: Final = Bounds()
_FEW: Final = 8  # few rows: fewer than one in this number


class ColumnFilter(Protocol):
    """A filter of rows by one column."""

    @property
    def column(self) -> str:
        """Name of the column."""

    @property
    def arrow(self) -> pa.DataType:
        """Type of the column in the rows that `mask` gets."""

    def mask(self, column: Array) -> Array:
        """The result for each row: true, false or null; only true selects a row."""

    def may_match(self, bounds: Bounds) -> bool:
        """Whether a row within *bounds* may be selected."""


@attrs.frozen
class Leaf(Condition):
    """
    A condition on one column of known type.

    Args:
        condition: The condition as given.
        path: The column.
        arrow: Its type in the rows.
        operands: The values it is compared with, without nulls.
        pattern: The pattern of ``like``.
    """

    condition: Comparison | IsIn | Like | IsNull
    path: Path
    arrow: pa.DataType
    operands: tuple[Operand, ...] = ()
    pattern: Pattern | None = None

    def mask(self, column: Array) -> Array:
        """The result for each value of the column: true, false or null."""
        condition = self.condition
        found: Array
        if isinstance(condition, IsNull):
            found = compute.is_null(column)
        elif isinstance(condition, IsIn):
            found = self._is_in(column, condition.values)
        elif self.pattern is not None:
            found = self.pattern.mask(column)
        elif isinstance(condition, Comparison) and self.operands:
            found = self.operands[0].mask(column, condition.operator)
        else:
            found = pa.nulls(len(column), pa.bool_())
        return found

    def _is_in(self, column: Array, values: Sequence[Value]) -> Array:
        found = is_in_mask(column, self.operands)
        # Of no values none is unknown, not even for null.
        if not values:
            return found
        null = pa.scalar(None, pa.bool_())
        # With a null among the values, "not found" is unknown: the null might have been equal.
        is_open = compute.invert(found) if None in values else compute.is_null(column)
        result: Array = compute.if_else(is_open, null, found)
        return result


@attrs.frozen
class Filter:
    """
    A condition on columns of known types.

    Args:
        condition: The condition as given.
        tree: The same with a `Leaf` for each condition on a single column.
    """

    condition: Condition
    tree: Condition

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The conditions on single columns."""
        return tuple(each for each in leaves_of(self.tree) if isinstance(each, Leaf))

    def mask(self, batch: pa.RecordBatch) -> Array:
        """The result for each row: true, false or null; only true selects a row."""
        return _mask(self.tree, batch)


@attrs.frozen
class OneOf:
    """
    Selects rows with one of several texts in a column; a `ColumnFilter`.

    Args:
        column: Name of the column.
        values: The texts.
    """

    column: str
    values: frozenset[str]

    arrow = pa.string()

    def mask(self, column: Array) -> Array:
        """Which rows have one of the texts."""
        if len(self.values) > len(column):  # is_in would build a hash table of all texts for every batch
            here: Array = pa.array([value in self.values for value in column.to_pylist()], pa.bool_())
            return here
        found: Array = compute.is_in(column, value_set=pa.array(sorted(self.values), pa.string()))
        return found

    def may_match(self, bounds: Bounds) -> bool:
        """Whether a row within *bounds* may have one of the texts."""
        # Without bounds nothing can be ruled out.
        if bounds.has_only_nulls or bounds.minimum is None or bounds.maximum is None:
            return not bounds.has_only_nulls
        return any(bounds.minimum <= value <= bounds.maximum for value in self.values)


RowFilter: TypeAlias = ColumnFilter | Filter
"""A filter of rows."""


def filters_of(conditions: Sequence[Condition], schema: pa.Schema, names: Iterable[str] = ()) -> tuple[Filter, ...]:
    """
    Bind conditions to the columns of *schema*; one filter for each condition that has to be met.

    Args:
        names: All columns of the table and fields in them, see `names_in`: a word without quotes that names one is not
            taken as text, in whatever case, which is the same to Spark SQL.

    Raises:
        ConfigError: A value cannot be compared with its column, or a struct has no such field.
    """
    known = frozenset(name.lower() for name in names)
    # Split at each and, so that each part rules out files and is evaluated on its own, on ever fewer rows.
    parts = [
        part for condition in conditions for part in (condition.parts if isinstance(condition, And) else (condition,))
    ]
    return tuple(Filter(part, map_leaves(part, lambda leaf: _bound(leaf, schema, known))) for part in parts)


def names_in(schema: pa.Schema) -> Iterator[str]:
    """Yield the names of all columns, and of fields of structs as conditions name them: ``a.b``."""
    return _names_in("", schema)


def _names_in(prefix: str, fields: Iterable[Any]) -> Iterator[str]:
    for field in fields:
        yield prefix + field.name
        if isinstance(field.type, pa.StructType):
            yield from _names_in(f"{prefix}{field.name}.", field.type)


def filtered(batch: pa.RecordBatch, filters: Sequence[RowFilter]) -> pa.RecordBatch:
    """The rows that meet all of *filters*."""
    for each in filters:
        batch = chosen(batch, each.mask(batch) if isinstance(each, Filter) else each.mask(batch.column(each.column)))
    return batch


def chosen(batch: pa.RecordBatch, mask: Any) -> pa.RecordBatch:
    """The rows for which *mask* is true."""
    count = mask.true_count
    if count == len(mask):
        return batch
    if count * _FEW < len(mask):  # `filter` goes through all rows of each column, `take` only through the chosen ones
        return batch.take(compute.indices_nonzero(mask))
    return batch.filter(mask)


def columns_of(conditions: Iterable[Condition], names: Iterable[str]) -> list[str]:
    """Names of the columns in conditions, without repetition; *names* are all columns of the table."""
    known = frozenset(names)
    paths = (_resolved(_of(leaf).path, known) for condition in conditions for leaf in leaves_of(condition))
    return list(dict.fromkeys(path[0] for path in paths))


def _resolved(path: Path, names: frozenset[str]) -> Path:
    """A column whose name contains dots needs no backticks if the name cannot mean a field of a struct."""
    whole = ".".join(path)
    return path if path[0] in names or whole not in names else (whole,)


def _of(leaf: Condition) -> Comparison | IsIn | Like | IsNull:
    assert isinstance(leaf, (Comparison, IsIn, Like, IsNull))
    return leaf


def _bound(given: Condition, schema: pa.Schema, names: frozenset[str]) -> Leaf:
    condition = _of(given)
    path = _resolved(condition.path, frozenset(schema.names))
    arrow = _type_of(path, schema)
    if isinstance(condition, IsNull):
        return Leaf(condition, path, arrow)
    text = str(condition)
    if isinstance(condition, Like):
        if not (pa.types.is_string(arrow) or pa.types.is_large_string(arrow)):
            raise ConfigError(f"{text}: a column of type {arrow} has no patterns; like is for text")
        return Leaf(
            condition, path, arrow, pattern=None if condition.pattern is None else pattern_of(condition.pattern, text)
        )
    values = condition.values if isinstance(condition, IsIn) else (condition.value,)
    for value in values:
        # Spark SQL would compare two columns here; as text, the word would silently select other rows.
        if isinstance(value, Word) and value.text.lower() in names:
            raise ConfigError(
                f"{text}: {value.text} is a column, and columns are compared with values only; to compare with that "
                "text, put it in quotes"
            )
    if path[0] in META_COLUMNS:  # instants and keys are text, and often look like numbers
        values = tuple(_digits(value) for value in values)
    return Leaf(condition, path, arrow, tuple(operand_of(value, arrow, text) for value in values if value is not None))


def _digits(value: Value) -> Value:
    if isinstance(value, Word):
        return value.text
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _type_of(path: Path, schema: pa.Schema) -> pa.DataType:
    arrow: pa.DataType = schema.field(path[0]).type
    for at, name in enumerate(path[1:], 1):
        if not isinstance(arrow, pa.StructType) or arrow.get_field_index(name) < 0:
            has = f"it has {', '.join(field.name for field in arrow)}" if isinstance(arrow, pa.StructType) else ""
            raise ConfigError(
                f"the column {name_of(path[:at])} of type {arrow} has no field {name}" + (f"; {has}" if has else "")
            )
        arrow = arrow.field(name).type
    return arrow


def _mask(tree: Condition, batch: pa.RecordBatch) -> Array:
    found: Array
    if isinstance(tree, And):
        # Arrow's other functions for and, or are null wherever one side is; SQL's are not.
        found = reduce(compute.and_kleene, (_mask(part, batch) for part in tree.parts))
    elif isinstance(tree, Or):
        found = reduce(compute.or_kleene, (_mask(part, batch) for part in tree.parts))
    elif isinstance(tree, Not):
        found = compute.invert(_mask(tree.part, batch))
    else:
        assert isinstance(tree, Leaf)
        column = batch.column(tree.path[0])
        found = tree.mask(compute.struct_field(column, list(tree.path[1:])) if len(tree.path) > 1 else column)
    return found

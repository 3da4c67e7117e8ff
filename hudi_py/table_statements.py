"""
Finds the rows that a delete or an update changes, so that they can be written in the same commit.

Rows are searched after the write has begun, so that no other commit can come in between. What can be told without them
is checked before. For merges see `hudi_py.table_merge`.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Number
from typing import Any, ClassVar, Protocol

import attrs
import pyarrow as pa

from hudi_py.config.table import TableType
from hudi_py.errors import ConfigError, WriteError
from hudi_py.formats.arrow_types import compute
from hudi_py.formats.conform import conform_array
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.formats.stored_values import as_spark_casts, java_text
from hudi_py.model.words import counted
from hudi_py.rows.bound_where import bound_filters
from hudi_py.rows.condition import Condition, Where
from hudi_py.rows.expression import Expression
from hudi_py.rows.keys import KeyGenerator
from hudi_py.rows.log_rules import log_rules_of
from hudi_py.rows.precedence import DELETED_COLUMN, delete_mask, merge_rules_of, refuse_nulls
from hudi_py.rows.stored_keys import FILE, KEY, PATH
from hudi_py.rows.where import conditions_of, narrowing
from hudi_py.table_view import TableView
from hudi_py.writing.changes_in_logs import LogsBefore
from hudi_py.writing.found import Found


class Statement(Protocol):
    """A change of rows of a table, which finds them itself."""

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What all stored rows meet that it depends on; empty where it depends on all rows."""

    @property
    def adds(self) -> bool:
        """Whether it writes rows that the table lacks, so that it depends on those that are there."""

    def check(self, generator: KeyGenerator, schema: pa.Schema) -> None:
        """
        Refuse what cannot be done whatever rows the table has, before the write begins.

        A write may roll back failed ones and make the metadata table as soon as it begins, and a refusal changes
        nothing.

        Args:
            generator: Of the table's keys.
            schema: The table's storage schema.

        Raises:
            ConfigError, WriteError: A column or value of the statement does not fit the table.
        """
        ...

    def find(self, table: TableView, generator: KeyGenerator, schema: pa.Schema) -> Found:
        """Find the rows, once the write has begun; the other arguments are those of `check`."""
        ...


@attrs.frozen
class _Delete:
    """Deletes the rows that meet conditions."""

    conditions: tuple[Condition, ...]
    adds: ClassVar = False

    def check(self, _generator: KeyGenerator, schema: pa.Schema) -> None:
        """See `Statement`."""
        bound_filters(self.conditions, schema)

    def find(self, table: TableView, generator: KeyGenerator, schema: pa.Schema) -> Found:
        """See `Statement`."""
        # Key columns alone: deletions are written by key. Where keys are generated, any column will do.
        columns = list(generator.key_columns) or schema.names[:1]
        found = table.rows(where=self.conditions, columns=columns, with_meta=True).to_arrow()
        before = logs_before(table)
        if before is not None:
            before.check(found)
        return Found(deleted=found.select([KEY, PATH, FILE]), before=before)


def rows_to_delete(where: Where) -> Statement:
    """
    Return the statement that deletes the rows which meet *where*.

    Raises:
        ConfigError: The condition is invalid, or there is none: an empty list would delete all rows.
    """
    conditions = conditions_of(where)
    if not conditions:
        raise ConfigError(
            f'where={where!r} has no condition, and a delete needs one, if only "_hoodie_record_key is not null"'
        )
    return _Delete(conditions)


@attrs.frozen
class _Update:
    """Sets columns of the rows that meet conditions."""

    expressions: Mapping[str, Expression]
    conditions: tuple[Condition, ...]
    adds: ClassVar = False

    def check(self, generator: KeyGenerator, schema: pa.Schema) -> None:
        """See `Statement`."""
        check_settable(self.expressions, generator, schema)
        bound_filters(self.conditions, schema)
        row = row_of_nulls(schema)
        with_values(row, self.expressions, schema, row)

    def find(self, table: TableView, generator: KeyGenerator, schema: pa.Schema) -> Found:
        """See `Statement`."""
        check_settable(self.expressions, generator, schema)
        stored = table.rows(where=self.conditions, with_meta=True).to_arrow()
        batches = [with_values(batch, self.expressions, schema, batch) for batch in stored.to_batches()]
        rows = pa.Table.from_batches(batches, schema=stored.schema)
        refuse_marked(rows)
        refuse_twice(rows, "the table has")
        before = logs_before(table)
        if before is not None:
            before.check(stored, rows)
        refuse_unordered(table, rows, stored)
        return Found(rows=rows, updated=rows.num_rows, before=before)


def rows_to_update(values: Mapping[str, Any], where: Where) -> Statement:
    """
    Return the statement that gives the rows which meet *where* new values.

    Args:
        values: Column to expression (text), or to a value that is not a text.
        where: As for `TableView.rows`.

    Raises:
        ConfigError: An expression or the condition is invalid, or there is no expression.
    """
    return _Update(expressions_of(values), narrowing(where, "the update"))


def row_of_nulls(schema: pa.Schema) -> pa.RecordBatch:
    """Return one row as statements see stored ones: expressions that fail with it fail with every row."""
    names = [field for field in schema if field.name not in META_COLUMNS]
    return nulls_of(pa.schema([*(pa.field(name, pa.string()) for name in META_COLUMNS), *names]))


def nulls_of(schema: pa.Schema) -> pa.RecordBatch:
    """Return one row of nulls."""
    nullable = pa.schema([field.with_nullable(nullable=True) for field in schema])
    return pa.RecordBatch.from_arrays([pa.nulls(1, field.type) for field in nullable], schema=nullable)


def logs_before(table: TableView) -> LogsBefore | None:
    """Return what a change of a merge-on-read table needs to know of it; None for a copy-on-write table."""
    if table.config.table_type is not TableType.MERGE_ON_READ:
        return None
    return LogsBefore(
        storage=table.storage,
        slices=tuple(table.snapshot().slices_with_rows()),
        schema=table.schema,
        rules=log_rules_of(table.config.properties, table.storage.root),
        is_completed=table.view_context.is_completed,
    )


def expressions_of(values: Mapping[str, Any]) -> dict[str, Expression]:
    """
    Return the expression of each column; numbers, booleans and None stand for themselves.

    Raises:
        ConfigError: There is no column, an expression is invalid, or a value has another type.
    """
    if not values or not isinstance(values, Mapping):
        raise ConfigError("an update needs at least one column to set, such as {'fare': 'fare * 2'}")
    return {name: Expression(value if isinstance(value, str) else _literal(value)) for name, value in values.items()}


def check_settable(names: Mapping[str, Expression], generator: KeyGenerator | None, schema: pa.Schema) -> None:
    """
    Raise if a column cannot be set.

    Args:
        names: Columns.
        generator: Of the table's keys; None for new rows, of which every column can be set.
        schema: Columns of the table.

    Raises:
        ConfigError: There is no such column, or it is part of the key or partition.
    """
    for name in names:
        if name not in schema.names:
            raise ConfigError(f"the table has no column {name!r} to set; it has {', '.join(schema.names)}")
        if generator is not None and name in (*generator.key_columns, *generator.partition_fields):
            raise ConfigError(
                f"column {name!r} cannot be set: it is part of the key or partition, which say where a row is; delete "
                "the rows and insert them instead"
            )


def _literal(value: Any) -> str:
    # NumPy's booleans are neither `bool` nor numbers.
    value = value.item() if hasattr(value, "item") else value  # a NumPy value
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Number):
        text = str(value)
        # These are no words of the grammar, but texts that mean numbers.
        return f"'{java_text(float(text))}'" if text.lower().lstrip("-") in ("nan", "inf", "infinity") else text
    raise ConfigError(  # the text of a date would be read as a subtraction
        f"{value!r} is not an expression, number, boolean or None; write a text or a time as an expression: "
        "\"'text'\", \"date '2026-01-02'\""
    )


def with_values(
    batch: pa.RecordBatch, values: Mapping[str, Expression], schema: pa.Schema, seen: pa.RecordBatch
) -> pa.RecordBatch:
    """
    Return rows with new values of some columns.

    Args:
        batch: n rows.
        values: Column to expression.
        schema: Columns of the table.
        seen: n rows with the columns that the expressions may name.
    """
    columns: list[Any] = list(batch.columns)
    for name, expression in values.items():
        position = batch.schema.get_field_index(name)
        columns[position] = expression.values(seen, schema.field(name).type)
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def as_stored(column: Any, field: Any) -> Any:
    """
    Return a column of the user in the type of the table's column.

    Raises:
        WriteError: A value does not fit.
    """
    try:
        if column.type == field.type:
            return column
        parts = [conform_array(chunk, field.type, field.name, as_spark_casts) for chunk in column.chunks]
        return pa.chunked_array(parts, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise WriteError(
            f"column {field.name!r}: {column.type} cannot be converted to {field.type}: {error}"
        ) from error


def refuse_unordered(table: TableView, rows: pa.Table, stored: pa.Table | None = None) -> None:
    """
    Raise if rows come to lack an ordering value, as in an upsert: Apache Hudi fails where it compares them later.

    Args:
        table: Says by which columns rows are ordered.
        rows: As they are to be written.
        stored: The same rows as they are; those that lack the value already may. None for new rows.

    Raises:
        WriteError: They do.
    """
    for name in merge_rules_of(table.config.properties).batch_fields:
        lacks = compute.is_null(rows.column(name))
        if stored is not None:
            lacks = compute.and_not(lacks, compute.is_null(stored.column(name)))
        refuse_nulls(name, compute.sum(lacks).as_py() or 0)


def refuse_marked(rows: pa.Table) -> None:
    """
    Raise if rows that a statement updates or inserts are marked as deleted: an upsert would delete them.

    Raises:
        WriteError: They are.
    """
    marks = delete_mask(rows)
    count = 0 if marks is None else compute.sum(marks).as_py() or 0
    if count:
        raise WriteError(
            f"{counted(count, 'row')} would be marked as deleted ({DELETED_COLUMN}), which neither an update nor a "
            "merge does; delete such rows by a condition (delete, when_matched_delete), or upsert them"
        )


def refuse_twice(rows: pa.Table | None, who: str) -> None:
    """
    Raise if two rows have the same partition and key.

    Raises:
        WriteError: They have.
    """
    if rows is None:
        return
    # By partition as well: tables with partitions may have a key once in each.
    counts = rows.group_by([PATH, KEY]).aggregate([([], "count_all")])
    twice = counts.filter(compute.greater(counts.column("count_all"), 1))
    if twice.num_rows:
        key = twice.column(KEY)[0].as_py()
        raise WriteError(f"{who} several rows with the key {key!r}; only rows with different keys can be changed so")

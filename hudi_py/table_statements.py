"""
Finds the rows that a delete, an update or a merge changes, so that they can be written in the same commit.

Rows are searched after the write has begun, so that no other commit can come in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from numbers import Number
from typing import Any, Final, TypeAlias

import attrs
import pyarrow as pa

from hudi_py.config.table import TableType
from hudi_py.errors import ConfigError, WriteError
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.formats.record_schema import NOT_DATA
from hudi_py.rows.condition import Where
from hudi_py.rows.expression import Expression
from hudi_py.rows.keys import KeyGenerator
from hudi_py.rows.log_rules import log_rules_of
from hudi_py.rows.stored_keys import FILE, KEY, PATH
from hudi_py.rows.where import conditions_of
from hudi_py.table_view import TableView
from hudi_py.writing.changes_in_logs import LogsBefore
from hudi_py.writing.found import Found

_SOURCE: Final = "source."
_TARGET: Final = "target."
_NUMBER: Final = "_hudi_py_source_row"
_STORED: Final = "_hudi_py_stored_row"


Find: TypeAlias = Callable[[TableView, KeyGenerator, pa.Schema], Found]
"""Finds the rows: takes the table, its key generator and its storage schema."""


def rows_to_delete(where: Where) -> Find:
    """
    Return a function that finds the rows which meet *where*.

    Raises:
        ConfigError: The condition is invalid, or there is none: an empty list would delete all rows.
    """
    conditions = conditions_of(where)
    if not conditions:
        raise ConfigError(
            f'where={where!r} has no condition, and a delete needs one, if only "_hoodie_record_key is not null"'
        )

    def find(table: TableView, generator: KeyGenerator, _: pa.Schema) -> Found:
        found = table.rows(where=conditions, columns=list(generator.record_key_fields), with_meta=True).to_arrow()
        before = logs_before(table)
        if before is not None:
            before.check(found)
        return Found(deleted=found.select([KEY, PATH, FILE]), before=before)

    return find


def rows_to_update(values: Mapping[str, Any], where: Where) -> Find:
    """
    Return a function that finds the rows which meet *where*, and sets their new values.

    Args:
        values: Column to expression (text), or to a value that is not a text.
        where: As for `TableView.rows`.

    Raises:
        ConfigError: An expression is invalid, or there is none.
    """
    expressions = expressions_of(values)

    def find(table: TableView, generator: KeyGenerator, schema: pa.Schema) -> Found:
        check_settable(expressions, generator, schema)
        stored = table.rows(where=where, with_meta=True).to_arrow()
        batches = [_with_values(batch, expressions, schema, batch) for batch in stored.to_batches()]
        rows = pa.Table.from_batches(batches, schema=stored.schema)
        _refuse_twice(rows, "the table has")
        before = logs_before(table)
        if before is not None:
            before.check(stored, rows)
        return Found(rows=rows, updated=rows.num_rows, before=before)

    return find


@attrs.frozen(kw_only=True)
class Merge:
    """
    A merge of source rows into a table.

    Args:
        source: Rows.
        on: Columns that say which rows match; equal in source and table.
        update: New values of matched rows; an empty mapping for all columns of the source, None to leave them.
        deletes: Whether matched rows are deleted.
        inserts: Whether source rows that match nothing are inserted.

    Raises:
        ConfigError: The clauses do nothing, or contradict each other.
    """

    source: pa.Table
    on: tuple[str, ...]
    update: Mapping[str, Expression] | None = None
    deletes: bool = False
    inserts: bool = False

    def __attrs_post_init__(self) -> None:
        """Refuse clauses that contradict each other, or do nothing."""
        if self.update is not None and self.deletes:
            raise ConfigError("a merge either updates or deletes matched rows; give one of the two")
        if self.update is None and not self.deletes and not self.inserts:
            raise ConfigError("a merge has no clause; say what to do with rows that match, or with those that do not")
        if not self.on:
            raise ConfigError("a merge needs at least one column that says which rows match (on)")

    def find(self, table: TableView, generator: KeyGenerator, schema: pa.Schema) -> Found:
        """See `Find`."""
        self._check(generator, schema)
        # Updated rows are written as a whole; for deletes and inserts the keys are enough.
        wanted = None if self.update is not None else list(dict.fromkeys((*self.on, *generator.record_key_fields)))
        stored = table.rows(columns=wanted, with_meta=True).to_arrow()
        ours, theirs = self._numbers(stored, schema, _STORED), self._numbers(self.source, schema, _NUMBER)
        pairs = ours.join(theirs, list(self.on), join_type="inner")
        matched = stored.take(pairs.column(_STORED)).append_column(_NUMBER, pairs.column(_NUMBER))
        _refuse_twice(matched, "several source rows match a row of the table, or the table has")
        deleted, parts, before = None, [], logs_before(table)
        if before is not None and self.update is None:
            before.check(matched)
        if self.deletes:
            deleted = matched.select([KEY, PATH, FILE])
        if self.update is not None:
            parts.append(self._updated(matched, schema, generator))
            if before is not None:
                before.check(matched, parts[-1])
        updated = sum(part.num_rows for part in parts)
        inserted = 0
        if self.inserts:
            self._refuse_nulls()
            all_rows: Any = theirs.column(_NUMBER)
            is_met = compute.is_in(all_rows, value_set=matched.column(_NUMBER).combine_chunks())
            parts.append(self._inserted(self.source.filter(compute.invert(is_met)), schema, generator))
            inserted = parts[-1].num_rows
        rows = pa.concat_tables(parts) if parts else None
        return Found(rows=rows, deleted=deleted, updated=updated, inserted=inserted, before=before)

    def _numbers(self, rows: pa.Table, schema: pa.Schema, name: str) -> pa.Table:
        """Return the columns to match on and the number of each row: Arrow cannot join columns of every type."""
        keys = pa.table({each: _as_stored(rows.column(each), schema.field(each)) for each in self.on})
        return keys.append_column(name, pa.array(range(rows.num_rows), pa.int64()))

    def _check(self, generator: KeyGenerator, schema: pa.Schema) -> None:
        twice = [name for name, count in Counter(self.source.column_names).items() if count > 1]
        if twice:
            raise ConfigError(f"the source has several columns called {twice[0]!r}; rename or drop all but one")
        for name in self.on:
            for where, names in (("the table has", schema.names), ("the source has", self.source.column_names)):
                if name not in names:
                    raise ConfigError(f"a merge on {name!r}, but {where} no such column")
            if pa.types.is_nested(schema.field(name).type):
                raise ConfigError(f"a merge on {name!r}, a column of {schema.field(name).type}, which is not compared")
        foreign = [name for name in self.source.column_names if name not in schema.names and name not in NOT_DATA]
        if foreign and (self.inserts or self.update == {}):
            raise ConfigError(f"the source has a column {foreign[0]!r}, which the table does not have; leave it out")
        if self.update:
            check_settable(self.update, generator, schema)
        # A row that matches nothing on other columns could still have a key that the table has.
        fields = {*generator.record_key_fields}
        if self.inserts and not fields <= {*self.on} <= fields | {*generator.partition_fields}:
            raise ConfigError(
                f"a merge that inserts has to match rows on the record key ({', '.join(generator.record_key_fields)}), "
                "else a key could be inserted that the table has"
            )

    def _refuse_nulls(self) -> None:
        for name in self.on:
            count = self.source.column(name).null_count
            if count:
                raise WriteError(
                    f"a merge that inserts matches on {name!r}, which is null in {count} rows of the source: null "
                    "equals nothing, so they would be inserted although the table may have their keys; leave the "
                    "column out of what the merge matches on, or fill it in"
                )

    def _updated(self, matched: pa.Table, schema: pa.Schema, generator: KeyGenerator) -> pa.Table:
        source = self.source.take(matched.column(_NUMBER).combine_chunks())
        names = [name for name in source.column_names if name in schema.names]
        update = self.update or {name: Expression(f"`{_SOURCE}{name}`") for name in names}
        stored = matched.select([KEY, PATH, FILE, *schema.names]).combine_chunks()
        both = stored
        for prefix, table in ((_TARGET, stored), (_SOURCE, source)):
            for name in table.column_names:
                both = both.append_column(prefix + name, table.column(name))
        parts = both.combine_chunks().to_batches()
        done = [_with_values(batch.select(stored.column_names), update, schema, batch) for batch in parts]
        result = pa.Table.from_batches(done, schema=stored.schema)
        for name in (*generator.partition_fields, *generator.record_key_fields):
            if compute.all(_same(result.column(name), stored.column(name))).as_py() is False:  # None without rows
                raise WriteError(
                    f"the merge would change {name!r} of a matched row, which says where the row is; delete the row "
                    "and insert it instead"
                )
        return result

    def _inserted(self, rows: pa.Table, schema: pa.Schema, generator: KeyGenerator) -> pa.Table:
        columns: dict[str, Any] = {}
        for field in schema:
            has = field.name in rows.column_names
            columns[field.name] = (
                _as_stored(rows.column(field.name), field) if has else pa.nulls(rows.num_rows, field.type)
            )
        plain = pa.table(columns).combine_chunks()
        keys: list[Any] = [generator.record_keys(batch) for batch in plain.to_batches()]
        paths: list[Any] = [generator.partition_paths(batch) for batch in plain.to_batches()]
        meta: dict[str, Any] = {KEY: pa.chunked_array(keys, pa.string()), PATH: pa.chunked_array(paths, pa.string())}
        new = pa.table({**meta, FILE: pa.nulls(rows.num_rows, pa.string()), **columns})
        _refuse_twice(new, "the source has")
        return new


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
    if not values:
        raise ConfigError("an update needs at least one column to set")
    return {name: Expression(value if isinstance(value, str) else _literal(value)) for name, value in values.items()}


def check_settable(names: Mapping[str, Expression], generator: KeyGenerator, schema: pa.Schema) -> None:
    """
    Raise if a column cannot be set.

    Raises:
        ConfigError: There is no such column, or it is part of the key or partition.
    """
    for name in names:
        if name not in schema.names:
            raise ConfigError(f"the table has no column {name!r} to set; it has {', '.join(schema.names)}")
        if name in (*generator.record_key_fields, *generator.partition_fields):
            raise ConfigError(
                f"column {name!r} cannot be set: it is part of the key or partition, which say where a row is; delete "
                "the rows and insert them instead"
            )


def _literal(value: Any) -> str:
    value = value.item() if hasattr(value, "item") else value  # a NumPy value
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Number):
        return str(value)
    raise ConfigError(  # the text of a date would be read as a subtraction
        f"{value!r} is not an expression, number, boolean or None; write a text or a time as an expression: "
        "\"'text'\", \"date '2026-01-02'\""
    )


def _with_values(
    batch: pa.RecordBatch, values: Mapping[str, Expression], schema: pa.Schema, seen: pa.RecordBatch
) -> pa.RecordBatch:
    columns: list[Any] = list(batch.columns)
    for name, expression in values.items():
        position = batch.schema.get_field_index(name)
        columns[position] = expression.values(seen, schema.field(name).type)
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _as_stored(column: Any, field: Any) -> Any:
    try:
        return column if column.type == field.type else column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise WriteError(
            f"column {field.name!r}: {column.type} cannot be converted to {field.type}: {error}"
        ) from error


def _same(left: Any, right: Any) -> Array:
    """Return which values are equal; two nulls count as equal."""
    equal: Any = compute.equal(left, right)
    both_null = compute.and_(compute.is_null(left), compute.is_null(right))
    result: Array = compute.if_else(both_null, True, compute.fill_null(equal, False))
    return result


def _refuse_twice(rows: pa.Table, who: str) -> None:
    counts = rows.group_by([PATH, KEY]).aggregate([([], "count_all")])
    twice = counts.filter(compute.greater(counts.column("count_all"), 1))
    if twice.num_rows:
        key = twice.column(KEY)[0].as_py()
        raise WriteError(f"{who} several rows with the key {key!r}; only rows with different keys can be changed so")

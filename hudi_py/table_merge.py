"""
Merges: source rows that match rows of a table, and what the clauses of the merge do with both.

Of the clauses of one kind the first whose condition is met decides about a row, as in SQL's ``MERGE INTO``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.errors import ConfigError, RefusedError, WriteError
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.formats.record_schema import NOT_DATA, refuse_reserved
from hudi_py.formats.schema_evolution import new_fields
from hudi_py.model.words import counted
from hudi_py.rows.condition import Condition, Where, Word, leaves_of
from hudi_py.rows.expression import Expression
from hudi_py.rows.keys import KeyGenerator
from hudi_py.rows.paired_condition import rows_met
from hudi_py.rows.possible_matches import possible_matches
from hudi_py.rows.stored_keys import FILE, KEY, PATH
from hudi_py.rows.where import conditions_of
from hudi_py.table_statements import (
    as_stored,
    check_settable,
    logs_before,
    nulls_of,
    refuse_marked,
    refuse_twice,
    refuse_unordered,
    row_of_nulls,
    with_values,
)
from hudi_py.table_view import TableView
from hudi_py.writing.anywhere import global_index_of
from hudi_py.writing.found import Found

_SOURCE: Final = "source."
_TARGET: Final = "target."
_NUMBER: Final = "_hudi_py_source_row"
_STORED: Final = "_hudi_py_stored_row"

Numbers = npt.NDArray[np.int64]


class Rows(Enum):
    """Which rows a clause is about; the values are the words of messages."""

    MATCHED = "matched"
    NEW = "not matched"  # rows of the source
    LEFT = "not matched by source"  # rows of the table


@attrs.frozen(kw_only=True)
class Clause:
    """
    What is done with some rows.

    Args:
        rows: Which.
        deletes: Whether they are deleted; else updated or, if `Rows.NEW`, inserted.
        values: Column to expression; None for all columns of the source. Not for deletions.
        where: Only rows that meet this.
    """

    rows: Rows
    deletes: bool = False
    values: Mapping[str, Expression] | None = None
    where: Where = ()

    @property
    def takes_all(self) -> bool:
        """Whether the values are those of all columns of the source."""
        return not self.deletes and self.values is None


@attrs.frozen
class _Change:
    """Rows of the table that a clause changes, and their new values; None if they are deleted."""

    stored: pa.Table
    updated: pa.Table | None


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


@attrs.frozen(kw_only=True)
class Merge:
    """
    A merge of source rows into a table.

    Args:
        source: Rows.
        on: Columns that say which rows match; equal in source and table.
        clauses: What is done; of those of one kind the first whose condition is met.

    Raises:
        ConfigError: The clauses do nothing, or one can never be reached.
    """

    source: pa.Table
    on: tuple[str, ...] = attrs.field(converter=_distinct)
    clauses: tuple[Clause, ...]

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """See `hudi_py.table_statements.Statement`: whether a row matches is known only once it is read."""
        return ()

    @property
    def adds(self) -> bool:
        """See `hudi_py.table_statements.Statement`."""
        return bool(self._of(Rows.NEW))

    def __attrs_post_init__(self) -> None:
        """Refuse clauses that make no sense together."""
        if not self.clauses:
            raise ConfigError("a merge has no clause; say what to do with rows that match, or with those that do not")
        if not self.on:
            raise ConfigError("a merge needs at least one column that says which rows match (on)")
        for rows in Rows:
            for clause in self._of(rows)[:-1]:
                if not conditions_of(clause.where):
                    raise ConfigError(
                        f"a merge has several clauses for rows that are {rows.value}, and one that is not the last has "
                        "no condition: those after it would never be reached"
                    )

    def check(self, generator: KeyGenerator, schema: pa.Schema) -> None:
        """See `hudi_py.table_statements.Statement`."""
        self._check(generator, schema)
        self._numbers(self.source, schema, _NUMBER)
        # Both sides without values: a clause that fails with them fails with every row.
        stored = pa.Table.from_batches([row_of_nulls(schema)])
        source = pa.Table.from_batches([nulls_of(self.source.schema)])
        for rows, seen in (
            (Rows.MATCHED, _both(stored, source)), (Rows.LEFT, _both(stored, None)), (Rows.NEW, _of_source(source)),
        ):  # fmt: skip
            for clause in self._of(rows):
                rows_met(clause.where, seen)
                for name, expression in (clause.values or {}).items():
                    expression.values(seen, schema.field(name).type)

    def find(self, table: TableView, generator: KeyGenerator, schema: pa.Schema) -> Found:
        """See `hudi_py.table_statements.Statement`."""
        self._check(generator, schema)
        theirs = self._numbers(self.source, schema, _NUMBER)
        # A global index has a key once in all partitions, so that of a new row may be in another one.
        is_global = self.adds and global_index_of(table.settings, table.config) is not None
        read_by = [name for name in self.on if not is_global or name in generator.record_key_fields]
        # Rows that match nothing are needed only where a clause is about them.
        where = () if self._of(Rows.LEFT) else possible_matches(theirs.select(read_by), table.config)
        stored = table.rows(where=where, columns=self._wanted(generator, schema), with_meta=True).to_arrow()
        if not stored.num_rows:
            # Nor any columns, where another process has rolled back the only commit since this one read the schema.
            stored = pa.schema([*((name, pa.string()) for name in META_COLUMNS), *schema]).empty_table()
        ours = self._numbers(stored, schema, _STORED)
        pairs = ours.join(theirs, list(self.on), join_type="inner")
        left, right = (pairs.column(name).to_numpy().astype(np.int64) for name in (_STORED, _NUMBER))
        # Rows that match nothing are found from the pairs, so both kinds of clauses see each stored row exactly once.
        rest = np.setdiff1d(np.arange(stored.num_rows), left)
        changes = [*self._matched(stored, left, right, schema, generator), *self._left(stored, rest, schema)]
        # Rows of all clauses together: one row may match several source rows, and the table may have a key twice.
        refuse_twice(_concat([change.stored.select([KEY, PATH]) for change in changes]), "the table has")
        before = logs_before(table)
        for change in changes:
            if before is not None:
                before.check(change.stored, change.updated)
            if change.updated is not None:
                refuse_marked(change.updated)
                refuse_unordered(table, change.updated, change.stored)
        parts = [change.updated for change in changes if change.updated is not None]
        updated = sum(part.num_rows for part in parts)
        if self._of(Rows.NEW):
            new = self.source.take(_array(np.setdiff1d(np.arange(self.source.num_rows), right)))
            inserts = [*self._inserted(new, schema, generator)]
            for part in inserts:
                refuse_marked(part)
                refuse_unordered(table, part)
            parts += inserts
        rows = _concat(parts)
        deleted = _concat([change.stored.select([KEY, PATH, FILE]) for change in changes if change.updated is None])
        if is_global and rows is not None:
            _refuse_elsewhere(rows.slice(updated), stored, deleted)
        inserted = 0 if rows is None else rows.num_rows - updated
        return Found(rows=rows, deleted=deleted, updated=updated, inserted=inserted, before=before)

    def _of(self, rows: Rows) -> list[Clause]:
        return [clause for clause in self.clauses if clause.rows is rows]

    # --- checks -------------------------------------------------------------------------------------------------------
    def _check(self, generator: KeyGenerator, schema: pa.Schema) -> None:
        twice = [name for name, count in Counter(self.source.column_names).items() if count > 1]
        if twice:
            raise ConfigError(f"the source has several columns called {twice[0]!r}; rename or drop all but one")
        refuse_reserved(name for name in self.source.column_names if name not in NOT_DATA)
        for name in self.on:
            for where, names in (("the table has", schema.names), ("the source has", self.source.column_names)):
                if name not in names:
                    raise ConfigError(f"a merge on {name!r}, but {where} no such column")
            if pa.types.is_nested(schema.field(name).type):
                raise ConfigError(f"a merge on {name!r}, a column of {schema.field(name).type}, which is not compared")
        asked = _names_in(self.clauses)  # a column that decides need not be one of the table
        foreign = [name for name in self.source.column_names if name not in {*schema.names, *NOT_DATA, *asked}]
        shared = [field for field in self.source.schema if field.name in schema.names]
        foreign += [name for each in shared for name in new_fields(each.type, schema.field(each.name).type, each.name)]
        if foreign and any(clause.takes_all for clause in self.clauses):
            raise ConfigError(
                f"the source has a column {foreign[0]!r}, which the table does not have; leave it out, or upsert rows "
                "with it first"
            )
        for clause in self.clauses:
            if clause.values is not None and clause.rows is Rows.NEW:
                check_settable(clause.values, None, schema)
            elif clause.values is not None:
                check_settable(clause.values, generator, schema)
        if self._of(Rows.NEW):
            self._check_insert(generator)

    def _check_insert(self, generator: KeyGenerator) -> None:
        if generator.generates:
            raise ConfigError("a merge does not insert into a table whose keys are generated; use insert for new rows")
        fields = {*generator.record_key_fields}
        # The key decides whether a row is new; matching on anything else could miss the row that has it.
        if not fields <= {*self.on} <= fields | {*generator.partition_fields}:
            raise ConfigError(
                f"a merge that inserts has to match rows on the record key ({', '.join(generator.record_key_fields)}), "
                "else a key could be inserted that the table has"
            )
        for name in self.on:
            count = self.source.column(name).null_count
            if count:
                nulls = counted(count, "row")
                raise WriteError(
                    f"a merge that inserts matches on {name!r}, which is null in {nulls} of the source: null equals "
                    "nothing, so they would be inserted although the table may have their keys; leave the column out "
                    "of what the merge matches on, or fill it in"
                )

    def _wanted(self, generator: KeyGenerator, schema: pa.Schema) -> list[str] | None:
        """Return the columns of the table that are needed; None for all, as each update does."""
        if any(clause.rows is not Rows.NEW and not clause.deletes for clause in self.clauses):
            return None
        asked = _names_in(clause for clause in self.clauses if clause.rows is not Rows.NEW)
        names = [*self.on, *generator.key_columns, *sorted(asked.intersection(schema.names))]
        return list(dict.fromkeys(names))

    def _numbers(self, rows: pa.Table, schema: pa.Schema, name: str) -> pa.Table:
        """Return the columns to match on and the number of each row: Arrow cannot join columns of every type."""
        # In the types of the table: Arrow joins no columns of different types, and a cast of stored values could lose
        # some.
        keys = pa.table({each: _comparable(as_stored(rows.column(each), schema.field(each))) for each in self.on})
        return keys.append_column(name, pa.array(range(rows.num_rows), pa.int64()))

    # --- rows of the table --------------------------------------------------------------------------------------------
    def _matched(
        self, stored: pa.Table, left: Numbers, right: Numbers, schema: pa.Schema, generator: KeyGenerator
    ) -> Iterator[_Change]:
        clauses = self._of(Rows.MATCHED)
        if not clauses:
            return
        rows, source = stored.take(_array(left)), self.source.take(_array(right))
        seen = _both(rows, source)
        chosen = _decided(clauses, seen)
        is_plain_delete = len(clauses) == 1 and clauses[0].deletes and not conditions_of(clauses[0].where)
        places = left[chosen >= 0]
        # Only among the pairs that a clause chose: a condition may have left one source row for each row of the table.
        if len(np.unique(places)) < len(places):
            if not is_plain_delete:
                values, counts = np.unique(places, return_counts=True)
                key = stored.column(KEY)[int(values[counts > 1][0])].as_py()
                raise WriteError(
                    f"several source rows match the row with the key {key!r}, so it is not clear what becomes of it; "
                    "leave one of them, or say by conditions which one counts. Nothing was committed"
                )
            # A plain deletion gives the same result however many source rows match, so one of them is enough.
            chosen[np.setdiff1d(np.arange(len(left)), np.unique(left, return_index=True)[1])] = -1
        for number, clause in enumerate(clauses):
            mine = _places(chosen == number)
            found = rows.take(mine)
            if clause.deletes:
                yield _Change(found, None)
                continue
            # A column of the source may serve conditions only, and is not a column of the table then.
            names = [name for name in source.column_names if name in schema.names]
            update = clause.values or {name: Expression(f"`{_SOURCE}{name}`") for name in names}
            yield _Change(found, _updated(found, seen.take(mine), update, schema, generator))

    def _left(self, stored: pa.Table, rest: Numbers, schema: pa.Schema) -> Iterator[_Change]:
        clauses = self._of(Rows.LEFT)
        if not clauses:
            return
        rows = stored.take(_array(rest))
        seen = _both(rows, None)
        chosen = _decided(clauses, seen)
        for number, clause in enumerate(clauses):
            mine = _places(chosen == number)
            found = rows.take(mine)
            updated = None
            if not clause.deletes:
                updated = _updated(found, seen.take(mine), clause.values or {}, schema, None)
            yield _Change(found, updated)

    # --- rows of the source -------------------------------------------------------------------------------------------
    def _inserted(self, rows: pa.Table, schema: pa.Schema, generator: KeyGenerator) -> Iterator[pa.Table]:
        clauses = self._of(Rows.NEW)
        batch = _of_source(rows)
        chosen = _decided(clauses, batch)
        parts = []
        for number, clause in enumerate(clauses):
            mine = _places(chosen == number)
            parts.append(_new_rows(rows.take(mine), batch.take(mine), clause, schema, generator))
        new = pa.concat_tables(parts)
        refuse_twice(new, "the source has")
        yield new


def _refuse_elsewhere(new: pa.Table, stored: pa.Table, deleted: pa.Table | None) -> None:
    """
    Raise if the key of a new row is in another partition, and is not deleted there by the same merge.

    Raises:
        RefusedError: It is, although the index is a global one.
    """
    known = stored.filter(compute.is_in(stored.column(KEY), value_set=new.column(KEY)))
    gone = set() if deleted is None else {*_places_of(deleted)}
    new_paths = dict(_places_of(new))
    for key, path in _places_of(known):
        if path != new_paths[key] and (key, path) not in gone:
            raise RefusedError(
                f"the row to insert with the key {key!r} in partition {new_paths[key]!r} is in partition {path!r} of "
                "the table, and with a global index (hoodie.index.type) a key is in one partition. This write was not "
                "committed; match on the record key alone, or upsert the rows, which moves them"
            )


def _places_of(rows: pa.Table) -> Iterator[tuple[Any, Any]]:
    """Yield the key and partition of each row."""
    return zip(rows.column(KEY).to_pylist(), rows.column(PATH).to_pylist(), strict=True)


def _comparable(column: Any) -> Any:
    """Return values of which those are the same that SQL calls equal: Arrow joins 0.0 and -0.0 as two."""
    return compute.add(column, pa.scalar(0.0, column.type)) if pa.types.is_floating(column.type) else column


def _array(numbers: Numbers) -> Any:
    return pa.array(numbers, pa.int64())


def _places(mask: npt.NDArray[np.bool_]) -> Any:
    return _array(np.flatnonzero(mask))


def _names_in(clauses: Iterable[Clause]) -> set[str]:
    """Return the columns of table and source that conditions name."""
    found: set[str] = set()
    for clause in clauses:
        for condition in conditions_of(clause.where):
            for leaf in leaves_of(condition):
                value = getattr(leaf, "value", None)
                texts = [".".join(getattr(leaf, "path", ())), value.text if isinstance(value, Word) else ""]
                for text in texts:
                    plain = text.removeprefix(_SOURCE).removeprefix(_TARGET)
                    found.update((text, plain, text.partition(".")[0], plain.partition(".")[0]))
    return found


def _both(stored: pa.Table, source: pa.Table | None) -> pa.RecordBatch:
    """Return rows as clauses see them: columns of the table, these as ``target.c``, those of the source."""
    both = stored
    for prefix, table in ((_TARGET, stored), (_SOURCE, source)):
        for field, column in () if table is None else zip(table.schema, table.columns, strict=True):
            both = both.append_column(prefix + field.name, column)
    return _batch(both)


def _of_source(rows: pa.Table) -> pa.RecordBatch:
    """Return rows of the source as clauses for new rows see them: as ``c`` and as ``source.c``."""
    both = rows
    for name in rows.column_names:
        both = both.append_column(_SOURCE + name, rows.column(name))
    return _batch(both)


def _batch(rows: pa.Table) -> pa.RecordBatch:
    columns: Any = [
        column.chunk(0) if column.num_chunks == 1 else column.combine_chunks() for column in rows.itercolumns()
    ]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _decided(clauses: list[Clause], seen: pa.RecordBatch) -> Numbers:
    """Return for each row the number of the first clause whose condition it meets, -1 for none."""
    chosen: Numbers = np.full(seen.num_rows, -1, dtype=np.int64)
    for number, clause in enumerate(clauses):
        met = rows_met(clause.where, seen)
        # Only rows that no earlier clause took: the first one whose condition is met decides, as in SQL.
        chosen[(chosen < 0) & met] = number
    return chosen


def _updated(
    stored: pa.Table,
    seen: pa.RecordBatch,
    update: Mapping[str, Expression],
    schema: pa.Schema,
    generator: KeyGenerator | None,
) -> pa.Table:
    names = [KEY, PATH, FILE, *schema.names]
    rows = seen.select(names)
    result = pa.Table.from_batches([with_values(rows, update, schema, seen)])
    # Compared as values: an update may set a key column to the value that it has.
    for name in () if generator is None else (*generator.partition_fields, *generator.key_columns):
        if compute.all(_same(result.column(name), stored.column(name))).as_py() is False:  # None without rows
            raise WriteError(
                f"the merge would change {name!r} of a matched row, which says where the row is; delete the row "
                "and insert it instead"
            )
    return result


def _new_rows(
    rows: pa.Table, seen: pa.RecordBatch, clause: Clause, schema: pa.Schema, generator: KeyGenerator
) -> pa.Table:
    columns: dict[str, Any] = {}
    for field in schema:
        if clause.values is not None and field.name in clause.values:
            columns[field.name] = clause.values[field.name].values(seen, field.type)
        elif clause.values is None and field.name in rows.column_names:
            columns[field.name] = as_stored(rows.column(field.name), field)
        else:
            columns[field.name] = pa.nulls(rows.num_rows, field.type)
    plain = _batch(pa.table(columns))
    meta: dict[str, Any] = {
        KEY: pa.nulls(0, pa.string()) if not plain.num_rows else generator.record_keys(plain),
        PATH: pa.nulls(0, pa.string()) if not plain.num_rows else generator.partition_paths(plain),
    }
    return pa.table({**meta, FILE: pa.nulls(rows.num_rows, pa.string()), **columns})


def _concat(parts: list[pa.Table]) -> pa.Table | None:
    return pa.concat_tables(parts, promote_options="default") if parts else None


def _same(left: Any, right: Any) -> Array:
    """Return which values are equal; two nulls are."""
    equal: Any = compute.equal(left, right)
    both_null = compute.and_(compute.is_null(left), compute.is_null(right))
    result: Array = compute.if_else(both_null, True, compute.fill_null(equal, False))
    return result

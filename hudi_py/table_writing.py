"""
The writing half of an opened table: rows of this process, without Spark or a JVM.

What writes is imported when it is first used, so that looking at a table does not load it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from hudi_py.errors import ConfigError
from hudi_py.row_verbs import RowVerbs, Words
from hudi_py.table_view import TableView

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hudi_py.rows.condition import Where
    from hudi_py.table_merge import Clause
    from hudi_py.write_service import WriteService
    from hudi_py.writing.result import WriteResult

__all__ = ["MergeStatement", "TableWriting"]


class TableWriting(TableView, RowVerbs[Any]):
    """
    What writes rows to a table, without Spark. Each call is one commit, and cleans and archives as the settings say.

    *data* is, in all of them, an Arrow table, batch or stream (anything with ``__arrow_c_stream__``: polars, DuckDB), a
    pandas DataFrame, or one or several paths of Parquet, CSV or JSON-lines files; *words* are those of `Words`.
    """

    def delete(self, data: Any = None, *, where: Where = (), **words: Unpack[Words]) -> WriteResult:
        """
        Delete rows, either those with the keys of *data* or those that meet a condition.

        Args:
            data: At least the record key and partition columns; keys that are not in the table are ignored.
            where: As for `rows`.

        Raises:
            ConfigError: Neither or both are given, or the condition is invalid.
            RefusedError: Other rows have the key of a row that meets the condition; nothing was committed.
            As `upsert`.
        """
        if (data is None) == (where == ()):
            raise ConfigError("delete needs either rows with the keys, or a condition: delete(where=...)")
        if data is not None:
            return self._write(data, "DELETE", words)
        from hudi_py.table_statements import rows_to_delete
        from hudi_py.writing.commit_words import commit_words

        find = rows_to_delete(where)
        return self._changed_by(lambda service: service.change(find, "DELETE", commit_words(**words)))

    def update(self, values: Mapping[str, Any], *, where: Where = (), **words: Unpack[Words]) -> WriteResult:
        """
        Give columns of rows that meet a condition new values. They win over stored ones, whatever the ordering values.

        Args:
            values: Column to expression (``"fare * 2"``, ``"'text'"``, see docs/writing.md), or to a number.
            where: As for `rows`; by default all rows.

        Raises:
            ConfigError: There is no such column, it is part of the key or partition, or an expression or the condition
                is invalid.
            WriteError: A value does not fit its column, or several rows have the same key.
            As `upsert`.
        """
        from hudi_py.table_statements import rows_to_update
        from hudi_py.writing.commit_words import commit_words

        find = rows_to_update(values, where)
        return self._changed_by(lambda service: service.change(find, "UPSERT", commit_words(**words)))

    def merge(self, data: Any, on: str | Sequence[str]) -> MergeStatement:
        """
        Begin a merge of *data* into the table; `MergeStatement.execute` runs it, as one commit.

        Args:
            data: Source rows.
            on: Columns with equal values in a source row and a row of the table that match.
        """
        from hudi_py.config.arguments import texts_of
        from hudi_py.local.data import given_once

        return MergeStatement(self._changed_by, given_once(data), (on,) if isinstance(on, str) else texts_of("on", on))

    def _write(self, data: Any, operation: str, words: Words) -> WriteResult:
        from hudi_py.local_writing import written
        from hudi_py.writing.commit_words import commit_words

        return self._changed_by(lambda service: written(service, data, operation, commit_words(**words)))

    def _changed_by(self, write_with: Callable[[WriteService], WriteResult]) -> WriteResult:
        """Have a service write to the table, and forget what was loaded before, even if it fails."""
        from hudi_py.engine.inline import LocalEngine
        from hudi_py.write_service import WriteService

        service = WriteService(self.storage, self.settings, self._store.clock, LocalEngine)
        try:
            return write_with(service)
        finally:
            self._forget()


@attrs.frozen
class MergeStatement:
    """A merge that is put together, see `Table.merge`; each method returns a new value."""

    _run: Callable[[Callable[[WriteService], WriteResult]], WriteResult]
    _data: Callable[[], Any]
    _on: tuple[str, ...]
    _clauses: tuple[Clause, ...] = ()

    def when_matched_update(self, values: Mapping[str, Any] | None = None, *, where: Where = ()) -> MergeStatement:
        """
        Update rows of the table that match a source row.

        Args:
            values: Column to expression as for `Table.update`, in which ``source.c`` is a column of the source; None
                for the values of all columns that the source has.
            where: Only where this is met: a condition in which ``source.c`` is a column of the source, and which may
                compare two columns (``source.ts >= ts``). Of several clauses for matched rows the first one that is
                met counts; all but the last need a condition.

        Raises:
            ConfigError: An expression is not understood.
        """
        return self._with("MATCHED", values, where)

    def when_matched_delete(self, *, where: Where = ()) -> MergeStatement:
        """Delete rows of the table that match a source row; *where* as for `when_matched_update`."""
        return self._with("MATCHED", None, where, deletes=True)

    def when_not_matched_insert(self, values: Mapping[str, Any] | None = None, *, where: Where = ()) -> MergeStatement:
        """
        Insert source rows that match no row of the table; *on* has to name the record key columns.

        Args:
            values: Column to expression of the source's columns; None for the values of all columns that it has.
            where: Only source rows that meet this.

        Raises:
            ConfigError: An expression is not understood.
        """
        return self._with("NEW", values, where)

    def when_not_matched_by_source_update(self, values: Mapping[str, Any], *, where: Where = ()) -> MergeStatement:
        """
        Update rows of the table that match no source row.

        Args:
            values: As for `Table.update`.
            where: Only rows that meet this.

        Raises:
            ConfigError: An expression is not understood.
        """
        return self._with("LEFT", values, where)

    def when_not_matched_by_source_delete(self, *, where: Where = ()) -> MergeStatement:
        """Delete rows of the table that match no source row, all of them or those that meet *where*."""
        return self._with("LEFT", None, where, deletes=True)

    def execute(self, **words: Unpack[Words]) -> WriteResult:
        """
        Run the merge, as one commit.

        Raises:
            ConfigError: There is no clause, or one can never be reached; or there is no such column.
            WriteError: Several source rows match one row, or a value does not fit.
            As `Table.upsert`.
        """
        from hudi_py.local_writing import merged
        from hudi_py.writing.commit_words import commit_words

        return self._run(lambda service: merged(service, self._data(), self._on, self._clauses, commit_words(**words)))

    def _with(
        self, rows: str, values: Mapping[str, Any] | None, where: Where, *, deletes: bool = False
    ) -> MergeStatement:
        from hudi_py.rows.where import narrowing
        from hudi_py.table_merge import Clause, Rows
        from hudi_py.table_statements import expressions_of

        takes_source = values is None and rows != "LEFT"  # rows without a source row have nothing to take from it
        found = None if deletes or takes_source else expressions_of(values or {})
        # At once, and once: an iterator would have no condition left where the clause is carried out.
        clause = Clause(rows=Rows[rows], deletes=deletes, values=found, where=narrowing(where, "the clause"))
        return attrs.evolve(self, clauses=(*self._clauses, clause))

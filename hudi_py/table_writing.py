"""The writing half of an opened table, and `write`: rows of this process, without Spark or a JVM."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, TypedDict

import attrs

from hudi_py.config import keys
from hudi_py.config.door import admitted
from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import ConfigError
from hudi_py.local.data import arrow_table
from hudi_py.local.rows import ArrowRows
from hudi_py.rows.condition import Where
from hudi_py.runtime.clock import Clock, SystemClock
from hudi_py.storage.factory import open_storage
from hudi_py.storage.rehearsal import RehearsalStorage
from hudi_py.table_statements import Merge, expressions_of, rows_to_delete, rows_to_update
from hudi_py.table_view import TableView
from hudi_py.timeline.properties_file import read_table_config
from hudi_py.write_service import WriteService
from hudi_py.writing.commit_words import NO_WORDS, CommitWords, commit_words
from hudi_py.writing.result import WriteResult

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["TableWriting", "write"]

OPERATIONS: Final = ("upsert", "insert", "bulk_insert", "delete", "insert_overwrite", "insert_overwrite_table")


def write(
    location: str | PathLike[str],
    data: Any,
    operation: str = "upsert",
    *,
    settings: Mapping[str, Any] | None = None,
    write_key: tuple[str, int] | None = None,
    extra_metadata: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> WriteResult:
    """
    Write rows to a table in one commit, then clean and archive as the settings say. Needs neither Spark nor a JVM.

    The first write creates the table if it does not exist.

    Args:
        location: Local path or URL of the table.
        data: An Arrow table, batch or stream (anything with ``__arrow_c_stream__``: polars, DuckDB), a pandas
            DataFrame, or one or several paths of Parquet, CSV or JSON-lines files.
        operation: ``upsert``, ``insert``, ``bulk_insert``, ``delete``, ``insert_overwrite`` or
            ``insert_overwrite_table``; see the methods of `hudi_py.Table`.
        settings: Settings under their names in Hudi, old or new. A new table needs ``hoodie.table.name`` and
            ``hoodie.datasource.write.recordkey.field``; for an existing table, its properties apply.
        write_key: Application and version of this write, such as ``("loader", 7)``. Given again, or with a lower
            version, the write does nothing and returns the earlier commit: a repetition after a crash is harmless.
        extra_metadata: Entries for ``extraMetadata`` of the commit.
        storage_options: Options of the storage library.
        clock: Replaces the machine's clock.

    Raises:
        ConfigError: A setting is unknown, invalid or refused, or contradicts the table; or as `Table.upsert`.
        UnsupportedTable: hudi_py does not write this kind of table.
        As `Table.upsert`.
    """
    words = commit_words(write_key, extra_metadata)
    service = service_of(location, settings=settings, storage_options=storage_options, clock=clock)
    return written(service, data, operation, words)


def service_of(
    location: str | PathLike[str],
    *,
    settings: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    is_rehearsal: bool = False,
    must_exist: bool = False,
) -> WriteService:
    """
    Open a table, or a place for one, to write to it; arguments as for `write`.

    Args:
        is_rehearsal: Keep in memory what would be written, so that nothing changes.
        must_exist: Raise if there is no table.

    Raises:
        TableNotFound: There is no table, although there must be.
        As `write`.
    """
    checked = admitted(settings)
    storage = open_storage(location, storage_options, read_bytes_max=checked[keys.READ_BYTES_MAX])
    if must_exist:
        read_table_config(storage)
    if is_rehearsal:
        storage = RehearsalStorage(storage)
    return WriteService(storage, checked, clock or SystemClock(), LocalEngine)


def written(service: WriteService, data: Any, operation: str, words: CommitWords = NO_WORDS) -> WriteResult:
    """
    Write rows of this process.

    Args:
        service: Writes to the table.
        data, operation: As for `write`.
        words: What the commit says besides.

    Raises:
        As `write`.
    """
    if operation.lower() not in OPERATIONS:
        raise ConfigError(f"operation {operation!r} is unknown; use one of {', '.join(OPERATIONS)}")
    return service.write(ArrowRows(arrow_table(data, service.stored_schema)), operation.upper(), words)


class Words(TypedDict, total=False):
    """
    What a commit says besides its files; see `write`.

    Args:
        write_key: Application and version of the write, which is done once.
        extra_metadata: Entries for ``extraMetadata`` of the commit.
    """

    write_key: tuple[str, int] | None
    extra_metadata: Mapping[str, str] | None


class TableWriting(TableView):
    """
    What writes rows to a table, without Spark. Each call is one commit, and cleans and archives as the settings say.

    *data* is, in all of them, an Arrow table, batch or stream (anything with ``__arrow_c_stream__``: polars, DuckDB), a
    pandas DataFrame, or one or several paths of Parquet, CSV or JSON-lines files; *words* are those of `Words`.
    """

    def upsert(self, data: Any, **words: Unpack[Words]) -> WriteResult:
        """
        Update rows whose key is in the table, insert all others.

        Of several rows with the same key, the one with the largest ordering value is written. Rows whose boolean column
        ``_hoodie_is_deleted`` is true are deleted.

        Raises:
            ConfigError, WriteError: The rows do not fit the table; nothing was committed.
            UnsupportedTable: hudi_py does not write this kind of table.
            RefusedError: Writing could lose rows; the message says what to do.
            ConflictError: Another process is writing to the table.
            StorageError: The storage failed; nothing was committed, and the next write cleans up.
            ServiceFailed: The rows are committed, but the clean or the archival after the commit failed.
        """
        return self._write(data, "upsert", words)

    def insert(self, data: Any, **words: Unpack[Words]) -> WriteResult:
        """Add rows without looking up their keys. Raises as `upsert`."""
        return self._write(data, "insert", words)

    def bulk_insert(self, data: Any, **words: Unpack[Words]) -> WriteResult:
        """Add rows in new file groups only; use it to load many rows at once. Raises as `upsert`."""
        return self._write(data, "bulk_insert", words)

    def delete(self, data: Any = None, *, where: Where = (), **words: Unpack[Words]) -> WriteResult:
        """
        Delete rows, either those with the keys of *data* or those that meet a condition.

        Args:
            data: At least the record key and partition columns; keys that are not in the table are ignored.
            where: As for `rows`.

        Raises:
            ConfigError: Neither or both are given, or the condition makes no sense.
            RefusedError: Other rows have the key of a row that meets the condition; nothing was committed.
            As `upsert`.
        """
        if (data is None) == (where == ()):
            raise ConfigError("delete needs either rows with the keys, or a condition: delete(where=...)")
        if data is not None:
            return self._write(data, "delete", words)
        return self._changed_by(lambda service: service.change(rows_to_delete(where), "DELETE", commit_words(**words)))

    def update(self, values: Mapping[str, Any], *, where: Where = (), **words: Unpack[Words]) -> WriteResult:
        """
        Give columns of rows that meet a condition new values. They win over stored ones, whatever the ordering values.

        Args:
            values: Column to expression (``"fare * 2"``, ``"'text'"``, see docs/writing.md), or to a number.
            where: As for `rows`; by default all rows.

        Raises:
            ConfigError: There is no such column, it is part of the key or partition, or an expression or the condition
                makes no sense.
            WriteError: A value does not fit its column, or several rows have the same key.
            As `upsert`.
        """
        find = rows_to_update(values, where)
        return self._changed_by(lambda service: service.change(find, "UPSERT", commit_words(**words)))

    def merge(self, data: Any, on: str | Sequence[str]) -> MergeStatement:
        """
        Begin a merge of *data* into the table; `MergeStatement.execute` runs it, as one commit.

        Args:
            data: Source rows.
            on: Columns with equal values in a source row and a row of the table that match.
        """
        return MergeStatement(self._changed_by, data, (on,) if isinstance(on, str) else tuple(on))

    def insert_overwrite(self, data: Any, **words: Unpack[Words]) -> WriteResult:
        """Replace all rows of the partitions that *data* has rows of. Raises as `upsert`."""
        return self._write(data, "insert_overwrite", words)

    def insert_overwrite_table(self, data: Any, **words: Unpack[Words]) -> WriteResult:
        """Replace all rows of the table; no rows replace nothing, as in Apache Hudi. Raises as `upsert`."""
        return self._write(data, "insert_overwrite_table", words)

    def drop_partitions(self, paths: Sequence[str], **words: Unpack[Words]) -> WriteResult:
        """
        Delete all rows of partitions; the clean deletes the files later.

        Args:
            paths: Relative paths of the partitions, as `partitions` returns them.

        Raises:
            ConfigError: The table has no such partition.
            As `upsert`.
        """
        return self._changed_by(lambda service: service.drop_partitions(paths, commit_words(**words)))

    def _write(self, data: Any, operation: str, words: Words) -> WriteResult:
        return self._changed_by(lambda service: written(service, data, operation, commit_words(**words)))

    def _changed_by(self, write_with: Callable[[WriteService], WriteResult]) -> WriteResult:
        """Have a service write to the table, and forget what was loaded before, even if it fails."""
        service = WriteService(self.storage, self.settings, self._store.clock, LocalEngine)
        try:
            return write_with(service)
        finally:
            self._forget()


@attrs.frozen
class MergeStatement:
    """A merge that is put together, see `Table.merge`; each method returns a new value."""

    _run: Callable[[Callable[[WriteService], WriteResult]], WriteResult]
    _data: Any
    _on: tuple[str, ...]
    _update: Mapping[str, Any] | None = None
    _deletes: bool = False
    _inserts: bool = False

    def when_matched_update(self, values: Mapping[str, Any] | None = None) -> MergeStatement:
        """
        Update rows of the table that match a source row.

        Args:
            values: Column to expression as for `Table.update`, in which ``source.c`` is a column of the source; None
                for the values of all columns that the source has.
        """
        return attrs.evolve(self, update={} if values is None else values)

    def when_matched_delete(self) -> MergeStatement:
        """Delete rows of the table that match a source row."""
        return attrs.evolve(self, deletes=True)

    def when_not_matched_insert(self) -> MergeStatement:
        """Insert source rows that match no row of the table; *on* has to name the record key columns."""
        return attrs.evolve(self, inserts=True)

    def execute(self, **words: Unpack[Words]) -> WriteResult:
        """
        Run the merge, as one commit.

        Raises:
            ConfigError: The clauses contradict each other or do nothing; or there is no such column.
            WriteError: Several source rows match one row, or a value does not fit.
            As `Table.upsert`.
        """
        return self._run(
            lambda service: merged(
                service,
                self._data,
                self._on,
                commit_words(**words),
                update=self._update,
                deletes=self._deletes,
                inserts=self._inserts,
            )
        )


def merged(
    service: WriteService,
    data: Any,
    on: tuple[str, ...],
    words: CommitWords,
    *,
    update: Mapping[str, Any] | None,
    deletes: bool,
    inserts: bool,
) -> WriteResult:
    """Merge rows of this process into a table; see `MergeStatement`."""
    merge = Merge(
        source=arrow_table(data, service.stored_schema),
        on=on,
        update=expressions_of(update) if update else update,
        deletes=deletes,
        inserts=inserts,
    )
    return service.change(merge.find, "UPSERT", words)

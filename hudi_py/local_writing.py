"""Writes rows of this process to a table, without Spark or a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, Final

from hudi_py.config import keys
from hudi_py.config.arguments import check_kinds
from hudi_py.config.concurrency import concurrency_of
from hudi_py.config.door import admitted
from hudi_py.config.settings import Settings
from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import ConfigError
from hudi_py.local.data import arrow_table
from hudi_py.local.gather import gathered
from hudi_py.local.memory import memory_of
from hudi_py.runtime.clock import Clock, clock_of
from hudi_py.storage.factory import open_storage
from hudi_py.storage.rehearsal import RehearsalStorage
from hudi_py.table_merge import Clause, Merge
from hudi_py.timeline.properties_file import read_table_config
from hudi_py.write_service import WriteService
from hudi_py.writing.commit_words import NO_WORDS, CommitWords, commit_words
from hudi_py.writing.result import WriteResult

__all__ = ["merged", "service_of", "write", "written"]

_OPERATION: Final = "hoodie.datasource.write.operation"
OPERATIONS: Final = ("upsert", "insert", "bulk_insert", "delete", "insert_overwrite", "insert_overwrite_table")


def write(
    location: str | PathLike[str],
    data: Any,
    operation: str | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    write_key: tuple[str, int] | None = None,
    extra_metadata: Mapping[str, str] | None = None,
    retries: int | None = None,
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
            ``insert_overwrite_table``; see the methods of `hudi_py.Table`. Without one,
            ``hoodie.datasource.write.operation`` of the settings says it, else it is ``upsert``.
        settings: Settings under their names in Hudi, old or new. A new table needs ``hoodie.table.name`` and
            ``hoodie.datasource.write.recordkey.field``; for an existing table, its properties apply.
        write_key: Application and version of this write, such as ``("loader", 7)``. Given again, or with a lower
            version, the write does nothing and returns the earlier commit: a repetition after a crash is harmless.
        extra_metadata: Entries for ``extraMetadata`` of the commit.
        retries: How often the write is begun again when another writer was faster; see `Words`.
        storage_options: Options of the storage library.
        clock: Replaces the machine's clock.

    Raises:
        ConfigError: A setting is unknown, invalid or refused, or contradicts the table; or as `Table.upsert`.
        UnsupportedTable: hudi_py does not write this kind of table.
        As `Table.upsert`.
    """
    words = commit_words(write_key, extra_metadata, retries)
    # Before the table is opened, because a contradiction needs no request.
    operation = operation_of(operation, settings)
    service = service_of(location, settings=settings, storage_options=storage_options, clock=clock)
    return written(service, data, operation, words)


def operation_of(given: str | None, settings: Mapping[str, Any] | None) -> str:
    """
    Return the operation of a write: as given, else as ``hoodie.datasource.write.operation`` says, else ``upsert``.

    Args:
        given: The operation that the call names; None where it names none.
        settings: Settings of the write.

    Raises:
        ConfigError: Both name one, and they differ; or one of them is of another type.
    """
    check_kinds(str, "the name of an operation", operation=given)
    asked = Settings(settings).as_dict().get(_OPERATION)
    if given is not None and asked is not None and given.lower() != asked.lower():
        raise ConfigError(f"{_OPERATION}={asked}, but the operation is given as {given!r}; leave one of them out")
    return given if given is not None else "upsert" if asked is None else asked


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
    # Read for the error alone: without a table the service would create one at the first write.
    if must_exist:
        read_table_config(storage)
    if is_rehearsal:
        storage = RehearsalStorage(storage)
    return WriteService(storage, checked, clock_of(clock), LocalEngine)


def written(service: WriteService, data: Any, operation: str, words: CommitWords = NO_WORDS) -> WriteResult:
    """
    Write rows of this process.

    Args:
        service: Writes to the table.
        data, operation: As for `write`.
        words: Further entries of the commit.

    Raises:
        As `write`.
    """
    if operation.lower() not in OPERATIONS:
        raise ConfigError(f"operation {operation!r} is unknown; use one of {', '.join(OPERATIONS)}")
    memory = memory_of(service.settings)
    # An attempt that loses against another writer is repeated, and a stream gives its rows only once.
    with gathered(data, service.stored_schema, memory, is_repeated=concurrency_of(service.settings).is_shared) as rows:
        return service.write(rows, operation.upper(), words)


def merged(
    service: WriteService, data: Any, on: tuple[str, ...], clauses: tuple[Clause, ...], words: CommitWords
) -> WriteResult:
    """Merge rows of this process into a table; see `hudi_py.MergeStatement`."""
    # All rows in memory: each of them may match rows of any file.
    merge = Merge(source=arrow_table(data, service.stored_schema), on=on, clauses=clauses)
    return service.change(merge, "UPSERT", words)

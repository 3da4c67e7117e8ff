"""
Runs a write from the user's rows to the clean after the commit, with any engine for rows.

The steps: open or create the table, select columns, resolve the schema, begin the write, have the engine write the data
files, commit, clean, archive. Nothing here depends on Spark: `hudi_py.spark` and `hudi_py.local` implement the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import attrs
import pyarrow as pa

from hudi_py.config import keys
from hudi_py.config.concurrency import require_single_writer
from hudi_py.config.door import require_served
from hudi_py.config.key_generators import key_generator_asked_for
from hudi_py.config.keys import Settings
from hudi_py.config.new_table import new_table_properties, table_folders
from hudi_py.config.table import TableType
from hudi_py.config.uses import Use
from hudi_py.engine.base import Engine
from hudi_py.errors import (
    ConfigError,
    ConflictError,
    CorruptMetadata,
    HudiError,
    ServiceFailed,
    TableNotFound,
    UnsupportedTable,
    WriteError,
)
from hudi_py.formats.record_schema import parse_record_schema
from hudi_py.formats.schema_evolution import ResolvedSchema, resolve_schema
from hudi_py.fsview.listing import FolderListing
from hudi_py.fsview.needed import NeededFiles
from hudi_py.model.files import join_path, parse_base_file, parse_log_file
from hudi_py.model.records import CommitMetadata
from hudi_py.model.shown import Shown
from hudi_py.rows.bucket_index import BucketIndex, bucket_index_of
from hudi_py.rows.keys import KeyGenerator, KeyGeneratorKind, is_prefixed, key_generator_of
from hudi_py.rows.lookup import read_keys
from hudi_py.rows.precedence import MergeRules, merge_rules_of
from hudi_py.runtime.clock import Clock
from hudi_py.runtime.log import log
from hudi_py.services.clean.result import CleanResult
from hudi_py.snapshot.schema import column_schema_text
from hudi_py.storage.base import Storage
from hudi_py.table import Table
from hudi_py.timeline.properties_file import create_properties
from hudi_py.writing.assign import average_record_bytes
from hudi_py.writing.buckets import check_buckets
from hudi_py.writing.incoming import IncomingRows
from hudi_py.writing.job import WriteJob
from hudi_py.writing.options import base_file_options, check_options, sizing_limits
from hudi_py.writing.replaced import check_replaced
from hudi_py.writing.same_table import require_same_table
from hudi_py.writing.transaction import WriteTransaction, begin_write

_USE: Final = Use.WRITE | Use.SERVICES
"""A write includes the services that run after its commit."""

_ONE_FILE: Final = 1 << 62
"""A bucket has one file, whatever its size."""

_COMMITS_READ_MAX: Final = 5
"""Number of recent commits that are read for the average size of a row."""


@attrs.frozen(kw_only=True, repr=False)
class WriteResult(Shown):
    """
    Result of a write.

    Args:
        instant: Requested time of the commit; None if there was nothing to write and ``hoodie.allow.empty.commit`` is
            false.
        metadata: Metadata of the commit, as stored.
        cleans: Results of the clean after the commit; empty if no clean was due.
    """

    instant: str | None
    metadata: CommitMetadata
    cleans: tuple[CleanResult, ...] = ()

    def _facts(self) -> Mapping[str, object]:
        files = sum(map(len, self.metadata.partition_to_write_stats.values()))
        done = {"instant": self.instant, "operation": self.metadata.operation_type, "files": files}
        return done | {"cleans": len(self.cleans)}

    def _listed(self) -> Iterable[tuple[object, ...]]:
        stats = self.metadata.partition_to_write_stats.values()
        return (
            (stat.path, stat.num_inserts, stat.num_update_writes, stat.num_deletes)
            for of_partition in stats
            for stat in of_partition
        )


class WriteService:
    """
    Writes to a copy-on-write table. The first write creates the table if it does not exist.

    Args:
        storage: Storage of the table.
        settings: See `hudi_py.WriteClient`.
        clock: Source of instant times.
        cleaning: Returns the engine that deletes files after a commit.

    Raises:
        ConfigError: A setting is invalid or refused, or contradicts the table.
        UnsupportedTable: hudi_py does not write this kind of table.
    """

    def __init__(self, storage: Storage, settings: Settings, clock: Clock, cleaning: Callable[[], Engine]) -> None:
        require_served(settings, _USE)
        check_options(settings)
        self._storage = storage
        self._settings = settings
        self._clock = clock
        self._cleaning = cleaning
        self._table: Table | None = None
        self._are_buckets_checked = False
        try:
            self._table = self._open()
        except TableNotFound:
            new_table_properties(self._settings)  # raises for invalid settings now, not at the first write

    @property
    def table(self) -> Table:
        """
        The table.

        Raises:
            TableNotFound: The table does not exist yet.
        """
        if self._table is None:
            self._table = self._open()
        return self._table.refresh()

    def write(self, rows: IncomingRows, operation: str) -> WriteResult:
        """
        Write *rows* in one commit, then clean and archive.

        Args:
            rows: Rows to write.
            operation: ``UPSERT``, ``INSERT``, ``BULK_INSERT`` or ``DELETE``.

        Raises:
            See `hudi_py.WriteClient.upsert`.
        """
        require_single_writer(self._settings)  # before a new table is created
        table = self._opened_or_created(rows, operation).refresh()
        generator = self._key_generator(table)
        buckets = bucket_index_of(self._settings, table.config.properties, generator, table.config.version)
        if not self._are_buckets_checked:  # once: an existing table never gets buckets later
            check_buckets(self._storage, table.timeline, table.contents, buckets)
            self._are_buckets_checked = True
        rules = merge_rules_of(table.config.properties)
        text = table.schema_text()
        if column_schema_text(table.contents, table.timeline) is not None:
            raise UnsupportedTable(
                f"{self._storage.root} uses schema on read, and hudi_py does not write the ids of its columns: "
                "renamed columns would lose their values; write it with Apache Hudi"
            )
        rows = rows.shaped(text, self._needed(operation, generator, rules), keys_only=operation == "DELETE")
        schema = _resolved(table, rows.schema, operation, text)
        with begin_write(table.contents, table.config, self._settings, table.services.metadata_table) as transaction:
            transaction.refuse_undoing(table.refresh().timeline)
            job = self._job(table, transaction, operation, schema, generator, rules, buckets)
            try:
                results = rows.write(job)
            except (ConfigError, UnsupportedTable, WriteError):  # of the rows
                transaction.abandon_untouched()
                raise
            if not results and not self._settings[keys.ALLOW_EMPTY_COMMIT]:
                transaction.abandon()
                return WriteResult(instant=None, metadata=CommitMetadata())
            check_replaced(results, table.timeline, table.contents)
            stats = (result.stat for result in results)
            metadata = transaction.commit(stats, operation=operation, extra_metadata={"schema": schema.text})
        return WriteResult(
            instant=transaction.instant_time,
            metadata=metadata,
            cleans=self._serve_after(transaction.instant_time, table),
        )

    # --- the table ------------------------------------------------------------------------------------------------
    def _open(self) -> Table:
        table = Table(self._storage, settings=self._settings.as_dict(), clock=self._clock)
        if table.config.table_type is not TableType.COPY_ON_WRITE:
            raise UnsupportedTable(
                f"{self._storage.root} is a MERGE_ON_READ table; hudi_py writes COPY_ON_WRITE tables only"
            )
        table.require(_USE)
        require_same_table(self._settings, table.config, self._storage.root)
        return table

    def _opened_or_created(self, rows: IncomingRows, operation: str) -> Table:
        if self._table is None:
            try:
                self._table = self._open()
            except TableNotFound:
                if operation == "DELETE":
                    raise  # there is nothing to delete; creating a table with only key columns helps nobody
                self._check_new(rows, operation)  # raises before anything is created that would have to be undone
                self._table = self._create()
        return self._table

    def _check_new(self, rows: IncomingRows, operation: str) -> None:
        """Check the first rows of a new table, as far as possible without touching the storage."""
        properties = new_table_properties(self._settings)
        generator = key_generator_of(properties, single_field_prefixed=False)
        bucket_index_of(self._settings, {}, generator, int(properties["hoodie.table.version"]))
        needed = self._needed(operation, generator, merge_rules_of(properties))
        resolve_schema(None, rows.shaped(None, needed, keys_only=False).schema, self._settings[keys.TABLE_NAME])

    def _create(self) -> Table:
        self._refuse_data_of_another()
        properties = new_table_properties(self._settings)
        for folder in table_folders(properties):
            self._storage.create_new(f"{folder}/.keep", b"")
            self._storage.delete(f"{folder}/.keep")
        create_properties(self._storage, properties, self._clock)
        return self._open()

    def _refuse_data_of_another(self) -> None:
        """Raise if there are data files: in a new table, files older than its first instant count as committed."""
        for path, entries in FolderListing(self._storage).walk():
            for entry in entries:
                if parse_base_file(entry.name) is not None or parse_log_file(entry.name) is not None:
                    file = join_path(path, entry.name)
                    raise CorruptMetadata(
                        f"{self._storage.root} is not a table, but {file} is a data file of one: in a new table its "
                        "rows would count as committed; nothing was changed; restore the .hoodie folder of that table, "
                        "or write to an empty folder"
                    )

    # --- what the tasks need to know --------------------------------------------------------------------------------
    def _needed(self, operation: str, generator: KeyGenerator, rules: MergeRules) -> tuple[str, ...]:
        """Return the columns that the rows must have."""
        fields = (*generator.record_key_fields, *generator.partition_fields)
        ordered = operation == "UPSERT" or (operation == "INSERT" and self._settings[keys.COMBINE_BEFORE_INSERT])
        return (*fields, *rules.batch_fields) if ordered else fields

    def _key_generator(self, table: Table) -> KeyGenerator:
        """Return the table's key generator; if releases of Hudi write its keys differently, a stored key decides."""
        config = table.config
        properties = dict(config.properties)
        asked = key_generator_asked_for(self._settings)
        actual = key_generator_of(properties, single_field_prefixed=False).kind
        if asked not in (None, actual.value):
            raise ConfigError(
                f"the settings ask for key generator {asked}, but the table at {self._storage.root} has "
                f"{actual.value}; leave the setting out or write to another table"
            )
        prefixed = self._settings[keys.NEW_COMPLEX_KEY_ENCODING]
        if prefixed is None and len(config.record_key_fields) == 1 and actual is KeyGeneratorKind.COMPLEX:
            prefixed = self._is_prefixed_there(table)
            if prefixed is None and not config.format.prefixes_single_key:
                prefixed = False
        return key_generator_of(properties, single_field_prefixed=prefixed)

    def _is_prefixed_there(self, table: Table) -> bool | None:
        """Return whether stored keys have the form ``column:value``; None if the table has no rows."""
        stored = next(iter(table.base_files()), None)
        if stored is None:
            return None
        partition, base = stored
        with self._storage.open_read(join_path(partition, base.name)) as stream:
            first = read_keys(stream)
        return is_prefixed(first[0].as_py(), table.config.record_key_fields[0]) if len(first) else None

    def _job(
        self,
        table: Table,
        transaction: WriteTransaction,
        operation: str,
        schema: ResolvedSchema,
        generator: KeyGenerator,
        rules: MergeRules,
        buckets: BucketIndex | None,
    ) -> WriteJob:
        searches_none = operation == "BULK_INSERT" and buckets is None
        options = base_file_options(self._settings)
        return WriteJob(
            storage=self._storage,
            instant_time=transaction.instant_time,
            operation=operation,
            context=table.view_context,
            needed={} if searches_none else NeededFiles(table.contents, table.timeline).of_write(),
            schema=schema.schema,
            avro_schema=schema.text,
            keys=generator,
            rules=rules,
            options=options if buckets is None else attrs.evolve(options, max_file_bytes=_ONE_FILE),
            limits=sizing_limits(self._settings),
            record_bytes=self._record_bytes(table),
            combine=self._settings[keys.COMBINE_BEFORE_INSERT],
            buckets=buckets,
        )

    def _record_bytes(self, table: Table) -> int:
        """Return the average size of a row in recent commits (E-56)."""
        newest = list(reversed(table.timeline.completed("commit")))[:_COMMITS_READ_MAX]
        return average_record_bytes(
            (_written(table.contents.commit(instant)) for instant in newest),
            limits=sizing_limits(self._settings),
            threshold=self._settings[keys.RECORD_SIZE_THRESHOLD],
            estimate=self._settings[keys.RECORD_SIZE_ESTIMATE],
        )

    # --- after the commit -------------------------------------------------------------------------------------------
    def _serve_after(self, commit: str, table: Table) -> tuple[CleanResult, ...]:
        """Clean and archive. Failures are raised as `ServiceFailed`, so that nobody repeats the completed commit."""
        try:
            cleans = self._clean(table)
            if self._settings[keys.ARCHIVE_AUTOMATIC]:  # after the clean, which makes more commits archivable (G-4)
                table.services.archive().run()
                table.services.run_upkeep()
        except ConflictError as error:  # another process is doing the same
            log.info("write.services.superseded", instant=commit, why=str(error))
            return ()
        except HudiError as error:
            raise ServiceFailed(
                f"commit {commit} is completed and its rows are visible, so do not write them again; cleaning or "
                f"archiving after it failed: {error}",
                commit,
            ) from error
        return cleans

    def _clean(self, table: Table) -> tuple[CleanResult, ...]:
        if not self._settings[keys.CLEAN_AUTOMATIC]:
            return ()
        return tuple(table.refresh().clean(engine=self._cleaning()))


def _resolved(table: Table, incoming: pa.Schema, operation: str, text: str | None) -> ResolvedSchema:
    if operation == "DELETE" and text is not None:
        return resolve_schema(text, parse_record_schema(text), table.config.name)
    resolved = resolve_schema(text, incoming, table.config.name)
    for caution in resolved.cautions:
        log.warning("write.columns.peculiar", why=caution)
    return resolved


def _written(metadata: CommitMetadata) -> tuple[int, int]:
    stats = [stat for of_partition in metadata.partition_to_write_stats.values() for stat in of_partition]
    return sum(stat.total_write_bytes for stat in stats), sum(stat.num_writes for stat in stats)

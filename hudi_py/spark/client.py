"""
The write client: rows of a DataFrame into a table, every commit followed by the clean that the settings ask for.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, Final

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hudi_py.config import keys
from hudi_py.config.archive import archive_config
from hudi_py.config.clean import clean_config
from hudi_py.config.concurrency import require_single_writer
from hudi_py.config.door import admitted, require_served
from hudi_py.config.key_generators import key_generator_asked_for
from hudi_py.config.keys import Settings
from hudi_py.config.new_table import new_table_properties, table_folders
from hudi_py.config.table import TableType
from hudi_py.config.uses import Use
from hudi_py.engine.choice import AutoEngine
from hudi_py.errors import ConfigError, ConflictError, HudiError, ServiceFailed, TableNotFound, UnsupportedTable
from hudi_py.formats.bloom import BloomKind, BloomSizing
from hudi_py.formats.record_schema import parse_record_schema
from hudi_py.formats.schema_evolution import ResolvedSchema, resolve_schema
from hudi_py.fsview.needed import NeededFiles
from hudi_py.model.records import CommitMetadata
from hudi_py.rows.base_file import BaseFileOptions
from hudi_py.rows.keys import KeyGenerator, KeyGeneratorKind, is_prefixed, key_generator_of
from hudi_py.rows.lookup import read_keys
from hudi_py.rows.precedence import MergeRules, merge_rules_of
from hudi_py.runtime.clock import Clock, SystemClock
from hudi_py.runtime.log import log
from hudi_py.services.clean.result import CleanResult
from hudi_py.services.clean.watch import OnProgress
from hudi_py.spark.engine import SparkEngine
from hudi_py.spark.rows import Scale, write_rows
from hudi_py.spark.session import is_of_connect, require_classic
from hudi_py.spark.shape import arrow_schema, shaped_rows
from hudi_py.storage.factory import open_storage
from hudi_py.table import Table
from hudi_py.timeline.properties_file import create_properties
from hudi_py.writing.assign import SizingLimits, average_record_bytes
from hudi_py.writing.buckets import refuse_buckets
from hudi_py.writing.job import WriteJob
from hudi_py.writing.replaced import check_replaced
from hudi_py.writing.same_table import require_same_table
from hudi_py.writing.stats import write_stat
from hudi_py.writing.transaction import WriteTransaction, begin_write

_USE: Final = Use.WRITE | Use.SERVICES
"""What follows a commit is part of the write."""


@attrs.frozen(kw_only=True)
class WriteResult:
    """
    One commit.

    Args:
        instant: Requested time; None when there was nothing to write and ``hoodie.allow.empty.commit`` is false.
        metadata: What was stored as the completed instant.
        cleans: What the clean after it removed; empty when nothing was due.
    """

    instant: str | None
    metadata: CommitMetadata
    cleans: tuple[CleanResult, ...] = ()


class WriteClient:
    """
    Writes to one copy-on-write table, which is created by the first write if it is not there.

    Args:
        spark: The session that does the work.
        location: Local path or URL of the table.
        settings: Under Hudi's own names, old and new spellings. A new table needs ``hoodie.table.name`` and
            ``hoodie.datasource.write.recordkey.field``; for a table that exists, what its properties say counts.
        storage_options: For the storage library.
        clock: Replaces the machine's clock.

    Raises:
        ConfigError: A setting is unknown, wrong or refused (see docs/settings.md), or contradicts the table.
        UnsupportedTable: A kind of table that is not written.
    """

    def __init__(
        self,
        spark: SparkSession,
        location: str | PathLike[str],
        settings: Mapping[str, Any] | None = None,
        *,
        storage_options: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        require_classic(spark)
        self._spark = spark
        self._settings = admitted(settings)
        require_served(self._settings, _USE)
        _check_what_follows(self._settings)
        self._clock = clock or SystemClock()
        self._storage = open_storage(location, storage_options, read_bytes_max=self._settings[keys.READ_BYTES_MAX])
        self._table: Table | None = None
        self._is_free_of_buckets = False
        try:
            self._table = self._open()
        except TableNotFound:
            new_table_properties(self._settings)  # complain now, not at the first write

    @property
    def table(self) -> Table:
        """
        The table, without Spark.

        Raises:
            TableNotFound: Nothing was written yet.
        """
        if self._table is None:
            self._table = self._open()
        return self._table.refresh()

    def upsert(self, rows: DataFrame) -> WriteResult:
        """
        Update rows whose key the table holds, insert the others.

        Of several rows with one key the one with the largest ordering value counts. Rows whose boolean column
        ``_hoodie_is_deleted`` is true are deleted.

        Raises:
            ConfigError, WriteError: The rows do not fit the table; nothing is visible.
            RefusedError: See `MetadataTableKeeper`.
            ConflictError: Another writer is at work.
            StorageError: The storage refused; nothing is visible, and the next write cleans up.
            ServiceFailed: The rows are committed, but the clean or the archival after the commit failed.
        """
        return self._write(rows, "UPSERT")

    def insert(self, rows: DataFrame) -> WriteResult:
        """Add rows without looking for their keys. Raises as `upsert`."""
        return self._write(rows, "INSERT")

    def bulk_insert(self, rows: DataFrame) -> WriteResult:
        """Add rows in new file groups only: the way to load much at once. Raises as `upsert`."""
        return self._write(rows, "BULK_INSERT")

    def delete(self, rows: DataFrame) -> WriteResult:
        """
        Delete the rows with these keys.

        Args:
            rows: At least the record key and partition columns; keys that the table does not hold are ignored.

        Raises:
            TableNotFound: There is no table.
            As `upsert`.
        """
        return self._write(rows, "DELETE")

    def clean(self, *, on_progress: OnProgress | None = None) -> list[CleanResult]:
        """
        Clean as the settings say; files are deleted on Spark executors.

        Args:
            on_progress: As for `hudi_py.Table.clean`; files are counted task by task.

        Returns:
            What was carried out, oldest first; empty when there was nothing to do.
        """
        return self.table.clean(engine=SparkEngine(self._spark), on_progress=on_progress)

    def _open(self) -> Table:
        table = Table(self._storage, settings=self._settings.as_dict(), clock=self._clock)
        if table.config.table_type is not TableType.COPY_ON_WRITE:
            raise UnsupportedTable(
                f"{self._storage.root} is a MERGE_ON_READ table; hudi_py writes COPY_ON_WRITE tables only"
            )
        table.require(_USE)
        require_same_table(self._settings, table.config, self._storage.root)
        return table

    def _create(self) -> Table:
        properties = new_table_properties(self._settings)
        for folder in table_folders(properties):
            self._storage.create_new(f"{folder}/.keep", b"")
            self._storage.delete(f"{folder}/.keep")
        create_properties(self._storage, properties, self._clock)
        return self._open()

    def _write(self, rows: DataFrame, operation: str) -> WriteResult:
        require_single_writer(self._settings)  # before a new table is made
        if not hasattr(rows, "mapInArrow"):
            raise ConfigError(f"rows are given as a Spark DataFrame, not as {type(rows).__name__}: see createDataFrame")
        if is_of_connect(rows):
            raise ConfigError("the rows are a DataFrame of Spark Connect; make it in the session of the client")
        if self._table is None:
            try:
                self._table = self._open()
            except TableNotFound:
                if operation == "DELETE":
                    raise  # a table of nothing but keys is not what anyone wants
                self._check_new(rows, operation)  # before there is anything to undo
                self._table = self._create()
        table = self._table.refresh()
        if not self._is_free_of_buckets:  # nothing turns a table into one of buckets later
            refuse_buckets(self._storage, table.timeline, table.contents)
            self._is_free_of_buckets = True
        generator = self._key_generator(table)
        rules = merge_rules_of(table.config.properties)
        text = table.schema_text()
        if table.column_schema_text() is not None:
            raise UnsupportedTable(
                f"{self._storage.root} evolves by schema on read, and hudi_py does not keep the ids of its columns: "
                "those that were renamed would lose their values; write it with Apache Hudi"
            )
        needed = self._needed(operation, generator, rules)
        rows = shaped_rows(rows, text, needed, keys_only=operation == "DELETE")
        schema = self._schema(table, arrow_schema(rows), operation, text)
        with begin_write(table.contents, table.config, self._settings, table.metadata_table) as transaction:
            table.refresh()
            job = self._job(table, transaction, operation, schema, generator, rules)
            results = write_rows(rows, job, self._scale(operation))
            if not results and not self._settings[keys.ALLOW_EMPTY_COMMIT]:
                transaction.abandon()
                return WriteResult(instant=None, metadata=CommitMetadata())
            check_replaced(results, table.timeline, table.contents)
            stats = [write_stat(each, with_prev_base_file=table.config.version >= 8) for each in results]
            metadata = transaction.commit(stats, operation=operation, extra_metadata={"schema": schema.text})
        return WriteResult(
            instant=transaction.instant_time,
            metadata=metadata,
            cleans=self._serve_after(transaction.instant_time, table),
        )

    def _check_new(self, rows: DataFrame, operation: str) -> None:
        """Everything about the first rows of a table that can be refused without touching storage."""
        properties = new_table_properties(self._settings)
        generator = key_generator_of(properties, single_field_prefixed=False)
        rules = merge_rules_of(properties)
        rows = shaped_rows(rows, None, self._needed(operation, generator, rules), keys_only=False)
        resolve_schema(None, arrow_schema(rows), self._settings[keys.TABLE_NAME])

    def _needed(self, operation: str, generator: KeyGenerator, rules: MergeRules) -> tuple[str, ...]:
        """Columns that the rows must have."""
        fields = (*generator.record_key_fields, *generator.partition_fields)
        ordered = operation == "UPSERT" or (operation == "INSERT" and self._settings[keys.COMBINE_BEFORE_INSERT])
        return (*fields, *rules.batch_fields) if ordered else fields

    def _serve_after(self, commit: str, table: Table) -> tuple[CleanResult, ...]:
        """Clean and archive; who is told that this failed must not take the commit for failed, and write it again."""
        try:
            cleans = tuple(self._clean_after_commit(table))
            self._archive_after_clean(table)
        except ConflictError as error:  # somebody else is doing the same
            log.info("write.services.superseded", instant=commit, why=str(error))
            return ()
        except HudiError as error:
            raise ServiceFailed(
                f"commit {commit} is completed and its rows are visible, so do not write them again; what follows a "
                f"commit failed: {error}",
                commit,
            ) from error
        return cleans

    def _clean_after_commit(self, table: Table) -> list[CleanResult]:
        """Few files are deleted quicker by the driver's threads than through a Spark job, many on the executors."""
        if not self._settings[keys.CLEAN_AUTOMATIC]:
            return []
        return table.refresh().clean(engine=AutoEngine(lambda: SparkEngine(self._spark)))

    def _archive_after_clean(self, table: Table) -> None:
        """What the clean has made free to go leaves the active timeline (rule G-4); the metadata table the same."""
        if self._settings[keys.ARCHIVE_AUTOMATIC]:
            table.archive_service().run()
            table.run_upkeep()

    def _schema(self, table: Table, incoming: pa.Schema, operation: str, text: str | None) -> ResolvedSchema:
        if operation == "DELETE" and text is not None:
            return resolve_schema(text, parse_record_schema(text), table.config.name)
        resolved = resolve_schema(text, incoming, table.config.name)
        for caution in resolved.cautions:
            log.warning("write.columns.peculiar", why=caution)
        return resolved

    def _key_generator(self, table: Table) -> KeyGenerator:
        """The table's; where the form of its keys depends on the release that wrote it, a stored key decides."""
        config = table.config
        properties = dict(config.properties)
        asked = key_generator_asked_for(self._settings)
        actual = key_generator_of(properties, single_field_prefixed=False).kind.value
        if asked not in (None, actual):
            raise ConfigError(
                f"the settings ask for key generator {asked}, and the table at {self._storage.root} has {actual}; "
                "leave the setting out or write to another table"
            )
        prefixed = self._settings[keys.NEW_COMPLEX_KEY_ENCODING]
        single = len(config.record_key_fields) == 1
        if prefixed is None and single and _is_complex(properties):
            stored = next(iter(table.base_files()), None)
            if stored is not None:
                partition, base = stored
                path = f"{partition}/{base.name}" if partition else base.name
                with self._storage.open_read(path) as stream:
                    first = read_keys(stream)
                if len(first):
                    prefixed = is_prefixed(first[0].as_py(), config.record_key_fields[0])
            if prefixed is None and config.version < 9:
                prefixed = False
        return key_generator_of(properties, single_field_prefixed=prefixed)

    def _job(
        self,
        table: Table,
        transaction: WriteTransaction,
        operation: str,
        schema: ResolvedSchema,
        generator: KeyGenerator,
        rules: MergeRules,
    ) -> WriteJob:
        settings = self._settings
        limits = SizingLimits(
            max_file_bytes=settings[keys.PARQUET_MAX_FILE_SIZE],
            small_file_bytes=settings[keys.PARQUET_SMALL_FILE_LIMIT],
            insert_split_rows=settings[keys.INSERT_SPLIT_SIZE],
            auto_split=settings[keys.INSERT_AUTO_SPLIT],
        )
        return WriteJob(
            storage=self._storage,
            instant_time=transaction.instant_time,
            operation=operation,
            context=table.view_context,
            needed={} if operation == "BULK_INSERT" else NeededFiles(table.contents, table.timeline).of_write(),
            schema=schema.schema,
            avro_schema=schema.text,
            keys=generator,
            rules=rules,
            options=_base_file_options(settings),
            limits=limits,
            record_bytes=self._record_bytes(table, limits),
            combine=settings[keys.COMBINE_BEFORE_INSERT],
        )

    def _record_bytes(self, table: Table, limits: SizingLimits) -> int:
        """Rule E-56: from recent commits, of which at most five are read."""
        newest = list(reversed(table.timeline.completed("commit")))[:5]
        return average_record_bytes(
            (_written(table.contents.commit(instant)) for instant in newest),
            limits=limits,
            threshold=self._settings[keys.RECORD_SIZE_THRESHOLD],
            estimate=self._settings[keys.RECORD_SIZE_ESTIMATE],
        )

    def _scale(self, operation: str) -> Scale:
        parallelism = {
            "BULK_INSERT": keys.BULK_INSERT_PARALLELISM,
            "INSERT": keys.INSERT_PARALLELISM,
            "DELETE": keys.DELETE_PARALLELISM,
        }.get(operation, keys.UPSERT_PARALLELISM)
        return Scale(
            parallelism=self._settings[parallelism] or None,
            slots=self._spark.sparkContext.defaultParallelism,
            single_pass_bytes=self._settings[keys.SINGLE_PASS_BYTES],
        )


def _written(metadata: CommitMetadata) -> tuple[int, int]:
    stats = [stat for each in metadata.partition_to_write_stats.values() for stat in each]
    return sum(stat.total_write_bytes for stat in stats), sum(stat.num_writes for stat in stats)


def _is_complex(properties: Mapping[str, str]) -> bool:
    return key_generator_of(properties, single_field_prefixed=False).kind is KeyGeneratorKind.COMPLEX


def _check_what_follows(settings: Settings) -> None:
    """What is only looked at in the middle of a write or after its commit is an error before the write."""
    _base_file_options(settings)
    if settings[keys.CLEAN_AUTOMATIC]:
        clean_config(settings)
    if settings[keys.ARCHIVE_AUTOMATIC]:
        archive_config(settings)


def _base_file_options(settings: Settings) -> BaseFileOptions:
    return BaseFileOptions(
        compression=settings[keys.PARQUET_COMPRESSION],
        bloom=BloomSizing(
            kind=BloomKind(settings[keys.BLOOM_TYPE]),
            entries=settings[keys.BLOOM_NUM_ENTRIES],
            false_positive_rate=settings[keys.BLOOM_FPP],
            entries_max=settings[keys.BLOOM_MAX_ENTRIES],
        ),
        max_file_bytes=settings[keys.PARQUET_MAX_FILE_SIZE],
    )

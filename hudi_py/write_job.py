"""What the tasks of a write need to know, from the table and the settings."""

from __future__ import annotations

from typing import Final

import attrs

from hudi_py.config import keys
from hudi_py.config.bulk_insert import bulk_insert_layout
from hudi_py.config.concurrency import Strategy, concurrency_of
from hudi_py.config.duplicates import combines_inserts, duplicates_of
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableType
from hudi_py.formats.schema_evolution import ResolvedSchema
from hudi_py.fsview.needed import NeededFiles
from hudi_py.fsview.written_ranges import WrittenRanges
from hudi_py.mdt.lookup import RECORD_INDEX
from hudi_py.model.change_logging import logging_mode
from hudi_py.rows.bucket_index import BucketIndex
from hudi_py.rows.column_ids import ColumnIds
from hudi_py.rows.keys import KeyGenerator
from hudi_py.rows.precedence import MergeRules
from hudi_py.table_view import TableView
from hudi_py.timeline.heartbeat import Rhythm
from hudi_py.timeline.store import TimelineStore
from hudi_py.txn.early import EarlyLook
from hudi_py.writing.job import WriteJob
from hudi_py.writing.log_slices import LogWriting, keyless_logs
from hudi_py.writing.options import base_file_options, log_file_options, sizing_limits
from hudi_py.writing.record_size import record_bytes_of
from hudi_py.writing.replacing import OVERWRITES
from hudi_py.writing.transaction import WriteTransaction

_ONE_FILE: Final = 1 << 62
"""A bucket has one file, whatever its size."""


def job_of(
    settings: Settings,
    table: TableView,
    transaction: WriteTransaction,
    operation: str,
    schema: ResolvedSchema,
    generator: KeyGenerator,
    rules: MergeRules,
    buckets: BucketIndex | None,
    ids: ColumnIds | None,
) -> WriteJob:
    """
    Return the job of a write that has begun; arguments as the fields of `WriteJob`.

    Where columns were renamed, dropped or widened, the statistics in the metadata table are dropped: they have the
    columns under the names of their time, so those of a partition would leave out what its older files hold.
    """
    limits = sizing_limits(settings)
    # Files of its own never conflict with those of other writers.
    if concurrency_of(settings).is_shared and operation == "INSERT":
        limits = attrs.evolve(limits, small_file_bytes=0)
    # A bulk insert of buckets looks for the files of its buckets, so it needs the existing ones.
    searches_none = operation in OVERWRITES or (operation == "BULK_INSERT" and buckets is None)
    is_widened = bool(schema.promoted) or (ids is not None and ids.outdates_statistics)
    options = attrs.evolve(
        base_file_options(settings),
        ranged=transaction.metadata_table.columns_to_range(table.timeline, schema.schema, is_widened=is_widened),
        # Only the record index has to hear which keys came and went, and collecting them takes memory.
        tracks_keys=RECORD_INDEX in table.config.metadata_partitions,
    )
    needed = NeededFiles(table.contents, table.timeline)
    is_mor = table.config.table_type is TableType.MERGE_ON_READ
    return WriteJob(
        storage=table.storage,
        instant_time=transaction.instant_time,
        operation=operation,
        context=table.view_context,
        needed={} if searches_none else needed.required(),
        schema=schema.schema,
        avro_schema=schema.text,
        keys=generator,
        rules=rules,
        options=options if buckets is None else attrs.evolve(options, max_file_bytes=_ONE_FILE),
        limits=limits,
        record_bytes=record_bytes_of(table.timeline, table.contents, settings),
        combine=combines_inserts(settings),
        duplicates=duplicates_of(settings, operation, by_bucket=buckets is not None),
        layout=bulk_insert_layout(settings),
        buckets=buckets,
        logs=_log_writing(settings, table, needed, operation, rules) if is_mor else None,
        moved=None if ids is None else ids.moved,
        change_logs=logging_mode(table.config.properties, table.storage.root),
        clock=table.contents.store.clock,
        early=_early_look(settings, table, by_bucket=buckets is not None),
        is_shared=concurrency_of(settings).is_shared,
    )


def _early_look(settings: Settings, table: TableView, *, by_bucket: bool) -> EarlyLook | None:
    concurrency = concurrency_of(settings)
    if not concurrency.looks_early:
        return None
    by_bucket = by_bucket or concurrency.strategy is Strategy.BUCKETS
    # Without the lock, which is not asked for and stays in this process.
    store = TimelineStore(table.storage, table.config, table.contents.store.clock)
    return EarlyLook(store=store, rhythm=Rhythm.of(settings), by_bucket=by_bucket)


def _log_writing(
    settings: Settings, table: TableView, needed: NeededFiles, operation: str, rules: MergeRules
) -> LogWriting:
    has_positions = table.config.format.tells_positions and settings[keys.RECORD_POSITIONS]
    return LogWriting(
        options=log_file_options(settings, rules.ordering_fields, has_positions=has_positions),
        keyless=keyless_logs(needed.metadata) if operation in ("UPSERT", "DELETE") else {},
        small_files_max=settings[keys.MERGE_SMALL_FILES_MAX],
        written=WrittenRanges(table.contents, table.timeline),
    )

"""
Merges the log blocks of one file slice into one new log file: what a task does, on a thread or on a Spark executor.

Rows keep their meta columns. A key has one record: its row, or its deletion with the ordering values that it had, so
that merging goes on from it as from the blocks before (see `hudi_py.rows.log_merge`). Memory: the log records of the
slice.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from hudi_py.errors import AlreadyExists, ConflictError, UnsupportedTable
from hudi_py.formats.log_block import BlockType, HeaderKey
from hudi_py.formats.stored_values import conform_stored
from hudi_py.model.files import FileSlice, join_path
from hudi_py.rows.column_ranges import ranges_of_rows
from hudi_py.rows.log_file import LogFileOptions, LogSlice, LogTarget, deleted_keys, encode_merged_log, log_stat
from hudi_py.rows.log_merge import MergedLogs, merge_records
from hudi_py.rows.log_reading import LogReading, blocks_of
from hudi_py.rows.log_records import Kind, flagged_rows, is_partial, positions_in, records_of
from hudi_py.rows.lookup import read_keys
from hudi_py.rows.positions import has_copies
from hudi_py.rows.read import chosen_columns
from hudi_py.rows.written import WrittenFile
from hudi_py.runtime.clock import MONOTONIC
from hudi_py.services.log_compaction.plan import DELETED_TWICE, Blocks
from hudi_py.services.rewriting.tasks import RewriteJob, withdraw_if_fenced
from hudi_py.storage.base import Storage
from hudi_py.timeline.markers import Marker, MarkerType, create_marker


@attrs.frozen(kw_only=True)
class LogCompactionJob:
    """
    A log compaction, with all that its tasks need. Pickled for executors.

    Args:
        rewrite: Storage, time, schema, and how log files are read: of those, only blocks up to its time.
        options: Layout of log files.
        tells_slice: Whether names of log files name the slice that they belong to (layout 1).
        records_slice: Whether the stat names all files of the slice, see `LogTarget`.
        takes_deletes: See `plan_log_compaction`.
    """

    rewrite: RewriteJob
    options: LogFileOptions
    tells_slice: bool
    records_slice: bool
    takes_deletes: bool

    @property
    def storage(self) -> Storage:
        """Storage of the table."""
        return self.rewrite.storage

    @property
    def instant_time(self) -> str:
        """Requested time of the log compaction."""
        return self.rewrite.instant_time


@attrs.frozen(kw_only=True)
class MergeWork:
    """
    What one task does.

    Args:
        planned: The slice with the log files to merge, and no others, with sizes.
        there: The slice with all its log files: the new one is numbered behind them in layout 1.
    """

    planned: FileSlice
    there: FileSlice


def count_blocks(storage: Storage, file_slice: FileSlice, reading: LogReading) -> Blocks:
    """
    Count the log blocks of a slice that count (E-27).

    Raises:
        CorruptMetadata: A log file is damaged.
    """
    count, has_parts, has_deletes, times = 0, False, False, set[str | None]()
    for block, _ in blocks_of(storage, file_slice, reading):
        count += 1
        has_parts |= is_partial(block)
        has_deletes |= block.block_type is BlockType.DELETE
        times.add(positions_in(block))
    has_copies = _has_copies(storage, file_slice, times)
    return Blocks(count=count, has_parts=has_parts, has_copies=has_copies, has_deletes=has_deletes)


def _has_copies(storage: Storage, file_slice: FileSlice, times: set[str | None]) -> bool:
    """Whether its base file, whose time is the only one of *times* (see `positions_in`), holds a key several times."""
    base = file_slice.base_file
    if base is None or times != {base.instant_time}:
        return False
    with storage.open_read(join_path(file_slice.partition_path, base.name)) as stream:
        return has_copies(read_keys(stream))


def merge_slice(job: LogCompactionJob, work: MergeWork) -> WrittenFile:
    """
    Write the new log file.

    Raises:
        CorruptMetadata, UnsupportedTable: A log file is damaged, or holds what is not merged without the base file.
        WriteError: A stored value does not fit the schema.
        ConflictError: Another process took this attempt over.
        StorageError: The storage failed.
    """
    started = MONOTONIC()
    rewrite, planned = job.rewrite, work.planned
    storage, base = job.storage, work.there.base_file
    target = LogTarget(
        file_slice=LogSlice(
            partition_path=planned.partition_path,
            file_id=planned.file_id,
            base_instant_time=planned.base_instant_time,
            base_file="" if base is None else base.name,
            logs=work.there.log_files,
        ),
        write_token=rewrite.new_token(),
        instant_time=job.instant_time,
        tells_slice=job.tells_slice,
        records_slice=job.records_slice,
    )
    reading = attrs.evolve(rewrite.reading, until=job.instant_time)
    columns = chosen_columns(rewrite.schema, None, with_meta=True)
    blocks = list(blocks_of(storage, planned, reading))
    shape = reading.shape(columns)
    records = list(records_of(blocks, shape))
    where = f"{storage.root}/{join_path(planned.partition_path, planned.file_id)}"
    if reading.rules.filling is not None or any(each.columns is not None for each in records):
        raise UnsupportedTable(
            f"{where} has updates of some columns, which only a compaction merges; run hudi-py compact"
        )
    if not job.takes_deletes and any(block.block_type is BlockType.DELETE for block, _ in blocks):
        raise UnsupportedTable(f"{where}: {DELETED_TWICE}; run hudi-py compact")
    if _has_copies(storage, work.there, {each.positions_in for each in records}):
        raise UnsupportedTable(
            f"{where} has a base file that holds a key several times; its log files change all of these rows, and a "
            "merged block would change the first one only; run hudi-py compact"
        )
    merged = merge_records(records, shape, reading.rules)
    rows = _rows(merged, columns, reading, where)
    gone = np.flatnonzero(merged.kinds >= Kind.DELETE)
    at: Any = pa.array(gone)
    deleted = list(
        deleted_keys(merged.keys.take(at), [each.take(at) for each in merged.ordering], planned.partition_path)
    )
    times = tuple(dict.fromkeys(block.header[HeaderKey.INSTANT_TIME] for block, _ in blocks))
    content = encode_merged_log(rows, deleted, times, target, rewrite.avro_schema, job.options)
    # As each release writes them, see `hudi_py.writing.files`.
    kind = MarkerType.APPEND if job.tells_slice else MarkerType.CREATE
    create_marker(storage, job.instant_time, Marker(planned.partition_path, target.name, kind))
    withdraw_if_fenced(rewrite, target.path)
    try:
        storage.create_new(target.path, content)
    except AlreadyExists:
        raise ConflictError(f"{storage.root}/{target.path} was written by another process meanwhile") from None
    withdraw_if_fenced(rewrite, target.path)
    elapsed_ms = round((MONOTONIC() - started) * 1000)
    stat = log_stat(target, rows=rows.num_rows, deleted=len(deleted), size_bytes=len(content), elapsed_ms=elapsed_ms)
    logged = sum(len(each.keys) for each in records)
    stat = attrs.evolve(
        stat,
        prev_commit=planned.base_instant_time,
        total_log_records=logged,
        total_log_blocks=len(blocks),
        total_log_files_compacted=len(planned.log_files),
        total_log_size_compacted=sum(log.size_bytes or 0 for log in planned.log_files),
        total_updated_records_compacted=len(merged),
    )
    ranged = rewrite.options.ranged
    return WrittenFile(stat, ranges=ranges_of_rows([rows], ranged) if ranged else ())


def _rows(merged: MergedLogs, columns: pa.Schema, reading: LogReading, where: str) -> pa.RecordBatch:
    """
    Return the rows to store, in the order of the table's columns.

    Raises:
        UnsupportedTable: A row marks a deletion in a column that the table does not have.
    """
    at = np.flatnonzero(merged.kinds <= Kind.FLAGGED)
    wanted: Any = pa.array(at)
    taken = merged.rows.take(wanted).select(columns.names).combine_chunks()
    batches = taken.to_batches()
    found = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=taken.schema)
    rows = conform_stored(found, columns)
    is_flagged = merged.kinds[at] == Kind.FLAGGED
    if not np.array_equal(flagged_rows(rows, reading.rules.delete_marker), is_flagged):
        raise UnsupportedTable(
            f"{where} has rows that mark deletions in a column that the table does not have, and a merged block would "
            "lose the mark; run hudi-py compact, which merges them with the base file"
        )
    return rows

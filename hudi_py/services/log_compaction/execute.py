"""
Merges the log blocks of one file slice into one new log file: what a task does, on a thread or on a Spark executor.

Rows keep their meta columns. A key has one record: its row, or its deletion with the ordering values that it had, so
that merging goes on from it as from the blocks before (see `hudi_py.rows.log_merge`). Memory: the log records of the
slice as far as they may be held (`LogReading.memory_bytes`), else a part of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from hudi_py.errors import UnsupportedTable
from hudi_py.formats.delete_block import DeletedKey
from hudi_py.formats.log_block import BlockType, HeaderKey, LogBlock
from hudi_py.formats.stored_values import conform_stored
from hudi_py.model.files import FileSlice, join_path
from hudi_py.rows.log_file import LogFileOptions, LogSlice, LogTarget, deleted_keys, log_stat
from hudi_py.rows.log_merge import MergedLogs, merge_records
from hudi_py.rows.log_parts import LogParts, held_or_in_parts
from hudi_py.rows.log_reading import LogReading, are_by_position, blocks_of, headers_of
from hudi_py.rows.log_records import Kind, LogRecords, RecordShape, flagged_rows, is_partial, positions_in, records_of
from hudi_py.rows.lookup import read_keys
from hudi_py.rows.merged_log_file import MergedLogWriter
from hudi_py.rows.positions import has_copies
from hudi_py.rows.read import chosen_columns
from hudi_py.rows.written import WrittenFile
from hudi_py.runtime.clock import MONOTONIC
from hudi_py.services.log_compaction.plan import DELETED_TWICE, Blocks
from hudi_py.services.rewriting.tasks import RewriteJob, withdraw_if_fenced
from hudi_py.storage.base import Storage
from hudi_py.timeline.markers import Marker, MarkerType, create_marker

_PARTS_OF_ROWS: Final = "has updates of some columns, which only a compaction merges; run hudi-py compact"


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
    count, has_parts, has_deletes, is_merged, times = 0, False, False, True, set[str | None]()
    for _, block in headers_of(storage, file_slice, reading):
        count += 1
        is_merged &= bool(block.header.get(HeaderKey.COMPACTED_BLOCK_TIMES))
        has_parts |= is_partial(block)
        has_deletes |= block.block_type is BlockType.DELETE
        times.add(positions_in(block))
    has_copies = _has_copies(storage, file_slice, times)
    return Blocks(count=count, has_parts=has_parts, has_copies=has_copies, has_deletes=has_deletes, is_merged=is_merged)


def _has_copies(storage: Storage, file_slice: FileSlice, times: set[str | None]) -> bool:
    """Whether its base file, whose time is the only one of *times* (see `positions_in`), holds a key several times."""
    base = file_slice.base_file
    if base is None or not are_by_position(times, file_slice):
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
    shape = reading.shape(columns)
    where = f"{storage.root}/{join_path(planned.partition_path, planned.file_id)}"
    with ExitStack() as stack:
        blocks = _Blocks(job, where)
        records = blocks.watched(blocks_of(storage, planned, reading), shape)
        # All are read before any is written: the header of the first new block names all of the old ones.
        found = held_or_in_parts(records, shape, reading.memory_bytes, reading.spill_folder, stack)
        if _has_copies(storage, work.there, blocks.positions_in):
            raise UnsupportedTable(
                f"{where} has a base file that holds a key several times; its log files change all of these rows, and "
                "a merged block would change the first one only; run hudi-py compact"
            )
        # As each release writes them, see `hudi_py.writing.files`.
        kind = MarkerType.APPEND if job.tells_slice else MarkerType.CREATE
        create_marker(storage, job.instant_time, Marker(planned.partition_path, target.name, kind))
        withdraw_if_fenced(rewrite, target.path)
        with storage.open_write(target.path) as sink:
            writer = MergedLogWriter(
                sink,
                tuple(blocks.times),
                job.instant_time,
                rewrite.avro_schema,
                columns,
                job.options,
                rewrite.options.ranged,
            )
            for part in found.read() if isinstance(found, LogParts) else (found,):
                merged = merge_records(part, shape, reading.rules)
                writer.write(_rows(merged, columns, reading, where), _deleted(merged, planned.partition_path))
            writer.finish()
    withdraw_if_fenced(rewrite, target.path)
    elapsed_ms = round((MONOTONIC() - started) * 1000)
    stat = log_stat(
        target, rows=writer.num_rows, deleted=writer.num_deleted, size_bytes=writer.size_bytes, elapsed_ms=elapsed_ms
    )
    stat = attrs.evolve(
        stat,
        prev_commit=planned.base_instant_time,
        total_log_records=blocks.num_records,
        total_log_blocks=blocks.count,
        total_log_files_compacted=len(planned.log_files),
        total_log_size_compacted=sum(log.size_bytes or 0 for log in planned.log_files),
        total_updated_records_compacted=writer.num_rows + writer.num_deleted,
    )
    return WrittenFile(stat, ranges=writer.ranges())


@attrs.define
class _Blocks:
    """The blocks of a slice as they go by: what is not merged without the base file is refused."""

    job: LogCompactionJob
    where: str
    times: dict[str, None] = attrs.field(factory=dict)  # in the order of the blocks
    positions_in: set[str | None] = attrs.field(factory=set)
    count: int = 0
    num_records: int = 0

    def watched(self, blocks: Iterator[tuple[LogBlock, str]], shape: RecordShape) -> Iterator[LogRecords]:
        if not self.job.rewrite.reading.rules.merges_logs_alone:
            raise UnsupportedTable(f"{self.where} {_PARTS_OF_ROWS}")
        for records in records_of(self._counted(blocks), shape):
            if records.columns is not None:
                raise UnsupportedTable(f"{self.where} {_PARTS_OF_ROWS}")
            self.positions_in.add(records.positions_in)
            self.num_records += len(records.keys)
            yield records

    def _counted(self, blocks: Iterator[tuple[LogBlock, str]]) -> Iterator[tuple[LogBlock, str]]:
        for block, source in blocks:
            if block.block_type is BlockType.DELETE and not self.job.takes_deletes:
                raise UnsupportedTable(f"{self.where}: {DELETED_TWICE}; run hudi-py compact")
            self.times.setdefault(block.header[HeaderKey.INSTANT_TIME])
            self.count += 1
            yield block, source


def _deleted(merged: MergedLogs, partition: str) -> Iterator[DeletedKey]:
    at: Any = pa.array(np.flatnonzero(merged.kinds >= Kind.DELETE))
    return deleted_keys(merged.keys.take(at), [each.take(at) for each in merged.ordering], partition)


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
    if not np.array_equal(
        flagged_rows(rows, reading.rules.delete_marker, any_case=reading.rules.marks_any_case), is_flagged
    ):
        raise UnsupportedTable(
            f"{where} has rows that mark deletions in a column that the table does not have, and a merged block would "
            "lose the mark; run hudi-py compact, which merges them with the base file"
        )
    return rows

"""
Streams the rows of file slices: base files merged with their log files.

In memory are the records of the log files, merged by key, and of the base file the keys of one row group and one batch
of rows. Rows whose key is not in the logs are passed on unchanged. Rows with a newer version in the logs are left out;
the newer versions follow at the end of the slice. With a limit of memory (`LogReading.memory_bytes`), more records of
log files go through temporary files, in parts by key.

Source: rules/data-files 9; Hudi 1.1.1 ``KeyBasedFileGroupRecordBuffer``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import attrs
import pyarrow as pa

from hudi_py.errors import ConfigError, UnsupportedTable
from hudi_py.model.files import FileSlice
from hudi_py.rows.base_under_logs import BaseUnderLogs, base_under_logs
from hudi_py.rows.log_merge import MergedLogs
from hudi_py.rows.log_reading import LogReading, PartsOfRows, load_logs
from hudi_py.rows.meeting import MergeCount, Pending
from hudi_py.rows.parts_merger import PartsMerger
from hudi_py.rows.predicate import filtered
from hudi_py.rows.read import FileCount, read_batches
from hudi_py.rows.spill import SpillFolderError

if TYPE_CHECKING:
    from hudi_py.formats.bloom import HashedKeys
    from hudi_py.rows.predicate import RowFilter
    from hudi_py.storage.base import Storage


def read_slices(
    storage: Storage,
    slices: Sequence[FileSlice],
    schema: pa.Schema,
    logs: LogReading | None,
    filters: Sequence[RowFilter] = (),
    count: FileCount | None = None,
    keys: HashedKeys | None = None,
    *,
    use_threads: bool = True,
) -> Iterator[pa.RecordBatch]:
    """
    Stream the rows of file slices.

    Args:
        storage: The table's storage.
        slices: File slices of a snapshot; change files among their logs are passed over.
        schema: Columns to return, see `hudi_py.rows.read.chosen_columns`.
        logs: How log files are read; None where no slice has any.
        filters: Conditions on columns of *schema*.
        count: Files read and skipped are added to it.
        keys: The only record keys that rows meeting *filters* can have; None if unknown.
        use_threads: As for `hudi_py.rows.read.read_batches`.

    Raises:
        CorruptMetadata: A file is damaged, or its values do not fit the columns.
        UnsupportedTable: A log file has blocks that are not supported.
    """
    count = FileCount() if count is None else count
    for file_slice in slices:
        if logs is not None and any(not log.is_cdc for log in file_slice.log_files):
            count.read += 1
            yield from merged_rows(storage, file_slice, schema, logs, filters)
        elif file_slice.base_file is not None:
            files = [(file_slice.partition_path, file_slice.base_file)]
            yield from read_batches(storage, files, schema, filters, count, keys, use_threads=use_threads)


def merged_rows(
    storage: Storage,
    file_slice: FileSlice,
    schema: pa.Schema,
    reading: LogReading,
    filters: Sequence[RowFilter] = (),
    merges: MergeCount | None = None,
) -> Iterator[pa.RecordBatch]:
    """
    Stream the rows of one file slice with log files.

    Args:
        storage, file_slice, schema, reading, filters: As for `read_slices`.
        merges: Counts rows; complete after the last batch.

    Raises:
        CorruptMetadata, UnsupportedTable: As `read_slices`.
        SpillError, SpillFolderError: Log records do not fit into memory, and there is no temporary file for them.
    """
    try:
        yield from _merged(storage, file_slice, schema, reading, filters, merges or MergeCount())
    except SpillFolderError:
        raise
    except ConfigError as error:  # an ordering field of a type without order
        raise UnsupportedTable(f"{storage.root}: the log files cannot be merged: {error}") from error


def _merged(
    storage: Storage,
    file_slice: FileSlice,
    schema: pa.Schema,
    reading: LogReading,
    filters: Sequence[RowFilter],
    merges: MergeCount,
) -> Iterator[pa.RecordBatch]:
    with ExitStack() as stack:
        try:
            logs = load_logs(storage, file_slice, reading.shape(schema), reading, stack)
        # An update of some columns needs the row that it updates, which is in files from before the range.
        except PartsOfRows:
            file_slice = _whole_slice(file_slice, reading)
            # The filter takes the rows of those commits from the merged ones.
            reading = attrs.evolve(reading, only=None, groups=None)
            logs = load_logs(storage, file_slice, reading.shape(schema), reading, stack)
        base = stack.enter_context(base_under_logs(storage, file_slice, schema, reading, filters))
        if isinstance(logs, MergedLogs):
            merged = _in_memory(logs, base, schema, reading, merges)
        else:
            merged = _in_parts(logs, base, stack.enter_context(PartsMerger(schema, reading, merges)))
        for batch in merged:
            yield filtered(batch, filters)


def _in_memory(
    logs: MergedLogs, base: BaseUnderLogs | None, schema: pa.Schema, reading: LogReading, merges: MergeCount
) -> Iterator[pa.RecordBatch]:
    pending = Pending(logs, reading, merges)
    if base is not None:
        for number in base.row_groups():
            yield from base.shown(number, base.met(number, pending), logs)
    yield from pending.rest(schema)


def _in_parts(parts: Iterator[MergedLogs], base: BaseUnderLogs | None, merger: PartsMerger) -> Iterator[pa.RecordBatch]:
    for part in parts:
        merger.meet(part, base)
    if base is not None:
        for number in base.row_groups():
            yield from base.shown(number, *merger.effect(number))
    yield from merger.rest()


def _whole_slice(file_slice: FileSlice, reading: LogReading) -> FileSlice:
    """The slice with the files from before a range; itself where they are not known."""
    return reading.whole.get((file_slice.partition_path, file_slice.file_id), file_slice)

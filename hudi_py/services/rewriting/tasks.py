"""
Writes the rows of one file slice to the next base file of its group; what runs on executors.

Memory: the records of the slice's log files as far as they may be held (`LogReading.memory_bytes`), and one row group
of rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs
import pyarrow as pa

from hudi_py.errors import ConflictError, UnsupportedTable
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.formats.stored_values import conform_stored
from hudi_py.fsview.foreign import why_not_rewritten
from hudi_py.model.files import FileSlice
from hudi_py.rows.base_file import BaseFileOptions, BaseFileWriter
from hudi_py.rows.log_reading import LogReading
from hudi_py.rows.meeting import MergeCount
from hudi_py.rows.read import chosen_columns
from hudi_py.rows.slice_reader import merged_rows
from hudi_py.rows.written import FileTarget, WrittenFile, written_file
from hudi_py.runtime.clock import MONOTONIC
from hudi_py.runtime.randomness import MACHINE, Randomness
from hudi_py.storage.base import Storage
from hudi_py.timeline.fence import is_fenced
from hudi_py.timeline.markers import Marker, MarkerType, create_marker

COPIES: Final = 4
"""Of log records, while they are merged."""
_KEY, _COMMIT_TIME, _SEQUENCE_NUMBER = (
    META_COLUMNS.index(name) for name in ("_hoodie_record_key", "_hoodie_commit_time", "_hoodie_commit_seqno")
)


@attrs.frozen(kw_only=True)
class RewriteJob:
    """
    A rewrite, with all that its tasks need.

    Args:
        storage: Storage of the table.
        instant_time: Requested time of the rewrite.
        schema: Storage schema of the rows, without meta columns.
        avro_schema: The same as Avro text.
        options: Layout of base files.
        reading: How log files are read.
        word: What it is, for messages.
        randomness: Source of write tokens; on other machines, tasks use the source of that machine.
    """

    storage: Storage
    instant_time: str
    schema: pa.Schema
    avro_schema: str
    options: BaseFileOptions
    reading: LogReading
    word: str
    randomness: Randomness = MACHINE

    def new_token(self) -> str:
        """Return a write token that no other attempt has, of this process or of another."""
        first, second = (int.from_bytes(self.randomness(4), "big") >> 1 for _ in range(2))
        return f"{first}-{second}-0"


def refuse_other_formats(storage: Storage, slices: Iterable[FileSlice]) -> None:
    """
    Refuse what a stored plan names and no plan of hudi_py would.

    Raises:
        UnsupportedTable: A base file is not in Parquet.
    """
    for each in slices:
        reason = why_not_rewritten(each)
        if reason is not None:
            raise UnsupportedTable(
                f"{storage.root}: {each.file_id} of partition {each.partition_path!r} is not rewritten: {reason}; "
                "carry the plan out with Apache Hudi"
            )


def compact_slice(job: RewriteJob, file_slice: FileSlice) -> WrittenFile:
    """
    Write the rows of a slice to a new base file of the same file group; rows keep their meta columns.

    Args:
        job: The rewrite.
        file_slice: With sizes; its log files are those to merge.

    Raises:
        CorruptMetadata, UnsupportedTable: A file of the slice is damaged, or holds what is not read.
        WriteError: A stored value does not fit the schema.
        StorageError: The storage failed.
        ConflictError: Another process took this attempt for dead and completed the compaction.
    """
    refuse_other_formats(job.storage, [file_slice])
    started = MONOTONIC()
    base = file_slice.base_file
    target = FileTarget(
        partition_path=file_slice.partition_path,
        file_id=file_slice.file_id,
        write_token=job.new_token(),
        instant_time=job.instant_time,
    )
    # As Hudi marks them: its rollback by markers deletes either kind in the same way (B.3).
    kind = MarkerType.CREATE if base is None else MarkerType.MERGE
    create_marker(job.storage, job.instant_time, Marker(file_slice.partition_path, target.name, kind))
    withdraw_if_fenced(job, target.path)
    # Meta columns too: a row that is merely moved keeps its key, commit time and number (rules/data-files 3).
    columns, merges = chosen_columns(job.schema, None, with_meta=True), MergeCount()
    with job.storage.open_write(target.path) as sink:
        writer = BaseFileWriter(sink, target, job.schema, job.avro_schema, job.options)
        try:
            for batch in merged_rows(job.storage, file_slice, columns, job.reading, merges=merges):
                meta = batch.columns[: len(META_COLUMNS)]
                rows = pa.RecordBatch.from_arrays(batch.columns[len(META_COLUMNS) :], names=job.schema.names)
                writer.write_rows(
                    conform_stored(rows, job.schema), meta[_KEY], meta[_COMMIT_TIME], meta[_SEQUENCE_NUMBER]
                )
            size_bytes = writer.close()
        except BaseException:
            writer.abandon()
            raise
    withdraw_if_fenced(job, target.path)
    result = written_file(
        target,
        rows=writer.num_rows,
        size_bytes=size_bytes,
        elapsed_ms=round((MONOTONIC() - started) * 1000),
        previous=base,
        inserted=merges.inserted,
        updated=merges.updated,
        deleted=merges.deleted,
        ranges=writer.ranges(),
    )
    stat = attrs.evolve(
        result.stat,
        total_log_records=merges.logged,
        total_log_files_compacted=len(file_slice.log_files),
        total_log_size_compacted=sum(log.size_bytes or 0 for log in file_slice.log_files),
        total_updated_records_compacted=merges.updated,
    )
    return attrs.evolve(result, stat=stat)


def withdraw_if_fenced(job: RewriteJob, path: str) -> None:
    """
    Delete a file that would have the time of a completed rewrite: readers would take it for one of its files.

    Raises:
        ConflictError: Another process took this attempt for dead and completed the rewrite; the file is deleted.
    """
    if is_fenced(job.storage, job.instant_time):
        job.storage.delete_many([path])
        raise ConflictError(
            f"another process has carried out the {job.word} {job.instant_time}; nothing of this attempt is left"
        )

"""
Rewrites one group of a clustering: what a task does, on a thread or on a Spark executor.

Each attempt writes files with ids of its own, so that a task that is repeated, or goes on although it was given up,
never writes to a file of another one. A marker names each file before it is created; the completion deletes files that
no result names. Before and behind each file the task looks for the fence that a completion puts up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import BinaryIO

import attrs
import pyarrow as pa

from hudi_py.errors import ConflictError, CorruptMetadata, SpillError, WriteError
from hudi_py.model.files import FileSlice, join_path
from hudi_py.model.words import counted
from hudi_py.rows.base_file import BaseFileOptions
from hudi_py.rows.log_reading import LogReading
from hudi_py.rows.pieces import Pieces
from hudi_py.rows.read import open_parquet
from hudi_py.rows.rewrite import move_rows, stored_columns
from hudi_py.rows.row_order import RowOrder, sort_rows
from hudi_py.rows.slice_reader import read_slices
from hudi_py.rows.written import FileTarget, WrittenFile
from hudi_py.runtime.randomness import MACHINE, Randomness, new_uuid
from hudi_py.services.rewriting.tasks import refuse_other_formats
from hudi_py.storage.base import Storage
from hudi_py.timeline.fence import is_fenced
from hudi_py.timeline.markers import Marker, MarkerType, create_marker


@attrs.frozen(kw_only=True)
class ClusteringJob:
    """
    A clustering, with all that its tasks need. Pickled for executors.

    Args:
        storage: Storage of the table.
        instant_time: Requested time of the clustering.
        schema: Storage schema of the rows, without meta columns.
        avro_schema: The same as Avro text.
        logs: How log files are read; None where no slice has any.
        options: Layout of base files; their maximum size is the target size.
        order: Order of the rows; None as they come.
        memory_bytes: Rows of larger groups are sorted by way of temporary files.
        spill_folder: Folder of these files; None for the machine's.
        randomness: Source of ids for new file groups.
    """

    storage: Storage
    instant_time: str
    schema: pa.Schema
    avro_schema: str
    logs: LogReading | None
    options: BaseFileOptions
    order: RowOrder | None = None
    memory_bytes: int
    spill_folder: str | None = None
    randomness: Randomness = MACHINE


@attrs.frozen(kw_only=True)
class GroupWork:
    """
    One group of the plan.

    Args:
        number: Of the group within the plan.
        partition_path: The partition.
        slices: The file slices, with sizes.
        outputs: Number of files to write.
    """

    number: int
    partition_path: str
    slices: tuple[FileSlice, ...]
    outputs: int


def rewrite_group(job: ClusteringJob, work: GroupWork) -> list[WrittenFile]:
    """
    Write the rows of a group to new files.

    Returns:
        The new files; none if the group has no rows.

    Raises:
        CorruptMetadata, UnsupportedTable: A file cannot be read, or rows were lost on the way.
        ConflictError: The clustering was completed by another process; the files of this task were deleted.
        SpillError: Rows do not fit into memory, and the temporary file for them failed.
        StorageError: The storage failed.
    """
    refuse_other_formats(job.storage, work.slices)
    files = _Files(job, work)
    count = _Count()

    def read(schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        return read_slices(job.storage, work.slices, schema, job.logs)

    columns = stored_columns(job.schema)
    try:
        if job.order is None:
            pieces = Pieces(((batch, None) for batch in count.counted(read(columns))), _rows_per_file(job, work))
        else:
            found = sort_rows(read, columns, job.order, job.memory_bytes, job.spill_folder)
            count.rows = found.count
            share = -(-found.count // work.outputs) if work.outputs > 1 else None
            pieces = Pieces(found.batches, share, found.ends(work.outputs))
        written = move_rows(pieces, files.open, schema=job.schema, avro_schema=job.avro_schema, options=job.options)
    except SpillError:  # the disk of this machine, not the table
        raise
    # The rows were in the table before, so what does not fit its schema is damage.
    except WriteError as error:
        raise CorruptMetadata(f"{job.storage.root}: partition {work.partition_path!r}: {error}") from error
    files.withdraw_if_fenced()
    total = sum(each.stat.num_writes for each in written)
    # Counted on both sides of sorting and splitting: the old groups are replaced, so a row that is lost here is lost.
    if total != count.rows:
        raise CorruptMetadata(
            f"{job.storage.root}: partition {work.partition_path!r}: {counted(count.rows, 'row')} read and "
            f"{total} written"
        )
    return written


@attrs.define
class _Count:
    """Counts rows that go by."""

    rows: int = 0

    def counted(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.rows += batch.num_rows
            yield batch


class _Files:
    """Names, announces and opens the files of one task."""

    def __init__(self, job: ClusteringJob, work: GroupWork) -> None:
        self._job = job
        self._work = work
        self._prefix = new_uuid(job.randomness)
        self._paths: list[str] = []

    def open(self, number: int) -> tuple[FileTarget, BinaryIO]:
        target = FileTarget(
            partition_path=self._work.partition_path,
            file_id=f"{self._prefix}-{number}",
            write_token=f"{self._work.number}-0-0",
            instant_time=self._job.instant_time,
        )
        storage = self._job.storage
        marker = Marker(target.partition_path, target.name, MarkerType.CREATE)
        # The marker before the fence is looked for: who puts up the fence afterwards finds the marker.
        create_marker(storage, self._job.instant_time, marker)
        self.withdraw_if_fenced()
        # Before it is opened: a file that was begun is deleted as well.
        self._paths.append(target.path)
        return target, storage.open_write(target.path)

    def withdraw_if_fenced(self) -> None:
        if is_fenced(self._job.storage, self._job.instant_time):
            self._job.storage.delete_many(self._paths)
            raise ConflictError(
                f"clustering {self._job.instant_time} was completed by another process while a group was still being "
                "written; the files of this group were deleted"
            )


def _rows_per_file(job: ClusteringJob, work: GroupWork) -> int | None:
    """Share the rows out evenly, where footers tell how many there are; log files do not tell it."""
    if work.outputs <= 1 or any(file_slice.log_files for file_slice in work.slices):
        return None
    # From footers, which are read again when the rows are: small files, and few bytes of each.
    rows = sum(map(partial(_rows_of, job.storage), _with_base(work.slices)))
    return max(1, -(-rows // work.outputs))


def _with_base(slices: Sequence[FileSlice]) -> list[FileSlice]:
    return [file_slice for file_slice in slices if file_slice.base_file is not None]


def _rows_of(storage: Storage, file_slice: FileSlice) -> int:
    assert file_slice.base_file is not None
    path = join_path(file_slice.partition_path, file_slice.base_file.name)
    with open_parquet(storage, path, file_slice.base_file) as file:
        return int(file.metadata.num_rows)

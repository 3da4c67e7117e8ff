"""
Writes the files of one task: creates a marker before each file, and checks the fence afterwards.

If a task dies, markers name the files that it leaves. Its retry writes files with another write token, and the commit
deletes the files that no task result names. A task that is still running although the write is over deletes its files
itself, see `hudi_py.timeline.fence`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

import attrs
import pyarrow as pa

from hudi_py.errors import AlreadyExists, ConflictError, WriteError
from hudi_py.formats.arrow_types import Array
from hudi_py.formats.partition_metafile import format_partition_metadata
from hudi_py.model.files import PARTITION_METAFILE, BaseFile, join_path, parse_base_file
from hudi_py.rows.change_log_file import ChangeLogEncoder, change_log_path
from hudi_py.rows.log_file import LogSlice, LogTarget, encode_log_file, written_log
from hudi_py.rows.lookup import read_keys
from hudi_py.rows.merge import RowChanges, merge_base_file
from hudi_py.rows.new_files import NewFiles, write_new_files
from hudi_py.rows.positions import RecordPositions, has_copies, rows_of_keys
from hudi_py.rows.written import FileTarget, WrittenFile
from hudi_py.runtime.clock import MONOTONIC
from hudi_py.timeline.fence import is_fenced
from hudi_py.timeline.markers import Marker, MarkerType, create_marker
from hudi_py.writing.job import TaskIdentity, WriteJob
from hudi_py.writing.nested import is_new_partition, refuse_nested
from hudi_py.writing.pieces import part_of


class TaskFiles:
    """
    Writes the files of one task; created by `task_files`.

    Args:
        job: The write.
        task: The task.
    """

    def __init__(self, job: WriteJob, task: TaskIdentity) -> None:
        self._job = job
        self._task = task
        self._paths: list[str] = []

    def merge(
        self,
        partition_path: str,
        previous: BaseFile,
        changes: RowChanges,
        new: Iterable[tuple[pa.RecordBatch, Array]] = (),
    ) -> WrittenFile:
        """
        Write the next slice of a file group: its rows with the changes applied, and the new rows.

        Args:
            partition_path: Partition of the group.
            previous: Its base file.
            changes: Its changes.
            new: See `merge_base_file`.
        """
        job = self._job
        if job.moved is not None:
            previous = attrs.evolve(previous, moved=job.moved.of(previous.instant_time))
        target = self._target(partition_path, previous.file_id)
        change_log = None
        if job.change_logs is not None:
            change_log = ChangeLogEncoder(job.change_logs, changes.rows.schema, job.avro_schema, job.instant_time)
        self._look_early(partition_path, previous.file_id)
        self._announce(partition_path, target.name, MarkerType.MERGE)
        with (
            job.storage.open_read(join_path(partition_path, previous.name)) as source,
            job.storage.open_write(target.path) as sink,
        ):
            result = merge_base_file(
                source,
                previous,
                changes,
                sink=sink,
                target=target,
                avro_schema=job.avro_schema,
                rules=job.rules,
                options=job.options,
                first_row_index=self._task.rows_written,
                append_only=not job.looks_up,
                change_log=change_log,
                new=new,
            )
        self._task.rows_written += result.stat.num_writes
        return result if change_log is None else self._with_change_log(result, target, change_log.finish())

    def _with_change_log(self, result: WrittenFile, target: FileTarget, content: bytes) -> WrittenFile:
        path = change_log_path(target)
        self._announce(target.partition_path, path.rpartition("/")[2], self._log_marker)
        self._job.storage.create_new(path, content)
        return attrs.evolve(result, stat=attrs.evolve(result.stat, cdc_stats={path: len(content)}))

    def append(self, file_slice: LogSlice, changes: RowChanges) -> WrittenFile:
        """
        Write the changes of a file group to a log file of its own.

        Raises:
            ConflictError: The file exists already: another process writes to the table.
        """
        job = self._job
        assert job.logs is not None
        self._look_early(file_slice.partition_path, file_slice.file_id)
        started = MONOTONIC()
        tells_slice = job.context.log_naming.tells_slice
        target = LogTarget(
            file_slice=file_slice,
            write_token=self._task.write_token,
            instant_time=job.instant_time,
            tells_slice=tells_slice,
            records_slice=tells_slice or job.change_logs is not None,
        )
        changes, positions = self._placed(file_slice, changes)
        content = encode_log_file(
            changes, target, job.avro_schema, job.logs.options, self._task.rows_written, positions
        )
        self._announce(file_slice.partition_path, target.name, self._log_marker)
        try:
            job.storage.create_new(target.path, content)
        except AlreadyExists:
            raise ConflictError(
                f"{job.storage.root}/{target.path} was written by another process meanwhile; this write was not "
                "committed, try again"
            ) from None
        elapsed_ms = round((MONOTONIC() - started) * 1000)
        result = written_log(
            target,
            changes,
            job.options,
            size_bytes=len(content),
            elapsed_ms=elapsed_ms,
            first_row_index=self._task.rows_written,
        )
        self._task.rows_written += result.stat.num_writes
        return result

    def _placed(self, file_slice: LogSlice, changes: RowChanges) -> tuple[RowChanges, RecordPositions | None]:
        """Return changes with one for each row of a key of which the base file has several, and where they are."""
        job = self._job
        base = parse_base_file(file_slice.base_file)
        if job.logs is None or not job.logs.options.has_positions or base is None:
            return changes, None
        if job.anywhere is not None or job.buckets is not None:  # indexes of Apache Hudi that know no positions
            return changes, None
        with job.storage.open_read(join_path(file_slice.partition_path, base.name)) as stream:
            stored = read_keys(stream)
        found = rows_of_keys(stored, changes.keys) if has_copies(stored) else None
        if found is None:
            return changes, None
        numbers, rows = found
        return part_of(changes, numbers), RecordPositions(base_instant_time=base.instant_time, rows=rows)

    def create(
        self,
        partition_path: str,
        batches: Iterable[tuple[pa.RecordBatch, Array]],
        *,
        prefix: str,
        has_metafile: bool = False,
    ) -> list[WrittenFile]:
        """
        Write rows into new file groups; a new group begins whenever a file has its maximum size.

        Args:
            partition_path: Partition of the groups.
            batches: Rows and their keys, consumed one batch at a time.
            prefix: File ids are ``<prefix>-0``, ``<prefix>-1``, ...
            has_metafile: Whether the partition is known to have its metafile.
        """
        return write_new_files(self.begin(partition_path, prefix=prefix, has_metafile=has_metafile), batches)

    def begin(self, partition_path: str, *, prefix: str, has_metafile: bool = False) -> NewFiles:
        """Return new file groups to write rows to; arguments as for `create`. Files of several may be open at once."""
        if not has_metafile:
            self._create_metafile(partition_path)

        def open_file(number: int) -> tuple[FileTarget, BinaryIO]:
            target = self._target(partition_path, f"{prefix}-{number}")
            # Of a group without a bucket nobody else has the id.
            if self._job.buckets is not None:
                self._look_early(partition_path, target.file_id)
            self._announce(partition_path, target.name, MarkerType.CREATE)
            return target, self._job.storage.open_write(target.path)

        return NewFiles(
            open_file,
            self._task.number_rows,
            schema=self._job.schema,
            avro_schema=self._job.avro_schema,
            options=self._job.options,
        )

    def withdraw_if_fenced(self) -> None:
        """
        If the write is over, delete all files of this task: their names have its instant, so they would become visible.

        Raises:
            ConflictError: The write is over.
        """
        if is_fenced(self._job.storage, self._job.instant_time):
            # Deleted by the task itself: the rollback or the commit that closed the write has read the markers already.
            self._job.storage.delete_many(self._paths)
            raise ConflictError(
                f"the write {self._job.instant_time} was closed while a task was still writing; its files were removed"
            )

    @property
    def _log_marker(self) -> MarkerType:
        # As each release of Hudi writes them. A rollback treats the two differently (rules/timeline 6.2; B-21): that of
        # 0.15.0 fails on a log file with the other one.
        return MarkerType.APPEND if self._job.context.log_naming.tells_slice else MarkerType.CREATE

    def _target(self, partition_path: str, file_id: str) -> FileTarget:
        return FileTarget(
            partition_path=partition_path,
            file_id=file_id,
            write_token=self._task.write_token,
            instant_time=self._job.instant_time,
        )

    def _look_early(self, partition_path: str, file_id: str) -> None:
        if self._job.early is not None:
            self._job.early.check(self._job.instant_time, (partition_path, file_id))

    def _announce(self, partition_path: str, name: str, kind: MarkerType) -> None:
        marker = Marker(partition_path, name, kind)
        # Marker, then fence: whoever closes the write puts up the fence before it reads the markers, so either it sees
        # this marker or the task sees the fence.
        create_marker(self._job.storage, self._job.instant_time, marker)
        self.withdraw_if_fenced()
        self._paths.append(marker.path)

    def _create_metafile(self, partition_path: str) -> None:
        """Create the partition's metafile. Before the data, because readers ignore a partition without it."""
        job = self._job
        if not is_new_partition(job.storage, partition_path):
            refuse_nested(job, [partition_path], new=())
            return
        # Before the file is there, which would hide the partitions below it.
        refuse_nested(job, [partition_path], new=[partition_path])
        text = format_partition_metadata(partition_path, instant_time=job.instant_time, written_at=job.clock.now())
        metafile = join_path(partition_path, PARTITION_METAFILE)
        try:
            job.storage.create_new(metafile, text)
        except AlreadyExists:  # another task of this write has rows of the same partition
            return
        try:
            refuse_nested(job, [partition_path], new=[partition_path])
        except WriteError:  # another task of this write made it at the same moment: none of its rows are committed
            job.storage.delete_many([metafile])
            raise


@contextmanager
def task_files(job: WriteJob, task: TaskIdentity) -> Iterator[TaskFiles]:
    """Yield the files of a task, and check the fence once more at the end."""
    files = TaskFiles(job, task)
    yield files
    files.withdraw_if_fenced()

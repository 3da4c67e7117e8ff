"""
What a task of a write does with the rows it was given: find their file groups, write base files.

Runs on executors, so it knows no Spark and no timeline: `WriteJob` brings everything. All rows of one partition come to
one task (of one shard, see `WriteJob`), so no file group is written twice. A task that dies leaves files that markers
name; its retry writes under another token, and the commit removes what no result names.
"""

from __future__ import annotations

import hashlib
import itertools
import uuid
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.errors import AlreadyExists, ConflictError
from hudi_py.formats.arrow_types import Array
from hudi_py.formats.conform import conform_batch
from hudi_py.fsview.build import ViewContext, build_partition, latest_base_files
from hudi_py.model.files import PARTITION_METAFILE, BaseFile, join_path
from hudi_py.runtime.clock import SystemClock
from hudi_py.storage.base import Storage
from hudi_py.timeline.markers import Marker, MarkerType, create_marker
from hudi_py.write.assign import Bucket, ExistingFile, SizingLimits, assign_buckets, spread_inserts
from hudi_py.write.base_file import BaseFileOptions, FileTarget, FileWriteResult, write_new_files
from hudi_py.write.keys import KeyGenerator
from hudi_py.write.lookup import lookup_keys
from hudi_py.write.merge import Changes, combine_changes, key_deletes, merge_base_file
from hudi_py.write.partition_meta import format_partition_metadata
from hudi_py.write.precedence import MergeRules, delete_mask


@attrs.frozen(kw_only=True)
class WriteJob:
    """
    One write, as every task needs to know it.

    Args:
        storage: Of the table.
        instant_time: Requested time of the commit.
        operation: ``UPSERT``, ``INSERT``, ``BULK_INSERT`` or ``DELETE``.
        context: The table's view before this commit.
        schema: Storage schema.
        avro_schema: The same as Avro text.
        keys: How records and partitions are named.
        rules: Which of two rows wins.
        options: Layout of base files.
        limits: Sizing of file groups.
        record_bytes: Average size of a stored row.
        combine: Keep one row per key before an insert.
    """

    storage: Storage
    instant_time: str
    operation: str
    context: ViewContext
    schema: pa.Schema
    avro_schema: str
    keys: KeyGenerator
    rules: MergeRules
    options: BaseFileOptions
    limits: SizingLimits
    record_bytes: int
    combine: bool = False


@attrs.define
class TaskIdentity:
    """
    Who writes: makes write tokens and counts rows, so that no two files and no two rows share a name.

    Args:
        partition_id, stage_id, attempt_id: Of the task; the attempt differs between retries.
    """

    partition_id: int
    stage_id: int
    attempt_id: int
    rows_written: int = 0

    @property
    def write_token(self) -> str:
        """Part of the names of all files that this task writes."""
        return f"{self.partition_id}-{self.stage_id}-{self.attempt_id}"


class Piece(NamedTuple):
    """Some rows of one partition, keys beside them."""

    partition_path: str
    rows: pa.RecordBatch
    keys: Array


def run_task(job: WriteJob, batches: Iterable[pa.RecordBatch], task: TaskIdentity) -> Iterator[FileWriteResult]:
    """
    Write all rows of a task.

    Args:
        batches: Rows of the user's schema; rows of one partition stand together.
        task: Who is writing.

    Raises:
        WriteError, ConfigError: Rows that cannot be written.
        ConflictError: A file group is being clustered.
        StorageError: The storage refused.
    """
    for path, pieces in itertools.groupby(_pieces(job, batches), key=lambda piece: piece.partition_path):
        if job.operation == "BULK_INSERT":
            yield from _write_new(job, path, ((piece.rows, piece.keys) for piece in pieces), task)
        else:
            yield from _PartitionWrite(job, path, list(pieces), task).run()


def _pieces(job: WriteJob, batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
    """Conform rows, name them, and cut them where the partition changes."""
    for batch in batches:
        if not batch.num_rows:
            continue
        keys, paths = job.keys.record_keys(batch), job.keys.partition_paths(batch)
        rows = batch if job.operation == "DELETE" else conform_batch(batch, job.schema)
        for start, stop, path in _runs(paths):
            yield Piece(path, rows.slice(start, stop - start), keys.slice(start, stop - start))


def _runs(paths: Array) -> Iterator[tuple[int, int, str]]:
    """Start, stop and value of each run of equal values."""
    codes: Any = paths.dictionary_encode()
    values = codes.indices.to_numpy(zero_copy_only=False)
    edges = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    for start, stop in itertools.pairwise(edges):
        yield start, stop, codes.dictionary[values[start]].as_py()


class _PartitionWrite:
    """Upsert, insert or delete in one partition."""

    def __init__(self, job: WriteJob, path: str, pieces: list[Piece], task: TaskIdentity) -> None:
        self.job = job
        self.task = task
        self.path = path
        entries = [e for e in job.storage.list(self.path, details=True) if not e.is_folder]
        self.has_metafile = any(e.name.startswith(PARTITION_METAFILE) for e in entries)
        view = build_partition(job.context, self.path, ((e.name, e.size_bytes) for e in entries))
        self.latest = {base.file_id: base for base in latest_base_files(job.context, view)}
        self.changes = self._changes(pieces)

    def run(self) -> Iterator[FileWriteResult]:
        owners = self._owners()
        is_delete = self._is_delete()
        inserts = np.flatnonzero((owners < 0) & ~is_delete)
        file_ids = list(self.latest)
        updated = {file_ids[position] for position in np.unique(owners[owners >= 0])}
        self._refuse_clustering(updated)
        buckets = assign_buckets(
            inserts={self.path: len(inserts)},
            updated={self.path: updated},
            existing={self.path: self._small_files()},
            record_bytes=self.job.record_bytes,
            limits=self.job.limits,
            new_file_id=lambda: f"{uuid.uuid4()}-0",
        )
        chosen = self._chosen(inserts, buckets)
        for position, bucket in enumerate(buckets):
            mine = inserts[chosen == position]
            if bucket.is_new:
                yield from self._create(mine)
                continue
            old = np.flatnonzero(owners == file_ids.index(bucket.file_id))
            if len(old) + len(mine):
                yield self._merge(self.latest[bucket.file_id], np.concatenate([old, mine]))

    def _changes(self, pieces: list[Piece]) -> Changes:
        keys: Any = pa.concat_arrays([piece.keys for piece in pieces])
        if self.job.operation == "DELETE":
            return key_deletes(keys.unique(), self.job.schema)
        rows = pa.Table.from_batches([piece.rows for piece in pieces])
        deletes = delete_mask(rows)
        if self.job.operation == "INSERT" and not self.job.combine:
            return Changes(rows.combine_chunks().to_batches()[0], keys, deletes)
        return combine_changes(rows, keys, self.job.rules, deletes)

    def _is_delete(self) -> npt.NDArray[np.bool_]:
        deletes = self.changes.deletes
        if deletes is None:
            return np.zeros(len(self.changes.keys), dtype=np.bool_)
        mask: npt.NDArray[np.bool_] = deletes.to_numpy(zero_copy_only=False)
        return mask

    def _owners(self) -> npt.NDArray[np.int64]:
        """Per row the position of the file group that holds its key, -1 for none; inserts do not ask."""
        owners = np.full(len(self.changes.keys), -1, dtype=np.int64)
        if self.job.operation == "INSERT":
            return owners
        for position, base in enumerate(self.latest.values()):
            with self.job.storage.open_read(join_path(self.path, base.name)) as stream:
                found = lookup_keys(stream, self.changes.keys)
            owners[found & (owners < 0)] = position
        return owners

    def _small_files(self) -> list[ExistingFile]:
        """Groups that may take inserts: not those of a pending clustering (rule E-52)."""
        return [
            ExistingFile(file_id=base.file_id, size_bytes=base.size_bytes or 0)
            for base in self.latest.values()
            if (self.path, base.file_id) not in self.job.context.pending_clustering
        ]

    def _refuse_clustering(self, updated: set[str]) -> None:
        """Rule E-44: the rows would be lost with the group when the clustering completes."""
        for file_id in updated:
            clustering = self.job.context.pending_clustering.get((self.path, file_id))
            if clustering is not None:
                raise ConflictError(
                    f"file group {file_id} in partition {self.path!r} is waiting for clustering {clustering}; run or "
                    "roll back the clustering, then write again"
                )

    def _chosen(self, inserts: npt.NDArray[np.int64], buckets: tuple[Bucket, ...]) -> npt.NDArray[np.int64]:
        """Position of the bucket that each insert goes to."""
        taking = [position for position, bucket in enumerate(buckets) if bucket.num_inserts]
        if len(taking) <= 1:
            return np.full(len(inserts), taking[0] if taking else -1, dtype=np.int64)
        digests = [_hash(str(key)) for key in self._part(inserts).keys.to_pylist()]
        return spread_inserts(np.array(digests, dtype=np.uint64), buckets)

    def _part(self, positions: npt.NDArray[np.int64]) -> Changes:
        chosen: Any = pa.array(positions, pa.int64())
        deletes = self.changes.deletes
        return Changes(
            self.changes.rows.take(chosen),
            self.changes.keys.take(chosen),
            None if deletes is None else deletes.take(chosen),
        )

    def _merge(self, previous: BaseFile, positions: npt.NDArray[np.int64]) -> FileWriteResult:
        job = self.job
        target = FileTarget(
            partition_path=self.path,
            file_id=previous.file_id,
            write_token=self.task.write_token,
            instant_time=job.instant_time,
        )
        create_marker(job.storage, job.instant_time, Marker(self.path, target.name, MarkerType.MERGE))
        with (
            job.storage.open_read(join_path(self.path, previous.name)) as source,
            job.storage.open_write(target.path) as sink,
        ):
            result = merge_base_file(
                source,
                previous,
                self._part(positions),
                sink=sink,
                target=target,
                avro_schema=job.avro_schema,
                rules=job.rules,
                options=job.options,
                first_row_index=self.task.rows_written,
                append_only=job.operation == "INSERT",
            )
        self.task.rows_written += result.num_writes
        return result

    def _create(self, positions: npt.NDArray[np.int64]) -> list[FileWriteResult]:
        part = self._part(positions)
        return _write_new(self.job, self.path, [(part.rows, part.keys)], self.task, has_metafile=self.has_metafile)


def _hash(key: str) -> int:
    """64 well-mixed bits of a record key."""
    return int.from_bytes(hashlib.md5(key.encode(), usedforsecurity=False).digest()[:8], "big")


def _write_new(
    job: WriteJob,
    partition_path: str,
    batches: Iterable[tuple[pa.RecordBatch, Array]],
    task: TaskIdentity,
    *,
    has_metafile: bool = False,
) -> list[FileWriteResult]:
    """Write rows into new file groups, as many as their size asks for; batches are consumed as they are written."""
    if not has_metafile:
        _create_metafile(job, partition_path)
    prefix = uuid.uuid4()

    def open_file(number: int) -> tuple[FileTarget, BinaryIO]:
        target = FileTarget(
            partition_path=partition_path,
            file_id=f"{prefix}-{number}",
            write_token=task.write_token,
            instant_time=job.instant_time,
        )
        create_marker(job.storage, job.instant_time, Marker(partition_path, target.name, MarkerType.CREATE))
        return target, job.storage.open_write(target.path)

    results = write_new_files(batches, open_file, schema=job.schema, avro_schema=job.avro_schema, options=job.options)
    task.rows_written += sum(result.num_writes for result in results)
    return results


def _create_metafile(job: WriteJob, partition_path: str) -> None:
    """Without its metafile a partition does not exist for readers that list folders; it goes before the data."""
    text = format_partition_metadata(partition_path, instant_time=job.instant_time, written_at=SystemClock().now())
    try:
        job.storage.create_new(join_path(partition_path, PARTITION_METAFILE), text)
    except AlreadyExists:
        return

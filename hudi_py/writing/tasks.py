"""
Small writes in a single pass: a task gets all rows of its partitions, finds their file groups and writes them.

Runs on executors, so it uses neither Spark nor the timeline: `WriteJob` has everything it needs. All rows of a
partition come to one task, so that no file group is written twice. A task has its rows in memory; writes that are too
large for this are done by `hudi_py.writing.tag` and `hudi_py.writing.groups`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.config.duplicates import Duplicates
from hudi_py.formats.arrow_types import compute
from hudi_py.rows.bucket_index import BucketIndex
from hudi_py.rows.merge import RowChanges
from hudi_py.rows.written import WrittenFile
from hudi_py.writing.anywhere import placed_pieces
from hudi_py.writing.assign import Bucket, assign_buckets, spread_inserts
from hudi_py.writing.buckets import bucket_targets
from hudi_py.writing.duplicates import known_rows
from hudi_py.writing.files import TaskFiles, task_files
from hudi_py.writing.job import TaskIdentity, WriteJob
from hudi_py.writing.nested import refuse_nested
from hudi_py.writing.partition import PartitionFiles, load_partition
from hudi_py.writing.pieces import Piece, changes_of, is_delete_of, named_pieces, part_of

_FILES_MAX: Final = 64
_REWRITE_BYTES_MAX: Final = 256 * 1024 * 1024


class TooMuchForOneTask(Exception):
    """The rows of a task affect more files than one task should read or write; the task has written nothing."""


def run_task(
    job: WriteJob, batches: Iterable[pa.RecordBatch], task: TaskIdentity, *, is_alone: bool = False
) -> list[WrittenFile]:
    """
    Upsert, insert or delete all rows of a task.

    Args:
        job: The write.
        batches: Rows in the user's schema, in any order.
        task: The task.
        is_alone: Whether this is the only possible task; then it never raises `TooMuchForOneTask`.

    Raises:
        WriteError, ConfigError: Rows cannot be written.
        ConflictError: A file group is in a pending clustering, or the write is over.
        StorageError: The storage failed.
        TooMuchForOneTask: Nothing was written; the work should be split into more tasks.
    """
    pieces: dict[str, list[Piece]] = {}
    if job.anywhere is not None and job.searches:
        named = placed_pieces(job, job.anywhere, batches)
    else:
        named = named_pieces(job, batches)
    for piece in named:
        pieces.setdefault(piece.partition_path, []).append(piece)
    loaded = {path: load_partition(job, path) for path in pieces}
    refuse_nested(job, pieces.keys(), [path for path, partition in loaded.items() if not partition.has_metafile])
    # Both limits are checked before the first file is written, so that the work can still be split.
    files_max = max(_FILES_MAX, 4 * len(loaded))
    searches = job.searches and job.buckets is None and job.anywhere is None
    if searches and not is_alone and sum(len(partition.latest) for partition in loaded.values()) > files_max:
        raise TooMuchForOneTask
    # Popped, so that the rows as they came are released while their conformed changes are built.
    plans = [_plan(job, loaded[path], pieces.pop(path)) for path in sorted(pieces)]
    rewritten = [
        plan.partition.latest[file_id]
        for plan in plans
        for file_id, _ in plan.old
        if job.logs is None or file_id in plan.filled
    ]
    # A single file cannot be split among tasks, however large it is.
    if len(rewritten) > 1 and not is_alone and sum(base.size_bytes or 0 for base in rewritten) > _REWRITE_BYTES_MAX:
        raise TooMuchForOneTask
    with task_files(job, task) as files:
        return [result for plan in plans for result in _write(plan, files)]


@attrs.frozen
class _PartitionPlan:
    """
    What a task will write in one partition.

    Args:
        partition: The partition.
        changes: Changes to its rows.
        old: File ids of existing groups, with the positions of their changes in *changes*.
        filled: Those of them that get inserts, and so a new base file in a merge-on-read table too.
        new: Prefixes of the ids of new groups, with the positions of their changes.
    """

    partition: PartitionFiles
    changes: RowChanges
    old: list[tuple[str, npt.NDArray[np.int64]]]
    new: list[tuple[str, npt.NDArray[np.int64]]]
    filled: frozenset[str] = frozenset()


def _plan(job: WriteJob, partition: PartitionFiles, pieces: list[Piece]) -> _PartitionPlan:
    rows = pa.Table.from_batches([piece.rows for piece in pieces])
    keys = pa.chunked_array([piece.keys for piece in pieces])
    marked = None
    if any(piece.are_deletions for piece in pieces):
        marked = np.repeat([piece.are_deletions for piece in pieces], [piece.rows.num_rows for piece in pieces])
    is_placed = pieces[0].file_ids is not None
    changes = changes_of(job, rows, keys, combine=job.combines and not is_placed, marked=marked)
    if job.buckets is not None:
        return _plan_by_number(job, partition, job.buckets, changes)
    if is_placed:
        owners = _owners(partition, pieces)
    elif job.searches:
        found = partition.owners_of(job.storage, changes.keys)
        owners, copies = found.first, found.with_copies()
        if copies is not None and job.duplicates is Duplicates.ADDED:
            numbers, owners = copies
            changes = part_of(changes, numbers)  # several for one key, each of them to another group
    else:
        owners = np.full(len(changes.keys), -1, dtype=np.int64)
    if job.duplicates is not Duplicates.ADDED:
        kept = np.flatnonzero(~known_rows(job, partition, changes.keys, owners))
        changes, owners = part_of(changes, kept), np.full(len(kept), -1, dtype=np.int64)
    file_ids = partition.file_ids
    updated = {file_ids[position] for position in np.unique(owners[owners >= 0])}
    partition.refuse_clustering(updated)
    inserts = np.flatnonzero((owners < 0) & ~is_delete_of(changes))
    buckets = assign_buckets(
        inserts={partition.path: len(inserts)},
        updated={partition.path: updated},
        existing={partition.path: partition.candidates()},
        record_bytes=job.record_bytes,
        limits=job.limits,
        new_file_id=lambda: "",
    )
    chosen = _spread(changes, inserts, buckets)
    filled = frozenset(bucket.file_id for bucket in buckets if bucket.num_inserts and not bucket.is_new)
    plan = _PartitionPlan(partition, changes, [], [], filled)
    for position, bucket in enumerate(buckets):
        mine = inserts[chosen == position]
        if bucket.is_new:
            plan.new.append((job.new_uuid(), mine))
            continue
        # Updates and inserts of a group go into one new file, so that the group is rewritten once.
        old = np.flatnonzero(owners == file_ids.index(bucket.file_id))
        if len(old) + len(mine):
            plan.old.append((bucket.file_id, np.concatenate([old, mine])))
    return plan


def _owners(partition: PartitionFiles, pieces: list[Piece]) -> npt.NDArray[np.int64]:
    """Return the positions of the file groups that a global index found; -1 for a new key."""
    parts: list[Any] = [piece.file_ids for piece in pieces]
    file_ids: Any = pa.chunked_array(parts, pa.string())
    found: Any = compute.index_in(file_ids.combine_chunks(), value_set=pa.array(partition.file_ids, pa.string()))
    owners: npt.NDArray[np.int64] = found.fill_null(-1).to_numpy().astype(np.int64)
    return owners


def _plan_by_number(
    job: WriteJob, partition: PartitionFiles, buckets: BucketIndex, changes: RowChanges
) -> _PartitionPlan:
    """As `_plan`, if the key determines the file group: no file is searched, and sizes of files do not matter."""
    targets = bucket_targets(job, partition, buckets, changes.keys)
    partition.refuse_clustering(targets.file_ids)
    plan = _PartitionPlan(partition, changes, [], [])
    kept = ~(targets.is_new() & is_delete_of(changes))
    for code, file_id in enumerate(targets.file_ids):
        mine = np.flatnonzero(kept & (targets.codes == code))
        if file_id in targets.known:
            plan.old.append((file_id, mine))
        else:
            plan.new.append((file_id.rpartition("-")[0], mine))
    return plan


def _spread(changes: RowChanges, inserts: npt.NDArray[np.int64], buckets: tuple[Bucket, ...]) -> npt.NDArray[np.int64]:
    """Return the position of the bucket for each insert."""
    taking = [position for position, bucket in enumerate(buckets) if bucket.num_inserts]
    # Hashing the keys is only needed where there is a choice.
    if len(taking) <= 1:
        return np.full(len(inserts), taking[0] if taking else -1, dtype=np.int64)
    keys = changes.keys.take(pa.array(inserts, pa.int64()))
    return spread_inserts(np.array([_hash(str(key)) for key in keys.to_pylist()], dtype=np.uint64), buckets)


def _hash(key: str) -> int:
    """Return a well-mixed 64-bit hash of a record key."""
    return int.from_bytes(hashlib.md5(key.encode(), usedforsecurity=False).digest()[:8], "big")


def _write(plan: _PartitionPlan, files: TaskFiles) -> Iterator[WrittenFile]:
    partition = plan.partition
    for file_id, positions in plan.old:
        part = part_of(plan.changes, positions)
        if file_id in plan.filled or file_id not in partition.logs:
            yield files.merge(partition.path, partition.latest[file_id], part)
        else:
            yield files.append(partition.logs[file_id].file_slice, part)
    for prefix, positions in plan.new:
        if len(positions):
            part = part_of(plan.changes, positions)
            yield from files.create(
                partition.path,
                [(part.rows, part.keys)],
                prefix=prefix,
                has_metafile=partition.has_metafile,
            )

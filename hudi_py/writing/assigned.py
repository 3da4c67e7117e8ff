"""Large writes, between the passes: chooses the file groups of rows that are counted, and those that inserts fill."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import attrs

from hudi_py.writing.assign import Bucket, ExistingFile, assign_buckets
from hudi_py.writing.job import WriteJob
from hudi_py.writing.nested import refuse_nested
from hudi_py.writing.partition import load_partition

_LISTING_THREADS: Final = 16


def with_filled(job: WriteJob, buckets: Sequence[Bucket]) -> WriteJob:
    """Return the job for the second pass, which no longer knows which rows are inserts."""
    if job.logs is None:
        return job
    filled = frozenset((bucket.partition_path, bucket.file_id) for bucket in buckets if bucket.num_inserts)
    return attrs.evolve(job, logs=attrs.evolve(job.logs, filled=filled))


def assigned(groups: Sequence[tuple[str, str | None, int]], job: WriteJob) -> tuple[tuple[Bucket, ...], list[int]]:
    """
    Return the file groups to write, and the approximate size in bytes of each.

    Args:
        groups: Partition path, file id (None for new keys) and number of rows.
        job: The write.

    Raises:
        WriteError: A partition would lie inside of another one.
        See `hudi_py.writing.partition.load_partition`.
    """
    inserts = {path: count for path, file_id, count in groups if file_id is None}
    updated: dict[str, dict[str, int]] = {}
    for path, file_id, count in groups:
        if file_id is not None:
            updated.setdefault(path, {})[file_id] = count
    new: set[str] = set()
    sizes: dict[tuple[str, str], int] = {}
    existing: dict[str, list[ExistingFile]] = {}

    def look(path: str) -> None:
        files = load_partition(job, path)
        if not files.has_metafile and path in inserts:
            new.add(path)
        mine = updated.get(path, {})
        limit = job.limits.small_file_bytes if path in inserts else 0
        taken = [file for file in files.candidates() if file.size_bytes < limit]
        existing[path] = taken
        for file_id in {*mine, *(file.file_id for file in taken)}:
            base = files.latest.get(file_id)
            sizes[path, file_id] = 0 if base is None else base.size_bytes or 0

    # Listings wait for answers of the storage, so many run at once.
    with ThreadPoolExecutor(_LISTING_THREADS) as pool:
        list(pool.map(look, {*inserts, *updated}))
    refuse_nested(job, existing.keys(), new)
    buckets = assign_buckets(
        inserts=inserts,
        updated={path: list(counts) for path, counts in updated.items()},
        existing=existing,
        record_bytes=job.record_bytes,
        limits=job.limits,
        new_file_id=lambda: f"{job.new_uuid()}-0",
    )
    weights = [
        sizes.get((bucket.partition_path, bucket.file_id), 0)
        + (bucket.num_inserts + updated.get(bucket.partition_path, {}).get(bucket.file_id, 0)) * job.record_bytes
        for bucket in buckets
    ]
    return buckets, weights

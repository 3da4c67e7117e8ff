"""
Assigns inserts to files: first to small existing files, the rest to new file groups.

Pure: takes counts and sizes, returns buckets. Rows are then distributed over a partition's buckets by the hash of their
key, as in Hudi, so a bucket gets only approximately its number of inserts.

Source: Hudi 0.15.0, 1.0.2, ``UpsertPartitioner``, ``AverageRecordSizeUtils`` (rules E-50 to E-56).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

import attrs
import numpy as np
import numpy.typing as npt

_MIB: Final = 1024 * 1024


@attrs.frozen(kw_only=True)
class SizingLimits:
    """
    Settings of file sizing. The defaults are Hudi's.

    Args:
        max_file_bytes: ``hoodie.parquet.max.file.size``.
        small_file_bytes: ``hoodie.parquet.small.file.limit``; 0 or less to never add inserts to existing files.
        insert_split_rows: ``hoodie.copyonwrite.insert.split.size``; used when *auto_split* is off.
        auto_split: ``hoodie.copyonwrite.insert.auto.split``; rows per new file from the record size.
    """

    max_file_bytes: int = attrs.field(default=120 * _MIB, validator=attrs.validators.ge(1))
    small_file_bytes: int = 100 * _MIB
    insert_split_rows: int = attrs.field(default=500_000, validator=attrs.validators.ge(1))
    auto_split: bool = True


@attrs.frozen(kw_only=True)
class ExistingFile:
    """The latest base file of a file group."""

    file_id: str
    size_bytes: int


@attrs.frozen(kw_only=True)
class Bucket:
    """
    A file group that will be written.

    Args:
        partition_path: Partition of the group.
        file_id: Id of the group.
        is_new: Whether this commit creates the group.
        num_inserts: Number of inserts assigned to it; 0 for a group that only gets updates.
    """

    partition_path: str
    file_id: str
    is_new: bool
    num_inserts: int = 0


def assign_buckets(
    inserts: Mapping[str, int],
    *,
    updated: Mapping[str, Collection[str]],
    existing: Mapping[str, Sequence[ExistingFile]],
    record_bytes: int,
    limits: SizingLimits,
    new_file_id: Callable[[], str],
) -> tuple[Bucket, ...]:
    """
    Decide which file groups a commit writes, and how many inserts each of them gets.

    Args:
        inserts: Number of inserts by partition path.
        updated: File ids that get updates or deletes, by partition path.
        existing: Latest base files by partition path, as of the last completed commit, without groups in pending
            clustering; leave a partition out to add no inserts to its files.
        record_bytes: Average size of a stored row, at least 1, see `average_record_bytes`.
        limits: Settings of file sizing.
        new_file_id: Returns a new file id (``<uuid>-0``); called once per new group, with partitions in sorted order.

    Returns:
        Buckets sorted by partition path; within a partition existing groups (smallest file first, then groups that are
        only updated, by file id), then new groups. The inserts of a partition's buckets add up to its inserts.
    """
    if record_bytes < 1:
        raise ValueError(f"record_bytes is {record_bytes}; a stored row has at least one byte")
    buckets: list[Bucket] = []
    # Sorted, so that the same rows always get the same buckets whatever order the tasks' counts arrived in.
    for partition_path in sorted({*inserts, *updated}):
        rest = inserts.get(partition_path, 0)
        packed = _pack(rest, existing.get(partition_path, ()), record_bytes, limits)
        rest -= sum(packed.values())
        only_updated = dict.fromkeys(sorted(set(updated.get(partition_path, ())) - packed.keys()), 0)
        buckets += [
            Bucket(partition_path=partition_path, file_id=file_id, is_new=False, num_inserts=count)
            for file_id, count in {**packed, **only_updated}.items()
        ]
        buckets += [
            Bucket(partition_path=partition_path, file_id=new_file_id(), is_new=True, num_inserts=count)
            for count in _split(rest, record_bytes, limits)
        ]
    return tuple(buckets)


def spread_inserts(hashes: npt.NDArray[np.uint64], buckets: Sequence[Bucket]) -> npt.NDArray[np.int64]:
    """
    Choose a bucket for each insert of one partition.

    Args:
        hashes: Shape (n,), well mixed hashes of the record keys: the same key must get the same bucket.
        buckets: Buckets of the partition, at least one of them with inserts.

    Returns:
        Shape (n,), positions in *buckets*; a bucket is chosen in proportion to its number of inserts.
    """
    # Each bucket owns a part of the number line as long as its inserts; the remainder of the hash is a point on that
    # line. This needs no random numbers, so a task that is retried makes the same choice.
    bounds = np.cumsum([bucket.num_inserts for bucket in buckets], dtype=np.uint64)
    if not len(bounds) or not bounds[-1]:
        raise ValueError("none of the buckets takes inserts")
    positions: npt.NDArray[np.int64] = np.searchsorted(bounds, hashes % bounds[-1], side="right").astype(np.int64)
    return positions


def average_record_bytes(
    commits: Iterable[tuple[int, int]],
    *,
    limits: SizingLimits,
    threshold: float = 1.0,
    estimate: int = 1024,
    commits_max: int | None = 5,
    file_overhead_bytes: int = 0,
) -> int:
    """
    Estimate the size of a stored row from what recent commits wrote.

    Args:
        commits: (bytes, rows) written by completed commits, newest first.
        limits: Only commits larger than *threshold* times the small-file limit are used: in smaller commits the Bloom
            filters take more space than the rows.
        threshold: ``hoodie.record.size.estimation.threshold``.
        estimate: ``hoodie.copyonwrite.record.size.estimate``, used if no commit is large enough.
        commits_max: Number of commits to look at; None for all (table version 6).
        file_overhead_bytes: Subtracted from each commit's bytes.

    Returns:
        Bytes per row, rounded up, at least 1.
    """
    for position, (written_bytes, rows) in enumerate(commits):
        if commits_max is not None and position >= commits_max:
            break
        # A commit without rows, and one that is mostly Bloom filters, would make rows look much larger than they are,
        # and files of the next write much too small.
        net_bytes = written_bytes - file_overhead_bytes
        if rows > 0 and net_bytes > threshold * limits.small_file_bytes:
            return max(-(-net_bytes // rows), 1)
    return estimate


def _pack(inserts: int, files: Sequence[ExistingFile], record_bytes: int, limits: SizingLimits) -> dict[str, int]:
    """Assign inserts to small files up to the maximum size, the smallest file first because it has most room."""
    packed: dict[str, int] = {}
    small = (file for file in files if file.size_bytes < limits.small_file_bytes)
    for file in sorted(small, key=lambda file: (file.size_bytes, file.file_id)):
        # Negative for a file above the maximum, which a small-file limit above the maximum lets in: it gets nothing.
        take = min((limits.max_file_bytes - file.size_bytes) // record_bytes, inserts)
        if take > 0:
            packed[file.file_id] = take
            inserts -= take
    return packed


def _split(inserts: int, record_bytes: int, limits: SizingLimits) -> list[int]:
    """Return the number of inserts for each new file group: equal shares, and the remainder for the last one."""
    if inserts <= 0:
        return []
    per_bucket = -(-limits.max_file_bytes // record_bytes) if limits.auto_split else limits.insert_split_rows
    full, remainder = divmod(inserts, per_bucket)
    return [per_bucket] * full + ([remainder] if remainder else [])

"""
Tables with a bucket index, where the key of a row determines its file; no table property says so.

Apache Hudi searches a row only in its bucket, and writes it again where it does not find it. So a table of buckets is
written with the settings of its other writers or not at all, and only its files show what they are. Source: Hudi
``BucketIdentifier``, ``ConsistentBucketIndexUtils``; seen in tables of 0.15.0 to 1.1.1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.config import keys as settings
from hudi_py.errors import ConfigError, UnsupportedTable
from hudi_py.formats.arrow_types import Array
from hudi_py.model.files import join_path
from hudi_py.model.records import CommitMetadata
from hudi_py.rows.bucket_index import BucketIndex, bucket_number
from hudi_py.rows.lookup import first_keys
from hudi_py.storage.base import Storage
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline
from hudi_py.writing.job import WriteJob
from hudi_py.writing.log_slices import keys_in_logs
from hudi_py.writing.partition import PartitionFiles, load_partition

BUCKET_FOLDER: Final = ".hoodie/.bucket_index"
"""Folder for the metadata of consistent hashing, and of bucket numbers by partition."""
_COMMITS_LOOKED_AT: Final = 5
_KEYS_COMPARED: Final = 1000
_FEW: Final = 3
_SMALL_NUMBER: Final = 10_000
"""A random file id starts with eight decimal digits one time in 43, and with four zeros among them in 430,000."""


def are_numbered(file_ids: Sequence[str]) -> bool:
    """Return whether file ids start with bucket numbers, which several random ids almost never do."""
    numbers = [number for number in map(bucket_number, file_ids) if number is not None]
    if not numbers or len(numbers) < len(file_ids):
        return False
    return len(numbers) > _FEW or all(number < _SMALL_NUMBER for number in numbers)


def check_buckets(storage: Storage, timeline: Timeline, contents: Contents, buckets: BucketIndex | None) -> None:
    """
    Raise unless the table has a bucket index exactly if the settings say so.

    Args:
        buckets: What the settings say; None for another index.

    Raises:
        UnsupportedTable: The table has a bucket index that the settings do not name, or one of consistent hashing.
        ConfigError: The settings name a bucket index, and the table has none.
    """
    # The index need not be among the table's properties, so the file ids in recent commits are the evidence.
    # Not the newest commit alone: it may have written nothing, or too few files to tell numbers from random ids.
    newest = timeline.commits.completed()[-_COMMITS_LOOKED_AT:]
    for instant in reversed(newest):
        file_ids = _file_ids(contents.commit(instant))
        if buckets is None and are_numbered(file_ids):
            _refuse(
                storage,
                f"{instant} wrote files whose ids are numbers of buckets ({min(file_ids)})",
                f"set {settings.INDEX_TYPE.name}=BUCKET and {settings.BUCKET_COUNT.name} as other writers do",
            )
        foreign = [file_id for file_id in file_ids if bucket_number(file_id) is None]
        if buckets is not None and foreign:
            raise ConfigError(
                f"{settings.INDEX_TYPE.name}=BUCKET, but {storage.root} has no bucket index: {instant} wrote "
                f"{foreign[0]}, whose id does not begin with the number of a bucket; leave the setting out, or write "
                "to a new table"
            )
    if storage.list(BUCKET_FOLDER):
        _refuse(storage, f"{BUCKET_FOLDER} says which keys belong to which bucket", "write the table with Apache Hudi")


def files_by_bucket(job: WriteJob, partition: PartitionFiles, buckets: BucketIndex) -> dict[int, str]:
    """
    Return the file id of each bucket that a partition has.

    The keys of its largest file are compared with their buckets. Nothing else shows that another writer uses another
    number of buckets, which would make rows of this write duplicates.

    Raises:
        ConfigError: The table was written with other buckets.
        UnsupportedTable: A file belongs to no bucket, or two to the same.
    """
    found: dict[int, str] = {}
    for file_id in partition.file_ids:
        number = bucket_number(file_id)
        if number is None or number in found:
            why = "is in no bucket" if number is None else f"is in the same bucket as {found[number]}"
            raise UnsupportedTable(f"file group {file_id} of partition {partition.path!r} {why}; nothing was written")
        found[number] = file_id
    if found:
        _compare(job, partition, buckets, max(found))
    return found


@attrs.frozen
class BucketTargets:
    """
    Where the rows of a partition go.

    Args:
        file_ids: File group of each bucket that gets rows.
        codes: Shape (n,), positions in *file_ids* by row.
        known: File ids that the partition has.
    """

    file_ids: list[str]
    codes: npt.NDArray[np.int64]
    known: Collection[str]

    def of_rows(self) -> Any:
        """Return the file id of each row."""
        codes: Any = pa.array(self.codes)
        return pa.array(self.file_ids, pa.string()).take(codes)

    def is_new(self) -> npt.NDArray[np.bool_]:
        """Return which rows go to a bucket that has no file."""
        return np.array([file_id not in self.known for file_id in self.file_ids], dtype=np.bool_)[self.codes]


def bucket_targets(job: WriteJob, partition: PartitionFiles, buckets: BucketIndex, keys: Array) -> BucketTargets:
    """
    Return the file group of each key: that of its bucket, or the id of a new one.

    Raises:
        See `files_by_bucket`, `BucketIndex.numbers`.
    """
    if job.overwrites:  # in new files, but in the buckets that the earlier ones have
        files_by_bucket(job, load_partition(attrs.evolve(job, operation="INSERT"), partition.path), buckets)
    files = files_by_bucket(job, partition, buckets)
    # Each bucket once: a batch has many rows and few buckets.
    numbers, codes = np.unique(buckets.numbers(keys), return_inverse=True)
    file_ids = [files.get(number, f"{new_bucket_prefix(job, partition.path, number)}-0") for number in numbers.tolist()]
    return BucketTargets(file_ids, codes, files.values())


def new_bucket_prefix(job: WriteJob, path: str, number: int) -> str:
    """Return the id of a new bucket's file group without its last part: the same in every task of the write."""
    # Not random: several tasks may write to the same new bucket, and have to agree on its file group.
    digest = hashlib.md5(f"{job.instant_time}/{path}/{number}".encode(), usedforsecurity=False).hexdigest()
    return f"{number:08d}-{digest[:4]}-{digest[4:8]}-{digest[8:12]}-{digest[12:24]}"


def _compare(job: WriteJob, partition: PartitionFiles, buckets: BucketIndex, highest: int) -> None:
    file_id, name, keys = _some_keys(job, partition)
    if highest >= buckets.count or set(buckets.numbers(keys).tolist()) - {bucket_number(file_id)}:
        hashed = ",".join(buckets.fields[position] for position in buckets.hashed)
        raise ConfigError(
            f"{partition.path or '.'}/{name} was not written with {settings.BUCKET_COUNT.name}={buckets.count} "
            f"and {settings.BUCKET_FIELDS.name}={hashed}: its rows would be in other buckets. Nothing was written; set "
            "both as the table's other writers do"
        )


def _some_keys(job: WriteJob, partition: PartitionFiles) -> tuple[str, str, Array]:
    """Return file id, name and first keys of the largest base file; of a log file where there is none."""
    if partition.latest:
        largest = max(partition.latest.values(), key=lambda base: base.size_bytes or 0)
        with job.storage.open_read(join_path(partition.path, largest.name)) as stream:
            return largest.file_id, largest.name, first_keys(stream, _KEYS_COMPARED)
    logs = [(log, group.written) for group in partition.logs.values() for log in group.behind]
    for log, written in logs:
        for keys in keys_in_logs(job.storage, partition.path, [log], written):
            return log.file_id, log.name, keys
    return logs[0][0].file_id, logs[0][0].name, pa.array([], pa.string())  # deletes alone


def _file_ids(commit: CommitMetadata) -> list[str]:
    return sorted(
        {stat.file_id for stats in commit.partition_to_write_stats.values() for stat in stats if stat.file_id}
    )


def _refuse(storage: Storage, evidence: str, remedy: str) -> None:
    raise UnsupportedTable(
        f"{storage.root} has a bucket index, with which Apache Hudi expects each key in a certain file: {evidence}. "
        f"Rows would be duplicates in other files, so nothing was written; {remedy}"
    )

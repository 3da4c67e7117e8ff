"""
Tables whose rows lie in buckets: which file a row belongs to follows from its key, and no property says so.

A row of ours would go to any file of its partition; Apache Hudi looks for it in its bucket only and writes it once
more. So the evidence on storage decides. Source: Hudi ``BucketIdentifier``, ``ConsistentBucketIndexUtils``; seen in
tables of 0.15.0 and 1.1.1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from hudi_py.errors import UnsupportedTable
from hudi_py.model.records import CommitMetadata
from hudi_py.storage.base import Storage
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline

BUCKET_FOLDER: Final = ".hoodie/.bucket_index"
"""Where consistent hashing and bucket numbers by partition are kept."""
_COMMITS_LOOKED_AT: Final = 5
_NUMBERED: Final = re.compile(r"(\d{8})-")
_FEW: Final = 3
_SMALL_NUMBER: Final = 10_000
"""A random file id starts with eight decimal digits one time in 43, and with four zeros among them in 430,000."""


def are_numbered(file_ids: Sequence[str]) -> bool:
    """Whether file ids start with the numbers of buckets, as no handful of random ones does."""
    matches = [_NUMBERED.match(file_id) for file_id in file_ids]
    numbers = [int(match[1]) for match in matches if match is not None]
    if not numbers or len(numbers) < len(file_ids):
        return False
    return len(numbers) > _FEW or all(number < _SMALL_NUMBER for number in numbers)


def refuse_buckets(storage: Storage, timeline: Timeline, contents: Contents) -> None:
    """
    Refuse to write into buckets.

    Raises:
        UnsupportedTable: There is what only a bucket index leaves.
    """
    newest = timeline.commits.completed()[-_COMMITS_LOOKED_AT:]
    for instant in reversed(newest):
        file_ids = _file_ids(contents.commit(instant))
        if are_numbered(file_ids):
            _refuse(storage, f"{instant} wrote files whose ids are numbers of buckets ({min(file_ids)})")
    if storage.list(BUCKET_FOLDER):
        _refuse(storage, f"{BUCKET_FOLDER} says which keys belong to which bucket")


def _file_ids(commit: CommitMetadata) -> list[str]:
    return sorted(
        {stat.file_id for stats in commit.partition_to_write_stats.values() for stat in stats if stat.file_id}
    )


def _refuse(storage: Storage, evidence: str) -> None:
    raise UnsupportedTable(
        f"{storage.root} has a bucket index, by which Apache Hudi finds each key in one file: {evidence}. Rows written "
        "by hudi_py would lie elsewhere and be duplicates, so nothing was written; write the table with Apache Hudi"
    )

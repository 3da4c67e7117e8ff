"""
Detects tables with a bucket index, where the key of a row determines its file; no table property says so.

hudi_py would write a row to any file of its partition. Apache Hudi searches it only in its bucket, does not find it,
and writes it again. So such tables must be refused, and only their files show what they are. Source: Hudi
``BucketIdentifier``, ``ConsistentBucketIndexUtils``; seen in tables of 0.15.0 and 1.1.1.
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
"""Folder for the metadata of consistent hashing, and of bucket numbers by partition."""
_COMMITS_LOOKED_AT: Final = 5
_NUMBERED: Final = re.compile(r"(\d{8})-")
_FEW: Final = 3
_SMALL_NUMBER: Final = 10_000
"""A random file id starts with eight decimal digits one time in 43, and with four zeros among them in 430,000."""


def are_numbered(file_ids: Sequence[str]) -> bool:
    """Return whether file ids start with bucket numbers, which several random ids almost never do."""
    matches = [_NUMBERED.match(file_id) for file_id in file_ids]
    numbers = [int(match[1]) for match in matches if match is not None]
    if not numbers or len(numbers) < len(file_ids):
        return False
    return len(numbers) > _FEW or all(number < _SMALL_NUMBER for number in numbers)


def refuse_buckets(storage: Storage, timeline: Timeline, contents: Contents) -> None:
    """
    Raise if the table has a bucket index.

    Raises:
        UnsupportedTable: There are files that only a bucket index creates.
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
        f"{storage.root} has a bucket index, with which Apache Hudi expects each key in a certain file: {evidence}. "
        "Rows written by hudi_py would be duplicates in other files, so nothing was written; write the table with "
        "Apache Hudi"
    )

"""
Refuses rows of a partition that lies inside of another one.

The value of a single partition column may have slashes, as in Apache Hudi, whose tables of dates have folders such as
``2024/01/05``. With values of different depths (``2024`` and ``2024/01``) one partition lies inside of another, where
listings of folders, Hudi's as well as ours, do not look: its rows are shown only while the metadata table names it.

Only the folders on the way to a partition and those below a new one are looked at, so values without slashes cost
nothing in the partitions that the table has.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from hudi_py.errors import WriteError
from hudi_py.fsview.listing import walk_folders
from hudi_py.model.files import PARTITION_METAFILE, PARTITION_METAFILES, above
from hudi_py.storage.base import Storage
from hudi_py.writing.job import WriteJob

_METAFILES: Final = sorted(PARTITION_METAFILES)


def refuse_nested_rows(job: WriteJob, paths: Collection[str]) -> None:
    """
    Raise if one of the partitions that rows are written to lies inside of another one of them.

    Raises:
        WriteError: The message names both.
    """
    if not _can_nest(job):
        return
    for path in sorted(paths):
        for outer in above(path):
            if outer in paths:
                raise _refusal(outer, path, "these rows have both")


def refuse_nested(job: WriteJob, paths: Collection[str], new: Collection[str]) -> None:
    """
    Raise if a partition that rows are written to lies inside of one of the table, or a new one around one.

    Args:
        job: The write.
        paths: Partitions of the rows.
        new: Those of them that the table does not have yet.

    Raises:
        WriteError: The message names both.
    """
    if not _can_nest(job):
        return
    refuse_nested_rows(job, paths)
    looked: set[str] = set()
    for path in sorted(paths):
        for outer in above(path):
            # The folder of the table is no partition where there is a partition column.
            if outer and outer not in looked and job.storage.sizes(outer, _METAFILES):
                raise _refusal(outer, path, _known(outer))
            looked.add(outer)
    for path in sorted(new):
        for folder, _, is_partition in walk_folders(job.storage, start=path, to_the_bottom=True):
            if is_partition and folder != path:
                raise _refusal(path, folder, _known(folder))
        if job.is_shared and "/" in path:
            raise WriteError(
                f"partition {path!r} is new, and its value has slashes; such a partition is created only while there "
                "is one writer (hoodie.write.concurrency.mode=SINGLE_WRITER), because another one could create a "
                "partition around it at this moment; write its first rows so"
            )


def is_new_partition(storage: Storage, path: str) -> bool:
    """Whether a partition has no metafile yet, of whichever form."""
    return not storage.sizes(path, _METAFILES)


def _can_nest(job: WriteJob) -> bool:
    """Whether values may make folders of different depths: those of several columns and of times do not."""
    keys = job.keys
    # A delete makes no partitions, and is how one that lies inside of another is emptied.
    return len(keys.partition_fields) == 1 and not keys.url_encode and not keys.times and job.operation != "DELETE"


def _known(path: str) -> str:
    return (
        f"{path!r} is a partition of the table already (if it holds no data files, delete its {PARTITION_METAFILE}, "
        "and it is none)"
    )


def _refusal(outer: str, inner: str, why: str) -> WriteError:
    return WriteError(
        f"partition {inner!r} would lie inside of partition {outer!r}, where readers that list folders do not see its "
        f"rows; {why}; choose partition values with the same number of slashes"
    )

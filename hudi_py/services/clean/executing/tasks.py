"""
The part of a clean that runs on executors.

Plain functions with plain arguments that import only `storage` and `model`: executors load little, and pickle less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from hudi_py.model.files import join_path
from hudi_py.storage.base import SideFileLeft, Storage, StorageFailure
from hudi_py.storage.deleters import Deleter, Unlink


class DeleteTask(NamedTuple):
    """
    Names of files by partition that one task removes.

    Args:
        storage: Storage of the table.
        files: Partition path and names.
        deleter: How they are removed.
    """

    storage: Storage
    files: tuple[tuple[str, Sequence[str]], ...]
    deleter: Deleter = Unlink()

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths relative to the table; built at every call."""
        found: list[str] = []
        for partition, names in self.files:
            start = join_path(partition, "")
            found += [start + name for name in names]
        return tuple(found)


class DeleteResult(NamedTuple):
    """
    The results of one task; files that are not named here were deleted.

    Args:
        missing: Relative paths of files that did not exist, because they were deleted before; that is not an error.
        failed: Relative paths of files that could not be deleted, with the reason.
        side_files: Relative paths of checksum files that could not be deleted although their data files were, with the
            reason.
    """

    missing: tuple[str, ...]
    failed: tuple[tuple[str, str], ...]
    side_files: tuple[tuple[str, str], ...] = ()


def tasks_of(storage: Storage, files: Mapping[str, Sequence[str]], size: int, deleter: Deleter) -> Iterator[DeleteTask]:
    """Cut *files* into tasks of *size* files each, however they spread over partitions (rule A-64)."""
    group: list[tuple[str, Sequence[str]]] = []
    room = size
    for partition, names in files.items():
        start = 0
        while start < len(names):
            taken = names[start : start + room]
            group.append((partition, taken))
            start, room = start + len(taken), room - len(taken)
            if not room:
                yield DeleteTask(storage, tuple(group), deleter)
                group, room = [], size
    if group:
        yield DeleteTask(storage, tuple(group), deleter)


def delete_files(task: DeleteTask) -> DeleteResult:
    """
    Remove the files of one task.

    Without looking first whether they exist: that would double the requests.
    """
    missing, failed, side_files = [], [], []
    for path, outcome in task.deleter.remove(task.storage, task.paths).items():
        if outcome is True:
            continue
        if isinstance(outcome, SideFileLeft):
            side_files.append((join_path(path.rpartition("/")[0], outcome.name), outcome.message))
            # Of the data file itself; the checksum file is noted for the next clean.
            outcome = outcome.was_there
            if outcome:
                continue
        if outcome is False:
            # Deleted before, mostly by an interrupted run of the same plan.
            missing.append(path)
        else:
            assert isinstance(outcome, StorageFailure)
            failed.append((path, outcome.message))
    return DeleteResult(tuple(missing), tuple(failed), tuple(side_files))

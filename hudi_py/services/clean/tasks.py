"""
What runs on an executor: plain functions with plain arguments, importing only `storage` and `model`.
"""

from __future__ import annotations

from typing import NamedTuple

from hudi_py.storage.base import Storage, StorageFailure


class DeleteTask(NamedTuple):
    """Paths, relative to the table, that one task deletes."""

    storage: Storage
    paths: tuple[str, ...]


class DeleteResult(NamedTuple):
    """
    What became of the paths of one task.

    Args:
        missing: Were not there: somebody deleted them before, which is as good.
        failed: Are still there; path and why.
    """

    deleted: tuple[str, ...]
    missing: tuple[str, ...]
    failed: tuple[tuple[str, str], ...]


def delete_files(task: DeleteTask) -> DeleteResult:
    """Delete the files of one task; nothing is asked about a file before it is deleted."""
    deleted, missing, failed = [], [], []
    for path, outcome in task.storage.delete_many(task.paths).items():
        if outcome is True:
            deleted.append(path)
        elif outcome is False:
            missing.append(path)
        else:
            assert isinstance(outcome, StorageFailure)
            failed.append((path, outcome.message))
    return DeleteResult(tuple(deleted), tuple(missing), tuple(failed))

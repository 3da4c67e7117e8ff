"""
Fences: files that close a write to further data files, for tasks that nobody waits for any longer.

A task that Spark has given up (a speculative twin, an executor cut off from the driver) may go on writing after its
commit is completed, and a file whose name has a completed instant is visible. So a commit creates a fence before it
looks for leftovers; a rollback creates one before it deletes, and then reads the markers again, because its plan may be
older. A task checks the fence twice: after it has created a marker, and after its last file is closed. If the fence did
not exist yet, the process that creates it finds the marker and deletes the file; if it did, the task deletes its files
itself.

One case is not covered: a task that stalls between its first check and the creation of the file, and then dies before
its second check. Fences are stored below ``.hoodie/.aux/hudi_py`` and are deleted when no executor can be that late any
more: Spark's own limit for an executor without a driver is ten minutes.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from hudi_py.errors import AlreadyExists
from hudi_py.model.files import OWN_FOLDER
from hudi_py.storage.base import Storage

_FOLDER: Final = f"{OWN_FOLDER}/closed"
_KEPT: Final = timedelta(minutes=30)
_SECONDS: Final = "%Y%m%d%H%M%S"


def put_up_fence(storage: Storage, instant_time: str) -> None:
    """Close a write to further files; call this before looking for its leftovers. Repeatable."""
    try:
        storage.create_new(_path(instant_time), b"")
    except AlreadyExists:
        return
    try:
        oldest = (datetime.strptime(instant_time[:14], _SECONDS) - _KEPT).strftime(_SECONDS)  # noqa: DTZ007 - two texts
    except (ValueError, OverflowError):  # digits, but no date: the next fence removes the old ones
        return
    # Only whoever creates a fence sweeps, so the folder stays small without a service of its own.
    for entry in storage.list(_FOLDER):
        if entry.name < oldest:
            storage.delete(_path(entry.name))


def take_down_fence(storage: Storage, instant_time: str) -> None:
    """Open a write again: a service that was completed and undone is run again under the same time."""
    storage.delete(_path(instant_time))


def is_fenced(storage: Storage, instant_time: str) -> bool:
    """Whether the write is closed to further files."""
    return storage.size(_path(instant_time)) is not None


def _path(instant_time: str) -> str:
    return f"{_FOLDER}/{instant_time}"

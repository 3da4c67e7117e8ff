"""
Fences: the sign that a write takes no more files, for tasks that nobody waits for any longer.

A task that Spark has given up (a speculative twin, an executor cut off from the driver) may go on writing after its
commit is completed, and a file that carries a completed instant is visible. So before a commit looks for leftovers it
puts up a fence; a rollback does before it deletes, and looks for markers once more, for its plan may be older. A task
looks for the fence twice: after it has created a marker, and after its last file is closed. Either the fence was not
there yet, and then whoever put it up finds the marker and deletes the file; or it was there, and the task deletes its
files itself.

What is left open: a task that stalls between its first look and the creation of the file, and then dies before its
second look. Fences lie below ``.hoodie/.aux/hudi_py`` and go when no executor can be that late any more: Spark's own
limit for one without a driver is ten minutes.
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
    """Close a write to further files; done before its leftovers are looked for. Repeatable."""
    try:
        storage.create_new(_path(instant_time), b"")
    except AlreadyExists:
        return
    try:
        oldest = (datetime.strptime(instant_time[:14], _SECONDS) - _KEPT).strftime(_SECONDS)  # noqa: DTZ007 - two texts
    except (ValueError, OverflowError):  # digits, but no date: the next fence removes the old ones
        return
    for entry in storage.list(_FOLDER):
        if entry.name < oldest:
            storage.delete(_path(entry.name))


def is_fenced(storage: Storage, instant_time: str) -> bool:
    """Whether the write takes no more files."""
    return storage.size(_path(instant_time)) is not None


def _path(instant_time: str) -> str:
    return f"{_FOLDER}/{instant_time}"

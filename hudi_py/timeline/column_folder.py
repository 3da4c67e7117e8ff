"""
The folder ``.hoodie/.schema``: the history of a table's columns, in one file for each commit.

Every commit of a table with schema on read leaves the whole history behind, so the newest file that belongs to a
completed commit says everything, and the others may go.

Source: rules/timeline 6.1a; Hudi ``FileBasedInternalSchemaStorageManager``.
"""

from __future__ import annotations

from hudi_py.formats.column_history import HISTORY_FOLDER, history_time, newest_history
from hudi_py.storage.base import Storage
from hudi_py.timeline.store import TimelineStore
from hudi_py.timeline.timeline import Timeline


def history_path(storage: Storage, timeline: Timeline) -> str | None:
    """Path of the file that the newest completed commit left; None if none did."""
    completed = {each.requested_time for each in timeline.commits.completed()}
    name = newest_history((entry.name for entry in storage.list(HISTORY_FOLDER)), completed.__contains__)
    return None if name is None else f"{HISTORY_FOLDER}/{name}"


def read_history(storage: Storage, timeline: Timeline) -> bytes:
    """All versions of the columns, as the newest completed commit left them; empty if none did."""
    path = history_path(storage, timeline)
    return b"" if path is None else storage.read(path)


def has_history(storage: Storage) -> bool:
    """Whether any write, completed or not, has left a history of the columns."""
    return any(history_time(entry.name) is not None for entry in storage.list(HISTORY_FOLDER))


def keep_history(store: TimelineStore, timeline: Timeline, time: str, history: bytes) -> None:
    """
    Leave the history for a commit, before it completes: until then nobody reads the file.

    Files of writes that are no longer on the timeline, because they were rolled back or archived, are deleted.

    Args:
        store: The table's timeline; its lock is held.
        timeline: The timeline at this moment.
        time: Requested time of the commit.
        history: All versions of the columns.
    """
    storage = store.storage
    known = {each.requested_time for each in timeline}
    names = (entry.name for entry in storage.list(HISTORY_FOLDER))
    # A later time may be of another writer who began after this timeline was loaded.
    gone = [name for name in names if (of := history_time(name)) is not None and of not in known and of < time]
    # Replaced and not created: an earlier request of ours whose answer was lost may have left the file.
    storage.replace(f"{HISTORY_FOLDER}/{time}.schemacommit.requested", b"")
    storage.replace(f"{HISTORY_FOLDER}/{time}.schemacommit.inflight", b"")
    name = f"{time}_{store.new_time(timeline)}" if store.layout.has_completion_times else time
    storage.replace(f"{HISTORY_FOLDER}/{name}.schemacommit", history)
    # Last: whatever happens, the newest file that counts is there.
    storage.delete_many([f"{HISTORY_FOLDER}/{each}" for each in gone])

"""
Tells a timeline that is lost from that of a new table: both are empty.

Each write puts an instant onto the timeline before its first file, and archival leaves the newest ones. So without any
instant there is no data file either, nothing in the archive, no instant in another place, and no action that the
metadata table knows. Cleans and savepoints alone are no explanation either: they come after a commit. Apache Hudi reads
such a table as empty, and after its next write older files count as committed.
"""

from __future__ import annotations

from typing import Final

from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata
from hudi_py.model.files import METADATA_FOLDER, METADATA_TABLE_FOLDER, is_data_file, join_path
from hudi_py.model.instant import Action
from hudi_py.model.instant_time import INIT_TIME
from hudi_py.storage.base import Storage
from hudi_py.timeline.archive import has_archive
from hudi_py.timeline.properties_file import TIMELINE_FOLDERS, instant_file
from hudi_py.timeline.timeline import Timeline

_AFTER_COMMITS: Final = frozenset({Action.CLEAN, Action.SAVEPOINT})


class TimelineLost(CorruptMetadata):
    """There is no instant of a write, and the table is not empty."""


def lacks_writes(timeline: Timeline) -> bool:
    """Whether a timeline has no instant, or only such as come after a commit; an undone commit explains those."""
    return all(instant.action in _AFTER_COMMITS for instant in timeline.instants)


def timeline_lost(storage: Storage, config: TableConfig, timeline: Timeline) -> TimelineLost:
    """
    The error about it.

    Args:
        storage: The table's storage.
        config: Its properties.
        timeline: What is there, see `lacks_writes`.
    """
    has = (
        f"{timeline.instants[0]} and no commit, though it comes after one"
        if timeline.instants
        else f"no instants, yet {sign_of_instants(storage, config)}"
    )
    return TimelineLost(
        f"{storage.root}/{config.timeline_folder} has {has}: the timeline of the table is lost, or it lies elsewhere, "
        "and which rows count is unknown. Nothing was changed. Put the folder back from a copy of the table, or "
        "correct hoodie.timeline.path or hoodie.table.version in .hoodie/hoodie.properties; delete no data file before "
        "that"
    )


def sign_of_instants(storage: Storage, config: TableConfig) -> str | None:
    """
    What shows that a table without instants had some, as a sentence; None if nothing does.

    Costs a few listings where the table is new: those of its folders, which are empty.

    Args:
        storage: The table's storage.
        config: Its properties.

    Raises:
        StorageError: A folder cannot be listed.
    """
    path = instant_file(storage)
    if path is not None:
        return f"{path} is an instant"
    if has_archive(storage, config):
        return f"{config.history_folder} has archived ones"
    recorded = _recorded(storage)
    if recorded is not None:
        return f"the metadata table has recorded {recorded}"
    path = _data_file(storage)
    return None if path is None else f"{path} is a data file"


def _recorded(storage: Storage) -> str | None:
    """Time of an action of the data table that its metadata table has recorded."""
    for folder, layout in TIMELINE_FOLDERS:
        for instant in filter(None, (layout.parse(e.name) for e in storage.list(f"{METADATA_TABLE_FOLDER}/{folder}"))):
            is_record = instant.is_completed and instant.action is Action.DELTA_COMMIT
            # Filled from a listing, before the first write of the table, it has a time of zeros.
            if is_record and not instant.requested_time.startswith(INIT_TIME):
                return instant.requested_time
    return None


def _data_file(storage: Storage) -> str | None:
    """Path of some data file of the table, in a partition or not; none of another table below it."""
    folders = [""]
    while folders:
        folder = folders.pop()  # depth first: most tables have a file in the first folder without folders
        entries = storage.list(folder)
        if folder and any(entry.name == METADATA_FOLDER for entry in entries):
            continue
        for entry in entries:
            path = join_path(folder, entry.name)
            if entry.is_folder:
                folders += [path] if path != METADATA_FOLDER else []
            elif is_data_file(entry.name):
                return path
    return None

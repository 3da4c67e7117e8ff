"""Creates what the settings ask for and the metadata table of a table does not have yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hudi_py.config import keys
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig
from hudi_py.fsview.listing import walk_partitions
from hudi_py.mdt.create import create_metadata_table
from hudi_py.mdt.lookup import RECORD_INDEX
from hudi_py.mdt.record_index import RecordLocation
from hudi_py.mdt.table import FILES_PARTITION, MetadataTable
from hudi_py.model.files import is_data_file
from hudi_py.runtime.clock import Clock
from hudi_py.runtime.log import log
from hudi_py.storage.base import Storage
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.lock import NO_LOCK, Lock
from hudi_py.timeline.properties_file import read_table_config
from hudi_py.timeline.store import TimelineStore

Update = Callable[[Mapping[str, str | None]], None]
"""Changes properties of the data table."""


def create_files_partition(
    storage: Storage, config: TableConfig, update: Update, clock: Clock, lock: Lock = NO_LOCK
) -> None:
    """Create the metadata table with the listing of all files; not while an instant is pending."""
    timeline = TimelineStore(storage, config, clock).load()
    if timeline.pending():
        return  # of unknown fate; the next write of ours creates it
    # Data files alone: partition metafiles, and whatever else lies there, are nothing that readers look for.
    listing = {
        path: {entry.name: entry.size_bytes or 0 for entry in entries if is_data_file(entry.name)}
        for path, entries in walk_partitions(storage, details=True)
    }
    create_metadata_table(storage, config, timeline, listing, update, clock=clock, lock=lock)


def rows_to_index(
    storage: Storage, config: TableConfig, settings: Settings, clock: Clock
) -> dict[str, RecordLocation] | None:
    """
    Key to place of all rows, if the settings ask for a record index that does not exist; None otherwise.

    Raises:
        RefusedError: The rows cannot be indexed.
    """
    if not settings[keys.RECORD_INDEX_ENABLED] or RECORD_INDEX in config.metadata_partitions:
        return None
    store = TimelineStore(storage, config, clock)
    timeline = store.load()
    if timeline.pending():
        return None  # of unknown fate; the next write of ours creates it
    from hudi_py.mdt.create_index import places_of_rows

    return places_of_rows(storage, Contents(store), timeline)


def create_index_of_rows(
    storage: Storage,
    places: Mapping[str, RecordLocation],
    settings: Settings,
    update: Update,
    clock: Clock,
    lock: Lock = NO_LOCK,
) -> None:
    """Create the record index from the places that `rows_to_index` found."""
    # Read again: creating the metadata table has changed the properties.
    config = read_table_config(storage)
    if FILES_PARTITION not in config.metadata_partitions:
        return  # dropped just now, because it never became ready
    timeline = TimelineStore(storage, config, clock).load()
    from hudi_py.mdt.create_index import IndexSizing, create_record_index

    create_record_index(
        storage,
        config,
        MetadataTable(storage, clock, lock),
        timeline,
        update,
        places,
        IndexSizing(
            groups_min=settings[keys.RECORD_INDEX_GROUPS_MIN],
            groups_max=settings[keys.RECORD_INDEX_GROUPS_MAX],
            growth=settings[keys.RECORD_INDEX_GROWTH],
            group_bytes_max=settings[keys.RECORD_INDEX_GROUP_BYTES_MAX],
        ),
    )
    log.info("metadata.index.created", partition=RECORD_INDEX)

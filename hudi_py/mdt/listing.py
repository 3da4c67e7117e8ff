"""Lists partitions and files through the metadata table instead of the folders."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterator
from itertools import repeat
from typing import Any, Final

from hudi_py.config import keys
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig
from hudi_py.errors import ConflictError, CorruptMetadata, NotFound
from hudi_py.fsview.checked import CheckedListing
from hudi_py.fsview.listing import Listing
from hudi_py.mdt.in_step import has_records, unrecorded
from hudi_py.mdt.lost_writes import refuse_lost_writes
from hudi_py.mdt.read import MetadataReader
from hudi_py.mdt.recorded import WAY_OUT
from hudi_py.mdt.table import FILES_PARTITION, MetadataTable, MetadataTableMissing
from hudi_py.model.files import METADATA_TABLE_FOLDER
from hudi_py.model.instant import Action
from hudi_py.runtime.log import log
from hudi_py.storage.base import Entry
from hudi_py.timeline.archive import load_archived
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.properties_file import read_table_config
from hudi_py.timeline.quarantine import pending_undos
from hudi_py.timeline.store import TimelineStore
from hudi_py.timeline.timeline import Timeline

_LOADS_MAX: Final = 5  # each time another writer has completed something in the metadata table meanwhile


class MetadataListing:
    """
    The partitions and files that the metadata table lists.

    Args:
        reader: Opened for one snapshot; its base file is closed when the listing is no longer used.
    """

    is_fresh = False
    compared: Collection[str] = ()

    def __init__(self, reader: MetadataReader) -> None:
        self._reader = reader
        weakref.finalize(self, reader.close)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._reader,)

    def walk(self, *, details: bool = False) -> Iterator[tuple[str, list[Entry]]]:
        """Every partition with its files; sizes are always known."""
        listed = set()
        for path, files in self._reader.scan():
            listed.add(path)
            yield path, _entries(files)
        # Only the list of partitions knows those whose files are all deleted.
        for path in self._reader.partitions():
            if path not in listed:
                yield path, []

    def partition(self, path: str, *, details: bool = False) -> list[Entry]:
        """Files of one partition."""
        return _entries(self._reader.files(path))


def _entries(files: dict[str, int]) -> list[Entry]:
    # Without calling `Entry` for each file: a table of a million files is listed this way.
    rows = zip(files, repeat(False), files.values(), repeat(None), strict=False)
    return list(map(tuple.__new__, repeat(Entry), rows))


def is_used(config: TableConfig, settings: Settings) -> bool:
    """Whether files are listed through the metadata table, as properties and settings say."""
    return FILES_PARTITION in config.metadata_partitions and settings[keys.METADATA_ENABLED] is not False


def open_snapshot(
    store: TimelineStore,
    config: TableConfig,
    settings: Settings,
    only: Collection[str] | None = None,
    *,
    to_read: bool = False,
) -> tuple[Timeline, Listing]:
    """
    As `open_as_it_is`, of a table whose timeline is whole.

    Raises:
        CorruptMetadata: A write lost its completed file, so that older rows would be shown as the latest.
        As `open_as_it_is`.
    """
    timeline, listing = open_as_it_is(store, config, settings, only, to_read=to_read)
    refuse_lost_writes(timeline, Contents(store), config)
    return timeline, listing


def open_as_it_is(
    store: TimelineStore,
    config: TableConfig,
    settings: Settings,
    only: Collection[str] | None = None,
    *,
    to_read: bool = False,
) -> tuple[Timeline, Listing]:
    """
    The table's timeline, and the listing that goes with it: through the metadata table where there is one.

    The metadata table's timeline is loaded first: an action that completes in between is then seen not at all, or
    everything is loaded again. With ``hoodie.metadata.enable=false`` the folders are listed.

    Args:
        store: The table's timeline store.
        config: The table's configuration.
        settings: Whether the metadata table is used.
        only: See `CheckedListing`; of tables without a metadata table of their own.
        to_read: List the folders, with a warning, if the metadata table is missing, as Apache Hudi's readers do. Its
            writers refuse, and so must whoever changes the table: a commit that is not recorded would be hidden.

    Raises:
        CorruptMetadata: The metadata table is damaged or lacks a completed action; the setting above leads around it.
        MetadataTableMissing: It is missing.
        ConflictError: Other writers changed the metadata table each time.
    """
    if not is_used(config, settings):
        timeline = store.load()
        return timeline, CheckedListing(Contents(store), timeline, only=only)
    try:
        return _open_recorded(store, only)
    except (CorruptMetadata, NotFound) as error:
        # Another process has dropped the metadata table since the properties were read, which nothing is wrong with.
        if FILES_PARTITION in read_table_config(store.storage).metadata_partitions:
            if not (to_read and isinstance(error, MetadataTableMissing)):
                raise
            log.warning(
                "metadata.missing", table=store.storage.root, consequence="the folders are listed", why=str(error)
            )
        timeline = store.load()
        return timeline, CheckedListing(Contents(store), timeline, only=only)


def _open_recorded(store: TimelineStore, only: Collection[str] | None) -> tuple[Timeline, Listing]:
    """As `open_as_it_is`, of a table whose metadata table is used."""
    table = MetadataTable(store.storage, store.clock)
    # Bounded: beside writers that never rest it is better to say so than to try for ever.
    for _ in range(_LOADS_MAX):
        metadata = table.store.load()
        timeline = store.load()
        try:
            _check_in_step(store, timeline, table, metadata)
            # A restore that is not completed has undone some of its commits. What they had replaced may be cleaned,
            # which only a listing that is held against the commits shows.
            if timeline.pending(Action.RESTORE) or _is_clean_half_undone(store, timeline):
                return timeline, CheckedListing(Contents(store), timeline, only=only)
            return timeline, MetadataListing(MetadataReader(table, timeline, metadata))
        except (CorruptMetadata, NotFound):
            # Nothing has happened there since, so no other writer explains it.
            if table.store.load().instants == metadata.instants:
                raise
    raise ConflictError(f"{table.storage.root} was changed by other writers each time it was read; try again")


def _is_clean_half_undone(store: TimelineStore, timeline: Timeline) -> bool:
    """
    Whether the clean has left the timeline of an undo that is not completed.

    All files of the clean are back in the folders then. The metadata table shows them only with the completed rollback,
    and no clean says any more that earlier times lack them: read through it, such a time would have lost rows.
    """
    return any(timeline.find(clean, Action.CLEAN) is None for clean in pending_undos(Contents(store), timeline))


def _check_in_step(store: TimelineStore, timeline: Timeline, table: MetadataTable, metadata: Timeline) -> None:
    contents = Contents(store)
    archived = None
    for instant in unrecorded(timeline, metadata):
        if not has_records((contents.clean if instant.action is Action.CLEAN else contents.commit)(instant)):
            continue
        # Only if something is missing: the archive is the most expensive witness.
        archived = archived or load_archived(table.storage, table.config)
        if archived.find(instant.requested_time) is None:
            raise CorruptMetadata(
                f"{store.storage.root}/{METADATA_TABLE_FOLDER} lacks the completed {instant}: what it wrote would not "
                f"be listed; {WAY_OUT}"
            )

"""Partitions and files through the metadata table instead of folders."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from itertools import repeat

from hudi_py.config import keys
from hudi_py.config.keys import Settings
from hudi_py.config.table import TableConfig
from hudi_py.fsview.listing import FolderListing, Listing
from hudi_py.mdt.read import MetadataReader
from hudi_py.mdt.table import FILES_PARTITION, MetadataTable
from hudi_py.storage.base import Entry
from hudi_py.timeline.store import TimelineStore
from hudi_py.timeline.timeline import Timeline


class MetadataListing:
    """
    What the metadata table says, as a `Listing`.

    Args:
        reader: Opened for one snapshot; its base file is closed when the listing is no longer used.
    """

    is_fresh = False

    def __init__(self, reader: MetadataReader) -> None:
        self._reader = reader
        weakref.finalize(self, reader.close)

    def walk(self, *, details: bool = False) -> Iterator[tuple[str, list[Entry]]]:
        """Every partition with its files; sizes are always known."""
        listed = set()
        for path, files in self._reader.scan():
            listed.add(path)
            yield path, _entries(files)
        for path in self._reader.partitions():
            if path not in listed:
                yield path, []

    def partition(self, path: str, *, details: bool = False) -> list[Entry]:
        """Files of one partition."""
        return _entries(self._reader.files(path))


def _entries(files: dict[str, int]) -> list[Entry]:
    rows = zip(files, repeat(False), files.values(), repeat(None), strict=False)
    return list(map(tuple.__new__, repeat(Entry), rows))


def open_snapshot(store: TimelineStore, config: TableConfig, settings: Settings) -> tuple[Timeline, Listing]:
    """
    The table's timeline, and the listing that goes with it: through the metadata table where there is one.

    The metadata table's timeline is loaded first: an action that completes in between is then not seen at all, instead
    of half. With ``hoodie.metadata.enable=false`` the folders are listed.

    Raises:
        CorruptMetadata: The metadata table is damaged; the setting above leads around it.
    """
    if FILES_PARTITION not in config.metadata_partitions or settings[keys.METADATA_ENABLED] is False:
        return store.load(), FolderListing(store.storage)
    table = MetadataTable(store.storage, store.clock)
    metadata = table.store.load()
    timeline = store.load()
    return timeline, MetadataListing(MetadataReader(table, timeline, metadata))

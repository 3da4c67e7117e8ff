"""
Which file slices can hold rows with given record keys, by the indexes of the metadata table.

The record index names one file group for each key, so no other group is opened. It is ignored if keys are repeated (see
`hudi_py.snapshot.unique_keys`), or if it names a group that the snapshot does not have. A key that it lacks may still
have a row in a slice with log files: Hudi removes a deleted key from the index, but a delete that is older than its row
has no effect when the slice is read.

Bloom filters describe base files only, so slices with log files are always read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs

from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig
from hudi_py.errors import HudiError
from hudi_py.fsview.listing import listing_threads
from hudi_py.mdt.bloom_filters import BloomFilters
from hudi_py.mdt.lookup import BLOOM_FILTERS, RECORD_INDEX
from hudi_py.mdt.record_index import RecordIndex, RecordLocation, is_between_states
from hudi_py.mdt.statistics import COLUMN_STATS
from hudi_py.mdt.table import FILES_PARTITION, MetadataTable
from hudi_py.model.files import FileSlice
from hudi_py.runtime.log import log
from hudi_py.snapshot.ready_indexes import is_ready, opened
from hudi_py.snapshot.unique_keys import row_count
from hudi_py.storage.base import Storage
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.properties_file import read_table_config
from hudi_py.timeline.timeline import Timeline

if TYPE_CHECKING:
    from hudi_py.formats.bloom import HashedKeys
    from hudi_py.mdt.read_statistics import StatisticsReader
    from hudi_py.model.records import CommitMetadata

_IN_STEP: Final = (RECORD_INDEX, FILES_PARTITION)
"""Opening a snapshot compares the metadata table with the timeline only if files are listed through it."""


@attrs.frozen
class KeyIndexes:
    """
    The indexes of record keys that a snapshot can use.

    Args:
        contents: Reads the instants of the table's timeline.
        timeline: The timeline as the snapshot loaded it.
        config: The table's configuration.
        settings: The table's settings.
        is_present: Whether the snapshot was the latest when it was opened: the record index describes the present only.
    """

    contents: Contents
    timeline: Timeline
    config: TableConfig
    settings: Settings
    is_present: bool = attrs.field(kw_only=True)

    @property
    def key_fields(self) -> tuple[str, ...]:
        """The fields that keys are made of; empty if unknown."""
        from hudi_py.rows.asked_keys import key_fields_of

        return key_fields_of(self.config.properties)

    @property
    def _storage(self) -> Storage:
        return self.contents.store.storage

    def bloom_filters(self) -> BloomFilters | None:
        """
        The Bloom filters of base files, as a context manager; None if the table has none.

        Raises:
            CorruptMetadata, UnsupportedTable, StorageError: As `BloomFilters`.
        """
        if not is_ready(BLOOM_FILTERS, self.config, self.settings):
            return None
        return opened(
            BLOOM_FILTERS,
            lambda: BloomFilters(MetadataTable(self._storage), self.timeline),
            self._storage,
            self.settings,
        )

    def record_index(self, slices: Sequence[FileSlice]) -> RecordIndex | None:
        """
        The record index, as a context manager; None if the table has none, has changed since it was opened, or is
        between two states, or if a key may have rows in several file groups.

        Args:
            slices: All file slices of the snapshot.

        The data table's timeline is compared after the metadata table's was loaded, because the metadata table records
        an action before the action completes: the other order could miss one.

        Raises:
            CorruptMetadata, UnsupportedTable, StorageError: As `RecordIndex`.
        """
        if not self.is_present or not all(is_ready(each, self.config, self.settings) for each in _IN_STEP):
            return None
        return opened(RECORD_INDEX, partial(self._opened_record_index, slices), self._storage, self.settings)

    def _opened_record_index(self, slices: Sequence[FileSlice]) -> RecordIndex | None:
        table = MetadataTable(self._storage)
        metadata = table.store.load()
        # The properties again: since the snapshot was opened, another process may have dropped the index.
        if not is_ready(RECORD_INDEX, read_table_config(self._storage), self.settings):
            return None
        if self.contents.store.load().instants != self.timeline.instants:
            log.info("read.record_index.newer", table=self._storage.root)
            return None
        if is_between_states(self.timeline):
            return None
        index = RecordIndex(table, self.timeline, metadata)
        if self._names_all_rows(index, slices):
            return index
        index.close()
        log.info("read.record_index.repeated_keys", table=self._storage.root)
        return None

    def _names_all_rows(self, index: RecordIndex, slices: Sequence[FileSlice]) -> bool:
        count = row_count(slices, self._newest_first(), self._statistics)
        # Where nothing tells the number, the index is believed as by Apache Hudi: most tables repeat no key.
        return count is None or count[0] <= index.count() <= count[1]

    def _newest_first(self) -> Iterator[CommitMetadata]:
        """The completed writes; on object stores, where each is a round trip, several are read at the same time."""
        writes = tuple(reversed(tuple(self.timeline.writes.completed())))
        threads = listing_threads(self._storage)
        with ThreadPoolExecutor(threads) as pool:
            for start in range(0, len(writes), threads):
                yield from pool.map(self.contents.commit, writes[start : start + threads])

    def _statistics(self) -> StatisticsReader | None:
        from hudi_py.mdt.read_statistics import StatisticsReader

        if not is_ready(COLUMN_STATS, self.config, self.settings):
            return None
        return opened(
            COLUMN_STATS,
            lambda: StatisticsReader(MetadataTable(self._storage), self.timeline),
            self._storage,
            self.settings,
        )


def slices_of_keys(
    slices: Sequence[FileSlice], wanted: Mapping[str, str], open_index: Callable[[], RecordIndex | None]
) -> list[FileSlice] | None:
    """
    The slices that can hold a row with one of the wanted keys, by the record index; None if it cannot be used.

    Args:
        slices: File slices of the snapshot.
        wanted: The wanted keys, see `hudi_py.rows.asked_keys.asked_keys`.
        open_index: See `KeyIndexes.record_index`.
    """
    try:
        index = open_index()
        if index is None:
            return None
        with index:
            found = index.locations(wanted)
    # An index only saves work: without it, all slices are read.
    except HudiError as error:
        log.warning("read.statistics.unusable", partition=RECORD_INDEX, reason=str(error))
        return None
    return _at(slices, found, are_all_known={wanted[key] for key in found} == set(wanted.values()))


def _at(
    slices: Sequence[FileSlice], found: dict[str, RecordLocation], *, are_all_known: bool
) -> list[FileSlice] | None:
    places = {(each.partition_path, each.file_id) for each in found.values()}
    there = {(file_slice.partition_path, file_slice.file_id) for file_slice in slices}
    # The index is of another state of the table, so it may be wrong about other keys, too.
    if not places <= there:
        partition, file_id = min(places - there)
        reason = f"it names the file group {file_id} in {partition!r}, which the snapshot does not have"
        log.warning("read.statistics.unusable", partition=RECORD_INDEX, reason=reason)
        return None
    return [
        each
        for each in slices
        if (each.partition_path, each.file_id) in places or (not are_all_known and _has_logs(each))
    ]


def without_keys_ruled_out(
    slices: Sequence[FileSlice], wanted: HashedKeys, open_filters: Callable[[], BloomFilters | None]
) -> Sequence[FileSlice]:
    """*slices* without those whose Bloom filter in the metadata table rules out all of the keys *wanted*."""
    files = [
        (file_slice.partition_path, file_slice.base_file.name)
        for file_slice in slices
        if file_slice.base_file is not None and not _has_logs(file_slice)
    ]
    if not files:
        return slices
    try:
        opened = open_filters()
        if opened is None:
            return slices
        with opened:
            ruled_out = {file for file, bloom in opened.filters(files) if not bloom.might_contain_any(wanted)}
    except HudiError as error:
        log.warning("read.statistics.unusable", partition=BLOOM_FILTERS, reason=str(error))
        return slices
    return [
        each
        for each in slices
        if _has_logs(each) or each.base_file is None or (each.partition_path, each.base_file.name) not in ruled_out
    ]


def _has_logs(file_slice: FileSlice) -> bool:
    return any(not log.is_cdc for log in file_slice.log_files)

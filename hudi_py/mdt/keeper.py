"""
Keeps the metadata table in step with what hudi_py does to the table.

A commit or clean that bypasses the metadata table is lost at Apache Hudi's next write or leaves ghosts behind, so each
of our actions records itself there before it completes. With ``hoodie.metadata.enable=false`` the metadata table is
dropped instead, as Apache Hudi does; with ``true`` a table that has none gets one.

The answer is never cached: after every write of Apache Hudi the table may have another set of index partitions.
Source: rules/data-files 10 and 11.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import attrs

from hudi_py.config import keys
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata
from hudi_py.fsview.listing import FolderListing
from hudi_py.mdt.being_made import refuse_beside_maker
from hudi_py.mdt.changes import ListingChanges, changes_of_clean, changes_of_commit, changes_of_rollback
from hudi_py.mdt.compaction import compact, is_due
from hudi_py.mdt.create_missing import create_files_partition, create_index_of_rows, rows_to_index
from hudi_py.mdt.index_definitions import kept_indexes
from hudi_py.mdt.lookup import BLOOM_FILTERS, RECORD_INDEX
from hudi_py.mdt.removal import (
    PARTITIONS_KEY,
    can_drop,
    disable_unmaintained_partitions,
    drop_indexes,
    drop_metadata_table,
    leftovers,
    partition_folders,
    statistics_of,
)
from hudi_py.mdt.restoring import record_restore
from hudi_py.mdt.shares import Encoded
from hudi_py.mdt.statistics import COLUMN_STATS
from hudi_py.mdt.table import FILES_PARTITION, MetadataTable
from hudi_py.mdt.update import record_rollback, withdraw, write_delta_commit
from hudi_py.model.files import METADATA_TABLE_FOLDER
from hudi_py.model.instant import Action, Instant
from hudi_py.model.records import CleanMetadata, CommitMetadata, RollbackMetadata
from hudi_py.runtime.clock import Clock
from hudi_py.runtime.log import log
from hudi_py.storage.base import Storage
from hudi_py.timeline.lock import NO_LOCK, Lock
from hudi_py.timeline.properties_file import (
    BACKUP_FILE,
    read_table_config,
    recover_properties,
    update_properties,
)
from hudi_py.timeline.timeline import Timeline

if TYPE_CHECKING:  # they load PyArrow, which most tables and commands can do without
    import pyarrow as pa

    from hudi_py.mdt.kept_keys import TrackedKeys
    from hudi_py.mdt.kept_statistics import Ranges


@attrs.frozen
class MetadataTableKeeper:
    """
    Keeps the metadata table of one table in step; every action of hudi_py calls it before it completes.

    Args:
        storage: The data table's storage.
        settings: ``hoodie.metadata.enable``: unset keeps the table as it is, ``false`` drops, ``true`` creates.
        clock: Gives completion times.
        lock: The table's lock, which the caller holds; asked for again right before something is changed.
        dropped: Names of the partitions that this object has dropped from the metadata table and not made again.
    """

    storage: Storage
    settings: Settings
    clock: Clock
    lock: Lock = NO_LOCK
    dropped: set[str] = attrs.field(factory=set, init=False, eq=False, repr=False)

    def prepare(self, *, writes_data: bool, makes_index: bool = True) -> None:
        """
        Bring the metadata table into a state that can be kept true; call it before the first instant of an action.

        The order property, folder, instant gives a correct table after a crash at any point.

        Args:
            writes_data: Whether the action writes rows: then statistics that are not maintained get stale. A clean
                leaves them true.
            makes_index: Whether an index of rows that is asked for is made now. Not before a write is undone: the index
                would have its rows, and no delta commit whose rollback removes them.

        Raises:
            RefusedError: Rows would be missing from an index that hudi_py does not maintain.
            ConflictError: Another writer is just making an index; trying again helps.
            MetadataTableMissing: The properties name a metadata table that is not there.
        """
        if self.storage.size(BACKUP_FILE) is not None:  # a crash while the properties were rewritten
            recover_properties(self.storage)
        # Read again, whatever the caller has: the backup may have had other partitions.
        config = read_table_config(self.storage)
        if self.settings[keys.METADATA_ENABLED] is False:
            # the folder: a crash while dropping
            if config.has_metadata_table or self.storage.list(METADATA_TABLE_FOLDER):
                drop_metadata_table(self.storage, config, self._update)
            return
        table = None
        if FILES_PARTITION in config.metadata_partitions:
            table = MetadataTable(self.storage, self.clock)  # raises if it is missing: nothing could be recorded
        is_seen = config.has_metadata_table and (writes_data or statistics_of(config))
        folders = partition_folders(self.storage) if is_seen else ()
        if self._drop_vanished(config, folders):
            config = read_table_config(self.storage)
        # Before anything is created or dropped: it may refuse.
        is_made = writes_data and makes_index
        places = rows_to_index(self.storage, config, self.settings, self.clock) if is_made else None
        if config.has_metadata_table:
            if writes_data:
                # Imported here, and not above: this loads PyArrow, which a clean of a table without statistics can do
                # without.
                from hudi_py.mdt.kept_statistics import kept_partitions

                kept = kept_partitions(self.storage, config) | kept_indexes(self.storage, config)
                if table is not None and leftovers(config, kept, folders):
                    self._refuse_beside_maker(table, table.store.load())
                disable_unmaintained_partitions(self.storage, config, self._update, folders=folders, kept=kept)
        elif writes_data and (self.settings[keys.METADATA_ENABLED] or self.settings[keys.RECORD_INDEX_ENABLED]):
            create_files_partition(self.storage, config, self._update, self.clock, self.lock)
        if places is not None:
            create_index_of_rows(self.storage, places, self.settings, self._update, self.clock, self.lock)

    def columns_to_range(self, timeline: Timeline, schema: pa.Schema, *, is_widened: bool) -> tuple[str, ...]:
        """
        Return the columns whose ranges a write has to gather, see `record_commit`.

        Statistics that cannot hold the values of this schema are dropped; call it before the first data file.

        Args:
            timeline: The data table's timeline.
            schema: Columns of the rows, without meta columns.
            is_widened: Whether a column has another type than before: bounds of two kinds cannot be merged.
        """
        config = read_table_config(self.storage)
        if COLUMN_STATS not in config.metadata_partitions:
            return ()
        from hudi_py.mdt.file_statistics import can_hold
        from hudi_py.mdt.kept_statistics import KeptStatistics

        # Which columns are indexed may have changed with the last write of Apache Hudi, so it is asked before each
        # write.
        kept = KeptStatistics(self.storage, config, MetadataTable(self.storage, self.clock), timeline)
        if kept.is_empty:
            return ()
        form = kept.form(schema)
        if can_hold(form, schema) and not is_widened:
            return form.columns
        log.info("metadata.statistics.dropped", reason="they cannot hold the values of the new columns or types")
        # Bounds of another type cannot be merged with those that are there, and a column without a record is taken for
        # one of nulls (rules/data-files 11.1): no statistics are better than these.
        kept_ones, folders = kept_indexes(self.storage, config), partition_folders(self.storage)
        disable_unmaintained_partitions(self.storage, config, self._update, folders=folders, kept=kept_ones)
        return ()

    def compact(self, timeline: Timeline) -> str | None:
        """
        Compact the metadata table where that is due; call it before a write takes its time.

        Args:
            timeline: The data table's timeline.

        Returns:
            A time that the write's has to exceed: Apache Hudi rolls back nothing that is older than a compaction.
        """
        table = self._table()
        if table is None:
            return None
        delta_commits_max = self.settings[keys.METADATA_COMPACT_DELTA_COMMITS_MAX]
        metadata = table.store.load()
        # This costs no request beyond the listing that is needed anyway; `compact` reads log files.
        if is_due(metadata, delta_commits_max):
            partitions = read_table_config(self.storage).metadata_partitions
            compact(table, timeline, partitions=partitions, delta_commits_max=delta_commits_max)
            metadata = table.store.load()
        return metadata.last_time

    def record_commit(
        self,
        timeline: Timeline,
        instant: Instant,
        metadata: CommitMetadata,
        ranges: Ranges | None = None,
        tracked: TrackedKeys | None = None,
    ) -> str | None:
        """
        Record a commit that is about to complete.

        Args:
            timeline: The data table's timeline; the commit is still pending there.
            instant: The commit.
            metadata: What the commit recorded.
            ranges: Path of a base or log file to the ranges of its columns; files that are missing are read, where the
                table has statistics.
            tracked: Path of a file to the keys that came and went; those of missing files are read, where the table has
                a record index.

        Returns:
            A time that the commit's completion time has to exceed; None where there is nothing to keep.

        Raises:
            ConflictError: Another writer is just making an index, without the rows of this commit.
        """

        def of_keys(table: MetadataTable) -> dict[str, bytes | None]:
            from hudi_py.mdt.kept_keys import KeptRecordIndex

            kept = KeptRecordIndex(storage=self.storage, table=table, timeline=timeline)
            return kept.of_commit(instant, metadata, tracked or {})

        return self._record(
            timeline, instant, changes_of_commit(metadata), ranges or {}, of_keys, look=self._refuse_beside_maker
        )

    def record_clean(self, timeline: Timeline, instant: Instant, metadata: CleanMetadata) -> str | None:
        """Record a clean that is about to complete; as `record_commit`."""
        return self._record(timeline, instant, changes_of_clean(metadata))

    def record_return(self, timeline: Timeline, instant: Instant, files: Mapping[str, Mapping[str, int]]) -> str | None:
        """
        Record that files which a clean had removed are in the table again; as `record_commit`.

        Args:
            files: Partition path to names of data files and their sizes in bytes.
        """
        added = {path: names for path, names in files.items() if names}
        return self._record(
            timeline, instant, ListingChanges(added=added, written_partitions=tuple(files), is_return=True)
        )

    def record_rollback(
        self,
        timeline: Timeline,
        instant: Instant,
        metadata: RollbackMetadata,
        *,
        deleted_of_others: Mapping[str, tuple[str, ...]],
    ) -> str | None:
        """
        Record a rollback that is about to complete, while what it undoes is still pending; as `record_commit`.

        Args:
            deleted_of_others: Partition path to deleted files that other actions may have recorded.
        """
        changes = changes_of_rollback(metadata)
        times = (metadata.commits_rollback[0], instant.requested_time)

        def write(table: MetadataTable) -> Instant | None:
            self._drop_made_since(table, times[0])
            owed = partial(self._owed, table, timeline, instant)
            return record_rollback(
                table,
                timeline,
                *times,
                changes,
                deleted_of_others=deleted_of_others,
                statistics=owed,
                lost=self._drop_lost,
            )

        return self._completed_at(write)

    def forget(self, requested_time: str) -> None:
        """Take back what a pending write recorded, within a restore; `record_restore` records the files afterwards."""
        table = self._table()
        if table is not None:
            self._drop_made_since(table, requested_time)
            withdraw(table, requested_time)

    def record_restore(self, timeline: Timeline, instant: Instant, vanishing: Iterable[str]) -> str | None:
        """
        Record a restore that is about to complete; returns as `record_commit`.

        Args:
            vanishing: Requested times of everything that was undone, and of the rollbacks that go with the restore.
        """
        listing = FolderListing(self.storage)

        def write(table: MetadataTable) -> Instant | None:
            owed = partial(self._owed, table, timeline, instant)
            return record_restore(
                table,
                timeline,
                instant.requested_time,
                vanishing,
                listing,
                statistics=owed,
                lost=self._drop_lost,
            )

        return self._completed_at(write)

    def _record(
        self,
        timeline: Timeline,
        instant: Instant,
        changes: ListingChanges,
        ranges: Ranges | None = None,
        of_keys: Callable[[MetadataTable], dict[str, bytes | None]] | None = None,
        look: Callable[[MetadataTable, Timeline, str], None] | None = None,
    ) -> str | None:
        def write(table: MetadataTable) -> Instant:
            owed = self._owed(table, timeline, instant, changes, ranges, of_keys)
            return write_delta_commit(table, timeline, instant.requested_time, changes, owed, look=look)

        return self._completed_at(write)

    def _owed(
        self,
        table: MetadataTable,
        timeline: Timeline,
        instant: Instant,
        changes: ListingChanges,
        ranges: Ranges | None = None,
        of_keys: Callable[[MetadataTable], dict[str, bytes | None]] | None = None,
    ) -> Encoded:
        """The records that an action owes to the statistics and indexes that hudi_py keeps."""
        config = read_table_config(self.storage)
        owed: Encoded = {}
        if COLUMN_STATS in config.metadata_partitions:
            from hudi_py.mdt.kept_statistics import KeptStatistics

            kept = KeptStatistics(self.storage, config, table, timeline)
            owed |= {} if kept.is_empty else kept.records(changes, ranges)
        if BLOOM_FILTERS in config.metadata_partitions:
            from hudi_py.mdt.kept_keys import bloom_records

            owed[BLOOM_FILTERS] = bloom_records(self.storage, table.table_version, instant.requested_time, changes)
        if RECORD_INDEX in config.metadata_partitions and of_keys is not None:
            owed[RECORD_INDEX] = of_keys(table)
        return owed

    def _drop_lost(self) -> None:
        """
        Drop the indexes whose records cannot be set back: what a commit replaced there is not known after a compaction.

        Bounds of partitions are among them: Apache Hudi replaces them by those of its newest files, which do not hold
        the older files that a rollback makes the newest again. What is known of single files stays true.
        """
        self._drop_those(self._with_rows, "a compaction of the metadata table has merged the records of what is undone")

    def _drop_made_since(self, table: MetadataTable, requested_time: str) -> None:
        """Drop the indexes that were made of rows of a write that is undone: withdrawing its records leaves those."""
        timeline = table.store.load()
        undone = timeline.find(requested_time, Action.DELTA_COMMIT)
        if undone is None:  # nothing of it is recorded
            return
        names = []
        for name in self._with_rows:
            files = {each.base.instant_time for each in table.slices(timeline, name) if each.base is not None}
            # Not by a compaction: one that has merged the records leaves nothing to withdraw, which is told apart.
            made = filter(None, (timeline.find(time, Action.DELTA_COMMIT) for time in files))
            if any(_completed(each) > _completed(undone) for each in made):
                names.append(name)
        self._drop_those(names, "it was made when what is undone had been written")

    @property
    def _with_rows(self) -> list[str]:
        """The partitions whose records cannot be computed from single files."""
        names = read_table_config(self.storage).metadata_partitions
        return [name for name in names if can_drop(name) and name not in (COLUMN_STATS, BLOOM_FILTERS)]

    def _drop_those(self, names: Sequence[str], reason: str) -> None:
        for name in names:
            log.warning(
                "metadata.index.dropped",
                partition=name,
                reason=f"{reason}; Apache Hudi creates the index again when it is configured to",
            )
        if names:
            drop_indexes(self.storage, read_table_config(self.storage), self._update, names)

    def _completed_at(self, write: Callable[[MetadataTable], Instant | None]) -> str | None:
        """Write to the metadata table, if there is one; return the completion time of that."""
        table = self._table()
        if table is None:
            return None
        try:
            done = write(table)
        except CorruptMetadata:  # before anything of it was written
            if not self._drop_vanished(read_table_config(self.storage), partition_folders(self.storage)):
                raise
            done = write(table)
        return None if done is None else done.completion_time

    def _drop_vanished(self, config: TableConfig, folders: Collection[str]) -> bool:
        """
        Drop the statistics that are named and have no folder; return whether there were any.

        Nobody could write as long as they are named. Apache Hudi leaves a table so when it makes them while another
        writer removes what it takes for left over.
        """
        names = [name for name in statistics_of(config) if name not in folders]
        self._drop_those(names, "its folder is not there")
        return bool(names)

    def _refuse_beside_maker(self, table: MetadataTable, metadata: Timeline, own_time: str = "") -> None:
        refuse_beside_maker(table, metadata, self.clock, self.settings, own_time)

    def _table(self) -> MetadataTable | None:
        config = read_table_config(self.storage)
        if FILES_PARTITION not in config.metadata_partitions:
            return None
        return MetadataTable(self.storage, self.clock, self.lock)

    def _update(self, changes: Mapping[str, str | None]) -> None:
        # What is changed was read some time ago, and folders are deleted next.
        self.lock.check()
        names = PARTITIONS_KEY in changes
        before = read_table_config(self.storage).metadata_partitions if names else ()
        update_properties(self.storage, changes, self.clock)
        if names:
            self.dropped.update(before)
            self.dropped.difference_update((changes[PARTITIONS_KEY] or "").split(","))


def _completed(instant: Instant) -> str:
    """In layout 1 the times of the requests tell the order: what fills a new partition comes right after an action."""
    return instant.completion_time or instant.requested_time

"""
Compacts, cleans and archives the metadata table, so that it stays small even if only hudi_py works on the table.

A write of hudi_py compacts the metadata table when it begins, as writes of Apache Hudi do. But cleans without writes
make the metadata table grow too, so this service compacts it when the last instants are only cleans and the like. It
does not compact right after a commit: Apache Hudi could not roll that commit back then.

Clean and archival are the same services as for any table, with the settings of Apache Hudi for metadata tables: the
policy of the data table, with a fifth more retained and at least 20 commits, and one more instant on the active
timeline. They run after a compaction, because only a compaction makes slices deletable. A crash leaves what a crash of
one of the three services leaves.

Source: Hudi 0.15.0 to 1.1.1 ``HoodieMetadataWriteUtils.createMetadataWriteConfig``,
``HoodieBackedTableMetadataWriter.performTableServices``.
"""

from __future__ import annotations

import math
from typing import Final

import attrs

from hudi_py.config import keys
from hudi_py.config.archive import ArchiveConfig, archive_config
from hudi_py.config.clean import CleanConfig, clean_config
from hudi_py.config.settings import Settings
from hudi_py.engine.inline import LocalEngine
from hudi_py.mdt.compaction import is_due, is_known
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.mdt.table import FILES_PARTITION, MetadataTable
from hudi_py.model.instant import Action
from hudi_py.runtime.clock import Clock
from hudi_py.services.archive.service import ArchiveService
from hudi_py.services.clean.service import CleanService
from hudi_py.storage.base import Storage
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.lock import NO_LOCK, Lock
from hudi_py.timeline.properties_file import read_table_config
from hudi_py.timeline.store import TimelineStore
from hudi_py.timeline.timeline import Timeline

_COMMITS_RETAINED_MIN: Final = 20
_MORE: Final = 1.2
_DELTA_COMMITS_AFTER_COMPACTION: Final = 3
"""Up to this number of delta commits, a compaction counts as recent: a commit, its clean, and one in reserve."""

_QUIET_MIN: Final = 2
"""Compact after this number of cleans and the like since a write; a writer that cleans after a commit makes one."""


@attrs.frozen(kw_only=True)
class UpkeepService:
    """
    Keeps the metadata table of a table small.

    Args:
        storage: Storage of the data table.
        settings: Settings of the data table; with ``hoodie.metadata.enable=false`` nothing is done.
        clock: Source of instant times.
        lock: The table's lock.
    """

    storage: Storage
    settings: Settings
    clock: Clock
    lock: Lock = NO_LOCK

    def run(self) -> None:
        """
        Compact the metadata table if that is due; then clean and archive it if there was a compaction.

        Call it under the table's lock, after an action that was recorded in the metadata table. Nothing is done while
        an action of the table is pending, because its process may be working on the metadata table too; nor if there
        are partitions that hudi_py does not merge, which are left to Apache Hudi. If nothing is due, this only lists
        the timeline of the metadata table.

        Raises:
            CorruptMetadata, StorageError, ConflictError: As the services; the table itself is not touched.
        """
        config = read_table_config(self.storage)
        if FILES_PARTITION not in config.metadata_partitions or self.settings[keys.METADATA_ENABLED] is False:
            return
        table = MetadataTable(self.storage, self.clock, self.lock)
        metadata = table.store.load()
        # Asked first, because it costs no request: after most actions nothing is due.
        compacts = is_due(metadata, self.settings[keys.METADATA_COMPACT_DELTA_COMMITS_MAX])
        if not (compacts or _cleans(metadata)) or not is_known(table.partitions()):
            return
        data_timeline = TimelineStore(self.storage, config, self.clock).load()
        if data_timeline.pending():
            return
        # Right behind a commit Hudi could not roll it back any more (rules/data-files 11.2).
        if compacts and _is_quiet(data_timeline):
            MetadataTableKeeper(self.storage, self.settings, self.clock, self.lock).compact(data_timeline)
            metadata = table.store.load()
        if not _cleans(metadata):
            return
        cleaning = upkeep_clean_config(self.settings)
        has_suffix = table.format.metadata_table.clean_suffix is not None
        store = (
            _SuffixingStore(table.storage, table.config, self.clock, lock=table.store.lock, of_data=False)
            if has_suffix
            else table.store
        )
        CleanService(
            contents=Contents(store),
            table=table.config,
            config=cleaning,
            engine=LocalEngine(),
            metadata_table=MetadataTableKeeper(table.storage, Settings(None), self.clock),
            # The commits also name partitions that were dropped since.
            partitions=frozenset(config.metadata_partitions),
        ).run()
        ArchiveService(
            contents=Contents(table.store),
            table=table.config,
            config=upkeep_archive_config(self.settings),
            cleaning=cleaning,
            data_timeline=data_timeline,
        ).run()


class _SuffixingStore(TimelineStore):
    """A clean of the metadata table has the time of the last delta commit, and three digits more."""

    def new_time(self, timeline: Timeline | None = None, *, after: str | None = None) -> str:
        """See `TimelineStore`."""
        timeline = timeline or self.load()
        return timeline.completed(Action.DELTA_COMMIT)[-1].requested_time + (
            self.config.format.metadata_table.clean_suffix or ""
        )


def _is_quiet(data_timeline: Timeline) -> bool:
    """Whether the last write was so long ago that no writer is going to compact."""
    writes = data_timeline.writes.completed()
    last = writes[-1].requested_time if writes else ""
    return sum(i.requested_time > last for i in data_timeline.completed()) >= _QUIET_MIN


def _cleans(timeline: Timeline) -> bool:
    if timeline.pending(Action.CLEAN):
        return True
    compactions = timeline.completed(Action.COMMIT)
    if not compactions:
        return False
    last = compactions[-1].requested_time
    after = [i for i in timeline.completed(Action.DELTA_COMMIT) if i.requested_time > last]
    # Once after each compaction: before the next one no slice of the metadata table becomes deletable.
    return len(after) <= _DELTA_COMMITS_AFTER_COMPACTION


def upkeep_clean_config(settings: Settings) -> CleanConfig:
    """How the metadata table is cleaned: by the policy of the data table, a fifth more of it (rule A-4)."""
    given = clean_config(settings)
    return CleanConfig(
        policy=given.policy,
        commits_retained=max(_COMMITS_RETAINED_MIN, int(_MORE * given.commits_retained)),
        file_versions_retained=math.ceil(_MORE * given.file_versions_retained),
        hours_retained=math.ceil(_MORE * given.hours_retained),
        incremental=False,  # there are few partitions
        breakers=False,  # most files are old log files, so a clean deletes most of them
        services_enabled=given.services_enabled,
    )


def upkeep_archive_config(settings: Settings) -> ArchiveConfig:
    """How the metadata table's timeline is archived: its clean needs the retained commits and one before them."""
    given = archive_config(settings)
    # One more than its clean retains: with no more than that there is no earliest commit to retain (rule A-16).
    keep_min = max(given.keep_min, upkeep_clean_config(settings).commits_retained) + 1
    return attrs.evolve(
        given,
        keep_min=keep_min,
        keep_max=keep_min + given.keep_max - given.keep_min,
        beyond_savepoint=False,
        delta_commits_kept=settings[keys.METADATA_COMPACT_DELTA_COMMITS_MAX],
    )

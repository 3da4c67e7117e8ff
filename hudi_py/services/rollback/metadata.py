"""Prepares the metadata table for the rollback of completed commits."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from hudi_py.config import keys
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.mdt.table import FILES_PARTITION, MetadataTable, is_archived
from hudi_py.model.instant import Action, Instant
from hudi_py.runtime.log import log
from hudi_py.timeline.properties_file import read_table_config


def prepare_metadata_table(keeper: MetadataTableKeeper, targets: Iterable[Instant | None]) -> None:
    """
    Make sure that these writes can be undone in the metadata table, or drop it.

    A write is undone there by a rollback of the delta commit of the same time. If the metadata table was created after
    the write, it has no such delta commit and would list the write's files for ever. Then it is dropped, and Apache
    Hudi, or our next write with ``hoodie.metadata.enable=true``, creates it again. Indexes that hudi_py does not
    maintain are switched off, and none is created.

    Args:
        keeper: Keeper of the metadata table.
        targets: Writes to undo; None for those that are no longer on the timeline.

    Raises:
        RefusedError: Rows would be missing from an index that hudi_py does not maintain.
    """
    config = read_table_config(keeper.storage)
    if not config.has_metadata_table:
        return
    completed = [target.requested_time for target in targets if target is not None and target.is_completed]
    if completed and FILES_PARTITION in config.metadata_partitions:
        known = MetadataTable(keeper.storage, keeper.clock).store.load()
        # Not one that is older than its timeline: that one is compacted, and its files are recorded as deleted.
        unknown = [t for t in completed if known.find(t, Action.DELTA_COMMIT) is None and not is_archived(known, t)]
        if unknown:
            log.warning("metadata_table.dropped", why="it does not know a write that is undone", instant=unknown[0])
            settings = keeper.settings.merged({keys.METADATA_ENABLED.name: False})
            attrs.evolve(keeper, settings=settings).prepare(writes_data=False)
            return
    keeper.prepare(writes_data=bool(completed), makes_index=False)

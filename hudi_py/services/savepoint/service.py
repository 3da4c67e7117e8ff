"""
Creating and deleting savepoints.

What a crash leaves, and what the next call makes of it:

1. create, only ``.savepoint.inflight``: it pins nothing; creating it again goes on, deleting it removes it;
2. delete, completed file gone: the same.

Source: format/table-services C-1 to C-9; Hudi ``SavepointActionExecutor``, ``SavepointHelpers``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import attrs

from hudi_py.config.table import TableConfig
from hudi_py.errors import RefusedError
from hudi_py.formats import records_codec as codec
from hudi_py.fsview.build import PartitionView, ViewContext, build_partition
from hudi_py.fsview.listing import Listing
from hudi_py.fsview.loader import load_context
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.mdt.listing import open_snapshot
from hudi_py.model.files import join_path
from hudi_py.model.holes import Holes, holes_of
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import SavepointMetadata
from hudi_py.runtime.log import log
from hudi_py.services.savepoint.plan import check_bound, check_pending_cleans, held_files, savepoint_target
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline


@attrs.frozen(kw_only=True)
class SavepointService:
    """
    Savepoints of one table.

    Args:
        contents: The table's timeline.
        table: Its settings.
        metadata_table: Tells where files are looked up; a savepoint changes nothing there.
    """

    contents: Contents
    table: TableConfig
    metadata_table: MetadataTableKeeper

    def plan(
        self, requested_time: str | None = None, *, user: str = "", comment: str = ""
    ) -> tuple[str, SavepointMetadata]:
        """
        What a savepoint would hold; nothing is written.

        Returns:
            The requested time of the commit, and the content.

        Raises:
            ConfigError: There is no such completed commit.
            RefusedError: Its files may be gone or are about to go, or it is savepointed already.
        """
        timeline, listing = open_snapshot(self.contents.store, self.table, self.metadata_table.settings)
        target = savepoint_target(timeline, self.table.table_type, requested_time)
        time = target.requested_time
        existing = timeline.find(time, Action.SAVEPOINT)
        if existing is not None and existing.is_completed:
            raise RefusedError(f"{time} is savepointed already; delete that savepoint first to change it")
        check_bound(target, *self._earliest_retained(timeline))
        context = load_context(timeline, self.contents, for_planning=True, with_clustering=False)
        held = held_files(context, _partitions(context, listing), time)
        check_pending_cleans(held, self._pending_cleans(timeline))
        now = self.contents.store.clock.now()
        return time, SavepointMetadata(
            savepointed_by=user, savepointed_at_ms=int(now.timestamp() * 1000), comments=comment, files=held
        )

    def create(self, requested_time: str | None = None, *, user: str = "", comment: str = "") -> Instant:
        """
        Pin the files of a commit.

        Args:
            requested_time: Of a completed commit; None for the last one.
            user, comment: Free text that is kept with it.

        Returns:
            The completed savepoint; its requested time is that of the commit.

        Raises:
            As `plan`; ConflictError: Another process created it at the same moment.
        """
        time, metadata = self.plan(requested_time, user=user, comment=comment)
        store = self.contents.store
        pending = store.load().find(time, Action.SAVEPOINT) or store.open_savepoint(time)
        done = store.complete(pending, codec.encode_savepoint(metadata, sync=os.urandom(16)))
        log.info("savepoint.created", instant=time, files_held=sum(map(len, metadata.files.values())))
        return done

    def delete(self, requested_time: str) -> bool:
        """
        Let go of a savepoint: completed back to inflight, then the inflight file goes (rule C-6).

        Returns:
            False when there was none.
        """
        store = self.contents.store
        timeline = store.load()
        if timeline.find(requested_time, Action.SAVEPOINT) is None:
            return False
        mine = [i for i in timeline.all_states if i.requested_time == requested_time and i.action is Action.SAVEPOINT]
        if not any(i.is_pending for i in mine):
            store.open_savepoint(requested_time)
        for instant in mine:
            if instant.is_completed:
                store.remove(instant)
        store.remove(Instant(requested_time, Action.SAVEPOINT, State.INFLIGHT))
        log.info("savepoint.deleted", instant=requested_time)
        return True

    def savepoints(self) -> tuple[tuple[Instant, SavepointMetadata], ...]:
        """Every completed savepoint with its content, oldest first."""
        completed = self.contents.store.load().completed(Action.SAVEPOINT)
        return tuple((instant, self.contents.savepoint(instant)) for instant in completed)

    def _earliest_retained(self, timeline: Timeline) -> tuple[str, Holes]:
        """
        The lower bound of rule C-2: from the last clean, pending or not; without one the first completed commit.

        And what that clean left before its window.
        """
        cleans = timeline.of((Action.CLEAN,)).instants
        if not cleans:
            return timeline.commits.completed()[0].requested_time, Holes()
        if cleans[-1].is_completed:
            metadata = self.contents.clean(cleans[-1])
            return metadata.earliest_commit_to_retain, holes_of(metadata.extra_metadata)
        plan = self.contents.clean_plan(cleans[-1])
        earliest = plan.earliest_instant_to_retain
        return "" if earliest is None else earliest.requested_time, holes_of(plan.extra_metadata)

    def _pending_cleans(self, timeline: Timeline) -> dict[str, frozenset[str]]:
        planned = {}
        for instant in timeline.pending(Action.CLEAN):
            files = self.contents.clean_plan(instant).files_to_delete
            planned[instant.requested_time] = frozenset(
                join_path(partition, info.name) for partition, infos in files.items() for info in infos
            )
        return planned


def _partitions(context: ViewContext, listing: Listing) -> Iterator[PartitionView]:
    for path, entries in listing.walk():
        yield build_partition(context, path, ((entry.name, None) for entry in entries))

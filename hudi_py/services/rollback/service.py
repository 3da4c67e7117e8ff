"""
Rolls back writes: all failed ones, or one that the caller names.

In layout 2 every log file belongs to one delta commit and is deleted with it; in layout 1 log files are kept and get a
rollback block. `execute` describes what a crash leaves; the next call finishes it from the stored plan. If the table
has a lock, plans are made and stored under it, and files are deleted without it (F.1).

Source: rules/table-services B.2 to B.4; Hudi ``BaseRollbackActionExecutor``, ``BaseHoodieTableServiceClient``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

import attrs

from hudi_py.config.table import TableConfig, TableType
from hudi_py.errors import ConflictError, CorruptMetadata, RefusedError
from hudi_py.fsview.listing import FolderListing
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.mdt.lost_writes import refuse_lost_writes
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import InstantInfo, RollbackMetadata, RollbackPlan
from hudi_py.runtime.log import log
from hudi_py.services.rollback import plan as planning
from hudi_py.services.rollback.beside import Beside, pulses_of, refuse_alive
from hudi_py.services.rollback.execute import RollbackExecutor
from hudi_py.services.rollback.leased import refuse_leased
from hudi_py.services.rollback.leftovers import Leftovers
from hudi_py.services.rollback.markers import sweep_markers
from hudi_py.services.rollback.metadata import prepare_metadata_table
from hudi_py.services.rollback.state_before import StateBefore
from hudi_py.services.rollback.stored import stored_plan
from hudi_py.timeline.archive import load_archived_commits
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.markers import delete_markers_of_completed
from hudi_py.timeline.quarantine import refuse_under_undo
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.commit import Requested, cancelling, prepared, withdraw
from hudi_py.txn.pairs import Service

_WRITE_ACTIONS = frozenset(action.value for action in (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT))


class _Begun(NamedTuple):
    """A pending rollback, its stored plan, and what that undoes."""

    instant: Instant
    plan: RollbackPlan
    target: InstantInfo


class CheckedRollback(NamedTuple):
    """A rollback that is allowed, and the pending instants whose plans have to be withdrawn first."""

    plan: RollbackPlan
    withdrawn: tuple[Instant, ...] = ()


@attrs.frozen(kw_only=True)
class RollbackService:
    """
    Rolls back writes of one table.

    Args:
        contents: The table's timeline.
        table: Its properties.
        metadata_table: Keeper of the metadata table.
        ways_back: Makes a sentence about states that can be restored, for messages.
    """

    contents: Contents
    table: TableConfig
    metadata_table: MetadataTableKeeper
    ways_back: Callable[[], str] = str

    def run(
        self,
        *,
        only: Collection[str] | None = None,
        is_dead: Callable[[str], bool] | None = None,
        timeline: Timeline | None = None,
    ) -> list[RollbackMetadata]:
        """
        Finish pending rollbacks and roll back every failed write, newest first.

        Args:
            only: Requested times that may be rolled back; None for all. The timeline is loaded after the caller has
                chosen, so a write that has completed in between is kept (rule B-3).
            is_dead: Whether the write of a requested time has failed. If the table has a lock, it is called under it
                before the timeline is loaded again and the rollback is planned.
            timeline: One without pending rollbacks, for a caller that has chosen nothing: only markers are swept then.

        Raises:
            CorruptMetadata: A marker names a file that is not of its write, or the completed file of a write was lost;
                nothing was deleted.
            ConflictError: Another process rolls back the same write.
            RefusedError: A stored plan names files that are not of the failed write; or all are asked for, and a
                restore is pending, which has made commits pending itself and undoes them in its own order.
        """
        timeline = timeline or self.contents.store.load()
        if only is None:
            self._refuse_restore(timeline)
        self._sweep_markers(timeline)
        pending = timeline.pending(Action.ROLLBACK)
        stay = self._clusterings(timeline, on_doubt=True)
        failed = planning.failed_writes(timeline, self.table.table_type, clusterings=stay)
        if only is not None:
            failed = tuple(each for each in failed if each.requested_time in only)
        elif failed:
            failed = self._without_alive(failed)
        if not pending and not failed:
            return []
        # A write whose completed file was lost looks failed; rolling it back would delete visible rows for good.
        refuse_lost_writes(timeline, self.contents, self.table, {each.requested_time for each in failed})
        lock = self.contents.store.lock
        with lock.held("rollback"):
            self.metadata_table.prepare(writes_data=False)
        results = []
        done: set[str] = set()
        # Newest first, like the writes that they undo (rule B-8).
        for instant in reversed(pending):
            with lock.held("rollback"):
                stored = self._stored(timeline, instant)
            if stored is not None:
                done.add(stored.target.requested_time)
                results.append(self._execute(stored))
        for write in failed:
            # Its stored plan was carried out just now.
            if write.requested_time in done:
                continue
            with lock.held(f"rollback of {write.requested_time}"):
                begun = self._begin(write, is_dead)
            if begun is not None:
                results.append(self._execute(begun))
        return results

    def _refuse_restore(self, timeline: Timeline) -> None:
        for instant in timeline.pending(Action.RESTORE):
            raise RefusedError(
                f"{self.contents.store.storage.root}: {instant} is pending and undoes writes in its own order; finish "
                "it first with hudi-py recover; nothing was rolled back"
            )

    def _without_alive(self, failed: tuple[Instant, ...]) -> tuple[Instant, ...]:
        """Leave out writes whose heartbeat is not expired: they have not failed."""
        alive = pulses_of(self.contents, self.metadata_table.settings)
        for each in failed:
            if each.requested_time in alive:
                log.warning("rollback.spared", instant=each.requested_time, why=str(alive[each.requested_time]))
        return tuple(each for each in failed if each.requested_time not in alive)

    def plan(self, requested_time: str) -> RollbackPlan:
        """The plan of the rollback of this write; nothing is written. Raises as `preview`."""
        return self.preview(requested_time).plan

    def preview(self, requested_time: str) -> CheckedRollback:
        """
        The plan of the rollback of this write, and plans that it would withdraw; nothing is written.

        Raises:
            ConfigError: There is no such write.
            RefusedError: It must not be rolled back; the message says why.
            CorruptMetadata: It is unknown what it wrote.
        """
        timeline = self.contents.store.load()
        target = planning.named_write(timeline, requested_time)
        return self._checked_plan(timeline, target)

    def roll_back(self, requested_time: str) -> RollbackMetadata:
        """
        Roll back one write, failed or completed; of a pending compaction or clustering the plan is kept.

        A pending rollback of it is finished.

        Raises:
            As `preview`; ConflictError: Another process rolls it back; StorageError: a file could not be deleted, then
            the rollback stays inflight and the next call finishes it.
        """
        with self.contents.store.lock.held(f"rollback of {requested_time}"):
            begun = self._begin_named(requested_time)
        return self._execute(begun)

    def _begin_named(self, requested_time: str) -> _Begun:
        timeline = self.contents.store.load()
        for instant in reversed(timeline.pending(Action.ROLLBACK)):
            stored = stored_plan(self.contents, instant)
            if stored is None or stored.instant_to_rollback is None:
                continue
            if stored.instant_to_rollback.requested_time == requested_time:
                if stored.instant_to_rollback.action == Action.CLEAN.value:
                    raise RefusedError(
                        f"{instant} is the undo of a clean; finish it: hudi-py undo TABLE {requested_time}"
                    )
                found = timeline.find(requested_time, Action(stored.instant_to_rollback.action))
                if instant.state is State.REQUESTED:
                    self._refuse_alive(found)
                if found is not None and found.is_completed and instant.state is State.REQUESTED:
                    # it has done nothing yet, and the timeline may have changed since
                    checked = self._checked_plan(timeline.without(instant), found)
                    withdraw(self.contents.store, checked.withdrawn, f"rollback of {found}")
                self._sweep_markers(timeline)
                prepare_metadata_table(self.metadata_table, (found,))
                return _Begun(instant, stored, stored.instant_to_rollback)
        target = planning.named_write(timeline, requested_time)
        checked = self._checked_plan(timeline, target)
        self._sweep_markers(timeline)
        prepare_metadata_table(self.metadata_table, (target,))
        requested = prepared(self.contents.store, Action.ROLLBACK).request(checked.plan)
        self._validate_again(timeline, requested, target, checked)
        return _Begun(requested.instant, checked.plan, planning.target_info(target))

    def _validate_again(
        self, before: Timeline, requested: Requested, target: Instant, checked: CheckedRollback
    ) -> None:
        """
        Withdraw the rollback if the timeline has changed since it was planned, so that it would be refused now.

        Otherwise withdraw the plans that would be wrong after the rollback.

        Raises:
            ConflictError: The rollback is withdrawn; nothing was undone.
        """
        with requested.withdrawn_if_refused() as timeline:
            now = timeline.without(requested.instant)
            if target.is_completed:  # a lease may have been taken since, which does not change the timeline
                refuse_leased(self.contents, f"rollback of {target}", (target.requested_time,))
            # Judged again only if something happened: judging reads all commits of the timeline.
            if target.is_completed and now != before:
                checked = self._checked_plan(now, planning.named_write(now, target.requested_time))
            withdraw(self.contents.store, checked.withdrawn, f"rollback of {target}")

    def _execute(self, begun: _Begun) -> RollbackMetadata:
        """Execute without the lock; the executor takes it to complete the rollback (rule B-22)."""
        return RollbackExecutor(contents=self.contents, metadata_table=self.metadata_table).execute(*begun)

    def _checked_plan(self, timeline: Timeline, target: Instant) -> CheckedRollback:
        planning.check_named(timeline, self.table.table_type, target)
        root = self.contents.store.storage.root
        if target.is_pending:
            self._refuse_alive(target)
            # The rollback of an attempt keeps the plan, and here there is no attempt.
            if target.state is State.REQUESTED and self._keeps_plan(target):
                raise RefusedError(
                    f"{target} is only planned: there is nothing to roll back yet; withdraw its plan with "
                    f"{cancelling(root, target)}"
                )
            written = self._leftovers.of_pending(target)
            return CheckedRollback(planning.rollback_plan(planning.target_info(target), written, root))
        self.contents.store.deletion.permit(f"rollback of {target}")  # its rows were shown to readers
        refuse_leased(self.contents, f"rollback of {target}", (target.requested_time,))
        refuse_under_undo(self.contents, timeline, f"rollback of {target}")
        metadata = self.contents.commit(target)
        before = StateBefore(self.contents, self.table).judge(timeline, (target,))
        times = frozenset((target.requested_time,))
        beside = Beside(contents=self.contents, service=Service.ROLLBACK, undone=times, same=times, before=before)
        withdrawn = beside.to_withdraw(timeline)
        # The archive is read only if no active commit without a savepoint is left: otherwise archival, which goes from
        # the oldest on, cannot have passed what the rollback makes the newest commit.
        kept = timeline.without(target)
        if all(timeline.find(each.requested_time, Action.SAVEPOINT) for each in kept.committed):
            last = max((each.requested_time for each in kept.committed), default="")
            archived = load_archived_commits(self.contents.store.storage, self.table, last, target.requested_time)
            planning.check_not_the_end(last, archived, target, self.ways_back)
        planning.check_state_before(target, before, self.ways_back() if before.lost or before.hidden else "")
        if self._is_compaction(target):
            listing = FolderListing(self.contents.store.storage)
            names = {p: [entry.name for entry in listing.partition(p)] for p in metadata.partition_to_write_stats}
            planning.check_no_logs_above(target, names)
        written = self._leftovers.of_completed(target, metadata)
        return CheckedRollback(planning.rollback_plan(planning.target_info(target), written, root), withdrawn)

    def _refuse_alive(self, target: Instant | None) -> None:
        refuse_alive(self.contents, self.metadata_table.settings, f"rollback of {target}", (target,))

    @property
    def _leftovers(self) -> Leftovers:
        return Leftovers(self.contents)

    def _is_compaction(self, target: Instant) -> bool:
        """Whether it is a compaction of layout 1: later log files have its time and belong to its slices."""
        is_mor = self.table.table_type is TableType.MERGE_ON_READ
        return is_mor and self.table.format.log_naming.tells_slice and target.action is Action.COMMIT

    def _sweep_markers(self, timeline: Timeline) -> None:
        """Remove marker folders that a crash left, of completed instants and of writes that were rolled back."""
        marked = delete_markers_of_completed(self.contents.store.storage, timeline)
        sweep_markers(self.contents, timeline, marked, timeline.completed(Action.ROLLBACK))

    def _clusterings(self, timeline: Timeline, *, on_doubt: bool = False) -> frozenset[str]:
        """Pending clusterings of layout 1; with *on_doubt* also instants whose plan cannot be read, to keep them."""
        found = set()
        for instant in timeline.pending(Action.REPLACE_COMMIT):
            try:
                if self.contents.is_clustering(instant):
                    found.add(instant.requested_time)
            except CorruptMetadata as error:
                if not on_doubt:
                    raise
                log.warning("rollback.plan.unreadable", instant=instant.requested_time, why=str(error))
                found.add(instant.requested_time)
        return frozenset(found)

    def _keeps_plan(self, instant: Instant) -> bool:
        return instant.action in planning.RUN_AGAIN or self.contents.is_clustering(instant)

    def _is_ours(self, timeline: Timeline, plan: RollbackPlan) -> bool:
        """Whether the plan undoes a write; compactions and clusterings are left to their own service (rule B-7)."""
        target = plan.instant_to_rollback
        if target is None or target.action not in _WRITE_ACTIONS:
            return False
        found = timeline.find(target.requested_time, Action(target.action))
        if found is None or found.is_completed or found.action in planning.RUN_AGAIN:  # the last: it was completed
            return True
        return not self._keeps_plan(found)

    def _is_withdrawn(self, timeline: Timeline, instant: Instant, target: InstantInfo) -> bool:
        """
        Withdraw a stored plan that was not begun if its target is completed; whether it was withdrawn.

        The rows of the target are visible, and callers of `run` did not ask to undo them: either the write completed
        after it had been taken for failed (K-14), or a process that was asked to undo it was stopped before it did
        anything. An inflight rollback is continued, because it may have deleted files.
        """
        found = timeline.find(target.requested_time, Action(target.action))
        if instant.state is not State.REQUESTED or found is None or not found.is_completed:
            return False
        log.warning("rollback.withdrawn", instant=instant.requested_time, completed=target.requested_time)
        store = self.contents.store
        plan = store.read_plan(instant)
        store.remove(instant)
        if any(each.state > instant.state for each in store.files_of(instant)):  # another process has just begun it
            store.storage.create_new(store.path(instant), plan)
            raise ConflictError(f"{instant} is being carried out by another process; try again when it is done")
        return True

    def _stored(self, timeline: Timeline, instant: Instant) -> _Begun | None:
        """A pending rollback, if it is to be finished now."""
        plan = stored_plan(self.contents, instant)
        if plan is None or plan.instant_to_rollback is None or not self._is_ours(timeline, plan):
            return None
        if self._is_withdrawn(timeline, instant, plan.instant_to_rollback):
            return None
        return _Begun(instant, plan, plan.instant_to_rollback)

    def _begin(self, failed: Instant, is_dead: Callable[[str], bool] | None) -> _Begun | None:
        """
        Plan and request the rollback; None if the write turns out to be running, completed or removed.

        A writer completes before it removes its heartbeat. So the heartbeat is read first, then the timeline (K-14): a
        write without a heartbeat that has completed is then found completed.
        """
        store = self.contents.store
        if store.lock.is_used:
            lives = is_dead is not None and not is_dead(failed.requested_time)
            # A restore makes commits pending itself. A writer takes back its own write beside one, too.
            lives = lives or (is_dead is not None and bool(store.load().pending(Action.RESTORE)))
            now = [each for each in store.files_of(failed) if each.state >= failed.state]
            if lives or not now or any(each.is_completed for each in now):
                log.warning("rollback.spared", instant=failed.requested_time)
                return None
            failed = max(now, key=lambda each: each.state)
        target = planning.target_info(failed)
        written = self._leftovers.of_pending(failed)
        plan = planning.rollback_plan(target, written, store.storage.root)
        return _Begun(prepared(store, Action.ROLLBACK).request(plan).instant, plan, target)

"""
Restores a table to a savepoint.

What a crash leaves after each step, and what the next call does:

1. ``.restore.requested`` or also ``.restore.inflight``: no commit can start; the restore goes on from its stored plan;
2. some writes are undone, one rollback has begun: it is carried out again from its own plan, the others are done;
3. the restore is completed, its rollbacks are still there: the next call removes them, and so does archival.

If the table has a lock, plans are made and stored under it, and so is the completion (F.1). Files are deleted without
it: that may take longer than a lock is valid.

Source: rules/table-services B-27 to B-33, J.8; Hudi ``BaseRestoreActionExecutor``.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import attrs

from hudi_py.config import keys
from hudi_py.config.table import TableConfig, TableType
from hudi_py.errors import ConfigError, ConflictError, HudiError, RefusedError
from hudi_py.formats import records_codec as codec
from hudi_py.fsview.listing import FolderListing
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import InstantInfo, RestoreMetadata, RestorePlan, RollbackMetadata, RollbackPlan
from hudi_py.model.words import shell_word
from hudi_py.runtime.log import log
from hudi_py.services.restore.plan import (
    FilesGone,
    check_files_are_there,
    check_nothing_is_archived_after,
    check_savepoints_after,
    check_state_before,
    restore_targets,
)
from hudi_py.services.rollback.before import together
from hudi_py.services.rollback.beside import Beside, pulses_of, refuse_alive
from hudi_py.services.rollback.execute import RollbackExecutor
from hudi_py.services.rollback.leased import refuse_leased
from hudi_py.services.rollback.leftovers import Leftovers
from hudi_py.services.rollback.markers import sweep_markers
from hudi_py.services.rollback.metadata import prepare_metadata_table
from hudi_py.services.rollback.plan import Written, rollback_plan, target_info
from hudi_py.services.rollback.state_before import StateBefore
from hudi_py.services.rollback.stored import stored_plan
from hudi_py.timeline.archive import load_archived
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.markers import delete_markers, instants_with_markers
from hudi_py.timeline.quarantine import refuse_under_undo, undoes_clean
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.commit import Requested, prepared, withdraw
from hudi_py.txn.pairs import Service, judge


class JudgedRestore(NamedTuple):
    """A restore that is allowed, and the pending instants whose plans have to be withdrawn first."""

    plan: RestorePlan
    withdrawn: tuple[Instant, ...]


@attrs.frozen(kw_only=True)
class RestoreService:
    """
    Restores one table.

    Args:
        contents: The table's timeline.
        table: Its properties.
        metadata_table: Undoes the same writes, or is dropped if it cannot.
    """

    contents: Contents
    table: TableConfig
    metadata_table: MetadataTableKeeper

    def plan(self, savepoint_time: str) -> RestorePlan:
        """The writes that the restore would undo, newest first; nothing is written. Raises as `preview`."""
        return self.preview(savepoint_time).plan

    def preview(self, savepoint_time: str) -> JudgedRestore:
        """
        The writes that the restore would undo, newest first, and plans that it would withdraw; nothing is written.

        Raises:
            ConfigError: There is no such savepoint.
            RefusedError: Files of the savepoint are missing, commits after it are archived or savepointed, or another
                restore is pending.
            CorruptMetadata: The archive is damaged, so it is unknown which commits are archived.
        """
        self.contents.store.deletion.permit(f"restore to {savepoint_time}")
        timeline = self.contents.store.load()
        pending = self._pending(timeline, savepoint_time)
        if pending is not None:
            return JudgedRestore(self._pending_plan(timeline, pending), ())
        return self._new_plan(timeline, savepoint_time)

    def run(self, savepoint_time: str) -> RestoreMetadata:
        """
        Restore a savepoint: every write after it is undone, and its files are deleted.

        A pending restore to the same savepoint is finished.

        Raises:
            As `preview`; ConflictError: Another writer committed in the meantime; StorageError: a file could not be
            deleted, then the restore stays pending and the next call continues it.
        """
        with self.contents.store.lock.held(f"restore to {savepoint_time}"):
            begun = self._begin(savepoint_time)
        return begun if isinstance(begun, RestoreMetadata) else self._execute(*begun, savepoint_time)

    def _begin(self, savepoint_time: str) -> tuple[Requested, RestorePlan] | RestoreMetadata:
        """The restore to carry out, or the result of the last one if nothing has to be done."""
        store = self.contents.store
        store.deletion.permit(f"restore to {savepoint_time}")
        timeline = store.load()
        instant = self._pending(timeline, savepoint_time)
        if instant is not None:
            plan = self._pending_plan(timeline, instant)
            if instant.state is State.REQUESTED:  # once it has begun, only finishing it makes the table whole again
                self._refuse_leased(
                    timeline, savepoint_time, (each.requested_time for each in plan.instants_to_rollback)
                )
            # From its stored plan: what it has undone by now would be missing from a new one.
            return Requested(store, instant), plan
        judged = self._new_plan(timeline, savepoint_time)
        plan = judged.plan
        # Asked again after a crash between completion and the end: the restore is done, only its rollbacks are left.
        last = self._last_restore(timeline, savepoint_time)
        if last is not None and not plan.instants_to_rollback and self._leaves_only_its_own(last, timeline):
            self._remove_rollbacks(savepoint_time)
            return codec.decode_restore_metadata(store.read(last), store.path(last))
        prepare_metadata_table(
            self.metadata_table,
            (timeline.find(each.requested_time, Action(each.action)) for each in plan.instants_to_rollback),
        )
        # From here on no commit can start (rule B-33).
        requested = prepared(store, Action.RESTORE).request(plan)
        # Without a lock another process may have begun something since the plan was judged; now it sees the restore.
        self._validate_again(timeline, requested, judged)
        return requested, plan

    def _execute(self, requested: Requested, plan: RestorePlan, savepoint_time: str) -> RestoreMetadata:
        store = self.contents.store
        started = store.clock.now()
        begun = requested.begin()
        instant = begun.instant
        rollbacks = {}
        # Newest first (rule B-29): a write may build on older ones, never on newer ones.
        for target in plan.instants_to_rollback:
            # One lock for each write: undoing all may take longer than a lock is valid.
            done = self._undo(target)
            if done is not None:
                rollbacks[target.requested_time] = (done,)
        # Before the restore completes: while it is pending, it can still be carried on (rule B-32).
        self._check_result(savepoint_time)
        metadata = RestoreMetadata(
            start_restore_time=instant.requested_time,
            time_taken_ms=max(0, int((store.clock.now() - started).total_seconds() * 1000)),
            instants_to_rollback=tuple(each.requested_time for each in plan.instants_to_rollback),
            rollbacks=rollbacks,
            restore_instant_info=plan.instants_to_rollback,
        )
        with begun.ready() as ready:
            rollbacks_after = (i.requested_time for i in self._rollbacks(ready.timeline, savepoint_time))
            # Under the lock: a rollback of another process may have been added since.
            vanishing = {*metadata.instants_to_rollback, *rollbacks_after}
            ready.record(partial(self.metadata_table.record_restore, vanishing=vanishing)).publish(metadata)
            self._remove_rollbacks(savepoint_time)
        log.info("restore.completed", instant=instant.requested_time, savepoint=savepoint_time, undone=len(rollbacks))
        return metadata

    def _undo(self, target: InstantInfo) -> RollbackMetadata | None:
        """Roll one write back without completing the rollback (rule B-30); None if it is no longer on the timeline."""
        with self.contents.store.lock.held(f"rollback of {target.requested_time}"):
            begun = self._begin_rollback(target)
        if begun is None:
            return None
        executor = RollbackExecutor(contents=self.contents, metadata_table=self.metadata_table)
        return executor.execute(*begun, publish=False)

    def _begin_rollback(self, target: InstantInfo) -> tuple[Instant, RollbackPlan, InstantInfo] | None:
        store = self.contents.store
        timeline = store.load()
        # An earlier attempt may have deleted files already, and only its stored plan names all of them.
        for rollback in reversed(timeline.pending(Action.ROLLBACK)):
            plan = stored_plan(self.contents, rollback)
            undone = None if plan is None else plan.instant_to_rollback
            if plan is not None and undone is not None and undone.requested_time == target.requested_time:
                return rollback, plan, undone
        found = timeline.find(target.requested_time, Action(target.action))
        # Undone by an earlier attempt, or by Hudi: skipped, as Hudi does (rule B-30).
        if found is None:
            return None
        plan = rollback_plan(target, self._left_by(found), store.storage.root)
        return prepared(store, Action.ROLLBACK).request(plan).instant, plan, target

    def _left_by(self, target: Instant) -> Written:
        """Files of a write: of a completed one those it recorded, of a pending one those with its time (rule B-13)."""
        leftovers = Leftovers(self.contents)
        if target.is_pending:
            return leftovers.of_pending(target, by_listing=True, whole_slices=True)
        return leftovers.of_completed(target, self.contents.commit(target), whole_slices=True)

    def _pending(self, timeline: Timeline, savepoint_time: str) -> Instant | None:
        pending = timeline.pending(Action.RESTORE)
        if not pending:
            return None
        wanted = self.contents.restore_plan(pending[-1]).savepoint_to_restore_timestamp
        if wanted != savepoint_time:
            pair = judge(Service.RESTORE, pending[-1])
            raise RefusedError(
                f"restore to {savepoint_time} refused: {pending[-1]} to savepoint {wanted} is pending: {pair.reason}"
            )
        return pending[-1]

    def _pending_plan(self, timeline: Timeline, instant: Instant) -> RestorePlan:
        """Plan of a restore to continue; refused if it would undo savepoints: Apache Hudi leaves such ones pending."""
        plan = self.contents.restore_plan(instant)
        refuse_alive(
            self.contents,
            self.metadata_table.settings,
            f"restore to {plan.savepoint_to_restore_timestamp}",
            (timeline.find(each.requested_time, Action(each.action)) for each in plan.instants_to_rollback),
        )
        check_savepoints_after(
            timeline,
            plan.savepoint_to_restore_timestamp or "",
            {each.requested_time for each in plan.instants_to_rollback},
            self.contents.store.storage.root,
        )
        return plan

    def _last_restore(self, timeline: Timeline, savepoint_time: str) -> Instant | None:
        """The newest completed restore, if it was to this savepoint."""
        completed = timeline.completed(Action.RESTORE)
        if not completed or self.contents.restore_plan(completed[-1]).savepoint_to_restore_timestamp != savepoint_time:
            return None
        return completed[-1]

    def _leaves_only_its_own(self, restore: Instant, timeline: Timeline) -> bool:
        """
        Whether a completed restore undid every write that the rollbacks after its savepoint undid.

        A rollback that came later goes with a restore of its own: nothing else would tell any more that its write was
        undone, and files that it left would look like those of an archived write.
        """
        plan = self.contents.restore_plan(restore)
        undone = {each.requested_time for each in plan.instants_to_rollback}
        for rollback in self._rollbacks(timeline, plan.savepoint_to_restore_timestamp or ""):
            stored = stored_plan(self.contents, rollback)
            target = None if stored is None else stored.instant_to_rollback
            if target is None or target.requested_time not in undone:
                return False
        return True

    def ways_back(self, other_than: str = "") -> str:
        """
        The newest state that the table can be restored to, as a sentence for error messages.

        Args:
            other_than: Requested time of the savepoint that was refused.
        """
        store = self.contents.store
        timeline = store.load()
        in_the_way: list[str] = []
        # Newest first: who cannot go back one step wants to lose as little as possible.
        for savepoint in reversed(timeline.completed(Action.SAVEPOINT)):
            time = savepoint.requested_time
            if time != other_than and self._is_reachable(timeline.without_savepoints(in_the_way), time):
                first = f" once the newer savepoints {', '.join(in_the_way)} are deleted" if in_the_way else ""
                return (
                    f"The newest state that can be reached is that of savepoint {time}{first}: "
                    f"hudi-py restore {shell_word(store.storage.root)} {time}"
                )
            in_the_way.append(time)
        return "No earlier state can be reached: there is no savepoint that the table can be restored to"

    def _is_reachable(self, timeline: Timeline, savepoint_time: str) -> bool:
        try:
            self._judged_plan(timeline, savepoint_time)
        except HudiError:
            return False
        return True

    def _new_plan(self, timeline: Timeline, savepoint_time: str) -> JudgedRestore:
        refuse_under_undo(self.contents, timeline, f"restore to {savepoint_time}")
        try:
            return self._judged_plan(timeline, savepoint_time)
        except FilesGone as error:
            raise RefusedError(f"{error}. {self.ways_back(savepoint_time)}") from error

    def _targets(self, timeline: Timeline, savepoint_time: str) -> tuple[Instant, ...]:
        clusterings = frozenset(
            i.requested_time for i in timeline.pending(Action.REPLACE_COMMIT) if self.contents.is_clustering(i)
        )
        return restore_targets(
            timeline,
            savepoint_time,
            by_completion=self.table.format.restores_by_completion,
            is_merge_on_read=self.table.table_type is TableType.MERGE_ON_READ,
            clusterings=clusterings,
        )

    def _judged_plan(self, timeline: Timeline, savepoint_time: str) -> JudgedRestore:
        targets = self._targets(timeline, savepoint_time)
        self._refuse_leased(timeline, savepoint_time, (target.requested_time for target in targets))
        savepoint = timeline.find(savepoint_time, Action.SAVEPOINT)
        assert savepoint is not None  # or there would be no targets
        storage = self.contents.store.storage
        check_savepoints_after(timeline, savepoint_time, {each.requested_time for each in targets}, storage.root)
        check_nothing_is_archived_after(timeline, load_archived(storage, self.table), savepoint_time, storage.root)
        if self.metadata_table.settings[keys.ARCHIVE_BEYOND_SAVEPOINT]:
            raise ConfigError(
                f"{keys.ARCHIVE_BEYOND_SAVEPOINT.name}=true, so archival may at any moment remove commits that the "
                f"restore has to undo; no commit after {savepoint_time} is archived yet: set it to false for "
                "all writers and for the restore"
            )
        held = self.contents.savepoint(savepoint).files
        listing = FolderListing(storage)
        there = {path: {entry.name for entry in listing.partition(path)} for path in held}
        last = self._last_restore(timeline, savepoint_time)
        # Files of writes that an earlier restore to this savepoint undid are missing by right.
        before = () if last is None else self.contents.restore_plan(last).instants_to_rollback
        infos = tuple(target_info(each) for each in targets)
        undone = frozenset(each.requested_time for each in (*before, *infos))
        check_files_are_there(held, there, savepoint_time, undone)
        state = StateBefore(self.contents, self.table).judge(timeline, targets)
        check_state_before(state, savepoint_time)
        for each in targets:  # raises if one of them cannot be undone, before any of them is
            self._left_by(each)
        times = frozenset(each.requested_time for each in targets)
        beside = Beside(
            contents=self.contents,
            service=Service.RESTORE,
            undone=times,
            same=times | {savepoint_time},
            before=attrs.evolve(state, needed=together(state.needed, held)),
            alive=pulses_of(self.contents, self.metadata_table.settings) if any(t.is_pending for t in targets) else {},
        )
        plan = RestorePlan(instants_to_rollback=infos, savepoint_to_restore_timestamp=savepoint_time)
        return JudgedRestore(plan, beside.to_withdraw(timeline))

    def _validate_again(self, before: Timeline, requested: Requested, judged: JudgedRestore) -> None:
        """
        Withdraw the restore if the timeline has changed since it was planned, so that its plan is no longer right.

        Otherwise withdraw the plans that would be wrong after the restore.

        Raises:
            ConflictError: The restore is withdrawn; nothing was undone.
        """
        savepoint_time = judged.plan.savepoint_to_restore_timestamp or ""
        with requested.withdrawn_if_refused() as timeline:
            now = timeline.without(requested.instant)
            # A lease may have been taken since, which does not change the timeline.
            self._refuse_leased(now, savepoint_time, (each.requested_time for each in judged.plan.instants_to_rollback))
            # Judging reads many files, so only if something has happened.
            again = judged if now == before else self._judged_plan(now, savepoint_time)
            if again.plan != judged.plan or now.pending(Action.RESTORE):
                raise ConflictError("other writes have to be undone than planned; restore again")
            withdraw(self.contents.store, again.withdrawn, f"restore to {savepoint_time}")

    def _refuse_leased(self, timeline: Timeline, savepoint_time: str, undone: Iterable[str]) -> None:
        times = frozenset(undone)
        completed = {
            instant.requested_time for instant in timeline.writes.completed() if instant.requested_time in times
        }
        refuse_leased(self.contents, f"restore to {savepoint_time}", completed)

    def _check_result(self, savepoint_time: str) -> None:
        """Rule B-32: the savepointed commit is the newest one now."""
        completed = self.contents.store.load().writes.completed()
        if not completed or completed[-1].requested_time != savepoint_time:
            raise ConflictError(
                f"restore to {savepoint_time}: {completed[-1] if completed else 'nothing'} is the newest commit now; "
                "another writer is running: stop it and restore again"
            )

    def _remove_rollbacks(self, savepoint_time: str) -> None:
        """
        Remove every rollback after the savepoint, newest first, completed ones too (rule B-31).

        First the markers that they left: without its rollback, nothing shows any more that a write is over.
        """
        store = self.contents.store
        timeline = store.load()
        later = self._rollbacks(timeline, savepoint_time)
        times = {each.requested_time for each in later}
        rollbacks = [i for i in timeline if i.action is Action.ROLLBACK and i.requested_time in times]
        sweep_markers(self.contents, timeline, instants_with_markers(store.storage), rollbacks)
        for each in sorted(later, key=lambda i: (i.requested_time, i.state), reverse=True):
            delete_markers(store.storage, each.requested_time)
            store.remove(each)

    def _rollbacks(self, timeline: Timeline, savepoint_time: str) -> list[Instant]:
        """
        The rollbacks that a restore removes, in all their states.

        Those that undo a clean stay. They undo no write, and the metadata table would forget with them that files are
        back: its records of the clean remain.
        """
        after = [i for i in timeline.all_states if i.action is Action.ROLLBACK and i.requested_time > savepoint_time]
        stay = {i.requested_time for i in after if i.is_completed and undoes_clean(self.contents, i)}
        return [i for i in after if i.requested_time not in stay]

"""
Cleans a table: finishes pending cleans; otherwise plans one, stores the plan, and carries it out.

Source: rules/table-services A-7 to A-15; Hudi ``CleanActionExecutor``, ``CleanPlanActionExecutor``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

import attrs

from hudi_py.config.clean import CleanConfig
from hudi_py.config.table import TableConfig
from hudi_py.engine.base import Engine
from hudi_py.errors import RefusedError
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.model.instant import Action, Instant
from hudi_py.runtime.clock import Deadline
from hudi_py.runtime.log import log
from hudi_py.runtime.told_time import warn_of_time_to_come
from hudi_py.services.clean.executing.execute import execute_clean
from hudi_py.services.clean.executing.undone import refuse_under_undoing
from hudi_py.services.clean.executing.watch import Reporter
from hudi_py.services.clean.memory.leftovers import (
    remember_leftovers,
    side_files_left,
    without_side_files,
)
from hudi_py.services.clean.planning.examination import remember_unseen
from hudi_py.services.clean.planning.plan import CleanPlan
from hudi_py.services.clean.planning.progress import progress_of, remember
from hudi_py.services.clean.planning.repair import repair_cleans
from hudi_py.services.clean.planning.scope import Unseen
from hudi_py.services.clean.planning.situation import Situation, is_outdated
from hudi_py.services.clean.planning.stored_plan import to_record
from hudi_py.services.clean.planning.table_planner import TablePlanner
from hudi_py.services.clean.result import CleanResult
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.deletion import Permit
from hudi_py.timeline.policy_file import PROPERTY
from hudi_py.timeline.quarantine import pending_undos, purge
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.commit import prepared


@attrs.frozen(kw_only=True)
class CleanService:
    """
    Cleans one table.

    Args:
        contents: The table's timeline.
        table: Its properties.
        config: How to clean.
        engine: Deletes the files, and lists partitions if they are very many.
        now: Replaces the clock for planning by hours.
        metadata_table: Keeper of the metadata table.
        partitions: Paths of the table's partitions if its own commits do not show them; None otherwise.
        reporter: Receives the progress of a run.
        empties_quarantine: Whether a run into quarantine first deletes what has been there for its time.
        planner: Plans for this service.
    """

    contents: Contents
    table: TableConfig
    config: CleanConfig
    engine: Engine
    now: datetime | None = None
    metadata_table: MetadataTableKeeper
    partitions: frozenset[str] | None = None
    reporter: Reporter = attrs.field(factory=Reporter, eq=False)
    empties_quarantine: bool = True
    planner: TablePlanner = attrs.field(init=False, eq=False, repr=False)

    @planner.default
    def _planner(self) -> TablePlanner:
        return TablePlanner(
            contents=self.contents,
            table=self.table,
            config=self.config,
            now=self.now,
            metadata_table=self.metadata_table,
            partitions=self.partitions,
            reporter=self.reporter,
            engine=self.engine,
        )

    def permit(self, known: Mapping[str, str] | None = None, what: str = "a clean") -> Permit:
        """
        Return the permission to delete.

        Args:
            known: The properties of the table if they were read just now.
            what: What is to be done, for the message.

        Raises:
            RefusedError: Deletion is forbidden in this table (``hoodie_py.gc.enabled=false``); nothing was changed.
        """
        return self.contents.store.deletion.permit(what, known)

    def after(self, deleted: int) -> CleanService:
        """The same service, whose limit on files is less by those that its run has deleted before it."""
        most = self.config.max_files
        if most is None or not deleted:
            return self
        # Not 0: a clean takes one slice whatever its limit, or it would never get on.
        return attrs.evolve(self, config=attrs.evolve(self.config, max_files=max(most - deleted, 1)))

    @property
    def policy(self) -> str:
        """Mark of the table's retention policy; ``""`` without one."""
        return self.table.properties.get(PROPERTY, "")

    def plan(self, *, details: bool = False, sizes: bool = False) -> CleanPlan:
        """What a clean would do, see `TablePlanner.plan`; nothing is written."""
        return self.planner.plan(details=details, sizes=sizes)

    def schedule(self, deadline: Deadline | None = None) -> Instant | None:
        """
        Plan and store the plan, unless there is nothing to do or a clean is pending already (rule A-8).

        The time of the instant is taken when there is something to store, as in Hudi 1.1 (rule A-14). If the table has
        a lock, plans are made without it and stored under it (F.1); if the table has changed in between, planned again.

        Raises:
            CorruptMetadata: An instant that the decision needs does not decode.
            RefusedError: A circuit breaker tripped, the second planner disagrees, or a commit is being undone; nothing
                was written.
        """
        if not self.config.services_enabled:
            return None
        permit = self.permit()
        warn_of_time_to_come(self.now, self.contents.store.clock, "clean")
        self._purge_leases()
        deadline = deadline or self.planner.deadline()
        self._remove_expired(deadline)
        return self._schedule(deadline, permit)

    def _purge_leases(self) -> None:
        store = self.contents.store
        if store.leases.dead():
            # A consumer notes its progress under the lock, too: what has just come back must not be taken for dead.
            with store.lock.held("dead leases"):
                store.leases.purge()

    def _remove_expired(self, deadline: Deadline) -> tuple[Instant, ...]:
        """Delete expired savepoints, unless the clean that no longer needs them would be refused."""

        def look_ahead() -> None:
            timeline = self.contents.store.load()
            if timeline.pending(Action.CLEAN) and not self.config.allow_multiple:
                return  # nothing is planned
            seen = self.planner.situation(without_expired=True)
            plan = self.planner.plan_of(seen, deadline)
            if plan.would_schedule:
                self._refuse(seen, plan, timeline)

        return self.planner.savepoints.remove_expired(look_ahead)

    def _schedule(self, deadline: Deadline, permit: Permit) -> Instant | None:
        store = self.contents.store
        # Instants that a crash left half written are repaired first: they would block every later clean.
        with store.lock.held("clean"):
            timeline = repair_cleans(store)
        # A new plan would name the files of a pending one again (rules A-8, K-13).
        if timeline.pending(Action.CLEAN) and not self.config.allow_multiple:
            return None
        seen = self.planner.situation()
        plan = self.planner.plan_of(seen, deadline)
        # Here and not in the planner: a dry run shows them itself.
        for warning in plan.warnings:
            log.warning("clean.settings", reason=warning)
        self._remember_leftovers(seen, plan)
        if not plan.would_schedule:
            # An empty plan is not stored (rule A-68), so what was examined is remembered in notes of our own.
            if seen.is_settled_by(plan):
                remember_unseen(self.contents.store.storage, seen.unseen, Unseen())
            progress = progress_of(plan, seen, self.config)
            if progress is not None:
                remember(self.contents.store.storage, progress)
            return None
        self._refuse(seen, plan, timeline)
        # Otherwise its plan would only be withdrawn before anything is deleted.
        if not {each.id for each in store.leases.in_force()} <= {lease.id for lease in seen.leases}:
            return self._schedule(deadline, permit)
        with store.lock.held("clean"):
            permit.check()  # Apache Hudi would carry out a stored plan
            if store.lock.is_used:
                timeline = store.load()
                # The plan was made without the lock, so a savepoint or rollback may have come in between.
                if is_outdated(seen.timeline, timeline):
                    # The lock is still held, so no other process interferes again.
                    return self._schedule(deadline, permit)
            # Noted before the plan is stored, and corrected after it: a crash in between costs a second look at most.
            remember_unseen(store.storage, seen.unseen, seen.unseen | plan.unseen)
            # Before the instant: a metadata table that has to be dropped must be deleted before the clean begins.
            self.metadata_table.prepare(writes_data=False)
            begins = prepared(store, Action.CLEAN, timeline=timeline)
            requested = begins.request(to_record(plan, store.storage.root)).instant
        remember_unseen(store.storage, seen.unseen | plan.unseen, self.planner.unseen_after(seen, plan))
        if self.reporter.wants_sizes:
            self.reporter.sizes(requested.requested_time, plan.files.sizes_by_partition(store.storage.sizes))
        return requested

    def _refuse(self, seen: Situation, plan: CleanPlan, timeline: Timeline) -> None:
        """Raise what speaks against a plan. It costs requests, so it is done only for one that would be stored."""
        refuse_under_undoing(self.contents, timeline)
        self.planner.refuse_lost(seen, plan)
        if plan.breakers and self.config.breakers:
            raise RefusedError(
                f"{self.contents.store.storage.root}: nothing was planned and nothing was deleted: "
                f"{'; '.join(plan.breakers)}. Look at hudi-py clean --dry-run; if it is meant, clean with "
                "hoodie_py.clean.breakers=false (--no-breakers)"
            )

    def remove_expired_savepoints(self) -> tuple[Instant, ...]:
        """
        Delete the savepoints whose time to live is over, as a clean does before it plans.

        Returns:
            The deleted savepoints, oldest first.
        """
        if not self.config.services_enabled:
            return ()
        self.permit()
        return self.planner.savepoints.remove_expired()

    def execute_pending(self, deadline: Deadline | None = None, *, planned: Instant | None = None) -> list[CleanResult]:
        """
        Carry out every pending clean, oldest first, until the time is up (``hoodie_py.clean.max.duration``).

        Args:
            deadline: Time limit of the run; by default it begins now.
            planned: The clean that `schedule` has just stored.

        Raises:
            RefusedError: A plan names a file that is not a data file; nothing was deleted.
            CorruptMetadata: A plan is damaged; nothing of that clean was deleted.
            StorageError: The storage fails, or no file can be deleted; the clean stays pending.
        """
        deadline = deadline or self.planner.deadline()
        with self.contents.store.lock.held("clean"):
            pending = repair_cleans(self.contents.store).pending(Action.CLEAN)
            if pending:
                self.metadata_table.prepare(writes_data=False)
        results: list[CleanResult] = []
        for instant in pending:
            # At least one, however short the time: otherwise a clean whose preparation takes long never gets on.
            if results and deadline.is_over:
                break
            results.append(
                execute_clean(
                    self.contents,
                    self.engine,
                    self.config,
                    self.metadata_table,
                    instant,
                    deadline,
                    self.reporter,
                    partitions=self.partitions,
                    is_held=planned is not None and instant.requested_time == planned.requested_time,
                    policy=self.policy,
                )
            )
        return results

    def run(self, permit: Permit | None = None) -> list[CleanResult]:
        """
        Schedule a clean if none is pending, carry out pending ones, and plan again if a plan was withdrawn.

        Args:
            permit: From `permit`, if it was asked before.
        """
        if not self.config.services_enabled:
            return []
        permit = permit or self.permit()
        warn_of_time_to_come(self.now, self.contents.store.clock, "clean")
        self._refuse_others()
        self._purge_leases()
        deadline = self.planner.deadline()
        if self.config.quarantine and self.empties_quarantine and self.config.approved is None:
            self.empty_quarantine(permit)
        expired = tuple(each.requested_time for each in self._remove_expired(deadline))
        planned = self._schedule(deadline, permit)
        results = self.execute_pending(deadline, planned=planned)
        # Once only: if the new plan is withdrawn, too, other processes change the table faster than it can be planned.
        if any(result.withdrawn for result in results):
            planned = self._schedule(deadline, permit)
            results += self.execute_pending(deadline, planned=planned)
        return [attrs.evolve(each, expired_savepoints=expired) for each in results[:1]] + results[1:]

    def _refuse_others(self) -> None:
        """Where only approved files may go, a clean that is pending would delete others."""
        if self.config.approved is None:
            return
        pending = self.contents.store.load().pending(Action.CLEAN)
        if pending:
            raise RefusedError(
                f"{self.contents.store.storage.root}: {pending[0]} is pending and would delete other files than those "
                "that were approved; finish it with hudi-py clean first. Nothing was removed"
            )

    def empty_quarantine(
        self, permit: Permit | None = None, may: Callable[[Mapping[str, int]], bool] | None = None
    ) -> tuple[str, ...]:
        """
        Delete for good what is in quarantine for longer than the time in which it can be put back.

        Args:
            permit: From `permit`, if it was asked before.
            may: As for `hudi_py.timeline.quarantine.purge`.

        Returns:
            Names of the removals that were deleted.

        Raises:
            RefusedError: Deletion is forbidden in this table; nothing was deleted.
        """
        permit = permit or self.permit(what="the emptying of the quarantine")
        store = self.contents.store
        with store.lock.held("quarantine"):  # an undo holds it, too, from its first look at the files to its end
            return purge(store.storage, permit, store.clock, lambda: pending_undos(self.contents, store.load()), may)

    def _remember_leftovers(self, seen: Situation, plan: CleanPlan) -> None:
        """Forget files left by earlier cleans that are deleted by now, or that the plan deletes."""
        if not seen.leftovers:
            return
        storage = self.contents.store.storage
        files = without_side_files(seen.leftovers)
        # Only where the plan does not name all of them: the others are deleted with it.
        there = {
            path: names & {entry.name for entry in storage.list(path)}
            for path, names in files.items()
            if not names <= frozenset(plan.files.names(path))
        }
        side_files = side_files_left(storage, seen.leftovers)
        left = {path: there.get(path, names) | side_files.get(path, frozenset()) for path, names in files.items()}
        remember_leftovers(storage, seen.leftovers, {path: names for path, names in left.items() if names})

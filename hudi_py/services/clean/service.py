"""
Cleaning a table: finish what is pending, else plan, store the plan, carry it out.

Source: rules/table-services A-7 to A-15; Hudi ``CleanActionExecutor``, ``CleanPlanActionExecutor``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial

import attrs

from hudi_py.config.clean import CleanConfig
from hudi_py.config.table import TableConfig
from hudi_py.engine.base import Engine
from hudi_py.errors import CorruptMetadata, NotFound, RefusedError
from hudi_py.fsview.checked import CheckedListing
from hudi_py.fsview.listing import FolderListing, Listing, is_partition
from hudi_py.fsview.loader import load_clustered_files, load_context, load_savepoints, protection_of
from hudi_py.fsview.planned import ListingForPlan
from hudi_py.fsview.survivors import lost_survivors
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.mdt.listing import open_snapshot
from hudi_py.model.files import join_path
from hudi_py.model.instant import Action, Instant
from hudi_py.model.instant_time import time_before
from hudi_py.runtime.clock import Deadline
from hudi_py.runtime.log import log
from hudi_py.services.clean.executing.execute import execute_clean
from hudi_py.services.clean.executing.outlook import barred
from hudi_py.services.clean.executing.undone import refuse_under_undoing
from hudi_py.services.clean.executing.watch import Reporter
from hudi_py.services.clean.memory.leftovers import (
    LEFTOVERS,
    remember_leftovers,
    side_files_left,
    without_side_files,
)
from hudi_py.services.clean.planning import plan as planning
from hudi_py.services.clean.planning.breakers import Census, tripped
from hudi_py.services.clean.planning.budget import Budget, cut_to_budget
from hudi_py.services.clean.planning.look import UNSEEN, Look, remember_unseen
from hudi_py.services.clean.planning.past import last_clean, whole_times
from hudi_py.services.clean.planning.plan import CleanPlan, LastClean, Scope, Unseen
from hudi_py.services.clean.planning.progress import PROGRESS, progress_of, remember, start_of_scope
from hudi_py.services.clean.planning.repair import repair_cleans
from hudi_py.services.clean.planning.situation import Judge, Situation, checked, is_outdated
from hudi_py.services.clean.planning.stored_plan import to_record
from hudi_py.services.clean.result import CleanResult
from hudi_py.services.clean.retention.policy import PartitionJudgement, earliest_of, windows
from hudi_py.services.clean.retention.windows import (
    check_cut_off,
    check_forgotten,
    keeps_of,
    questionable,
)
from hudi_py.services.clean.verifying.verification import check, compare
from hudi_py.services.clean.verifying.verify import Disagreement
from hudi_py.services.savepoint.service import Expired, SavepointService
from hudi_py.storage.base import Entry
from hudi_py.timeline.archive import load_archived_partitions
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.commit import prepared


@attrs.frozen(kw_only=True)
class CleanService:
    """
    Cleans one table.

    Args:
        contents: The table's timeline.
        table: Its settings.
        config: How to clean.
        engine: What deletes the files.
        now: Replaces the clock for planning by hours.
        metadata_table: What to do about the table's metadata table before our first instant.
        partitions: Paths of those that the table still has, where its own commits cannot tell; None for all.
        reporter: Is told how far a run has got.
    """

    contents: Contents
    table: TableConfig
    config: CleanConfig
    engine: Engine
    now: datetime | None = None
    metadata_table: MetadataTableKeeper
    partitions: frozenset[str] | None = None
    reporter: Reporter = attrs.field(factory=Reporter, eq=False)
    _scopes: dict[Scope, tuple[str, ...]] = attrs.field(factory=dict, init=False, eq=False, repr=False)

    def plan(self, *, details: bool = False, sizes: bool = False) -> CleanPlan:
        """
        What a clean would do; nothing is written.

        Args:
            details: Ask for file sizes and keep every verdict, which takes memory for every slice of the table.
            sizes: Ask for file sizes only.

        Savepoints whose time to live is over count as gone: a clean lets go of them first.

        Raises:
            RefusedError: With ``hoodie_py.clean.verify``: the second planner disagrees.
            CorruptMetadata: With *details* or *sizes*: of a group that would lose files the newest one is damaged.
        """
        seen = self.situation(without_expired=True)
        plan = self._plan(seen, self._deadline(), details=details, sizes=sizes)
        if details or sizes:
            self._refuse_lost(seen, plan)
            plan = attrs.evolve(plan, refused=barred(self.contents.store.storage, plan.files))
        return plan

    def _plan(self, seen: Situation, deadline: Deadline, *, details: bool = False, sizes: bool = False) -> CleanPlan:
        with_sizes = details or sizes or self.config.max_bytes is not None or self.reporter.wants_sizes
        in_full = details or self._budget.is_limited
        judge = seen.judge_quickly(self.config) if not in_full else partial(seen.judge, config=self.config)
        listing = seen.listing
        if isinstance(listing, CheckedListing) and not with_sizes:
            listing = ListingForPlan(listing)
            judge = checked(judge, listing)
        look = self._look(seen, listing, judge, deadline, with_sizes)
        census = Census()
        is_counted = self.reporter.is_heard and not seen.scope.everything
        self.reporter.begin("plan", total=len(self.scope_partitions(seen.scope)) if is_counted else None)
        judgements: Iterable[PartitionJudgement] = self.reporter.watch(
            census.watch(look.judgements(self._partitions(seen, listing, with_sizes)))
        )
        window, is_partial, savepoints = seen.earliest, False, seen.savepoints
        if self._budget.is_limited:
            cut = cut_to_budget(
                judgements, self._budget, replaced=seen.context.replaced, windows=seen.windows, with_kept=details
            )
            judgements, is_partial = cut.judgements, cut.is_partial
            if cut.window is None:
                window, savepoints = seen.window_before, seen.savepoints_unfinished
            else:
                window = cut.window
        plan = planning.assemble(
            judgements,
            config=self.config,
            earliest=seen.retained_from(window),
            # a partial plan leaves the next one due, whether or not a commit follows (rule A-10)
            last_completed_commit="" if is_partial else seen.last_completed_commit,
            savepoints=savepoints if self.table.is_partitioned else frozenset(),
            needs_cleaning=seen.trigger.is_due or bool(seen.leftovers),
            scope=seen.scope,
            with_verdicts=details,
            is_partial=is_partial,
        )
        self.reporter.finish()
        if look.is_cut:
            unseen = self._unseen(seen, look)
            plan = attrs.evolve(plan, last_completed_commit="", is_partial=True, unseen=unseen)
        plan = attrs.evolve(plan, breakers=self._tripped(census, seen), warnings=seen.warnings)
        if plan.is_examined:
            plan = attrs.evolve(plan, extra_metadata={**plan.extra_metadata, **seen.extra_metadata})
        if self.config.verify:
            check(self.compare(seen, plan), self.contents.store.storage.root)
        return plan

    def compare(self, seen: Situation, plan: CleanPlan) -> Disagreement:
        """Files on which *plan* and the second planner differ."""
        partitions = None if seen.scope.everything else self.scope_partitions(seen.scope)
        return compare(self.contents, self.table, self.config, seen, plan, partitions)

    def situation(self, *, without_expired: bool = False) -> Situation:
        """
        Everything a plan depends on, files apart; read once, nothing is written.

        Args:
            without_expired: As it will be once the savepoints whose time to live is over are gone.
        """
        timeline, listing = open_snapshot(
            self.contents.store, self.table, self.metadata_table.settings, self.partitions
        )
        expired = self._savepoints.expired(timeline) if without_expired else ()
        timeline = timeline.without_savepoints({e.instant.requested_time for e in expired if e.stays_because is None})
        last = self._last_clean(timeline)
        context = load_context(timeline, self.contents, for_planning=True, with_clustering=False)
        held = load_savepoints(timeline, self.contents)
        savepoints = frozenset(held)
        now, zone = self.now or self.contents.store.clock.now(), self.contents.store.zone
        check_cut_off(self.config, now, zone)
        kept = windows(timeline, self.config, now=now, zone=zone)
        earliest = earliest_of(kept)
        whole = whole_times(self.contents, self.table, timeline) if self.config.has_ladder else ()
        unseen = UNSEEN.load(self.contents.store.storage)
        check_forgotten(self.config, earliest, whole, savepoints)
        whole = tuple(time for time in whole if time not in self.config.forget)
        return Situation(
            timeline=timeline,
            listing=listing,
            context=context,
            protection=protection_of(context, held, load_clustered_files(timeline, self.contents)),
            savepoints=savepoints,
            now=now,
            earliest=earliest,
            keeps=keeps_of(kept, whole, self.config),
            whole_times=whole,
            warnings=(*questionable(self.config, kept, timeline), *map(_told, expired)),
            last_clean=last,
            scope=planning.with_unseen(self._scope(timeline, earliest, last, savepoints), unseen, earliest),
            leftovers=LEFTOVERS.load(self.contents.store.storage),
            unseen=unseen,
            trigger=planning.trigger(timeline, last, self.config),
            table_commits=timeline.table_commits(self.table.table_type).completed(),
        )

    def _scope(
        self,
        timeline: Timeline,
        earliest: Instant | None,
        last: LastClean | None,
        savepoints: frozenset[str],
    ) -> Scope:
        """Active timeline, else archived timeline, else everything."""
        table_type = self.table.table_type
        progress = PROGRESS.load(self.contents.store.storage)
        start = start_of_scope(last, progress, timeline)
        found = planning.scope(
            timeline, table_type, self.config, earliest=earliest, last_clean=start, savepoints=savepoints
        )
        if start is not last:
            return attrs.evolve(found, reason=f"{found.reason} (a clean that found nothing got there)")
        if not found.archived_since or earliest is None:
            return found
        try:
            archived = load_archived_partitions(self.contents.store.storage, self.table, found.archived_since)
        except (CorruptMetadata, NotFound) as error:  # a plan that looks everywhere needs no archive
            log.warning("clean.archive.unreadable", reason=str(error))
            archived = None
        return planning.scope_of_archive(found, timeline, table_type, earliest=earliest, archived=archived)

    def _deadline(self) -> Deadline:
        return Deadline.after(self.contents.store.clock, self.config.max_duration)

    def _look(self, seen: Situation, listing: Listing, judge: Judge, deadline: Deadline, sizes: bool) -> Look:
        replaced = frozenset(path for path, _ in seen.context.replaced)
        return Look(
            judge=lambda path, entries: self._confirmed(seen, judge(path, entries)),
            listed=lambda path: listing.partition(path, details=sizes),
            deadline=deadline,
            always=replaced.intersection(replaced if seen.scope.everything else self.scope_partitions(seen.scope)),
        )

    def _unseen(self, seen: Situation, look: Look) -> Unseen:
        if not seen.windows:
            return Unseen()  # the next plan by file versions looks everywhere anyway
        if seen.scope.everything:
            return Unseen(everything=True)
        return Unseen(partitions=frozenset(self.scope_partitions(seen.scope)) - look.seen)

    @property
    def _budget(self) -> Budget:
        config = self.config
        return Budget(files_max=config.max_files, partitions_max=config.max_partitions, bytes_max=config.max_bytes)

    def _tripped(self, census: Census, seen: Situation) -> tuple[str, ...]:
        zone = self.contents.store.zone
        age = self.config.window_age or self.config.age_beside
        return tripped(
            census,
            self.config,
            planning_time=seen.now,
            clock_time=self.contents.store.clock.now(),
            last_time=seen.timeline.last_time,
            cut_off=self.config.older_than if age is None else time_before(seen.now, age, zone),
            zone=zone,
        )

    def scope_partitions(self, scope: Scope) -> tuple[str, ...]:
        """Partitions that an incremental plan looks at, sorted."""
        known = self._scopes.get(scope)
        if known is None:
            paths = set(scope.partitions)
            for instant in scope.instants:
                touched = self.contents.touched(instant)
                paths.update(touched.partition_paths, touched.replaced_file_ids)
            known = self._scopes[scope] = tuple(sorted(paths))
        return known

    def schedule(self, deadline: Deadline | None = None) -> Instant | None:
        """
        Plan and store the plan, unless there is nothing to do or a clean is pending already (rule A-8).

        The instant's time is taken once there is something to store, as Hudi 1.1 does (rule A-14). Where the table has
        a lock, planning goes without it and storing with it (F.1); what others did meanwhile is planned for anew.

        Raises:
            CorruptMetadata: An instant that the decision needs does not decode.
            RefusedError: A circuit breaker tripped, the second planner disagrees, or a commit is being undone; nothing
                was written.
        """
        if not self.config.services_enabled:
            return None
        self.remove_expired_savepoints()
        return self._schedule(deadline or self._deadline())

    def _schedule(self, deadline: Deadline) -> Instant | None:
        store = self.contents.store
        with store.lock.held("clean"):
            timeline = repair_cleans(store)
        if timeline.pending(Action.CLEAN) and not self.config.allow_multiple:
            return None
        seen = self.situation()
        plan = self._plan(seen, deadline)
        for warning in plan.warnings:
            log.warning("clean.settings", reason=warning)
        self._remember_leftovers(seen, plan)
        if not plan.would_schedule:
            if seen.is_settled_by(plan):
                remember_unseen(self.contents.store.storage, seen.unseen, Unseen())
            progress = progress_of(plan, seen, self.config)
            if progress is not None:
                remember(self.contents.store.storage, progress)
            return None
        refuse_under_undoing(self.contents, timeline)
        self._refuse_lost(seen, plan)
        if plan.breakers and self.config.breakers:
            raise RefusedError(
                f"{self.contents.store.storage.root}: nothing was planned and nothing was deleted: "
                f"{'; '.join(plan.breakers)}. Look at hudi-py clean --dry-run; if it is meant, clean with "
                "hoodie_py.clean.breakers=false (--no-breakers)"
            )
        with store.lock.held("clean"):
            if store.lock.is_used:
                timeline = store.load()
                if is_outdated(seen.timeline, timeline):
                    return self._schedule(deadline)  # nobody who takes the lock can interfere again
            remember_unseen(store.storage, seen.unseen, seen.unseen | plan.unseen)
            self.metadata_table.prepare(writes_data=False)
            begins = prepared(store, Action.CLEAN, timeline=timeline)
            requested = begins.request(to_record(plan, store.storage.root)).instant
        remember_unseen(store.storage, seen.unseen | plan.unseen, self._unseen_after(seen, plan))
        if self.reporter.wants_sizes and plan.size_bytes is not None:
            self.reporter.sizes(requested.requested_time, plan.files.sizes_by_partition())
        return requested

    def _refuse_lost(self, seen: Situation, plan: CleanPlan) -> None:
        """
        Raises:
            CorruptMetadata: The newest file of a group that would lose older ones is not as its commit wrote it.
        """
        losing = {path: plan.files.names(path) for path in plan.files}
        compared = frozenset(seen.listing.compared)
        lost = lost_survivors(self.contents, seen.timeline, losing, only=self.partitions, compared=compared)
        if lost:
            (path, file_id), why = min(lost.items())
            raise CorruptMetadata(
                f"nothing was planned and nothing was deleted: of {len(lost)} file groups the older versions are all "
                f"that is left, the first is {join_path(path, file_id)}: {why}"
            )

    def remove_expired_savepoints(self) -> tuple[Instant, ...]:
        """
        Let go of the savepoints whose time to live is over; a clean does so before it plans.

        Returns:
            Those that are gone, oldest first.
        """
        return self._savepoints.remove_expired() if self.config.services_enabled else ()

    @property
    def _savepoints(self) -> SavepointService:
        return SavepointService(contents=self.contents, table=self.table, metadata_table=self.metadata_table)

    def execute_pending(self, deadline: Deadline | None = None, *, planned: Instant | None = None) -> list[CleanResult]:
        """
        Carry out every pending clean, oldest first, until the time is up (``hoodie_py.clean.max.duration``).

        Args:
            deadline: Of the run; by default it begins now.
            planned: The one that `schedule` has just stored, right before.

        Raises:
            RefusedError: A plan names what is no data file; nothing was deleted.
            CorruptMetadata: A plan is damaged; nothing of that clean was deleted.
            StorageError: The storage fails, or no file can be deleted; the clean stays pending.
        """
        deadline = deadline or self._deadline()
        with self.contents.store.lock.held("clean"):
            pending = repair_cleans(self.contents.store).pending(Action.CLEAN)
            if pending:
                self.metadata_table.prepare(writes_data=False)
        results: list[CleanResult] = []
        for instant in pending:
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
                )
            )
        return results

    def run(self) -> list[CleanResult]:
        """Schedule if nothing is pending, then carry out what is pending; plan anew what is no longer right."""
        if not self.config.services_enabled:
            return []
        deadline = self._deadline()
        expired = tuple(each.requested_time for each in self.remove_expired_savepoints())
        planned = self._schedule(deadline)
        results = self.execute_pending(deadline, planned=planned)
        if any(each.withdrawn for each in results):
            planned = self._schedule(deadline)
            results += self.execute_pending(deadline, planned=planned)
        return [attrs.evolve(each, expired_savepoints=expired) for each in results[:1]] + results[1:]

    def _last_clean(self, timeline: Timeline) -> LastClean | None:
        """A damaged one hides what was cleaned already, which only incremental planning has to know."""
        try:
            return last_clean(self.contents, timeline)
        except CorruptMetadata as error:
            if not self.config.incremental:
                return None
            raise CorruptMetadata(
                f"{error}. It tells what was cleaned last; with hoodie.clean.incremental.enabled=false (--full) every "
                "partition is looked at instead. Nothing was deleted"
            ) from error

    def _confirmed(self, seen: Situation, judged: PartitionJudgement) -> PartitionJudgement:
        """Only what the folder itself shows tells that nothing else is in a partition (rules A-50, A-52)."""
        if not judged.delete_partition or seen.listing.is_fresh:
            return judged
        entries = FolderListing(self.contents.store.storage).partition(judged.partition_path)
        there = seen.judge(judged.partition_path, entries, self.config)
        return attrs.evolve(judged, delete_partition=there.delete_partition)

    def _partitions(self, seen: Situation, listing: Listing, details: bool) -> Iterator[tuple[str, list[Entry]]]:
        """What is in scope, and wherever a clean left something: that is seen in the folders only."""
        scope = seen.scope
        folders = FolderListing(self.contents.store.storage)
        for path in sorted(seen.leftovers):
            entries = folders.partition(path, details=details)
            if is_partition(entries):  # our note may be wrong: nothing goes from a folder that is none of the table's
                yield path, entries
        if scope.everything:
            found: Iterable[tuple[str, list[Entry]]] = listing.walk(details=details)
        else:
            found = ((path, listing.partition(path, details=details)) for path in self.scope_partitions(scope))
        yield from (each for each in found if each[0] not in seen.leftovers) if seen.leftovers else found

    def _unseen_after(self, seen: Situation, plan: CleanPlan) -> Unseen:
        """What is still to be looked at once *plan* is stored; over budget, files of what was looked at stay too."""
        return seen.unseen | plan.unseen if plan.is_partial and self._budget.is_limited else plan.unseen

    def _remember_leftovers(self, seen: Situation, plan: CleanPlan) -> None:
        """Leftovers that are gone are none any more."""
        if not seen.leftovers:
            return
        storage = self.contents.store.storage
        files = without_side_files(seen.leftovers)
        there = {
            path: names & {entry.name for entry in storage.list(path)}
            for path, names in files.items()
            if not names <= frozenset(plan.files.names(path))
        }
        side_files = side_files_left(storage, seen.leftovers)
        left = {path: there.get(path, names) | side_files.get(path, frozenset()) for path, names in files.items()}
        remember_leftovers(storage, seen.leftovers, {path: names for path, names in left.items() if names})


def _told(expired: Expired) -> str:
    what = f"the time to live of savepoint {expired.instant.requested_time} is over"
    return (
        f"{what}: a clean lets go of it first" if expired.stays_because is None else f"{what}: {expired.stays_because}"
    )

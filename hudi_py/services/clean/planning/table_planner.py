"""
Plans the clean of a table: reads its situation, lists the partitions in scope, and judges them. Nothing is written.

Source: rules/table-services A-7 to A-15; Hudi ``CleanPlanActionExecutor``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial

import attrs

from hudi_py.config.clean import CleanConfig
from hudi_py.config.table import TableConfig
from hudi_py.engine.base import Engine
from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.fsview.checked import CheckedListing
from hudi_py.fsview.listing import FolderListing, Listing, is_partition, other_tables
from hudi_py.fsview.loader import load_clustered_files, load_context, load_savepoints, protection_of
from hudi_py.fsview.planned import ListingForPlan
from hudi_py.fsview.survivors import lost_survivors
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.mdt.listing import is_used, open_snapshot
from hudi_py.model.files import join_path
from hudi_py.model.instant import Instant
from hudi_py.model.instant_time import time_before
from hudi_py.model.words import counted
from hudi_py.runtime.clock import Deadline
from hudi_py.runtime.log import log
from hudi_py.services.clean.executing.outlook import barred
from hudi_py.services.clean.executing.watch import Reporter
from hudi_py.services.clean.memory.leftovers import (
    LEFTOVERS,
)
from hudi_py.services.clean.planning import scope as scoping
from hudi_py.services.clean.planning.breakers import Census, tripped
from hudi_py.services.clean.planning.budget import Budget, cut_to_approved, cut_to_budget
from hudi_py.services.clean.planning.ceiling import old_versions, shortened
from hudi_py.services.clean.planning.examination import UNSEEN, Examination
from hudi_py.services.clean.planning.past import last_clean, whole_times
from hudi_py.services.clean.planning.plan import APPROVED_BY, POLICY, CleanPlan, assemble
from hudi_py.services.clean.planning.progress import PROGRESS, start_of_scope
from hudi_py.services.clean.planning.scope import LastClean, Scope, Unseen
from hudi_py.services.clean.planning.situation import Judge, Situation, checked
from hudi_py.services.clean.retention.policy import PartitionJudgement
from hudi_py.services.clean.retention.windows import (
    Window,
    check_cut_off,
    check_forgotten,
    earliest_of,
    keeps_of,
    questionable,
    reaching_back,
    windows,
)
from hudi_py.services.clean.verifying.verification import check, compare
from hudi_py.services.clean.verifying.verify import Disagreement
from hudi_py.services.savepoint.gather import passing_savepoints
from hudi_py.services.savepoint.service import SavepointService
from hudi_py.services.savepoint.words import Expired
from hudi_py.storage.base import Entry
from hudi_py.timeline.archive import load_archived_partitions
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.policy_file import PROPERTY
from hudi_py.timeline.timeline import Timeline


@attrs.frozen(kw_only=True)
class TablePlanner:
    """
    Plans cleans of one table.

    Args:
        contents: The table's timeline.
        table: Its properties.
        config: How to clean.
        now: Replaces the clock for planning by hours.
        metadata_table: Its settings decide whether files are listed through the metadata table.
        partitions: Paths of the table's partitions if its own commits do not show them; None otherwise.
        reporter: Receives the progress.
        engine: Lists partitions that no metadata table lists, if they are very many; None for threads alone.
    """

    contents: Contents
    table: TableConfig
    config: CleanConfig
    now: datetime | None
    metadata_table: MetadataTableKeeper
    partitions: frozenset[str] | None
    reporter: Reporter = attrs.field(eq=False)
    engine: Engine | None = attrs.field(default=None, eq=False, repr=False)
    _scopes: dict[Scope, tuple[str, ...]] = attrs.field(factory=dict, init=False, eq=False, repr=False)

    def plan(self, *, details: bool = False, sizes: bool = False) -> CleanPlan:
        """
        What a clean would do; nothing is written.

        Args:
            details: Read file sizes and keep every verdict, which takes memory for every slice of the table.
            sizes: Read file sizes only.

        Savepoints whose time to live is over do not count: a clean deletes them first.

        Raises:
            RefusedError: With ``hoodie_py.clean.verify``: the second planner disagrees.
            CorruptMetadata: With *details* or *sizes*: the newest file of a group that would lose files is damaged.
        """
        seen = self.situation(without_expired=True, to_read=True)
        plan = self.plan_of(seen, self.deadline(), details=details, sizes=sizes)
        if details or sizes:
            # A dry run has to refuse what the real run would refuse.
            self.refuse_lost(seen, plan)
            plan = attrs.evolve(plan, refused=barred(self.contents.store.storage, plan.files))
        why = self.contents.store.deletion.why_off()
        if why is not None:
            refusal = f"a clean is refused, no data is deleted from this table: {why}"
            plan = attrs.evolve(plan, warnings=(*plan.warnings, refusal))
        if seen.listing.is_fresh and is_used(self.table, self.metadata_table.settings):
            refusal = "a clean is refused until hudi-py recover has cleared the property: the metadata table is missing"
            plan = attrs.evolve(plan, warnings=(*plan.warnings, refusal))
        return plan

    def plan_of(self, seen: Situation, deadline: Deadline, *, details: bool = False, sizes: bool = False) -> CleanPlan:
        plan = self._plan_of(seen, deadline, details=details, sizes=sizes)
        # Only of partitions that lose files or are empty, and only a metadata table lists them; a walk of the folders
        # does not.
        planned = {*plan.files, *plan.partitions_to_delete}
        others = {} if seen.listing.is_fresh else other_tables(self.contents.store.storage, planned)
        if not others:
            return plan
        told = (
            f"{folder} is another table, whose partitions the metadata table lists; nothing of it is deleted"
            for folder in sorted({*others.values()})
        )
        seen = attrs.evolve(seen, left_out=others, warnings=(*seen.warnings, *told))
        return self._plan_of(seen, deadline, details=details, sizes=sizes)

    def _plan_of(self, seen: Situation, deadline: Deadline, *, details: bool, sizes: bool) -> CleanPlan:
        approved = self.config.approved
        with_sizes = details or sizes or self.config.max_bytes is not None or approved is not None
        # A budget chooses among slices, so it needs a verdict on each of them; otherwise names and counts are enough.
        in_full = details or self._budget.is_limited or approved is not None
        judge = seen.judge_quickly(self.config) if not in_full else partial(seen.judge, config=self.config)
        listing = seen.listing
        # The planner finds the newest files itself, so that fewer commits have to be read for the comparison.
        if isinstance(listing, CheckedListing) and not with_sizes:
            listing = ListingForPlan(listing)
            judge = checked(judge, listing)
        examination = self._examination(seen, listing, judge, deadline, with_sizes)
        census = Census()
        is_counted = self.reporter.is_heard and not seen.scope.everything
        self.reporter.begin("plan", total=len(self.scope_partitions(seen.scope)) if is_counted else None)
        judgements: Iterable[PartitionJudgement] = self.reporter.watch(
            census.watch(examination.judgements(self._partitions(seen, listing, with_sizes)))
        )
        window, is_partial, savepoints = seen.earliest, False, seen.savepoints
        cut = None
        if approved is not None:
            cut = cut_to_approved(judgements, approved, replaced=seen.context.replaced, windows=seen.windows)
        elif self._budget.is_limited:
            cut = cut_to_budget(
                judgements, self._budget, replaced=seen.context.replaced, windows=seen.windows, with_kept=details
            )
        if cut is not None:
            judgements, is_partial = cut.judgements, cut.is_partial
            if cut.window is None:
                # Garbage of the next window is left, so the plan must not claim that window: nobody would look again.
                window, savepoints = seen.window_before, seen.savepoints_unfinished
            else:
                window = cut.window
        plan = assemble(
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
        if examination.is_cut:
            unseen = self._unseen(seen, examination)
            plan = attrs.evolve(plan, last_completed_commit="", is_partial=True, unseen=unseen)
        plan = attrs.evolve(plan, breakers=self._tripped(census, seen), warnings=seen.warnings)
        if plan.is_examined:
            extra = seen.extra_metadata
            if approved is not None:
                # Files of any age may go, so the window is that of the whole plan although an earlier one is named.
                extra = {**seen.extra_metadata_from(plan.earliest_to_retain), APPROVED_BY: self.config.approved_by}
            mark = self.table.properties.get(PROPERTY)
            made_under = {POLICY: mark} if mark else {}
            plan = attrs.evolve(plan, extra_metadata={**plan.extra_metadata, **extra, **made_under})
        if self.config.verify:
            check(self.compare(seen, plan), self.contents.store.storage.root)
        return plan

    def compare(self, seen: Situation, plan: CleanPlan) -> Disagreement:
        """The files on which the plan and the second planner disagree."""
        partitions = None if seen.scope.everything else self.scope_partitions(seen.scope)
        return compare(self.contents, self.table, self.config, seen, plan, partitions)

    def situation(self, *, without_expired: bool = False, to_read: bool = False) -> Situation:
        """
        Everything that a plan depends on, except files; read once, nothing is written.

        Args:
            without_expired: Leave out savepoints whose time to live is over.
            to_read: Nothing will be changed by it: a missing metadata table is passed over, as in `open_snapshot`.
        """
        leases = self.contents.store.leases.in_force()
        timeline, listing = open_snapshot(
            self.contents.store, self.table, self.metadata_table.settings, self.partitions, to_read=to_read
        )
        if self.engine is not None and isinstance(listing, CheckedListing):
            listing = listing.by_engine(self.engine)
        expired = self.savepoints.expired(timeline) if without_expired else ()
        # A real clean deletes them before it plans, so a dry run has to plan without them.
        timeline = timeline.without_savepoints({e.instant.requested_time for e in expired if e.stays_because is None})
        last = self._last_clean(timeline)
        context = load_context(timeline, self.contents, for_planning=True, with_clustering=False)
        held = load_savepoints(timeline, self.contents)
        savepoints = frozenset(held)
        passing = passing_savepoints(self.contents, timeline)
        now, zone = self.now or self.contents.store.clock.now(), self.contents.store.zone
        check_cut_off(self.config, now, zone)
        kept = windows(timeline, self.config, now=now, zone=zone)
        earliest = earliest_of(kept)
        whole = whole_times(self.contents, self.table, timeline) if self.config.has_ladder else ()
        unseen = UNSEEN.load(self.contents.store.storage)
        check_forgotten(self.config, earliest, whole, savepoints)
        whole = tuple(time for time in whole if time not in self.config.forget)
        table_commits = timeline.table_commits(self.table.table_type).completed()
        last_commit = table_commits[-1].requested_time if table_commits else ""

        def seen_with(kept: tuple[Window, ...], more: tuple[str, ...] = ()) -> Situation:
            earliest = earliest_of(kept)
            seen = Situation(
                timeline=timeline,
                listing=listing,
                context=context,
                protection=protection_of(context, held, load_clustered_files(timeline, self.contents)),
                savepoints=savepoints,
                passing=passing,
                now=now,
                earliest=earliest,
                keeps=keeps_of(kept, whole, self.config, reaching_back(leases, earliest, last_commit)),
                leases=leases,
                whole_times=whole,
                warnings=(*questionable(self.config, kept, timeline), *map(_warning_of, expired), *more),
                last_clean=last,
                scope=scoping.with_unseen(self._scope(timeline, earliest, last, savepoints), unseen, earliest),
                leftovers=LEFTOVERS.load(self.contents.store.storage),
                unseen=unseen,
                trigger=scoping.trigger(timeline, last, self.config),
                table_commits=table_commits,
            )
            ages = self.config.age_retained is not None or self.config.changes_retained is not None
            freed = scoping.is_freed(last, savepoints, seen.before_window, ages)
            return attrs.evolve(seen, trigger=attrs.evolve(seen.trigger, is_freed=freed))

        seen = seen_with(kept)
        if self.config.max_old_bytes is None:
            return seen
        found = old_versions(self._judged_since(seen), context.replaced)
        shorter, why = shortened(kept, timeline, found, self.config.max_old_bytes)
        first = shorter[0].earliest
        begins = first.requested_time if first is not None and first != kept[0].earliest else None
        return attrs.evolve(seen_with(shorter, (why,) if why else ()), shortened=begins)

    def _judged_since(self, seen: Situation) -> Iterator[PartitionJudgement]:
        """Verdicts of all partitions in which a window may keep older versions: those written since it began."""
        start = "" if seen.earliest is None else seen.earliest.requested_time
        commits = seen.timeline.table_commits(self.table.table_type).completed()
        since = Scope(everything=False, instants=tuple(i for i in commits if i.requested_time >= start), reason="")
        paths = frozenset(self.scope_partitions(since))
        for path in sorted(paths):
            yield seen.judge(path, seen.listing.partition(path, details=True), self.config)

    def _scope(
        self,
        timeline: Timeline,
        earliest: Instant | None,
        last: LastClean | None,
        savepoints: frozenset[str],
    ) -> Scope:
        """Partitions to examine: from the active timeline, else from the archived one, else all."""
        table_type = self.table.table_type
        progress = PROGRESS.load(self.contents.store.storage)
        start = start_of_scope(last, progress, timeline)
        found = scoping.scope(
            timeline, table_type, self.config, earliest=earliest, last_clean=start, savepoints=savepoints
        )
        if start is not last:
            return attrs.evolve(found, reason=f"{found.reason} (a clean that found nothing got there)")
        if not found.archived_since or earliest is None:
            return found
        try:
            archived = load_archived_partitions(self.contents.store.storage, self.table, found.archived_since)
        except (CorruptMetadata, NotFound) as error:  # a plan that looks at all partitions needs no archive
            log.warning("clean.archive.unreadable", reason=str(error))
            archived = None
        return scoping.scope_of_archive(found, timeline, table_type, earliest=earliest, archived=archived)

    def deadline(self) -> Deadline:
        return Deadline.after(self.contents.store.clock, self.config.max_duration)

    def _examination(
        self, seen: Situation, listing: Listing, judge: Judge, deadline: Deadline, sizes: bool
    ) -> Examination:
        replaced = frozenset(path for path, _ in seen.context.replaced) - seen.left_out.keys()
        # The archiver takes the replaced groups of a finished window for cleaned, so they are never left out (D-9).
        return Examination(
            judge=lambda path, entries: self._confirmed(seen, judge(path, entries)),
            listed=lambda path: listing.partition(path, details=sizes),
            deadline=deadline,
            always=replaced.intersection(replaced if seen.scope.everything else self.scope_partitions(seen.scope)),
        )

    def _unseen(self, seen: Situation, examination: Examination) -> Unseen:
        if not seen.windows:
            return Unseen()  # plans by file versions look at all partitions anyway
        if seen.scope.everything:
            # The partitions of a full listing are not known before it ends.
            return Unseen(everything=True)
        return Unseen(partitions=frozenset(self.scope_partitions(seen.scope)) - examination.seen)

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
        # Kept, because plan, progress and comparison ask for the same partitions.
        known = self._scopes.get(scope)
        if known is None:
            paths = set(scope.partitions)
            for instant in scope.instants:
                touched = self.contents.touched(instant)
                paths.update(touched.partition_paths, touched.replaced_file_ids)
            known = self._scopes[scope] = tuple(sorted(paths))
        return known

    def refuse_lost(self, seen: Situation, plan: CleanPlan) -> None:
        """
        Raises:
            CorruptMetadata: The newest file of a group that would lose older ones is missing or cut off.
        """
        losing = {path: plan.files.names(path) for path in plan.files}
        compared = frozenset(seen.listing.compared)
        lost = lost_survivors(self.contents, seen.timeline, losing, only=self.partitions, compared=compared)
        if lost:
            (path, file_id), why = min(lost.items())
            raise CorruptMetadata(
                f"nothing was planned and nothing was deleted: of {counted(len(lost), 'file group')} only older "
                f"versions are left, the first is {join_path(path, file_id)}: {why}"
            )

    @property
    def savepoints(self) -> SavepointService:
        return SavepointService(contents=self.contents, table=self.table, metadata_table=self.metadata_table)

    def _last_clean(self, timeline: Timeline) -> LastClean | None:
        """The last completed clean. Only an incremental plan needs it, so other plans ignore a damaged one."""
        try:
            return last_clean(self.contents, timeline)
        except CorruptMetadata as error:
            if not self.config.incremental:
                return None
            raise CorruptMetadata(
                f"{error}. It shows what was cleaned last; with hoodie.clean.incremental.enabled=false (--full) all "
                "partitions are looked at instead. Nothing was deleted"
            ) from error

    def _confirmed(self, seen: Situation, judged: PartitionJudgement) -> PartitionJudgement:
        """Let a partition be deleted only if its folder shows that nothing else is in it (rules A-50, A-52)."""
        if not judged.delete_partition or seen.listing.is_fresh:
            return judged
        # Files that no commit wrote are not in the metadata table; only the folder shows them.
        entries = FolderListing(self.contents.store.storage).partition(judged.partition_path)
        there = seen.judge(judged.partition_path, entries, self.config)
        return attrs.evolve(judged, delete_partition=there.delete_partition)

    def _partitions(self, seen: Situation, listing: Listing, details: bool) -> Iterator[tuple[str, list[Entry]]]:
        """Partitions in scope, and those where a clean left files; only their folders show those files."""
        scope = seen.scope
        folders = FolderListing(self.contents.store.storage)
        # By folder, even with a metadata table: that lists these files as deleted (K-12).
        for path in sorted(seen.leftovers):
            entries = folders.partition(path, details=details)
            if is_partition(entries):  # the note may be wrong: nothing is deleted from a folder that is not a partition
                yield path, entries
        if scope.everything:
            found: Iterable[tuple[str, list[Entry]]] = listing.walk(details=details)
        else:
            paths = self.scope_partitions(scope)
            if isinstance(listing, (CheckedListing, ListingForPlan)):  # folders: a request each in an object store
                found = listing.each(paths, details=details)
            else:
                found = ((path, listing.partition(path, details=details)) for path in paths)
        passed = seen.leftovers.keys() | seen.left_out.keys()
        yield from (each for each in found if each[0] not in passed) if passed else found

    def unseen_after(self, seen: Situation, plan: CleanPlan) -> Unseen:
        """Partitions to examine after the plan is stored. A budget leaves files in partitions that were examined."""
        is_cut = self._budget.is_limited or self.config.approved is not None
        return seen.unseen | plan.unseen if plan.is_partial and is_cut else plan.unseen


def _warning_of(expired: Expired) -> str:
    what = f"the time to live of savepoint {expired.instant.requested_time} is over"
    return f"{what}: a clean deletes it first" if expired.stays_because is None else f"{what}: {expired.stays_because}"

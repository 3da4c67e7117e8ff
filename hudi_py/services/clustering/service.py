"""
Clusters a table: finishes pending clusterings, then plans one, stores the plan, and carries it out.

Source: rules/table-services E-30 to E-45; Hudi ``ClusteringPlanActionExecutor``,
``SparkExecuteClusteringCommitActionExecutor``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial

import attrs

from hudi_py.config.clustering import ClusteringConfig
from hudi_py.config.concurrency import require_checked_by_writers
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig
from hudi_py.engine.base import Engine
from hudi_py.errors import ConflictError, NotFound, RefusedError, UnsupportedTable
from hudi_py.formats.record_schema import parse_record_schema
from hudi_py.fsview.build import GroupKey, build_partition, latest_slices
from hudi_py.fsview.listing import Listing
from hudi_py.fsview.loader import load_context
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.mdt.listing import open_snapshot
from hudi_py.mdt.lost_writes import refuse_lost_writes
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import RequestedReplaceMetadata
from hudi_py.rows.base_file import BaseFileOptions
from hudi_py.rows.row_order import RowOrder, check_order
from hudi_py.rows.table_logs import why_not_read
from hudi_py.runtime.log import log
from hudi_py.services.clustering.execute import ClusteringExecutor
from hudi_py.services.clustering.opened import StoredPlans
from hudi_py.services.clustering.plan import PlannedClustering, plan_clustering, stored_plan
from hudi_py.services.clustering.policy import (
    Candidates,
    candidates_of,
    chosen_partitions,
    commits_since,
    skipped_partitions,
)
from hudi_py.services.rewriting.apart import refuse_other_tables
from hudi_py.services.rewriting.beside_undoing import refuse_beside_undoing
from hudi_py.services.rewriting.expected import Expected, expected, measured
from hudi_py.services.rewriting.left_pending import LeftPending, note_left, refuse_in_the_way
from hudi_py.services.rewriting.named import not_pending
from hudi_py.services.rewriting.progress import OnGroup
from hudi_py.services.rewriting.publish import taken_back_if_overtaken
from hudi_py.services.rewriting.result import RewriteResult
from hudi_py.storage.base import Entry
from hudi_py.timeline.completions import pending_targets
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.fence import take_down_fence
from hudi_py.timeline.heartbeat import Rhythm, pulses
from hudi_py.timeline.properties_file import recover_properties
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.attempt import Attempt, take_back
from hudi_py.txn.commit import Prepared, Requested, withdraw


@attrs.frozen(kw_only=True)
class ClusteringService:
    """
    Clusters one table.

    Args:
        contents: Contents of the table's timeline.
        table: Its properties.
        settings: Settings of the table.
        config: What to cluster, and how.
        metadata_table: Keeper of the metadata table.
        engine: Runs a task for each group.
        options: Layout of base files.
        schema_text: Returns the Avro text of the table's rows, now or for a plan of that time; None if it is unknown.
        roll_back_failed: Rolls back failed writes before a plan is made.
        roll_back: Rolls back an attempt of the clustering with this time, and keeps its plan.
        on_group: Hears of each group that is written.
    """

    contents: Contents
    table: TableConfig
    settings: Settings
    config: ClusteringConfig
    metadata_table: MetadataTableKeeper
    engine: Engine
    options: BaseFileOptions
    schema_text: Callable[[str | None], str | None]
    roll_back_failed: Callable[[Timeline], object]
    roll_back: Callable[[str], object]
    on_group: OnGroup | None = None

    # --- planning -----------------------------------------------------------------------------------------------------
    def plan(self) -> PlannedClustering:
        """
        Plan a clustering; nothing is written.

        Raises:
            ConfigError: Rows cannot be sorted by a column.
            CorruptMetadata: The table is damaged.
        """
        timeline, listing = open_snapshot(self.contents.store, self.table, self.settings)
        return self._plan(timeline, listing)

    def pending(self, timeline: Timeline | None = None) -> tuple[Instant, ...]:
        """
        Return the pending clusterings, oldest first.

        Args:
            timeline: The timeline, if it was just loaded.
        """
        timeline = timeline or self.contents.store.load()
        found = timeline.pending(Action.CLUSTERING, Action.REPLACE_COMMIT)
        return tuple(instant for instant in found if self.contents.is_clustering(instant))

    def expected(self, planned: PlannedClustering) -> Expected:
        """Return what carrying a plan out would write and how long it would take, as far as earlier ones tell."""
        earlier = measured(self.contents, self.contents.store.load(), self.action)
        outputs = sum(group.outputs for group in planned.groups)
        return expected(earlier, files=outputs, bytes_read=planned.size_bytes)

    @property
    def action(self) -> Action:
        """The action of a clustering that this service schedules."""
        return self.contents.store.layout.clustering

    def _plan(self, timeline: Timeline, listing: Listing) -> PlannedClustering:
        text = self.schema_text(None)
        if text is None or not self.config.services_enabled:
            return plan_clustering((), self.config)
        if self.config.sort_columns:
            check_order(
                RowOrder(columns=self.config.sort_columns, layout=self.config.layout), parse_record_schema(text)
            )
        named = self.config.partitions
        if named:
            entries = {path: listing.partition(path, details=True) for path in named}
        else:
            entries = dict(listing.walk(details=True))
        # By the filter DAY_ROLLING, the hour chooses the partitions.
        hour = self.contents.store.clock.now().astimezone(self.contents.store.zone).hour
        chosen = chosen_partitions(entries.keys(), self.config, hour)
        planned = plan_clustering(self._candidates(timeline, entries, chosen, text), self.config)
        paths = (group.partition_path for group in planned.groups)
        refuse_other_tables(self.contents.store.storage, listing, paths, "clustering")
        skipped = skipped_partitions(entries.keys(), self.config, hour)
        # Of the others, those that the last plan did not get to: this one takes its place.
        return attrs.evolve(
            planned, skipped=skipped | (self._missing(timeline) - set(chosen) if named else frozenset())
        )

    def _missing(self, timeline: Timeline) -> frozenset[str]:
        """What the last completed clustering left, as its plan says."""
        last = self._last_completed(timeline)
        if last is None or not self.contents.store.config.format.layout.has_completion_times:
            return frozenset()
        instant = Instant(last.requested_time, self.action, State.REQUESTED)
        try:
            found = self.contents.requested_replace(instant).clustering_plan
        except NotFound:  # it was undone, or is being archived
            return frozenset()
        return frozenset(() if found is None else found.missing_schedule_partitions or ())

    def _candidates(
        self, timeline: Timeline, entries: Mapping[str, Iterable[Entry]], chosen: Iterable[str], text: str
    ) -> Iterator[Candidates]:
        context = load_context(timeline, self.contents)
        unread = why_not_read(self.table.properties, text, self.contents.store.storage.root)
        for path in chosen:
            view = build_partition(context, path, ((entry.name, entry.size_bytes) for entry in entries[path]))
            yield candidates_of(context, path, latest_slices(context, view), self.config, unread)

    # --- running ------------------------------------------------------------------------------------------------------
    def is_due(self, every: int) -> bool:
        """Return whether that number of commits has been completed since the last clustering (E-30)."""
        timeline = self.contents.store.load()
        pending = self.pending(timeline)
        last = max((each.requested_time for each in pending), default="")
        completed = self._last_completed(timeline, last)
        last = last if completed is None else completed.requested_time
        return commits_since(timeline.commits.completed(), last or None) >= every

    def _last_completed(self, timeline: Timeline, after: str = "") -> Instant | None:
        # A replacecommit may be an overwrite; only its content tells.
        for instant in reversed(timeline.completed(Action.REPLACE_COMMIT)):
            if instant.requested_time < after:
                return None
            if self.contents.commit(instant).operation_type == "CLUSTER":
                return instant
        return None

    def run(self, every: int | None = None) -> list[RewriteResult]:
        """
        Carry out pending clusterings, oldest first, then plan one and carry it out (E-40).

        A pending plan that later writes have made invalid is withdrawn. One that asks for more than to move rows stays
        pending, and the run goes on with what it leaves (see `left_pending`).

        Args:
            every: Make a new plan only after this number of commits; None for in any case.

        Returns:
            What was done, in this order; empty if there was nothing to do.

        Raises:
            As `schedule` and `execute`.
            UnsupportedTable: Nothing was done, because such a plan stands in the way; not with *every*.
        """
        done: list[RewriteResult] = []
        if not self.config.services_enabled:
            return done
        timeline = self.contents.store.load()
        left = self.left_pending(timeline)
        note_left(left)
        for instant in self.pending(timeline):
            if any(each.instant == instant for each in left):
                continue
            # Judged before anything is rolled back or written: a stale plan is withdrawn as it is.
            found = self._stored.opened(instant)
            if isinstance(found, str):
                log.warning("clustering.withdrawn", instant=instant.requested_time, why=found)
                self.cancel(instant.requested_time)
            else:
                done.append(self.execute(instant.requested_time))
        if every is None or self.is_due(every):
            scheduled, planned = self._scheduled()
            if scheduled is not None:
                done.append(attrs.evolve(self.execute(scheduled.requested_time), left=planned.left_by_limits))
            if not done and every is None:
                refuse_in_the_way(left, planned.left_out.keys())
        return done

    def left_pending(self, timeline: Timeline) -> tuple[LeftPending, ...]:
        """
        Return the pending clusterings that a run does not carry out, although they are valid, oldest first.

        Args:
            timeline: The timeline.

        Raises:
            CorruptMetadata: A plan does not decode.
        """
        found = map(self._stored.left_pending, self.pending(timeline))
        return tuple(each for each in found if each is not None)

    def schedule(self) -> Instant | None:
        """
        Plan a clustering and store the plan.

        Returns:
            The requested clustering; None if there is nothing to do.

        Raises:
            ConfigError: Writers do not look for planned clusterings, or rows cannot be sorted by a column.
            RefusedError: A restore is pending, or rows would be missing from an index that is not maintained.
            ConflictError: Another process is writing to the table; nothing was changed.
            CorruptMetadata: The table is damaged.
        """
        return self._scheduled()[0]

    def _scheduled(self) -> tuple[Instant | None, PlannedClustering]:
        require_checked_by_writers(self.settings)
        store = self.contents.store
        with store.lock.held("clustering"):
            # The lock is ours, so a half-written file is of a process that has died.
            recover_properties(store.storage)
            timeline = self._refuse_unless_sound()
        # Between two holds of the lock: rolling back deletes files, which may take longer than a lock is valid. Only
        # after the table was judged, so that a refusal has changed nothing.
        self.roll_back_failed(timeline)
        with store.lock.held("clustering"):
            timeline = self._refuse_unless_sound()
            self.metadata_table.prepare(writes_data=True)
            timeline, listing = open_snapshot(store, self.table, self.settings)
            planned = self._plan(timeline, listing)
            if not planned.groups:
                return None, planned
            refuse_beside_undoing(timeline, self.contents, "clustering")
            has_missing = store.config.format.layout.has_completion_times
            plan = stored_plan(planned, store.storage.root, has_missing_partitions=has_missing)
            time = store.new_time(after=self.metadata_table.compact(timeline))
            requested = Prepared(store, self.action, time).request(
                RequestedReplaceMetadata(operation_type="CLUSTER", clustering_plan=plan, extra_metadata={}, version=1)
            )
            with requested.withdrawn_if_refused() as now:
                self._refuse_restore(now)
                refuse_beside_undoing(now, self.contents, "clustering")
                self._refuse_writers(now, timeline)
                self._refuse_same_groups(now, requested.instant, plan.file_groups)
        log.info("clustering.scheduled", instant=time, groups=len(planned.groups), bytes=planned.size_bytes)
        return requested.instant, planned

    def execute(self, requested_time: str) -> RewriteResult:
        """
        Carry out a pending clustering; an attempt that was interrupted is rolled back first.

        Raises:
            ConfigError: There is no pending clustering with this time, or writers do not look for it.
            UnsupportedTable: Its plan asks for more than hudi_py does; nothing was changed.
            RefusedError: Its plan is no longer valid, because a later write changed its file groups.
            ConflictError: Another process writes to these file groups, or carries the plan out.
            CorruptMetadata, StorageError: A file cannot be read or written; the clustering stays pending, and the next
                run begins it again.
        """
        require_checked_by_writers(self.settings)
        store = self.contents.store
        instant = self._named(requested_time)
        self._refuse_restore(store.load())
        # Before anything is taken back: an attempt at such a plan is that of Apache Hudi.
        left = self._stored.left_pending(instant)
        if left is not None:
            raise UnsupportedTable(left.reason)
        if instant.state is State.INFLIGHT or requested_time in pending_targets(store.load(), self.contents):
            take_back(store, self.settings, requested_time, self.roll_back)
        with (
            taken_back_if_overtaken(requested_time, partial(self._take_back, requested_time)),
            Attempt(store, self.settings, requested_time) as attempt,
        ):
            return self._attempt(requested_time, attempt)

    def _take_back(self, requested_time: str) -> None:
        """Roll an attempt back, and withdraw its plan if that no longer holds: until then it stops writers."""
        store = self.contents.store
        take_back(store, self.settings, requested_time, self.roll_back)
        with store.lock.held(f"clustering {requested_time}"):
            instant = self._named(requested_time)
            found = self._stored.opened(instant)
            if isinstance(found, str):
                withdraw(store, [instant], found)

    def _attempt(self, requested_time: str, attempt: Attempt) -> RewriteResult:
        store = self.contents.store
        with store.lock.held(f"clustering {requested_time}"):
            self.metadata_table.prepare(writes_data=True)
            instant = self._named(requested_time)
            # It was a plan, or taken back to one, a moment ago, so whoever has begun it since is at work. Both would
            # write its rows, each to files of its own, with the time of one commit.
            if instant.state is not State.REQUESTED:
                raise ConflictError(f"another process has just begun {instant}; try again when it is done")
            found = self._stored.opened(instant)
            if isinstance(found, str):
                raise RefusedError(
                    f"{instant} cannot be carried out any more: {found}; nothing was changed; withdraw its plan with "
                    f"hudi-py cluster --cancel {requested_time}"
                )
            job = self._stored.job(found, requested_time)
            # An attempt that was rolled back left one, and it would stop our own tasks.
            take_down_fence(store.storage, requested_time)
            begun = attempt.begin(Requested(store, instant))
        executor = ClusteringExecutor(
            contents=self.contents,
            metadata_table=self.metadata_table,
            engine=self.engine.prepared(store.storage, len(found.works)),
            on_group=self.on_group,
        )
        return executor.execute(begun, found.plan, found.works, job, found.timeline, attempt)

    def cancel(self, requested_time: str) -> None:
        """
        Withdraw the plan of a pending clustering; an attempt that was begun is rolled back first.

        Raises:
            ConfigError: There is no pending clustering with this time.
            ConflictError: Another process has begun it at this moment.
        """
        store = self.contents.store
        if self._named(requested_time).state is State.INFLIGHT:
            take_back(store, self.settings, requested_time, self.roll_back)
        with store.lock.held(f"clustering {requested_time}"):
            # Looked for again, under the lock: another process may have begun it.
            withdraw(store, [self._named(requested_time)], "it was cancelled")

    def _named(self, requested_time: str) -> Instant:
        timeline = self.contents.store.load()
        for instant in self.pending(timeline):
            if instant.requested_time == requested_time:
                return instant
        raise not_pending(self.contents.store.storage.root, "clustering", requested_time, timeline)

    def _refuse_unless_sound(self) -> Timeline:
        """The timeline, if no restore is pending and no completed write is lost."""
        timeline = self.contents.store.load()
        self._refuse_restore(timeline)
        refuse_lost_writes(timeline, self.contents, self.table)
        return timeline

    @staticmethod
    def _refuse_restore(timeline: Timeline) -> None:
        for restore in timeline.pending(Action.RESTORE):
            raise RefusedError(f"{restore} is pending: finish the restore first, no clustering can start before")

    def _refuse_writers(self, now: Timeline, before: Timeline) -> None:
        """
        Refuse a plan beside a write that has begun since: it may not have seen the plan.

        A write that begins later sees the plan and leaves its file groups alone. Failed writes were there before. So
        were the plans of services that are at work: their file groups are not in ours.
        """
        store = self.contents.store
        known = {instant.requested_time for instant in before.writes.pending()}
        alive = pulses(store.storage, store.clock, Rhythm.of(self.settings))
        for each in now.writes.pending():
            is_new = each.requested_time not in known
            is_service = each.action in _SERVICES or self.contents.is_clustering(each)
            if (is_new and not is_service) or (each.requested_time in alive and (is_new or not is_service)):
                raise ConflictError(f"{each} is running")
        done = {each.requested_time for each in before.commits.completed()}
        for each in now.commits.completed():
            if each.requested_time not in done:
                raise ConflictError(f"{each} was completed at this moment")

    def _refuse_same_groups(self, now: Timeline, ours: Instant, groups: Collection[GroupKey]) -> None:
        """
        Refuse a plan beside another one for the same file groups, whose rows both would write.

        Without a lock, or if ours was lost while this process was stopped, that one may have come since we planned.
        """
        for other in self.pending(now):
            is_ours = other.requested_time == ours.requested_time
            theirs = None if is_ours else self.contents.requested_replace(other).clustering_plan
            common = () if theirs is None else sorted(theirs.file_groups.intersection(groups))
            if common:
                raise ConflictError(f"{other} was planned at this moment for file group {common[0][1]}")

    @property
    def _stored(self) -> StoredPlans:
        return StoredPlans(
            contents=self.contents,
            table=self.table,
            settings=self.settings,
            config=self.config,
            metadata_table=self.metadata_table,
            options=self.options,
            schema_text=self.schema_text,
        )


_SERVICES = frozenset({Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING})

"""
Compactions of a merge-on-read table: plan, schedule, carry out.

What a crash leaves after each step, and what the next run does:

===========================  ======================================================================================
``C.compaction.requested``   the plan; new log files go to the slice that it opens, readers merge both; carried out
``C.compaction.inflight``    the same, and base files, torn or whole, that markers name: rolled back, then carried out
records in the metadata      they do not count while C is pending; written again
``C.commit``                 done; the old slices are left for the clean
===========================  ======================================================================================

Source: rules/table-services E.1, E.2, B-25.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

import attrs

from hudi_py.config.compaction import CompactionConfig
from hudi_py.config.table import TableConfig, TableType
from hudi_py.engine.base import Engine
from hudi_py.errors import ConfigError, ConflictError, RefusedError
from hudi_py.formats.record_schema import parse_record_schema
from hudi_py.fsview.build import build_partition
from hudi_py.fsview.listing import Listing
from hudi_py.fsview.loader import load_context
from hudi_py.fsview.moved import with_moved
from hudi_py.fsview.written_ranges import WrittenRanges
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.mdt.listing import open_snapshot
from hudi_py.model.files import join_path, parse_log_file
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.instant_time import format_instant_time
from hudi_py.model.records import CompactionPlan
from hudi_py.rows.base_file import BaseFileOptions
from hudi_py.rows.column_ids import outdates_statistics
from hudi_py.rows.filling import refuse_defaults
from hudi_py.rows.log_reading import log_reading
from hudi_py.rows.log_rules import log_rules_of
from hudi_py.runtime.clock import MONOTONIC
from hudi_py.services.compaction.execute import carry_out, planned_slices
from hudi_py.services.compaction.plan import Outlook, blocked_by, nothing, plan_compaction
from hudi_py.services.compaction.policy import judge_due
from hudi_py.services.rewriting.progress import OnGroup
from hudi_py.services.rewriting.publish import publish
from hudi_py.services.rewriting.result import RewriteResult
from hudi_py.services.rewriting.tasks import RewriteJob
from hudi_py.services.rollback.service import RollbackService
from hudi_py.timeline.completions import pending_targets
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.fence import put_up_fence, take_down_fence
from hudi_py.timeline.markers import delete_markers_of_completed
from hudi_py.timeline.row_schema import column_ids, moved_columns
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.attempt import Attempt, take_back
from hudi_py.txn.commit import Begun, Prepared, Requested, withdraw


@attrs.frozen(kw_only=True)
class CompactionService:
    """
    Compacts one table.

    Args:
        contents: Contents of the table's timeline.
        table: Configuration of the table.
        config: Settings of compaction.
        options: Layout of base files.
        schema_text: Returns the Avro text of the table's rows for a plan of that time; None if nothing tells it.
        engine: Runs a task for each file group.
        metadata_table: Updated with each compaction before it completes.
        rollback: Takes back attempts that did not complete.
        now: Replaces the clock for planning.
        on_group: Hears of each file group that is written.
    """

    contents: Contents
    table: TableConfig
    config: CompactionConfig
    options: BaseFileOptions
    schema_text: Callable[[str | None], str | None]
    engine: Engine
    metadata_table: MetadataTableKeeper
    rollback: RollbackService
    now: datetime | None = None
    on_group: OnGroup | None = None

    def plan(self) -> Outlook:
        """
        Plan a compaction; nothing is written.

        Raises:
            ConfigError: The table is not merge-on-read, or a strategy does not fit its partitions.
            CorruptMetadata: A file that a slice needs is missing or damaged.
        """
        self._require_merge_on_read()
        return self._plan(*open_snapshot(self.contents.store, self.table, self.metadata_table.settings))

    def _plan(self, timeline: Timeline, listing: Listing) -> Outlook:
        now = (self.now or self.contents.store.clock.now()).astimezone(self.contents.store.zone)
        if not self.config.services_enabled:
            return nothing("hoodie.table.services.enabled=false switches table services off")
        layout = self.table.format.layout
        due = judge_due(timeline, self.config, format_instant_time(now), by_completion=layout.has_completion_times)
        if not due.is_due:
            return nothing(due.reason)
        context = load_context(timeline, self.contents, for_planning=True)
        tells_slice = self.table.format.log_naming.tells_slice
        blocked = blocked_by(timeline, context.pending_clustering.values(), tells_slice=tells_slice)
        if blocked is not None:
            return nothing(blocked, is_due=True)
        partitions = (
            build_partition(context, path, ((e.name, e.size_bytes) for e in entries))
            for path, entries in listing.walk(details=True)
        )
        return plan_compaction(
            context,
            partitions,
            self.config,
            now.date(),
            takes_first=tells_slice,
            has_extras=self.table.format.metadata_table.plan_extras,
        )

    def schedule(self) -> Instant | None:
        """
        Plan a compaction and store the plan; None if nothing is due or left to compact.

        Raises:
            As `plan`. ConflictError: Another process changed the table meanwhile, or holds the lock.
        """
        self._require_merge_on_read()
        store = self.contents.store
        with store.lock.held("scheduling of a compaction"):
            # Without a lock, or with one that was lost while this process stood still, others write while the plan is
            # made. So what it is held against below is the timeline that it was made from, and no later one.
            before, listing = open_snapshot(store, self.table, self.metadata_table.settings)
            outlook = self._plan(before, listing)
            if not outlook.would_schedule:
                return None
            # Before the first file of the compaction: with an index that is not maintained nothing may begin.
            self.metadata_table.prepare(writes_data=True)
            # Its own metadata table goes first: Hudi rolls nothing back that is older than a compaction there
            # (rules/data-files 11.2).
            time = store.new_time(before, after=self.metadata_table.compact(before))
            requested = Prepared(store, Action.COMPACTION, time).request(outlook.plan)
            # In layout 1 a writer that has seen the plan names its log files after it: then the plan has to stay.
            stays = partial(self._refuse_what_rests_on, requested.instant, plan=outlook.plan)
            with requested.withdrawn_if_refused(stays) as timeline:
                self._refuse_what_came_meanwhile(before, timeline, requested.instant)
            return requested.instant

    def run(self) -> list[RewriteResult]:
        """
        Carry out all pending compactions, oldest first; then schedule a new one and carry it out (E-20).

        Returns:
            What was done, oldest first; empty if there was nothing to do.

        Raises:
            As `schedule` and `execute`.
        """
        self._require_merge_on_read()
        results = []
        if self.config.services_enabled:
            timeline = self.contents.store.load()
            delete_markers_of_completed(self.contents.store.storage, timeline)
            # Pending ones first (rule E-20): a group is in one plan at a time, so a new plan could not have their
            # groups.
            results = [self.execute(instant.requested_time) for instant in timeline.pending(Action.COMPACTION)]
            scheduled = self.schedule()
            if scheduled is not None:
                results.append(self.execute(scheduled.requested_time))
        return results

    def execute(self, requested_time: str) -> RewriteResult:
        """
        Carry out a pending compaction, by whichever side it was planned; what an earlier attempt left is taken back.

        Raises:
            ConfigError: There is no such pending compaction.
            CorruptMetadata, UnsupportedTable: A file is damaged, or holds what is not read; it stays pending.
            ConflictError: Another process carries it out.
        """
        self._require_merge_on_read()
        started = MONOTONIC()
        self._take_back(requested_time)
        with Attempt(self.contents.store, self.metadata_table.settings, requested_time) as attempt:
            begun = self._begin(requested_time, attempt)
            timeline, listing = open_snapshot(self.contents.store, self.table, self.metadata_table.settings)
            root = self.contents.store.storage.root
            context = load_context(timeline, self.contents, with_clustering=False)
            plan = self.contents.compaction_plan(begun.instant)
            planned = planned_slices(plan, begun.instant, listing, context, root)
            job = self._job(begun.instant, timeline, context.is_completed)
            engine = self.engine
            if engine.name == "spark":  # are its executors fit for the table?
                engine = engine.prepared(job.storage, len(planned))
            planned = tuple(with_moved(planned, job.reading.moved))
            written = carry_out(job, planned, engine, self.on_group)
            put_up_fence(self.contents.store.storage, requested_time)  # for an attempt that was taken for dead
            metadata = publish(
                begun,
                self.contents,
                self.metadata_table,
                written,
                operation="COMPACT",
                schema=job.avro_schema,
                ids=column_ids(self.contents, timeline, requested_time),
                attempt=attempt,
            )
        return RewriteResult(
            instant=requested_time,
            metadata=metadata,
            file_groups=len(written),
            rows=sum(each.stat.num_writes for each in written),
            bytes_before=sum(each.size_bytes for each in planned),
            bytes_after=sum(each.stat.file_size_in_bytes for each in written),
            seconds=MONOTONIC() - started,
        )

    def cancel(self, requested_time: str) -> None:
        """
        Withdraw the plan of a pending compaction; an attempt that was begun is rolled back first.

        In layout 1 log files that were written since the plan belong on the base file that it is going to write: once
        there are any, or a write that may be adding one, the plan stays.

        Raises:
            ConfigError: There is no pending compaction with this time.
            RefusedError: Log files rest on the plan, or may do so soon.
            ConflictError: Another process has begun it, or a write beside it, at this moment.
        """
        store = self.contents.store
        timeline = store.load()
        found = self._pending(timeline, requested_time)
        # Before anything is taken back: a plan that has to stay is left as it is, with its attempt.
        self._refuse_what_rests_on(found, timeline)
        if found.state is State.INFLIGHT:
            take_back(store, self.metadata_table.settings, requested_time, self.rollback.roll_back)
        with store.lock.held(f"compaction {requested_time}"):
            timeline = store.load()
            instant = self._pending(timeline, requested_time)
            self._refuse_what_rests_on(instant, timeline)
            # Looked at again behind the removal: without a lock, a write may have begun that has seen the plan.
            withdraw(store, [instant], "it was cancelled", lambda now: self._refuse_writers_of_layout_1(instant, now))

    def _refuse_what_rests_on(self, instant: Instant, timeline: Timeline, plan: CompactionPlan | None = None) -> None:
        if not self.table.format.log_naming.tells_slice:
            return
        self._refuse_writers_of_layout_1(instant, timeline)
        # Given where its file is removed already, and comes back only if this refuses.
        plan = self.contents.compaction_plan(instant) if plan is None else plan
        for partition in sorted({each.partition_path or "" for each in plan.operations}):
            for entry in self.contents.store.storage.list(partition):
                parsed = parse_log_file(entry.name)
                if parsed is not None and parsed.instant_time == instant.requested_time:
                    raise RefusedError(
                        f"{instant} stays: {join_path(partition, entry.name)} was written since it was planned, for "
                        "the base file that it plans; carry the compaction out with hudi-py compact"
                    )

    def _refuse_writers_of_layout_1(self, instant: Instant, timeline: Timeline) -> None:
        pending = timeline.pending(Action.COMMIT, Action.DELTA_COMMIT)
        if pending and self.table.format.log_naming.tells_slice:
            raise RefusedError(
                f"{instant} stays: {pending[0]} is pending, and may be writing log files for the base file that it "
                "plans; try again when that write is over, or carry the compaction out"
            )

    def _take_back(self, requested_time: str) -> None:
        """Take back what an earlier attempt left (B-25)."""
        timeline = self.contents.store.load()
        found = self._pending(timeline, requested_time)
        for instant in timeline.pending(Action.RESTORE):
            raise RefusedError(f"{instant} is pending; finish it first with hudi-py recover")
        if found.state is State.INFLIGHT or requested_time in pending_targets(timeline, self.contents):
            take_back(self.contents.store, self.metadata_table.settings, requested_time, self.rollback.roll_back)

    def _begin(self, requested_time: str, attempt: Attempt) -> Begun:
        """Make the compaction inflight."""
        store = self.contents.store
        with store.lock.held(f"compaction {requested_time}"):
            self.metadata_table.prepare(writes_data=True)
            requested = Requested(store, self._pending(store.load(), requested_time))
            # It was taken back to its plan a moment ago, so whoever began it again is at work.
            if requested.instant.state is not State.REQUESTED:
                raise ConflictError(f"another process has just begun {requested.instant}; try again when it is done")
            take_down_fence(store.storage, requested_time)
            return attempt.begin(requested)

    def _pending(self, timeline: Timeline, requested_time: str) -> Instant:
        for instant in timeline.pending(Action.COMPACTION):
            if instant.requested_time == requested_time:
                return instant
        raise ConfigError(
            f"{self.contents.store.storage.root} has no pending compaction {requested_time}; "
            "see hudi-py timeline --action compaction"
        )

    def _job(self, instant: Instant, timeline: Timeline, counts: Callable[[str], bool]) -> RewriteJob:
        text = self.schema_text(instant.requested_time)
        storage = self.contents.store.storage
        if text is None:
            raise RefusedError(f"{storage.root}: no commit and no file says which columns the rows have")
        schema = parse_record_schema(text)
        rules = log_rules_of(self.table.properties, storage.root)
        refuse_defaults(rules.filling, text, storage.root)
        reading = log_reading(rules, counts, None, schema, storage.root)
        # The compaction of 0.15 merges every row of a key, although its reader merges the first one only.
        reading = attrs.evolve(reading, meets_copies=rules.deletes_reset)
        is_widened = outdates_statistics(self.contents, timeline)
        return RewriteJob(
            storage=storage,
            instant_time=instant.requested_time,
            schema=schema,
            avro_schema=text,
            options=attrs.evolve(
                self.options, ranged=self.metadata_table.columns_to_range(timeline, schema, is_widened=is_widened)
            ),
            reading=attrs.evolve(
                reading,
                written=WrittenRanges(self.contents, timeline),
                moved=moved_columns(self.contents, timeline, instant.requested_time),
            ),
        )

    def _refuse_what_came_meanwhile(self, before: Timeline, now: Timeline, ours: Instant) -> None:
        """
        Without a lock, other processes may have begun something since the plan was made.

        Raises:
            RefusedError: Something that the plan does not know.
        """
        known = set(before.instants)
        for instant in now.without(ours):
            # A savepoint keeps files, and a compaction deletes none.
            if instant not in known and instant.action is not Action.SAVEPOINT:
                raise RefusedError(f"{instant} began or completed while the compaction was planned")

    def _require_merge_on_read(self) -> None:
        if self.table.table_type is not TableType.MERGE_ON_READ:
            raise ConfigError(
                f"{self.contents.store.storage.root} is a COPY_ON_WRITE table: it has no log files to compact; small "
                "files are joined by clustering"
            )

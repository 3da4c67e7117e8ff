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

from functools import partial

import attrs

from hudi_py.errors import RefusedError
from hudi_py.fsview.build import build_partition
from hudi_py.fsview.listing import Listing
from hudi_py.fsview.loader import load_context
from hudi_py.fsview.moved import with_moved
from hudi_py.mdt.listing import open_snapshot
from hudi_py.model.files import join_path, parse_log_file
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.instant_time import format_instant_time
from hudi_py.model.records import CompactionPlan
from hudi_py.runtime.clock import MONOTONIC
from hudi_py.services.compaction.base import MergingService
from hudi_py.services.compaction.execute import planned_slices, why_not_served
from hudi_py.services.compaction.plan import Outlook, blocked_by, nothing, plan_compaction
from hudi_py.services.compaction.policy import judge_due
from hudi_py.services.rewriting.left_pending import note_left, refuse_in_the_way
from hudi_py.services.rewriting.publish import publish
from hudi_py.services.rewriting.result import RewriteResult
from hudi_py.services.rewriting.tasks import compact_slice
from hudi_py.timeline.fence import put_up_fence
from hudi_py.timeline.markers import delete_markers_of_completed
from hudi_py.timeline.row_schema import column_ids
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.attempt import Attempt, take_back
from hudi_py.txn.commit import withdraw


@attrs.frozen(kw_only=True)
class CompactionService(MergingService):
    """Compacts one table; fields as those of `MergingService`."""

    action = Action.COMPACTION
    word = "compaction"

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
        self.refuse_unread_logs()
        partitions = (
            build_partition(context, path, ((e.name, e.size_bytes) for e in entries))
            for path, entries in listing.walk(details=True)
        )
        found = plan_compaction(
            context,
            partitions,
            self.config,
            now.date(),
            takes_first=tells_slice,
            has_extras=self.table.format.metadata_table.plan_extras,
        )
        self.refuse_other_tables(listing, found)
        return found

    def run(self, *, refuses: bool = True) -> list[RewriteResult]:
        """
        Carry out all pending compactions, oldest first; then schedule a new one and carry it out (E-20).

        One that asks for more than to merge log files stays pending, and the run goes on with what it leaves.

        Args:
            refuses: Whether a run that does nothing because of such a plan is refused; otherwise only the log tells.

        Returns:
            What was done, oldest first; empty if there was nothing to do.

        Raises:
            As `schedule` and `execute`.
            UnsupportedTable: Nothing was done, because such a plan stands in the way.
        """
        self.require_merge_on_read()
        results = []
        if self.config.services_enabled:
            timeline = self.contents.store.load()
            delete_markers_of_completed(self.contents.store.storage, timeline)
            left = self.left_pending(timeline)
            note_left(left)
            stay = {each.instant for each in left}
            # Pending ones first (rule E-20): a group is in one plan at a time, so a new plan could not have their
            # groups.
            results = [
                self.execute(instant.requested_time)
                for instant in timeline.pending(Action.COMPACTION)
                if instant not in stay
            ]
            scheduled, outlook = self._scheduled()
            if scheduled is not None:
                results.append(attrs.evolve(self.execute(scheduled.requested_time), left=outlook.left_by_limits))
            if refuses and not results:
                refuse_in_the_way(left, {(each.partition_path, each.file_id) for each in outlook.left})
        return results

    def execute(self, requested_time: str) -> RewriteResult:
        """
        Carry out a pending compaction, by whichever side it was planned; what an earlier attempt left is taken back.

        Raises:
            ConfigError: There is no such pending compaction.
            CorruptMetadata, UnsupportedTable: A file is damaged, or holds what is not read; it stays pending.
            ConflictError: Another process carries it out.
        """
        self.require_merge_on_read()
        started = MONOTONIC()
        self.refuse_left_pending(requested_time)
        self.take_back(requested_time)
        with Attempt(self.contents.store, self.metadata_table.settings, requested_time) as attempt:
            begun = self.begin(requested_time, attempt)
            timeline, listing = open_snapshot(self.contents.store, self.table, self.metadata_table.settings)
            root = self.contents.store.storage.root
            context = load_context(timeline, self.contents, with_clustering=False)
            plan = self.contents.compaction_plan(begun.instant)
            planned = planned_slices(plan, begun.instant, listing, context, root)
            job = self.job(begun.instant, timeline, context.is_completed)
            planned = tuple(with_moved(planned, job.reading.moved))
            written = self.write(requested_time, planned, partial(compact_slice, job), job.storage)
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
        bytes_before = sum(each.size_bytes for each in planned)
        return self.result(requested_time, metadata, written, bytes_before=bytes_before, started=started)

    def why_not_served(self, timeline: Timeline, instant: Instant, plan: CompactionPlan) -> str | None:
        """Return why hudi_py does not carry a stored plan out; None if it does."""
        return why_not_served(plan)

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
        found = self.pending(timeline, requested_time)
        # Before anything is taken back: a plan that has to stay is left as it is, with its attempt.
        self._refuse_what_rests_on(found, timeline)
        if found.state is State.INFLIGHT:
            take_back(store, self.metadata_table.settings, requested_time, self.rollback.roll_back)
        with store.lock.held(f"compaction {requested_time}"):
            timeline = store.load()
            instant = self.pending(timeline, requested_time)
            self._refuse_what_rests_on(instant, timeline)
            # Looked at again behind the removal: without a lock, a write may have begun that has seen the plan.
            withdraw(store, [instant], "it was cancelled", lambda now: self._refuse_writers_of_layout_1(instant, now))

    def _refuse_what_rests_on(self, instant: Instant, timeline: Timeline, plan: CompactionPlan | None = None) -> None:
        # In layout 1 a writer that has seen the plan names its log files after it: then the plan has to stay.
        if not self.table.format.log_naming.tells_slice:
            return
        self._refuse_writers_of_layout_1(instant, timeline)
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

"""
Log compactions of a merge-on-read table: plan, schedule, carry out.

What a crash leaves after each step, and what the next run does:

==============================  ===================================================================================
``C.logcompaction.requested``   the plan: carried out, or withdrawn if others changed its file slices since
``C.logcompaction.inflight``    the same, and log files, torn or whole, that markers name: rolled back, then as above
records in the metadata table   they do not count while C is pending; written again
``C.deltacommit``               done; the merged log files stay with their slice until the clean deletes it
==============================  ===================================================================================

A plan opens no slice, and writers need not know it: what they write later stays behind the merged block. So a plan may
be withdrawn at any time, and is where it would not hold any more (Apache Hudi: "log compaction plans are mutable").

Source: rules/table-services E-25 to E-28, B-25.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import attrs

from hudi_py.errors import ConflictError, RefusedError
from hudi_py.fsview.build import GroupKey, build_partition, latest_slices
from hudi_py.fsview.listing import Listing
from hudi_py.fsview.loader import load_context
from hudi_py.fsview.moved import with_moved
from hudi_py.mdt.listing import open_snapshot
from hudi_py.model.files import FileSlice, join_path
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import CompactionPlan
from hudi_py.rows.log_file import LogFileOptions
from hudi_py.rows.log_reading import LogReading
from hudi_py.rows.table_logs import table_log_reading
from hudi_py.runtime.clock import MONOTONIC
from hudi_py.runtime.log import log
from hudi_py.services.compaction.base import MergingService
from hudi_py.services.compaction.plan import INGESTION, Outlook, blocked_by, nothing
from hudi_py.services.log_compaction.execute import LogCompactionJob, MergeWork, count_blocks, merge_slice
from hudi_py.services.log_compaction.plan import (
    LEFT_OUT_VALUES,
    Blocks,
    judge_due,
    plan_log_compaction,
    why_not_merged,
    why_outdated,
)
from hudi_py.services.rewriting.left_pending import note_left, refuse_in_the_way
from hudi_py.services.rewriting.publish import publish, taken_back_if_overtaken
from hudi_py.services.rewriting.result import RewriteResult
from hudi_py.timeline.fence import put_up_fence
from hudi_py.timeline.markers import delete_markers_of_completed
from hudi_py.timeline.row_schema import column_ids
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.attempt import Attempt, take_back
from hudi_py.txn.commit import withdraw


@attrs.frozen(kw_only=True)
class LogCompactionService(MergingService):
    """
    Compacts the log files of one table among themselves; further fields as those of `MergingService`.

    Args:
        log_options: Layout of log files.
        has_change_logs: Whether the table records changes: then stats name the slice that they belong to.
    """

    log_options: LogFileOptions
    has_change_logs: bool = False

    action = Action.LOG_COMPACTION
    word = "log compaction"

    # --- planning -----------------------------------------------------------------------------------------------------
    def _plan(self, timeline: Timeline, listing: Listing) -> Outlook:
        if not self.config.services_enabled:
            return nothing("hoodie.table.services.enabled=false switches table services off")
        # Of table version 9, the release is unknown: Hudi 1.2 waits for as many delta commits, 1.1 does not (E-26).
        is_newest = self.table.format.merges_logs_by_commits
        due = judge_due(timeline, self.config, self._merged(timeline) if is_newest else (), by_commits=is_newest)
        if not due.is_due:
            return nothing(due.reason)
        # In both layouts: the log file of a write that is under way may come to lie before the merged block.
        context = load_context(timeline, self.contents, for_planning=True)
        blocked = blocked_by(timeline, context.pending_clustering.values(), tells_slice=True)
        if blocked is not None:
            return nothing(blocked, is_due=True)
        text = self.schema_text(None)
        if text is None:
            return nothing("no commit and no file says which columns the rows have", is_due=True)
        storage = self.contents.store.storage
        reading = table_log_reading(self.table.properties, text, context.is_completed, storage.root)
        if not reading.rules.merges_logs_alone:
            return nothing(f"rows {LEFT_OUT_VALUES}")
        partitions = (
            build_partition(context, path, ((e.name, e.size_bytes) for e in entries))
            for path, entries in listing.walk(details=True)
        )
        found = plan_log_compaction(
            context,
            partitions,
            self.config,
            partial(self._blocks_of, reading),
            counts_files=is_newest,
            has_extras=self.table.format.metadata_table.plan_extras,
            takes_deletes=self.table.format.reads_repeated_deletes,
        )
        self.refuse_other_tables(listing, found)
        return found

    def _merged(self, timeline: Timeline) -> list[str]:
        """Requested time of the last completed log compaction; only commits since the last compaction are read."""
        last = max((each.requested_time for each in timeline.completed(Action.COMMIT)), default="")
        for instant in reversed(timeline.completed(Action.DELTA_COMMIT)):
            if instant.requested_time < last:
                break
            if self.contents.commit(instant).operation_type == "LOG_COMPACT":
                return [instant.requested_time]
        return []

    def _blocks_of(self, reading: LogReading, file_slice: FileSlice) -> Blocks:
        return count_blocks(self.contents.store.storage, file_slice, reading)

    # --- carrying out -------------------------------------------------------------------------------------------------
    def run(self, *, refuses: bool = True) -> list[RewriteResult]:
        """
        Carry out all pending log compactions, oldest first; then schedule a new one and carry it out.

        A plan that later writes have made invalid is withdrawn. One of log files that only a compaction merges stays
        pending, and the run goes on with what it leaves.

        Args:
            refuses: Whether a run that does nothing because of such a plan is refused; otherwise only the log tells.

        Returns:
            What was done, oldest first; empty if there was nothing to do.

        Raises:
            As `schedule` and `execute`.
            UnsupportedTable: Nothing was done, because such a plan stands in the way.
        """
        self.require_merge_on_read()
        results: list[RewriteResult] = []
        if not self.config.services_enabled:
            return results
        timeline = self.contents.store.load()
        delete_markers_of_completed(self.contents.store.storage, timeline)
        left = self.left_pending(timeline)
        note_left(left)
        for instant in timeline.pending(Action.LOG_COMPACTION):
            if any(each.instant == instant for each in left):
                continue
            # What an earlier attempt left is taken back first: in layout 1 that adds log files, and outdates the plan.
            self.take_back(instant.requested_time)
            found = self._opened(instant.requested_time)
            if isinstance(found, str):
                log.warning("log_compaction.withdrawn", instant=instant.requested_time, why=found)
                self.cancel(instant.requested_time)
            else:
                results.append(self._execute(instant.requested_time))
        scheduled, outlook = self._scheduled()
        if scheduled is not None:
            results.append(self._execute(scheduled.requested_time))
        if refuses and not results:
            refuse_in_the_way(left, {(each.partition_path, each.file_id) for each in outlook.left})
        return results

    def execute(self, requested_time: str) -> RewriteResult:
        """
        Carry out a pending log compaction, whoever planned it; what an earlier attempt left is taken back.

        Raises:
            ConfigError: There is no such pending log compaction.
            RefusedError: Others changed its file slices since it was planned; it stays pending.
            CorruptMetadata, UnsupportedTable: A file is damaged, or holds what is not merged; it stays pending.
            ConflictError: Another process carries it out, or wrote to its file slices meanwhile.
        """
        self.require_merge_on_read()
        self.refuse_left_pending(requested_time)
        return self._execute(requested_time)

    def _execute(self, requested_time: str) -> RewriteResult:
        started = MONOTONIC()
        self.take_back(requested_time)
        # Before it is inflight, so that an outdated plan is left as it is.
        self._valid(requested_time)
        with (
            taken_back_if_overtaken(requested_time, partial(self._take_back_overtaken, requested_time)),
            Attempt(self.contents.store, self.metadata_table.settings, requested_time) as attempt,
        ):
            begun = self.begin(requested_time, attempt)
            found = self._valid(requested_time)
            job, works = self._job(begun.instant, found), found.works
            written = self.write(requested_time, works, partial(merge_slice, job), job.storage)
            put_up_fence(self.contents.store.storage, requested_time)  # for an attempt that was taken for dead
            metadata = publish(
                begun,
                self.contents,
                self.metadata_table,
                written,
                operation="LOG_COMPACT",
                schema=job.rewrite.avro_schema,
                ids=column_ids(self.contents, found.timeline, requested_time),
                attempt=attempt,
                check=partial(self._refuse_changed, found, begun.instant),
            )
        bytes_before = sum(log.size_bytes or 0 for work in works for log in work.planned.log_files)
        return self.result(requested_time, metadata, written, bytes_before=bytes_before, started=started)

    def _take_back_overtaken(self, requested_time: str) -> None:
        """Roll an attempt back, and withdraw its plan if that no longer holds."""
        self.take_back(requested_time)
        found = self._opened(requested_time)
        if isinstance(found, str):
            log.warning("log_compaction.withdrawn", instant=requested_time, why=found)
            self.cancel(requested_time)

    def cancel(self, requested_time: str) -> None:
        """
        Withdraw the plan of a pending log compaction; an attempt that was begun is rolled back first.

        Raises:
            ConfigError: There is no pending log compaction with this time.
            ConflictError: Another process has begun it at this moment.
        """
        store = self.contents.store
        if self.pending(store.load(), requested_time).state is State.INFLIGHT:
            take_back(store, self.metadata_table.settings, requested_time, self.rollback.roll_back)
        with store.lock.held(f"log compaction {requested_time}"):
            withdraw(store, [self.pending(store.load(), requested_time)], "it was cancelled")

    def why_not_served(self, timeline: Timeline, instant: Instant, plan: CompactionPlan) -> str | None:
        """Return why the log files of a stored plan are not merged; None if they are, or if it is not valid."""
        found = self._opened(instant.requested_time)
        if isinstance(found, str):
            return None
        job = self._job(instant, found)
        if not job.rewrite.reading.rules.merges_logs_alone:
            return f"has rows that {LEFT_OUT_VALUES}"
        for work in found.works:
            blocks = self._blocks_of(job.rewrite.reading, work.planned)
            why = why_not_merged(blocks, takes_deletes=job.takes_deletes)
            if why is not None:
                path = join_path(work.planned.partition_path, work.planned.file_id)
                return f"has the file group {path}, which is left to compactions: {why}"
        return None

    def _opened(self, requested_time: str) -> _Opened | str:
        """What a stored plan stands for now; if it must not be carried out any more, the reason."""
        timeline, listing = open_snapshot(self.contents.store, self.table, self.metadata_table.settings)
        instant = self.pending(timeline, requested_time)
        plan = self.contents.compaction_plan(instant)
        latest = self._latest(timeline, listing, plan, instant)
        by_slice = self.table.format.log_naming.tells_slice
        why = why_outdated(plan, requested_time, timeline, latest, by_slice=by_slice)
        return _Opened(timeline, plan, _works(plan, latest)) if why is None else why

    def _valid(self, requested_time: str) -> _Opened:
        found = self._opened(requested_time)
        if isinstance(found, str):
            raise RefusedError(
                f"log compaction {requested_time} cannot be carried out any more: {found}; nothing was changed; "
                "hudi-py compact --logs withdraws its plan and makes a new one"
            )
        self._refuse_writers(requested_time, found.timeline)
        return found

    def _refuse_writers(self, requested_time: str, timeline: Timeline) -> None:
        """
        Raises:
            ConflictError: The log file of a pending write may come to lie before the merged block.
        """
        for instant in timeline.pending(*INGESTION):
            is_before = self.table.format.log_naming.tells_slice or instant.requested_time < requested_time
            if is_before and not self.contents.is_clustering(instant):
                raise ConflictError(
                    f"{instant} is pending, and its log file may come to lie before the merged block; try again when "
                    "it is completed, or roll it back with hudi-py recover if its process has ended"
                )

    def _latest(
        self, timeline: Timeline, listing: Listing, plan: CompactionPlan, instant: Instant
    ) -> dict[GroupKey, FileSlice]:
        context = load_context(timeline, self.contents)
        moved = self.job(instant, timeline, context.is_completed).reading.moved
        found: dict[GroupKey, FileSlice] = {}
        for path in sorted({each.partition_path or "" for each in plan.operations}):
            entries = listing.partition(path, details=True)
            view = build_partition(context, path, ((entry.name, entry.size_bytes) for entry in entries))
            found |= {(path, each.file_id): each for each in with_moved(latest_slices(context, view), moved)}
        return found

    def _job(self, instant: Instant, found: _Opened) -> LogCompactionJob:
        context = load_context(found.timeline, self.contents, with_clustering=False)
        tells_slice = self.table.format.log_naming.tells_slice
        return LogCompactionJob(
            rewrite=self.job(instant, found.timeline, context.is_completed),
            options=self.log_options,
            tells_slice=tells_slice,
            records_slice=tells_slice or self.has_change_logs,
            takes_deletes=self.table.format.reads_repeated_deletes,
        )

    def _refuse_changed(self, found: _Opened, ours: Instant, now: Timeline) -> None:
        """
        Under the lock: whatever came since the plan was opened must stand behind the merged blocks, or on other slices.

        Raises:
            ConflictError: It does not; this attempt is taken back by the next run.
        """
        known = frozenset(found.timeline.writes)
        new = [each for each in now.writes.without(ours) if each not in known]
        here = {(each.requested_time, each.comparable_action) for each in now.writes.completed()}
        first = now.first_not_savepointed
        for each in found.timeline.writes.completed():
            is_archived = first is not None and each.requested_time < first
            if (each.requested_time, each.comparable_action) not in here and not is_archived:
                raise ConflictError(f"{each} was rolled back while log files were merged; try again")
        for each in new:
            # In layout 1 log files are numbered in the order in which they came.
            if self.table.format.log_naming.tells_slice and each.action in INGESTION:
                raise ConflictError(
                    f"{each} began or completed while log files were merged; this log compaction was not completed, "
                    "run it again"
                )
        self._refuse_writers(ours.requested_time, now)
        if not new:
            return
        opened = self._opened(ours.requested_time)
        if isinstance(opened, str):
            raise ConflictError(f"{opened}; this log compaction was not completed, run it again")


@attrs.frozen
class _Opened:
    """A stored plan that can be carried out, the timeline of that moment, and the work that it stands for."""

    timeline: Timeline
    plan: CompactionPlan
    works: Sequence[MergeWork]


def _works(plan: CompactionPlan, latest: dict[GroupKey, FileSlice]) -> list[MergeWork]:
    works = []
    for operation in plan.operations:
        there = latest[operation.partition_path or "", operation.file_id or ""]
        planned = {path.rpartition("/")[2] for path in operation.delta_file_paths}
        logs = tuple(each for each in there.log_files if each.name in planned)
        works.append(MergeWork(planned=attrs.evolve(there, log_files=logs), there=there))
    return works

"""What compactions and log compactions have in common: who may begin, what is taken back, what tasks need to know."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import ClassVar, TypeVar

import attrs

from hudi_py.config.compaction import CompactionConfig
from hudi_py.config.table import TableConfig, TableType
from hudi_py.engine.base import Engine
from hudi_py.errors import ConfigError, ConflictError, RefusedError, UnsupportedTable
from hudi_py.formats.record_schema import parse_record_schema
from hudi_py.fsview.listing import Listing
from hudi_py.fsview.written_ranges import WrittenRanges
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.mdt.listing import open_snapshot
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import CommitMetadata, CompactionPlan
from hudi_py.rows.base_file import BaseFileOptions
from hudi_py.rows.column_ids import outdates_statistics
from hudi_py.rows.table_logs import table_log_reading
from hudi_py.rows.written import WrittenFile
from hudi_py.runtime.clock import MONOTONIC
from hudi_py.services.compaction.plan import Outlook
from hudi_py.services.rewriting.apart import refuse_other_tables
from hudi_py.services.rewriting.beside_undoing import refuse_beside_undoing
from hudi_py.services.rewriting.expected import Expected, expected, measured
from hudi_py.services.rewriting.left_pending import LeftPending, left_pending_if
from hudi_py.services.rewriting.named import not_pending
from hudi_py.services.rewriting.progress import OnGroup, reported
from hudi_py.services.rewriting.result import RewriteResult
from hudi_py.services.rewriting.tasks import COPIES, RewriteJob
from hudi_py.services.rollback.service import RollbackService
from hudi_py.storage.base import Storage
from hudi_py.timeline.completions import pending_targets
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.fence import take_down_fence
from hudi_py.timeline.row_schema import column_ids, moved_columns
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.attempt import Attempt, take_back
from hudi_py.txn.commit import Begun, Prepared, Requested

W = TypeVar("W")


@attrs.frozen(kw_only=True)
class MergingService:
    """
    Merges log files of one table.

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

    action: ClassVar[Action]
    word: ClassVar[str]  # for messages

    # --- planning -----------------------------------------------------------------------------------------------------
    def plan(self) -> Outlook:
        """
        Make a plan; nothing is written.

        Raises:
            ConfigError: The table is not merge-on-read, or a strategy does not fit its partitions.
            CorruptMetadata: A file that a slice needs is missing or damaged.
            UnsupportedTable: Log files are merged in a way that hudi_py does not know.
        """
        self.require_merge_on_read()
        return self._plan(*open_snapshot(self.contents.store, self.table, self.metadata_table.settings))

    @abstractmethod
    def _plan(self, timeline: Timeline, listing: Listing) -> Outlook:
        """Return what to do with the files of a snapshot; arguments and errors as for `plan`."""

    def schedule(self) -> Instant | None:
        """
        Make a plan and store it; None if nothing is due or left to merge.

        Raises:
            As `plan`. ConflictError: Another process changed the table meanwhile, or holds the lock.
        """
        return self._scheduled()[0]

    def _scheduled(self) -> tuple[Instant | None, Outlook]:
        self.require_merge_on_read()
        store = self.contents.store
        with store.lock.held(f"scheduling of a {self.word}"):
            # Without a lock, or with one that was lost while this process stood still, others write while the plan is
            # made. So what it is held against below is the timeline that it was made from, and no later one.
            before, listing = open_snapshot(store, self.table, self.metadata_table.settings)
            outlook = self._plan(before, listing)
            if not outlook.would_schedule:
                return None, outlook
            refuse_beside_undoing(before, self.contents, self.word)
            # Before the first file of the compaction: with an index that is not maintained nothing may begin.
            self.metadata_table.prepare(writes_data=True)
            # Its own metadata table goes first: Hudi rolls nothing back that is older than a compaction there
            # (rules/data-files 11.2).
            time = store.new_time(before, after=self.metadata_table.compact(before))
            requested = Prepared(store, self.action, time).request(outlook.plan)
            stays = partial(self._refuse_what_rests_on, requested.instant, plan=outlook.plan)
            with requested.withdrawn_if_refused(stays) as timeline:
                self.refuse_what_came_meanwhile(before, timeline, requested.instant)
            return requested.instant, outlook

    def _refuse_what_rests_on(self, instant: Instant, timeline: Timeline, plan: CompactionPlan | None = None) -> None:
        """
        Args:
            instant: The pending one, which is about to be withdrawn.
            timeline: The timeline now.
            plan: Its plan, where its file is removed already, and comes back only if this refuses.

        Raises:
            RefusedError: What others wrote relies on the plan, so that it has to stay; here, nothing does.
        """

    # --- carrying out -------------------------------------------------------------------------------------------------
    def expected(self, outlook: Outlook) -> Expected:
        """Return what carrying a plan out would write and how long it would take, as far as earlier ones tell."""
        earlier = measured(self.contents, self.contents.store.load(), self.action)
        return expected(earlier, files=len(outlook.plan.operations), bytes_read=outlook.bytes_to_read)

    def refuse_other_tables(self, listing: Listing, outlook: Outlook) -> None:
        """Check a plan that was made of a listing, see `hudi_py.services.rewriting.apart`."""
        paths = (operation.partition_path or "" for operation in outlook.plan.operations)
        refuse_other_tables(self.contents.store.storage, listing, paths, self.word)

    def take_back(self, requested_time: str) -> None:
        """
        Take back what an earlier attempt left (B-25).

        Raises:
            ConfigError: There is no such pending one.
            RefusedError: A restore is pending, or the attempt may be at work.
        """
        timeline = self.contents.store.load()
        found = self.pending(timeline, requested_time)
        for instant in timeline.pending(Action.RESTORE):
            raise RefusedError(f"{instant} is pending; finish it first with hudi-py recover")
        if found.state is State.INFLIGHT or requested_time in pending_targets(timeline, self.contents):
            take_back(self.contents.store, self.metadata_table.settings, requested_time, self.rollback.roll_back)

    @abstractmethod
    def why_not_served(self, timeline: Timeline, instant: Instant, plan: CompactionPlan) -> str | None:
        """
        Return why hudi_py does not carry a stored plan out, although it is valid; None if it does.

        Args:
            timeline: The timeline.
            instant: The pending instant.
            plan: Its plan.
        """

    def left_pending(self, timeline: Timeline) -> tuple[LeftPending, ...]:
        """
        Return the pending ones that a run does not carry out, although they are valid, oldest first.

        Args:
            timeline: The timeline.

        Raises:
            CorruptMetadata: A plan does not decode.
        """
        found = (self._left_pending(timeline, instant) for instant in timeline.pending(self.action))
        return tuple(each for each in found if each is not None)

    def refuse_left_pending(self, requested_time: str) -> None:
        """
        Raises:
            ConfigError: There is no such pending one.
            UnsupportedTable: It asks for more than hudi_py does, or log files are merged in a way that hudi_py does not
                know; nothing is changed.
        """
        self.refuse_unread_logs()
        timeline = self.contents.store.load()
        found = self._left_pending(timeline, self.pending(timeline, requested_time))
        if found is not None:
            raise UnsupportedTable(found.reason)

    def refuse_unread_logs(self) -> None:
        """
        Before anything is begun: nothing of such a table can be compacted.

        Raises:
            UnsupportedTable: Log files are merged in a way that hudi_py does not know.
        """
        text = self.schema_text(None)
        if text is not None:
            table_log_reading(self.table.properties, text, lambda _: True, self.contents.store.storage.root)

    def _left_pending(self, timeline: Timeline, instant: Instant) -> LeftPending | None:
        plan = self.contents.compaction_plan(instant)
        groups = frozenset((each.partition_path or "", each.file_id or "") for each in plan.operations)
        return left_pending_if(
            instant, groups, self.contents.store.storage, self.why_not_served(timeline, instant, plan)
        )

    def begin(self, requested_time: str, attempt: Attempt) -> Begun:
        """
        Make it inflight.

        Raises:
            ConflictError: Another process has just begun it.
        """
        store = self.contents.store
        with store.lock.held(f"{self.word} {requested_time}"):
            self.metadata_table.prepare(writes_data=True)
            requested = Requested(store, self.pending(store.load(), requested_time))
            # It was taken back to its plan a moment ago, so whoever began it again is at work.
            if requested.instant.state is not State.REQUESTED:
                raise ConflictError(f"another process has just begun {requested.instant}; try again when it is done")
            take_down_fence(store.storage, requested_time)
            return attempt.begin(requested)

    def pending(self, timeline: Timeline, requested_time: str) -> Instant:
        """
        Return the pending one with this time.

        Raises:
            ConfigError: There is none.
        """
        for instant in timeline.pending(self.action):
            if instant.requested_time == requested_time:
                return instant
        raise not_pending(self.contents.store.storage.root, self.word, requested_time, timeline)

    def job(self, instant: Instant, timeline: Timeline, counts: Callable[[str], bool]) -> RewriteJob:
        """
        Return what the tasks need to know.

        Args:
            instant: The pending instant.
            timeline: The timeline that the work was found with.
            counts: Whether the blocks of an instant count.

        Raises:
            RefusedError: Nothing says which columns the rows have.
            UnsupportedTable: Log files are merged in a way that hudi_py does not know.
        """
        text = self.schema_text(instant.requested_time)
        storage = self.contents.store.storage
        if text is None:
            raise RefusedError(f"{storage.root}: no commit and no file says which columns the rows have")
        schema = parse_record_schema(text)
        reading = table_log_reading(self.table.properties, text, counts, storage.root)
        # The compaction of 0.15 merges every row of a key, although its reader merges the first one only.
        reading = attrs.evolve(reading, meets_copies=reading.rules.deletes_reset)
        at = instant.requested_time
        has_ids = column_ids(self.contents, timeline, at) is not None
        reading = reading.by_ids(moved_columns(self.contents, timeline, at), has_ids=has_ids)
        is_widened = outdates_statistics(self.contents, timeline)
        return RewriteJob(
            storage=storage,
            instant_time=instant.requested_time,
            word=self.word,
            schema=schema,
            avro_schema=text,
            options=attrs.evolve(
                self.options, ranged=self.metadata_table.columns_to_range(timeline, schema, is_widened=is_widened)
            ),
            reading=attrs.evolve(
                reading,
                written=WrittenRanges(self.contents, timeline),
                memory_bytes=max(1, self.config.memory_bytes // (COPIES * self._threads)),
                spill_folder=self.config.spill_folder,
            ),
        )

    @property
    def _threads(self) -> int:
        """Threads of this process that write files; on Spark, each task is alone in its process."""
        return 1 if self.engine.name == "spark" else max(1, self.engine.slots // 2)  # the work is the processor's

    def write(
        self, requested_time: str, works: Sequence[W], task: Callable[[W], WrittenFile], storage: Storage
    ) -> list[WrittenFile]:
        """
        Write the new file of each file group; the first error ends the run.

        Args:
            requested_time: Of the compaction.
            works: One for each group.
            task: Carries one out, on a thread or an executor.
            storage: As the tasks use it.
        """
        engine = self.engine
        if engine.name == "spark":  # are its executors fit for the table?
            engine = engine.prepared(storage, len(works))
        counted = reported(task, len(works), self.on_group, engine)
        parallelism = engine.slots if engine.name == "spark" else self._threads
        return list(engine.map(counted, works, parallelism=parallelism, description=f"{self.word} {requested_time}"))

    @staticmethod
    def result(
        requested_time: str,
        metadata: CommitMetadata,
        written: Sequence[WrittenFile],
        *,
        bytes_before: int,
        started: float,
    ) -> RewriteResult:
        """Return what was done: *written* are the new files, *started* is a moment of the monotonic clock."""
        return RewriteResult(
            instant=requested_time,
            metadata=metadata,
            file_groups=len(written),
            rows=sum(each.stat.num_writes for each in written),
            bytes_before=bytes_before,
            bytes_after=sum(each.stat.file_size_in_bytes for each in written),
            seconds=MONOTONIC() - started,
        )

    def refuse_what_came_meanwhile(self, before: Timeline, now: Timeline, ours: Instant) -> None:
        """
        Without a lock, other processes may have begun something since the plan was made.

        Raises:
            RefusedError: Something that the plan does not know.
        """
        known = set(before.instants)
        for instant in now.without(ours):
            # A savepoint keeps files, and a compaction deletes none.
            if instant not in known and instant.action is not Action.SAVEPOINT:
                raise RefusedError(f"{instant} began or completed while the {self.word} was planned")

    def require_merge_on_read(self) -> None:
        """
        Raises:
            ConfigError: The table has no log files.
        """
        if self.table.table_type is not TableType.MERGE_ON_READ:
            raise ConfigError(
                f"{self.contents.store.storage.root} is a COPY_ON_WRITE table: it has no log files to compact; small "
                "files are joined by clustering"
            )

"""
A write on the timeline: requested, inflight, data files with markers, completed.

After a crash before the completed file is written, nothing is visible, and the next write rolls back the files that
markers name. After a crash later, the write is committed, and markers that are left are harmless. Source:
rules/table-services G-1 to G-4; Hudi ``BaseHoodieWriteClient.commitStats``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import attrs

from hudi_py.config.concurrency import concurrency_of, shows_its_pulse
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig, TableType
from hudi_py.errors import ConflictError, HudiError, OutcomeUnknown, RefusedError, StorageError
from hudi_py.fsview.loader import load_undoing
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.mdt.lost_writes import refuse_lost_writes
from hudi_py.model.instant import Action, Instant
from hudi_py.model.records import CommitMetadata, RollbackMetadata, WriteStat
from hudi_py.runtime.log import log
from hudi_py.services.recovery.failed_writes import FailedWrites
from hudi_py.services.rollback.service import RollbackService
from hudi_py.timeline.column_folder import keep_history
from hudi_py.timeline.fence import put_up_fence
from hudi_py.timeline.heartbeat import Heart, Rhythm, delete_heartbeat
from hudi_py.timeline.markers import delete_markers, delete_unnamed, read_markers
from hudi_py.timeline.properties_file import recover_properties
from hudi_py.timeline.store import TimelineStore
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.beginners import Beginners, ready_after
from hudi_py.txn.commit import Begun, Prepared
from hudi_py.writing.replacing import Beginning, beginning_of

if TYPE_CHECKING:
    from typing_extensions import Self

    from hudi_py.mdt.kept_keys import TrackedKeys
    from hudi_py.mdt.kept_statistics import Ranges
    from hudi_py.timeline.contents import Contents

    Settle: TypeAlias = Callable[[Timeline, Instant, CommitMetadata], Mapping[str, str]]
    """Checks under the lock that the write may complete, and returns entries of the metadata that depend on it."""


def _settled(_timeline: Timeline, _instant: Instant, _metadata: CommitMetadata) -> Mapping[str, str]:
    return {}


@attrs.define(kw_only=True)
class WriteTransaction:
    """
    A write that has begun.

    Args:
        contents: Contents of the table's timeline.
        table: Configuration of the table.
        metadata_table: Updated with the commit before it completes.
        begun: The inflight instant of the write.
        rolled_back: Failed writes that were rolled back before this one began.
        heart: Writes heartbeats while the write runs; with several writers, or the failed-writes policy LAZY.
        beginners: Other writers that are waited for before the write completes; None if none is expected.
        is_sent: Whether the completed file was sent: before that, no answer that was lost leaves the commit in doubt.
        is_completed: Whether the completed file is there, so that only the clean-up is owed.

    As a context manager it stops the heartbeat at the end. A write that fails leaves its last heartbeat, as in Hudi;
    when that has expired, other writers roll the write back.
    """

    contents: Contents
    table: TableConfig
    metadata_table: MetadataTableKeeper
    begun: Begun
    rolled_back: tuple[RollbackMetadata, ...] = ()
    heart: Heart | None = None
    beginners: Beginners | None = None
    is_sent: bool = False
    is_completed: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.heart is not None:
            self.heart.stop()

    @property
    def instant_time(self) -> str:
        """Requested time of the write, which its data files and rows contain."""
        return self.begun.instant.requested_time

    def commit(
        self,
        stats: Iterable[WriteStat],
        *,
        operation: str,
        extra_metadata: Mapping[str, str],
        replaced: Mapping[str, tuple[str, ...]] | None = None,
        ranges: Ranges | None = None,
        settle: Settle = _settled,
        history: bytes | None = None,
        tracked: TrackedKeys | None = None,
    ) -> CommitMetadata:
        """
        Complete the write, which makes it visible.

        Files that have a marker but no write stat were left by retried tasks. They are deleted first (G-3), because
        they would become visible with the commit. Before that, a fence is created, so that tasks that are still running
        notice that the write is over, and delete their files.

        Args:
            stats: Statistics of all files that the write created.
            operation: Operation of the write, as in commit metadata.
            extra_metadata: Further entries of the commit metadata, among them ``schema``.
            replaced: Partition path to ids of replaced file groups; None unless the write is a replacecommit.
            ranges: Path of a base or log file to the ranges of its columns, for the statistics of the metadata table.
            settle: Called under the lock with the current timeline, before anything is recorded; raises if another
                writer is in the way, and returns further entries of the metadata.
            history: The history of the table's columns, for the folder of that name; None without schema on read.
            tracked: Path of a file to the keys that came and went, for its record index.

        Raises:
            ConflictError: Another process rolled this write back or completed it, or may have done so because our
                heartbeat was interrupted; or it holds the table's lock; or *settle* found a conflict.
            OutcomeUnknown: The completed file was sent and may appear yet.
        """
        # Twice, here and under the lock: if our heartbeat expired, another process may be deleting our files already.
        self._check_heart()
        store = self.contents.store
        by_partition: dict[str, list[WriteStat]] = {}
        for stat in stats:
            by_partition.setdefault(stat.partition_path or "", []).append(stat)
        metadata = CommitMetadata(
            partition_to_write_stats={partition: tuple(written) for partition, written in by_partition.items()},
            extra_metadata=dict(extra_metadata),
            operation_type=operation,
            partition_to_replace_file_ids=replaced,
        )
        # Before the lock is taken: late tasks see it at once, and waiting for the lock may take long.
        put_up_fence(store.storage, self.instant_time)
        with ready_after(self.beginners, self.begun) as ready:
            entries = settle(ready.timeline, self.begun.instant, metadata)
            metadata = attrs.evolve(metadata, extra_metadata={**extra_metadata, **entries})
            delete_unnamed(
                store.storage,
                read_markers(store.storage, self.instant_time) or frozenset(),
                {
                    path
                    for written in by_partition.values()
                    for stat in written
                    for path in (stat.path, *(stat.cdc_stats or ()))
                },
            )
            if history is not None:  # before the completed file, because readers of its files ask for it
                keep_history(store, ready.timeline, self.instant_time, history)
            # The metadata table before the completed file: what it lacks would be missing for readers that list through
            # it.
            recorded = ready.record(
                partial(self.metadata_table.record_commit, metadata=metadata, ranges=ranges, tracked=tracked)
            )
            self._check_heart()
            self.is_sent = True
            recorded.publish(metadata)
            self.is_completed = True
            # Only after the commit point: until then a rollback needs the markers to find the files.
            delete_markers(store.storage, self.instant_time)
            self._end_heart()
        log.info("commit.completed", instant=self.instant_time, files_written=sum(map(len, by_partition.values())))
        return metadata

    def refuse_undoing(self, timeline: Timeline) -> None:
        """
        Abandon the write if another process is undoing commits that it would build on.

        A rollback or restore looks for pending writes after its own first file was created, and this looks for
        rollbacks and restores after that of the write. So without a lock at least one of them notices the other.

        Args:
            timeline: Loaded after the write began; what the write builds on is taken from it.

        Raises:
            ConflictError: A completed commit is being undone; the write is abandoned.
        """
        undoing = load_undoing(timeline, self.contents)
        if undoing:
            self.abandon()
            time, by = next(iter(undoing.items()))
            raise ConflictError(
                f"{by.action.value} {by.time} of another process is undoing the commit {time}; nothing was written; "
                "try again when it is done, or finish it with hudi-py recover if its process has ended"
            )

    def refuse_overtaken(self, timeline: Timeline) -> None:
        """
        Abandon the write if it would build on a commit that was requested later.

        That commit had its turn between our request and our look. Whatever goes by requested times would take ours for
        the older one: in an index of keys, the later record of a key counts, so a row that the other deleted and ours
        brings back would not be found.

        Args:
            timeline: As for `refuse_undoing`.

        Raises:
            ConflictError: There is one; the write is abandoned, and the next attempt gets a later time.
        """
        last = max((each.requested_time for each in timeline.committed), default="")
        if last > self.instant_time:
            self.abandon()
            raise ConflictError(
                f"{self.contents.store.storage.root}: commit {last} of another process was requested behind this write "
                f"({self.instant_time}) and completed before it looked at the table; nothing was written; write again"
            )

    def abandon(self) -> None:
        """Delete the requested and inflight instant of a write that has written nothing."""
        # The heartbeat last: while it beats, no other process takes the half-removed write for a failed one.
        self.begun.remove()
        delete_markers(self.contents.store.storage, self.instant_time)
        self._end_heart()

    def abandon_untouched(self) -> None:
        """
        As `abandon`, after rows were refused, if no task has announced a file; otherwise the write is rolled back.

        A task that is still running, though Spark gave it up, finds the fence and deletes the files that it writes.
        """
        storage = self.contents.store.storage
        # The fence before the markers are read: a task that announces a file later finds the fence.
        put_up_fence(storage, self.instant_time)
        if read_markers(storage, self.instant_time) is None:
            self.abandon()
        else:
            self.give_up()

    def give_up(self) -> None:
        """
        Roll back this write after a conflict: nothing of it is visible, and its files no longer hinder other writers.

        A completed write is never rolled back. What cannot be rolled back now is left, and its last heartbeat expires,
        so that a clean rolls it back.
        """
        self.__exit__()
        time = self.instant_time
        service = RollbackService(contents=self.contents, table=self.table, metadata_table=self.metadata_table)
        try:
            self._end_heart()
            service.run(only={time})
        except HudiError as error:
            log.warning("write.left", instant=time, why=str(error))

    def _check_heart(self) -> None:
        if self.heart is not None:
            self.heart.check()

    def _end_heart(self) -> None:
        if self.heart is not None:
            # Without an instant nobody would ever end this heartbeat.
            self.heart.stop()
            delete_heartbeat(self.contents.store.storage, self.instant_time)


@contextmanager
def _nothing_written(root: str) -> Iterator[None]:
    """Whether a lock, a time or an empty file of an instant has come about says nothing about rows: there are none."""
    try:
        yield
    except OutcomeUnknown as error:
        raise StorageError(f"{root}: the write was not begun: {error}; nothing was written, try again", True) from error


def begin_write(
    contents: Contents,
    table: TableConfig,
    settings: Settings,
    metadata_table: MetadataTableKeeper,
    operation: str = "UPSERT",
) -> WriteTransaction:
    """
    Begin a commit: recover the properties, roll back failed writes, create requested and inflight (G-1, G-2).

    Failed writes are rolled back before the new instant time is chosen, as in Hudi 1.1. All other steps are done under
    the table's lock. With several writers, or the failed-writes policy LAZY, the write has a heartbeat, which starts
    before its requested instant and ends after its completed one (B-5).

    Raises:
        ConfigError: The settings for several writers contradict each other; nothing is written.
        RefusedError: A restore is pending, or the rows would be missing from an index that is not maintained.
        ConflictError: Another process is writing to the table.
        CorruptMetadata: The completed file of a completed write is missing, so that the write would be rolled back.
        StorageError: The storage refused; or it did not say what became of a request, which then was none for rows.
    """
    concurrency_of(settings)
    with _nothing_written(contents.store.storage.root):
        return _begin_write(contents, table, settings, metadata_table, operation)


def _begin_write(
    contents: Contents, table: TableConfig, settings: Settings, metadata_table: MetadataTableKeeper, operation: str
) -> WriteTransaction:
    store = contents.store
    with store.lock.held("write"):
        recover_properties(store.storage)
        timeline = store.load()
        restores = timeline.pending(Action.RESTORE)
        if restores:
            raise RefusedError(f"{restores[0]} is pending: finish the restore first, no commit can start before")
        # First, because `prepare` may delete the metadata table, whose records show which write was lost.
        refuse_lost_writes(timeline, contents, table)
        metadata_table.prepare(writes_data=True)
    failed = FailedWrites(contents=contents, table=table, settings=settings, metadata_table=metadata_table)
    rolled_back = failed.before_write(timeline)
    heart = Heart(store.storage, store.clock, Rhythm.of(settings)) if shows_its_pulse(settings) else None
    try:
        with store.lock.held("write"):
            if rolled_back:
                metadata_table.prepare(writes_data=True)  # again: a pending write may have prevented parts of it
            if rolled_back or store.lock.is_used:  # between the two holds another process may have committed
                timeline = store.load()
            # The record of this commit has to come after that compaction in the metadata table.
            time = store.new_time(timeline, after=metadata_table.compact(timeline))
            if heart is not None:
                # Before the requested instant: a pending write without a heartbeat counts as dead.
                heart.start(time)
            is_mor = table.table_type is TableType.MERGE_ON_READ
            begun = _begun(store, time, beginning_of(operation, table.format, is_merge_on_read=is_mor))
        return WriteTransaction(
            contents=contents,
            table=table,
            metadata_table=metadata_table,
            begun=begun,
            rolled_back=tuple(rolled_back),
            heart=heart,
            beginners=Beginners.of(settings),
        )
    except BaseException as error:
        # Also if only the lock could not be released: a heart that beats on makes others wait as long as this process
        # lives.
        if heart is not None:
            heart.stop()
            # After a conflict the instant may be that of another process, whose heartbeat has the same name.
            if not isinstance(error, ConflictError):
                heart.forget()
        raise


def _begun(store: TimelineStore, time: str, beginning: Beginning) -> Begun:
    """Create the requested and then the inflight instant."""
    requested = Prepared(store, beginning.action, time).request(beginning.requested)
    try:
        return requested.begin(beginning.inflight)
    except ConflictError:
        raise ConflictError(f"{requested.instant}: another process uses the same instant time; try again") from None

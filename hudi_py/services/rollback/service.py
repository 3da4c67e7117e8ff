"""
Rolling back failed writes of copy-on-write tables.

What a crash leaves, step by step, and what the next call makes of it:

1. only ``.rollback.requested`` or also ``.rollback.inflight``: carried out again from the stored plan;
2. some files gone: the same, a file that is gone is no error;
3. the failed write's inflight and requested files gone, the rollback not completed: the same, without them;
4. completed: nothing is owed but marker folders, which the next call removes.

Source: format/table-services B.2 to B.4; Hudi ``BaseRollbackActionExecutor``.
"""

from __future__ import annotations

import os

import attrs

from hudi_py.config.table import TableConfig, TableType
from hudi_py.errors import (
    ConflictError,
    CorruptMetadata,
    NotFound,
    RefusedError,
    StorageError,
    UnsupportedTable,
)
from hudi_py.formats import records_codec as codec
from hudi_py.fsview.listing import walk_partitions
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.model.files import join_path
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import (
    InstantInfo,
    RollbackMetadata,
    RollbackPartitionMetadata,
    RollbackPlan,
    RollbackRequest,
)
from hudi_py.runtime.log import log
from hudi_py.services.rollback.plan import belongs_to, failed_writes, rollback_plan
from hudi_py.storage.base import StorageFailure
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.fence import put_up_fence
from hudi_py.timeline.markers import delete_markers, instants_with_markers, read_markers
from hudi_py.timeline.timeline import Timeline

_WRITE_ACTIONS = frozenset(action.value for action in (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT))


@attrs.frozen(kw_only=True)
class RollbackService:
    """
    Rolls back failed writes of one table.

    Args:
        contents: The table's timeline.
        table: Its settings.
        metadata_table: What to do about the table's metadata table before our first instant.
    """

    contents: Contents
    table: TableConfig
    metadata_table: MetadataTableKeeper

    def run(self) -> list[RollbackMetadata]:
        """
        Finish pending rollbacks and roll back every failed write, newest first.

        Raises:
            UnsupportedTable: A failed write of a merge-on-read table: its log files are not served yet.
            CorruptMetadata: A marker names what is no file of its write; nothing was deleted.
            ConflictError: Another process rolls back the same write.
            RefusedError: A stored plan names other files than those of the failed write.
        """
        timeline = self.contents.store.load()
        self._sweep_markers(timeline)
        pending = timeline.pending(Action.ROLLBACK)
        failed = failed_writes(timeline, self.table.table_type, clusterings=self._clusterings(timeline))
        if not pending and not failed:
            return []
        if self.table.table_type is not TableType.COPY_ON_WRITE:
            raise UnsupportedTable(
                f"{self.contents.store.storage.root} is a MERGE_ON_READ table with failed writes "
                f"({', '.join(map(str, failed or pending))}); let Apache Hudi roll them back"
            )
        self.metadata_table.prepare(writes_data=False)
        results = []
        done: set[str] = set()
        for instant in reversed(pending):
            plan = self._stored_plan(instant)
            if plan is None or plan.instant_to_rollback is None or not self._is_ours(timeline, plan):
                continue
            done.add(plan.instant_to_rollback.requested_time)
            results.append(self._execute(instant, plan, plan.instant_to_rollback))
        results += [self._roll_back(instant) for instant in failed if instant.requested_time not in done]
        return results

    def _sweep_markers(self, timeline: Timeline) -> None:
        """Remove marker folders that a crash left: those of completed instants and of writes rolled back since."""
        storage = self.contents.store.storage
        unknown = []
        for time in instants_with_markers(storage):
            found = [instant for instant in timeline if instant.requested_time == time]
            if any(instant.is_completed for instant in found):
                delete_markers(storage, time)
            elif not found:
                unknown.append(time)
        if unknown:
            undone = {
                time
                for instant in timeline.completed(Action.ROLLBACK)
                for time in self.contents.rollback(instant).commits_rollback
            }
            for time in sorted(undone.intersection(unknown)):
                delete_markers(storage, time)

    def _clusterings(self, timeline: Timeline) -> frozenset[str]:
        return frozenset(
            instant.requested_time
            for instant in timeline.pending(Action.REPLACE_COMMIT)
            if self.contents.is_clustering(instant)
        )

    def _stored_plan(self, instant: Instant) -> RollbackPlan | None:
        """
        The pending rollback's plan, or None when it cannot be read (rule B-7).

        An unreadable plan that was only requested is removed: nothing was done by it, and a new one is made of what the
        failed write left. Once inflight it stays as it is, for whoever looks into it, and a new one is made all the
        same; without a plan nothing else could ever be written to the table.
        """
        try:
            return self.contents.rollback_plan(instant)
        except (CorruptMetadata, NotFound) as error:
            log.warning("rollback.plan.unreadable", instant=instant.requested_time, why=str(error))
            if instant.state is State.REQUESTED:
                self.contents.store.remove(instant)
            return None

    def _is_ours(self, timeline: Timeline, plan: RollbackPlan) -> bool:
        """Whether the plan undoes a write: a compaction or clustering is run again by its own service (rule B-7)."""
        target = plan.instant_to_rollback
        if target is None or target.action not in _WRITE_ACTIONS:
            return False
        found = timeline.find(target.requested_time, Action(target.action))
        return found is None or found.action in (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)

    def _roll_back(self, failed: Instant) -> RollbackMetadata:
        store = self.contents.store
        target = InstantInfo(failed.requested_time, failed.comparable_action.value)
        plan = rollback_plan(failed, self._files_of(failed), store.storage.root)
        instant = store.request(Action.ROLLBACK, store.new_time(), codec.encode_rollback_plan(plan, os.urandom(16)))
        return self._execute(instant, plan, target)

    def _files_of(self, failed: Instant) -> set[tuple[str, str]]:
        """
        What the failed write created: by its markers, by listing where it has none.

        A marker folder that is gone does not prove that there are no files (K-25), so then every partition is listed.
        A write that was only requested has written nothing (rule B-12).
        """
        store = self.contents.store
        if failed.state is State.REQUESTED:
            return set()
        markers = read_markers(store.storage, failed.requested_time)
        if markers is not None:
            foreign = [m for m in markers if not belongs_to(m.file_name, failed.requested_time)]
            if foreign:
                raise CorruptMetadata(
                    f"{store.storage.root}: a marker of {failed} names {foreign[0].path}, which is not a base file "
                    "of that write; nothing was deleted"
                )
            return {(marker.partition_path, marker.file_name) for marker in markers}
        return {
            (partition, entry.name)
            for partition, entries in walk_partitions(store.storage)
            for entry in entries
            if belongs_to(entry.name, failed.requested_time)
        }

    def _execute(self, instant: Instant, plan: RollbackPlan, target: InstantInfo) -> RollbackMetadata:
        store = self.contents.store
        started = store.clock.now()
        self._check_target(target)
        if instant.state is State.REQUESTED:
            instant = store.transition(instant, b"")
        put_up_fence(store.storage, target.requested_time)
        partitions = self._delete(plan, target.requested_time)
        metadata = RollbackMetadata(
            start_rollback_time=instant.requested_time,
            time_taken_ms=max(0, int((store.clock.now() - started).total_seconds() * 1000)),
            total_files_deleted=sum(len(each.success_delete_files) for each in partitions.values()),
            commits_rollback=(target.requested_time,),
            partitions=partitions,
            instants_rollback=(target,),
        )
        after = self.metadata_table.record_rollback(store.load(), target.requested_time, instant, metadata)
        for state in (State.INFLIGHT, State.REQUESTED):  # the rule's order: B-22
            store.remove(Instant(target.requested_time, Action(target.action), state))
        try:
            store.complete(instant, codec.encode_rollback_metadata(metadata, os.urandom(16)), after=after)
        except ConflictError:  # another process finished the same plan: its record stands
            log.warning("rollback.superseded", instant=instant.requested_time)
        delete_markers(store.storage, target.requested_time)
        delete_markers(store.storage, instant.requested_time)
        log.info("rollback.completed", instant=instant.requested_time, rolled_back=target.requested_time)
        return metadata

    def _check_target(self, target: InstantInfo) -> None:
        """Rolling back a completed write is not this service's business: its rows are visible."""
        found = self.contents.store.load().find(target.requested_time, Action(target.action))
        if found is not None and found.is_completed:
            raise RefusedError(
                f"rollback of {target.action} {target.requested_time} refused: it is completed; nothing was deleted"
            )

    def _delete(self, plan: RollbackPlan, failed_time: str) -> dict[str, RollbackPartitionMetadata]:
        """Delete the plan's files; those gone already count as deleted (rule B-19)."""
        storage = self.contents.store.storage
        by_partition: dict[str, list[str]] = {}
        for request in plan.rollback_requests:
            by_partition.setdefault(request.partition_path, []).extend(self._paths(request, failed_time))
        result = {}
        for partition, paths in by_partition.items():
            outcomes = storage.delete_many(paths)
            failed = [(path, each) for path, each in outcomes.items() if isinstance(each, StorageFailure)]
            if failed:
                path, why = failed[0]
                raise StorageError(
                    f"rollback of {failed_time}: {storage.root}/{path} could not be deleted: {why.message}; the "
                    "rollback stays inflight, correct the access and try again",
                    why.retryable,
                )
            result[partition] = RollbackPartitionMetadata(
                partition_path=partition, success_delete_files=tuple(f"{storage.root}/{path}" for path in paths)
            )
        return result

    def _paths(self, request: RollbackRequest, failed_time: str) -> list[str]:
        if request.log_blocks_to_be_deleted:
            raise UnsupportedTable("the rollback plan appends rollback blocks to log files; let Apache Hudi finish it")
        names = [path.rpartition("/")[2] for path in request.files_to_be_deleted]
        strange = [name for name in names if not belongs_to(name, failed_time)]
        if strange:
            raise RefusedError(
                f"the rollback plan of {failed_time} names {strange[0]}, not a file of it; nothing was deleted"
            )
        return [join_path(request.partition_path, name) for name in names]

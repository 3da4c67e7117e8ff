"""
Carries out a stored rollback plan.

What a crash leaves after each step, and what the next call does:

1. only ``.rollback.requested`` or also ``.rollback.inflight``: the rollback is carried out again, from the stored plan
   and from the markers that tasks of the write have created since;
2. a completed target is inflight again: readers do not see it, its files still exist; the same;
3. some files are deleted, some rollback blocks are written: the same; a deleted file is not an error, a written block
   is found by its marker;
4. the target's inflight and requested files are deleted, the rollback is not completed: the same, without them;
5. the rollback is completed: only marker folders are left, which archival removes.

Source: rules/table-services B.4; Hudi ``BaseRollbackActionExecutor``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import attrs

from hudi_py.errors import ConflictError, RefusedError, StorageError
from hudi_py.fsview.listing import other_tables
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.model.files import join_path, parse_log_file
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import (
    InstantInfo,
    RollbackMetadata,
    RollbackPartitionMetadata,
    RollbackPlan,
    RollbackRequest,
)
from hudi_py.runtime.log import log
from hudi_py.services.rollback.leftovers import Leftovers, refuse_barred
from hudi_py.services.rollback.log_files import AppendedBlocks, RollbackBlocks
from hudi_py.services.rollback.plan import (
    RUN_AGAIN,
    BlocksToUndo,
    Written,
    belongs_to,
    blocks_to_undo,
    rollback_plan,
)
from hudi_py.storage.base import StorageFailure
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.fence import put_up_fence
from hudi_py.timeline.markers import delete_markers
from hudi_py.txn.commit import Begun, Record, Requested


@attrs.frozen(kw_only=True)
class RollbackExecutor:
    """
    Args:
        contents: The table's timeline.
        metadata_table: Undoes the same write.
    """

    contents: Contents
    metadata_table: MetadataTableKeeper

    def execute(
        self, instant: Instant, plan: RollbackPlan, target: InstantInfo, *, publish: bool = True
    ) -> RollbackMetadata:
        """
        Carry out one pending rollback.

        Args:
            instant: The rollback, requested or inflight.
            plan: Its stored plan.
            target: What the plan undoes.
            publish: False within a restore: the rollback stays inflight, and the restore's record replaces its own.

        Raises:
            RefusedError: The plan names other files than those of the write, or files behind a symbolic link; nothing
                was deleted.
            StorageError: A file could not be deleted; the rollback stays inflight.
            CorruptMetadata: The target is visible, and a lease does not decode; nothing was deleted.
        """
        store = self.contents.store
        started = store.clock.now()
        on_top = Action(target.action) is not Action.COMPACTION or not publish
        paths = _paths_by_partition(plan, target, logs=on_top)
        # Everything that can refuse comes before the first change.
        blocks = blocks_to_undo(plan, target.requested_time, store.config.format.log_naming)
        refuse_barred(store.storage, {*paths, *(block.partition_path for block in blocks)}, target.requested_time)
        found = store.load().find(target.requested_time, Action(target.action))
        # Here for all ways: a stored plan, also of Apache Hudi, or one of a restore that is continued.
        if found is not None and found.is_completed:
            store.deletion.permit(f"rollback of {found}")
            store.leases.in_force()  # raises if one does not decode: it may be of a reader of these rows
        begun = _begun(Requested(store, instant))
        # Asked before the target is reopened: afterwards it is not a completed one any more.
        keeps_plan = self._keeps_plan(found, target, publish=publish)
        if not keeps_plan:  # a service that is run again writes files under the same time, so it gets no fence
            put_up_fence(store.storage, target.requested_time)
            blocks = self._with_late_files(paths, blocks, target, logs=on_top)
        blocks = self._without_others(paths, blocks, target)
        # First out of sight, then deleted: a reader must not see a completed commit without its files.
        if found is not None and found.is_completed:
            store.reopen(found)
        # The restore has continued since, and base files below its log files may be deleted.
        is_done = found is None and not publish
        deleted = self._full(paths) if is_done else self._delete(paths, target.requested_time)
        writer = RollbackBlocks(store.storage, instant.requested_time, target.requested_time)
        appended = writer.append(blocks, lambda: self._is_over(instant), look_only=is_done)
        partitions = self._partitions(deleted, appended)
        metadata = RollbackMetadata(
            start_rollback_time=instant.requested_time,
            time_taken_ms=max(0, int((store.clock.now() - started).total_seconds() * 1000)),
            total_files_deleted=sum(len(partition.success_delete_files) for partition in partitions.values()),
            commits_rollback=(target.requested_time,),
            partitions=partitions,
            instants_rollback=(target,),
        )
        if is_done:
            return metadata
        # Within a restore one record is written for all rollbacks at its end (rule B-31).
        if publish:
            foreign = _log_names(paths) if store.config.format.log_naming.tells_slice else {}
            record = partial(self.metadata_table.record_rollback, metadata=metadata, deleted_of_others=foreign)
            self._complete(begun, metadata, record, lambda: self._remove_target(found, keeps_plan=keeps_plan))
        else:
            with store.lock.held(f"rollback {instant.requested_time}"):
                self.metadata_table.forget(target.requested_time)
                self._remove_target(found, keeps_plan=keeps_plan)
        delete_markers(store.storage, target.requested_time)
        if publish:  # within a restore the plan may be carried out again, and markers show which blocks are written
            delete_markers(store.storage, instant.requested_time)
        log.info("rollback.executed", instant=instant.requested_time, rolled_back=target.requested_time)
        return metadata

    def _is_over(self, instant: Instant) -> bool:
        """Whether another process has completed the rollback, or the restore that it belongs to."""
        now = self.contents.store.load().find(instant.requested_time, Action.ROLLBACK)
        return now is None or now.is_completed

    def _keeps_plan(self, found: Instant | None, target: InstantInfo, *, publish: bool) -> bool:
        """
        Whether the target's requested file stays.

        The plan of a pending compaction or clustering can be carried out again (rule B-25), and so can that of a
        completed clustering, because nothing came after it. The plan of a completed compaction, which rollbacks call a
        commit, is deleted as in Hudi. A restore also undoes the writes that the plan was made for, so it is deleted.
        """
        if found is None or not publish:
            return False
        if Action(target.action) in RUN_AGAIN:
            return True
        files = self.contents.store.files_of(found)
        return any(file.action is Action.CLUSTERING for file in files) or self.contents.is_clustering(found)

    def _with_late_files(
        self, paths: dict[str, list[str]], blocks: tuple[BlocksToUndo, ...], target: InstantInfo, *, logs: bool
    ) -> tuple[BlocksToUndo, ...]:
        """
        Add files that tasks announced by markers after the plan was made and before the fence stopped them.

        Left behind, they would be of no instant: once the timeline begins later, their rows would count as completed.

        Returns:
            The slices that get a rollback block, with those of late log files.
        """
        store = self.contents.store
        late = Leftovers(self.contents).announced(target.requested_time, logs=logs)
        for partition, name in sorted(late.own):
            path = join_path(partition, name)
            if path not in paths.setdefault(partition, []):
                log.info("rollback.late_file", rolled_back=target.requested_time, path=path)
                paths[partition].append(path)
        added = rollback_plan(target, Written(appended=late.appended), store.storage.root)
        found = {(each.partition_path, each.slice_key): each for each in blocks}
        for each in blocks_to_undo(added, target.requested_time, store.config.format.log_naming):
            key = (each.partition_path, each.slice_key)
            known = found.get(key)
            names = each.log_names if known is None else known.log_names | each.log_names
            found[key] = attrs.evolve(each, log_names=names)
        return tuple(found.values())

    def _without_others(
        self, paths: dict[str, list[str]], blocks: tuple[BlocksToUndo, ...], target: InstantInfo
    ) -> tuple[BlocksToUndo, ...]:
        """
        Take out files of other tables below this one, which plans of Apache Hudi name.

        It looks for the time of the write in every folder, and a copy of the table that lies below it has the same
        times.

        Returns:
            The slices that get a rollback block, without those of other tables.
        """
        others = other_tables(self.contents.store.storage, {*paths, *(block.partition_path for block in blocks)})
        for path, folder in sorted(others.items()):
            spared = len(paths.pop(path, ()))
            why = f"they are of another table: {folder} has a .hoodie of its own"
            log.warning("rollback.spared", instant=target.requested_time, partition=path, files=spared, why=why)
        return tuple(block for block in blocks if block.partition_path not in others)

    def _remove_target(self, found: Instant | None, *, keeps_plan: bool) -> None:
        """Delete its inflight file, then the requested one (rule B-22): never an inflight file without a request."""
        if found is None:
            return
        store = self.contents.store
        store.lock.check()
        for each in sorted(store.files_of(found), key=lambda i: i.state, reverse=True):
            if each.is_pending and not (keeps_plan and each.state is State.REQUESTED):
                store.remove(each)

    def _complete(
        self, begun: Begun, metadata: RollbackMetadata, record: Record, remove_target: Callable[[], None]
    ) -> None:
        """Update the metadata table, remove the target from the timeline, complete the rollback (rule B-22)."""
        instant = begun.instant
        try:
            with begun.ready() as ready:
                recorded = ready.record(record)
                remove_target()
                recorded.publish(metadata)
        except ConflictError:
            done = begun.store.load().find(instant.requested_time, Action.ROLLBACK)
            if done is not None and done.is_pending:
                raise
            # another process has finished the same plan
            log.warning("rollback.superseded", instant=instant.requested_time)

    def _delete(self, paths: dict[str, list[str]], failed_time: str) -> dict[str, tuple[str, ...]]:
        """Delete the plan's files; missing ones count as deleted (rule B-19). Partition path to full paths."""
        storage = self.contents.store.storage
        for names in paths.values():
            outcomes = storage.delete_many(names)
            failed = [(path, each) for path, each in outcomes.items() if isinstance(each, StorageFailure)]
            if failed:
                path, why = failed[0]
                raise StorageError(
                    f"rollback of {failed_time}: {storage.root}/{path} could not be deleted: {why.message}; the "
                    "rollback stays inflight, correct the access and try again",
                    why.retryable,
                )
        return self._full(paths)

    def _full(self, paths: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
        root = self.contents.store.storage.root
        return {partition: tuple(f"{root}/{path}" for path in names) for partition, names in paths.items()}

    def _partitions(
        self, deleted: dict[str, tuple[str, ...]], appended: dict[str, AppendedBlocks]
    ) -> dict[str, RollbackPartitionMetadata]:
        root = self.contents.store.storage.root
        nothing = AppendedBlocks(rollback_logs={}, logs_of_write={})
        return {
            partition: RollbackPartitionMetadata(
                partition_path=partition,
                success_delete_files=deleted.get(partition, ()),
                rollback_log_files={
                    f"{root}/{join_path(partition, name)}": size
                    for name, size in appended.get(partition, nothing).rollback_logs.items()
                },
                log_files_from_failed_commit=appended.get(partition, nothing).logs_of_write,
            )
            for partition in (deleted | appended)
        }


def _begun(requested: Requested) -> Begun:
    """
    Make the rollback inflight, unless another process withdraws the plan at the same time.

    A write that finds the plan and its completed target withdraws the plan. Each of the two processes first writes or
    deletes its own file and then looks at the other's, so at least one notices (`RollbackService.run`).

    Raises:
        ConflictError: The plan was withdrawn; nothing was undone.
    """
    begun = requested.begin()
    plan = Instant(begun.instant.requested_time, begun.instant.action, State.REQUESTED)
    if requested.instant.state is State.REQUESTED and begun.store.storage.size(begun.store.path(plan)) is None:
        begun.store.remove(begun.instant)
        raise ConflictError(
            f"{begun.store.path(plan)} was withdrawn by a write at this moment; nothing was undone; reload, start again"
        )
    return begun


def _paths_by_partition(plan: RollbackPlan, target: InstantInfo, *, logs: bool) -> dict[str, list[str]]:
    """
    Partition path to relative paths to delete; refuses files that are not of the write.

    Args:
        logs: Also log files; of a compaction only within a restore, which deletes whole slices.
    """
    by_partition: dict[str, list[str]] = {}
    for request in plan.rollback_requests:
        paths = _paths(request, target.requested_time, logs=logs)
        if paths or not request.log_blocks_to_be_deleted:
            by_partition.setdefault(request.partition_path, []).extend(paths)
    return by_partition


def _log_names(paths: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
    """Partition path to names of log files: in layout 1 other writes may have added them to the metadata table."""
    names = {partition: tuple(path.rpartition("/")[2] for path in each) for partition, each in paths.items()}
    return {partition: tuple(filter(parse_log_file, each)) for partition, each in names.items()}


def _paths(request: RollbackRequest, failed_time: str, *, logs: bool) -> list[str]:
    names = [path.rpartition("/")[2] for path in request.files_to_be_deleted]
    strange = [name for name in names if not belongs_to(name, failed_time, logs=logs)]
    if strange:
        raise RefusedError(
            f"the rollback plan of {failed_time} names {strange[0]}, which is not a file of that write; nothing was "
            "deleted"
        )
    return [join_path(request.partition_path, name) for name in names]

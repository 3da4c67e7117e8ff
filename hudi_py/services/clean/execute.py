"""
Carrying out a stored clean plan.

What a crash leaves, step by step, and what the next clean makes of it:

1. only ``.clean.requested``: the plan is carried out from the start;
2. ``.clean.inflight`` too, some files gone: carried out again, files already gone are no error;
3. everything deleted, recorded in the metadata table or not, not completed: the same, nothing is left to delete;
4. completed: nothing is owed.

The plan that counts is always the one in ``.clean.requested``; a clean never plans twice.
Source: format/table-services A.7, A.8.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

import attrs

from hudi_py.config.clean import CleanConfig
from hudi_py.engine.base import Engine
from hudi_py.errors import ConflictError, RefusedError, StorageError
from hudi_py.formats import records_codec as codec
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.model.files import PARTITION_METAFILE, join_path
from hudi_py.model.instant import Action, Instant, State, advance
from hudi_py.model.records import CleanerPlan, CleanMetadata, CleanPartitionMetadata
from hudi_py.runtime.clock import Deadline
from hudi_py.runtime.log import log
from hudi_py.services.clean.leftovers import LEFTOVERS, Leftovers, after_clean, remember_leftovers
from hudi_py.services.clean.stored_plan import planned_names
from hudi_py.services.clean.tasks import delete_files, tasks_of
from hudi_py.services.clean.watch import Reporter, WatchedEngine
from hudi_py.storage.base import Storage
from hudi_py.timeline.contents import Contents

TASK_FILES_MAX: Final = 10_000
TASK_FILES_MAX_TIMED: Final = 500  # where the time is limited: it is looked at between rounds of tasks
Names = Mapping[str, Sequence[str]]


@attrs.frozen(kw_only=True)
class CleanResult:
    """
    One clean that was carried out.

    Args:
        instant: Requested time.
        metadata: What was stored as the completed instant.
        missing_files: Were gone already, for instance deleted by an interrupted run before.
        failed_files: Refused to go; the next clean tries them again.
        superseded: Another process completed the same clean first; its record counts, ours was not written.
        is_finished: False when the time was up: the clean stays pending, and the next one deletes the rest.
        expired_savepoints: Of the first clean of a run: times of the savepoints that the run let go of before, because
            their time to live was over.
    """

    instant: str
    metadata: CleanMetadata
    missing_files: tuple[str, ...]
    failed_files: tuple[str, ...] = ()
    superseded: bool = False
    is_finished: bool = True
    expired_savepoints: tuple[str, ...] = ()
    _deleted: Names = attrs.field(factory=dict, repr=False)

    @property
    def deleted_files(self) -> tuple[str, ...]:
        """Relative paths deleted by this run, sorted; made at every call, there may be a million."""
        return tuple(sorted(join_path(path, name) for path, names in self._deleted.items() for name in names))

    @property
    def deleted_count(self) -> int:
        """How many those are."""
        return sum(map(len, self._deleted.values()))


@attrs.frozen(kw_only=True)
class _Outcome:
    """
    What became of a plan's files.

    Args:
        missing: Relative paths.
        failed: Relative path to why.
        left: How many were not tried, the time being up.
        tried: Partition path to names.
    """

    missing: frozenset[str]
    failed: Mapping[str, str]
    left: int
    tried: Names

    @property
    def deleted(self) -> Names:
        """Partition path to names."""
        others = self.missing.union(self.failed)
        if not others:
            return self.tried
        return {
            path: tuple(name for name in names if join_path(path, name) not in others)
            for path, names in self.tried.items()
        }


def execute_clean(
    contents: Contents,
    engine: Engine,
    config: CleanConfig,
    metadata_table: MetadataTableKeeper,
    instant: Instant,
    deadline: Deadline,
    reporter: Reporter,
) -> CleanResult:
    """
    Carry out one pending clean.

    Raises:
        CorruptMetadata, RefusedError: The stored plan is damaged, points outside the table, or names what a savepoint
            holds; nothing was deleted.
        StorageError: The storage fails, or refuses all files at the first attempt; the clean stays inflight and the
            next one tries again.
    """
    store = contents.store
    plan = contents.clean_plan(instant)
    names = planned_names(plan, store.storage.root, store.path(instant))
    _check_savepoints(contents, instant, names)
    plan = attrs.evolve(plan, files_to_delete={})  # the names are all that is needed of a million files
    known = LEFTOVERS.load(store.storage)
    if reporter.is_heard:
        reporter.begin("delete", instant=instant.requested_time, total=sum(map(len, names.values())))
        engine = WatchedEngine(engine, reporter)
    started, is_first_attempt = store.clock.now(), instant.state is State.REQUESTED
    if is_first_attempt:
        instant = _start(contents, instant)
    outcome = _delete(store.storage, engine, config, names, deadline)
    if is_first_attempt:
        _check_access(outcome, names, known, store.storage.root)
    gone = {} if outcome.left else _delete_partitions(store.storage, plan.partitions_to_delete)
    elapsed_ms = max(0, int((store.clock.now() - started).total_seconds() * 1000))
    metadata = _metadata(instant, plan, outcome, frozenset(gone), config, elapsed_ms)
    log.info(
        "clean.files.deleted",
        instant=instant.requested_time,
        files_deleted=metadata.total_files_deleted,
        files_failed=len(outcome.failed),
        files_left=outcome.left,
        elapsed_ms=elapsed_ms,
    )
    result = CleanResult(
        instant=instant.requested_time,
        metadata=metadata,
        missing_files=tuple(sorted(outcome.missing)),
        failed_files=tuple(sorted(outcome.failed)),
        is_finished=not outcome.left,
        deleted=_together(outcome.deleted, gone),
    )
    if not outcome.left:
        result = _finish(contents, metadata_table, instant, result, outcome, names, known)
    if reporter.is_heard:
        reporter.finish()
    return result


def _finish(
    contents: Contents,
    metadata_table: MetadataTableKeeper,
    instant: Instant,
    result: CleanResult,
    outcome: _Outcome,
    names: Names,
    known: Leftovers,
) -> CleanResult:
    """Remember what refused to go, then publish the clean."""
    for path, why in islice(outcome.failed.items(), 3):
        log.warning("clean.file.refused", instant=instant.requested_time, path=path, reason=why)
    remember_leftovers(contents.store.storage, known, after_clean(known, names, outcome.failed))
    return _complete(contents, metadata_table, instant, result)


def _check_savepoints(contents: Contents, instant: Instant, names: Names) -> None:
    """
    Raises:
        RefusedError: A savepoint holds a planned file: it was made after the plan, by a writer that did not look.
    """
    for savepoint in contents.store.load().completed(Action.SAVEPOINT):
        for path, held in contents.savepoint(savepoint).files.items():
            both = frozenset(held).intersection(names.get(path, ()))
            if both:
                way_out = "" if instant.state is State.INFLIGHT else f", or {contents.store.path(instant)}"
                raise RefusedError(
                    f"{contents.store.storage.root}: clean {instant.requested_time} was planned before savepoint "
                    f"{savepoint.requested_time} was made, which holds {join_path(path, min(both))}; nothing more was "
                    f"deleted. Delete the savepoint{way_out}, and clean again"
                )


def _start(contents: Contents, instant: Instant) -> Instant:
    """
    Make the clean inflight, unless another process has just done so: deleting twice is no harm (rule A-73).

    The file gets a copy of the plan: 0.15 archival reads it in layout 1, layout 2 tolerates it (format/timeline 9.4).
    """
    store = contents.store
    try:
        return store.transition(instant, store.read_plan(instant))
    except ConflictError:
        return advance(instant)


def _complete(
    contents: Contents, metadata_table: MetadataTableKeeper, instant: Instant, result: CleanResult
) -> CleanResult:
    """Record the clean in the metadata table, then publish it, under the table's lock (rule A-67, F.1)."""
    try:
        with contents.store.lock.held(f"clean {instant.requested_time}"):
            timeline = contents.store.load()
            done = timeline.find(instant.requested_time, instant.action)
            if done is not None and done.is_completed:
                raise ConflictError(f"{instant} was completed by another cleaner")
            after = metadata_table.record_clean(timeline, instant, result.metadata)
            content = codec.encode_clean_metadata(result.metadata, sync=os.urandom(16))
            contents.store.complete(instant, content, after=after)
    except ConflictError:  # two cleaners worked on one plan: the first record stands (rule A-73)
        done = contents.store.load().find(instant.requested_time, instant.action)
        if done is None or not done.is_completed:
            raise
        return attrs.evolve(result, metadata=contents.clean(done), superseded=True)
    return result


def _delete(storage: Storage, engine: Engine, config: CleanConfig, names: Names, deadline: Deadline) -> _Outcome:
    """
    Delete all files in tasks of about equal size (rule A-64), round by round.

    A round bounds what is held at once, and no round begins once the time is up; the first one always does.
    """
    total = sum(map(len, names.values()))
    width = max(1, min(-(-total // engine.files_min), config.parallelism, engine.slots))
    size_max = TASK_FILES_MAX_TIMED if deadline.is_limited else TASK_FILES_MAX
    tasks = tasks_of(storage, names, min(size_max, -(-total // width) or 1))
    missing: set[str] = set()
    failed: dict[str, str] = {}
    tried: dict[str, tuple[str, ...]] = {}
    count = 0
    while count < total and not (count and deadline.is_over):
        round_ = list(islice(tasks, width))
        for result in engine.map(delete_files, round_, parallelism=width, description="clean: delete files"):
            missing.update(result.missing)
            failed.update(result.failed)
        count += sum(len(some) for task in round_ for _, some in task.files)
        if deadline.is_limited:
            for path, some in (part for task in round_ for part in task.files):
                tried[path] = (*tried.get(path, ()), *some)
    left = total - count
    return _Outcome(missing=frozenset(missing), failed=failed, left=left, tried=tried if left else names)


def _check_access(outcome: _Outcome, names: Names, known: Leftovers, root: str) -> None:
    """
    Raises:
        StorageError: Nothing could be deleted at all. That is wrong access rather than a few odd files; should the
            next attempt find the same, the clean is completed without them, so that it stands in nobody's way.
    """
    total = sum(map(len, names.values()))
    expected = all(name in known.get(path, ()) for path, each in names.items() for name in each)
    if outcome.failed and len(outcome.failed) == total and not expected:
        path, why = next(iter(outcome.failed.items()))
        raise StorageError(
            f"none of {total} files could be deleted, the first is {root}/{path}: {why}; the clean stays inflight, "
            "correct the access and run clean again"
        )


def _delete_partitions(storage: Storage, partition_paths: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Remove dropped partitions; those that went, to the names that were left in them."""
    gone = {}
    for path in partition_paths:
        names = _delete_partition(storage, path)
        if names is not None:
            gone[path] = names
    return gone


def _delete_partition(storage: Storage, partition_path: str) -> tuple[str, ...] | None:
    """
    Remove a dropped partition's folder if it holds nothing but its metafile (rule A-54); None when it stays.

    A file that came after planning keeps the folder: it may belong to a writer that is still at work (K-10).
    """
    if not partition_path:
        return None
    entries = storage.list(partition_path)
    if any(entry.is_folder or not entry.name.startswith(PARTITION_METAFILE) for entry in entries):
        log.warning("clean.partition.kept", partition=partition_path, files_left=len(entries))
        return None
    for entry in entries:
        storage.delete(join_path(partition_path, entry.name))
    storage.delete_folder(partition_path)
    return tuple(entry.name for entry in entries)


def _together(deleted: Names, gone: Mapping[str, tuple[str, ...]]) -> Names:
    """What went of the plan, and what went with the partitions."""
    return {**deleted, **{path: (*deleted.get(path, ()), *names) for path, names in gone.items()}} if gone else deleted


def _metadata(
    instant: Instant,
    plan: CleanerPlan,
    outcome: _Outcome,
    deleted_partitions: frozenset[str],
    config: CleanConfig,
    elapsed_ms: int,
) -> CleanMetadata:
    """
    What the completed instant records: built from what was observed, never from the plan alone.

    Files that were gone already stand under the failed ones, as every release of Hudi records them (rule A-65); the
    policy is that of the running configuration (rule A-66).
    """
    others = outcome.missing.union(outcome.failed)
    partitions = {}
    for partition, names in outcome.tried.items():
        failed = tuple(name for name in names if join_path(partition, name) in others) if others else ()
        partitions[partition] = CleanPartitionMetadata(
            partition_path=partition,
            policy=config.policy.value,
            delete_path_patterns=tuple(names),
            success_delete_files=tuple(name for name in names if join_path(partition, name) not in others)
            if failed
            else tuple(names),
            failed_delete_files=failed,
            is_partition_deleted=partition in deleted_partitions,
        )
    earliest = plan.earliest_instant_to_retain
    return CleanMetadata(
        start_clean_time=instant.requested_time,
        time_taken_ms=elapsed_ms,
        total_files_deleted=sum(len(each.success_delete_files) for each in partitions.values()),
        earliest_commit_to_retain="" if earliest is None else earliest.requested_time,
        last_completed_commit_timestamp=plan.last_completed_commit_timestamp,
        partitions=partitions,
        extra_metadata=plan.extra_metadata,
    )

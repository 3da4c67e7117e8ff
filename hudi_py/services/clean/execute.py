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

import math
import os
from collections.abc import Iterable, Mapping, Sequence

import attrs

from hudi_py.config.clean import CleanConfig
from hudi_py.engine.base import Engine
from hudi_py.errors import ConflictError, StorageError
from hudi_py.formats import records_codec as codec
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.model.files import PARTITION_METAFILE, join_path
from hudi_py.model.instant import Instant, State, advance
from hudi_py.model.records import CleanerPlan, CleanMetadata, CleanPartitionMetadata
from hudi_py.runtime.log import log
from hudi_py.services.clean.stored_plan import relative_paths
from hudi_py.services.clean.tasks import DeleteResult, DeleteTask, delete_files
from hudi_py.storage.base import Storage
from hudi_py.timeline.contents import Contents


@attrs.frozen(kw_only=True)
class CleanResult:
    """
    One clean that was carried out.

    Args:
        instant: Requested time.
        metadata: What was stored as the completed instant.
        deleted_files: Relative paths deleted by this run.
        missing_files: Were gone already, for instance deleted by an interrupted run before.
        superseded: Another process completed the same clean first; its record counts, ours was not written.
    """

    instant: str
    metadata: CleanMetadata
    deleted_files: tuple[str, ...]
    missing_files: tuple[str, ...]
    superseded: bool = False


def execute_clean(
    contents: Contents, engine: Engine, config: CleanConfig, metadata_table: MetadataTableKeeper, instant: Instant
) -> CleanResult:
    """
    Carry out one pending clean.

    Raises:
        CorruptMetadata, RefusedError: The stored plan is damaged or points outside the table; nothing was deleted.
        StorageError: Some files are there and refuse to go; the clean stays inflight and the next one tries again.
    """
    store = contents.store
    plan = contents.clean_plan(instant)
    paths = relative_paths(plan, store.storage.root, store.path(instant))
    started = store.clock.now()
    if instant.state is State.REQUESTED:
        instant = _start(contents, instant)
    results = _delete(store.storage, engine, config, paths)
    gone = {}
    for partition in plan.partitions_to_delete:
        outcome = _delete_partition(store.storage, partition)
        if outcome is not None:
            gone[partition] = outcome
    elapsed_ms = max(0, int((store.clock.now() - started).total_seconds() * 1000))
    metadata = _metadata(instant, plan, paths, results, frozenset(gone), config, elapsed_ms)
    log.info(
        "clean.files.deleted",
        instant=instant.requested_time,
        files_deleted=metadata.total_files_deleted,
        elapsed_ms=elapsed_ms,
    )
    return _complete(contents, metadata_table, instant, metadata, [*results, *gone.values()])


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
    contents: Contents,
    metadata_table: MetadataTableKeeper,
    instant: Instant,
    metadata: CleanMetadata,
    results: Sequence[DeleteResult],
) -> CleanResult:
    """Record the clean in the metadata table, then publish it (rule A-67)."""
    superseded = False
    try:
        timeline = contents.store.load()
        done = timeline.find(instant.requested_time, instant.action)
        if done is not None and done.is_completed:
            raise ConflictError(f"{instant} was completed by another cleaner")
        after = metadata_table.record_clean(timeline, instant, metadata)
        contents.store.complete(instant, codec.encode_clean_metadata(metadata, sync=os.urandom(16)), after=after)
    except ConflictError:  # two cleaners worked on one plan: the first record stands (rule A-73)
        done = contents.store.load().find(instant.requested_time, instant.action)
        if done is None or not done.is_completed:
            raise
        metadata, superseded = contents.clean(done), True
    return CleanResult(
        instant=instant.requested_time,
        metadata=metadata,
        deleted_files=tuple(sorted(path for result in results for path in result.deleted)),
        missing_files=tuple(sorted(path for result in results for path in result.missing)),
        superseded=superseded,
    )


def _delete(
    storage: Storage, engine: Engine, config: CleanConfig, paths: Mapping[str, tuple[str, ...]]
) -> list[DeleteResult]:
    """Delete all files, however they spread over partitions, in tasks of about equal size (rule A-64)."""
    everything = [path for names in paths.values() for path in names]
    parallelism = max(1, min(len(everything), config.parallelism))
    tasks = [DeleteTask(storage, chunk) for chunk in _chunks(everything, min(parallelism, engine.slots))]
    results = list(engine.map(delete_files, tasks, parallelism=parallelism, description="clean: delete files"))
    failed = [failure for result in results for failure in result.failed]
    if failed:
        path, why = failed[0]
        raise StorageError(
            f"{len(failed)} of {len(everything)} files could not be deleted, the first is {storage.root}/{path}: "
            f"{why}; the clean stays inflight, correct the access and run clean again"
        )
    return results


def _chunks(items: Sequence[str], count: int) -> Iterable[tuple[str, ...]]:
    size = max(1, math.ceil(len(items) / count))
    return (tuple(items[start : start + size]) for start in range(0, len(items), size))


def _delete_partition(storage: Storage, partition_path: str) -> DeleteResult | None:
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
    paths = tuple(join_path(partition_path, entry.name) for entry in entries)
    for path in paths:
        storage.delete(path)
    storage.delete_folder(partition_path)
    return DeleteResult(paths, (), ())


def _metadata(
    instant: Instant,
    plan: CleanerPlan,
    paths: Mapping[str, tuple[str, ...]],
    results: Sequence[DeleteResult],
    deleted_partitions: frozenset[str],
    config: CleanConfig,
    elapsed_ms: int,
) -> CleanMetadata:
    """
    What the completed instant records: built from what was observed, never from the plan alone.

    Files that were gone already stand under the failed ones, as every release of Hudi records them (rule A-65); the
    policy is that of the running configuration (rule A-66).
    """
    gone = {path for result in results for path in result.missing}
    partitions = {}
    for partition, names in paths.items():
        short = tuple(path.rpartition("/")[2] for path in names)
        failed = tuple(name for name, path in zip(short, names, strict=True) if path in gone)
        partitions[partition] = CleanPartitionMetadata(
            partition_path=partition,
            policy=config.policy.value,
            delete_path_patterns=short,
            success_delete_files=tuple(n for n, p in zip(short, names, strict=True) if p not in gone)
            if gone
            else short,
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

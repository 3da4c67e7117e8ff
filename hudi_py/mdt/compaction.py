"""
Compacts the metadata table: log files of its file groups become new base files.

Apache Hudi does it in its own writes; on a table that only hudi_py writes or cleans, log files would grow without
limit. It waits while any action of the data table is pending, since 0.15.0 and 1.0.2 refuse to roll back what is older
than the last compaction, and the table is not writable any more. 0.15.0 itself waits for what is not newer than the
last delta commit; 1.x compacts beside pending actions, and can no longer roll them back. For the same reason whoever
begins a write compacts first and takes a later time.

One plan takes in every file group that has log files, those of statistics and indexes with `files`, as Apache Hudi's
plans do. A plan for `files` alone would be accepted, and lose statistics later: readers of all three releases
pass over the blocks of every instant that is neither on the active timeline of the metadata table nor on that of the
data table (``getValidInstantTimestamps`` is a set of exactly those), and both archivals ask for the last compaction
of the metadata table, not for what it took in. Seen with 1.1.1, a few commits after such a plan of ours: conditions on
columns found none of the rows of a partition whose statistics had been in an archived instant. Where there are
partitions of other kinds (secondary and expression indexes) nothing is compacted for the same reason.

What a crash leaves after each step, and what the next call does:

===========================  ======================================================================================
``C.compaction.requested``   the plan; new log files go to the slice it opens; readers merge both slices; resumed
``C.compaction.inflight``    the same
base files, torn or whole    invisible while C is pending; written again
``C.commit``                 done; the old slices are garbage for the metadata table's clean
===========================  ======================================================================================

Source: rules/timeline 2.2, rules/data-files 11.2; Hudi 0.15.0 to 1.1.1 ``HoodieBackedTableMetadataWriter``
(``validateCompactionScheduling``, ``compactIfNecessary``, ``validateRollback``), ``HoodieTableMetadataUtil``,
``CompactionUtils.getOldestInstantToRetainForCompaction``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator
from typing import Final

import attrs

from hudi_py.errors import CorruptMetadata, RefusedError, UnsupportedTable
from hudi_py.formats.records_codec import decode_compaction_plan
from hudi_py.mdt.base_file import Written, write_merged
from hudi_py.mdt.blocks import Validity, visible_blocks
from hudi_py.mdt.keyed_merge import has_records
from hudi_py.mdt.lookup import KEYED
from hudi_py.mdt.read_statistics import open_part
from hudi_py.mdt.recorded import WAY_OUT
from hudi_py.mdt.records import payload_schema
from hudi_py.mdt.statistics import COLUMN_STATS, PARTITION_STATS
from hudi_py.mdt.table import FILES_GROUP, FILES_PARTITION, MetadataTable, Slice
from hudi_py.mdt.update import withdraw
from hudi_py.model.files import parse_base_file, parse_log_file
from hudi_py.model.instant import Action, Instant
from hudi_py.model.instant_time import INIT_TIME
from hudi_py.model.records import (
    LOG_BYTES,
    CommitMetadata,
    CompactionOperation,
    CompactionPlan,
    RuntimeStats,
    WriteStat,
)
from hudi_py.runtime.log import log
from hudi_py.timeline.store import reserve_time
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.commit import Prepared, Requested

_KNOWN: Final = frozenset({FILES_PARTITION, COLUMN_STATS, PARTITION_STATS, *KEYED})
_COMPACTIONS: Final = (Action.COMPACTION, Action.LOG_COMPACTION)
_BYTES_PER_MEGABYTE: Final = 1024 * 1024
_NEW_BASE_MEGABYTES: Final = 120
"""What Apache Hudi takes for the size of a base file where there was none: it stands in the plan, no more."""


def compact(
    table: MetadataTable, data_timeline: Timeline, *, partitions: Collection[str], delta_commits_max: int
) -> Instant | None:
    """
    Compact the metadata table if it is due, or finish an interrupted compaction.

    Call it under the table's lock, before the next action takes its time. It does nothing while an action of the data
    table is pending, while a partition is being created, and if there are partitions that `is_known` does not know.

    Args:
        table: The metadata table.
        data_timeline: Timeline of the data table.
        partitions: Partitions of the metadata table that the properties of the data table name. One that was dropped
            may still have files, and stand in a plan from before.
        delta_commits_max: Number of log files of the `files` partition at which it is due.

    Returns:
        The completed instant, or None if nothing was done.

    Raises:
        CorruptMetadata: A file of the metadata table is damaged.
        ConflictError: Another writer is changing it.
    """
    if data_timeline.pending():
        return None
    timeline = table.store.load()
    there = table.partitions()
    if not is_known(there):
        return None
    pending = timeline.pending(*_COMPACTIONS)
    # A pending plan first: new log files go to the slices that it opens, so a second plan could not cover the old ones.
    if pending:
        return _execute(table, data_timeline, timeline, Requested(table.store, pending[0]), partitions)
    if not _without_dead(table, data_timeline, timeline):
        return None
    (file_slice, *others) = table.slices(timeline)
    # Only `files` decides: each action writes to it, so its log files count the delta commits of all partitions.
    if others or file_slice.base is None or len(file_slice.logs) < delta_commits_max:
        return None
    # Merged once for trial, before the plan exists: a stored plan that nobody can carry out stops every later
    # compaction.
    statistics = _mergeable(table, data_timeline, timeline, [name for name in there if name in partitions])
    if statistics is None:
        return None
    time = _time(table, timeline, data_timeline)
    # The time may be that of the last delta commit with a suffix: then nothing has come since the compaction of that
    # time.
    if timeline.find(time) is not None:
        return None
    plan = _plan(table, [file_slice, *statistics])
    requested = Prepared(table.store, Action.COMPACTION, time).request(plan)
    return _execute(table, data_timeline, timeline, requested, partitions)


def is_known(partitions: Iterable[str]) -> bool:
    """Whether a metadata table of these partitions can be compacted: hudi_py merges all of them."""
    return FILES_PARTITION in partitions and _KNOWN.issuperset(partitions)


def is_due(timeline: Timeline, delta_commits_max: int) -> bool:
    """
    Whether a compaction has begun, or that number of delta commits came after the last one; costs no request.

    Args:
        timeline: Timeline of the metadata table.
        delta_commits_max: As in `compact`.
    """
    if timeline.pending(*_COMPACTIONS):
        return True
    compactions = timeline.completed(Action.COMMIT)
    last = compactions[-1].requested_time if compactions else ""
    # By completion time, where there is one: a delta commit that was requested before the compaction and completed
    # after it is not in its base files (rule E-1).
    since = [i for i in timeline.completed(Action.DELTA_COMMIT) if (i.completion_time or i.requested_time) > last]
    return len(since) >= delta_commits_max


def _without_dead(table: MetadataTable, data_timeline: Timeline, timeline: Timeline) -> bool:
    """
    Roll back pending delta commits of actions that are not on the data table's timeline, as Apache Hudi does.

    Returns:
        False if one may belong to an action that has begun since the timeline was loaded, or cannot be rolled back.
    """
    for instant in timeline.pending(Action.DELTA_COMMIT):
        time = instant.requested_time
        if time.startswith(INIT_TIME):  # Apache Hudi is filling a new partition
            return False
        # It may belong to an action that is on its way: its delta commit is written before the data instant completes.
        if data_timeline.find(time) is not None or time >= (data_timeline.last_time or ""):
            return False
        try:
            withdraw(table, time)
        except RefusedError:
            return False
    return True


def _time(table: MetadataTable, timeline: Timeline, data_timeline: Timeline) -> str:
    suffix = table.format.metadata_table.compaction_suffix
    if suffix is not None:
        return timeline.completed(Action.DELTA_COMMIT)[-1].requested_time + suffix
    after = data_timeline.last_time
    while True:
        time = table.store.new_time(timeline, after=after)
        # In the data table, too: if this is interrupted, an action there must not get the same time, and with it a
        # delta commit that makes the files of the compaction look completed.
        if reserve_time(table.data_storage, time):
            return time
        after = time


def _mergeable(
    table: MetadataTable, data_timeline: Timeline, timeline: Timeline, partitions: list[str]
) -> list[Slice] | None:
    """
    The slices of statistics and indexes to compact, without those that have only deletions.

    Returns:
        None if some cannot be merged: a plan that cannot be carried out would block Apache Hudi.
    """
    validity = Validity(timeline, data_timeline)
    names = [name for name in partitions if name != FILES_PARTITION]
    logged = [file_slice for name in names for file_slice in table.slices(timeline, name) if file_slice.logs]
    found = []
    try:
        for each in logged:
            if each.partition in KEYED:
                if each.base is not None or has_records(table, each, visible_blocks(table, each, timeline, validity)):
                    found.append(each)
                continue
            with contextlib.ExitStack() as stack:
                part = open_part(table, each, visible_blocks(table, each, timeline, validity), stack)
                part.check_logged()
                if any(True for _ in part.scan()):
                    found.append(each)
    except UnsupportedTable as error:
        log.info("metadata.compaction.left", reason=str(error))
        return None
    return found


def _plan(table: MetadataTable, slices: list[Slice]) -> CompactionPlan:
    has_extras = table.format.metadata_table.plan_extras
    return CompactionPlan(
        operations=tuple(_operation(table, file_slice) for file_slice in slices),
        extra_metadata={} if has_extras else None,
        missing_schedule_partitions=() if has_extras else None,
    )


def _operation(table: MetadataTable, file_slice: Slice) -> CompactionOperation:
    base = file_slice.base
    size = sum(table.storage.size(file_slice.path(log.name)) or 0 for log in file_slice.logs)
    written = size // _BYTES_PER_MEGABYTE if base is not None else _NEW_BASE_MEGABYTES
    return CompactionOperation(
        # A group that never had a base file is known by the time of its first log file.
        base_instant_time=file_slice.logs[0].instant_time if base is None else base.instant_time,
        file_id=file_slice.file_id,
        partition_path=file_slice.partition,
        delta_file_paths=tuple(log.name for log in file_slice.logs),
        data_file_path=None if base is None else base.name,
        metrics={
            "TOTAL_LOG_FILES": float(len(file_slice.logs)),
            "TOTAL_IO_MB": float(size // _BYTES_PER_MEGABYTE + written),
            "TOTAL_IO_READ_MB": float(size // _BYTES_PER_MEGABYTE),
            LOG_BYTES: float(size),
            "TOTAL_IO_WRITE_MB": float(written),
        },
    )


def _execute(
    table: MetadataTable,
    data_timeline: Timeline,
    timeline: Timeline,
    requested: Requested,
    partitions: Collection[str],
) -> Instant | None:
    """Carry out the stored plan, but for partitions that were dropped since; None if hudi_py does not support it."""
    instant = requested.instant
    source = table.source(table.store.path(instant))
    plan = decode_compaction_plan(table.store.read_plan(instant), source)
    planned = [_planned_slice(operation, source) for operation in plan.operations]
    slices = [each for each in planned if each is not None]
    # A plan of Apache Hudi may name partitions of other kinds. Carrying out a part of it would lose the log files of
    # the rest, so it is left to Hudi.
    if not slices or len(slices) < len(planned) or instant.action is not Action.COMPACTION:
        return None
    begun = requested.begin()
    validity = Validity(timeline, data_timeline)
    stats: dict[str, tuple[WriteStat, ...]] = {}
    kept = [each for each in slices if each.partition in partitions]
    for each in _as_they_are(table, timeline, kept, instant):
        blocks = visible_blocks(table, each, timeline, validity)
        written = write_merged(table, each, blocks, instant.requested_time)
        stat = _stat(each, written, len(blocks))
        stats[each.partition] = (*stats.get(each.partition, ()), stat)
    metadata = CommitMetadata(
        partition_to_write_stats=stats,
        compacted=True,
        extra_metadata={"schema": payload_schema(table.table_version)},
        operation_type="COMPACT",
    )
    return begun.in_step(data_timeline).publish(metadata)


def _as_they_are(table: MetadataTable, timeline: Timeline, planned: list[Slice], instant: Instant) -> Iterator[Slice]:
    """
    The planned slices with the recorded sizes of their log files, so that files that are cut off are noticed.

    Of a partition that was dropped since and created again, what its groups hold below the planned base file.

    Raises:
        CorruptMetadata: A part of the files of a planned slice is missing.
    """
    current = {
        (each.partition, each.file_id): each
        for partition in sorted({each.partition for each in planned})
        for each in table.slices(timeline, partition)
    }
    for each in planned:
        now = current.get((each.partition, each.file_id))
        there = set() if now is None else _names(now)
        missing = sorted(_names(each) - there)
        if not missing and now is not None:
            known = {log.name: log for log in now.logs}
            yield attrs.evolve(each, logs=tuple(known[log.name] for log in each.logs))
        elif len(missing) < len(_names(each)):
            raise CorruptMetadata(
                f"{table.source(each.path(missing[0]))} is missing, and {instant} needs it; {WAY_OUT}"
            )
        elif now is not None:
            # Without a base file of this time, log files of layout 1 that are named after it would lack their slice.
            below = tuple(log for log in now.logs if table.slice_time(timeline, log) < instant.requested_time)
            yield attrs.evolve(now, logs=below)


def _names(found: Slice) -> set[str]:
    return {log.name for log in found.logs} | (set() if found.base is None else {found.base.name})


def _planned_slice(operation: CompactionOperation, source: str) -> Slice | None:
    partition, file_id = operation.partition_path, operation.file_id
    base = parse_base_file(operation.data_file_path or "")
    if partition is None or partition not in _KNOWN or file_id is None or operation.base_instant_time is None:
        return None
    if partition == FILES_PARTITION and (file_id != FILES_GROUP or base is None):
        return None
    logs = [parse_log_file(name.rpartition("/")[2]) for name in operation.delta_file_paths]
    known = [log for log in logs if log is not None]
    if len(known) != len(logs):
        raise CorruptMetadata(f"{source}: the plan names files that are not log files: {operation.delta_file_paths}")
    return Slice(partition, file_id, base, tuple(sorted(known, key=lambda log: log.order)), operation.base_instant_time)


def _stat(planned: Slice, written: Written, block_count: int) -> WriteStat:
    base = planned.base
    return WriteStat(
        file_id=planned.file_id,
        path=planned.path(written.name),
        prev_commit="null" if base is None else base.instant_time,
        partition_path=planned.partition,
        prev_base_file=None if base is None else base.name,
        num_writes=written.record_count,
        num_update_writes=written.record_count if base is not None else 0,
        num_inserts=0 if base is not None else written.record_count,
        total_write_bytes=written.size_bytes,
        file_size_in_bytes=written.size_bytes,
        total_log_files_compacted=len(planned.logs),
        total_log_blocks=block_count,
        runtime_stats=RuntimeStats(),
    )

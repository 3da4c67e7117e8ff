"""
Writing to the metadata table: what a commit, replacecommit, clean, rollback or restore of ours must record.

One action of the data table is one delta commit of the metadata table with the same instant time, completed *before*
the data table's instant is. What a crash leaves at each step of `write_delta_commit`, and why that is harmless:

==========================  =======================================================================================
``T.deltacommit.requested``  pending: invisible; Hudi rolls it back at its next write, `write_delta_commit` goes on
``T.deltacommit.inflight``   the same
log file                     the same: its block belongs to a pending instant; it appears complete or not at all
``T.deltacommit``            completed, but T is pending in the data table: its block does not count yet
==========================  =======================================================================================

The block counts once T is completed in the data table, or once T vanishes from it. So whoever rolls T back calls
`record_rollback` before T's files leave the data timeline.

Callers hold the table's lock: the metadata table has one writer at a time, in Apache Hudi too.

Source: rules/data-files 10.4 and 11; Hudi 1.1.1 ``HoodieBackedTableMetadataWriter``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from hudi_py.errors import RefusedError
from hudi_py.formats.commit_codec import decode_commit
from hudi_py.formats.log_block import HeaderKey, encode_log_block
from hudi_py.mdt.blocks import Validity, merge_blocks, read_blocks, visible_blocks
from hudi_py.mdt.changes import ListingChanges, records_of
from hudi_py.mdt.lookup import PREFIXES
from hudi_py.mdt.read import Base
from hudi_py.mdt.records import ALL_PARTITIONS, Alone, Files, encode_files, present
from hudi_py.mdt.shares import (
    Share,
    completed_metadata,
    inflight_metadata,
    new_log,
    record_block,
    shares_of,
)
from hudi_py.mdt.table import FILES_GROUP, FILES_PARTITION, MetadataTable, Slice
from hudi_py.model.files import LogFile
from hudi_py.model.instant import Action, Instant, State
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.commit import Begun, Prepared, Requested


def write_delta_commit(
    table: MetadataTable,
    data_timeline: Timeline,
    requested_time: str,
    changes: ListingChanges,
    statistics: Mapping[str, Mapping[str, bytes | None]] | None = None,
    look: Callable[[MetadataTable, Timeline, str], None] | None = None,
) -> Instant:
    """
    Record *changes* under the instant time of the data table's action; call it before that action completes.

    Running it again for the same instant time completes what an interrupted run left behind. If that run had other
    changes, they are taken back first, which nobody can have seen.

    Args:
        table: The metadata table.
        data_timeline: The data table's timeline.
        requested_time: Requested time of the action in the data table.
        changes: What the action did.
        statistics: Partition of the metadata table to key to record, of further partitions than `files`; see
            `hudi_py.mdt.file_statistics`.
        look: Is given the metadata table, its timeline and *requested_time* first, and may raise.

    Returns:
        The completed delta commit; in layout 2 the action's completion time has to be larger than its.

    Raises:
        RefusedError: The action is completed in the data table already, so its records are being read.
        CorruptMetadata: A file of the metadata table is damaged, or *changes* contradict themselves.
        ConflictError: Another writer is recording the same instant.
    """
    timeline = table.store.load()
    if look is not None:
        look(table, timeline, requested_time)
    # All records are computed before anything is written, so that an error in them leaves nothing behind.
    shares = [_share_of_files(table, timeline, data_timeline, requested_time, changes)]
    for partition, records in (statistics or {}).items():
        shares += shares_of(table, timeline, partition, requested_time, records)
    instant = timeline.find(requested_time, Action.DELTA_COMMIT)
    logs: list[LogFile | None] = [None] * len(shares)
    # An earlier attempt may have left the same records, others, or a torn file. What is equal to the last byte is used
    # again, everything else is deleted: two log files of one instant would both be read.
    if instant is not None:
        logs, others = _written_before(table, timeline, requested_time, shares)
        if instant.is_completed:
            # The usual repetition: the crash came after this commit and before that of the data table.
            is_whole = all(log is not None or not share.blocks for log, share in zip(logs, shares, strict=True))
            if not others and is_whole:
                return instant
            _check_open(data_timeline, requested_time)
            instant = _unpublish(table, timeline, requested_time)
        for path in others:
            table.storage.delete(path)
    # Readers use the records as soon as the action is completed in the data table: from then on they must not change.
    _check_open(data_timeline, requested_time)
    if instant is None:
        requested = Prepared(table.store, Action.DELTA_COMMIT, requested_time).request()
    else:
        requested = Requested(table.store, instant)
    begun = requested.begin(inflight_metadata(shares))
    contents = [b"".join(map(encode_log_block, share.blocks)) for share in shares]
    for at, share in enumerate(shares):
        # A group without records gets no file: readers would have to open it for nothing.
        if logs[at] is None and share.blocks:
            log = logs[at] = new_log(table, share.file_slice, requested_time)
            table.storage.create_new(share.file_slice.path(log.name), contents[at])
    sizes = [len(content) for content in contents]
    metadata = completed_metadata(table, list(zip(shares, logs, sizes, strict=True)))
    # Last, so that no reader finds a completed commit whose log files are not there yet.
    return begun.in_step(data_timeline).publish(metadata)


def record_rollback(
    table: MetadataTable,
    data_timeline: Timeline,
    rolled_back_time: str,
    rollback_time: str,
    changes: ListingChanges,
    *,
    deleted_of_others: Mapping[str, tuple[str, ...]] | None = None,
    statistics: Callable[[ListingChanges], Mapping[str, Mapping[str, bytes | None]]] | None = None,
    lost: Callable[[], None] | None = None,
) -> Instant | None:
    """
    Undo in the metadata table an action that the data table rolls back.

    Call it while *rolled_back_time* is still pending in the data table (a completed one has been set back to inflight
    first, as Hudi does), and before the rollback completes. If the delta commit of that time is not compacted, it is
    removed with its log files in all partitions of the metadata table, as in Hudi 1.x. Otherwise the deleted files are
    recorded as deleted, under the time of the rollback. Repeatable.

    Args:
        table: The metadata table.
        data_timeline: The data table's timeline.
        rolled_back_time: Instant that is rolled back.
        rollback_time: Instant of the rollback.
        changes: Of the rollback (`changes_of_rollback`).
        deleted_of_others: Those of the deleted files that other actions may have recorded: they are recorded as deleted
            in any case.
        statistics: Returns the records of further partitions, see `write_delta_commit`.
        lost: Called first where a compaction has merged the records: what they replaced is not known any more.

    Returns:
        The completed delta commit of the rollback, or None when there was nothing to record.

    Raises:
        As `write_delta_commit`.
    """
    timeline = table.store.load()
    instant = timeline.find(rolled_back_time, Action.DELTA_COMMIT)
    # A delta commit that is not there was archived, and so compacted before, or it was never made.
    compacted = instant is None and timeline.is_before_commits(rolled_back_time)
    if instant is not None:
        _check_open(data_timeline, rolled_back_time)
        compacted = not _withdraw(table, timeline, instant)
    # Before the records are computed: those of a dropped index must not be among them.
    if compacted and lost is not None:
        lost()
    owed = changes if compacted else ListingChanges(added=changes.added, deleted=deleted_of_others or {})
    if not records_of(owed):
        return None
    further = None if statistics is None else statistics(owed)
    return write_delta_commit(table, data_timeline, rollback_time, owed, further)


def withdraw(table: MetadataTable, requested_time: str) -> bool:
    """
    Remove the records of an action of the data table, with its log files in all partitions of the metadata table.

    Call it while the action, or a restore, is pending, so that no reader needs them. Repeatable.

    Returns:
        False if a compaction has merged them, or may have before they were archived; then nothing is done.
    """
    timeline = table.store.load()
    instant = timeline.find(requested_time, Action.DELTA_COMMIT)
    if instant is None:
        return not timeline.is_before_commits(requested_time)
    return _withdraw(table, timeline, instant)


def _check_open(data_timeline: Timeline, requested_time: str) -> None:
    at_that_time = [i for i in data_timeline.instants if i.requested_time == requested_time]
    if any(i.is_completed and i.action is not Action.SAVEPOINT for i in at_that_time):
        raise RefusedError(
            f"instant {requested_time} is completed in the table, so the metadata table's records of it are final; "
            "reload the timeline and use a new instant"
        )


def _current_slice(table: MetadataTable, timeline: Timeline) -> Slice:
    for file_slice in table.slices(timeline):
        if file_slice.file_id == FILES_GROUP:
            return file_slice
    raise RefusedError(
        f"{table.source(FILES_PARTITION)}: no file group {FILES_GROUP} there; the metadata table does not fit its "
        "properties; hoodie.metadata.enable=false drops it, Apache Hudi creates it again"
    )


def _share_of_files(
    table: MetadataTable, timeline: Timeline, data_timeline: Timeline, requested_time: str, changes: ListingChanges
) -> Share:
    file_slice = _current_slice(table, timeline)
    records, again = _without_double_deletions(table, timeline, data_timeline, file_slice, requested_time, changes)
    blocks = tuple(
        record_block(
            table, requested_time, {key: encode_files(key, files, table.table_version) for key, files in of.items()}
        )
        for of in (records, again)
        if of
    )
    return Share(file_slice, blocks, len(records))


# --- content ----------------------------------------------------------------------------------------------------------
def _without_double_deletions(
    table: MetadataTable,
    timeline: Timeline,
    data_timeline: Timeline,
    file_slice: Slice,
    requested_time: str,
    changes: ListingChanges,
) -> tuple[dict[str, Files], dict[str, Files]]:
    """
    The records of the changes, without deletions that the log files have already; and those of a second block.

    A partition that log files list although the base file knows it already needs two deletions: the first cancels what
    the log files say, the second what the base file does. Apache Hudi writes one, and goes on listing the partition.
    """
    records = records_of(changes)
    if not changes.is_return and not any(info.is_deleted for files in records.values() for info in files.values()):
        return records, {}
    validity = Validity(timeline, data_timeline)
    blocks = visible_blocks(table, file_slice, timeline, validity)
    # What an earlier attempt of this instant wrote is deleted or used again, so it must not count as said already.
    others = [(log, b) for log, b in blocks if b.header.get(HeaderKey.INSTANT_TIME) != requested_time]
    logged = merge_blocks(table, file_slice, others)
    if changes.is_return:
        return records, _cancelling(table, file_slice, records, logged)
    kept = {}
    for key, files in records.items():
        gone = {name for name, info in logged.get(key, {}).items() if info.is_deleted}
        news = {name: info for name, info in files.items() if not (info.is_deleted and name in gone)}
        if news:
            kept[key] = news
    known = logged.get(ALL_PARTITIONS, {})
    twice = {n: i for n, i in kept.get(ALL_PARTITIONS, {}).items() if i.is_deleted and n in known}
    return kept, {ALL_PARTITIONS: twice} if twice else {}


def _cancelling(
    table: MetadataTable, file_slice: Slice, records: Mapping[str, Files], logged: Mapping[str, Files]
) -> dict[str, Files]:
    """
    What follows the records of files that count again: a deletion of those that the base file knows.

    It cancels the record before it, and that the one which deleted the file, so that only the base file's counts. With
    the record alone the next deletion, Apache Hudi's too, would only cancel that, and the file would stay listed.
    """
    if file_slice.base is None:
        return {}
    path, found = file_slice.path(file_slice.base.name), {}
    with table.storage.open_read(path) as stream:
        base = Base(stream, table.source(path))
        for key, files in records.items():
            said = logged.get(key, {})
            known = {} if isinstance(said, Alone) else present(base.get(key) or {})
            again = {name: said[name] for name in files if name in known and name in said and said[name].is_deleted}
            if again:
                found[key] = again
    return found


# --- what an earlier attempt left -------------------------------------------------------------------------------------
def _written_before(
    table: MetadataTable, timeline: Timeline, requested_time: str, shares: list[Share]
) -> tuple[list[LogFile | None], list[str]]:
    """The log file that holds exactly each share, if there is one; and the paths of all others of that instant."""
    groups = {(share.file_slice.partition, share.file_slice.file_id): at for at, share in enumerate(shares)}
    slices = [share.file_slice for share in shares]
    # What an attempt with other records left; a partition that was dropped since has lost nothing.
    for partition in sorted(PREFIXES.keys() & set(table.partitions())):
        slices += [each for each in table.slices(timeline, partition) if (partition, each.file_id) not in groups]
    written: list[LogFile | None] = [None] * len(shares)
    others = []
    for file_slice in slices:
        at = groups.get((file_slice.partition, file_slice.file_id))
        expected = [] if at is None else [(block.content, block.header) for block in shares[at].blocks]
        for log, path in _logs_of(table, (file_slice,), requested_time):
            found = [(block.content, block.header) for block in read_blocks(table, file_slice, log)]
            if at is not None and found == expected and written[at] is None:
                written[at] = log
            else:
                others.append(path)
    return written, others


def _logs_of(table: MetadataTable, slices: tuple[Slice, ...], requested_time: str) -> list[tuple[LogFile, str]]:
    """
    The log files that one instant wrote, and their paths.

    Raises:
        RefusedError: A log file of layout 1 has blocks of other instants, too.
    """
    found = []
    for file_slice in slices:
        for log in file_slice.logs:
            path = file_slice.path(log.name)
            if not table.format.log_naming.tells_slice:
                if log.instant_time == requested_time:
                    found.append((log, path))
                continue
            times = {block.header.get(HeaderKey.INSTANT_TIME) for block in read_blocks(table, file_slice, log)}
            if requested_time in times and len(times) > 1:
                raise RefusedError(
                    f"{table.source(path)}: has blocks of several instants, among them {requested_time}, which has "
                    "to be rolled back; let Apache Hudi roll it back, or drop the metadata table with "
                    "hoodie.metadata.enable=false"
                )
            if requested_time in times:
                found.append((log, path))
    return found


def _unpublish(table: MetadataTable, timeline: Timeline, requested_time: str) -> Instant:
    """Make a completed delta commit inflight again."""
    for instant in timeline.all_states:
        if instant.requested_time == requested_time and instant.action is Action.DELTA_COMMIT and instant.is_completed:
            table.store.remove(instant)
    return Instant(requested_time, Action.DELTA_COMMIT, State.INFLIGHT)


def _withdraw(table: MetadataTable, timeline: Timeline, instant: Instant) -> bool:
    """Remove a delta commit with its log files; False, and nothing is done, if a compaction has merged it already."""
    time = instant.requested_time
    slices = tuple(file_slice for partition in table.partitions() for file_slice in table.slices(timeline, partition))
    logs = _logs_of(table, slices, time)
    if instant.is_completed:
        if _is_compacted(table, timeline, instant, {path for _, path in logs}):
            return False
        _unpublish(table, timeline, time)  # before its files: a reader must not find a completed commit without them
    for _, path in logs:
        table.storage.delete(path)
    Begun(table.store, attrs.evolve(instant, state=State.INFLIGHT)).remove()
    return True


def _is_compacted(table: MetadataTable, timeline: Timeline, instant: Instant, current: set[str]) -> bool:
    """Whether a compaction, completed or pending, covers the log files of the delta commit."""
    metadata = decode_commit(table.store.read(instant), table.source(table.store.path(instant)))
    for partition, stats in metadata.partition_to_write_stats.items():
        # A pending compaction counts like a completed one: its plan names the file, and whoever resumes it fails
        # without it.
        pending = table.pending_compactions(timeline, partition)
        for stat in stats:
            # Not among the current log files: a compaction has taken it in. Or a pending one will, from its stored
            # plan.
            if stat.path is not None and (stat.path not in current or stat.file_id in pending):
                return True
    return False

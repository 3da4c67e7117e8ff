"""
Which writes to roll back, whether that may be done, and what each of them left. Pure.

Source: rules/table-services B.2, B.3; Hudi ``BaseRollbackPlanActionExecutor``, ``MarkerBasedRollbackStrategy``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import attrs

from hudi_py.config.table import TableType
from hudi_py.errors import ConfigError, RefusedError
from hudi_py.model.files import join_path, parse_base_file, parse_log_file
from hudi_py.model.instant import Action, Instant
from hudi_py.model.records import CommitMetadata, InstantInfo, RollbackPlan, RollbackRequest
from hudi_py.services.rollback.before import Before
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.pairs import Service, judge
from hudi_py.versions.format import LogNaming

RUN_AGAIN = frozenset({Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING})
"""Pending services whose plan stays: they are run again, never rolled back for good."""

FileKey = tuple[str, str]
"""(partition path, file name)"""


@attrs.frozen(kw_only=True)
class Written:
    """
    What a write left.

    Args:
        own: Its own files: they are deleted.
        appended: Log files of layout 1 that stay and hold blocks of it, to their sizes in bytes.
    """

    own: frozenset[FileKey] = frozenset()
    appended: Mapping[FileKey, int] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class BlocksToUndo:
    """A slice of layout 1 that gets a rollback block, and the names of the log files that made it necessary."""

    partition_path: str
    file_id: str
    base_instant_time: str
    log_names: frozenset[str]

    @property
    def slice_key(self) -> tuple[str, str]:
        """File id and base instant."""
        return (self.file_id, self.base_instant_time)


def failed_writes(
    timeline: Timeline, table_type: TableType, *, clusterings: frozenset[str] = frozenset()
) -> tuple[Instant, ...]:
    """
    Pending writes to roll back, newest first (rules B-1, B-2, B-8).

    Args:
        clusterings: Requested times of pending layout-1 replacecommits that are clusterings: those are run again.
    """
    pending = timeline.table_commits(table_type).pending()
    return tuple(
        instant
        for instant in reversed(pending)
        if instant.action not in RUN_AGAIN and instant.requested_time not in clusterings
    )


def named_write(timeline: Timeline, requested_time: str) -> Instant:
    """
    The write of that time, completed or not.

    Raises:
        ConfigError: There is none on the active timeline.
    """
    for instant in timeline.writes:
        if instant.requested_time == requested_time:
            return instant
    raise ConfigError(
        f"{requested_time} is no commit of the active timeline; see hudi-py timeline (an archived one cannot be rolled "
        "back)"
    )


def check_named(timeline: Timeline, table_type: TableType, target: Instant) -> None:
    """
    Whether the completed commits and savepoints let the write be rolled back (rule B-16).

    What is pending can always be undone, but not beside a restore: nobody has seen it. A completed commit must be the
    last one, and no savepoint may hold it. What is pending beside it is judged by `Beside`.

    Raises:
        RefusedError: It may not; nothing was changed.
    """
    time = target.requested_time
    restores = timeline.pending(Action.RESTORE)
    if restores:
        pair = judge(Service.ROLLBACK, restores[0])
        raise RefusedError(f"rollback of {target} refused: {restores[0]} is pending: {pair.reason}")
    if target.is_pending:
        return
    savepoint = timeline.find(time, Action.SAVEPOINT)
    if savepoint is not None and savepoint.is_completed:
        raise RefusedError(
            f"rollback of {target} refused: it is savepointed; delete the savepoint first with hudi-py savepoint delete"
        )
    commits = timeline.table_commits(table_type)
    later = [i for i in commits.completed() if i.requested_time > time]
    if later:
        raise RefusedError(
            f"rollback of {target} refused: {later[-1]} came after it; roll back the newest commit first, or restore "
            "to a savepoint"
        )


def check_not_the_end(kept: Timeline, archived: Timeline, target: Instant, ways_back: Callable[[], str]) -> None:
    """
    Refuse to undo a commit behind which the last ones are archived (not checked by Hudi).

    What was written after the last commit of the active timeline counts as failed. So without the target no reader
    would see the rows of archived commits that are newer than all active ones, and none at all where it is the only
    active one.

    Args:
        kept: The active timeline without the target.
        archived: The archived timeline.
        target: The completed commit.
        ways_back: Which state can be gone back to instead, for the message.

    Raises:
        RefusedError: There are such archived commits; nothing was changed.
    """
    last = kept.committed.instants[-1].requested_time if kept.committed.instants else ""
    hidden = [i for i in archived.writes.completed() if last < i.requested_time < target.requested_time]
    if hidden:
        older = "those that stay are older, and savepointed" if last else "it is the only one on the active timeline"
        raise RefusedError(
            f"rollback of {target} refused: {older}, and without it the rows of the archived commits, the last is "
            f"{hidden[-1]}, would be out of sight; nothing was changed. {ways_back()}"
        )


def check_state_before(target: Instant, before: Before, ways_back: str) -> None:
    """
    Refuse where what was there right before the commit is not whole any more: rows would be lost (not checked by Hudi).

    Args:
        target: The completed commit.
        before: What was there.
        ways_back: Which state can be gone back to instead, for the message.

    Raises:
        RefusedError: Files of that state are deleted, or would not be shown; nothing was changed.
    """
    if before.lost:
        raise RefusedError(
            f"rollback of {target} refused: the rows of before cannot come back, for {len(before.lost)} files that "
            f"held them are gone, the first is {before.lost[0]}: a clean deleted them; nothing was changed. {ways_back}"
        )
    if before.hidden:
        raise RefusedError(
            f"rollback of {target} refused: the rows of before would stay out of sight, for the commits that wrote "
            f"{len(before.hidden)} files of theirs, the first is {before.hidden[0]}, are archived behind a savepoint; "
            f"nothing was changed. {ways_back}"
        )


def check_no_logs_above(target: Instant, names: Mapping[str, Collection[str]]) -> None:
    """
    Refuse to take a compaction of layout 1 from under log files: they would hide the slice below (not checked by Hudi).

    Args:
        target: The completed compaction.
        names: Partition path to the files that are there now.

    Raises:
        RefusedError: There are such log files, of delta commits that were rolled back since.
    """
    for partition, there in names.items():
        for log in filter(None, map(parse_log_file, there)):
            if log.instant_time == target.requested_time:
                raise RefusedError(
                    f"rollback of {target} refused: {join_path(partition, log.name)} lies on what it wrote; restore to "
                    "a savepoint instead"
                )


def files_of_commit(metadata: CommitMetadata) -> set[FileKey]:
    """Partition path and name of everything a completed commit wrote, change logs included."""
    found = set()
    for partition, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            for path in (stat.path, *(stat.cdc_stats or {})):
                if path is not None:
                    found.add((partition, path.rpartition("/")[2]))
    return found


def rollback_plan(target: InstantInfo, written: Written, root: str) -> RollbackPlan:
    """
    The plan that undoes what a write left: one request per file to delete, and in layout 1 one per slice that gets a
    rollback block, as in Hudi.

    Args:
        target: The write, as rollbacks name it.
        written: All of it.
        root: Base path of the table: plans hold full paths, and bare names of log files that stay.
    """
    requests = []
    for partition, name in sorted(written.own):
        parsed = parse_base_file(name) or parse_log_file(name)
        requests.append(
            RollbackRequest(
                partition_path=partition,
                file_id="" if parsed is None else parsed.file_id,
                latest_base_instant=target.requested_time,
                files_to_be_deleted=(f"{root}/{join_path(partition, name)}",),
            )
        )
    slices: dict[tuple[str, str, str], dict[str, int]] = {}
    for (partition, name), size in sorted(written.appended.items()):
        log = parse_log_file(name)
        assert log is not None  # or it would not stay
        slices.setdefault((partition, log.file_id, log.instant_time), {})[name] = size
    for (partition, file_id, base), logs in slices.items():
        requests.append(
            RollbackRequest(
                partition_path=partition, file_id=file_id, latest_base_instant=base, log_blocks_to_be_deleted=logs
            )
        )
    return RollbackPlan(instant_to_rollback=target, rollback_requests=tuple(requests))


def blocks_to_undo(plan: RollbackPlan, target_time: str, log_naming: LogNaming) -> tuple[BlocksToUndo, ...]:
    """
    The slices that a stored plan appends rollback blocks to.

    Apache Hudi's plans by listing name full paths, and the partition's folder where they know the file group only.

    Raises:
        RefusedError: It asks for what cannot be: blocks in layout 2, or files of other slices.
    """
    found = []
    for request in plan.rollback_requests:
        if not request.log_blocks_to_be_deleted:
            continue
        key = (request.file_id or "", request.latest_base_instant or "")
        names = {path.rpartition("/")[2] for path in request.log_blocks_to_be_deleted}
        logs = {name: parse_log_file(name) for name in names}
        strange = [n for n, log in logs.items() if log is not None and (log.file_id, log.instant_time) != key]
        if not log_naming.tells_slice or "" in key or strange or key[1] >= target_time:
            raise RefusedError(
                f"the rollback plan of {target_time} wants rollback blocks in {strange or sorted(names)} of file group "
                f"{key[0]!r}, slice {key[1]!r}, which is not possible here; nothing was changed"
            )
        found.append(
            BlocksToUndo(
                partition_path=request.partition_path,
                file_id=key[0],
                base_instant_time=key[1],
                log_names=frozenset(name for name, log in logs.items() if log is not None),
            )
        )
    return tuple(found)


def target_info(instant: Instant) -> InstantInfo:
    """A write as rollback plans name it: by its completed action, unless its plan stays and is run again."""
    action = instant.action if instant.is_pending else instant.comparable_action
    return InstantInfo(instant.requested_time, action.value)


def belongs_to(name: str, instant_time: str, *, logs: bool = True) -> bool:
    """
    Whether a data file's name carries the instant.

    Args:
        name: Of the file.
        instant_time: Of the write.
        logs: Log files too; never with a compaction of layout 1, whose time later delta commits put into theirs.
    """
    parsed = parse_base_file(name) or (parse_log_file(name) if logs else None)
    return parsed is not None and parsed.instant_time == instant_time


def appended_to(name: str, instant_time: str) -> bool:
    """Whether a delta commit of layout 1 may have appended to a log file of that name: it lies on an older slice."""
    log = parse_log_file(name)
    return log is not None and not log.is_cdc and log.instant_time < instant_time

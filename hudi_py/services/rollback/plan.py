"""
Decides which writes to roll back and whether that is allowed, and makes the plans. Pure.

Source: rules/table-services B.2, B.3; Hudi ``BaseRollbackPlanActionExecutor``, ``MarkerBasedRollbackStrategy``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import attrs

from hudi_py.config.table import TableType
from hudi_py.errors import ConfigError, RefusedError
from hudi_py.model.files import join_path, parse_base_file, parse_data_file, parse_log_file
from hudi_py.model.instant import Action, Instant
from hudi_py.model.records import CommitMetadata, InstantInfo, RollbackPlan, RollbackRequest
from hudi_py.model.words import counted
from hudi_py.services.rollback.before import Before
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.pairs import Service, judge
from hudi_py.versions.format import LogNaming

RUN_AGAIN = frozenset({Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING})
"""Table services whose plan is kept: their service runs them again, so only an attempt is rolled back."""

BEFORE_UPGRADE = (
    "was begun before the table was upgraded from version 6 and wrote into log files of other writes, as {}, out of "
    "which nothing can be taken in this version"
)
UNDO_BEFORE_UPGRADE = (
    "let Apache Hudi downgrade the table to version 6, roll the write back there, and upgrade it again"
)

FileKey = tuple[str, str]
"""(partition path, file name)"""


@attrs.frozen(kw_only=True)
class Written:
    """
    What a write left behind.

    Args:
        own: Its own files, which are deleted.
        appended: Log files of layout 1 with blocks of it, which are kept, to their sizes in bytes.
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
        clusterings: Requested times of pending layout-1 replacecommits that are clusterings, which are run again.
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
        ConfigError: The active timeline has none.
    """
    for instant in timeline.writes:
        if instant.requested_time == requested_time:
            return instant
    raise ConfigError(
        f"{requested_time} is not a commit of the active timeline; see hudi-py timeline (archived ones cannot be "
        "rolled back)"
    )


def check_named(timeline: Timeline, table_type: TableType, target: Instant) -> None:
    """
    Check that completed commits, savepoints and restores allow the rollback of a write (rule B-16).

    A pending write can be undone unless a restore is pending: no reader has seen it. A completed commit must be the
    last one, and must not have a savepoint. Other pending instants are judged by `Beside`.

    Raises:
        RefusedError: It is not allowed; nothing was changed.
    """
    time = target.requested_time
    restores = timeline.pending(Action.RESTORE)
    if restores:
        pair = judge(Service.ROLLBACK, restores[0])
        raise RefusedError(f"rollback of {target} refused: {restores[0]} is pending: {pair.reason}")
    # No reader has seen it, and a savepoint is of completed commits only.
    if target.is_pending:
        return
    savepoint = timeline.find(time, Action.SAVEPOINT)
    if savepoint is not None and savepoint.is_completed:
        raise RefusedError(
            f"rollback of {target} refused: it is savepointed; delete the savepoint first with hudi-py savepoint delete"
        )
    commits = timeline.table_commits(table_type)
    # Only the newest one: later commits may build on what it wrote.
    later = [i for i in commits.completed() if i.requested_time > time]
    if later:
        raise RefusedError(
            f"rollback of {target} refused: {later[-1]} came after it; roll back the newest commit first, or restore "
            "to a savepoint"
        )


def check_not_the_end(last: str, archived: Collection[str], target: Instant, ways_back: Callable[[], str]) -> None:
    """
    Refuse to undo a commit if archived commits would then be the newest ones (not checked by Hudi).

    To readers, files that are newer than the last commit of the active timeline are of failed writes. So without the
    target they would not see rows of archived commits that are newer than all active ones; if it is the only active
    one, they would see none at all.

    Args:
        last: Requested time of the newest commit that would stay active, ``""`` for none.
        archived: Requested times of the archived commits between that and the target.
        target: The completed commit.
        ways_back: States that can be restored instead, for the message.

    Raises:
        RefusedError: There are such archived commits; nothing was changed.
    """
    if archived:
        older = "the other active commits are older, with savepoints" if last else "it is the only active commit"
        raise RefusedError(
            f"rollback of {target} refused: {older}, and without it the rows of archived commits, the last of them "
            f"{max(archived)}, would be hidden from readers; nothing was changed. {ways_back()}"
        )


def check_state_before(target: Instant, before: Before, ways_back: str) -> None:
    """
    Refuse if the state before the commit is no longer complete: rows would be lost (not checked by Hudi).

    Args:
        target: The completed commit.
        before: The state before it.
        ways_back: States that can be restored instead, for the message.

    Raises:
        RefusedError: Files of that state are deleted, or readers would not see them; nothing was changed.
    """
    if before.lost:
        raise RefusedError(
            f"rollback of {target} refused: the rows before it cannot be restored without the "
            f"{counted(len(before.lost), 'missing file')} with them, the first is {before.lost[0]}: a clean deleted "
            f"them; nothing was changed. {ways_back}"
        )
    if before.hidden:
        raise RefusedError(
            f"rollback of {target} refused: the rows before it would be hidden from readers, for the commits that "
            f"wrote {counted(len(before.hidden), 'file')} with them, first {before.hidden[0]}, are archived after a "
            f"savepoint; nothing was changed. {ways_back}"
        )


def check_no_logs_above(target: Instant, names: Mapping[str, Collection[str]]) -> None:
    """
    Refuse to undo a compaction of layout 1 that has log files: they would hide the slice below (not checked by Hudi).

    Args:
        target: The completed compaction.
        names: Partition path to names of its files.

    Raises:
        RefusedError: There are such log files, of delta commits that were rolled back since.
    """
    for partition, there in names.items():
        for log in filter(None, map(parse_log_file, there)):
            if log.instant_time == target.requested_time:
                raise RefusedError(
                    f"rollback of {target} refused: {join_path(partition, log.name)} belongs to a base file of "
                    "it; restore to a savepoint instead"
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
        written: What it left.
        root: Base path of the table: plans have full paths, and bare names of log files that are kept.
    """
    requests = []
    for partition, name in sorted(written.own):
        parsed = parse_data_file(name)
        requests.append(
            RollbackRequest(
                partition_path=partition,
                file_id="" if parsed is None else parsed.file_id,
                # For files that are deleted Hudi writes the time of the undone write here (rules/table-services J.4).
                latest_base_instant=target.requested_time,
                files_to_be_deleted=(f"{root}/{join_path(partition, name)}",),
            )
        )
    # One request for each slice, as Hudi makes them: one rollback block undoes all its log files (B.3, grouping).
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

    Plans that Apache Hudi made from a listing have full paths, or the partition's folder if only the file group is
    known.

    Raises:
        RefusedError: It asks for blocks in layout 2, as plans from before an upgrade do, or in files of other slices.
    """
    found = []
    for request in plan.rollback_requests:
        if not request.log_blocks_to_be_deleted:
            continue
        key = (request.file_id or "", request.latest_base_instant or "")
        names = {path.rpartition("/")[2] for path in request.log_blocks_to_be_deleted}
        logs = {name: parse_log_file(name) for name in names}
        strange = [n for n, log in logs.items() if log is not None and (log.file_id, log.instant_time) != key]
        if not log_naming.tells_slice and any(appended_to(name, target_time) for name in names):
            raise RefusedError(
                f"the write {target_time} {BEFORE_UPGRADE.format(min(names))}; so its rollback, planned before, is not "
                f"carried out; nothing was changed, and no reader sees its rows; {UNDO_BEFORE_UPGRADE}"
            )
        # Such a plan was not made for this table, and a block in the wrong slice would hide rows.
        if not log_naming.tells_slice or "" in key or strange or key[1] == target_time:
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
    """A write as rollback plans name it: by its completed action, or its pending one if it is run again."""
    action = instant.action if instant.is_pending else instant.comparable_action
    return InstantInfo(instant.requested_time, action.value)


def belongs_to(name: str, instant_time: str, *, logs: bool = True) -> bool:
    """
    Whether the name of a data file has the time of a write.

    Args:
        name: Name of the file.
        instant_time: Requested time of the write.
        logs: Also log files. Never for a compaction of layout 1: log files of later delta commits have its time.
    """
    parsed = parse_base_file(name) or (parse_log_file(name) if logs else None)
    return parsed is not None and parsed.instant_time == instant_time


def appended_to(name: str, instant_time: str) -> bool:
    """
    Whether a delta commit of layout 1 may have appended to a log file of that name: one of another write's slice.

    Of an older one, unless that write was requested later and completed before the delta commit chose its slices.
    """
    log = parse_log_file(name)
    return log is not None and not log.is_cdc and log.instant_time != instant_time

"""
Plans a log compaction: which file slices, and why not the others; whether a stored plan still holds. Pure.

Source: rules/table-services E-6, E-25 to E-28; Hudi ``HoodieLogCompactionPlanGenerator``,
``ScheduleCompactionActionExecutor.needLogCompact``, ``BaseHoodieTableServiceClient.logCompact``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import attrs

from hudi_py.config.compaction import CompactionConfig
from hudi_py.fsview.build import GroupKey, PartitionView, ViewContext, latest_slices
from hudi_py.fsview.foreign import why_not_rewritten
from hudi_py.model.files import FileSlice
from hudi_py.model.instant import Action
from hudi_py.model.records import CompactionOperation, CompactionPlan, Strategy
from hudi_py.model.words import counted
from hudi_py.services.compaction.plan import LeftOut, Outlook, operation_of, reason_against
from hudi_py.services.compaction.policy import Due, delta_commits_since
from hudi_py.timeline.timeline import Timeline

STRATEGY: Final = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"
"""What Apache Hudi names in each plan, also since 1.1, which has no such class any more."""


LEFT_OUT_VALUES: Final = (
    "leave out values or are merged by a payload class (hoodie.table.partial.update.mode, "
    "hoodie.compaction.payload.class), which only a compaction does"
)
DELETED_TWICE: Final = (
    "its log files delete keys, and Hudi 1.0 does not read them beside a merged block that deletes these keys again"
)


@attrs.frozen(kw_only=True)
class Blocks:
    """
    The log blocks of a file slice.

    Args:
        count: Number of data and delete blocks that count.
        has_parts: Whether some update only some columns.
        has_copies: Whether they change all rows of a key that the base file holds several times: by their positions,
            which a merged block does not have.
        has_deletes: Whether there is a delete block.
        is_merged: Whether a log compaction wrote all of them: of many rows it writes many blocks.
    """

    count: int
    has_parts: bool = False
    has_copies: bool = False
    has_deletes: bool = False
    is_merged: bool = False


def judge_due(timeline: Timeline, config: CompactionConfig, merged: Iterable[str], *, by_commits: bool) -> Due:
    """
    Decide whether a log compaction may be due (E-26).

    Args:
        timeline: The active timeline.
        config: Settings of compaction.
        merged: Requested times of completed log compactions.
        by_commits: Whether that many delta commits must have come since the last compaction or log compaction.
    """
    deltas = timeline.completed(Action.DELTA_COMMIT)
    last = max((each.requested_time for each in timeline.completed(Action.COMMIT)), default=None)
    if last is None and not deltas:
        return Due(is_due=False, reason="there is no delta commit")
    if by_commits:
        for instant in timeline.pending(Action.LOG_COMPACTION):
            return Due(is_due=False, reason=f"{instant} is pending")
        # Its own commit counts, too: it completes after its requested time.
        for since in (last, max(merged, default=None)):
            count = len(delta_commits_since(deltas, since, by_completion=True))
            if count < config.log_blocks_min:
                after = "the first one" if since is None else since
                why = f"{counted(count, 'delta commit')} since {after}, {config.log_blocks_min} are needed"
                return Due(is_due=False, reason=why)
    return Due(is_due=True, reason="")


def plan_log_compaction(
    context: ViewContext,
    partitions: Iterable[PartitionView],
    config: CompactionConfig,
    blocks_of: Callable[[FileSlice], Blocks],
    *,
    counts_files: bool,
    has_extras: bool,
    takes_deletes: bool,
) -> Outlook:
    """
    Plan the log compaction of a table; the caller has decided that it is due.

    Args:
        context: View for planning, with pending compactions and clusterings.
        partitions: All partitions, with sizes of files.
        config: Settings of compaction.
        blocks_of: Reads which log blocks of a slice count.
        counts_files: Whether that many log files suffice, whatever is in them (Hudi 1.1 and later).
        has_extras: Whether plans of the table's version have the fields that came with Hudi 1.0.
        takes_deletes: Whether readers of the table's release read a slice in which a key is deleted twice.
    """
    operations: dict[GroupKey, CompactionOperation] = {}
    left: list[LeftOut] = []
    size = 0
    for partition in partitions:
        for file_slice in latest_slices(context, partition):
            key = (file_slice.partition_path, file_slice.file_id)
            logs = tuple(log for log in file_slice.log_files if not log.is_cdc)
            if not logs:
                continue
            reason = reason_against(context, key, with_log_compactions=True) or why_not_rewritten(file_slice)
            if reason is None:
                blocks = blocks_of(file_slice)
                reason = why_not_merged(blocks, takes_deletes=takes_deletes) or _too_few(
                    len(logs), blocks, config.log_blocks_min, counts_files=counts_files
                )
            if reason is None:
                operations[key] = operation_of(file_slice, config.max_file_bytes)
                size += sum(log.size_bytes or 0 for log in logs)
            else:
                left.append(LeftOut(partition_path=key[0], file_id=key[1], reason=reason))
    # A fixed order, whatever the listing returned.
    plan = CompactionPlan(
        operations=tuple(operations[key] for key in sorted(operations)),
        extra_metadata={} if has_extras else None,
        strategy=Strategy(class_name=STRATEGY, strategy_params={}),
        preserve_hoodie_metadata=True,
        missing_schedule_partitions=() if has_extras else None,
    )
    return Outlook(
        plan=plan,
        is_due=True,
        reason="" if operations else "no file slice has enough log blocks",
        left=tuple(sorted(left, key=lambda each: (each.partition_path, each.file_id))),
        bytes_to_read=size,
    )


def why_not_merged(blocks: Blocks, *, takes_deletes: bool) -> str | None:
    """Return why log blocks are not merged among themselves; *takes_deletes* as for `plan_log_compaction`."""
    if blocks.has_parts:
        return "its log files have updates of some columns, which only a compaction merges"
    if blocks.has_copies:
        return "its base file holds a key several times, and a merged block would change the first row only"
    return DELETED_TWICE if blocks.has_deletes and not takes_deletes else None


def _too_few(files: int, blocks: Blocks, minimum: int, *, counts_files: bool) -> str | None:
    if not blocks.count:
        return "none of its log blocks counts"
    if blocks.is_merged:
        return "a log compaction has merged all of its log blocks"
    if blocks.count >= minimum or (counts_files and files >= minimum):
        return None
    return f"{counted(blocks.count, 'log block')}, {minimum} are needed"


def why_outdated(
    plan: CompactionPlan,
    requested_time: str,
    timeline: Timeline,
    latest: Mapping[GroupKey, FileSlice],
    *,
    by_slice: bool,
) -> str | None:
    """
    Return why a stored plan must not be carried out any more; None if it may.

    The merged block takes the place of the newest block that it stands for, but readers of Hudi 0.15 and 1.0 take it
    where its file is in the order of names, unless they are told otherwise. So no other block may lie before it there.

    Args:
        plan: The stored plan.
        requested_time: Its requested time.
        timeline: The timeline.
        latest: The latest slice of each live group of its partitions.
        by_slice: Whether names of log files say their slice (layout 1), and number them in the order they came.
    """
    for instant in timeline.instants:
        if instant.action in (Action.COMMIT, Action.COMPACTION) and instant.requested_time > requested_time:
            return f"{instant} is later, and merges its log files itself"
    seen: set[GroupKey] = set()
    for operation in plan.operations:
        key = (operation.partition_path or "", operation.file_id or "")
        where = f"file group {key[1]} in partition {key[0]!r}"
        # Only the last of two merged blocks for the same blocks would count.
        if key in seen:
            return f"its plan has {where} twice"
        seen.add(key)
        found = latest.get(key)
        if found is None or found.base_instant_time != operation.base_instant_time:
            return f"{where} has been rewritten since"
        logs = {log.name: log.instant_time for log in found.log_files if not log.is_cdc}
        planned = {path.rpartition("/")[2] for path in operation.delta_file_paths}
        if not planned <= logs.keys():
            return f"{where} has lost {min(planned - logs.keys())} since"
        for name in sorted(logs.keys() - planned):
            if by_slice or logs[name] < requested_time:
                return f"{where} has {name} since"
    return None

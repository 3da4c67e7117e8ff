"""
Plans a compaction: which file slices, and why not the others. Pure.

Source: rules/table-services E-6 to E-11; Hudi ``BaseHoodieCompactionPlanGenerator``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Final

import attrs

from hudi_py.config.compaction import CompactionConfig
from hudi_py.fsview.build import GroupKey, PartitionView, ViewContext, latest_slices
from hudi_py.fsview.foreign import why_not_rewritten
from hudi_py.model.files import FileSlice
from hudi_py.model.instant import Action
from hudi_py.model.records import LOG_BYTES, CompactionOperation, CompactionPlan
from hudi_py.model.shown import Shown
from hudi_py.services.compaction import policy
from hudi_py.services.rewriting.explain import GroupExplanation, explain_groups
from hudi_py.timeline.timeline import Timeline

_BYTES_PER_MEGABYTE: Final = 1024 * 1024
INGESTION: Final = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
"""Actions of writes; a replacecommit may be a clustering, too."""


@attrs.frozen(kw_only=True)
class LeftOut:
    """
    A file slice with log files that is not compacted, and why.

    Args:
        partition_path: Its partition.
        file_id: Its file id.
        reason: Why, in words.
        is_limit: Whether only the limit of the plan leaves it for the next one.
    """

    partition_path: str
    file_id: str
    reason: str
    is_limit: bool = False


@attrs.frozen(kw_only=True, repr=False)
class Outlook(Shown):
    """
    What a compaction would do now.

    Args:
        plan: As it would be stored; without operations if nothing would be scheduled.
        is_due: Whether the trigger asks for a compaction.
        reason: Why, or why not.
        left: What is left out, by partition and file id.
        bytes_to_read: Bytes of the files in the plan.
    """

    plan: CompactionPlan
    is_due: bool
    reason: str
    left: tuple[LeftOut, ...] = ()
    bytes_to_read: int = 0

    def _facts(self) -> Mapping[str, object]:
        done = {"would_schedule": self.would_schedule, "operations": len(self.plan.operations)}
        return done | {"bytes_to_read": self.bytes_to_read, "left": len(self.left), "reason": self.reason}

    def _listed(self) -> Iterable[tuple[object, ...]]:
        return (
            (operation.partition_path, operation.file_id, len(operation.delta_file_paths))
            for operation in self.plan.operations
        )

    @property
    def left_by_limits(self) -> int:
        """Number of file slices that the next plan has, because this one is full."""
        return sum(each.is_limit for each in self.left)

    @property
    def would_schedule(self) -> bool:
        """Whether a compaction would be scheduled."""
        return bool(self.plan.operations)


def nothing(reason: str, *, is_due: bool = False) -> Outlook:
    """Return the outlook of a compaction that is not scheduled."""
    return Outlook(plan=CompactionPlan(), is_due=is_due, reason=reason)


def blocked_by(timeline: Timeline, clusterings: Iterable[str], *, tells_slice: bool) -> str | None:
    """
    Return why nothing can be planned beside what is pending; None if nothing stands in the way.

    In layout 1 a log file's name says its slice: what a pending write appends would stay behind (E-3).

    Args:
        timeline: The active timeline.
        clusterings: Requested times of pending clusterings, which write no log files.
        tells_slice: Whether names of log files say their slice (layout 1).
    """
    for instant in timeline.pending(Action.RESTORE):
        return f"{instant} is pending; finish it first with hudi-py recover"
    if not tells_slice:
        return None
    # In layout 1 a clustering is a replacecommit like any other, and writes no log files.
    known = frozenset(clusterings)
    for instant in timeline.pending(*INGESTION):
        if instant.requested_time not in known:
            return (
                f"{instant} is pending, and its log files would be left behind; wait until it is completed, or roll it "
                "back with hudi-py recover if its process has ended"
            )
    return None


def plan_compaction(
    context: ViewContext,
    partitions: Iterable[PartitionView],
    config: CompactionConfig,
    today: date,
    *,
    takes_first: bool,
    has_extras: bool,
) -> Outlook:
    """
    Plan the compaction of a table; the caller has decided that it is due.

    Args:
        context: View for planning, with pending compactions and clusterings.
        partitions: All partitions, with sizes of files.
        config: Settings of compaction.
        today: For strategies that choose by date.
        takes_first: See `policy.choose`.
        has_extras: Whether plans of the table's version have the fields that came with Hudi 1.0.

    Raises:
        ConfigError: See `policy.choose`.
    """
    candidates: dict[GroupKey, CompactionOperation] = {}
    sizes: dict[GroupKey, int] = {}
    left: list[LeftOut] = []
    for partition in partitions:
        for file_slice in latest_slices(context, partition):
            key = (file_slice.partition_path, file_slice.file_id)
            # Change logs hold no rows of a snapshot (rules/data-files 9.4): a slice with nothing else has nothing to
            # merge.
            logs = tuple(log for log in file_slice.log_files if not log.is_cdc)
            reason = (reason_against(context, key) or why_not_rewritten(file_slice)) if logs else None
            if reason is not None:
                left.append(LeftOut(partition_path=key[0], file_id=key[1], reason=reason))
            elif logs:
                candidates[key] = operation_of(file_slice, config.max_file_bytes)
                sizes[key] = attrs.evolve(file_slice, log_files=logs).size_bytes
    # A fixed order, whatever the listing returned: strategies sort stably, so plans of the same table are equal.
    ordered = [candidates[key] for key in sorted(candidates)]
    chosen = policy.choose(ordered, config, today, takes_first=takes_first)
    beyond = {(each.partition_path, each.file_id) for each in chosen.beyond}
    left += [
        LeftOut(
            partition_path=each.partition_path or "",
            file_id=each.file_id or "",
            reason=reason,
            is_limit=(each.partition_path, each.file_id) in beyond,
        )
        for each, reason in chosen.left
    ]
    # For the next incremental planning of Hudi (rule E-5), which would not look into these partitions otherwise.
    missing = tuple(sorted({each.partition_path or "" for each, _ in chosen.left}))
    plan = CompactionPlan(
        operations=chosen.operations,
        extra_metadata={} if has_extras else None,
        missing_schedule_partitions=missing if has_extras else None,
    )
    return Outlook(
        plan=plan,
        is_due=True,
        reason="" if plan.operations else "no file slice is left to compact",
        left=tuple(sorted(left, key=lambda each: (each.partition_path, each.file_id))),
        bytes_to_read=sum(
            sizes[operation.partition_path or "", operation.file_id or ""] for operation in plan.operations
        ),
    )


def explain_outlook(outlook: Outlook, slices: Iterable[FileSlice]) -> tuple[GroupExplanation, ...]:
    """Explain why some slices are in a plan of a compaction or log compaction, or are not."""
    operations = ((each.partition_path or "", each.file_id or "") for each in outlook.plan.operations)
    # Plans of log compactions name what carries them out, as in Hudi.
    what = (
        "its log files become part of a new base file" if outlook.plan.strategy is None else "its log blocks become one"
    )
    planned = dict.fromkeys(operations, what)
    left = {(each.partition_path, each.file_id): each.reason for each in outlook.left}

    def otherwise(file_slice: FileSlice) -> str:
        if all(log.is_cdc for log in file_slice.log_files):
            return "it has no log files"
        return outlook.reason

    return explain_groups(slices, planned, left, otherwise)


def operation_of(file_slice: FileSlice, max_file_bytes: int) -> CompactionOperation:
    """Return the operation that compacts a slice, with the metrics that strategies compare (E-8)."""
    base = file_slice.base_file
    logs = tuple(log for log in file_slice.log_files if not log.is_cdc)
    log_bytes = sum(log.size_bytes or 0 for log in logs)
    base_bytes = 0 if base is None else base.size_bytes or 0
    # Cut to whole megabytes, as Hudi does: the limit of a strategy is counted in these numbers.
    read = (base_bytes + log_bytes) // _BYTES_PER_MEGABYTE
    write = (max_file_bytes if base is None else base_bytes) // _BYTES_PER_MEGABYTE
    return CompactionOperation(
        base_instant_time=file_slice.base_instant_time,
        file_id=file_slice.file_id,
        partition_path=file_slice.partition_path,
        delta_file_paths=tuple(log.name for log in sorted(logs, key=lambda log: log.order)),
        data_file_path=None if base is None else base.name,
        metrics={
            policy.LOG_FILES: float(len(logs)),
            policy.IO_MB: float(read + write),
            policy.IO_READ_MB: float(read),
            LOG_BYTES: float(log_bytes),
            policy.IO_WRITE_MB: float(write),
        },
    )


def reason_against(context: ViewContext, key: GroupKey, *, with_log_compactions: bool = False) -> str | None:
    """
    Return why a group is left out, whatever strategies say (E-6); None if nothing stands in the way.

    Args:
        context: View for planning.
        key: Partition path and file id.
        with_log_compactions: Whether a pending log compaction does. A compaction takes its place: it merges the same
            log files, and a log compaction gives way to a later compaction (E-25).
    """
    pending = context.pending_compactions.get(key)
    if pending is not None and (with_log_compactions or not pending.is_log_compaction):
        word = "log compaction" if pending.is_log_compaction else "compaction"
        return f"it is in the pending {word} {pending.instant_time}"
    clustering = context.pending_clustering.get(key)
    return None if clustering is None else f"it is in the pending clustering {clustering}"

"""
Carries out a stored plan of a compaction: each file slice becomes one new base file.

Source: rules/table-services E-21 to E-23, B-25; Hudi ``HoodieCompactor``, ``RunCompactionActionExecutor``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import attrs

from hudi_py.errors import CorruptMetadata
from hudi_py.fsview.build import ViewContext
from hudi_py.fsview.listing import Listing
from hudi_py.model.files import FileSlice, join_path, parse_base_file, parse_log_file
from hudi_py.model.instant import Instant
from hudi_py.model.records import CompactionOperation, CompactionPlan
from hudi_py.txn.commit import cancelling


def why_not_served(plan: CompactionPlan) -> str | None:
    """Return why hudi_py does not carry a stored plan out; None if it does."""
    # Such plans name a class that carries them out (log compaction does), and it may do more than merge slices.
    if plan.strategy is not None:
        name = plan.strategy.class_name
        return f"is carried out by the Java class {name}, which may do more than merge log files with base files"
    for operation in plan.operations:
        if operation.bootstrap_file_path:
            return f"has the bootstrapped file {operation.bootstrap_file_path}"
    return None


def planned_slices(
    plan: CompactionPlan,
    instant: Instant,
    listing: Listing,
    context: ViewContext,
    source: str,
) -> tuple[FileSlice, ...]:
    """
    Return the slices that a plan names.

    A slice is taken with all log files that readers find below the compaction, also with those that the plan lacks.
    Without a lock a write may have added one while the plan was made, or two processes may have planned the same slice
    and a write may have relied on the earlier plan. Below the new base file nobody would read them any more.

    Args:
        plan: The stored plan, which is served.
        instant: The compaction.
        listing: Of the table's files, with sizes.
        context: View of the table. Of replaced file groups, the clean may have deleted the files (A-47): then nobody
            reads them.
        source: Where the table is, for messages.

    Raises:
        CorruptMetadata: A planned file is missing, or the plan is damaged: rows would be lost, or be there twice.
    """
    damaged = partial(_damaged, source, instant)
    sizes: dict[str, dict[str, int | None]] = {}
    found = []
    seen: set[tuple[str, str | None]] = set()
    for operation in plan.operations:
        partition = operation.partition_path or ""
        # Two new base files of one time: which of them readers take is chance.
        if (partition, operation.file_id) in seen:
            raise damaged(f"it has file group {operation.file_id} in partition {partition!r} twice")
        seen.add((partition, operation.file_id))
        if partition not in sizes:
            sizes[partition] = {e.name: e.size_bytes for e in listing.partition(partition, details=True)}
        each = _slice(operation, sizes[partition], damaged)
        # Names of log files tell their slice in layout 1: rows of an older one are in the base file, or are outdated.
        if context.log_naming.tells_slice and any(log.instant_time != each.base_instant_time for log in each.log_files):
            raise damaged(f"{operation.file_id} has log files of another slice")
        missing = [file.name for file in each.files if file.name not in sizes[partition]]
        # No reader opens a replaced group, so its rows need no new base file.
        if missing and (partition, each.file_id) in context.replaced:
            continue
        if missing:
            raise CorruptMetadata(
                f"{source}/{join_path(partition, missing[0])} is missing, and {instant} needs it; nothing was "
                "rewritten; put the file back from a copy of the table"
            )
        wrong = _wrong_base(each, sizes[partition], context)
        if wrong is not None:
            raise damaged(f"{join_path(partition, each.file_id)} {wrong}")
        found.append(_with_all_logs(each, instant.requested_time, sizes[partition], context))
    return tuple(found)


def _wrong_base(planned: FileSlice, names: Iterable[str], context: ViewContext) -> str | None:
    """
    Return what is wrong with the base file of a planned slice, if its rows would be lost, or older ones come back.

    Where a plan has no base file, a completed one of a later time was written from the same log files: by a compaction
    that another process planned, too.
    """
    if planned.base_file is not None:
        is_its_own = planned.base_file.instant_time == planned.base_instant_time
        return None if is_its_own else f"is of {planned.base_instant_time or 'no time'}, with {planned.base_file.name}"
    for name in names:
        base = parse_base_file(name) if name.startswith(f"{planned.file_id}_") else None
        if base is None or base.instant_time > planned.base_instant_time:
            continue
        if context.is_completed(base.instant_time):
            return f"leaves out {name}, whose rows would be lost"
    return None


def _with_all_logs(planned: FileSlice, until: str, sizes: Mapping[str, int | None], context: ViewContext) -> FileSlice:
    logs = {log.name: log for log in planned.log_files}
    for name, size in sizes.items():
        if name not in logs and name.startswith(f".{planned.file_id}_"):
            log = parse_log_file(name, size)
            # Change logs hold no rows of the table.
            if log is None or log.is_cdc:
                continue
            # What decides which slice a log file lies on, see `hudi_py.fsview.build`.
            time = (
                log.instant_time if context.log_naming.tells_slice else context.completion_times.get(log.instant_time)
            )
            if time is not None and planned.base_instant_time <= time < until:
                logs[name] = log
    return attrs.evolve(planned, log_files=tuple(sorted(logs.values(), key=lambda log: log.order)))


def _damaged(source: str, instant: Instant, what: str) -> CorruptMetadata:
    return CorruptMetadata(
        f"{source}: the plan of {instant} is damaged: {what}; nothing was rewritten; withdraw it with "
        f"{cancelling(source, instant)}"
    )


def _slice(
    operation: CompactionOperation, sizes: Mapping[str, int | None], damaged: Callable[[str], CorruptMetadata]
) -> FileSlice:
    name = (operation.data_file_path or "").rpartition("/")[2]
    base = parse_base_file(name, sizes.get(name)) if name else None
    # Version 1 of the plan has full paths (rules/timeline 4.3), and those of a table that was moved are wrong.
    names = [path.rpartition("/")[2] for path in operation.delta_file_paths]
    logs = [parse_log_file(each, sizes.get(each)) for each in names]
    known = tuple(sorted((log for log in logs if log is not None), key=lambda log: log.order))
    ids = {log.file_id for log in known} | ({base.file_id} if base is not None else set())
    # Merging another group's files would mix rows for good, so nothing is taken on trust.
    if len(known) != len(logs) or (name and base is None) or ids != {operation.file_id}:
        raise damaged(f"{operation.file_id} with {name}, {names}")
    return FileSlice(
        operation.partition_path or "", operation.file_id or "", operation.base_instant_time or "", base, known
    )

"""
Which failed writes to roll back, and what each of them left. Pure.

Source: format/table-services B.2, B.3; Hudi ``BaseRollbackPlanActionExecutor``, ``MarkerBasedRollbackStrategy``.
"""

from __future__ import annotations

from collections.abc import Iterable

from hudi_py.config.table import TableType
from hudi_py.model.files import join_path, parse_base_file
from hudi_py.model.instant import Action, Instant
from hudi_py.model.records import InstantInfo, RollbackPlan, RollbackRequest
from hudi_py.timeline.timeline import Timeline

_NEVER_HERE = frozenset({Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING})


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
        if instant.action not in _NEVER_HERE and instant.requested_time not in clusterings
    )


def rollback_plan(instant: Instant, files: Iterable[tuple[str, str]], root: str) -> RollbackPlan:
    """
    The plan that deletes *files* (partition path and name) of a failed write, one request per file as in Hudi.

    Args:
        root: Base path of the table: plans hold full paths.
    """
    requests = []
    for partition, name in sorted(files):
        base = parse_base_file(name)
        requests.append(
            RollbackRequest(
                partition_path=partition,
                file_id="" if base is None else base.file_id,
                latest_base_instant=instant.requested_time,
                files_to_be_deleted=(f"{root}/{join_path(partition, name)}",),
            )
        )
    return RollbackPlan(
        instant_to_rollback=InstantInfo(instant.requested_time, instant.comparable_action.value),
        rollback_requests=tuple(requests),
    )


def belongs_to(name: str, instant_time: str) -> bool:
    """Whether a base file's name carries the instant."""
    base = parse_base_file(name)
    return base is not None and base.instant_time == instant_time

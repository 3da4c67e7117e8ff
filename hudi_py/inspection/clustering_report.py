"""The documents that ``hudi-py cluster --json`` prints. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from hudi_py.inspection.report import expected_entry, left_entries
from hudi_py.model.instant import Action, Instant

if TYPE_CHECKING:
    from hudi_py.model.records import ClusteringPlan
    from hudi_py.services.clustering.plan import PlannedClustering
    from hudi_py.services.rewriting.expected import Expected
    from hudi_py.services.rewriting.left_pending import LeftPending

Json = dict[str, Any]


def plan_report(
    planned: PlannedClustering,
    pending: Iterable[Instant],
    action: Action,
    expected: Expected,
    left: Iterable[LeftPending],
) -> Json:
    """
    Return the document of a dry run.

    Args:
        planned: What would be rewritten.
        pending: Clusterings that would be carried out before.
        action: Of the instant that would be stored.
        expected: What it would write, and how long that would take.
        left: Pending plans that are not carried out.
    """
    groups = [
        _group(
            group.partition_path,
            [each.file_id for each in group.slices],
            group.outputs,
            sum(len(file_slice.log_files) for file_slice in group.slices),
            group.size_bytes,
        )
        for group in planned.groups
    ]
    return {
        "would_schedule": bool(planned.groups),
        "plan": {
            "action": action.value,
            "groups": _ordered(groups),
            # The groups above are sorted, so that two runs compare; the order of the work is said here.
            "order": [[each.file_id for each in group.slices] for group in planned.groups],
        },
        "totals": {
            "file_groups": sum(len(group.slices) for group in planned.groups),
            "bytes": planned.size_bytes,
            "files_after": sum(group.outputs for group in planned.groups),
        },
        "expected": expected_entry(expected),
        "left_out": [
            {"partition": partition, "file_id": file_id, "reason": reason}
            for (partition, file_id), reason in sorted(planned.left_out.items())
        ],
        "pending": [instant.requested_time for instant in pending],
        "left_pending": left_entries(left),
    }


def stored_report(instant: Instant | None, plan: ClusteringPlan | None) -> Json:
    """Return the document of a clustering that was scheduled; without an instant if there was nothing to do."""
    groups = [
        _group(
            group.slices[0].partition_path or "",
            [each.file_id or "" for each in group.slices],
            group.num_output_file_groups or 1,
            sum(len(file_slice.delta_file_paths or ()) for file_slice in group.slices),
        )
        for group in (() if plan is None else plan.input_groups)
        if group.slices
    ]
    return {"instant": None if instant is None else instant.requested_time, "plan": {"groups": _ordered(groups)}}


def _group(partition: str, file_ids: list[str], outputs: int, logs: int, size_bytes: int | None = None) -> Json:
    shown = {"partition": partition, "file_ids": sorted(file_ids), "output_groups": outputs, "log_files": logs}
    return shown if size_bytes is None else {**shown, "bytes": size_bytes}


def _ordered(groups: list[Json]) -> list[Json]:
    # Plans of Hudi and ours name the same groups in different orders.
    return sorted(groups, key=lambda group: (group["partition"], group["file_ids"]))

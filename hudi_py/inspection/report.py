"""Builds the JSON documents that the commands print with ``--json``. Their shape is public. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hudi_py.errors import CorruptMetadata
from hudi_py.fsview.build import PartitionView, ViewContext, latest_base_files, latest_slices
from hudi_py.inspection.json_stream import Streamed
from hudi_py.model.files import FileGroup, FileSlice
from hudi_py.model.holes import NO_HOLES, Holes, recorded_holes
from hudi_py.model.instant import Instant
from hudi_py.model.instant_time import iso_utc

if TYPE_CHECKING:
    from hudi_py.model.records import RollbackMetadata, SavepointMetadata
    from hudi_py.services.clean.executing.outlook import PendingOutlook
    from hudi_py.services.clean.planning.plan import CleanPlan
    from hudi_py.services.clean.result import CleanResult
    from hudi_py.services.compaction.plan import Outlook
    from hudi_py.services.recovery.finding import RecoveryOutcome
    from hudi_py.services.rewriting.expected import Expected
    from hudi_py.services.rewriting.left_pending import LeftPending
    from hudi_py.services.rewriting.result import RewriteResult
    from hudi_py.table import Table
    from hudi_py.writing.result import WriteResult

Json = dict[str, Any]


def savepoint_entry(savepoint: SavepointMetadata) -> Json:
    """Return what a savepoint has in addition to Hudi's record: its name and its expiry in UTC."""
    expires = None if savepoint.expires_at_ms is None else iso_utc(savepoint.expires_at_ms)
    return {"name": savepoint.name or None, "expires_at": expires}


def recovery_entry(outcome: RecoveryOutcome) -> Json:
    """Return a finding of ``hudi-py recover`` and what was done about it."""
    finding = outcome.finding
    instant = finding.instant
    return {
        "requested_time": finding.time or None,
        "action": None if instant is None else instant.action.value,
        "state": None if instant is None else instant.state.name,
        "problem": finding.problem.value,
        "proposal": finding.step.value,
        "done": outcome.done,
        "error": outcome.error,
        "evidence": list(finding.evidence),
        "paths": list(finding.paths),
    }


def slice_entry(file_slice: FileSlice) -> Json:
    """Return a file slice, as in ``hudi-py files``."""
    return {
        "base_instant": file_slice.base_instant_time,
        "base_file": None if file_slice.base_file is None else file_slice.base_file.name,
        "log_files": sorted(log.name for log in file_slice.log_files),
    }


def group_entry(group: FileGroup) -> Json:
    """Return a file group with its slices, newest first."""
    return {"file_id": group.file_id, "slices": [slice_entry(file_slice) for file_slice in group.slices]}


def partition_entry(context: ViewContext, partition: PartitionView) -> Json:
    """Return a partition of ``hudi-py files``."""
    return {
        "file_groups": [group_entry(group) for group in partition.groups],
        "latest_slices": [{"file_id": s.file_id, **slice_entry(s)} for s in latest_slices(context, partition)],
        "latest_base_files": sorted(base.name for base in latest_base_files(context, partition)),
        "replaced_file_ids": sorted(group.file_id for group in partition.replaced_groups),
    }


def files_report(context: ViewContext, partitions: Iterable[PartitionView]) -> Json:
    """Return the document that ``hudi-py files --json`` prints."""
    # Log compactions open no slice of their own, so they are not shown here.
    compaction = [
        {"instant": operation.instant_time, "partition": partition, "file_id": file_id}
        for (partition, file_id), operation in context.pending_compactions.items()
        if not operation.is_log_compaction
    ]
    clustering = [
        {"instant": instant, "partition": partition, "file_id": file_id}
        for (partition, file_id), instant in context.pending_clustering.items()
    ]
    return {
        "partitions": {p.partition_path: partition_entry(context, p) for p in partitions},
        "pending_compaction": sorted(compaction, key=_pending_order),
        "pending_clustering": sorted(clustering, key=_pending_order),
    }


def file_sizes(partition: PartitionView) -> dict[str, int | None]:
    """Return the size in bytes of each file of the slices; None if it is not known."""
    slices = [file_slice for group in partition.groups for file_slice in group.slices]
    files = [file for each in slices for file in (each.base_file, *each.log_files) if file is not None]
    return {file.name: file.size_bytes for file in files}


def _pending_order(entry: Mapping[str, str]) -> tuple[str, str, str]:
    return (entry["instant"], entry["partition"], entry["file_id"])


def plan_report(
    plan: CleanPlan, pending: Sequence[PendingOutlook], readable: Holes | None = None, *, is_switched_off: bool = False
) -> Json:
    """Return the document that ``hudi-py clean --dry-run --json`` prints."""
    shown = readable_after(plan, "") if readable is None else readable
    report = plan_stream(plan, pending, shown, is_switched_off=is_switched_off)
    # The same document for callers in Python, who want plain lists.
    report["plan"]["files_to_delete"] = dict(report["plan"]["files_to_delete"].entries)
    report["files"] = list(report["files"].entries)
    return report


def readable_by(plan: CleanPlan, opened: Table) -> Holes:
    """Return what `readable_after` says of a plan for this table, with what its earlier cleans left."""
    from hudi_py.snapshot.retained import earliest_retained, holes_left

    at = opened.contents, opened.timeline
    try:
        return readable_after(plan, earliest_retained(*at), holes_left(*at))
    except CorruptMetadata:  # a damaged clean must not prevent the dry run; a full plan does not need it
        return readable_after(plan, "")


def readable_after(plan: CleanPlan, retained: str, before: Holes = NO_HOLES) -> Holes:
    """
    Return which snapshots can be read after the plan: all from its window on, and single ones before the window.

    Args:
        plan: Plan of the clean.
        retained: Time since which earlier cleans kept all snapshots except *before*; ``""`` if unknown.
        before: Holes that earlier cleans left.

    Returns:
        Window and snapshots; `NO_HOLES` if the plan does not say from when on it keeps everything.
    """
    earliest = plan.earliest_to_retain
    # By file versions a clean deletes superseded files however young they are, so it promises no earlier time.
    if earliest is None and plan.file_count:
        return NO_HOLES
    planned = recorded_holes(plan.extra_metadata, plan.last_completed_commit)
    # The later of both: an earlier clean may have kept less than this one.
    start = max("" if earliest is None else earliest.requested_time, retained)
    is_all = planned.window or not planned.snapshots
    window = max(start, planned.window, before.window) if is_all else before.window
    times = sorted({*planned.snapshots, *before.snapshots})
    snapshots = [time for time in times if start <= time and not planned.holds(time) and not before.holds(time)]
    return Holes(window, tuple(time for time in snapshots if time < window or not window))


def plan_stream(
    plan: CleanPlan, pending: Sequence[PendingOutlook], readable: Holes, *, is_switched_off: bool = False
) -> Json:
    """
    Return the same as `plan_report`, with the two lists of files as `Streamed`.

    There may be a million files; generating their entries while writing keeps them out of memory.
    """
    earliest = plan.earliest_to_retain
    # Source files of a bootstrap lie outside of the table, so they are named apart.
    bootstrap = sorted(f.path for files in plan.files.values() for f in files if f.is_bootstrap_base_file)
    return {
        "needs_cleaning": plan.needs_cleaning,
        "would_schedule": plan.would_schedule and not is_switched_off,
        "plan": {
            "policy": plan.policy,
            "version": plan.version,
            "earliest_instant_to_retain": None
            if earliest is None
            else {
                "timestamp": earliest.requested_time,
                "action": earliest.action.value,
                "state": earliest.state.name,
            },
            "last_completed_commit_timestamp": plan.last_completed_commit,
            "files_to_delete": Streamed(
                ((partition, sorted(file.path for file in files)) for partition, files in plan.files.items()),
                is_object=True,
            ),
            "bootstrap_files": bootstrap,
            # Always empty: plans have the form of version 2, but the document shows both (rule A-57).
            "files_to_delete_v1": {},
            "partitions_to_delete": list(plan.partitions_to_delete),
            "extra_metadata": dict(plan.extra_metadata),
        },
        "totals": {"files": plan.file_count, "bytes": plan.size_bytes},
        "files": Streamed(
            {"path": file.path, "bytes": file.size_bytes, "reason": file.reason.value}
            for partition in sorted(plan.files)
            for file in plan.files[partition]
        ),
        "kept": {reason.value: count for reason, count in plan.kept.items()},
        "scope": plan.scope.reason,
        "scope_cost": plan.scope.cost,
        "breakers": list(plan.breakers),
        "warnings": list(plan.warnings),
        # Keys that are rarely there are left out where they are empty: the shape is public, and most readers know the
        # old one.
        **({"refused": dict(plan.refused)} if plan.refused else {}),
        "is_partial": plan.is_partial,
        "readable_from": readable.window or None,
        **({"readable_snapshots": list(readable.snapshots)} if readable.snapshots else {}),
        "pending_cleans": [clean.instant.requested_time for clean in pending],
        "pending": [
            {
                "instant": clean.instant.requested_time,
                "withdrawn": clean.is_withdrawn,
                "files_to_delete": list(clean.files),
                "bytes": clean.size_bytes,
                "spared_files": list(clean.spared_files),
                "why_spared": clean.why_spared,
                **({"refused": dict(clean.refused)} if clean.refused else {}),
            }
            for clean in pending
        ],
    }


def clean_contents(opened: Table, results: Iterable[CleanResult]) -> list[Json | None]:
    """Return the decoded metadata of each clean; None for one that a time limit stopped: it has no completed file."""
    found = [opened.timeline.find(result.instant) if result.is_finished else None for result in results]
    return [None if done is None else opened.contents.plain(done) for done in found]


def clean_report(
    results: Iterable[CleanResult],
    metadata: Iterable[Json | None],
    expired: Iterable[Instant] = (),
    undone: Sequence[RollbackMetadata] = (),
) -> Json:
    """
    Return the document that ``hudi-py clean --json`` prints.

    Args:
        results: What each clean of this run did.
        metadata: Decoded clean metadata for each of *results*; None for a clean that is not finished.
        expired: Savepoints that the run deleted; the document has the key only if there are any.
        undone: Rollbacks of failed writes that the run made; likewise.
    """
    deleted = [instant.requested_time for instant in expired]
    failed = {"failed_writes": [time for each in undone for time in each.commits_rollback],
              "failed_writes_files": sum(each.total_files_deleted for each in undone)}  # fmt: skip
    return {
        # Only if there are any: the document had no such key before, and scripts compare documents.
        **({"expired_savepoints": deleted} if deleted else {}),
        **(failed if undone else {}),
        "cleans": [
            {
                "instant": result.instant,
                "metadata": content,
                "deleted_files": list(result.deleted_files),
                "failed_files": list(result.failed_files),
                "side_files_left": list(result.side_files_left),
                "missing_files": list(result.missing_files),
                "bytes_freed": result.bytes_freed,
                "superseded": result.superseded,
                "is_finished": result.is_finished,
                "is_partial": result.is_partial,
                "more_to_do": result.has_more_to_do,
                "withdrawn": result.withdrawn,
                "spared_files": list(result.spared_files),
                "why_spared": result.why_spared,
            }
            for result, content in zip(results, metadata, strict=True)
        ],
    }


def write_report(result: WriteResult, cleans: Iterable[Json | None], *, dry_run: bool) -> Json:
    """
    Return the document that ``hudi-py write --json`` and the other writing commands print.

    Args:
        result: What the write did.
        cleans: Decoded clean metadata for each of its cleans; None for a clean that is not finished.
        dry_run: Whether nothing was written; then the document has no instant.
    """
    return {
        "instant": None if dry_run else result.instant,
        "rows_inserted": result.rows_inserted,
        "rows_updated": result.rows_updated,
        "rows_deleted": result.rows_deleted,
        "files_written": result.files_written,
        **({"file_groups_replaced": result.groups_replaced} if result.groups_replaced else {}),
        "seconds": dict(result.seconds),
        "cleans": clean_report(result.cleans, cleans)["cleans"],
        **(rewrite_entries("compactions", result.compactions) if result.compactions else {}),
        "retries": result.retries,
        **({"conflicts": list(result.conflicts)} if result.conflicts else {}),
        **({"put_onto": list(result.put_onto)} if result.put_onto else {}),
        **({"dry_run": True} if dry_run else {}),
        **({"is_repeated": True} if result.is_repeated else {}),
    }


def rewrite_entries(name: str, results: Iterable[RewriteResult]) -> dict[str, list[Json]]:
    """Return the entry *name* of a document: compactions or clusterings that were carried out, oldest first."""
    entries = [
        {
            "instant": result.instant,
            "file_groups": result.file_groups,
            "rows": result.rows,
            "bytes_before": result.bytes_before,
            "bytes_after": result.bytes_after,
            "seconds": round(result.seconds, 3),
        }
        for result in results
    ]
    return {name: entries}


def rewrite_report(results: Sequence[RewriteResult], name: str, left: Iterable[LeftPending]) -> Json:
    """
    Return the document that ``hudi-py compact --json`` and ``cluster --json`` print.

    Args:
        results: What the run carried out, oldest first. The document tells the last one, and below *name* all of them.
        name: ``compactions`` or ``clusterings``.
        left: Pending plans that are not carried out.
    """
    entries = rewrite_entries(name, results)[name]
    # The same keys as with a result, so that scripts need not ask first.
    nothing: Json = {"instant": None, "file_groups": 0, "rows": 0, "bytes_before": 0, "bytes_after": 0, "seconds": 0.0}
    return {**(entries[-1] if entries else nothing), name: entries, "left_pending": left_entries(left)}


def left_entries(left: Iterable[LeftPending]) -> list[Json]:
    """Return the entries of pending plans that are not carried out."""
    return [{"instant": each.instant.requested_time, "reason": each.reason} for each in left]


def expected_entry(expected: Expected) -> Json:
    """Return what a dry run tells of the time and the files that a rewrite would take; null where nothing tells it."""
    return {
        "files": expected.files,
        "bytes_read": expected.bytes_read,
        "bytes_written": expected.bytes_written,
        "seconds": None if expected.seconds is None else round(expected.seconds, 3),
        "measured": list(expected.measured),
    }


def compaction_report(
    outlook: Outlook, pending: Iterable[str], expected: Expected, left: Iterable[LeftPending]
) -> Json:
    """
    Return the document that ``hudi-py compact --dry-run --json`` prints.

    Args:
        outlook: What a compaction would do.
        pending: Requested times of pending compactions, which a run carries out first.
        expected: What it would write, and how long that would take.
        left: Pending plans that are not carried out.
    """
    return {
        "would_schedule": outlook.would_schedule,
        "reason": outlook.reason,
        "plan": {
            "operations": [
                {
                    "partition": operation.partition_path,
                    "file_id": operation.file_id,
                    "base_instant": operation.base_instant_time,
                    "base_file": operation.data_file_path,
                    "log_files": list(operation.delta_file_paths),
                    "metrics": dict(operation.metrics or {}),
                }
                for operation in outlook.plan.operations
            ]
        },
        "left": [
            {"partition": each.partition_path, "file_id": each.file_id, "reason": each.reason} for each in outlook.left
        ],
        "bytes_to_read": outlook.bytes_to_read,
        "expected": expected_entry(expected),
        "pending_compactions": list(pending),
        "left_pending": left_entries(left),
    }

"""Tells which earlier times cleans left complete, and which files of other times they deleted."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_py.errors import HudiError
from hudi_py.model.holes import holes_of
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import CleanMetadata
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline


def whole_from(metadata: CleanMetadata) -> str:
    """
    Requested time of the oldest commit from which on a clean left every snapshot whole, ``""`` for all snapshots.

    A clean by file versions names no such commit, because it deletes superseded files however young they are. A clean
    that a limit cut short names none either: then only snapshots after the clean itself are whole.
    """
    basis = _basis(metadata)
    return basis or (metadata.start_clean_time if _has_deleted(metadata) else "")


def deleted_since(
    contents: Contents, timeline: Timeline, time: str, *, with_pending: bool = True
) -> dict[str, list[str]]:
    """
    Partition path to names of files that active cleans deleted, or began to, and that a reader at *time* may need.

    Cleans before *time* count if they were planned with a commit that is rolled back by now, or that is older than the
    active timeline and so may have been: then a younger commit superseded the files than the plan assumed. If
    `reaches_back` is false, the caller has to add archived cleans.

    Args:
        contents: Reads the instants of the timeline.
        timeline: The active timeline.
        time: Instant time.
        with_pending: Count files of cleans that have begun, even if they still exist.

    Raises:
        CorruptMetadata: A clean since then is damaged.
    """
    deleted: dict[str, list[str]] = {}
    for instant in timeline.of([Action.CLEAN]):
        # A plan that nobody has begun has deleted nothing, and may still be withdrawn.
        if instant.state is State.REQUESTED or (instant.is_pending and not with_pending):
            continue
        if instant.is_pending:
            # An inflight clean may have deleted any part of its plan, and will delete the rest.
            for path, files in contents.clean_plan(instant).files_to_delete.items():
                deleted.setdefault(path, []).extend(file.name for file in files)
            continue
        metadata = contents.clean(instant)
        is_since = instant.requested_time > time and whole_from(metadata) > time
        if is_since or not _stands(timeline, _basis(metadata)):
            for path, result in metadata.partitions.items():
                deleted.setdefault(path, []).extend(result.delete_path_patterns)
    return deleted


def reaches_back(timeline: Timeline, time: str) -> bool:
    """Whether no archived clean came after *time*: the oldest are archived first."""
    cleans = timeline.completed(Action.CLEAN)
    # Without an active clean, any number of them may have been archived.
    return bool(cleans) and cleans[0].requested_time <= time


def _basis(metadata: CleanMetadata) -> str:
    """The commit that a clean's plan is based on: the begin of its window, else the newest commit that it saw."""
    window = holes_of(metadata).window or metadata.earliest_commit_to_retain.strip()
    return window or (metadata.last_completed_commit_timestamp if _has_deleted(metadata) else "")


def _has_deleted(metadata: CleanMetadata) -> bool:
    return any(partition.delete_path_patterns for partition in metadata.partitions.values())


def _stands(timeline: Timeline, commit: str) -> bool:
    """Whether a commit is known to be still completed; False for commits older than the active timeline."""
    if not commit:
        return True
    found = timeline.find(commit)
    return found is not None and found.is_completed


def clean_that_took(contents: Contents, partition_path: str, names: Iterable[str]) -> Instant | None:
    """
    The newest clean on the active timeline that planned to delete one of the files; None if none did.

    Args:
        contents: Reads the table's instants; the timeline is loaded again.
        partition_path: Path of the partition.
        names: Names of files.
    """
    wanted = frozenset(names)
    for clean in reversed(contents.store.load().instants):
        if clean.action is not Action.CLEAN:
            continue
        try:
            planned = contents.clean_plan(clean).files_to_delete.get(partition_path, ())
        except HudiError:
            continue  # nobody can carry out a plan that does not decode; the error that is being worded says more
        if any(file.name in wanted for file in planned):
            return clean
    return None

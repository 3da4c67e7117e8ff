"""What completed cleans tell about the times that they left whole, and about those that they did not."""

from __future__ import annotations

from hudi_py.model.holes import holes_of
from hudi_py.model.instant import Action, State
from hudi_py.model.records import CleanMetadata
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline


def whole_from(metadata: CleanMetadata) -> str:
    """
    Requested time of the oldest commit from which on a clean left every snapshot whole, ``""`` for all of them.

    One by file versions names no such commit: it takes superseded files however young they are. One that a limit cut
    short names none at all: then only what is younger than the clean is whole.
    """
    basis = _basis(metadata)
    return basis or (metadata.start_clean_time if _has_deleted(metadata) else "")


def deleted_since(
    contents: Contents, timeline: Timeline, time: str, *, with_pending: bool = True
) -> dict[str, list[str]]:
    """
    Partition path to names of files that active cleans deleted, or began to, and that a reader at *time* may need.

    Cleans that came before *time* count where they were planned beside a commit that is rolled back by now, or that may
    be because the active timeline no longer reaches back to it: what superseded the files is younger then than the plan
    says. Where `reaches_back` is not true of them, archived ones that came later count too.

    Args:
        contents: Reads the instants of the timeline.
        timeline: The active timeline.
        time: Instant time.
        with_pending: What cleans that have begun may delete counts, whether it is there or not.

    Raises:
        CorruptMetadata: A clean since then is damaged.
    """
    deleted: dict[str, list[str]] = {}
    for instant in timeline.of([Action.CLEAN]):
        if instant.state is State.REQUESTED or (instant.is_pending and not with_pending):
            continue
        if instant.is_pending:
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
    return bool(cleans) and cleans[0].requested_time <= time


def _basis(metadata: CleanMetadata) -> str:
    """The commit that a clean counted from: of its window, else the newest that its plan saw."""
    window = holes_of(metadata).window or metadata.earliest_commit_to_retain.strip()
    return window or (metadata.last_completed_commit_timestamp if _has_deleted(metadata) else "")


def _has_deleted(metadata: CleanMetadata) -> bool:
    return any(each.delete_path_patterns for each in metadata.partitions.values())


def _stands(timeline: Timeline, commit: str) -> bool:
    """Whether a commit is known to stand; for one from before the active timeline that is unknown."""
    if not commit:
        return True
    found = timeline.find(commit)
    return found is not None and found.is_completed

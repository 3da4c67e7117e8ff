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

    One by file versions names no such commit: it takes superseded files however young they are.
    """
    window = holes_of(metadata.extra_metadata).window or metadata.earliest_commit_to_retain.strip()
    has_deleted = any(each.delete_path_patterns for each in metadata.partitions.values())
    return window or (metadata.last_completed_commit_timestamp if has_deleted else "")


def deleted_since(contents: Contents, timeline: Timeline, time: str) -> dict[str, list[str]]:
    """
    Partition path to names of files that cleans deleted, or began to, and that a reader at *time* may need.

    Raises:
        CorruptMetadata: A clean since then is damaged.
    """
    deleted: dict[str, list[str]] = {}
    for instant in timeline.of([Action.CLEAN]):
        if instant.requested_time <= time or instant.state is State.REQUESTED:
            continue
        if instant.is_pending:
            for path, files in contents.clean_plan(instant).files_to_delete.items():
                deleted.setdefault(path, []).extend(file.name for file in files)
            continue
        metadata = contents.clean(instant)
        if whole_from(metadata) > time:
            for path, result in metadata.partitions.items():
                deleted.setdefault(path, []).extend(result.delete_path_patterns)
    return deleted

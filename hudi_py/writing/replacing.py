"""Writes that replace file groups: insert_overwrite, insert_overwrite_table, delete_partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from hudi_py.errors import ConflictError
from hudi_py.fsview.build import ViewContext, build_partition, latest_slices
from hudi_py.fsview.listing import Listing
from hudi_py.model.instant import Action
from hudi_py.model.records import CommitMetadata, RequestedReplaceMetadata
from hudi_py.versions.format import TableFormat

OVERWRITES: Final = frozenset({"INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE"})
"""Operations whose rows go to new file groups, which replace all earlier ones of their partitions or of the table."""
DELETE_PARTITION: Final = "DELETE_PARTITION"


class Beginning(NamedTuple):
    """Contents of the requested and the inflight file of a write; None for an empty file."""

    action: Action
    requested: RequestedReplaceMetadata | None
    inflight: CommitMetadata | None


def beginning_of(operation: str, table_format: TableFormat, *, is_merge_on_read: bool = False) -> Beginning:
    """
    Return the action of a write with *operation*, and the contents of its pending instants.

    The inflight file of a replacecommit is never empty: in layout 1 that would be a clustering. Source: rules/timeline
    4.1.
    """
    if operation in OVERWRITES:
        request = RequestedReplaceMetadata()
    elif operation == DELETE_PARTITION:
        request = table_format.requested_drop
    else:
        action = Action.DELTA_COMMIT if is_merge_on_read else Action.COMMIT
        return Beginning(action, None, table_format.inflight_commit)
    return Beginning(Action.REPLACE_COMMIT, request, CommitMetadata(operation_type=operation))


def groups_to_replace(
    context: ViewContext, listing: Listing, partition_paths: Iterable[str]
) -> Mapping[str, tuple[str, ...]]:
    """
    Return the ids of all live file groups by partition path, sorted; partitions without any are left out.

    Args:
        context: View of the table before the write.
        listing: Lists the files of the same time.
        partition_paths: Partitions whose groups are replaced.

    Raises:
        ConflictError: A group is in a pending clustering or compaction, which would bring its rows back.
    """
    found: dict[str, tuple[str, ...]] = {}
    for path in sorted(set(partition_paths)):
        entries = listing.partition(path, details=True)
        view = build_partition(context, path, ((entry.name, entry.size_bytes) for entry in entries))
        ids = sorted(file_slice.file_id for file_slice in latest_slices(context, view))
        for file_id in ids:
            # Before anything is written: replaced behind the back of its plan, a group would come back with it.
            _refuse_pending(context, path, file_id)
        if ids:
            found[path] = tuple(ids)
    return found


def _refuse_pending(context: ViewContext, path: str, file_id: str) -> None:
    clustering = context.pending_clustering.get((path, file_id))
    compaction = context.pending_compactions.get((path, file_id))
    if compaction is not None:
        time = compaction.instant_time
        what, command = (
            ("log compaction", "compact --logs") if compaction.is_log_compaction else ("compaction", "compact")
        )
    elif clustering is not None:
        what, command, time = "clustering", "cluster", clustering
    else:
        return
    # A plan that nobody has begun cannot be rolled back.
    raise ConflictError(
        f"file group {file_id} in partition {path!r} is waiting for {what} {time}; carry it out with hudi-py "
        f"{command}, or withdraw it with --cancel {time}, then write again"
    )

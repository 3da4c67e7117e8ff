"""
The files that show the rows of one time: what a snapshot reads, and what a savepoint protects. Pure.

Source: rules/table-services C-4, Z-1 to Z-6; Hudi ``AbstractTableFileSystemView.fetchMergedFileSlice``.
"""

from __future__ import annotations

from collections.abc import Collection

import attrs

from hudi_py.fsview.build import PartitionView, ViewContext, without_pending_files
from hudi_py.model.files import FileSlice


def context_as_of(context: ViewContext, as_of: str) -> ViewContext:
    """
    The view of the table at *as_of*: later instants are invisible, groups replaced later are still live.

    Pending compactions and clusterings are left out: they add no rows.
    """
    visible = frozenset(time for time in context.visible_times if time <= as_of)
    last = None if context.last_time is None else min(context.last_time, as_of)
    return attrs.evolve(
        context,
        visible_times=visible,
        completed_times=frozenset(time for time in context.completed_times if time <= as_of),
        last_time=last,
        # A group that was replaced later still shows its rows at that time.
        replaced={key: time for key, time in context.replaced.items() if time <= as_of},
        # No slice is opened for them: what was logged behind their plan is read together with the slice below.
        pending_compactions={},
        pending_clustering={},
    )


def readable_slices(
    context: ViewContext, partition: PartitionView, pending_compactions: Collection[str]
) -> tuple[FileSlice, ...]:
    """
    The newest slice with files of each live group, without log files of writes that are not completed.

    A pending compaction opens a new slice. Its log files are read together with the slice before, and a base file that
    the compaction wrote so far is ignored (``AbstractTableFileSystemView.fetchMergedFileSlice``).

    So are the log files from before a downgrade to layout 1: they are named after their write, so each seems to be a
    slice of its own. Apache Hudi shows the newest of them alone.

    Args:
        context: View context of the time asked for; *partition* was built with it.
        partition: The partition's file groups.
        pending_compactions: Requested times of pending compactions.
    """
    # Newest first, and mostly one: without a lock two processes may have planned the same slice.
    opened: dict[str, list[FileSlice]] = {}
    for each in partition.uncommitted:
        if each.base_instant_time in pending_compactions:
            opened.setdefault(each.file_id, []).append(attrs.evolve(each, base_file=None))
    found = []
    for group in partition.groups:
        slices = [file_slice for file_slice in group.slices if not file_slice.is_empty]
        above = opened.get(group.file_id, [])
        if not slices and not above:
            continue
        # A view of the files of some commits only may lack the slice before the compaction.
        newest = slices[0] if slices else attrs.evolve(above[0], log_files=())
        # The rows before the compaction are in the slice below until it completes, so both are read as one.
        for below in slices[1:]:
            if newest.base_file is not None or not (
                newest.base_instant_time in pending_compactions or _is_named_by_write(context, newest)
            ):
                break
            newest = attrs.evolve(below, log_files=(*below.log_files, *newest.log_files))
        for each in reversed(above):
            newest = attrs.evolve(newest, log_files=(*newest.log_files, *each.log_files))
        visible = without_pending_files(context, newest)
        # Of a write that is not completed at that time nothing is left.
        if not visible.is_empty:
            found.append(visible)
    return tuple(found)


def _is_named_by_write(context: ViewContext, file_slice: FileSlice) -> bool:
    """
    Whether the log files of a slice above another one, without a base file, are named after their write, though in
    layout 1 they would be named after the slice that they are on.
    """
    # Only a compaction opens a slice above another one in layout 1, and that is no delta commit.
    return context.log_naming.tells_slice and context.has_logged(file_slice.base_instant_time)

"""
Reading an earlier time while a clean is running: allowed as long as every file of that time exists.

A running clean deletes the files of its plan in any order and records that only at its end. So for a time before its
window, the folders in its plan are listed: when the time is asked for, and again after the files of the snapshot were
listed.

A clean that begins while rows are read may delete files of the snapshot, if that has not been the latest for long. So
may a rollback or restore that undoes a write of the snapshot. The error that ends the read then names which.
"""

from __future__ import annotations

from collections.abc import Iterator

from hudi_py.errors import NotFound, RefusedError
from hudi_py.fsview.as_of import readable_slices
from hudi_py.fsview.build import ViewContext, build_partition
from hudi_py.fsview.gone import Left, gone_at
from hudi_py.model.files import FileSlice, join_path, parse_base_file
from hudi_py.model.holes import holes_of
from hudi_py.model.instant import Action
from hudi_py.model.records import CleanerPlan
from hudi_py.timeline.cleaned import clean_that_took
from hudi_py.timeline.completions import undoing
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline


def refuse_what_a_clean_took(contents: Contents, timeline: Timeline, context: ViewContext, time: str) -> None:
    """
    Refuse a time if a pending clean deleted one of its files.

    Args:
        contents: Reads the instants of the table's timeline.
        timeline: The timeline as loaded; a clean that is only requested there may have begun since.
        context: View context of the table at *time*.
        time: Instant time.

    Raises:
        RefusedError: A file is deleted; the message names the clean.
        CorruptMetadata: The plan of a clean that has begun does not decode.
    """
    compactions = timeline.compacting
    for clean in timeline.pending(Action.CLEAN):
        plan = contents.plan_of_pending_clean(clean)
        if plan is None:
            continue
        window = max(
            holes_of(plan).window,
            "" if plan.earliest_instant_to_retain is None else plan.earliest_instant_to_retain.requested_time,
        )
        if window and time >= window:  # no plan deletes files that its own window needs
            continue
        taken = next(_taken(contents, plan, context, time, compactions), None)
        if taken is not None:
            later = f"read {window} or later" if window else "read a later instant"
            raise RefusedError(
                f"the table cannot be read as of {time}: {clean} is under way and has deleted {taken}, which held rows "
                f"at that time; {later}, or the latest snapshot"
            )


def lost_meanwhile(contents: Contents, file_slice: FileSlice, error: NotFound) -> NotFound:
    """
    The error for a file that was deleted while rows were read; it names the clean that planned to delete the file, or
    what undid the write that made it.

    Args:
        contents: Reads the table's instants; the timeline is loaded again.
        file_slice: The slice that was read.
        error: The error that names the missing file.
    """
    clean = clean_that_took(contents, file_slice.partition_path, file_slice.file_names)
    if clean is None:
        files = (file_slice.base_file, *file_slice.log_files)
        undo = undoing(contents, {file.instant_time for file in files if file is not None})
        way_out = "undid the write that made it while rows were read; open the table and read again"
        return error if undo is None else NotFound(f"{error}: {undo} {way_out}")
    return NotFound(
        f"{error}: {clean} deleted it while rows were read; open the table and read again, under a lease that keeps "
        "its files (table.lease(ttl=...), hudi-py lease run), or have cleans keep more than the longest read takes "
        "(hours_retained)"
    )


def which_clean(contents: Contents, path: str) -> str:
    """For a message: the clean that deleted a file, as `clean_that_took`; ``a clean`` if that is archived."""
    folder, _, name = path.rpartition("/")
    return str(clean_that_took(contents, folder, [name]) or "a clean")


def _taken(
    contents: Contents, plan: CleanerPlan, context: ViewContext, time: str, compactions: frozenset[str]
) -> Iterator[str]:
    """Relative paths of files that the snapshot needs, that the plan names, and that no longer exist."""

    def slices(partition: str, names: list[str]) -> tuple[FileSlice, ...]:
        view = build_partition(context, partition, ((name, None) for name in names))
        return readable_slices(context, view, compactions)

    for partition, files in plan.files_to_delete.items():
        there = [entry.name for entry in contents.store.storage.list(partition) if not entry.is_folder]
        missing = sorted({file.name for file in files}.difference(there))
        if not missing:
            continue
        # The slices of that time as they were before the clean: a log file below a newer base file is in none of them.
        logs = {log.name for each in slices(partition, there + missing) for log in each.log_files}
        yield from (join_path(partition, name) for name in missing if name in logs)
        left = Left.of_slices(slices(partition, there))
        bases = [(partition, base) for base in map(parse_base_file, missing) if base is not None]
        gone = gone_at(context, time, left, bases)
        if gone is not None:
            yield gone

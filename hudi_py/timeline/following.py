"""Readers that follow the changes of a table: what they have read, and whether all of it still counts."""

from __future__ import annotations

from collections.abc import Collection

from hudi_py.errors import RefusedError
from hudi_py.model.progress import Progress, begin_after
from hudi_py.model.words import counted
from hudi_py.timeline.archive import load_archived, load_archived_commits
from hudi_py.timeline.completions import undoing, undone_writes
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.order import COMPLETED_WRITES, order_times
from hudi_py.timeline.timeline import Timeline


def progress_at(contents: Contents, timeline: Timeline, until: str) -> Progress:
    """
    What a reader has read that has read all changes until a time.

    Args:
        contents: Reads the table's instants.
        timeline: The active timeline that was read.
        until: The end of the last range, as ranges compare times.
    """
    found = _read(timeline, until, by_completion=_by_completion(contents))
    if until and not found:
        # All of it is archived; its newest write tells this table from another one at the same place.
        archived = _read(_archived(contents), until, by_completion=_by_completion(contents))
        found = dict(sorted(archived.items())[-1:])
    return Progress(until=until, writes=found)


def next_begin(
    contents: Contents, timeline: Timeline, progress: Progress, *, anew: str = "with a new checkpoint"
) -> str:
    """
    Where the next range of a reader begins.

    Args:
        contents: Reads the table's instants.
        timeline: The active timeline that is going to be read.
        progress: What was read.
        anew: How a reader starts again, in words.

    Raises:
        RefusedError: A write that was read is undone, or the table is another one; or it compares other times since
            it was upgraded, and no time divides what was read from what was not.
        CorruptMetadata: The archive is damaged.
    """
    store, by_completion = contents.store, _by_completion(contents)
    missing: Collection[str] = ()
    if progress.writes is None:
        progress, missing = _told_by_time(contents, timeline, progress.until)
    missing = missing or _missing(contents, timeline, progress)
    if missing:
        raise RefusedError(
            f"{store.storage.root}: what was read until {progress.until} has rows of "
            f"{_why_undone(contents, progress, missing)}. Take back what was made of them: read the table as a whole, "
            f"and go on from there ({anew})"
        )
    if progress.is_by_completion in (None, by_completion):
        return progress.until
    active = order_times(timeline, by_completion=by_completion)
    is_active = set(progress.writes or ()).issubset(active)
    archived = {} if is_active else order_times(_archived(contents), by_completion=by_completion)
    begin = begin_after(progress, active, archived)
    if begin is None:
        raise RefusedError(
            f"{store.storage.root}: the table was upgraded or downgraded since it was read until {progress.until}, and "
            "other writes completed in between, so that no time divides what was read from what was not; read the "
            f"table as a whole, and go on from there ({anew})"
        )
    return begin


def undone_since(contents: Contents, timeline: Timeline, progress: Progress) -> str | None:
    """
    What has undone writes that were read, in words that go on after "rows of"; None if all are still there.

    Args:
        contents: Reads the table's instants.
        timeline: The active timeline.
        progress: What was read.

    Raises:
        CorruptMetadata: The archive is damaged.
    """
    missing = _missing(contents, timeline, progress)
    return _why_undone(contents, progress, missing) if missing else None


def _missing(contents: Contents, timeline: Timeline, progress: Progress) -> frozenset[str]:
    store = contents.store
    return progress.missing(
        _read(timeline, None, by_completion=_by_completion(contents)),
        lambda after, before: load_archived_commits(store.storage, store.config, after, before),
    )


def _told_by_time(contents: Contents, timeline: Timeline, until: str) -> tuple[Progress, Collection[str]]:
    """
    What was read, as far as its end alone tells, the form of earlier releases; and writes that were undone since.

    Writes count as undone only where the one with that time is gone.
    """
    by_completion = _by_completion(contents)
    known = Progress(until=until, writes={})
    times = order_times(timeline, by_completion=by_completion)
    if not until or until in times.values():
        return known, ()
    times |= order_times(_archived(contents), by_completion=by_completion)
    if until in times.values():
        return known, ()
    if until in times:  # the requested time of a write: until it was upgraded, the table compared those
        return Progress(until=until, writes={time: "" for time in times if time <= until}), ()
    # Without any, it is a time that somebody gave.
    return known, {time for time in undone_writes(contents, timeline, after=until) if time <= until}


def _why_undone(contents: Contents, progress: Progress, missing: Collection[str]) -> str:
    newest = max(missing)
    by = undoing(contents, missing)
    more = f" and {counted(len(missing) - 1, 'more commit')}" if len(missing) > 1 else ""
    if by is not None:
        return f"commit {newest}{more}, which {by} has undone since: those rows are no longer true"
    if progress.writes and len(missing) == len(progress.writes):
        return (
            f"commit {newest}{more}, which this table does not know: it was deleted and made anew, or is another one "
            "at the same place"
        )
    return (
        f"commit {newest}{more}, which is no longer on the timeline, nor archived: it was undone, or the table was "
        "put back from a copy"
    )


def _read(timeline: Timeline, until: str | None, *, by_completion: bool) -> dict[str, str]:
    times = order_times(timeline, by_completion=by_completion)
    return {
        time: compared if by_completion else ""
        for time, compared in times.items()
        if until is None or compared <= until
    }


def _archived(contents: Contents) -> Timeline:
    store = contents.store
    return load_archived(store.storage, store.config).of(COMPLETED_WRITES)


def _by_completion(contents: Contents) -> bool:
    return contents.store.layout.has_completion_times

"""Reads what earlier cleans recorded, and which snapshots they left complete."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.model.holes import READ_FROM, holes_of
from hudi_py.model.instant import Action, Instant
from hudi_py.model.records import CleanMetadata
from hudi_py.services.clean.planning.plan import COUNTED_VERSIONS, PASSING, SAVEPOINTED_TIMES
from hudi_py.services.clean.planning.repair import is_empty
from hudi_py.services.clean.planning.scope import LastClean
from hudi_py.timeline.archive import load_archived
from hudi_py.timeline.cleaned import whole_from
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline


def last_clean(contents: Contents, timeline: Timeline) -> LastClean | None:
    """
    What the newest completed clean recorded; an empty instant file counts as no clean (rule A-10).

    Raises:
        CorruptMetadata: The completed clean is damaged.
    """
    completed = timeline.completed(Action.CLEAN)
    if not completed or is_empty(contents.store, completed[-1]):
        return None
    return recorded(completed[-1], contents.clean(completed[-1]))


def recorded(clean: Instant, metadata: CleanMetadata) -> LastClean:
    """The parts of a completed clean that later cleans need."""
    extra = metadata.extra_metadata
    return LastClean(
        requested_time=clean.requested_time,
        earliest_to_retain=metadata.earliest_commit_to_retain,
        last_completed_commit=metadata.last_completed_commit_timestamp,
        savepoints=_times(extra.get(SAVEPOINTED_TIMES, "")),
        passing=_times(extra.get(PASSING, "")),
        holes=holes_of(metadata),
        read_from=extra.get(READ_FROM, ""),
        counted_versions=COUNTED_VERSIONS in extra,
        whole_from=whole_from(metadata),
    )


def _times(text: str) -> frozenset[str]:
    return frozenset(filter(None, map(str.strip, text.split(","))))


def whole_times(contents: Contents, table: TableConfig, timeline: Timeline) -> tuple[str, ...]:
    """
    Commits whose snapshots no clean has touched; the archive is read only if the active timeline is too short.

    Raises:
        CorruptMetadata: A completed clean or the archive is damaged.
    """
    try:
        cleans = [
            recorded(instant, contents.clean(instant))
            for instant in timeline.completed(Action.CLEAN)
            if not is_empty(contents.store, instant)
        ]
        since = cleans[-1].whole_from if cleans else ""
        archived: tuple[Instant, ...] = ()
        if not since or timeline.commits.is_before_start(since):
            archived = load_archived(contents.store.storage, table).commits.completed()
    except (CorruptMetadata, NotFound) as error:
        raise CorruptMetadata(
            f"{error}. It tells which snapshots the calendar ladder keeps, so nothing was planned and nothing was "
            "deleted; clean without keep_daily, keep_weekly and keep_monthly, or repair what is damaged"
        ) from error
    return left_whole(timeline, cleans, archived)


def left_whole(timeline: Timeline, cleans: Sequence[LastClean], archived: Iterable[Instant]) -> tuple[str, ...]:
    """
    Requested times of the commits whose snapshots every clean left complete, ascending.

    Args:
        timeline: The active timeline.
        cleans: The completed cleans, ascending.
        archived: Archived completed commits.
    """
    times = {i.requested_time for i in (*timeline.commits.completed(), *archived)}
    # Snapshots that the last clean kept may be archived by now, and the archive may not have been read. Only times
    # before the timeline count: a later one that is missing was rolled back, and is not a snapshot any more.
    if cleans:
        times.update(time for time in cleans[-1].holes.snapshots if timeline.commits.is_before_start(time))
    for clean in cleans:
        times = {time for time in times if time >= clean.whole_from or time in clean.holes.snapshots}
    return tuple(sorted(times))

"""Which earlier times the cleans of a table kept readable."""

from __future__ import annotations

from typing import Final

from hudi_py.model.holes import Holes, holes_of
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import CleanMetadata
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline

_NO_CLEAN: Final = CleanMetadata(start_clean_time="", time_taken_ms=0, total_files_deleted=0)


def completed_clean(contents: Contents, timeline: Timeline) -> CleanMetadata:
    """Metadata of the last completed clean; an empty value if there is none."""
    cleans = timeline.completed(Action.CLEAN)
    return contents.clean(cleans[-1]) if cleans else _NO_CLEAN


def earliest_retained(contents: Contents, timeline: Timeline) -> str:
    """
    The instant time from which on every time can still be read, ``""`` when unknown.

    A clean that has begun counts like a completed one, for its files may be deleted already. Hudi ignores those cleans,
    and then misses files or rows.
    """
    times = [completed_clean(contents, timeline).earliest_commit_to_retain]
    for instant in _begun(timeline):
        earliest = contents.clean_plan(instant).earliest_instant_to_retain
        if earliest is not None:
            times.append(earliest.requested_time)
    return max(times)


def holes_left(contents: Contents, timeline: Timeline) -> Holes:
    """The times before its window that the last clean kept readable; a clean that has begun counts too."""
    begun = _begun(timeline)
    return holes_of(contents.clean_plan(begun[-1]) if begun else completed_clean(contents, timeline))


def _begun(timeline: Timeline) -> list[Instant]:
    return [instant for instant in timeline.pending(Action.CLEAN) if instant.state is State.INFLIGHT]

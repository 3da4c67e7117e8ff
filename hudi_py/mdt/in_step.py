"""
Whether the metadata table's timeline knows every action that changed files. Pure.

Each action that changes files has a delta commit of the same time there, which is completed before the action is.
Rollbacks and restores may do without: what they leave is judged by the files. Source: rules/data-files 11.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hudi_py.errors import CorruptMetadata
from hudi_py.mdt.changes import ListingChanges, changes_of_clean, changes_of_commit, records_of
from hudi_py.mdt.table import archived_before
from hudi_py.model.instant import Action, Instant
from hudi_py.model.instant_time import INIT_TIME
from hudi_py.model.records import CleanMetadata, CommitMetadata
from hudi_py.timeline.timeline import COMMITS, Timeline

_RECORDED: Final = COMMITS | {Action.CLEAN}
TIME_LENGTH: Final = 17
"""Layout 1 adds three digits to the time of the last delta commit for what the metadata table does for itself."""


def unrecorded(timeline: Timeline, metadata: Timeline) -> tuple[Instant, ...]:
    """
    Completed commits and cleans that the metadata table's active timeline does not know.

    It may not have to: see `has_records`, and its archive. Where it lost a commit, older rows look like the latest;
    where it lost a clean, deleted files are listed: those of a replaced group as live ones, once its replacecommit is
    archived.

    Args:
        timeline: The table's timeline.
        metadata: Of the metadata table, active. What lies before it is archived there.
    """
    recorded = metadata.completed(Action.DELTA_COMMIT)
    known = {i.requested_time for i in recorded}
    firsts = [i for i in recorded if is_first_listing(i)]
    start = archived_before(metadata.writes) or ""
    return tuple(
        instant
        for instant in timeline.completed()
        if instant.action in _RECORDED
        and instant.requested_time not in known
        and instant.requested_time >= start
        and not is_in_first_listing(instant, firsts)
    )


def has_records(content: object) -> bool:
    """Whether an action that left this metadata changed files, so that the metadata table must know it."""
    try:
        return bool(records_of(_changes(content)))
    except CorruptMetadata:  # a file without size: Hudi could not record it either
        return False


def _changes(content: object) -> ListingChanges:
    if isinstance(content, CommitMetadata):
        return changes_of_commit(content)
    if isinstance(content, CleanMetadata):
        return changes_of_clean(content)
    return ListingChanges()


def is_first_listing(delta_commit: Instant) -> bool:
    """Whether a delta commit of the metadata table filled it from a listing of the folders."""
    time = delta_commit.requested_time
    return time.startswith(INIT_TIME) or len(time) > TIME_LENGTH


def is_in_first_listing(instant: Instant, firsts: Iterable[Instant]) -> bool:
    """Whether the metadata table was made of a listing after the instant completed; *firsts*: `is_first_listing`."""
    for first in firsts:
        # Layout 2 gives the first commits of a partition a time of zeros, so only the completion time says when it was
        # made; layout 1 appends three digits to the last instant that the listing covers (rules/timeline 2.2).
        if first.requested_time.startswith(INIT_TIME):
            made = first.completion_time
            if made is not None and instant.completion_time is not None and instant.completion_time <= made:
                return True
        elif instant.requested_time <= first.requested_time:
            return True
    return False

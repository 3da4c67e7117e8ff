"""Removes markers of writes that a rollback proves to be undone; in doubt they are kept."""

from __future__ import annotations

from collections.abc import Collection

from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.model.instant import Instant
from hudi_py.runtime.log import log
from hudi_py.timeline.completions import content_of, undone_by
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.markers import delete_markers
from hudi_py.timeline.timeline import Timeline


def sweep_markers(
    contents: Contents, timeline: Timeline, marked: Collection[str], rollbacks: Collection[Instant]
) -> None:
    """
    Remove marker folders of writes that one of the rollbacks has undone, and that are not on the timeline.

    A write is removed from the timeline only after its files are deleted, so a pending rollback proves it, too.

    Args:
        contents: The table's timeline.
        timeline: The current timeline.
        marked: Requested times of instants that have markers.
        rollbacks: Completed or pending rollbacks.
    """
    unknown = set(marked).difference(instant.requested_time for instant in timeline)
    # Usually so, and then no rollback has to be read.
    if not unknown:
        return
    undone = {time for rollback in rollbacks for time in _undone_by(contents, rollback)}
    for time in sorted(unknown & undone):
        delete_markers(contents.store.storage, time)


def _undone_by(contents: Contents, rollback: Instant) -> set[str]:
    try:
        return undone_by(content_of(contents, rollback)) or set()
    except (CorruptMetadata, NotFound) as error:
        log.warning("rollback.markers.kept", instant=rollback.requested_time, why=str(error))
        return set()

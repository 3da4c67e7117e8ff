"""
Pending writes that were completed once, as the metadata table and the markers tell.

A write is recorded in the metadata table before it is completed, and its markers are deleted after it is (rule G-3). So
one whose files are there, that is recorded and has no markers was completed in between. Without files it proves
nothing: such a write never had markers.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.fsview.listing import listing_threads, walk_partitions
from hudi_py.mdt.table import FILES_PARTITION, MetadataTable
from hudi_py.model.files import parse_base_file, parse_log_file
from hudi_py.model.instant import Action, State
from hudi_py.storage.base import Storage
from hudi_py.timeline.completions import refuse_lost_completions
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.markers import instants_with_markers
from hudi_py.timeline.timeline import Timeline

_PROOF = "the metadata table has recorded it, and its markers were deleted after that"


def refuse_lost_writes(
    timeline: Timeline, contents: Contents, config: TableConfig, times: Collection[str] | None = None
) -> None:
    """
    As `refuse_lost_completions`, with the metadata table as a witness, whether it is used for listings or not.

    One listing more where a write is under way, two where that has no markers.

    Args:
        timeline, contents, times: As there.
        config: Of the table.

    Raises:
        CorruptMetadata: A completed write is pending again.
    """
    waiting = {each.requested_time for each in timeline.writes.pending() if each.state is State.INFLIGHT}
    if times is not None:
        waiting.intersection_update(times)
    proven: set[str] = set()
    if waiting and FILES_PARTITION in config.metadata_partitions:
        proven = _completed_once(contents, waiting)
    refuse_lost_completions(timeline, contents, times, dict.fromkeys(proven, _PROOF))


def _completed_once(contents: Contents, waiting: Collection[str]) -> set[str]:
    store = contents.store
    suspects = set(waiting).difference(instants_with_markers(store.storage))
    if not suspects:
        return suspects
    with suppress(CorruptMetadata, NotFound):  # whoever reads the metadata table will tell
        recorded = MetadataTable(store.storage, store.clock).store.load().completed(Action.DELTA_COMMIT)
        return _with_files(store.storage, suspects.intersection(each.requested_time for each in recorded))
    return set()


def _with_files(storage: Storage, times: set[str]) -> set[str]:
    """Those of the times that a data file in the folders bears."""
    found: set[str] = set()
    if not times:
        return found
    for _, entries in walk_partitions(storage, threads=listing_threads(storage)):
        for entry in entries:
            parsed = parse_base_file(entry.name) or parse_log_file(entry.name)
            if parsed is not None and parsed.instant_time in times:
                found.add(parsed.instant_time)
        if found == times:
            break
    return found

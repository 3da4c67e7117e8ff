"""
Finds pending writes that were completed once, by checksums, markers, data files, later commits and the metadata table.

On local disk Hadoop keeps a checksum beside each file. It is made after the file and deleted before it, so the checksum
of a completed file that is not there proves that it was. Where the table has a metadata table, a write is recorded
there before it is completed, and its markers are deleted after it is (rule G-3): one whose files are there, that is
recorded and has no markers was completed in between. Without files it proves nothing: such a write never had markers.

Without a metadata table a later commit that replaced a base file of the write proves it. Files without markers have two
explanations, a lost completed file or markers that were removed by hand, so they refuse nothing
(docs/decisions/lost-files.md).
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Final

from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.fsview.listing import listing_threads, walk_partitions
from hudi_py.fsview.named import is_whole
from hudi_py.mdt.table import FILES_PARTITION, MetadataTable
from hudi_py.model.files import parse_base_file, parse_log_file
from hudi_py.model.instant import Action, State
from hudi_py.timeline.completions import named_by, refuse_lost_completions
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.markers import instants_with_markers
from hudi_py.timeline.store import TimelineStore
from hudi_py.timeline.timeline import WRITES, Timeline

_CHECKSUM: Final = "the checksum of its completed file is still there"
_RECORDED: Final = "the metadata table has recorded it, and its markers were deleted after that"


def refuse_lost_writes(
    timeline: Timeline, contents: Contents, config: TableConfig, times: Collection[str] | None = None
) -> None:
    """
    As `refuse_lost_completions`, with more witnesses, the metadata table among them, used for listings or not.

    Costs up to two more listings if a write is pending, three if that has no markers.

    Args:
        timeline, contents, times: As there.
        config: The table's configuration.

    Raises:
        CorruptMetadata: A completed write is pending again.
    """
    refuse_lost_completions(timeline, contents, times, proofs(timeline, contents, config, times))


def proofs(
    timeline: Timeline, contents: Contents, config: TableConfig, times: Collection[str] | None = None
) -> dict[str, str]:
    """
    Requested times of the inflight writes that were completed once, to the proof.

    Args:
        timeline, contents, config, times: As `refuse_lost_writes`.
    """
    waiting = _inflight(timeline)
    if times is not None:
        waiting.intersection_update(times)
    found = dict.fromkeys(_with_checksum(contents.store, waiting), _CHECKSUM)
    # The other witnesses cost listings and are asked only about what the first one left open.
    suspects = waiting.difference(found)
    if suspects and FILES_PARTITION in config.metadata_partitions:
        suspects = _without_markers(contents, suspects)
        # Recorded alone proves nothing, since the metadata table is written first; hence all three conditions.
        suspects &= _recorded(contents.store) if suspects else set()
        found |= dict.fromkeys(_with_files(contents, suspects), _RECORDED)
    elif suspects:
        found |= _built_upon(timeline, contents, suspects)
    return found


def unmarked_writes(timeline: Timeline, contents: Contents, config: TableConfig) -> frozenset[str]:
    """
    Requested times of the inflight writes that may have been completed: data files are there, but no markers.

    Empty if there is a metadata table: then `proofs` tells completed writes from failed ones.

    Args:
        timeline, contents, config: As `refuse_lost_writes`.
    """
    if FILES_PARTITION in config.metadata_partitions:
        return frozenset()
    return frozenset(_with_files(contents, _without_markers(contents, _inflight(timeline))))


def _inflight(timeline: Timeline) -> set[str]:
    return {instant.requested_time for instant in timeline.writes.pending() if instant.state is State.INFLIGHT}


def _built_upon(timeline: Timeline, contents: Contents, times: Collection[str]) -> dict[str, str]:
    """Those of the times whose base files a later commit replaced, to the proof; a damaged commit proves nothing."""
    found: dict[str, str] = {}
    for instant in timeline.commits.completed():
        wanted = [time for time in times if time < instant.requested_time and time not in found]
        with suppress(CorruptMetadata, NotFound):  # archived meanwhile, or damaged
            # Most commits are not decoded: they are large. Undecoded, the listing of the folders looks into them, too.
            data = contents.store.look_through(instant) if wanted else b""
            if wanted and (not is_whole(data) or any(time.encode() in data for time in wanted)):
                named = dict(named_by(instant, contents.commit(instant)))
                found |= {time: named[time] for time in wanted if time in named}
    return found


def _without_markers(contents: Contents, times: set[str]) -> set[str]:
    return times.difference(instants_with_markers(contents.store.storage)) if times else times


def _recorded(store: TimelineStore) -> set[str]:
    """Times of the writes that the metadata table has recorded."""
    with suppress(CorruptMetadata, NotFound):  # reading the metadata table reports it
        completed = MetadataTable(store.storage, store.clock).store.load().completed(Action.DELTA_COMMIT)
        return {each.requested_time for each in completed}
    return set()


def _with_checksum(store: TimelineStore, times: Collection[str]) -> set[str]:
    """Those of the times of which the checksum of a write's completed file is there; object stores have none."""
    if not times or not store.storage.capabilities.has_folders:
        return set()
    # Ordinary listings leave checksums out.
    names = (entry.name for entry in store.storage.list_hidden(store.folder))
    instants = (store.layout.parse(name[1:-4]) for name in names if name[0] == "." and name.endswith(".crc"))
    return {
        instant.requested_time
        for instant in instants
        if instant is not None and instant.is_completed and instant.action in WRITES and instant.requested_time in times
    }


def _with_files(contents: Contents, times: set[str]) -> set[str]:
    """Those of the times that stand in the name of a data file in the folders."""
    found: set[str] = set()
    if not times:
        return found
    storage, naming = contents.store.storage, contents.store.config.format.log_naming
    for _, entries in walk_partitions(storage, threads=listing_threads(storage)):
        for entry in entries:
            # Where the name of a log file has the time of its slice, a pending compaction may have opened that.
            log = None if naming.tells_slice else parse_log_file(entry.name)
            parsed = parse_base_file(entry.name) or log
            if parsed is not None and parsed.instant_time in times:
                found.add(parsed.instant_time)
        # Walking a large table takes long, and pending writes are few: most walks end early.
        if found == times:
            break
    return found

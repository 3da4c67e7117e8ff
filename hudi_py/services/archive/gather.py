"""Reads what archival is planned from. Nothing is written here."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_py.config.archive import ArchiveConfig
from hudi_py.config.clean import CleanConfig
from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.fsview.listing import FolderListing
from hudi_py.mdt.table import FILES_PARTITION, MetadataTable
from hudi_py.model.files import parse_data_file
from hudi_py.model.instant import Action, Instant
from hudi_py.model.instant_time import parse_instant_time
from hudi_py.model.lease import floor_of
from hudi_py.model.records import CommitMetadata
from hudi_py.services.archive.plan import ArchiveFacts, NewestClean, data_timeline_start, newest_writes_since
from hudi_py.services.clean.planning.plan import SAVEPOINTED_TIMES
from hudi_py.services.clean.retention.windows import earliest_to_retain
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.properties_file import read_table_config
from hudi_py.timeline.quarantine import load_manifest, may_hold
from hudi_py.timeline.row_schema import IDS_ENTRY, records_schema
from hudi_py.timeline.store import TimelineStore
from hudi_py.timeline.timeline import Timeline


def gather(
    contents: Contents,
    table: TableConfig,
    config: ArchiveConfig,
    cleaning: CleanConfig,
    timeline: Timeline,
    data_timeline: Timeline | None = None,
) -> ArchiveFacts:
    """
    Read the facts of an archival.

    Args:
        contents, table, config, cleaning, data_timeline: As of `ArchiveService`.
        timeline: The active timeline, as loaded for the plan.

    Raises:
        CorruptMetadata: The last clean, which says what may be archived, does not decode.
    """
    # As the properties are now: since they were read, another process may have made a metadata table or dropped it.
    has_metadata = FILES_PARTITION in read_table_config(contents.store.storage).metadata_partitions
    return ArchiveFacts(
        table_type=table.table_type,
        form=table.format.archive,
        earliest_to_retain=_earliest_to_retain(contents, cleaning, timeline),
        last_clean=_last_clean(contents, timeline),
        has_metadata_table=has_metadata,
        metadata_compaction=_metadata_compaction(contents.store) if has_metadata else None,
        newest_behind_savepoint=_newest_behind_savepoint(contents, timeline) if config.beyond_savepoint else None,
        columns_in=_columns_in(contents, timeline),
        leased_from=floor_of(contents.store.leases.in_force()),
        data_timeline_start=None if data_timeline is None else data_timeline_start(data_timeline),
    )


def _earliest_to_retain(contents: Contents, cleaning: CleanConfig, timeline: Timeline) -> str | None:
    """Rule D-3: the earliest commit that a clean would retain at the time of the last completed commit."""
    completed = timeline.commits.completed()
    if not completed:
        return None
    zone = contents.store.zone
    try:
        # The time of the last commit, as in Hudi: a table that rests for a month must not archive what a clean has
        # not seen.
        now = parse_instant_time(completed[-1].requested_time, zone)
    except ValueError:
        return None
    earliest = earliest_to_retain(timeline.commits, cleaning, now=now, zone=zone)
    return None if earliest is None else earliest.requested_time


def _last_clean(contents: Contents, timeline: Timeline) -> NewestClean | None:
    """
    From the completed file, which repeats the plan.

    The plan itself may be deleted: an interrupted archival deletes the files of earlier states first.
    """
    completed = timeline.completed(Action.CLEAN)
    if not completed:
        return None
    metadata = contents.clean(completed[-1])
    times = metadata.extra_metadata.get(SAVEPOINTED_TIMES) or ""
    return NewestClean(
        requested_time=completed[-1].requested_time,
        earliest_to_retain=metadata.earliest_commit_to_retain.strip() or None,
        savepoints=frozenset(time.strip() for time in times.split(",") if time.strip()),
    )


def undoable_from(store: TimelineStore, timeline: Timeline) -> str | None:
    """Requested time of the oldest clean whose files are in quarantine until a time to come; None without."""
    cleans = {each.requested_time for each in timeline.completed(Action.CLEAN)}
    now_ms = int(store.clock.now().timestamp() * 1000)
    for name in sorted(cleans & may_hold(store.storage) if cleans else ()):
        try:
            manifest = load_manifest(store.storage, name)
        except CorruptMetadata:  # nobody can undo it
            continue
        if manifest is not None and manifest.until_ms > now_ms:
            return name
    return None


def _newest_behind_savepoint(contents: Contents, timeline: Timeline) -> str | None:
    savepoints = timeline.completed(Action.SAVEPOINT)
    if not savepoints:
        return None
    first = savepoints[0].requested_time
    behind = (i for i in timeline.commits.completed() if i.requested_time > first)
    return newest_writes_since((i.requested_time, readable_commit(contents, i)) for i in behind)


def _columns_in(contents: Contents, timeline: Timeline) -> frozenset[str]:
    """The commits with a schema of rows and the ids of its columns; none unless the newest of them has ids."""
    found = set()
    for instant in reversed(timeline.commits.completed()):
        metadata = readable_commit(contents, instant)
        if metadata is not None and records_schema(metadata):
            if metadata.extra_metadata.get(IDS_ENTRY):
                found.add(instant.requested_time)
            elif not found:
                break  # without schema on read, one commit is enough to know it
    return frozenset(found)


def _metadata_compaction(store: TimelineStore) -> str | None:
    completed = MetadataTable(store.storage, store.clock).store.load().completed(Action.COMMIT)
    return completed[-1].requested_time if completed else None


def first_with_replaced_files(contents: Contents, going: Iterable[Instant]) -> str | None:
    """The first replacecommit among these instants whose replaced files still exist; None if there is none."""
    # To readers a file is replaced only while the active timeline says so. Listing the folders costs a request for
    # each partition, so only those of replacecommits that are due are listed.
    listing = FolderListing(contents.store.storage)
    there: dict[str, frozenset[str]] = {}
    for instant in sorted(going, key=lambda each: each.requested_time):
        metadata = readable_commit(contents, instant) if instant.action is Action.REPLACE_COMMIT else None
        replaced = {} if metadata is None else metadata.partition_to_replace_file_ids or {}
        for partition, file_ids in replaced.items():
            if partition not in there:
                parsed = (parse_data_file(e.name) for e in listing.partition(partition))
                there[partition] = frozenset(file.file_id for file in parsed if file is not None)
            if not there[partition].isdisjoint(file_ids):
                return instant.requested_time
    return None


def readable_commit(contents: Contents, instant: Instant) -> CommitMetadata | None:
    """Return what a commit recorded; None if it is deleted or does not decode."""
    try:
        return contents.commit(instant)
    except (CorruptMetadata, NotFound):
        return None

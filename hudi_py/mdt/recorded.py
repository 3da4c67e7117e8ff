"""
What the metadata table's own completed commits say that the current slices of a partition hold.

A log file that is lost, empty or cut off at the end of a block leaves a slice that reads well and lists older files;
without its newest base file a group falls back to the one before. So before a slice is believed, it is held against
what its commits recorded.

Only commits since the last compaction count, and that is what is read: in layout 1 Hudi and we compact only while no
earlier action is pending, so what was requested before a compaction is in its base file; in layout 2 completion times
tell. Commits that are archived are in the base file or covered by the one that is active.

Source: rules/data-files 9.1 and 10; Hudi ``HoodieBackedTableMetadataWriter.validateCompactionScheduling``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.commit_codec import decode_commit
from hudi_py.fsview.expected import ExpectedSlice, expected_slices
from hudi_py.fsview.listing import listing_threads
from hudi_py.model.files import BaseFile, parse_base_file
from hudi_py.model.instant import Action, Instant
from hudi_py.model.records import CommitMetadata
from hudi_py.timeline.store import TimelineStore
from hudi_py.timeline.timeline import Timeline

CREATES: Final = "BULK_INSERT_PREPPED"
"""Operation of the commit that creates a partition of the metadata table, in Apache Hudi and here."""
_CREATING: Final = frozenset({CREATES, "BULK_INSERT"})
"""The same with the name that 1.0.2 gives it."""
WAY_OUT = (
    "nothing was changed; hudi-py recover creates the metadata table again, and until then "
    "--conf hoodie.metadata.enable=false lists the folders instead"
)


def recorded_slices(
    store: TimelineStore,
    timeline: Timeline,
    partition: str,
    file_ids: Collection[str],
    log_times: Collection[str],
) -> dict[str, ExpectedSlice]:
    """
    File id to what the current slice must hold.

    Args:
        store: The metadata table's timeline store.
        timeline: The metadata table's timeline.
        partition: Partition of the metadata table.
        file_ids: Those whose files were found.
        log_times: The times in the names of the log files that were found.

    Raises:
        CorruptMetadata: A commit that tells it does not decode.
        StorageError: As the storage.
    """
    found = list(_since_compaction(store, timeline, partition, file_ids))
    # An index that was dropped and created again has the same file ids; commits from before do not concern it.
    creations = (
        _done(instant)
        for instant, metadata in found
        if _is_first_of(metadata, partition) or (_creates_empty(metadata) and instant.requested_time in log_times)
    )
    made = max(creations, default="")
    commits = sorted((each for each in found if _done(each[0]) >= made), key=lambda each: each[0].requested_time)
    slices = expected_slices(commits, store.config.format.log_naming)
    return {file_id: each for (path, file_id), each in slices.items() if path == partition}


def _done(instant: Instant) -> str:
    return instant.completion_time or instant.requested_time


def _is_first_of(metadata: CommitMetadata, partition: str) -> bool:
    """Whether a commit created the partition with all of its file groups; later ones are upserts and compactions."""
    return metadata.operation_type in _CREATING and partition in metadata.partition_to_write_stats


def _creates_empty(metadata: CommitMetadata) -> bool:
    """
    Whether a commit created a partition without a record: it names no partition then.

    Only the first log file of each file group has its time. Hudi 0.15.0 writes such a commit for statistics of a table
    whose columns all have none.
    """
    return metadata.operation_type in _CREATING and not metadata.partition_to_write_stats


def check_recorded(expected: ExpectedSlice, base: BaseFile | None, logs: Collection[str], source: str) -> None:
    """
    Refuse a slice without the base file, or a log file, that a completed commit of the metadata table wrote.

    Args:
        expected: See `recorded_slices`.
        base: The newest committed one that was found.
        logs: Names of the log files of the slice.
        source: Folder of the partition, for messages.

    Raises:
        CorruptMetadata: One is missing.
    """
    for file in expected.files:
        is_there = file.name in logs if file.is_log else base is not None and base.instant_time >= file.slice_time
        if not is_there:
            raise CorruptMetadata(
                f"{source}/{file.name} is missing, which the completed {file.commit.action.value} "
                f"{file.commit.requested_time} of the metadata table wrote: without it older files would be listed as "
                f"the latest; {WAY_OUT}"
            )


def _since_compaction(
    store: TimelineStore, timeline: Timeline, partition: str, file_ids: Collection[str]
) -> Iterator[tuple[Instant, CommitMetadata]]:
    """The completed commits that the current slices can be of, newest first."""
    completed = timeline.writes.completed()
    _prefetch(store, completed)
    waiting, oldest = set(file_ids), ""
    for instant in reversed(completed):
        # All groups have a base file, and this commit is older than the oldest of them.
        if not waiting and (instant.completion_time or instant.requested_time) < oldest:
            if store.layout.has_completion_times:
                continue  # one that was requested earlier may have completed later
            return
        metadata = _decoded(store, instant)
        yield instant, metadata
        for stat in metadata.partition_to_write_stats.get(partition, ()):
            base = parse_base_file((stat.path or "").rpartition("/")[2])
            if base is not None and base.file_id in waiting:
                waiting.remove(base.file_id)
                oldest = min(filter(None, (oldest, base.instant_time)))


def _decoded(store: TimelineStore, instant: Instant) -> CommitMetadata:
    try:
        return decode_commit(store.read(instant), f"{store.storage.root}/{store.path(instant)}")
    except CorruptMetadata as error:
        raise CorruptMetadata(f"{error}: which log files count is unknown; {WAY_OUT}") from error


def _prefetch(store: TimelineStore, completed: Collection[Instant]) -> None:
    """On object stores each instant is a round trip: those since the last compaction are read at once."""
    threads = listing_threads(store.storage)
    if threads <= 1:
        return
    # Commits of the metadata table are its compactions; what came before is not asked for as a rule.
    last = next((i.requested_time for i in reversed(list(completed)) if i.action is Action.COMMIT), "")
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(store.read, (i for i in completed if i.requested_time >= last)))

"""
Completes a service that rewrote file slices: leftovers deleted, metadata table, completed file, markers (E-23, E-43).

Before the completed file nothing of it is visible; the next run rolls the attempt back and carries the plan out again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from hudi_py.errors import ConflictError, HudiError
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.model.records import CommitMetadata, WriteStat
from hudi_py.rows.written import WrittenFile
from hudi_py.runtime.log import log
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.markers import delete_markers, delete_unnamed, read_markers
from hudi_py.timeline.row_schema import IDS_ENTRY
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.attempt import Attempt
from hudi_py.txn.beginners import Beginners, ready_after
from hudi_py.txn.commit import Begun


class Overtaken(ConflictError):
    """Another process changed what was rewritten, so the attempt, which is still its own, cannot complete."""


@contextmanager
def taken_back_if_overtaken(instant_time: str, take_back: Callable[[], None]) -> Iterator[None]:
    """
    Take an attempt back at once if another process was faster, so that neither its files nor its plan hinder others.

    What cannot be taken back now is left as a crash would leave it.

    Args:
        instant_time: Requested time of the rewrite.
        take_back: Rolls the attempt back, and withdraws a plan that no longer holds; the attempt is over by then, and
            its note says that it failed.
    """
    try:
        yield
    except Overtaken:
        try:
            take_back()
        except HudiError as error:
            log.warning("rewrite.left", instant=instant_time, why=str(error))
        raise


def publish(
    begun: Begun,
    contents: Contents,
    metadata_table: MetadataTableKeeper,
    written: Sequence[WrittenFile],
    *,
    operation: str,
    schema: str,
    ids: str | None,
    attempt: Attempt,
    replaced: Mapping[str, tuple[str, ...]] | None = None,
    check: Callable[[Timeline], None] | None = None,
) -> CommitMetadata:
    """
    Complete a compaction or clustering, which makes its files visible.

    Args:
        begun: The inflight instant.
        contents: Contents of the table's timeline.
        metadata_table: Updated before the instant completes.
        written: All files that it wrote.
        operation: ``COMPACT`` or ``CLUSTER``.
        schema: Avro text of the rows.
        ids: Their columns with ids; None without schema on read.
        attempt: Shows others that it is at work.
        replaced: Partition path to ids of replaced file groups; None for a compaction.
        check: Called with the timeline, under the lock; raises if the service must not complete.

    Raises:
        ConflictError: Another process completed it, or took it over or took it back meanwhile.
        Overtaken: *check* raised a `ConflictError`.
    """
    storage, time = contents.store.storage, begun.instant.requested_time
    stats: dict[str, list[WriteStat]] = {}
    for each in written:
        stats.setdefault(each.stat.partition_path or "", []).append(each.stat)
    metadata = CommitMetadata(
        partition_to_write_stats={partition: tuple(of_partition) for partition, of_partition in stats.items()},
        compacted=replaced is None,
        extra_metadata={"schema": schema} if ids is None else {"schema": schema, IDS_ENTRY: ids},
        operation_type=operation,
        partition_to_replace_file_ids=replaced,
    )
    ranges = {each.stat.path: each.ranges for each in written if each.stat.path and each.ranges}
    paths = {each.stat.path for each in written}
    with ready_after(Beginners.of(metadata_table.settings), begun) as ready:
        # An attempt whose heartbeat expired counts as dead, and may be rolled back by another process.
        attempt.check()
        if check is not None:
            _check(check, ready.timeline)
        markers = read_markers(storage, time) or frozenset()
        # Whoever rolls this attempt back deletes its markers; a file without one may already be deleted.
        if not paths <= {marker.path for marker in markers}:
            raise ConflictError(
                f"{storage.root}: another process took {begun.instant} over; nothing of this run is visible; try again"
            )
        # Before the commit point: files of retried tasks have its time, and would be visible with it.
        delete_unnamed(storage, markers, paths)
        recorded = ready.record(partial(metadata_table.record_commit, metadata=metadata, ranges=ranges))
        recorded.publish(metadata)
        # After the commit point: until then a rollback finds the files by their markers.
        delete_markers(storage, time)
        attempt.end()
    log.info("rewrite.completed", instant=time, operation=operation, files_written=len(paths))
    return metadata


def _check(check: Callable[[Timeline], None], timeline: Timeline) -> None:
    try:
        check(timeline)
    except ConflictError as error:
        raise Overtaken(str(error)) from error

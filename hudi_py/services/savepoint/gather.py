"""Gathers what decides about a savepoint: other savepoints, what cleans deleted or will delete, files in folders."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from hudi_py.fsview.build import PartitionView, ViewContext, build_partition
from hudi_py.fsview.checked import CheckedListing
from hudi_py.fsview.listing import Listing, listing_threads
from hudi_py.model.files import join_path
from hudi_py.model.holes import Holes, holes_of
from hudi_py.model.instant import Action, Instant
from hudi_py.model.lease import savepoint_name
from hudi_py.model.records import SavepointMetadata
from hudi_py.runtime.log import log
from hudi_py.services.savepoint.schedule import parse_watermark
from hudi_py.storage.base import Storage
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline


def contents_of_savepoints(contents: Contents, timeline: Timeline) -> tuple[tuple[Instant, SavepointMetadata], ...]:
    """
    Every completed savepoint with its content, oldest first.

    Raises:
        CorruptMetadata: One does not decode.
    """
    return tuple((instant, contents.savepoint(instant)) for instant in timeline.completed(Action.SAVEPOINT))


def names_of_savepoints(contents: Contents, timeline: Timeline) -> dict[str, str]:
    """Name to requested time of every completed savepoint. Raises as `contents_of_savepoints`."""
    return {content.name: instant.requested_time for instant, content in contents_of_savepoints(contents, timeline)}


def passing_savepoints(contents: Contents, timeline: Timeline) -> frozenset[str]:
    """
    Requested times of the completed savepoints that end by themselves: with a time to live, or those of leases.

    Raises:
        CorruptMetadata: A savepoint does not decode.
    """
    heads = ((i.requested_time, *contents.savepoint_head(i)) for i in timeline.completed(Action.SAVEPOINT))
    return frozenset(time for time, name, expires in heads if expires is not None or name == savepoint_name(time))


def earliest_retained(contents: Contents, timeline: Timeline) -> tuple[str, Holes]:
    """
    The lower bound of rule C-2, and the snapshots that the last clean kept before its window.

    The bound is that of the last clean, pending or not; without a clean it is the first completed commit. A pending one
    whose plan is torn does not count.
    """
    for clean in reversed(timeline.of((Action.CLEAN,)).instants):
        if clean.is_completed:
            metadata = contents.clean(clean)
            return metadata.earliest_commit_to_retain, holes_of(metadata)
        # Its files may be deleted at any moment, so its plan counts as if it were carried out.
        plan = contents.plan_of_pending_clean(clean)
        if plan is not None:
            earliest = plan.earliest_instant_to_retain
            return "" if earliest is None else earliest.requested_time, holes_of(plan)
    return timeline.commits.completed()[0].requested_time, Holes()


def planned_deletions(
    contents: Contents, timeline: Timeline, before: Timeline | None = None
) -> dict[str, frozenset[str]]:
    """Requested time of each pending clean, and of each that *before* does not know, to the paths that it deletes."""
    planned = {}
    for instant in timeline.of([Action.CLEAN]):
        if instant.is_completed and (before is None or before.find(instant.requested_time, Action.CLEAN) is not None):
            continue
        plan = contents.plan_of_pending_clean(instant)
        if plan is not None:
            planned[instant.requested_time] = frozenset(
                join_path(partition, info.name) for partition, infos in plan.files_to_delete.items() for info in infos
            )
    return planned


def whole_files(paths: Collection[str], folders: CheckedListing, storage: Storage) -> dict[str, frozenset[str]]:
    """Partition path to names of the files that have the sizes which their commits recorded."""

    def names(path: str) -> frozenset[str]:
        return frozenset(entry.name for entry in folders.partition(path, details=True))

    with ThreadPoolExecutor(listing_threads(storage)) as pool:
        return dict(zip(paths, pool.map(names, paths), strict=True))


def partitions_of(context: ViewContext, listing: Listing) -> Iterator[PartitionView]:
    """The view of every partition."""
    # With sizes: files that are cut off must not be protected as if they were complete.
    for path, entries in listing.walk(details=True):
        yield build_partition(context, path, ((entry.name, None) for entry in entries))


def watermarks(contents: Contents, timeline: Timeline, name: str) -> list[tuple[str, datetime]]:
    """
    Requested times of the completed commits of the active timeline that carry a watermark, ascending, each with it.

    Args:
        name: The entry of their extra metadata. A value that is no time is passed over with a warning: the next commit
            with a later one ends the period.

    Raises:
        CorruptMetadata: A commit does not decode.
    """
    found = []
    for commit in timeline.commits.completed():
        text = contents.commit(commit).extra_metadata.get(name)
        if text is None:
            continue
        moment = parse_watermark(text)
        if moment is None:
            log.warning("tag.watermark.unreadable", instant=commit.requested_time, name=name, value=text)
            continue
        found.append((commit.requested_time, moment))
    return found

"""
Records a restore in the metadata table, as the last thing before the restore completes.

The rollbacks of a restore are deleted from the data timeline, and Hudi 0.15 then ignores whatever was recorded under
their times. So nothing is recorded there: the delta commits of what was undone are taken back, and the
differences between the listing and the folders are recorded once, under the time of the restore, which stays. Hudi
compares with the folders too.

Source: rules/table-services B-31, rules/data-files 11; Hudi ``HoodieBackedTableMetadataWriter``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hudi_py.fsview.listing import Listing
from hudi_py.mdt.changes import ListingChanges, records_of
from hudi_py.mdt.read import MetadataReader
from hudi_py.mdt.table import MetadataTable
from hudi_py.mdt.update import withdraw, write_delta_commit
from hudi_py.model.files import is_data_file
from hudi_py.model.instant import Instant
from hudi_py.timeline.timeline import Timeline


def record_restore(
    table: MetadataTable,
    data_timeline: Timeline,
    requested_time: str,
    vanishing: Iterable[str],
    listing: Listing,
    statistics: Callable[[ListingChanges], Mapping[str, Mapping[str, bytes | None]]] | None = None,
    lost: Callable[[], None] | None = None,
) -> Instant | None:
    """
    Make the metadata table list what is there after a restore; call it while the restore is pending. Repeatable.

    Args:
        table: The metadata table.
        data_timeline: The data table's timeline.
        requested_time: Requested time of the restore.
        vanishing: Requested times of everything that was undone, and of the rollbacks that go with the restore.
        listing: The folders of the data table.
        statistics: Returns the records of further partitions, see `write_delta_commit`.
        lost: Called before those are asked for, where a compaction has merged records of what was undone.

    Returns:
        The completed delta commit, or None when there was nothing to record.

    Raises:
        As `write_delta_commit`.
    """
    # Newest first, as the data table undoes them.
    withdrawn = [withdraw(table, time) for time in sorted(set(vanishing), reverse=True)]
    if lost is not None and not all(withdrawn):
        lost()
    # After that, not before: the difference is to what is listed then.
    changes = _differences(table, data_timeline, listing)
    if not records_of(changes):
        return None
    further = None if statistics is None else statistics(changes)
    return write_delta_commit(table, data_timeline, requested_time, changes, further)


def _differences(table: MetadataTable, data_timeline: Timeline, listing: Listing) -> ListingChanges:
    added: dict[str, dict[str, int]] = {}
    deleted: dict[str, list[str]] = {}
    with MetadataReader(table, data_timeline) as reader:
        unseen = set(reader.partitions())
        unlisted = []
        for path, entries in listing.walk(details=True):
            there = {e.name: e.size_bytes or 0 for e in entries if is_data_file(e.name)}
            listed = reader.files(path)
            added[path] = {name: size for name, size in there.items() if size > listed.get(name, 0)}
            deleted[path] = sorted(listed.keys() - there.keys())
            if path not in unseen:
                unlisted.append(path)
            unseen.discard(path)
        for path in sorted(unseen):
            deleted[path] = sorted(reader.files(path))
    return ListingChanges(
        added={path: sizes for path, sizes in added.items() if sizes},
        deleted={path: names for path, names in deleted.items() if names},
        written_partitions=tuple(unlisted),
    )

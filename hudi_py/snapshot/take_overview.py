"""Loads what one page about a table needs, with one listing; `hudi_py.snapshot.overview` counts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from hudi_py.config.table import TableConfig
from hudi_py.errors import HudiError
from hudi_py.fsview.build import PartitionView, build_partition
from hudi_py.fsview.listing import Listing
from hudi_py.fsview.loader import load_context
from hudi_py.mdt.statistics import COLUMN_STATS
from hudi_py.model.files import METADATA_TABLE_FOLDER, is_data_file
from hudi_py.runtime.log import log
from hudi_py.snapshot.overview import Amount, ColumnRange, FileTotals, Overview, overview_of, ranges_of, total_of
from hudi_py.snapshot.snapshot import Snapshot
from hudi_py.storage.base import Storage
from hudi_py.timeline.contents import Contents


def take_overview(
    contents: Contents, latest: Snapshot, listing: Listing, *, columns_files_max: int | None, now: datetime
) -> Overview:
    """
    Args:
        contents: Reads the instants of the table's timeline.
        latest: The latest snapshot.
        listing: The table's listing of files.
        columns_files_max: Ranges of columns are left out if the snapshot has more files than this; never for None.
        now: The present, to compute ages.

    Raises:
        CorruptMetadata: The metadata table or an instant is damaged.
    """
    context = load_context(latest.timeline, contents, with_clustering=False)

    def partitions() -> Iterator[tuple[PartitionView, dict[str, int | None]]]:
        for path, entries in listing.walk(details=True):
            sizes = {entry.name: entry.size_bytes for entry in entries}
            yield build_partition(context, path, sizes.items()), sizes

    def ranges(files: FileTotals) -> tuple[ColumnRange, ...] | None:
        # Each file has a record for each column, and all of them are read.
        is_long = columns_files_max is not None and files.latest.files > columns_files_max
        return None if is_long else _ranges(latest, files)

    return overview_of(
        timeline=latest.timeline,
        context=context,
        partitions=partitions(),
        metadata_partitions=_metadata_amounts(latest.storage, latest.config),
        is_fresh=listing.is_fresh,
        ranges=ranges,
        now=now,
        zone=contents.store.zone,
    )


def partition_ranges(
    contents: Contents, latest: Snapshot, listing: Listing, path: str
) -> tuple[ColumnRange, ...] | None:
    """
    Return the ranges of the columns in one partition of the latest snapshot; None where they are not known.

    Args:
        contents: Reads the instants of the table's timeline.
        latest: The latest snapshot.
        listing: The table's listing of files.
        path: Relative path of the partition.

    Raises:
        CorruptMetadata: An instant is damaged.
    """
    context = load_context(latest.timeline, contents, with_clustering=False)
    sizes: dict[str, int | None] = {entry.name: entry.size_bytes for entry in listing.partition(path)}
    views = [(build_partition(context, path, sizes.items()), sizes)]
    return _ranges(latest, total_of(context, views, latest.timeline.compacting))


def _ranges(latest: Snapshot, files: FileTotals) -> tuple[ColumnRange, ...] | None:
    # Statistics describe base files: with log files on top, a range could miss values.
    if files.log_files:
        return None
    try:
        reader = latest.column_statistics()
        if reader is None:
            return None
        with reader:
            return ranges_of(reader.scan(), files.suffixes)
    except HudiError as error:
        log.warning("overview.statistics.unusable", partition=COLUMN_STATS, reason=str(error))
        return None


def _metadata_amounts(storage: Storage, config: TableConfig) -> dict[str, Amount]:
    found = {}
    for name in sorted({*config.metadata_partitions, *config.metadata_partitions_inflight}):
        amount = Amount()
        for entry in storage.list(f"{METADATA_TABLE_FOLDER}/{name}", details=True):
            if is_data_file(entry.name):
                amount = amount.plus(entry.size_bytes)
        found[name] = amount
    return found

"""
One page about a table: its files, its instants and the ranges of its columns. Pure.

Source: `hudi_py.fsview.build` classifies files; `hudi_py.mdt.statistics` says which bounds can be trusted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta, tzinfo
from typing import Any, Final

import attrs

from hudi_py.fsview.as_of import readable_slices
from hudi_py.fsview.build import PartitionView, ViewContext
from hudi_py.mdt.statistics import key_suffix, suffix_of
from hudi_py.model.column_statistics import ColumnStatistics
from hudi_py.model.files import is_data_file, parse_base_file, parse_log_file
from hudi_py.model.instant import Action, Instant
from hudi_py.model.instant_time import EPOCH, parse_instant_time
from hudi_py.timeline.timeline import Timeline

_FLOATS: Final = ("float", "double")


@attrs.frozen
class Amount:
    """Number of files and their total size in bytes."""

    files: int = 0
    bytes: int = 0

    def plus(self, size: int | None) -> Amount:
        """This amount and one more file."""
        return Amount(self.files + 1, self.bytes + (size or 0))


@attrs.frozen(kw_only=True)
class FileTotals:
    """
    The data files of a table.

    Args:
        partitions: Number of partitions; 1 for a table without partition columns.
        file_groups: Number of live file groups.
        latest: Files that the latest snapshot reads.
        older: Files of earlier slices and replaced groups, which cleans delete in the end.
        uncommitted: Files of instants that are neither completed nor archived; None if the metadata table listed the
            files, which knows none of them.
        suffixes: Suffixes of the keys that latest base files have in `column_stats`.
        log_files: Number of log files among the latest files.
    """

    partitions: int = 0
    file_groups: int = 0
    latest: Amount = Amount()
    older: Amount = Amount()
    uncommitted: Amount | None = Amount()
    suffixes: frozenset[str] = frozenset()
    log_files: int = 0


@attrs.frozen(kw_only=True)
class ColumnRange:
    """
    The range of one column in the latest snapshot; `hudi_py.mdt.statistics.ColumnStatistics` is that of one file.

    Args:
        column: Its name.
        kind: Type of the bounds.
        minimum: Lower bound; None if unknown, as when a file has no bounds.
        maximum: Upper bound; None if unknown.
        null_count: Number of nulls; None if unknown.
    """

    column: str
    kind: str | None
    minimum: Any
    maximum: Any
    null_count: int | None


@attrs.frozen(kw_only=True)
class Overview:
    """
    One page about a table.

    Args:
        files: See `FileTotals`.
        instants: Number of instants on the active timeline, by action and state.
        last: ``commit`` (any completed write) and ``clean``, to the instant and the seconds since it completed.
        pending: Instants that are not completed, oldest first.
        savepoints: Requested times of savepoints.
        metadata_partitions: Files of each partition of the metadata table, partitions being built included.
        columns: Ranges by column; None unless every latest file has column statistics.
    """

    files: FileTotals
    instants: Mapping[str, Mapping[str, int]]
    last: Mapping[str, tuple[Instant, float]]
    pending: tuple[Instant, ...]
    savepoints: tuple[str, ...]
    metadata_partitions: Mapping[str, Amount]
    columns: tuple[ColumnRange, ...] | None


def total_of(
    context: ViewContext,
    partitions: Iterable[tuple[PartitionView, Mapping[str, int | None]]],
    pending_compactions: Collection[str],
) -> FileTotals:
    """
    Args:
        context: What the view was built with.
        partitions: Each partition's view, and all its files: name to size in bytes.
        pending_compactions: Requested times of pending compactions; what was logged behind them is read, too.
    """
    latest = older = uncommitted = Amount()
    count = groups = log_files = 0
    suffixes: set[str] = set()
    for partition, sizes in partitions:
        count += 1
        groups += len(partition.groups)
        names: set[str] = set()
        for file_slice in readable_slices(context, partition, pending_compactions):
            names.update(log.name for log in file_slice.log_files)
            log_files += len(file_slice.log_files)
            if file_slice.base_file is not None:
                names.add(file_slice.base_file.name)
                # Keys of `column_stats` end in hashes of partition and file name, so suffixes are enough to know whose
                # they are.
                suffixes.add(key_suffix(partition.partition_path, file_slice.base_file.name))
        for name, size in sizes.items():
            if name in names:
                latest = latest.plus(size)
            # In this order: a file of the latest slices is never counted as older, and one of a failed write never as
            # garbage.
            elif _is_uncommitted(context, name):
                uncommitted = uncommitted.plus(size)
            elif is_data_file(name):
                older = older.plus(size)
    return FileTotals(
        partitions=count,
        file_groups=groups,
        latest=latest,
        older=older,
        uncommitted=uncommitted,
        suffixes=frozenset(suffixes),
        log_files=log_files,
    )


def _is_uncommitted(context: ViewContext, name: str) -> bool:
    base = parse_base_file(name)
    if base is not None:
        return not context.is_completed(base.instant_time)
    log = parse_log_file(name)
    return log is not None and not context.log_naming.tells_slice and not context.is_completed(log.instant_time)


def instants_of(timeline: Timeline) -> dict[str, dict[str, int]]:
    """Number of instants by action and state."""
    counted = Counter((instant.action.value, instant.state.name) for instant in timeline)
    found: dict[str, dict[str, int]] = {}
    for (action, state), number in sorted(counted.items()):
        found.setdefault(action, {})[state] = number
    return found


def last_of(timeline: Timeline, now: datetime, zone: tzinfo) -> dict[str, tuple[Instant, float]]:
    """The last completed write and clean, and the seconds since; left out if its time is not a date."""
    found = {}
    for name, completed in (("commit", timeline.writes.completed()), ("clean", timeline.completed(Action.CLEAN))):
        if completed:
            # By completion: an old write may have completed last (layout 2).
            newest = max(completed, key=lambda each: each.completion_time or each.requested_time)
            try:
                moment = parse_instant_time(newest.completion_time or newest.requested_time, zone)
            except ValueError:
                continue
            found[name] = (newest, (now - moment).total_seconds())
    return found


def ranges_of(
    records: Iterable[tuple[str, ColumnStatistics]], suffixes: frozenset[str]
) -> tuple[ColumnRange, ...] | None:
    """
    Ranges of the columns that have statistics of every latest file.

    Args:
        records: Keys and statistics of the records in `column_stats`.
        suffixes: See `FileTotals`.

    Returns:
        Ranges, sorted by column; None if no column has statistics of all files, as in a table without files.
    """
    found: dict[str, list[ColumnStatistics]] = {}
    for key, each in records:
        if suffix_of(key) in suffixes:
            found.setdefault(each.column, []).append(each)
    # A column that one file lacks could have any value there.
    whole = sorted(column for column, of_files in found.items() if len(of_files) == len(suffixes))
    return tuple(_range(column, found[column]) for column in whole) if whole else None


def _range(column: str, of_files: list[ColumnStatistics]) -> ColumnRange:
    nulls = [each.null_count for each in of_files]
    # Files with nulls only have no bounds, and do not make those of the others unknown.
    with_values = [each for each in of_files if each.null_count is None or each.null_count != each.value_count]
    kinds = {each.kind for each in with_values}
    # A column that changed its type has bounds of two kinds, which have no common order.
    kind = kinds.pop() if len(kinds) == 1 else None
    is_known = bool(with_values) and kind is not None and all(_has_bounds(each) for each in with_values)
    return ColumnRange(
        column=column,
        kind=kind,
        minimum=min(value.minimum for value in with_values) if is_known else None,
        maximum=max(each.maximum for each in with_values) if is_known else None,
        null_count=None if None in nulls else sum(count for count in nulls if count is not None),
    )


def _has_bounds(each: ColumnStatistics) -> bool:
    """Whether the bounds can be trusted: for a NaN, Apache Hudi writes 0.0 as both of them."""
    if each.kind in _FLOATS and each.minimum == each.maximum == 0:
        return False
    return each.minimum is not None and each.maximum is not None


def plain_bound(value: Any, kind: str | None) -> Any:
    """A bound as text, number, boolean or bytes; times in ISO 8601."""
    if kind in ("timestamp-micros", "local-timestamp-micros") and isinstance(value, int):
        try:
            moment = EPOCH + timedelta(microseconds=value)
        except OverflowError:
            return str(value)
        return moment.replace(tzinfo=None).isoformat() if kind.startswith("local") else moment.isoformat()
    return value if value is None or isinstance(value, (bool, int, float, str, bytes)) else str(value)


def overview_of(
    *,
    timeline: Timeline,
    context: ViewContext,
    partitions: Iterable[tuple[PartitionView, Mapping[str, int | None]]],
    metadata_partitions: Mapping[str, Amount],
    is_fresh: bool,
    ranges: Callable[[FileTotals], tuple[ColumnRange, ...] | None],
    now: datetime,
    zone: tzinfo,
) -> Overview:
    """
    Compute the page.

    Args:
        timeline: The active timeline.
        context: See `total_of`.
        partitions: See `total_of`.
        metadata_partitions: See `Overview`.
        is_fresh: Whether the partitions hold files of pending writes, too; see `hudi_py.fsview.listing.Listing`.
        ranges: Returns the ranges of columns; called once the files are known.
        now: The present, to compute ages.
        zone: Time zone of the timeline's times.
    """
    files = total_of(context, partitions, timeline.compacting)
    if not is_fresh:
        files = attrs.evolve(files, uncommitted=None)
    return Overview(
        files=files,
        instants=instants_of(timeline),
        last=last_of(timeline, now, zone),
        pending=timeline.pending(),
        savepoints=tuple(instant.requested_time for instant in timeline.completed(Action.SAVEPOINT)),
        metadata_partitions=metadata_partitions,
        columns=ranges(files),
    )

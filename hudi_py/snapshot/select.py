"""
Which files make up a snapshot. Pure.

Source: Hudi ``HoodieFileSystemView.getLatestMergedFileSlicesBeforeOrOn``, ``TimelineUtils.validateTimestampAsOf``;
rules/timeline 7 (time travel).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

import attrs

from hudi_py.errors import RefusedError, UnsupportedTable
from hudi_py.model.files import (
    BaseFile,
    FileSlice,
    LogFile,
    bases_of,
    join_path,
    parse_base_file,
    parse_log_file,
)
from hudi_py.model.holes import NO_HOLES, Holes
from hudi_py.timeline.timeline import Timeline

_READ: Final = {"parquet": "Parquet", "orc": "ORC"}
"""Extensions of the base files whose rows are read, and what they are called."""


def check_as_of(
    timeline: Timeline,
    as_of: str,
    *,
    earliest_retained: str,
    pending_clusterings: frozenset[str],
    undone: Callable[[], Collection[str]],
    holes: Holes = NO_HOLES,
) -> None:
    """
    Refuse a time whose rows are no longer complete, or may still change.

    Args:
        as_of: Instant time.
        earliest_retained: The time from which on the last completed clean kept everything; ``""`` when unknown.
        pending_clusterings: Requested times of pending clusterings, which change no rows.
        undone: Requested times of the writes that rollbacks and restores undid after that clean; asked only where it
            matters.
        holes: Times before that window which the last clean kept readable.

    Raises:
        RefusedError: A clean deleted files of that time, or a write requested by then is still pending.
    """
    start, window = (
        _undone_start(timeline, time, undone) if as_of < time else time for time in (earliest_retained, holes.window)
    )
    if start and as_of < start:
        raise RefusedError(
            f"the table cannot be read as of {as_of}: a clean removed what was only needed before {earliest_retained}; "
            f"the earliest readable instant is {earliest_retained}"
        )
    if as_of < window:
        # A clean keeps snapshots of commits. A time between two commits reads the earlier one.
        seen = max((i.requested_time for i in timeline.commits.completed() if i.requested_time <= as_of), default=as_of)
        if holes.holds(seen):
            raise RefusedError(
                f"the table cannot be read as of {as_of}: before {holes.window} a clean kept single snapshots "
                f"only, and this is not one of them; read {', '.join(holes.snapshots)}, or from {holes.window} on"
            )
    # A pending write may still complete, and its rows would then belong to this time, too (rules/timeline 7).
    pending = [i for i in timeline.commits.pending() if i.requested_time not in pending_clusterings]
    if pending and as_of >= pending[0].requested_time:
        raise RefusedError(
            f"the table cannot be read as of {as_of}: {pending[0]} may still change the answer; read an earlier "
            "instant, or roll it back if its writer is dead"
        )


def _undone_start(timeline: Timeline, start: str, undone: Callable[[], Collection[str]]) -> str:
    """
    From when on everything is whole, where a clean said *start*.

    If that commit was undone since, the commit before it became the latest: a rollback or restore is refused unless all
    of its rows are there.
    """
    first = timeline.first_not_savepointed
    if first is None:
        return start
    # Behind the first commit a time that is not active was undone. Older ones may be archived, and a clustering that
    # was undone leaves its plan and may have completed again: there only the record of a rollback tells.
    is_known = timeline.writes.find(start) is not None or start < first
    if is_known and start not in undone():
        return start
    before = [each.requested_time for each in timeline.commits.completed() if each.requested_time < start]
    return before[-1] if before else start


def check_rows_are_whole(properties: Mapping[str, str], source: str) -> None:
    """
    Refuse bootstrapped tables, for callers that hand out base files as the rows: columns may be outside of the table.

    Args:
        properties: The table's properties (``hoodie.properties``).
        source: Named in the error.

    Raises:
        UnsupportedTable: The table was bootstrapped.
    """
    if properties.get("hoodie.bootstrap.base.path", "").strip():
        raise UnsupportedTable(
            f"{source}: the table was bootstrapped from {properties['hoodie.bootstrap.base.path']}, where the columns "
            "of its rows may still be; read the rows with Table.rows (hudi-py read), which joins both files"
        )


def check_files_have_all_columns(properties: Mapping[str, str], source: str) -> None:
    """
    Refuse tables whose base files lack columns, for callers that hand out base files as the rows.

    Args:
        properties: The table's properties (``hoodie.properties``).
        source: Named in the error.

    Raises:
        UnsupportedTable: The partition columns are in the paths only.
    """
    from hudi_py.rows.path_columns import lacks_partition_columns

    if lacks_partition_columns(properties):
        raise UnsupportedTable(
            f"{source}: the files lack the partition columns (hoodie.datasource.write.drop.partition.columns=true); "
            "read the rows with Table.rows (hudi-py read), which takes them from the paths"
        )


def check_columns_keep_names(files: Iterable[tuple[str, BaseFile]], source: str) -> None:
    """
    Refuse files whose columns have other names today: readers by name show null for them, or old values for new ones.

    Raises:
        UnsupportedTable: There is one.
    """
    for partition, base in files:
        if base.moved is not None:
            names = ", ".join(
                f"{today} was {name}" for name, today in sorted(base.moved.names.items()) if today != name
            )
            raise UnsupportedTable(
                f"{source}: {join_path(partition, base.name)} has other columns under the names of today "
                f"({names or 'some were dropped'}), and would be read by name; read the rows with Table.rows "
                "(hudi-py read), which finds them by their ids"
            )


def check_base_files(slices: Iterable[FileSlice], extensions: Collection[str], source: str) -> None:
    """
    Refuse base files in other formats than those of the table, and in others than Parquet and ORC.

    Args:
        slices: Whose rows are read.
        extensions: Of the table's base files, without the dot; empty if any is allowed.
        source: Of the table, for the message.

    Raises:
        UnsupportedTable: There is one.
    """
    for partition, base in bases_of(slices):
        if base.extension not in _READ or (extensions and base.extension not in extensions):
            formats = " or ".join(name for each, name in _READ.items() if each in extensions) or "Parquet or ORC"
            raise UnsupportedTable(
                f"{source}: {join_path(partition, base.name)} is not in {formats}, and only such files of this table "
                "are read; read the table with Apache Hudi"
            )


def base_files(slices: Sequence[FileSlice], source: str) -> tuple[tuple[str, BaseFile], ...]:
    """
    Partition path and base file of each slice, for callers that hand out base files as the rows.

    Log files of change data capture repeat what changed; the rows themselves are in the base file.

    Raises:
        UnsupportedTable: A slice has log files with rows, or a base file has columns under other names than today's.
    """
    check_columns_keep_names(bases_of(slices), source)
    for file_slice in slices:
        if has_logs([file_slice]):
            raise UnsupportedTable(
                f"{source}: file group {file_slice.file_id} has log files, whose rows its base file lacks; read them "
                "with Table.rows (hudi-py read), or compact the table with Apache Hudi first"
            )
    return bases_of(slices)


def has_logs(slices: Iterable[FileSlice]) -> bool:
    """Whether a slice has log files to merge; change logs do not count."""
    return any(not log.is_cdc for file_slice in slices for log in file_slice.log_files)


def with_recorded_sizes(
    slices: Sequence[FileSlice],
    recorded: Callable[[Mapping[str, Collection[str]]], Mapping[str, Mapping[str, int]]],
) -> tuple[FileSlice, ...]:
    """
    The same slices, with the sizes that commits recorded where the listing has none; readers compare sizes.

    Args:
        slices: File slices of a snapshot.
        recorded: Returns sizes in bytes of files, both by partition path and name; asked only for those without.
    """
    unknown: dict[str, list[str]] = {}
    for each in slices:
        names = [file.name for file in each.files if file.size_bytes is None]
        if names:
            unknown.setdefault(each.partition_path, []).extend(names)
    if not unknown:
        return tuple(slices)
    sizes = recorded(unknown)
    return tuple(_sized(each, sizes.get(each.partition_path, {})) for each in slices)


def _sized(file_slice: FileSlice, sizes: Mapping[str, int]) -> FileSlice:
    # Built by hand, for `attrs.evolve` takes longer than to find the sizes.
    base, logs = file_slice.base_file, file_slice.log_files
    if base is not None and base.size_bytes is None:
        known = sizes.get(base.name)
        base = BaseFile(
            base.name, base.file_id, base.write_token, base.instant_time, base.extension, known, base.source, base.moved
        )
    if logs:
        logs = tuple(
            attrs.evolve(log, size_bytes=sizes.get(log.name)) if log.size_bytes is None else log for log in logs
        )
    return FileSlice(file_slice.partition_path, file_slice.file_id, file_slice.base_instant_time, base, logs)


def size_of(file_slice: FileSlice) -> int:
    """Bytes of the files of a slice; unknown sizes count as 0."""
    return file_slice.size_bytes


def slices_of_names(files: Mapping[str, Iterable[str]]) -> tuple[FileSlice, ...]:
    """One slice per file group, from the names of its files; *files* maps partition paths to names."""
    bases: dict[tuple[str, str], BaseFile] = {}
    logs: dict[tuple[str, str], list[LogFile]] = {}
    for partition, names in files.items():
        for name in names:
            base, log = parse_base_file(name), parse_log_file(name)
            if base is not None:
                # If several base files of a group are named, its rows are in the newest one.
                known = bases.setdefault((partition, base.file_id), base)
                if known.instant_time < base.instant_time:
                    bases[partition, base.file_id] = base
            elif log is not None:
                logs.setdefault((partition, log.file_id), []).append(log)
    found = []
    for key in sorted(bases.keys() | logs.keys()):
        held = sorted(logs.get(key, ()), key=lambda each: each.order)
        newest = bases.get(key)
        time = held[0].instant_time if newest is None else newest.instant_time
        found.append(FileSlice(*key, time, newest, tuple(held)))
    return tuple(found)

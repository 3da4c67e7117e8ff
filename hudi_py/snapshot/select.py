"""
Which files hold a snapshot. Pure.

Source: Hudi ``HoodieFileSystemView.getLatestMergedFileSlicesBeforeOrOn``, ``TimelineUtils.validateTimestampAsOf``;
rules/timeline 7 (time travel).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from hudi_py.errors import RefusedError, UnsupportedTable
from hudi_py.fsview.build import PartitionView, ViewContext, without_pending_files
from hudi_py.model.files import (
    BaseFile,
    FileSlice,
    LogFile,
    in_default_partition,
    join_path,
    parse_base_file,
    parse_log_file,
)
from hudi_py.model.holes import NO_HOLES, Holes
from hudi_py.timeline.timeline import Timeline

if TYPE_CHECKING:
    from hudi_py.rows.predicate import Filter


def context_as_of(context: ViewContext, as_of: str) -> ViewContext:
    """
    The view as the table was at *as_of*: later instants invisible, groups replaced later still live.

    Pending compactions and clusterings are left out: they hold no rows of their own.
    """
    visible = frozenset(time for time in context.visible_times if time <= as_of)
    last = None if context.last_time is None else min(context.last_time, as_of)
    return attrs.evolve(
        context,
        visible_times=visible,
        completed_times=frozenset(time for time in context.completed_times if time <= as_of),
        last_time=last,
        replaced={key: time for key, time in context.replaced.items() if time <= as_of},
        pending_compactions={},
        pending_clustering={},
    )


def check_as_of(
    timeline: Timeline,
    as_of: str,
    *,
    earliest_retained: str,
    pending_clusterings: frozenset[str],
    holes: Holes = NO_HOLES,
) -> None:
    """
    Refuse a time for which the table no longer (or not yet) has one answer.

    Args:
        as_of: Instant time.
        earliest_retained: What the last completed clean kept everything from; ``""`` when unknown.
        pending_clusterings: Requested times: those change no rows.
        holes: What the last clean left before its window.

    Raises:
        RefusedError: Earlier files are deleted, or a write of that time is still pending.
    """
    if earliest_retained and as_of < earliest_retained:
        raise RefusedError(
            f"the table cannot be read as of {as_of}: a clean removed what was only needed before {earliest_retained}; "
            f"the earliest readable instant is {earliest_retained}"
        )
    if as_of < holes.window:
        seen = max((i.requested_time for i in timeline.commits.completed() if i.requested_time <= as_of), default=as_of)
        if holes.holds(seen):
            raise RefusedError(
                f"the table cannot be read as of {as_of}: before {holes.window} a clean kept single snapshots "
                f"only, and that is none of them; read {', '.join(holes.snapshots)}, or from {holes.window} on"
            )
    pending = [i for i in timeline.commits.pending() if i.requested_time not in pending_clusterings]
    if pending and as_of >= pending[0].requested_time:
        raise RefusedError(
            f"the table cannot be read as of {as_of}: {pending[0]} may still change the answer; read an earlier "
            "instant, or roll it back if its writer is dead"
        )


def check_default_partition(
    partitions: Iterable[str], filters: Iterable[Filter], partition_fields: Sequence[str]
) -> None:
    """
    Refuse conditions on a partition column that would be answered otherwise than by Apache Hudi.

    Rows whose partition value is null, empty or the default partition's own name lie in one folder. Hudi reads null for
    all of them (yet finds them by ``= ''``), the files hold what was written. What asks for another value exactly is
    answered alike by both.

    Raises:
        RefusedError: The snapshot has such rows, and whether they meet the conditions depends on that.
    """
    from hudi_py.rows.default_partition import depends_on

    filters = tuple(filters)
    asked = {".".join(leaf.path) for each in filters for leaf in each.leaves}.intersection(partition_fields)
    if not asked:
        return
    count = len(partition_fields)
    for partition in partitions:
        without = frozenset(
            name for name in asked if in_default_partition(partition, partition_fields.index(name), count)
        )
        condition = depends_on(filters, without) if without else None
        if condition is not None:
            name = ".".join(condition.path)
            raise RefusedError(
                f"the condition on {name} ({condition.condition}) cannot be answered: partition {partition!r} holds "
                f"rows without a {name} beside rows with an empty one, and Apache Hudi reads null for both; ask for "
                f"{name} = VALUE, or read without the condition and choose among the rows"
            )


def check_rows_are_whole(properties: Mapping[str, str], source: str) -> None:
    """
    Refuse tables of whose rows a part lies elsewhere.

    Args:
        properties: The table's properties (``hoodie.properties``).
        source: Named in the error.

    Raises:
        UnsupportedTable: The rows may be where the table was made from.
    """
    if properties.get("hoodie.bootstrap.base.path", "").strip():
        raise UnsupportedTable(
            f"{source}: the table was bootstrapped from {properties['hoodie.bootstrap.base.path']}, where the columns "
            "of its rows may still be; hudi_py does not join them, read the table with Apache Hudi"
        )


def check_files_have_all_columns(properties: Mapping[str, str], source: str) -> None:
    """
    Refuse tables whose base files are not their rows, for whoever takes the one for the other.

    Args:
        properties: The table's properties (``hoodie.properties``).
        source: Named in the error.

    Raises:
        UnsupportedTable: The partition columns stand in the paths only.
    """
    from hudi_py.rows.path_columns import lacks_partition_columns

    if lacks_partition_columns(properties):
        raise UnsupportedTable(
            f"{source}: the files lack the partition columns (hoodie.datasource.write.drop.partition.columns=true); "
            "read the rows with Table.rows (hudi-py read), which takes them from the paths"
        )


def check_columns_keep_names(moved: Sequence[str], source: str) -> None:
    """
    Refuse what reading by name would show wrong: nulls for renamed columns, values of a dropped one.

    Args:
        moved: See `renamed_columns`.
        source: Named in the error.

    Raises:
        UnsupportedTable: There is one.
    """
    if moved:
        raise UnsupportedTable(
            f"{source}: older files have other columns under the names of today ({', '.join(moved[:3])}), and hudi_py "
            "reads by name; read the table with Apache Hudi and hoodie.schema.on.read.enable=true"
        )


def check_base_files(slices: Iterable[FileSlice], source: str) -> None:
    """
    Refuse rows in files that are not read.

    Raises:
        UnsupportedTable: A base file is not Parquet.
    """
    for partition, base in bases_of(slices):
        if base.extension != "parquet":
            raise UnsupportedTable(
                f"{source}: {join_path(partition, base.name)} is not a Parquet file, and hudi_py reads the rows of "
                "Parquet only; read the table with Apache Hudi"
            )


def base_files(slices: Sequence[FileSlice], source: str) -> tuple[tuple[str, BaseFile], ...]:
    """
    Partition path and base file of each slice, for whoever takes those for the rows.

    Log files of change data capture hold what changed, besides the rows, so nothing of them has to be merged.

    Raises:
        UnsupportedTable: A slice has log files, which hold rows too.
    """
    for each in slices:
        if has_logs([each]):
            raise UnsupportedTable(
                f"{source}: file group {each.file_id} has log files, whose rows its base file lacks; read them with "
                "Table.rows (hudi-py read), or compact the table with Apache Hudi first"
            )
    return bases_of(slices)


def bases_of(slices: Iterable[FileSlice]) -> tuple[tuple[str, BaseFile], ...]:
    """Partition path and base file of the slices that have one."""
    return tuple((each.partition_path, each.base_file) for each in slices if each.base_file is not None)


def has_logs(slices: Iterable[FileSlice]) -> bool:
    """Whether there are log files to merge, those of change data capture apart."""
    return any(not log.is_cdc for each in slices for log in each.log_files)


def with_recorded_sizes(
    slices: Sequence[FileSlice], recorded: Callable[[], Mapping[str, Mapping[str, int]]]
) -> tuple[FileSlice, ...]:
    """
    The same slices, with the sizes that commits recorded if the listing has none: readers compare them.

    Args:
        slices: File slices of a snapshot.
        recorded: Gives partition path to names and sizes in bytes; not asked where the listing told all sizes.
    """
    if all(file.size_bytes is not None for each in slices for file in each.files):
        return tuple(slices)
    sizes = recorded()

    def sized(each: FileSlice) -> FileSlice:
        known = sizes.get(each.partition_path, {})
        base = each.base_file
        if base is not None and base.size_bytes is None:
            base = attrs.evolve(base, size_bytes=known.get(base.name))
        logs = (
            attrs.evolve(log, size_bytes=known.get(log.name)) if log.size_bytes is None else log
            for log in each.log_files
        )
        return attrs.evolve(each, base_file=base, log_files=tuple(logs))

    return tuple(map(sized, slices))


def size_of(file_slice: FileSlice) -> int:
    """Bytes of the files of a slice as far as they are known."""
    return file_slice.size_bytes


def readable_slices(
    context: ViewContext, partition: PartitionView, pending_compactions: Collection[str] = ()
) -> tuple[FileSlice, ...]:
    """
    The newest slice with files of each live group, without log files of writes that are not completed.

    A pending compaction opens a slice whose log files are read together with the slice before, whatever it has written
    of its base file (``AbstractTableFileSystemView.fetchMergedFileSlice``).

    Args:
        context: View context of the time asked for; *partition* was built with it.
        partition: Its file groups.
        pending_compactions: Requested times.
    """
    opened = {
        each.file_id: attrs.evolve(each, base_file=None)
        for each in partition.uncommitted
        if each.base_instant_time in pending_compactions
    }
    found = []
    for group in partition.groups:
        slices = [each for each in group.slices if not each.is_empty]
        if not slices and group.file_id not in opened:
            continue
        # of what a range of commits wrote there may be nothing before that slice
        newest = slices[0] if slices else attrs.evolve(opened[group.file_id], log_files=())
        if newest.base_file is None and newest.base_instant_time in pending_compactions and len(slices) > 1:
            newest = attrs.evolve(slices[1], log_files=(*slices[1].log_files, *newest.log_files))
        if group.file_id in opened:
            newest = attrs.evolve(newest, log_files=(*newest.log_files, *opened[group.file_id].log_files))
        visible = without_pending_files(context, newest)
        if not visible.is_empty:
            found.append(visible)
    return tuple(found)


def slices_of_names(files: Mapping[str, Iterable[str]]) -> tuple[FileSlice, ...]:
    """The slice of each group of which files are named, all of one time; partition path to names."""
    bases: dict[tuple[str, str], BaseFile] = {}
    logs: dict[tuple[str, str], list[LogFile]] = {}
    for partition, names in files.items():
        for name in names:
            base, log = parse_base_file(name), parse_log_file(name)
            if base is not None:
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

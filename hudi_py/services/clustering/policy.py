"""
Which partitions and file slices a clustering takes, and how Apache Hudi groups them. Pure.

Source: rules/table-services E-31, E-33; Hudi ``PartitionAwareClusteringPlanStrategy``,
``ClusteringPlanPartitionFilter``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import attrs

from hudi_py.config.clustering import ClusteringConfig
from hudi_py.config.parse import java_pattern
from hudi_py.fsview.build import ViewContext
from hudi_py.fsview.foreign import why_not_rewritten
from hudi_py.model.files import FileSlice
from hudi_py.model.instant import Instant

_ROLLING_HOURS = 24


def chosen_partitions(paths: Collection[str], config: ClusteringConfig, hour: int) -> tuple[str, ...]:
    """
    The partitions that may be clustered, in the order in which they are planned.

    Args:
        paths: All partitions of the table.
        config: Of the clustering.
        hour: Hour of the day, 0 to 23, for the mode DAY_ROLLING.
    """
    if config.partitions:
        # Named partitions go before the pattern, and in the order in which they were named (rule E-33).
        chosen = [path for path in dict.fromkeys(config.partitions) if path in paths]
    else:
        chosen = sorted(paths)
        if config.regex:
            chosen = [path for path in chosen if java_pattern(config.regex).fullmatch(path)]
    return _filtered(chosen, config, hour)


def skipped_partitions(paths: Collection[str], config: ClusteringConfig, hour: int) -> frozenset[str]:
    """Return the partitions that only the filter mode leaves out for now; arguments as for `chosen_partitions`."""
    wanted = chosen_partitions(paths, attrs.evolve(config, filter_mode="NONE"), hour)
    return frozenset(wanted) - frozenset(chosen_partitions(paths, config, hour))


def _filtered(chosen: Sequence[str], config: ClusteringConfig, hour: int) -> tuple[str, ...]:
    if config.filter_mode == "RECENT_DAYS":
        # By path: days in a notation that does not sort, such as dd/MM/yyyy, come in another order.
        newest = sorted(chosen, reverse=True)[config.skip_latest :]
        return tuple(newest[: config.lookback] if config.lookback else newest)
    if config.filter_mode == "SELECTED_PARTITIONS":
        bounded = (path for path in chosen if not config.begin or path >= config.begin)
        return tuple(path for path in bounded if not config.end or path <= config.end)
    if config.filter_mode == "DAY_ROLLING":
        return tuple(path for number, path in enumerate(sorted(chosen)) if number % _ROLLING_HOURS == hour)
    return tuple(chosen)


def commits_since(completed: Iterable[Instant], last: str | None) -> int:
    """
    Count the commits since the last clustering (E-30).

    Args:
        completed: Completed commits of the timeline.
        last: Requested time of the last clustering in whatever state; None for none.
    """
    return sum(1 for each in completed if last is None or each.requested_time > last)


@attrs.frozen(kw_only=True)
class Candidates:
    """
    The file slices of a partition.

    Args:
        partition_path: The partition.
        slices: Those that may be rewritten.
        left_out: File id to the reason why a group stays as it is.
    """

    partition_path: str
    slices: tuple[FileSlice, ...]
    left_out: dict[str, str]


def candidates_of(
    context: ViewContext,
    partition_path: str,
    slices: Iterable[FileSlice],
    config: ClusteringConfig,
    unread: str | None = None,
) -> Candidates:
    """
    Choose among the latest slices of a partition (E-31).

    Args:
        context: View of the table.
        partition_path: The partition.
        slices: The latest slice of each live group.
        config: Of the clustering.
        unread: Why log files cannot be merged; None if they can.
    """
    chosen: list[FileSlice] = []
    left_out: dict[str, str] = {}
    for each in slices:
        reason = _reason_to_leave(context, partition_path, each, config)
        if reason is None and unread is not None and any(not log.is_cdc for log in each.log_files):
            reason = f"its log files cannot be merged: {unread}"
        if reason is None:
            chosen.append(each)
        else:
            left_out[each.file_id] = reason
    return Candidates(partition_path=partition_path, slices=tuple(chosen), left_out=left_out)


def _reason_to_leave(
    context: ViewContext, partition_path: str, file_slice: FileSlice, config: ClusteringConfig
) -> str | None:
    key = (partition_path, file_slice.file_id)
    clustering = context.pending_clustering.get(key)
    if clustering is not None:
        return f"it is in the pending clustering {clustering}"
    compaction = context.pending_compactions.get(key)
    if compaction is not None:
        return f"it is in the pending compaction {compaction.instant_time}"
    if file_slice.is_empty:
        return "it has no files"
    foreign = why_not_rewritten(file_slice)
    if foreign is not None:
        return foreign
    size = base_bytes(file_slice)
    if size >= config.small_bytes:
        return f"its base file has {size} bytes, and only those below {config.small_bytes} are small"
    return None


def base_bytes(file_slice: FileSlice, without: int = 0) -> int:
    """
    Size of the base file of a slice.

    Args:
        without: What counts as the size where there is none.
    """
    return without if file_slice.base_file is None else file_slice.base_file.size_bytes or 0


def hudi_groups(slices: Iterable[FileSlice], config: ClusteringConfig) -> list[tuple[FileSlice, ...]]:
    """
    Group the slices of a partition as Apache Hudi does (E-32): the largest first; a group ends where the next file
    would exceed its limit.

    Args:
        slices: Candidates, in the order of the view.
        config: Limits.
    """
    groups: list[tuple[FileSlice, ...]] = []
    current: list[FileSlice] = []
    total = 0
    # Stable, as in Hudi: slices of the same size keep the order of the view, and with it the plan is the same.
    for each in sorted(slices, key=lambda file_slice: -base_bytes(file_slice, config.no_base_bytes)):
        size = base_bytes(each, config.no_base_bytes)
        if current and total + size > config.group_bytes_max:
            groups.append(tuple(current))
            current, total = [], 0
            # As many as the plan may have (rule E-32); the next plan takes the rest.
            if len(groups) >= config.groups_max:
                return groups
        current.append(each)
        total += size
    if current and (len(current) > 1 or config.single_group):
        groups.append(tuple(current))
    return groups


def output_files(slices: Iterable[FileSlice], config: ClusteringConfig) -> int:
    """Return the number of files to write for these slices."""
    total = sum(base_bytes(file_slice, config.no_base_bytes) for file_slice in slices)
    return -(-total // config.target_bytes)

"""
Groups file slices more tightly than Apache Hudi: fewer files afterwards, and fewer bytes moved. Pure.

Of all ways to group the slices of a partition, the one with the fewest files afterwards counts, and of several the one
that moves the fewest bytes. Up to `EXACT_MAX` slices all ways are compared. Of more, these are: first-fit decreasing
(each slice, the largest first, goes to the first group that has room, however long ago that was begun) with groups of
the largest size and of each whole number of target files, and Hudi's own groups. So no plan is worse than Hudi's.
Groups whose files would not become fewer are left alone, unless rows are to be sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from hudi_py.config.clustering import ClusteringConfig
from hudi_py.model.files import FileSlice
from hudi_py.services.clustering.policy import base_bytes, hudi_groups, output_files

EXACT_MAX: Final = 8
"""Slices of a partition up to which all groupings are compared: 3 to this power sets of slices, some 10 ms."""
_CAPACITIES_MAX: Final = 16

_Groups: TypeAlias = list[tuple[FileSlice, ...]]


class Cost(NamedTuple):
    """What a grouping leaves and moves; less is better, files before bytes."""

    files: int
    bytes_moved: int


def packed_groups(slices: Iterable[FileSlice], config: ClusteringConfig) -> _Groups:
    """
    Group the slices of a partition for the lowest cost.

    Args:
        slices: Candidates.
        config: Limits.
    """
    ordered = sorted(slices, key=lambda each: (-_size(each, config), each.file_id))
    if len(ordered) <= EXACT_MAX:
        return _cheapest_of_all(ordered, config)
    limit, target = config.group_bytes_max, config.target_bytes
    capacities = [limit, *(number * target for number in range(min(limit // target, _CAPACITIES_MAX), 0, -1))]
    found = [hudi_groups(ordered, config), *(_first_fit(ordered, each, config) for each in dict.fromkeys(capacities))]
    worth = ([group for group in groups if _is_rewritten(group, config)] for groups in found)
    # Of equal ones the first: the plan of the same table is the same.
    return min(worth, key=lambda groups: cost_of(ordered, groups, config))


def cost_of(slices: Sequence[FileSlice], groups: Iterable[Sequence[FileSlice]], config: ClusteringConfig) -> Cost:
    """Return the cost of rewriting *groups* of a partition's *slices*."""
    files, moved = sum(map(_files, slices)), 0
    for group in groups:
        files += output_files(group, config) - sum(map(_files, group))
        moved += sum(file_slice.size_bytes for file_slice in group)
    return Cost(files, moved)


def _first_fit(ordered: Iterable[FileSlice], capacity: int, config: ClusteringConfig) -> _Groups:
    groups: list[list[FileSlice]] = []
    totals: list[int] = []
    for each in ordered:
        size = _size(each, config)
        place = next((at for at, total in enumerate(totals) if total + size <= capacity), None)
        if place is None:
            groups.append([])
            totals.append(0)
            place = len(groups) - 1
        groups[place].append(each)
        totals[place] += size
    return [tuple(group) for group in groups]


def _cheapest_of_all(slices: Sequence[FileSlice], config: ClusteringConfig) -> _Groups:
    """
    For each set of slices the cheapest grouping: that of its first slice with some others, and of the rest.

    Sets are numbers, in which each bit stands for a slice.
    """
    count = 1 << len(slices)
    members = [tuple(each for bit, each in enumerate(slices) if chosen >> bit & 1) for chosen in range(count)]
    alone = [_cost_of_group(members[chosen], config) for chosen in range(count)]
    best: list[Cost] = [Cost(0, 0)] * count
    taken = [0] * count
    for chosen in range(1, count):
        first = chosen & -chosen
        others = part = chosen ^ first
        found: Cost | None = None
        while True:
            here = alone[first | part]
            if here is not None:
                rest = best[others ^ part]
                cost = Cost(here.files + rest.files, here.bytes_moved + rest.bytes_moved)
                if found is None or cost < found:
                    found, taken[chosen] = cost, first | part
            if not part:
                break
            part = (part - 1) & others
        assert found is not None  # a slice alone is a group, whatever its size
        best[chosen] = found
    groups: _Groups = []
    left = count - 1
    while left:
        group = members[taken[left]]
        if _is_rewritten(group, config):
            groups.append(group)
        left ^= taken[left]
    return groups


def _cost_of_group(group: Sequence[FileSlice], config: ClusteringConfig) -> Cost | None:
    """Rewritten or left alone, as the plan would; None if it is too large to be one group."""
    if len(group) > 1 and sum(_size(each, config) for each in group) > config.group_bytes_max:
        return None
    return cost_of(group, [group] if group and _is_rewritten(group, config) else [], config)


def _is_rewritten(group: Sequence[FileSlice], config: ClusteringConfig) -> bool:
    # Merging log files makes reading faster even where the number of files stays the same.
    return (
        bool(config.sort_columns)
        or len(group) > output_files(group, config)
        or any(file_slice.log_files for file_slice in group)
    )


def _size(file_slice: FileSlice, config: ClusteringConfig) -> int:
    return base_bytes(file_slice, config.no_base_bytes)


def _files(file_slice: FileSlice) -> int:
    return len(file_slice.log_files) + (file_slice.base_file is not None)

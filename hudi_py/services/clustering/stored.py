"""
What a stored plan asks for, and whether that is still possible. Pure.

A plan of Apache Hudi names files by full paths, those of the place where the table lay then; only the names count. A
clustering has the time at which it was planned. If a later write changed one of its file groups, rows of that write
would be visible at times before it, so such a plan is not carried out any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa

from hudi_py.config.clustering import LAYOUTS
from hudi_py.errors import ConfigError, CorruptMetadata
from hudi_py.fsview.build import GroupKey
from hudi_py.model.files import FileSlice
from hudi_py.model.instant import Instant
from hudi_py.model.records import ClusteringPlan, ClusteringSlice, CommitMetadata
from hudi_py.rows.row_order import RowOrder, check_order
from hudi_py.services.clustering.plan import LAYOUT, SORT_COLUMNS
from hudi_py.services.clustering.tasks import GroupWork

_PACKAGE: Final = "org.apache.hudi.client.clustering.run.strategy."
_RUNNERS: Final = tuple(
    f"{_PACKAGE}{name}ExecutionStrategy"
    for name in (
        "SparkSortAndSize", "SparkSingleFileSort", "SparkBinaryCopyClustering", "SparkStreamCopyClustering",
        "JavaSortAndSize",
    )
)  # fmt: skip
"""Classes of Apache Hudi that move rows as they are, into as many files as the plan says, sorted if it says so."""


def why_not_served(plan: ClusteringPlan, schema: pa.Schema | None) -> str | None:
    """
    Return why hudi_py does not carry a stored plan out; None if it does.

    Args:
        plan: The stored plan.
        schema: Columns of the rows; None if they are unknown.
    """
    name = (plan.strategy.class_name if plan.strategy is not None else None) or ""
    if name and name not in _RUNNERS:
        return f"is carried out by the Java class {name}, which may do more than move rows"
    columns, layout = order_of(plan)
    if not columns:
        return None
    if layout is not None and layout not in LAYOUTS.values():
        return f"puts rows in the order {layout}, which hudi_py does not know"
    try:
        if schema is not None:
            check_order(RowOrder(columns=columns), schema)
    except ConfigError as error:
        return f"sorts rows in a way that hudi_py does not: {error}"
    return None


def refuse_odd_plan(plan: ClusteringPlan, source: str, way_out: str) -> None:
    """
    Refuse a stored plan that would change rows.

    Args:
        plan: The stored plan.
        source: Instant and table, for messages.
        way_out: What to do about it.

    Raises:
        CorruptMetadata: It has a file group twice, whose rows would be there twice, or puts rows of one partition into
            another.
    """
    seen: set[GroupKey] = set()
    for group in plan.input_groups:
        if len({each.partition_path or "" for each in group.slices}) > 1:
            raise CorruptMetadata(f"{source} is damaged: a group has files of several partitions; {way_out}")
        for key in map(_key, group.slices):
            if key in seen:
                raise CorruptMetadata(
                    f"{source} is damaged: it has file group {key[1]} in partition {key[0]!r} twice; {way_out}"
                )
            seen.add(key)


def works_of(plan: ClusteringPlan, latest: Mapping[GroupKey, FileSlice]) -> list[GroupWork] | str:
    """
    Return the work that a plan stands for, or why it cannot be done any more.

    Args:
        plan: The stored plan.
        latest: The latest slice of each live group of its partitions.
    """
    works: list[GroupWork] = []
    for number, group in enumerate(plan.input_groups):
        found: list[FileSlice] = []
        for each in group.slices:
            file_slice = latest.get(_key(each))
            # No live group of that id: replaced, or undone.
            if file_slice is None:
                return f"file group {each.file_id} in partition {each.partition_path!r} has been replaced since"
            # Also with more files than planned: rows in a new log file would not be read, and be lost with the old
            # group.
            if set(file_slice.file_names) != _names(each):
                return f"file group {each.file_id} in partition {each.partition_path!r} has other files since"
            found.append(file_slice)
        if found:
            works.append(
                GroupWork(
                    number=number,
                    partition_path=found[0].partition_path,
                    slices=tuple(found),
                    outputs=group.num_output_file_groups or 1,
                )
            )
    return works


def _key(file_slice: ClusteringSlice) -> GroupKey:
    return (file_slice.partition_path or "", file_slice.file_id or "")


def _names(file_slice: ClusteringSlice) -> set[str]:
    paths = (file_slice.data_file_path, *(file_slice.delta_file_paths or ()))
    return {path.rpartition("/")[2] for path in paths if path}


def replaced_groups(plan: ClusteringPlan) -> dict[str, tuple[str, ...]]:
    """Partition path to the ids of the file groups that a plan replaces, in the order of the plan."""
    found: dict[str, list[str]] = {}
    for group in plan.input_groups:
        for file_slice in group.slices:
            found.setdefault(file_slice.partition_path or "", []).append(file_slice.file_id or "")
    return {path: tuple(ids) for path, ids in found.items()}


def order_of(plan: ClusteringPlan) -> tuple[tuple[str, ...], str | None]:
    """Return the columns by which a plan sorts rows, and its layout if it names one."""
    parameters = (plan.strategy.strategy_params if plan.strategy is not None else None) or {}
    columns = tuple(name.strip() for name in parameters.get(SORT_COLUMNS, "").split(",") if name.strip())
    return columns, parameters.get(LAYOUT)


def changed_by(
    groups: frozenset[GroupKey], commits: Iterable[tuple[Instant, CommitMetadata]]
) -> tuple[Instant, GroupKey] | None:
    """
    Return the first of some commits that changed or replaced one of some file groups, and the group.

    Args:
        groups: Partition path and file id of each.
        commits: Completed ones, with what they hold.
    """
    for instant, commit in commits:
        for partition, stats in commit.partition_to_write_stats.items():
            for stat in stats:
                if (partition, stat.file_id or "") in groups:
                    return instant, (partition, stat.file_id or "")
        for partition, file_ids in (commit.partition_to_replace_file_ids or {}).items():
            for file_id in file_ids:
                if (partition, file_id) in groups:
                    return instant, (partition, file_id)
    return None

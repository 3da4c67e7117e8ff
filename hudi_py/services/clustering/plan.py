"""
Plans a clustering: which file slices are rewritten together, into how many files. Pure.

Groups are those of Apache Hudi (`hudi_groups`), or tighter ones (`packing.packed_groups`).

Source: rules/table-services E.3; Hudi ``PartitionAwareClusteringPlanStrategy.buildClusteringGroupsForPartition``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from hudi_py.config.clustering import ClusteringConfig
from hudi_py.model.files import FileSlice, join_path
from hudi_py.model.records import LOG_BYTES, ClusteringGroup, ClusteringPlan, ClusteringSlice, Strategy
from hudi_py.model.words import counted
from hudi_py.services.clustering.packing import packed_groups
from hudi_py.services.clustering.policy import Candidates, base_bytes, hudi_groups, output_files
from hudi_py.services.rewriting.explain import GroupExplanation, explain_groups

SORT_COLUMNS: Final = "hoodie.clustering.plan.strategy.sort.columns"
LAYOUT: Final = "hoodie.layout.optimize.strategy"
_STRATEGY: Final = "org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy"
_MB: Final = 1024 * 1024
_TOO_MANY: Final = "the plan has its maximum number of groups; the next plan has the rest"
_TOO_LARGE: Final = "the plan has its maximum number of bytes; the next plan has the rest"
# Not "the next plan has it": that has the same limit.
_NEVER_FITS: Final = (
    "its group alone is larger than a plan may be (--max-bytes, hoodie_py.clustering.max.bytes); raise that limit, or "
    "lower hoodie.clustering.plan.strategy.max.bytes.per.group"
)
_ALONE: Final = "there is no other small file in its partition to join it with"


@attrs.frozen(kw_only=True)
class PlannedGroup:
    """
    File slices of one partition that are rewritten together.

    Args:
        partition_path: The partition.
        slices: In the order of the plan.
        outputs: Number of files to write.
    """

    partition_path: str
    slices: tuple[FileSlice, ...]
    outputs: int

    @property
    def size_bytes(self) -> int:
        """Bytes of all files that are read."""
        logs = sum(log.size_bytes or 0 for file_slice in self.slices for log in file_slice.log_files)
        return logs + sum(map(base_bytes, self.slices))


@attrs.frozen(kw_only=True)
class PlannedClustering:
    """
    What a clustering would rewrite.

    Args:
        groups: In the order of the plan; empty if there is nothing to do.
        left_out: Partition path and file id to the reason why a group stays as it is.
        config: What it was planned with.
        skipped: Paths of partitions that were not looked into, and that the next plan has to look into.
    """

    groups: tuple[PlannedGroup, ...]
    left_out: Mapping[tuple[str, str], str]
    config: ClusteringConfig
    skipped: frozenset[str] = frozenset()

    @property
    def size_bytes(self) -> int:
        """Bytes of all files that are read."""
        return sum(group.size_bytes for group in self.groups)

    @property
    def left_by_limits(self) -> int:
        """Number of file groups that the next plan has, because this one is full."""
        return len(self._left(_TOO_MANY, _TOO_LARGE))

    @property
    def missing(self) -> tuple[str, ...]:
        """
        Paths of partitions that are not done, sorted: for the next incremental planning of Hudi (E-33).

        It looks only into these and into what was written since this plan.
        """
        return tuple(sorted(self.skipped | {path for path, _ in self._left(_TOO_MANY, _TOO_LARGE, _NEVER_FITS)}))

    def _left(self, *reasons: str) -> list[tuple[str, str]]:
        return [key for key, reason in self.left_out.items() if reason in reasons]


def plan_clustering(partitions: Iterable[Candidates], config: ClusteringConfig) -> PlannedClustering:
    """
    Plan a clustering (E-32, E-33).

    Args:
        partitions: The file slices of the chosen partitions, in their order.
        config: Limits and targets.
    """
    left_out: dict[tuple[str, str], str] = {}
    groups: list[PlannedGroup] = []
    bytes_left = config.bytes_max
    for partition in partitions:
        path = partition.partition_path
        left_out |= {(path, file_id): reason for file_id, reason in partition.left_out.items()}
        # Groups never cross partitions: a file group has one, and its replacement has to lie there, too.
        made = packed_groups(partition.slices, config) if config.is_packed else hudi_groups(partition.slices, config)
        planned: set[str] = set()
        reasons: dict[str, str] = {}
        for slices in made:
            group = PlannedGroup(partition_path=path, slices=slices, outputs=output_files(slices, config))
            ids = [file_slice.file_id for file_slice in slices]
            # Counted on in spite of a full plan, so that each group that is left out gets its reason.
            if config.bytes_max is not None and group.size_bytes > config.bytes_max:
                reasons |= dict.fromkeys(ids, _NEVER_FITS)
            elif len(groups) >= config.groups_max:
                reasons |= dict.fromkeys(ids, _TOO_MANY)
            elif bytes_left is not None and group.size_bytes > bytes_left:
                reasons |= dict.fromkeys(ids, _TOO_LARGE)
            else:
                groups.append(group)
                planned.update(ids)
                bytes_left = None if bytes_left is None else bytes_left - group.size_bytes
        for file_slice in partition.slices:
            if file_slice.file_id not in planned:
                left_out[path, file_slice.file_id] = reasons.get(file_slice.file_id) or _not_grouped(made, config)
    return PlannedClustering(groups=tuple(groups), left_out=left_out, config=config)


def _not_grouped(made: Sequence[tuple[FileSlice, ...]], config: ClusteringConfig) -> str:
    return _TOO_MANY if len(made) >= config.groups_max else _ALONE


def explain_plan(planned: PlannedClustering, slices: Iterable[FileSlice]) -> tuple[GroupExplanation, ...]:
    """Explain why some slices are in a plan, or are not."""
    chosen = {
        (group.partition_path, each.file_id): (
            f"group {number} of the plan: {counted(len(group.slices), 'file group')}, {group.size_bytes:,} bytes, "
            f"written as {counted(group.outputs, 'file')}"
        )
        for number, group in enumerate(planned.groups, 1)
        for each in group.slices
    }
    return explain_groups(slices, chosen, planned.left_out, lambda _: "its partition is not among those to cluster")


def stored_plan(planned: PlannedClustering, root: str, *, has_missing_partitions: bool) -> ClusteringPlan:
    """
    The plan as the timeline stores it (E-34, E-35).

    Args:
        planned: What to rewrite.
        root: Base path of the table: plans have full paths.
        has_missing_partitions: Whether plans of the table's version name the partitions that were not planned.
    """
    config = planned.config
    # Only what another release needs to write the same files; limits of the planner are spent by now.
    parameters: dict[str, str] = {}
    if config.sort_columns:
        parameters[SORT_COLUMNS] = ",".join(config.sort_columns)
        # The default, too: who carries the plan out may have another one set.
        parameters[LAYOUT] = config.layout
    return ClusteringPlan(
        input_groups=tuple(_stored_group(group, root, config) for group in planned.groups),
        strategy=Strategy(class_name=_STRATEGY, strategy_params=parameters),
        extra_metadata={},
        # Rows keep their commit times, or incremental readers would see all of them again.
        preserve_hoodie_metadata=True,
        missing_schedule_partitions=planned.missing if has_missing_partitions else None,
    )


def _stored_group(group: PlannedGroup, root: str, config: ClusteringConfig) -> ClusteringGroup:
    def full(name: str) -> str:
        return f"{root}/{join_path(group.partition_path, name)}"

    return ClusteringGroup(
        slices=tuple(
            ClusteringSlice(
                file_id=file_slice.file_id,
                partition_path=group.partition_path,
                # Empty and not null: so Hudi stores a slice without a base file (rule E-35).
                data_file_path="" if file_slice.base_file is None else full(file_slice.base_file.name),
                delta_file_paths=tuple(full(log.name) for log in file_slice.log_files),
            )
            for file_slice in group.slices
        ),
        metrics=_metrics(group, config),
        num_output_file_groups=group.outputs,
    )


def _metrics(group: PlannedGroup, config: ClusteringConfig) -> dict[str, float]:
    logs = [log for each in group.slices for log in each.log_files]
    # Rounded for each slice, as Hudi does, so that plans compare.
    written = sum(base_bytes(file_slice, config.no_base_bytes) // _MB for file_slice in group.slices)
    read = group.size_bytes // _MB
    return {
        "TOTAL_LOG_FILES": float(len(logs)),
        "TOTAL_IO_MB": float(read + written),
        "TOTAL_IO_READ_MB": float(read),
        LOG_BYTES: float(sum(log.size_bytes or 0 for log in logs)),
        "TOTAL_IO_WRITE_MB": float(written),
    }

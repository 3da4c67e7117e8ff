"""
Declares which field on disk is which attribute of the frozen values in `hudi_py.model.records`, record by record.

Source: rules/timeline 4.4, and the schemas in ``avro_schemas``.
"""

from __future__ import annotations

from typing import Final

from hudi_py.formats.shapes import MAPPING, TEXTS, Kind, Shape, by_name, default, many, one, optional
from hudi_py.model import records

_ONE: Final = default(1)

ACTION_INSTANT: Final = Shape(records.ActionInstant, requested_time="timestamp", action="action", state="state")
CLEAN_PARTITION: Final = Shape(
    records.CleanPartitionMetadata,
    partition_path="partitionPath",
    policy="policy",
    delete_path_patterns=("deletePathPatterns", TEXTS),
    success_delete_files=("successDeleteFiles", TEXTS),
    failed_delete_files=("failedDeleteFiles", TEXTS),
    is_partition_deleted="isPartitionDeleted",
)
CLEAN_METADATA: Final = Shape(
    records.CleanMetadata,
    start_clean_time="startCleanTime",
    time_taken_ms="timeTakenInMillis",
    total_files_deleted="totalFilesDeleted",
    earliest_commit_to_retain="earliestCommitToRetain",
    last_completed_commit_timestamp="lastCompletedCommitTimestamp",
    partitions=("partitionMetadata", by_name(one(CLEAN_PARTITION))),
    version=("version", _ONE),
    bootstrap_partitions=("bootstrapPartitionMetadata", by_name(one(CLEAN_PARTITION))),
    extra_metadata=("extraMetadata", MAPPING),
)


def _strategy(class_field: str) -> Kind:
    shape = Shape(
        records.Strategy,
        class_name=class_field,
        strategy_params=("strategyParams", optional(MAPPING)),
        version="version",
    )
    return optional(one(shape))


CLUSTERING_SLICE: Final = Shape(
    records.ClusteringSlice,
    data_file_path="dataFilePath",
    delta_file_paths=("deltaFilePaths", optional(TEXTS)),
    file_id="fileId",
    partition_path="partitionPath",
    bootstrap_file_path="bootstrapFilePath",
    version="version",
)
CLUSTERING_GROUP: Final = Shape(
    records.ClusteringGroup,
    slices=("slices", many(one(CLUSTERING_SLICE))),
    metrics=("metrics", optional(MAPPING)),
    num_output_file_groups="numOutputFileGroups",
    extra_metadata=("extraMetadata", optional(MAPPING)),
    version="version",
)
CLUSTERING_PLAN: Final = Shape(
    records.ClusteringPlan,
    input_groups=("inputGroups", many(one(CLUSTERING_GROUP))),
    strategy=("strategy", _strategy("strategyClassName")),
    extra_metadata=("extraMetadata", optional(MAPPING)),
    version="version",
    preserve_hoodie_metadata="preserveHoodieMetadata",
    missing_schedule_partitions=("missingSchedulePartitions", optional(TEXTS)),
)
REQUESTED_REPLACE: Final = Shape(
    records.RequestedReplaceMetadata,
    operation_type="operationType",
    clustering_plan=("clusteringPlan", optional(one(CLUSTERING_PLAN))),
    extra_metadata=("extraMetadata", optional(MAPPING)),
    version="version",
)
COMPACTION_OPERATION: Final = Shape(
    records.CompactionOperation,
    base_instant_time="baseInstantTime",
    delta_file_paths=("deltaFilePaths", TEXTS),
    data_file_path="dataFilePath",
    file_id="fileId",
    partition_path="partitionPath",
    metrics=("metrics", optional(MAPPING)),
    bootstrap_file_path="bootstrapFilePath",
)
COMPACTION_PLAN: Final = Shape(
    records.CompactionPlan,
    operations=("operations", many(one(COMPACTION_OPERATION))),
    extra_metadata=("extraMetadata", optional(MAPPING)),
    version=("version", _ONE),
    strategy=("strategy", _strategy("compactorClassName")),
    preserve_hoodie_metadata="preserveHoodieMetadata",
    missing_schedule_partitions=("missingSchedulePartitions", optional(TEXTS)),
)
INSTANT_INFO: Final = Shape(records.InstantInfo, requested_time="commitTime", action="action")
ROLLBACK_REQUEST: Final = Shape(
    records.RollbackRequest,
    partition_path="partitionPath",
    file_id="fileId",
    latest_base_instant="latestBaseInstant",
    files_to_be_deleted=("filesToBeDeleted", TEXTS),
    log_blocks_to_be_deleted=("logBlocksToBeDeleted", MAPPING),
)
ROLLBACK_PLAN: Final = Shape(
    records.RollbackPlan,
    instant_to_rollback=("instantToRollback", optional(one(INSTANT_INFO))),
    rollback_requests=("RollbackRequests", many(one(ROLLBACK_REQUEST))),
    version="version",
)
ROLLBACK_PARTITION: Final = Shape(
    records.RollbackPartitionMetadata,
    partition_path="partitionPath",
    success_delete_files=("successDeleteFiles", TEXTS),
    failed_delete_files=("failedDeleteFiles", TEXTS),
    rollback_log_files=("rollbackLogFiles", MAPPING),
    log_files_from_failed_commit=("logFilesFromFailedCommit", MAPPING),
)
ROLLBACK_METADATA: Final = Shape(
    records.RollbackMetadata,
    start_rollback_time="startRollbackTime",
    time_taken_ms="timeTakenInMillis",
    total_files_deleted="totalFilesDeleted",
    commits_rollback=("commitsRollback", TEXTS),
    partitions=("partitionMetadata", by_name(one(ROLLBACK_PARTITION))),
    version="version",
    instants_rollback=("instantsRollback", many(one(INSTANT_INFO))),
)
RESTORE_PLAN: Final = Shape(
    records.RestorePlan,
    instants_to_rollback=("instantsToRollback", many(one(INSTANT_INFO))),
    version="version",
    savepoint_to_restore_timestamp="savepointToRestoreTimestamp",
)
RESTORE_METADATA: Final = Shape(
    records.RestoreMetadata,
    start_restore_time="startRestoreTime",
    time_taken_ms="timeTakenInMillis",
    instants_to_rollback=("instantsToRollback", TEXTS),
    rollbacks=("hoodieRestoreMetadata", by_name(many(one(ROLLBACK_METADATA)))),
    version="version",
    restore_instant_info=("restoreInstantInfo", many(one(INSTANT_INFO))),
)

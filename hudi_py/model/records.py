"""
The contents of timeline files as frozen values: plans, results and commit metadata.

Classes have the names of the records on disk without the prefix ``Hoodie``, fields the names on disk in snake case,
unless noted. Paths are as on disk: clean plans, clustering slices and rollback records hold full paths, all others hold
names or paths relative to the table (rules/timeline 4.3). Mappings keep the order of the file and must not be changed;
they are plain dicts, because plans are pickled for executors.

Source: rules/timeline 4.4 for every field, 4.5 for commit metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

LOG_BYTES: Final = "TOTAL_LOG_FILES_SIZE"
"""The metric of plans that is in bytes, in those of every release; the others are in whole megabytes."""


@attrs.frozen(slots=True)
class ActionInstant:
    """An instant in a clean plan; all three fields are the words on disk (``state`` in capitals)."""

    requested_time: str  # "timestamp" on disk
    action: str
    state: str = "COMPLETED"


@attrs.frozen(slots=True)
class CleanFileInfo:
    """
    A file that a clean plan says to delete.

    Args:
        path: Full path (plan version 2), or file name inside the partition (plan version 1).
        is_bootstrap: Whether the file is the external source of a bootstrapped base file.
    """

    path: str
    is_bootstrap: bool = False

    @property
    def name(self) -> str:
        """File name without folders."""
        return self.path.rpartition("/")[2]


@attrs.frozen(slots=True, kw_only=True)
class CleanerPlan:
    """
    The plan of a clean: which files to delete.

    Args:
        policy: ``KEEP_LATEST_COMMITS``, ``KEEP_LATEST_FILE_VERSIONS`` or ``KEEP_LATEST_BY_HOURS``.
        earliest_instant_to_retain: First instant inside the window; None for KEEP_LATEST_FILE_VERSIONS.
        last_completed_commit_timestamp: Requested time of the last commit that the planner saw; ``""`` if none.
        files_to_delete: Partition path to files. Each version of the plan has a map of its own on disk; both are read
            into this one.
        partitions_to_delete: Partitions to delete as a whole, including their folders.
        extra_metadata: ``savepointed_timestamps``: comma-separated savepoints that the planner respected.
        version: 2 (full paths) or 1 (file names, before Hudi 0.6).
    """

    policy: str
    earliest_instant_to_retain: ActionInstant | None = None
    last_completed_commit_timestamp: str = ""
    files_to_delete: Mapping[str, tuple[CleanFileInfo, ...]] = attrs.field(factory=dict)
    partitions_to_delete: tuple[str, ...] = ()
    extra_metadata: Mapping[str, str] = attrs.field(factory=dict)
    version: int = 2


@attrs.frozen(slots=True, kw_only=True)
class CleanPartitionMetadata:
    """The result of a clean in one partition; files are names without folders."""

    partition_path: str
    policy: str
    delete_path_patterns: tuple[str, ...] = ()  # all names that it tried to delete
    success_delete_files: tuple[str, ...] = ()
    failed_delete_files: tuple[str, ...] = ()  # includes files that no longer existed, as in Hudi
    is_partition_deleted: bool | None = False


@attrs.frozen(slots=True, kw_only=True)
class CleanMetadata:
    """
    The result of a completed clean.

    Args:
        start_clean_time: Requested time of the clean itself.
        time_taken_ms: Duration in milliseconds (``timeTakenInMillis``).
        total_files_deleted: Number of deleted files in all partitions, without failed deletions.
        earliest_commit_to_retain: Requested time copied from the plan; ``""`` if the plan has none.
        last_completed_commit_timestamp: Copied from the plan.
        partitions: Partition path to result (``partitionMetadata``).
        bootstrap_partitions: The same for external files of bootstrapped tables.
        extra_metadata: Copied from the plan.
        version: 2. Files of version 1 hold full paths; decoding turns them into names and the version into 2.
    """

    start_clean_time: str
    time_taken_ms: int
    total_files_deleted: int
    earliest_commit_to_retain: str = ""
    last_completed_commit_timestamp: str = ""
    partitions: Mapping[str, CleanPartitionMetadata] = attrs.field(factory=dict)
    bootstrap_partitions: Mapping[str, CleanPartitionMetadata] = attrs.field(factory=dict)
    extra_metadata: Mapping[str, str] = attrs.field(factory=dict)
    version: int = 2


@attrs.frozen(slots=True)
class RuntimeStats:
    """How long a write task took, in milliseconds."""

    total_scan_time: int = 0
    total_create_time: int = 0
    total_upsert_time: int = 0


@attrs.frozen(slots=True)
class WriteStat:
    """
    Statistics of a file that a commit wrote; construct it with keywords.

    If ``log_version`` is set, the file is a log file: only then are ``log_version``, ``log_offset``, ``base_file`` and
    ``log_files`` written to JSON. ``prev_commit`` of a new file group is the text ``"null"``, as Hudi writes it.
    ``prev_base_file``, ``num_updates`` and ``total_log_read_time_ms`` exist in Avro only (table version 8 and later).
    """

    file_id: str | None = None
    path: str | None = None  # relative to the table
    prev_commit: str | None = "null"
    partition_path: str | None = None
    temp_path: str | None = None
    base_file: str | None = None
    prev_base_file: str | None = None
    log_version: int | None = None
    log_offset: int | None = None
    min_event_time: int | None = None
    max_event_time: int | None = None
    num_writes: int = 0
    num_deletes: int = 0
    num_update_writes: int = 0
    num_inserts: int = 0
    num_updates: int = 0
    total_write_bytes: int = 0
    total_write_errors: int = 0
    total_log_records: int = 0
    total_log_files_compacted: int = 0
    total_log_size_compacted: int = 0
    total_log_read_time_ms: int = 0
    total_updated_records_compacted: int = 0
    total_log_blocks: int = 0
    total_corrupt_log_block: int = 0
    total_rollback_blocks: int = 0
    file_size_in_bytes: int = 0
    log_files: tuple[str, ...] | None = None
    cdc_stats: Mapping[str, int] | None = None  # path of a change log to its size in bytes
    runtime_stats: RuntimeStats | None = None


@attrs.frozen(slots=True, kw_only=True)
class CommitMetadata:
    """
    Metadata of a commit, deltacommit, replacecommit or compaction; an empty file is read as ``CommitMetadata()``.

    Args:
        partition_to_write_stats: Partition path (``""`` in a table without partitions) to files written there.
        compacted: True for the commit of a compaction or log compaction.
        extra_metadata: ``schema`` (Avro JSON) and further entries of the writer.
        operation_type: ``UPSERT``, ``INSERT``, ``COMPACT``, ...; ``UNKNOWN`` for an empty file.
        partition_to_replace_file_ids: Partition path to replaced file ids; None except for completed replacecommits.
    """

    partition_to_write_stats: Mapping[str, tuple[WriteStat, ...]] = attrs.field(factory=dict)
    compacted: bool = False
    extra_metadata: Mapping[str, str | None] = attrs.field(factory=dict)
    operation_type: str | None = "UNKNOWN"
    partition_to_replace_file_ids: Mapping[str, tuple[str, ...]] | None = None


@attrs.frozen(slots=True, kw_only=True)
class ClusteringSlice:
    """A file slice that a clustering reads (``HoodieSliceInfo``); paths are full URIs."""

    file_id: str | None
    partition_path: str | None
    data_file_path: str | None = None
    delta_file_paths: tuple[str, ...] | None = ()
    bootstrap_file_path: str | None = ""
    version: int | None = 1


@attrs.frozen(slots=True, kw_only=True)
class ClusteringGroup:
    """Slices that are rewritten together."""

    slices: tuple[ClusteringSlice, ...] = ()
    metrics: Mapping[str, float] | None = None
    num_output_file_groups: int | None = 1
    extra_metadata: Mapping[str, str] | None = None
    version: int | None = 1


@attrs.frozen(slots=True, kw_only=True)
class Strategy:
    """The class that planned a clustering or runs a compaction, and its parameters."""

    class_name: str | None  # "strategyClassName" or "compactorClassName"
    strategy_params: Mapping[str, str] | None = None
    version: int | None = 1


@attrs.frozen(slots=True, kw_only=True)
class ClusteringPlan:
    """The plan of a clustering: which file slices to rewrite."""

    input_groups: tuple[ClusteringGroup, ...] = ()
    strategy: Strategy | None = None
    extra_metadata: Mapping[str, str] | None = None
    version: int | None = 1
    preserve_hoodie_metadata: bool | None = None
    missing_schedule_partitions: tuple[str, ...] | None = None  # since 1.0

    @property
    def file_groups(self) -> frozenset[tuple[str, str]]:
        """(partition path, file id) of the file groups that will be replaced."""
        slices = (file_slice for group in self.input_groups for file_slice in group.slices)
        return frozenset((file_slice.partition_path or "", file_slice.file_id or "") for file_slice in slices)


@attrs.frozen(slots=True, kw_only=True)
class RequestedReplaceMetadata:
    """A requested replacecommit or clustering; Hudi leaves all fields null for insert_overwrite."""

    operation_type: str | None = None
    clustering_plan: ClusteringPlan | None = None
    extra_metadata: Mapping[str, str] | None = None
    version: int | None = None


@attrs.frozen(slots=True, kw_only=True)
class CompactionOperation:
    """A file slice to compact; files are names (full paths in plans of version 1 are shortened when read)."""

    base_instant_time: str | None
    file_id: str | None
    partition_path: str | None
    delta_file_paths: tuple[str, ...] = ()
    data_file_path: str | None = None
    metrics: Mapping[str, float] | None = None
    bootstrap_file_path: str | None = None


@attrs.frozen(slots=True, kw_only=True)
class CompactionPlan:
    """The plan of a compaction or log compaction: which file slices to merge."""

    operations: tuple[CompactionOperation, ...] = ()
    extra_metadata: Mapping[str, str] | None = None
    version: int = 2
    strategy: Strategy | None = None  # set by log compactions
    preserve_hoodie_metadata: bool | None = False
    missing_schedule_partitions: tuple[str, ...] | None = None  # since 1.0


@attrs.frozen(slots=True)
class InstantInfo:
    """An instant in the records of rollbacks and restores."""

    requested_time: str  # "commitTime" on disk
    action: str


@attrs.frozen(slots=True, kw_only=True)
class RollbackRequest:
    """
    The work of a rollback in one partition or file group.

    Args:
        partition_path: Relative path of the partition.
        file_id: Id of the file group; ``""`` in layout 1 if whole files are deleted.
        latest_base_instant: Base instant of its latest slice; ``""`` in layout 1 if whole files are deleted.
        files_to_be_deleted: Full paths.
        log_blocks_to_be_deleted: Log files that get a rollback block instead (table version 6), with sizes in bytes.
    """

    partition_path: str
    file_id: str | None = ""
    latest_base_instant: str | None = ""
    files_to_be_deleted: tuple[str, ...] = ()
    log_blocks_to_be_deleted: Mapping[str, int] = attrs.field(factory=dict)


@attrs.frozen(slots=True, kw_only=True)
class RollbackPlan:
    """The plan of a rollback: which instant to undo, and how."""

    instant_to_rollback: InstantInfo | None
    rollback_requests: tuple[RollbackRequest, ...] = ()
    version: int | None = 1


@attrs.frozen(slots=True, kw_only=True)
class RollbackPartitionMetadata:
    """The result of a rollback in one partition; paths are full, log files map to sizes in bytes."""

    partition_path: str
    success_delete_files: tuple[str, ...] = ()
    failed_delete_files: tuple[str, ...] = ()
    rollback_log_files: Mapping[str, int] = attrs.field(factory=dict)
    log_files_from_failed_commit: Mapping[str, int] = attrs.field(factory=dict)


@attrs.frozen(slots=True, kw_only=True)
class RollbackMetadata:
    """The result of a completed rollback; ``commits_rollback`` and ``instants_rollback`` have the same order."""

    start_rollback_time: str
    time_taken_ms: int
    total_files_deleted: int
    commits_rollback: tuple[str, ...]
    partitions: Mapping[str, RollbackPartitionMetadata]  # "partitionMetadata" on disk
    instants_rollback: tuple[InstantInfo, ...]
    version: int | None = 1


@attrs.frozen(slots=True, kw_only=True)
class RestorePlan:
    """The plan of a restore: which instants to roll back, newest first."""

    instants_to_rollback: tuple[InstantInfo, ...]
    savepoint_to_restore_timestamp: str | None
    version: int | None = 2


@attrs.frozen(slots=True, kw_only=True)
class RestoreMetadata:
    """The result of a completed restore; ``rollbacks`` maps requested times to the results of their rollbacks."""

    start_restore_time: str
    time_taken_ms: int
    instants_to_rollback: tuple[str, ...]
    rollbacks: Mapping[str, tuple[RollbackMetadata, ...]]  # "hoodieRestoreMetadata" on disk
    restore_instant_info: tuple[InstantInfo, ...]
    version: int | None = 1


@attrs.frozen(slots=True, kw_only=True)
class SavepointMetadata:
    """
    The content of a savepoint: which files must not be deleted.

    Args:
        savepointed_by: Who created it; free text, may be empty.
        savepointed_at_ms: When it was created, in epoch milliseconds.
        comments: Free text, may be empty.
        files: Partition path to names of base and log files (``partitionMetadata``).
        name: Name given by the user, ``""`` if none; not part of Hudi's record.
        expires_at_ms: From this moment on, in epoch milliseconds, cleans ignore the savepoint; None for never. Not part
            of Hudi's record.
    """

    savepointed_by: str
    savepointed_at_ms: int
    comments: str
    files: Mapping[str, tuple[str, ...]]
    version: int | None = 1
    name: str = ""
    expires_at_ms: int | None = None

    def is_expired(self, now_ms: int) -> bool:
        """Return whether the savepoint has expired at *now_ms*, in epoch milliseconds."""
        return self.expires_at_ms is not None and self.expires_at_ms <= now_ms

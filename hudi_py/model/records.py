"""
What the files on the timeline say: plans, results and commit metadata, as frozen values.

Records are named as on disk without the ``Hoodie`` prefix, fields are the snake-case form of those on disk unless
noted. Paths stay as they are on disk: clean plans, clustering slices and rollback records hold full paths, everything
else names or paths relative to the table (rules/timeline 4.3). Mappings keep the order of the file and are never
changed; they are plain dicts, so that plans can be sent to executors.

Source: rules/timeline 4.4 for every field, 4.5 for commit metadata.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen(slots=True)
class ActionInstant:
    """An instant as clean plans name it; all three are the words on disk (``state`` in capitals)."""

    requested_time: str  # "timestamp" on disk
    action: str
    state: str = "COMPLETED"


@attrs.frozen(slots=True)
class CleanFileInfo:
    """
    One file that a clean plan wants gone.

    Args:
        path: Full path as on disk (version 2), or the bare file name inside the partition (version 1).
        is_bootstrap: The file is the external source of a bootstrapped base file.
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
    What a clean is going to delete.

    Args:
        policy: ``KEEP_LATEST_COMMITS``, ``KEEP_LATEST_FILE_VERSIONS`` or ``KEEP_LATEST_BY_HOURS``.
        earliest_instant_to_retain: First instant inside the window; None for KEEP_LATEST_FILE_VERSIONS.
        last_completed_commit_timestamp: Requested time of the last commit that the planner saw; ``""`` if none.
        files_to_delete: Partition path to files. Both maps on disk end up here, see ``version``.
        partitions_to_delete: Partitions that go as a whole, folder included.
        extra_metadata: ``savepointed_timestamps``: comma list of savepoints that were respected.
        version: 2 (full paths) or 1 (bare names, before Hudi 0.6).
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
    """What a clean did in one partition; all files are names without folders."""

    partition_path: str
    policy: str
    delete_path_patterns: tuple[str, ...] = ()  # the names that were tried
    success_delete_files: tuple[str, ...] = ()
    failed_delete_files: tuple[str, ...] = ()  # those already gone included, as Hudi counts them
    is_partition_deleted: bool | None = False


@attrs.frozen(slots=True, kw_only=True)
class CleanMetadata:
    """
    What a completed clean did.

    Args:
        start_clean_time: Requested time of the clean itself.
        time_taken_ms: How long it took (``timeTakenInMillis``).
        total_files_deleted: Sum over the partitions, without failed ones.
        earliest_commit_to_retain: Requested time copied from the plan; ``""`` if it has none.
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
    """Milliseconds that a write task spent."""

    total_scan_time: int = 0
    total_create_time: int = 0
    total_upsert_time: int = 0


@attrs.frozen(slots=True)
class WriteStat:
    """
    One file written by a commit; construct it with keywords.

    A stat with a ``log_version`` is that of a log file: only then do ``log_version``, ``log_offset``, ``base_file``
    and ``log_files`` go into JSON. ``prev_commit`` of a new file group is the text ``"null"``. ``prev_base_file``,
    ``num_updates`` and ``total_log_read_time_ms`` exist in Avro only (table version 8 and later).
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
    What a commit, deltacommit, replacecommit or compaction wrote; an empty file is ``CommitMetadata()``.

    Args:
        partition_to_write_stats: Partition path (``""`` when unpartitioned) to the files written there.
        compacted: True for the commit of a compaction or log compaction.
        extra_metadata: ``schema`` (Avro JSON) and whatever the writer adds.
        operation_type: ``UPSERT``, ``INSERT``, ``COMPACT``, ...; ``UNKNOWN`` for an empty file.
        partition_to_replace_file_ids: Completed replacecommits: partition path to superseded file ids; None for others.
    """

    partition_to_write_stats: Mapping[str, tuple[WriteStat, ...]] = attrs.field(factory=dict)
    compacted: bool = False
    extra_metadata: Mapping[str, str | None] = attrs.field(factory=dict)
    operation_type: str | None = "UNKNOWN"
    partition_to_replace_file_ids: Mapping[str, tuple[str, ...]] | None = None


@attrs.frozen(slots=True, kw_only=True)
class ClusteringSlice:
    """One file slice that a clustering reads (``HoodieSliceInfo``); paths are full URIs."""

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
    """Class that made a clustering plan, or compacts; with its parameters."""

    class_name: str | None  # "strategyClassName" or "compactorClassName"
    strategy_params: Mapping[str, str] | None = None
    version: int | None = 1


@attrs.frozen(slots=True, kw_only=True)
class ClusteringPlan:
    """What a clustering is going to rewrite."""

    input_groups: tuple[ClusteringGroup, ...] = ()
    strategy: Strategy | None = None
    extra_metadata: Mapping[str, str] | None = None
    version: int | None = 1
    preserve_hoodie_metadata: bool | None = None
    missing_schedule_partitions: tuple[str, ...] | None = None  # since 1.0

    @property
    def file_groups(self) -> frozenset[tuple[str, str]]:
        """(partition path, file id) of everything that will be replaced."""
        slices = (file_slice for group in self.input_groups for file_slice in group.slices)
        return frozenset((each.partition_path or "", each.file_id or "") for each in slices)


@attrs.frozen(slots=True, kw_only=True)
class RequestedReplaceMetadata:
    """A requested replacecommit or clustering; Hudi leaves all fields null for insert_overwrite."""

    operation_type: str | None = None
    clustering_plan: ClusteringPlan | None = None
    extra_metadata: Mapping[str, str] | None = None
    version: int | None = None


@attrs.frozen(slots=True, kw_only=True)
class CompactionOperation:
    """One file slice to compact; files are names (decoding turns the full paths of version 1 into names)."""

    base_instant_time: str | None
    file_id: str | None
    partition_path: str | None
    delta_file_paths: tuple[str, ...] = ()
    data_file_path: str | None = None
    metrics: Mapping[str, float] | None = None
    bootstrap_file_path: str | None = None


@attrs.frozen(slots=True, kw_only=True)
class CompactionPlan:
    """What a compaction or log compaction is going to merge."""

    operations: tuple[CompactionOperation, ...] = ()
    extra_metadata: Mapping[str, str] | None = None
    version: int = 2
    strategy: Strategy | None = None  # log compaction names its class here
    preserve_hoodie_metadata: bool | None = False
    missing_schedule_partitions: tuple[str, ...] | None = None  # since 1.0


@attrs.frozen(slots=True)
class InstantInfo:
    """An instant as rollbacks and restores name it."""

    requested_time: str  # "commitTime" on disk
    action: str


@attrs.frozen(slots=True, kw_only=True)
class RollbackRequest:
    """
    Work of a rollback in one partition or file group.

    Args:
        file_id, latest_base_instant: ``""`` where whole files are deleted on layout 1.
        files_to_be_deleted: Full paths.
        log_blocks_to_be_deleted: Log files that get a rollback block instead (table version 6), to their sizes.
    """

    partition_path: str
    file_id: str | None = ""
    latest_base_instant: str | None = ""
    files_to_be_deleted: tuple[str, ...] = ()
    log_blocks_to_be_deleted: Mapping[str, int] = attrs.field(factory=dict)


@attrs.frozen(slots=True, kw_only=True)
class RollbackPlan:
    """What a rollback is going to undo."""

    instant_to_rollback: InstantInfo | None
    rollback_requests: tuple[RollbackRequest, ...] = ()
    version: int | None = 1


@attrs.frozen(slots=True, kw_only=True)
class RollbackPartitionMetadata:
    """What a rollback did in one partition; paths are full, log files map to sizes in bytes."""

    partition_path: str
    success_delete_files: tuple[str, ...] = ()
    failed_delete_files: tuple[str, ...] = ()
    rollback_log_files: Mapping[str, int] = attrs.field(factory=dict)
    log_files_from_failed_commit: Mapping[str, int] = attrs.field(factory=dict)


@attrs.frozen(slots=True, kw_only=True)
class RollbackMetadata:
    """What a completed rollback did; ``commits_rollback`` and ``instants_rollback`` are parallel."""

    start_rollback_time: str
    time_taken_ms: int
    total_files_deleted: int
    commits_rollback: tuple[str, ...]
    partitions: Mapping[str, RollbackPartitionMetadata]  # "partitionMetadata" on disk
    instants_rollback: tuple[InstantInfo, ...]
    version: int | None = 1


@attrs.frozen(slots=True, kw_only=True)
class RestorePlan:
    """Which instants a restore is going to roll back, newest first."""

    instants_to_rollback: tuple[InstantInfo, ...]
    savepoint_to_restore_timestamp: str | None
    version: int | None = 2


@attrs.frozen(slots=True, kw_only=True)
class RestoreMetadata:
    """What a completed restore did; ``rollbacks`` maps a rolled-back requested time to its rollback's results."""

    start_restore_time: str
    time_taken_ms: int
    instants_to_rollback: tuple[str, ...]
    rollbacks: Mapping[str, tuple[RollbackMetadata, ...]]  # "hoodieRestoreMetadata" on disk
    restore_instant_info: tuple[InstantInfo, ...]
    version: int | None = 1


@attrs.frozen(slots=True, kw_only=True)
class SavepointMetadata:
    """
    What a savepoint pins.

    Args:
        savepointed_by, comments: Text of the user, possibly empty.
        savepointed_at_ms: Epoch milliseconds.
        files: Partition path to names of base and log files (``partitionMetadata``).
        name: What people call it, ``""`` for none; not part of Hudi's record.
        expires_at_ms: Epoch milliseconds from which on a clean lets go of it, None for never; not part of Hudi's
            record.
    """

    savepointed_by: str
    savepointed_at_ms: int
    comments: str
    files: Mapping[str, tuple[str, ...]]
    version: int | None = 1
    name: str = ""
    expires_at_ms: int | None = None

    def is_expired(self, now_ms: int) -> bool:
        """Whether its time to live is over at that moment, in epoch milliseconds."""
        return self.expires_at_ms is not None and self.expires_at_ms <= now_ms

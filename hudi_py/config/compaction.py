"""
Settings of compaction, as a typed value. Pure.

Source: rules/table-services E.1; Hudi ``HoodieCompactionConfig``.
"""

from __future__ import annotations

from typing import Final

import attrs

from hudi_py.config import keys
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError

_PACKAGE: Final = "org.apache.hudi.table.action.compact.strategy."
_SUFFIX: Final = "CompactionStrategy"
STRATEGIES: Final = (
    "LogFileSizeBased",
    "LogFileNumBased",
    "BoundedIO",
    "UnBounded",
    "DayBased",
    "BoundedPartitionAware",
    "UnBoundedPartitionAware",
    "PartitionRegexBased",
)
"""Names of the strategies, without the end that all names of their classes have."""


@attrs.frozen(kw_only=True)
class CompactionConfig:
    """
    When file slices are compacted, and which.

    Args:
        trigger: ``NUM_COMMITS``, ``NUM_COMMITS_AFTER_LAST_REQUEST``, ``TIME_ELAPSED``, ``NUM_AND_TIME`` or
            ``NUM_OR_TIME``.
        delta_commits_max: Number of delta commits since the last compaction at which one is due.
        delta_seconds_max: Seconds since the last compaction after which one is due.
        strategies: Of `STRATEGIES`; each chooses among what the one before left.
        target_io_mb: Megabytes (MiB) that a plan may read and write.
        log_bytes_min: Bytes of log files from which on a slice is compacted (LogFileSizeBased).
        log_files_min: Number of log files from which on a slice is compacted (LogFileNumBased).
        days: Number of days, or of partitions, that the strategies of days choose.
        partition_regex: Partitions to compact (PartitionRegexBased); None for all.
        max_file_bytes: Maximum size of base files: the assumed size of the new base file of a slice without one.
        log_blocks_min: Number of log blocks of a slice from which on a log compaction merges them.
        memory_bytes: Memory for log records, which is shared by the threads of a process.
        spill_folder: Folder of temporary files for more of them; None for the machine's.
        services_enabled: Whether table services run at all.
    """

    trigger: str = "NUM_COMMITS"
    delta_commits_max: int = 5
    delta_seconds_max: int = 3600
    strategies: tuple[str, ...] = STRATEGIES[:1]
    target_io_mb: int = 500 * 1024
    log_bytes_min: int = 0
    log_files_min: int = 0
    days: int = 10
    partition_regex: str | None = None
    max_file_bytes: int = 120 * 1024 * 1024
    log_blocks_min: int = 5
    memory_bytes: int = 1 << 30
    spill_folder: str | None = None
    services_enabled: bool = True


def compaction_config(settings: Settings) -> CompactionConfig:
    """
    Return the compaction configuration in *settings*.

    Raises:
        ConfigError: A value is invalid, or a strategy is a class that hudi_py does not know.
    """
    return CompactionConfig(
        trigger=settings[keys.COMPACT_TRIGGER],
        delta_commits_max=settings[keys.COMPACT_DELTA_COMMITS_MAX],
        delta_seconds_max=settings[keys.COMPACT_DELTA_SECONDS_MAX],
        strategies=tuple(_strategy(name) for name in settings[keys.COMPACTION_STRATEGY]),
        target_io_mb=settings[keys.COMPACTION_TARGET_IO],
        log_bytes_min=settings[keys.COMPACTION_LOG_BYTES_MIN],
        log_files_min=settings[keys.COMPACTION_LOG_FILES_MIN],
        days=settings[keys.COMPACTION_DAYS],
        partition_regex=settings[keys.COMPACTION_PARTITION_REGEX] or None,
        max_file_bytes=settings[keys.PARQUET_MAX_FILE_SIZE],
        log_blocks_min=settings[keys.LOG_COMPACTION_BLOCKS_MIN],
        memory_bytes=settings[keys.COMPACTION_MEMORY_BYTES],
        spill_folder=settings[keys.SPILL_FOLDER] or None,
        services_enabled=settings[keys.TABLE_SERVICES_ENABLED],
    )


def compacts_after_writes(settings: Settings) -> str | None:
    """
    Return what follows each commit to a merge-on-read table: ``run``, ``schedule``, or None for nothing (E.1).

    Raises:
        ConfigError: Both are asked for.
    """
    inline, schedule = settings[keys.COMPACT_INLINE], settings[keys.COMPACT_SCHEDULE_INLINE]
    if inline and schedule:
        raise ConfigError(
            f"{keys.COMPACT_INLINE.name} and {keys.COMPACT_SCHEDULE_INLINE.name} exclude each other; set one of them"
        )
    return "run" if inline else "schedule" if schedule else None


def _strategy(class_name: str) -> str:
    # Both the full class name and the short one are accepted, as users copy either from Hudi's documentation.
    name = class_name.removeprefix(_PACKAGE).removesuffix(_SUFFIX)
    if name not in STRATEGIES:
        known = ", ".join(f"{each}{_SUFFIX}" for each in STRATEGIES)
        raise ConfigError(
            f"{keys.COMPACTION_STRATEGY.name}={class_name} is a Java class that hudi_py does not know; "
            f"use one of {known}"
        )
    return name

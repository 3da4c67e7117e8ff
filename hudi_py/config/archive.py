"""
Settings of archival, as a typed value.

Source: rules/table-services D.1; Hudi ``HoodieArchivalConfig``.
"""

from __future__ import annotations

import attrs

from hudi_py.config import keys
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError

_COUNTING_TRIGGERS = ("NUM_COMMITS", "NUM_AND_TIME")


@attrs.frozen(kw_only=True)
class ArchiveConfig:
    """
    How much of the timeline stays active.

    Args:
        keep_max: Archival begins when more completed commits than this are active.
        keep_min: Number of completed commits that archival leaves active.
        entries_per_block: Layout 1: number of archived files per log block.
        beyond_savepoint: Archive commits after the first savepoint too; only savepointed commits stay.
        anew: Archive even where the archive of earlier commits is lost.
        fails_on_damage: Layout 1: a damaged commit and all later commits stay active; otherwise the damaged commit is
            archived without its content.
        log_merge_files: Layout 1: number of small archive files from which on they are merged; None for never.
        log_merge_bytes_max: Layout 1: size in bytes up to which an archive file counts as small.
        files_per_merge: Layout 2: number of files of a level that are merged into one file of the next level.
        delta_commits_kept: Number of delta commits that the next compaction counts, and which therefore stay active;
            None if compaction does not count them.
        services_enabled: Whether table services run at all.
    """

    keep_max: int = 30
    keep_min: int = 20
    entries_per_block: int = 10
    beyond_savepoint: bool = False
    anew: bool = False
    fails_on_damage: bool = True
    log_merge_files: int | None = None
    log_merge_bytes_max: int = 20 * 1024 * 1024
    files_per_merge: int = 10
    delta_commits_kept: int | None = 5
    services_enabled: bool = True


def archive_config(settings: Settings) -> ArchiveConfig:
    """
    Return the archival configuration in *settings*.

    Raises:
        ConfigError: A value is invalid, or the maximum is not larger than the minimum (A-2).
    """
    keep_min, keep_max = settings[keys.KEEP_MIN_COMMITS], settings[keys.KEEP_MAX_COMMITS]
    # Equal ones would archive a single instant after each commit, and write an archive file for it.
    if keep_max <= keep_min:
        raise ConfigError(
            f"{keys.KEEP_MAX_COMMITS.name}={keep_max} must be larger than {keys.KEEP_MIN_COMMITS.name}={keep_min}"
        )
    # Only these triggers count delta commits, and archived ones would be missing from the count.
    counts = settings[keys.COMPACT_TRIGGER].upper() in _COUNTING_TRIGGERS
    return ArchiveConfig(
        keep_max=keep_max,
        keep_min=keep_min,
        entries_per_block=settings[keys.ARCHIVE_BATCH],
        beyond_savepoint=settings[keys.ARCHIVE_BEYOND_SAVEPOINT],
        anew=settings[keys.ARCHIVE_ANEW],
        fails_on_damage=settings[keys.ARCHIVE_FAILS_ON_DAMAGE],
        log_merge_files=settings[keys.ARCHIVE_MERGE_FILES] if settings[keys.ARCHIVE_MERGE_ENABLED] else None,
        log_merge_bytes_max=settings[keys.ARCHIVE_MERGE_SMALL_BYTES],
        files_per_merge=settings[keys.HISTORY_COMPACTION_BATCH],
        delta_commits_kept=settings[keys.COMPACT_DELTA_COMMITS_MAX] if counts else None,
        services_enabled=settings[keys.TABLE_SERVICES_ENABLED],
    )

"""
Cleaning settings, typed and with the policy inferred.

Source: format/table-services A.1, A-1, A-2; Hudi ``HoodieCleanConfig``.
"""

from __future__ import annotations

import enum
from datetime import timedelta

import attrs

from hudi_py.config import keys
from hudi_py.config.keys import Settings


class CleanPolicy(enum.Enum):
    """Which file slices a clean keeps; values are the words in plans."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"


_RETENTION_KEYS = (
    (keys.CLEAN_COMMITS_RETAINED, CleanPolicy.KEEP_LATEST_COMMITS),
    (keys.CLEAN_HOURS_RETAINED, CleanPolicy.KEEP_LATEST_BY_HOURS),
    (keys.CLEAN_FILE_VERSIONS_RETAINED, CleanPolicy.KEEP_LATEST_FILE_VERSIONS),
)


@attrs.frozen(kw_only=True)
class CleanConfig:
    """
    How to clean.

    Args:
        policy: Which of the three retentions applies.
        commits_retained: Commits, at least 1.
        hours_retained: Hours, at least 1.
        file_versions_retained: Slices per group, at least 1.
        trigger_max_commits: Completed commits since the last clean that make a new plan worth it.
        incremental: Look only at partitions that changed since the last clean.
        allow_multiple: Plan although another clean is pending.
        parallelism: Upper bound of tasks.
        delete_bootstrap_base_files: Also delete the source files of a bootstrap.
        services_enabled: Master switch of all table services.
        verify: Hold every plan against a second, independent planner; a disagreement deletes nothing.
        breakers: Refuse to store a plan that trips a circuit breaker.
        breaker_max_share: Largest share of the files looked at that one plan may delete, above 0 and up to 1.
        max_files, max_partitions, max_bytes: Budget of one clean; None for any number.
        max_duration: When it is over, one clean takes nothing more on; None for any time.
    """

    policy: CleanPolicy = CleanPolicy.KEEP_LATEST_COMMITS
    commits_retained: int = 10
    hours_retained: int = 24
    file_versions_retained: int = 3
    trigger_max_commits: int = 1
    incremental: bool = True
    allow_multiple: bool = False
    parallelism: int = 200
    delete_bootstrap_base_files: bool = False
    services_enabled: bool = True
    verify: bool = False
    breakers: bool = True
    breaker_max_share: float = 1.0
    max_files: int | None = None
    max_partitions: int | None = None
    max_bytes: int | None = None
    max_duration: timedelta | None = None

    @property
    def retention(self) -> str:
        """The policy as a sentence."""
        if self.policy is CleanPolicy.KEEP_LATEST_COMMITS:
            return f"keep what the last {self.commits_retained} commits need"
        if self.policy is CleanPolicy.KEEP_LATEST_BY_HOURS:
            return f"keep what the last {self.hours_retained} hours need"
        return f"keep the last {self.file_versions_retained} versions of each file group"


def clean_config(settings: Settings) -> CleanConfig:
    """
    Raises:
        ConfigError: A value is wrong.
    """
    return CleanConfig(
        policy=_policy(settings),
        commits_retained=settings[keys.CLEAN_COMMITS_RETAINED],
        hours_retained=settings[keys.CLEAN_HOURS_RETAINED],
        file_versions_retained=settings[keys.CLEAN_FILE_VERSIONS_RETAINED],
        trigger_max_commits=settings[keys.CLEAN_TRIGGER_MAX_COMMITS],
        incremental=settings[keys.CLEAN_INCREMENTAL],
        allow_multiple=settings[keys.CLEAN_MULTIPLE],
        parallelism=settings[keys.CLEAN_PARALLELISM],
        delete_bootstrap_base_files=settings[keys.CLEAN_BOOTSTRAP_BASE_FILE],
        services_enabled=settings[keys.TABLE_SERVICES_ENABLED],
        verify=settings[keys.CLEAN_VERIFY],
        breakers=settings[keys.CLEAN_BREAKERS],
        breaker_max_share=settings[keys.CLEAN_BREAKER_MAX_SHARE],
        max_files=settings[keys.CLEAN_MAX_FILES],
        max_partitions=settings[keys.CLEAN_MAX_PARTITIONS],
        max_bytes=settings[keys.CLEAN_MAX_BYTES],
        max_duration=settings[keys.CLEAN_MAX_DURATION],
    )


def _policy(settings: Settings) -> CleanPolicy:
    """Rule A-1: an explicit policy, else the one whose retention is the only one set, else by commits."""
    if keys.CLEAN_POLICY in settings:
        return CleanPolicy(settings[keys.CLEAN_POLICY])
    given = [policy for key, policy in _RETENTION_KEYS if key in settings]
    return given[0] if len(given) == 1 else CleanPolicy.KEEP_LATEST_COMMITS

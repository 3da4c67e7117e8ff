"""
Settings of cleaning, as a typed value; includes the choice of the policy if none is set.

Hudi has one retention policy. hudi_py can add further keeps (minimum versions, a calendar ladder, …): a file slice is
kept if the policy or any keep asks for it.

Source: rules/table-services A.1, A-1, A-2; Hudi ``HoodieCleanConfig``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import timedelta

import attrs

from hudi_py.config import keys
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError
from hudi_py.model.tag import Tag
from hudi_py.model.words import counted, human_bytes


class CleanPolicy(enum.Enum):
    """Which file slices a clean keeps; values are the names in plans."""

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
    What to keep, and how to clean.

    Args:
        policy: Which of the three retentions of Hudi applies.
        commits_retained: Number of commits whose files are kept, at least 1.
        hours_retained: Number of hours, at least 1; files that commits of these hours need are kept.
        file_versions_retained: Number of slices kept per file group, at least 1.
        age_retained: Files that commits of this span need are kept. With the policy by hours it replaces
            *hours_retained*; unlike that, it also keeps what pending writes need.
        changes_retained: Files that readers of the changes of this span need are kept, however short the window is.
        max_old_bytes: A window by time begins later if the older versions that it keeps have more bytes than this.
        floor: No limit on bytes goes below this span.
        min_commits: Minimum: files that this number of commits need are kept, whatever else is set.
        max_commits: Maximum: a window by time covers at most this number of commits.
        min_file_versions: Minimum: this number of slices per file group is kept, whatever else is set.
        keep_daily, keep_weekly, keep_monthly: The calendar ladder. Keep the newest snapshot of each of the last N days,
            weeks (from Monday) or months that have one, in the table's time zone.
        forget: Requested times of snapshots that the ladder does not keep in this run.
        approved: In this run, the only files that may be deleted: path to size in bytes; None for all.
        approved_by: Who approved them.
        older_than: Replaces the policy's window in this run: instant time from which on everything is kept.
        archive_max_commits: Number of commits that archival leaves active at most; None if unknown.
        trigger_max_commits: A new plan is made after this number of completed commits since the last clean.
        incremental: Look only at partitions that changed since the last clean.
        allow_multiple: Make a plan although another clean is pending.
        parallelism: Largest number of tasks.
        services_enabled: Whether table services run at all.
        verify: Compare every plan with that of a second, independent planner; if they differ, delete nothing.
        breakers: Refuse to store a plan that trips a circuit breaker.
        breaker_max_share: Largest share of the examined files that a plan may delete, above 0 and at most 1.
        max_files, max_partitions, max_bytes: Limits of one clean; None for no limit.
        max_duration: After this time a clean starts no further deletions; None for no limit.
        quarantine: Move files into quarantine, so that the clean can be undone.
        quarantine_grace: How long they stay there.
        quarantine_tag: Tag that they get there, by which the store deletes them; None if hudi_py does.
    """

    policy: CleanPolicy = CleanPolicy.KEEP_LATEST_COMMITS
    commits_retained: int = 10
    hours_retained: int = 24
    file_versions_retained: int = 3
    age_retained: timedelta | None = None
    changes_retained: timedelta | None = None
    max_old_bytes: int | None = None
    floor: timedelta | None = None
    min_commits: int | None = None
    max_commits: int | None = None
    min_file_versions: int | None = None
    keep_daily: int = 0
    keep_weekly: int = 0
    keep_monthly: int = 0
    older_than: str | None = None
    forget: tuple[str, ...] = ()
    approved: Mapping[str, int] | None = attrs.field(default=None, eq=False, repr=False)
    approved_by: str = ""
    archive_max_commits: int | None = None
    trigger_max_commits: int = 1
    incremental: bool = True
    allow_multiple: bool = False
    parallelism: int = 200
    services_enabled: bool = True
    verify: bool = False
    breakers: bool = True
    breaker_max_share: float = 1.0
    max_files: int | None = None
    max_partitions: int | None = None
    max_bytes: int | None = None
    max_duration: timedelta | None = None
    quarantine: bool = False
    quarantine_grace: timedelta = timedelta(days=7)
    quarantine_tag: Tag | None = None

    @property
    def retention(self) -> str:
        """The policy and all keeps as a sentence."""
        return "; ".join((self._policy_sentence, *self._more_sentences()))

    @property
    def _policy_sentence(self) -> str:
        if self.older_than is not None:
            return f"keep what is needed from {self.older_than} on"
        if self.policy is CleanPolicy.KEEP_LATEST_COMMITS:
            return f"keep what {_last(self.commits_retained, 'commit')} need{_s(self.commits_retained)}"
        if self.policy is CleanPolicy.KEEP_LATEST_BY_HOURS:
            capped = f", but no more than {counted(self.max_commits, 'commit')}" if self.max_commits else ""
            span = (
                counted(self.hours_retained, "hour")
                if self.age_retained is None
                else format_duration(self.age_retained)
            )
            return f"keep what the last {span} need{capped}"
        return f"keep {_last(self.file_versions_retained, 'version')} of each file group"

    def _more_sentences(self) -> list[str]:
        parts = []
        if self.age_beside is not None:
            capped = f", but no more than {counted(self.max_commits, 'commit')}" if self.max_commits else ""
            parts.append(f"what the last {format_duration(self.age_beside)} need{capped}")
        if self.max_old_bytes is not None:
            parts.append(f"older versions of at most {human_bytes(self.max_old_bytes)} in that window")
        if self.changes_retained is not None:
            parts.append(f"what readers of the changes of the last {format_duration(self.changes_retained)} need")
        if self.min_commits is not None:
            parts.append(f"what {_last(self.min_commits, 'commit')} need{_s(self.min_commits)}")
        if self.min_file_versions is not None:
            parts.append(f"{_last(self.min_file_versions, 'version')} of each file group")
        for count, period in ((self.keep_daily, "day"), (self.keep_weekly, "week"), (self.keep_monthly, "month")):
            if count:
                parts.append(f"the newest snapshot of each of the last {counted(count, period)}")
        return parts

    @property
    def counted_commits(self) -> int | None:
        """Number of commits in the policy's window; None if the policy does not count commits."""
        # A cut-off given for one run takes the place of the window, of whichever policy.
        by_commits = self.policy is CleanPolicy.KEEP_LATEST_COMMITS and self.older_than is None
        return self.commits_retained if by_commits else None

    @property
    def commits_required(self) -> int:
        """Nothing is deleted until the table has more completed commits than this (A-41)."""
        # Hudi compares with the policy's number alone; the minimum of hudi_py is a second window, which must be full
        # too.
        return max(self.counted_commits or 0, self.min_commits or 0)

    @property
    def window_age(self) -> timedelta | None:
        """Length of the policy's window; None if the policy has no window by time."""
        if self.policy is not CleanPolicy.KEEP_LATEST_BY_HOURS or self.older_than is not None:
            return None
        return hours(self.hours_retained) if self.age_retained is None else self.age_retained

    @property
    def age_beside(self) -> timedelta | None:
        """Length of the window by time that is kept in addition to a policy of another kind; None if there is none."""
        by_age = self.policy is CleanPolicy.KEEP_LATEST_BY_HOURS and self.older_than is None
        # With the policy by hours the span is that policy's own window, and must not count twice.
        return None if by_age else self.age_retained

    @property
    def versions(self) -> int:
        """Number of newest slices kept per file group; 0 if nothing asks for a number."""
        by_versions = self.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS
        return max(self.file_versions_retained if by_versions else 0, self.min_file_versions or 0)

    @property
    def has_window(self) -> bool:
        """Whether anything is kept by a window of commits or time, and not only by number of slices."""
        return (
            self.policy is not CleanPolicy.KEEP_LATEST_FILE_VERSIONS
            or self.age_retained is not None
            or self.min_commits is not None
            or self.changes_retained is not None
        )

    @property
    def has_ladder(self) -> bool:
        """Whether the calendar ladder keeps snapshots."""
        return bool(self.keep_daily or self.keep_weekly or self.keep_monthly)

    @property
    def is_union(self) -> bool:
        """Whether there are keeps in addition to Hudi's policy."""
        more = (self.age_beside, self.changes_retained, self.min_commits, self.min_file_versions)
        return self.has_ladder or any(keep is not None for keep in more)


def hours(count: int) -> timedelta:
    """Return a span of *count* hours, or the longest possible span if that is too long."""
    try:
        return timedelta(hours=count)
    # Settings are whole numbers without an upper limit; a span beyond the calendar keeps everything, as intended.
    except OverflowError:
        return timedelta.max


def format_duration(span: timedelta) -> str:
    """Return a span as users write it (``90m``, ``7d``), in the largest unit that gives a whole number."""
    ms = span // timedelta(milliseconds=1)
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if ms % size == 0:
            return f"{ms // size}{unit}"
    return f"{ms}ms"


def clean_config(settings: Settings) -> CleanConfig:
    """
    Return the cleaning configuration in *settings*.

    Raises:
        ConfigError: A value is invalid, or two values contradict each other.
    """
    config = CleanConfig(
        policy=_policy(settings),
        commits_retained=settings[keys.CLEAN_COMMITS_RETAINED],
        hours_retained=settings[keys.CLEAN_HOURS_RETAINED],
        file_versions_retained=settings[keys.CLEAN_FILE_VERSIONS_RETAINED],
        age_retained=settings[keys.CLEAN_AGE_RETAINED],
        changes_retained=settings[keys.CLEAN_CHANGES_RETAINED],
        max_old_bytes=settings[keys.CLEAN_MAX_OLD_BYTES],
        min_commits=settings[keys.CLEAN_MIN_COMMITS],
        max_commits=settings[keys.CLEAN_MAX_COMMITS],
        min_file_versions=settings[keys.CLEAN_MIN_FILE_VERSIONS],
        keep_daily=settings[keys.CLEAN_KEEP_DAILY],
        keep_weekly=settings[keys.CLEAN_KEEP_WEEKLY],
        keep_monthly=settings[keys.CLEAN_KEEP_MONTHLY],
        # Archived commits have no snapshots on the ladder, so plans warn of settings that archive them first; if
        # archival is left to others, its limit is unknown.
        archive_max_commits=settings[keys.KEEP_MAX_COMMITS] if settings[keys.ARCHIVE_AUTOMATIC] else None,
        trigger_max_commits=settings[keys.CLEAN_TRIGGER_MAX_COMMITS],
        incremental=settings[keys.CLEAN_INCREMENTAL],
        allow_multiple=settings[keys.CLEAN_MULTIPLE],
        parallelism=settings[keys.CLEAN_PARALLELISM],
        services_enabled=settings[keys.TABLE_SERVICES_ENABLED],
        verify=settings[keys.CLEAN_VERIFY],
        breakers=settings[keys.CLEAN_BREAKERS],
        breaker_max_share=settings[keys.CLEAN_BREAKER_MAX_SHARE],
        max_files=settings[keys.CLEAN_MAX_FILES],
        max_partitions=settings[keys.CLEAN_MAX_PARTITIONS],
        max_bytes=settings[keys.CLEAN_MAX_BYTES],
        max_duration=settings[keys.CLEAN_MAX_DURATION],
        quarantine=settings[keys.CLEAN_QUARANTINE],
        quarantine_grace=settings[keys.QUARANTINE_GRACE],
        quarantine_tag=settings[keys.QUARANTINE_TAG],
    )
    # The key itself, not its value: the default of the hours must not contradict an age that is given.
    _check(config, hours_given=keys.CLEAN_HOURS_RETAINED in settings)
    return with_floor(config, settings[keys.CLEAN_FLOOR])


def with_floor(config: CleanConfig, floor: timedelta | None) -> CleanConfig:
    """Return *config*, which keeps what a span of that length needs, whatever else it asks for."""
    if floor is None:
        return config
    config = attrs.evolve(config, floor=floor)
    asked = config.window_age if config.age_beside is None else config.age_beside
    return config if asked is not None and asked >= floor else attrs.evolve(config, age_retained=floor)


def _policy(settings: Settings) -> CleanPolicy:
    """Return the policy that is set, else that of the only retention that is set, else by commits (A-1)."""
    if keys.CLEAN_POLICY in settings:
        return CleanPolicy(settings[keys.CLEAN_POLICY])
    given = [policy for key, policy in _RETENTION_KEYS if key in settings]
    # The finer form of the retention by hours: whoever sets it alone means that policy.
    if not given and keys.CLEAN_AGE_RETAINED in settings:
        return CleanPolicy.KEEP_LATEST_BY_HOURS
    # With several retentions nothing says which was meant; then Hudi's default applies, as in Hudi.
    return given[0] if len(given) == 1 else CleanPolicy.KEEP_LATEST_COMMITS


def _check(config: CleanConfig, *, hours_given: bool) -> None:
    """Refuse keeps that contradict each other: guessing which of them was meant could delete data."""
    by_hours = config.policy is CleanPolicy.KEEP_LATEST_BY_HOURS
    if by_hours and hours_given and config.age_retained is not None:
        raise ConfigError(
            f"{keys.CLEAN_AGE_RETAINED.name}={format_duration(config.age_retained)} and "
            f"{keys.CLEAN_HOURS_RETAINED.name}={config.hours_retained} say the same thing twice; keep one"
        )
    if config.max_old_bytes is not None and (not by_hours or config.max_commits is not None):
        raise ConfigError(
            f"{keys.CLEAN_MAX_OLD_BYTES.name}={config.max_old_bytes} limits a window by time and nothing else: set "
            f"{keys.CLEAN_AGE_RETAINED.name}, and leave {keys.CLEAN_MAX_COMMITS.name} out"
        )
    if config.max_commits is None:
        return
    name = f"{keys.CLEAN_MAX_COMMITS.name}={config.max_commits}"
    if config.min_commits is not None and config.min_commits > config.max_commits:
        raise ConfigError(
            f"{keys.CLEAN_MIN_COMMITS.name}={config.min_commits} is above {name}: the minimum must not exceed the "
            "maximum; correct one of them"
        )
    counted = config.counted_commits
    if counted is not None and counted > config.max_commits:
        raise ConfigError(
            f"{keys.CLEAN_COMMITS_RETAINED.name}={counted} is above {name}: the retention must not exceed the "
            "maximum; correct one of them"
        )
    if config.age_retained is None and not by_hours:
        raise ConfigError(
            f"{name} limits a window by time, but no window is set: set {keys.CLEAN_AGE_RETAINED.name} too, or leave "
            "it out"
        )


def _last(number: int, noun: str) -> str:
    return f"the last {noun}" if number == 1 else f"the last {counted(number, noun)}"


def _s(number: int) -> str:
    """End of a verb behind so many."""
    return "s" if number == 1 else ""

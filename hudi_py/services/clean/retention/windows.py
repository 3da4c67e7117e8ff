"""Makes the union of all keeps of a table, and checks the settings for it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, tzinfo

from hudi_py.config import keys
from hudi_py.config.clean import CleanConfig
from hudi_py.errors import ConfigError
from hudi_py.model.instant import Instant
from hudi_py.model.instant_time import format_instant_time
from hudi_py.model.lease import Lease
from hudi_py.services.clean.retention.ladder import climb
from hudi_py.services.clean.retention.policy import Keeps, Window
from hudi_py.timeline.timeline import Timeline


def reaching_back(leases: Iterable[Lease], window: Instant | None, last_commit: str) -> tuple[Lease, ...]:
    """
    The leases that need more than a clean keeps anyway.

    Args:
        leases: All leases in force.
        window: First instant of the window; from it on, every snapshot is kept. None if versions are counted.
        last_commit: Requested time of the last completed commit: the newest slices are kept by every policy.
    """
    start = last_commit if window is None else window.requested_time
    return tuple(lease for lease in leases if lease.floor < start)


def keeps_of(
    kept: Sequence[Window], whole: Iterable[str], config: CleanConfig, leases: tuple[Lease, ...] = ()
) -> Keeps | None:
    """
    All keeps of *config*; None if there is only Hudi's policy, which needs no union.

    Args:
        kept: The windows, the policy's own first.
        whole: Commits whose snapshots are complete.
        config: The settings of the clean.
        leases: Leases that reach back behind the windows.
    """
    if not config.is_union and not leases:
        return None
    return Keeps(
        leases=leases,
        windows=tuple((each.reason, each.earliest.requested_time) for each in kept if each.earliest is not None),
        snapshots=climb(whole, config),
        versions=config.versions,
    )


def check_cut_off(config: CleanConfig, now: datetime, zone: tzinfo) -> None:
    """
    Raises:
        ConfigError: The cut-off of this run lies in the future.
    """
    moment = format_instant_time(now.astimezone(zone))
    if config.older_than is not None and config.older_than > moment:
        raise ConfigError(
            f"older_than {config.older_than} is in the future (it is {moment} in the table's time zone); nothing was "
            "planned. Give a time that has passed, or a duration (7d)"
        )


def check_forgotten(
    config: CleanConfig, window: Instant | None, whole: Iterable[str], savepoints: Iterable[str]
) -> None:
    """
    Raises:
        ConfigError: An instant to forget is no snapshot that is kept, a window needs it, or a savepoint holds it.
    """
    start = "" if window is None else window.requested_time
    for time in config.forget:
        # The most helpful reason first: each of them alone forbids it.
        if time in savepoints:
            raise ConfigError(f"{time} is held by a savepoint, so it cannot be forgotten; delete the savepoint first")
        if time >= start:
            raise ConfigError(
                f"{time} lies inside the retention window, which begins at {start or 'no commit yet'}, so it cannot be "
                "forgotten; retain less, or give older_than"
            )
        if time not in whole:
            raise ConfigError(f"{time} is not a snapshot that is kept; the last clean's extra metadata names them")


def questionable(config: CleanConfig, kept: Sequence[Window], timeline: Timeline) -> tuple[str, ...]:
    """Settings that are allowed but probably a mistake, one sentence each (K-9, K-17)."""
    found = []
    most = config.archive_max_commits
    if most is not None and most < config.commits_required:
        found.append(
            f"archival leaves at most {most} commits active and {config.commits_required} are to be kept, so nothing "
            f"will ever be cleaned: set {keys.KEEP_MAX_COMMITS.name} above {config.commits_required}"
        )
    pending = timeline.commits_and_compaction.pending()
    if config.window_age is not None and config.age_retained is None and pending and kept[0].earliest is not None:
        start, first = kept[0].earliest.requested_time, pending[0]
        if first.requested_time < start:
            found.append(
                f"{first} is pending and began before the {config.hours_retained} hours that are kept, so what it "
                f"reads may go: finish it or roll it back, or set {keys.CLEAN_AGE_RETAINED.name}="
                f"{config.hours_retained}h, which waits for pending writes"
            )
    return tuple(found)

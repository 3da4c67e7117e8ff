"""Finds the windows that a clean keeps, makes the union of all keeps, and checks the settings for it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import NamedTuple

from hudi_py.config import keys
from hudi_py.config.clean import CleanConfig
from hudi_py.errors import ConfigError
from hudi_py.model.instant import Instant
from hudi_py.model.instant_time import format_instant_time, time_before
from hudi_py.model.lease import Lease
from hudi_py.services.clean.retention.ladder import climb
from hudi_py.services.clean.retention.policy import Keeps, Reason
from hudi_py.timeline.timeline import Timeline


def reaching_back(leases: Iterable[Lease], window: Instant | None, last_commit: str) -> tuple[Lease, ...]:
    """
    The leases that need more than a clean keeps anyway; of those that need the same, one.

    Args:
        leases: All leases in force.
        window: First instant of the window; from it on, every snapshot is kept. None if versions are counted.
        last_commit: Requested time of the last completed commit: the newest slices are kept by every policy.
    """
    # Behind this time a clean may delete, so only leases that reach back further change its plan.
    start = last_commit if window is None else window.requested_time
    back = (lease for lease in leases if lease.floor < start)
    return tuple({(each.instant, each.pending, each.is_consumer): each for each in back}.values())


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
        ConfigError: An instant to forget is not a kept snapshot, a window needs it, or a savepoint holds it.
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


class Window(NamedTuple):
    """A keep that is a window: its first instant, or None if it keeps everything."""

    reason: Reason
    earliest: Instant | None


def windows(timeline: Timeline, config: CleanConfig, *, now: datetime, zone: tzinfo) -> tuple[Window, ...]:
    """
    The windows to keep, the policy's own first; none if slices are only counted.

    Args:
        timeline: The active timeline.
        config: The settings of the clean.
        now: The time of planning, with a time zone; only windows by time need it.
        zone: Time zone of the table's instant times. Hudi uses the process's zone, whatever the table's is (A-20, K-8).
    """
    commits = timeline.commits_and_compaction
    found = []
    if config.older_than is not None:
        found.append(Window(Reason.WINDOW, _from_cut_off(commits, config.older_than)))
    elif config.counted_commits is not None:
        found.append(Window(Reason.WINDOW, _last_commits(commits, config.counted_commits)))
    elif config.window_age is not None:
        # Hudi's own policy by hours waits for no pending write (rules, K-9), and cleans no table that rests
        # for longer than that. Ours does both: of such a table, the last commit has all that the span needs.
        own = config.age_retained is not None
        start = (_since if own else _young)(commits, config.window_age, now, zone)
        found.append(Window(Reason.WINDOW, _capped(commits, start, config.max_commits)))
    if config.age_beside is not None:
        start = _since(commits, config.age_beside, now, zone)
        # Beside the policy, not in its place: a file stays if either needs it.
        found.append(Window(Reason.AGE, _capped(commits, start, config.max_commits)))
    if config.changes_retained is not None:
        start = _since(commits, config.changes_retained, now, zone)
        found.append(Window(Reason.CHANGES, start))
    if config.max_old_bytes is not None and config.floor is not None:
        # What the limit on bytes does not go below; without that limit it is inside the policy's window.
        found.append(Window(Reason.FLOOR, _from_cut_off(commits, time_before(now, config.floor, zone))))
    if config.min_commits is not None:
        found.append(Window(Reason.FLOOR, _last_commits(commits, config.min_commits)))
    return tuple(found)


def earliest_to_retain(timeline: Timeline, config: CleanConfig, *, now: datetime, zone: tzinfo) -> Instant | None:
    """
    The earliest instant whose files must all be kept; None if there is none (rules A-16 to A-22).

    Args:
        timeline, now, zone: As `windows`.
    """
    return earliest_of(windows(timeline, config, now=now, zone=zone))


def earliest_of(kept: Sequence[Window]) -> Instant | None:
    """The start of the window that reaches back farthest; None if one keeps everything, or if there is none."""
    starts = [window.earliest for window in kept]
    known = [start for start in starts if start is not None]
    # One that keeps everything wins over all others.
    return min(known, key=lambda start: start.requested_time) if known and len(known) == len(starts) else None


def _last_commits(commits: Timeline, count: int) -> Instant | None:
    """Rules A-16 to A-18."""
    completed = commits.completed()
    return _not_past_pending(commits, completed[-count]) if len(completed) > count else None


def _young(commits: Timeline, age: timedelta, now: datetime, zone: tzinfo) -> Instant | None:
    """Rule A-20."""
    limit = time_before(now, age, zone)
    return next((i for i in commits.completed() if i.requested_time >= limit), None)


def _since(commits: Timeline, age: timedelta, now: datetime, zone: tzinfo) -> Instant | None:
    return _from_cut_off(commits, time_before(now, age, zone))


def _from_cut_off(commits: Timeline, cut_off: str) -> Instant | None:
    """The first commit from the cut-off on; if all are older, the newest, whose files are kept anyway."""
    completed = commits.completed()
    found = next((i for i in completed if i.requested_time >= cut_off), completed[-1] if completed else None)
    return _not_past_pending(commits, found)


def _not_past_pending(commits: Timeline, candidate: Instant | None) -> Instant | None:
    """Rule A-18: no window begins after a pending write, which may still read the files before it."""
    pending = commits.pending()
    if candidate is None or not pending or candidate.requested_time <= pending[0].requested_time:
        return candidate
    before = [i for i in commits.completed() if i.requested_time < pending[0].requested_time]
    return before[-1] if before else None


def _capped(commits: Timeline, start: Instant | None, ceiling: int | None) -> Instant | None:
    """Let the window reach back at most *ceiling* commits; also a window that has all commits."""
    cap = None if ceiling is None else _last_commits(commits, ceiling)
    if cap is None or (start is not None and start.requested_time >= cap.requested_time):
        return start
    return cap

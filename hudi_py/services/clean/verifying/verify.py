"""
The second planner: it marks every file that something can still reach; all others are garbage. Pure.

This is the simplest form of the rules. It was written a second time and shares only the grammar of file names with
`policy` and `fsview`, so that a mistake in either shows as a disagreement. Source: rules/table-services 0, A.3, A.5.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date

import attrs

from hudi_py.model.files import BaseFile, LogFile, parse_base_file, parse_data_file
from hudi_py.model.instant import Action, Instant
from hudi_py.versions.format import LogNaming

_COMPACTIONS = (Action.COMPACTION, Action.LOG_COMPACTION)
_WRITES = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT, Action.CLUSTERING, *_COMPACTIONS)


@attrs.frozen
class PendingCompaction:
    """A pending compaction of one file group: its time, and the slice and files that it reads."""

    time: str
    base_time: str
    is_log_compaction: bool
    files: frozenset[str]


@attrs.frozen(kw_only=True)
class More:
    """
    Roots besides the policy's; a file stays if any of them reaches it.

    Args:
        cut_off: The instant time from which all files are reached, instead of the policy's window.
        limit: The instant time from which all files are reached; earlier if a write is pending.
        is_patient: Whether the policy's own window waits for pending writes, too.
        floor, ceiling: Number of newest commits that are always reached; that a limit reaches at most.
        versions: Number of slices to reach in each group.
        times: Commits whose snapshots are complete.
        daily, weekly, monthly: Number of days, weeks and months whose last snapshot is reached.
        spans: Instant times from which on all is reached, however short the policy's window is.
        shortened: Where the policy's window begins, if a limit on bytes made it shorter.
        since: Times from which on everything is reached, by those who read changes; as *read*.
        read: Commits that readers need, each with earlier writes that may or may not belong to it.
    """

    cut_off: str | None = None
    limit: str | None = None
    is_patient: bool = False
    floor: int = 0
    ceiling: int = 0
    versions: int = 0
    times: tuple[str, ...] = ()
    daily: int = 0
    weekly: int = 0
    monthly: int = 0
    read: tuple[tuple[str, frozenset[str]], ...] = ()
    spans: tuple[str, ...] = ()
    shortened: str | None = None
    since: tuple[tuple[str, frozenset[str]], ...] = ()


@attrs.frozen(kw_only=True)
class Roots:
    """
    The roots, from which files are reached.

    Args:
        log_naming: How log files are assigned to slices.
        instants: The active timeline.
        table_actions: Actions of ``TL.table``.
        policy: The policy's name in plans.
        retained: Number of commits, hours or versions of that policy.
        limit: The instant time at which the window by hours begins; ``""`` for other policies.
        savepointed: Names of files by partition path that savepoints protect, or that pending clusterings read.
        compactions: Pending compaction by partition path and file id.
        replaced: Time of the last completed replacecommit by partition path and file id.
        more: Further roots besides the policy's.
    """

    log_naming: LogNaming
    instants: tuple[Instant, ...]
    table_actions: frozenset[Action]
    policy: str
    retained: int
    limit: str = ""
    savepointed: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    compactions: Mapping[tuple[str, str], PendingCompaction] = attrs.field(factory=dict)
    replaced: Mapping[tuple[str, str], str] = attrs.field(factory=dict)
    more: More = More()

    @property
    def counts_only(self) -> bool:
        """Whether the settings have no window at all."""
        more = self.more
        return self.policy == "KEEP_LATEST_FILE_VERSIONS" and more.limit is None and not more.floor and not more.spans


def garbage(roots: Roots, partition_path: str, names: Iterable[str]) -> frozenset[str]:
    """The data files among *names* that no root reaches."""
    window, ladder = window_start(roots), _ladder(roots.more)
    by_group: dict[str, list[BaseFile | LogFile]] = {}
    for name in names:
        file = parse_data_file(name)
        if file is not None:
            by_group.setdefault(file.file_id, []).append(file)
    found: set[str] = set()
    for file_id, files in by_group.items():
        slices = _slices(roots, (partition_path, file_id), files)
        live = _live(roots, (partition_path, file_id), slices, window, ladder)
        found.update(name for time, each in slices.items() if time not in live for name in each)
    return frozenset(found)


def window_start(roots: Roots) -> str | None:
    """
    The earliest instant that stays readable; None if nothing may be deleted.

    It is the newest instant that, counted itself, is followed by the retained number of commits and preceded by no
    pending write.
    """
    more = roots.more
    writes = [i for i in roots.instants if i.action in _WRITES and i.action is not Action.LOG_COMPACTION]
    done = [i.requested_time for i in writes if i.is_completed]
    # Rule A-18 by its meaning: no write that began before it is still pending.
    unhindered = {time for time in done if not any(i.is_pending and i.requested_time < time for i in writes)}
    count = sum(i.is_completed and i.action in roots.table_actions for i in roots.instants)

    def counted(retained: int) -> str | None:
        # Both counts have to allow it: rule A-16 counts on one timeline, A-41 on another.
        if min(len(done), count) <= retained:
            return None
        return max((t for t in unhindered if sum(other >= t for other in done) >= retained), default=None)

    def timed(limit: str, *, is_patient: bool) -> str | None:
        # Of a table that rests for longer, the newest commit has all that readers since the limit need.
        last = max(done, default=None) if is_patient else None
        # Without a commit of the table nothing is judged at all (rule A-41 with 0 commits).
        start = min((time for time in done if time >= limit), default=last) if count else None
        if is_patient and start is not None:
            start = max((time for time in unhindered if time <= start), default=None)
        cap = counted(more.ceiling) if more.ceiling else None
        return start if cap is None or (start is not None and start >= cap) else cap

    def cut(at: str) -> str | None:
        end = min((time for time in done if time >= at), default=max(done, default=""))
        return max((time for time in unhindered if time <= end), default=None) if count else None

    starts = [cut(span) for span in more.spans]
    if more.cut_off is not None:
        starts.append(cut(more.cut_off))
    elif more.shortened is not None:
        starts.append(max((time for time in unhindered if time <= more.shortened), default=None))
    elif roots.policy == "KEEP_LATEST_BY_HOURS":
        starts.append(timed(roots.limit, is_patient=more.is_patient))
    elif roots.policy == "KEEP_LATEST_COMMITS":
        starts.append(counted(roots.retained))
    if more.limit is not None:
        starts.append(timed(more.limit, is_patient=True))
    if more.floor:
        starts.append(counted(more.floor))
    known = [start for start in starts if start is not None]
    return min(known, default=None) if len(known) == len(starts) else None


def _ladder(more: More) -> set[str]:
    """The last snapshot of each of the last periods that have one."""
    kept: set[str] = set()
    for count, of in ((more.daily, _day), (more.weekly, _week), (more.monthly, _month)):
        periods = sorted({of(time) for time in more.times})[-count:] if count else []
        kept.update(max(time for time in more.times if of(time) == period) for period in periods)
    return kept


def _day(time: str) -> str:
    return time[:8]


def _month(time: str) -> str:
    return time[:6]


def _week(time: str) -> str:
    """The Monday before; a time that is not a date stands for itself."""
    try:
        day = date(int(time[:4]), int(time[4:6]), int(time[6:8]))
    except ValueError:
        return time
    return f"{day.toordinal() - day.weekday():08d}"


def _slices(roots: Roots, group: tuple[str, str], files: Iterable[BaseFile | LogFile]) -> dict[str, frozenset[str]]:
    """Base instant to the files of that slice; committed slices only, that of a pending compaction included."""
    slices: dict[str, set[str]] = {}
    compaction = roots.compactions.get(group)
    if compaction is not None and not compaction.is_log_compaction:
        slices[compaction.time] = set()
    for base in sorted((f for f in files if isinstance(f, BaseFile)), key=lambda each: each.name):
        slices[base.instant_time] = {base.name}  # of several the last name counts
    completions = {i.requested_time: i.completion_time for i in roots.instants if i.is_completed and _writes(i)}
    for log in sorted((f for f in files if isinstance(f, LogFile)), key=lambda each: each.order):
        time = log.instant_time
        if not roots.log_naming.tells_slice:
            completed = completions.get(time)
            older = [known for known in slices if completed is None or known <= completed]
            time = max(older, default=time)
        slices.setdefault(time, set()).add(log.name)
    return {time: frozenset(names) for time, names in slices.items() if _is_committed(roots, time)}


def _writes(instant: Instant) -> bool:
    return instant.action in _WRITES


def _is_committed(roots: Roots, time: str) -> bool:
    """Completed, opened by a pending compaction, or older than everything on the timeline and not pending there."""
    shown = [i.requested_time for i in roots.instants if _writes(i) and (i.is_completed or i.action in _COMPACTIONS)]
    pending = {i.requested_time for i in roots.instants if _writes(i) and i.is_pending}
    return bool(shown) and (time in shown or (time < min(shown) and time not in pending))


def _live(
    roots: Roots,
    group: tuple[str, str],
    slices: Mapping[str, frozenset[str]],
    window: str | None,
    ladder: Collection[str],
) -> frozenset[str]:
    """Base instants of the slices that a root reaches."""
    held = roots.savepointed.get(group[0], frozenset())
    # First, and of replaced groups, too: a savepoint holds the whole slice (rule A-39).
    live = {time for time, names in slices.items() if names & held}
    newest_first = sorted(slices, reverse=True)
    by_versions = roots.policy == "KEEP_LATEST_FILE_VERSIONS"
    gone_at = roots.replaced.get(group)
    # Most tables have neither, and it looks at the name of each file.
    opened = {time: _first_logged(time, each) for time, each in slices.items()} if ladder or roots.more.read else {}
    for snapshot in ladder:  # what a reader at that moment sees
        if gone_at is None or snapshot < gone_at:
            live.update(newest_first[sum(time > snapshot for time in newest_first) :][:1])
            live.update(time for time, first in opened.items() if first <= snapshot < time)
    for moment, unsure in roots.more.since:
        ends = [] if gone_at is None else [gone_at]
        for time in newest_first:
            if not ends or min(ends) > moment or min(ends) in unsure:
                live.add(time)
            ends.append(time)
    for moment, unsure in roots.more.read:
        # with and without each write that may or may not belong to it: just before that write, and at the end
        before = [time for time in unsure if time <= moment and (time in slices or time == gone_at)]
        if gone_at is None or moment < gone_at:
            live.update(newest_first[sum(time > moment for time in newest_first) :][:1])
        if gone_at is None or moment < gone_at or gone_at in unsure:
            # what was logged behind the plan of a compaction that came later
            live.update(t for t, first in opened.items() if moment < t and (first <= moment or first in unsure))
        for time in before:
            if gone_at is None or time <= gone_at:
                live.update(newest_first[sum(other >= time for other in newest_first) :][:1])
    # A replaced group has no newest slice to keep: inside the window all of it stays, before it only what is held
    #
    if gone_at is not None:
        if not roots.counts_only and (window is None or gone_at >= window):
            live.update(slices)
        return frozenset(live)
    read = frozenset().union(*(c.files for key, c in roots.compactions.items() if key[0] == group[0]))
    needed = {time for time, names in slices.items() if names & read}
    compaction = roots.compactions.get(group)
    if compaction is not None:
        # Rule A-40; slices after the one that the plan reads are above it.
        needed.update(time for time in slices if time >= compaction.base_time)
    # the newest version stays whatever is asked for, but a pending compaction's, which is its plan's
    reached = newest_first[:1] if compaction is None or roots.more != More() else []
    reached += _down_to_a_base_file(newest_first, slices)
    versions = max(roots.retained if by_versions else 0, roots.more.versions)
    if versions:
        reached += [time for time in newest_first if time not in needed][: max(0, versions - (compaction is not None))]
    if not roots.counts_only:  # a reader inside the window sees a slice until its successor came
        reached += [
            time
            for position, time in enumerate(newest_first)
            if position == 0 or window is None or newest_first[position - 1] >= window
        ]
    return frozenset(live | needed | set(reached))


def _first_logged(time: str, names: Iterable[str]) -> str:
    """The earliest time in the names of a slice: of layout 2, a log file may be of a write from before the slice."""
    files = map(parse_data_file, names)
    return min((time, *(log.instant_time for log in files if isinstance(log, LogFile))))


def _down_to_a_base_file(newest_first: Sequence[str], slices: Mapping[str, frozenset[str]]) -> Sequence[str]:
    """Slices below a newest one without a base file, up to the first that has one: the newest rows are there too."""
    bases = (position for position, time in enumerate(newest_first) if any(map(parse_base_file, slices[time])))
    first = next(bases, len(newest_first))
    return newest_first[1 : first + 1]


@attrs.frozen
class Disagreement:
    """Files on which the two planners differ; relative paths."""

    reached: tuple[str, ...]  # planned, but something reaches them
    missed: tuple[str, ...]  # nothing reaches them, but they are not planned

    def __bool__(self) -> bool:
        return bool(self.reached or self.missed)

    def __str__(self) -> str:
        return "; ".join(
            f"{len(paths)} {what}: {', '.join(paths[:5])}{', ...' if len(paths) > 5 else ''}"
            for what, paths in (("planned but still needed", self.reached), ("not planned but garbage", self.missed))
            if paths
        )

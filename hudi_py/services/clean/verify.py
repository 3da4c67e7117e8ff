"""
The second opinion: mark every file that something can still reach; whatever is left is garbage. Pure.

This is the simplest form of the rules, written once more and sharing nothing with `policy` and `fsview` but the
grammar of file names, so that a mistake in one of them shows as a disagreement. Source: format/table-services 0, A.3,
A.5; requirements A28.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from hudi_py.model.files import BaseFile, LogFile, parse_base_file, parse_log_file
from hudi_py.model.instant import Action, Instant

_COMPACTIONS = (Action.COMPACTION, Action.LOG_COMPACTION)
_WRITES = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT, Action.CLUSTERING, *_COMPACTIONS)


@attrs.frozen
class PendingCompaction:
    """A pending compaction of one file group: its time, the slice it reads, the files it reads."""

    time: str
    base_time: str
    is_log_compaction: bool
    files: frozenset[str]


@attrs.frozen(kw_only=True)
class Roots:
    """
    From where files are reached.

    Args:
        layout_version: 1 or 2.
        instants: The active timeline.
        table_actions: Actions of ``TL.table``.
        policy: Word in plans.
        retained: Commits, hours or versions of that policy.
        limit: By hours only: the instant time that lies so many hours back.
        savepointed: Partition path to file names that savepoints hold.
        compactions: (partition path, file id) to its pending compaction.
        replaced: (partition path, file id) to the time of the last completed replacecommit that names it.
    """

    layout_version: int
    instants: tuple[Instant, ...]
    table_actions: frozenset[Action]
    policy: str
    retained: int
    limit: str = ""
    savepointed: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    compactions: Mapping[tuple[str, str], PendingCompaction] = attrs.field(factory=dict)
    replaced: Mapping[tuple[str, str], str] = attrs.field(factory=dict)


def garbage(roots: Roots, partition_path: str, names: Iterable[str]) -> frozenset[str]:
    """Data files among *names* that nothing reaches."""
    window = window_start(roots)
    by_group: dict[str, list[BaseFile | LogFile]] = {}
    for name in names:
        file = parse_base_file(name) or parse_log_file(name)
        if file is not None:
            by_group.setdefault(file.file_id, []).append(file)
    found: set[str] = set()
    for file_id, files in by_group.items():
        slices = _slices(roots, (partition_path, file_id), files)
        live = _live(roots, (partition_path, file_id), slices, window)
        found.update(name for time, each in slices.items() if time not in live for name in each)
    return frozenset(found)


def window_start(roots: Roots) -> str | None:
    """
    The earliest instant that stays readable: the newest one that as many commits follow as are retained, itself
    included, and that no pending write precedes. None: nothing may go.
    """
    writes = [i for i in roots.instants if i.action in _WRITES and i.action is not Action.LOG_COMPACTION]
    done = [i.requested_time for i in writes if i.is_completed]
    count = sum(i.is_completed and i.action in roots.table_actions for i in roots.instants)
    if roots.policy == "KEEP_LATEST_BY_HOURS":
        return min((time for time in done if time >= roots.limit), default=None) if count else None
    if roots.policy != "KEEP_LATEST_COMMITS" or min(len(done), count) <= roots.retained:
        return None
    pending = [i.requested_time for i in writes if i.is_pending]
    return max(
        (
            time
            for time in done
            if sum(other >= time for other in done) >= roots.retained and not any(p < time for p in pending)
        ),
        default=None,
    )


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
        if roots.layout_version == 2:
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
    roots: Roots, group: tuple[str, str], slices: Mapping[str, frozenset[str]], window: str | None
) -> frozenset[str]:
    """Base instants of the slices that a root reaches."""
    held = roots.savepointed.get(group[0], frozenset())
    live = {time for time, names in slices.items() if names & held}
    newest_first = sorted(slices, reverse=True)
    by_versions = roots.policy == "KEEP_LATEST_FILE_VERSIONS"
    if group in roots.replaced:
        if not by_versions and (window is None or roots.replaced[group] >= window):
            live.update(slices)
        return frozenset(live)
    read = frozenset().union(*(c.files for key, c in roots.compactions.items() if key[0] == group[0]))
    needed = {time for time, names in slices.items() if names & read}
    compaction = roots.compactions.get(group)
    if compaction is not None:
        needed.update(time for time in slices if time >= compaction.base_time)
    if by_versions:
        kept = max(0, roots.retained - (compaction is not None))
        reached = [time for time in newest_first if time not in needed][:kept]
        # the newest version stays whatever is asked for
        reached += newest_first[:1] if compaction is None else []
    else:  # a reader inside the window sees a slice until its successor came
        reached = [
            time
            for position, time in enumerate(newest_first)
            if position == 0 or window is None or newest_first[position - 1] >= window
        ]
    return frozenset(live | needed | set(reached))


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

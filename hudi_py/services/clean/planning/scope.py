"""
Decides whether a clean is due, and which partitions its plan has to examine. Pure.

Source: rules/table-services A.2 and A.4; Hudi ``CleanPlanActionExecutor``, ``CleanPlanner``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from hudi_py.config.clean import CleanConfig
from hudi_py.config.table import TableType
from hudi_py.model.holes import NO_HOLES, Holes
from hudi_py.model.instant import Instant
from hudi_py.model.words import counted
from hudi_py.timeline.timeline import Timeline

_NOTHING_LISTED: Final = "nothing is listed"


@attrs.frozen(kw_only=True)
class LastClean:
    """
    What the last completed clean recorded.

    Args:
        requested_time: Requested time of the clean.
        earliest_to_retain: Requested time of the earliest instant to retain, ``""`` for a clean by file versions.
        last_completed_commit: Requested time of the last commit that the clean saw, ``""`` if none.
        savepoints: Times of the savepoints whose files it kept.
        passing: Times of those that end by themselves: of leases, and with a time to live.
        holes: The snapshots that it kept before its window, with holes between them.
        read_from: Requested time from which on it kept everything for a consumer alone, ``""`` if it did not.
        counted_versions: Whether it also kept a number of versions although it had an earliest instant to retain.
        whole_from: Requested time of the commit from which on it left every snapshot complete, ``""`` for all.
    """

    requested_time: str
    earliest_to_retain: str
    last_completed_commit: str
    savepoints: frozenset[str]
    passing: frozenset[str] = frozenset()
    holes: Holes = NO_HOLES
    read_from: str = ""
    counted_versions: bool = False
    whole_from: str = ""


@attrs.frozen
class Trigger:
    """
    Compares the number of commits since the last clean with the setting (rules A-10, A-11).

    Args:
        commits: Completed commits that the last clean did not see.
        required: How many make a clean due.
        is_freed: Whether something has ended since the last clean for which it kept files; see `is_freed`.
    """

    commits: int
    required: int
    is_freed: bool = False

    @property
    def is_due(self) -> bool:
        return self.is_freed or self.commits >= self.required


def trigger(timeline: Timeline, last_clean: LastClean | None, config: CleanConfig) -> Trigger:
    """Count the completed commits that the last clean did not see; an explicit request is always due."""
    completed = timeline.commits.completed()
    if last_clean is not None:
        # By requested time, as Hudi counts (rule A-10).
        completed = tuple(i for i in completed if i.requested_time > last_clean.last_completed_commit)
    # Whoever names a time, a snapshot or files wants the clean now, however few commits there are.
    is_requested = config.older_than is not None or bool(config.forget) or config.approved is not None
    return Trigger(len(completed), 0 if is_requested else config.trigger_max_commits)


def is_freed(last: LastClean | None, savepoints: frozenset[str], before: Holes, ages: bool) -> bool:
    """
    Whether something has ended since the last clean for which it kept files.

    A clean is due then without a commit, too, or a table that rests would keep those files for ever. Hudi has nothing
    that ends by itself; a savepoint that somebody deletes waits for a commit, as there (rule A-10).

    Args:
        last: The last clean.
        savepoints: Those of today.
        before: What a clean would record now about times before its window, and where that begins.
        ages: Whether a span of hudi_py's own decides about the window, which goes on while no commit is made.
    """
    if last is None:
        return False
    began = last.holes.window or last.earliest_to_retain.strip()
    return (
        not last.passing <= savepoints
        or any(before.holds(time) for time in last.holes.snapshots)
        or bool(last.read_from and last.read_from < before.window)
        or (ages and began < before.window)
    )


@attrs.frozen(kw_only=True)
class Scope:
    """
    Which partitions a plan examines.

    Args:
        everything: Whether all partitions have to be listed.
        instants: Otherwise: completed commits whose partitions are examined.
        partitions: Further partitions, to which archived commits wrote.
        archived_since: Time at which the last clean stopped, if that commit is archived and the archive may show which
            partitions were written since.
        reason: The reason for this choice, for people.
        cost: The work that this takes, for people.
    """

    everything: bool
    instants: tuple[Instant, ...] = ()
    partitions: frozenset[str] = frozenset()
    archived_since: str = ""
    reason: str
    cost: str = "every partition is listed"


def scope(
    timeline: Timeline,
    table_type: TableType,
    config: CleanConfig,
    *,
    earliest: Instant | None,
    last_clean: LastClean | None,
    savepoints: frozenset[str],
) -> Scope:
    """
    Decide between all partitions and those written since the last clean (rules A-26 to A-33).

    If a savepoint was removed since the last clean, all partitions are examined, in every table version: 0.15.0
    examines only those of the savepointed commit, and so never deletes some files (K-1).
    """
    # The first reason to look everywhere decides; an incremental plan is right only if none of them applies.
    if config.has_window and earliest is None:
        return Scope(everything=False, reason=_why_no_window(timeline, config), cost=_NOTHING_LISTED)
    if config.versions or earliest is None:
        return Scope(everything=True, reason="file versions are counted in every partition")
    if not config.incremental:
        return Scope(everything=True, reason="incremental cleaning is switched off")
    if last_clean is None:
        return Scope(everything=True, reason="the active timeline has no completed clean")
    start = last_clean.earliest_to_retain.strip()
    if not start:
        return Scope(everything=True, reason=f"clean {last_clean.requested_time} recorded no earliest commit")
    if last_clean.counted_versions:
        return Scope(everything=True, reason="the last clean kept file versions too, which may lie in any partition")
    # Commits between the last window and this one are not on the timeline any more (rule A-29, K-2).
    if timeline.commits.is_before_start(start):
        return Scope(
            everything=True,
            archived_since=start if last_clean.savepoints <= savepoints else "",
            reason=f"{start}, where the last clean stopped, is archived",
        )
    if not last_clean.savepoints <= savepoints:
        gone = ", ".join(sorted(last_clean.savepoints - savepoints))
        return Scope(everything=True, reason=f"savepoint {gone} was removed since the last clean")
    # Also after the retention was made longer: the window went back, and everything before it is clean (rule A-32).
    if start >= earliest.requested_time:
        return Scope(
            everything=False,
            reason=f"the last clean got to {start}, and the window begins at {earliest.requested_time}",
            cost=_NOTHING_LISTED,
        )
    instants = tuple(
        instant
        for instant in timeline.table_commits(table_type).completed()
        if start <= instant.requested_time < earliest.requested_time
    )
    return Scope(
        everything=False,
        instants=instants,
        reason=f"partitions written from {start} to {earliest.requested_time}",
        cost=f"{counted(len(instants), 'commit')} to read, and their partitions to list",
    )


def _why_no_window(timeline: Timeline, config: CleanConfig) -> str:
    """Why there is no earliest instant to retain (rules A-17, A-18, A-20)."""
    commits = timeline.commits_and_compaction
    completed, pending = commits.completed(), commits.pending()
    if not completed:
        return "no commit is completed yet"
    if pending and pending[0].requested_time < completed[0].requested_time:
        return f"{pending[0]} is pending, and every completed commit came after it"
    if config.counted_commits is None and config.window_age is not None and config.min_commits is None:
        return "every commit is older than the retention window, so nothing is deleted before a newer one completes"
    return "no commit lies outside the retention window"


@attrs.frozen
class Unseen:
    """
    Partitions that earlier plans left out at their time limit.

    Args:
        everything: Whether any partition may be among them.
        partitions: Otherwise: the partitions.
    """

    everything: bool = False
    partitions: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return self.everything or bool(self.partitions)

    def __or__(self, other: Unseen) -> Unseen:
        everything = self.everything or other.everything
        return Unseen(everything, frozenset() if everything else self.partitions | other.partitions)


NOTHING_UNSEEN: Final = Unseen()
"""After a plan that had time for every partition."""


def with_unseen(found: Scope, unseen: Unseen, earliest: Instant | None) -> Scope:
    """The scope *found* with the partitions left out before; without a window nothing is removable or added."""
    if not unseen or found.everything or earliest is None:
        return found
    if unseen.everything:
        return Scope(everything=True, reason="the last clean had no time to look everywhere")
    return attrs.evolve(
        found,
        partitions=found.partitions | unseen.partitions,
        reason=f"{found.reason}, and {len(unseen.partitions)} that the last clean had no time for",
    )


def scope_of_archive(
    full: Scope,
    timeline: Timeline,
    table_type: TableType,
    *,
    earliest: Instant,
    archived: Mapping[str, frozenset[str]] | None,
) -> Scope:
    """
    The partitions written since the last clean, if the archive still has the commits; else *full*.

    Hudi examines all partitions then (rule A-29). The plan is the same: files become garbage between two windows only
    in partitions that were written between them, and the last clean left no garbage before.

    Args:
        full: The scope that examines all partitions.
        timeline: The active timeline.
        table_type: The table's type.
        earliest: The earliest instant to retain.
        archived: Partitions by requested time of the archived commits from ``full.archived_since`` on; None if the
            archive does not have them.
    """
    if archived is None:
        return attrs.evolve(full, reason=f"{full.reason}, and the archived timeline does not tell what it wrote")
    instants = tuple(
        i for i in timeline.table_commits(table_type).completed() if i.requested_time < earliest.requested_time
    )
    before = {time: paths for time, paths in archived.items() if time < earliest.requested_time}
    return Scope(
        everything=False,
        instants=instants,
        partitions=frozenset().union(*before.values()),
        reason=f"partitions written from {full.archived_since}, which is archived, to {earliest.requested_time}",
        cost=f"the archived timeline and {counted(len(instants), 'commit')} to read, and their partitions to list",
    )

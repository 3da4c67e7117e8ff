"""The state of a table that a clean is planned from: everything except its files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from operator import attrgetter, itemgetter
from typing import Final

import attrs

from hudi_py.config.clean import CleanConfig
from hudi_py.fsview.build import ViewContext, build_partition, newest_bases
from hudi_py.fsview.fate import Protection
from hudi_py.fsview.foreign import refuse_foreign
from hudi_py.fsview.listing import Listing
from hudi_py.fsview.planned import ListingForPlan
from hudi_py.model.holes import READ_FROM, Holes
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.instant_time import format_instant_time, parse_instant_time
from hudi_py.model.lease import Lease
from hudi_py.services.clean.memory.leftovers import Leftovers
from hudi_py.services.clean.planning.plan import COUNTED_VERSIONS, PASSING, CleanPlan
from hudi_py.services.clean.planning.quick import QuickJudge
from hudi_py.services.clean.planning.scope import LastClean, Scope, Trigger, Unseen
from hudi_py.services.clean.retention.policy import Keeps, PartitionJudgement, Snapshot, judge_partition
from hudi_py.storage.base import Entry
from hudi_py.timeline.timeline import Timeline

_COMMITS: Final = frozenset((Action.COMMIT, Action.DELTA_COMMIT))
_NAME_AND_SIZE = attrgetter("name", "size_bytes")
_NAME, _SIZE = itemgetter(Entry._fields.index("name")), itemgetter(Entry._fields.index("size_bytes"))
Judge = Callable[[str, Sequence[Entry]], PartitionJudgement]


@attrs.frozen(kw_only=True)
class Situation:
    """
    A table as a clean sees it at one moment.

    Args:
        timeline: The active timeline.
        listing: Lists partitions and files.
        context: View context, from which slices are built.
        protection: Files that no policy may delete.
        savepoints: Times of the table's savepoints.
        passing: Times of those that end by themselves.
        now: The time of planning, with a time zone.
        earliest: First instant of the window that reaches back farthest, if there is one.
        keeps: All keeps, if the settings have more than Hudi's policy.
        leases: All leases in force.
        shortened: Requested time at which the policy's window begins because of a limit on bytes; None without one.
        whole_times: Commits whose snapshots a ladder may keep.
        warnings: Doubtful settings, one sentence each.
        last_clean: What the last completed clean recorded.
        scope: Which partitions are examined.
        trigger: Whether a clean is due.
        leftovers: Files that earlier cleans could not delete.
        unseen: Partitions that earlier cleans left out at their time limit.
        table_commits: Completed instants of ``TL.table``, ascending.
        left_out: Partitions that the metadata table lists although they are another table's, each to its folder.
    """

    timeline: Timeline
    listing: Listing
    context: ViewContext
    protection: Protection
    savepoints: frozenset[str]
    passing: frozenset[str]
    now: datetime
    earliest: Instant | None
    keeps: Keeps | None = None
    leases: tuple[Lease, ...] = ()
    shortened: str | None = None
    whole_times: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    last_clean: LastClean | None
    scope: Scope
    trigger: Trigger
    leftovers: Leftovers
    unseen: Unseen
    table_commits: tuple[Instant, ...]
    left_out: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def last_completed_commit(self) -> str:
        """Requested time of the last completed commit, ``""`` if there is none (rule A-25)."""
        return self.table_commits[-1].requested_time if self.table_commits else ""

    @property
    def windows(self) -> tuple[Instant, ...]:
        """Windows that a plan may be made for, the smallest step first, the policy's own last; none with versions."""
        if self.earliest is None:
            return ()
        commits = self.timeline.commits_and_compaction.completed()
        end = self.earliest.requested_time
        return (*(i for i in commits if self._last_window < i.requested_time < end), self.earliest)

    def retained_from(self, window: Instant | None) -> Instant | None:
        """The instant to record for a plan of this window: the oldest snapshot that is kept if that is earlier."""
        oldest = self._oldest_kept
        if oldest is None or (window is not None and window.requested_time <= oldest):
            return window
        found = self.timeline.commits_and_compaction.find(oldest)
        if found is not None:
            return found
        action = (window or self.table_commits[-1]).action  # archived: only its time matters
        return Instant(oldest, action, State.COMPLETED)

    def _last_read(self, lease: Lease) -> str:
        """The newest commit that a lease shows; for one on a snapshot it is the commit itself."""
        completed = (i.requested_time for i in self.timeline.commits.completed() if i.requested_time <= lease.instant)
        return max((time for time in completed if time not in lease.pending), default=lease.instant)

    @property
    def _oldest_kept(self) -> str | None:
        """The oldest snapshot of the ladder and of leases; when it goes, the next clean looks at all changes since."""
        times = [snapshot.time for snapshot in self._snapshots[:1]]
        for lease in self._leases:
            # Not the pending write itself: the recorded instant is a completed one for Apache Hudi.
            commits = (i.requested_time for i in self.timeline.commits.completed() if i.requested_time <= lease.floor)
            times.append(max(commits, default=lease.floor))
        return min(times, default=None)

    @property
    def extra_metadata(self) -> dict[str, str]:
        """What a plan records about keeps of hudi_py: the next clean, savepoints and readers need it."""
        return self.extra_metadata_from(self.retained_from(self.earliest))

    def extra_metadata_from(self, retained: Instant | None) -> dict[str, str]:
        """The same for a plan that names *retained* as the earliest instant to retain."""
        before = self.before_window
        extra = before.as_extra_metadata("" if retained is None else retained.requested_time)
        if before.window < self._window:
            extra[READ_FROM] = before.window
        if self.passing:
            extra[PASSING] = ",".join(sorted(self.passing))
        if self.keeps is not None and self.keeps.versions and retained is not None:
            extra[COUNTED_VERSIONS] = str(self.keeps.versions)
        return extra

    @property
    def _window(self) -> str:
        # With versions there is no window: every time before the newest snapshot that is not on the ladder is a hole.
        return self.last_completed_commit if self.earliest is None else self.earliest.requested_time

    @property
    def before_window(self) -> Holes:
        """Where the window begins, with what consumers have not read; and the snapshots before it that are kept."""
        kept = {*(snapshot.time for snapshot in self._snapshots), *(self._last_read(lease) for lease in self._leases)}
        # Since a consumer's progress everything is whole; before it, what was pending then may be missing.
        starts = (e.instant if e.pending else self._last_read(e) for e in self._leases if e.is_consumer)
        window = min((self._window, *starts))
        return Holes(window, tuple(sorted(time for time in kept if not window or time < window)))

    @property
    def _snapshots(self) -> tuple[Snapshot, ...]:
        return () if self.keeps is None else self.keeps.snapshots

    @property
    def _leases(self) -> tuple[Lease, ...]:
        return () if self.keeps is None else self.keeps.leases

    @property
    def window_before(self) -> Instant | None:
        """
        The window to record while files of the next one are left: that of the last clean.

        Without one it lies before the timeline, so that the next plan, Hudi's too, examines all partitions again (rule
        A-29). None with file versions.
        """
        if self.earliest is None:
            return None
        # Recorded again, so that the next incremental plan begins at the same place.
        if self._last_window:
            found = self.timeline.commits_and_compaction.find(self._last_window)
            return found or Instant(self._last_window, self.earliest.action, State.COMPLETED)
        start = self.timeline.commits.start or self.earliest.requested_time
        try:
            moment = parse_instant_time(start, timezone.utc) - timedelta(milliseconds=1)
        except (ValueError, OverflowError):
            return Instant("0" * 17, self.earliest.action, State.COMPLETED)
        return Instant(format_instant_time(moment), self.earliest.action, State.COMPLETED)

    @property
    def savepoints_unfinished(self) -> frozenset[str]:
        """
        Savepoints to record in a plan that leaves files in partitions that it examined.

        They include savepoints removed since the last clean: because they are missing, the next plan examines all
        partitions again (rule A-33).
        """
        return self.savepoints | (self.last_clean.savepoints if self.last_clean else frozenset())

    def is_settled_by(self, plan: CleanPlan) -> bool:
        """
        Whether *plan* found nothing in the partitions that earlier cleans left out, so that they can be forgotten.

        Not with a longer retention than theirs: such a plan finds nothing either, but later plans may go back to the
        shorter one, and begin where the last clean stopped.
        """
        is_as_far = self.earliest is not None and self.earliest.requested_time >= self._last_window
        return is_as_far and plan.is_examined and not plan.file_count and not plan.is_partial

    @property
    def _last_window(self) -> str:
        return "" if self.last_clean is None else self.last_clean.earliest_to_retain.strip()

    def judge(self, partition_path: str, entries: Iterable[Entry], config: CleanConfig) -> PartitionJudgement:
        """
        Judge one partition by the files in it: a verdict on every slice.

        Raises:
            UnsupportedTable: It holds a base file in a format that the table does not have.
        """
        files = tuple(map(_NAME_AND_SIZE, entries))
        refuse_foreign(partition_path, (name for name, _ in files), self.context.extensions, "a clean")
        partition = build_partition(self.context, partition_path, files)
        judged = judge_partition(
            self.context,
            partition,
            config,
            self.protection,
            earliest=None if self.earliest is None else self.earliest.requested_time,
            commit_count=len(self.table_commits),
            keeps=self.keeps,
        )
        return attrs.evolve(judged, newest=newest_bases(partition))

    def judge_quickly(self, config: CleanConfig) -> Judge:
        """A function that judges partitions, with verdicts only if names alone do not decide."""
        quick = QuickJudge.of(
            self.context,
            self.protection,
            config,
            earliest=None if self.earliest is None else self.earliest.requested_time,
            commit_count=len(self.table_commits),
            keeps=self.keeps,
        )
        if quick is None:
            return lambda path, entries: self.judge(path, entries, config)

        def judge(path: str, entries: Sequence[Entry]) -> PartitionJudgement:
            has_sizes = bool(entries) and entries[0].size_bytes is not None  # a listing has all sizes or none
            judged = quick.judge(path, list(map(_NAME, entries)), list(map(_SIZE, entries)) if has_sizes else ())
            return self.judge(path, entries, config) if judged is None else judged

        return judge


def checked(judge: Judge, listing: ListingForPlan) -> Judge:
    """The same function, which also compares each partition with the commits after judging it."""

    def judged(path: str, entries: Sequence[Entry]) -> PartitionJudgement:
        found = judge(path, entries)
        listing.check(path, entries, found.newest)
        return found

    return judged


def is_outdated(seen: Timeline, now: Timeline) -> bool:
    """
    Whether the timeline has changed since it was *seen* in a way that can make a plan wrong.

    Commits that began or completed meanwhile do no harm (K-24); commits that were undone, and all other actions, may.
    """
    # Commits that were there and are not: undone, or archived. Both may change what is the newest slice.
    gone = {each.requested_time for each in seen if each.action in _COMMITS}.difference(
        each.requested_time for each in now
    )
    return bool(gone) or _others(seen) != _others(now)


def _others(timeline: Timeline) -> set[tuple[str, Action, State]]:
    return {
        (instant.requested_time, instant.action, instant.state)
        for instant in timeline
        if instant.action not in _COMMITS
    }

"""
Decides whether an action may still complete, by comparing it with what happened since it began. Pure.

Called under the lock, before the action is recorded anywhere (`hudi_py.txn.commit`). Two questions: is our own instant
still as we left it (`judge`), and did another action change what ours read or wrote (`first_conflict`)? The second is
asked only where several writers are allowed (`hoodie.write.concurrency.mode`). Conflicts of rollbacks, restores,
savepoints and archivals with pending actions are judged when those begin: `hudi_py.txn.pairs`.

docs/decisions/many-writers.md shows `RULES` for people. Source: rules/table-services F-4 to F-11; Hudi
``SimpleConcurrentFileWritesConflictResolutionStrategy``, ``PreferWriterConflictResolutionStrategy``,
``BucketIndexConcurrentFileWritesConflictResolutionStrategy``; levels of isolation as in Delta Lake.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias

import attrs

from hudi_py.config.concurrency import Isolation, Strategy
from hudi_py.model.instant import Action, Instant, State
from hudi_py.timeline.timeline import Timeline

Group: TypeAlias = tuple[str, str]
"""Partition path and file id."""
_BUCKET_DIGITS: Final = 8


class Verdict(enum.Enum):
    """State of an inflight action of this process; values are texts for people."""

    CLEAR = "may complete"
    COMPLETED = "was completed by another process"
    TAKEN_BACK = "was rolled back or withdrawn by another process; reload and start again"


def judge(ours: Instant, now: Timeline) -> Verdict:
    """
    Decide whether an action may complete.

    Args:
        ours: The inflight action of this process.
        now: The current timeline.
    """
    found = now.find(ours.requested_time, ours.action)
    # Requested again: another process took the action back to its plan, as rollbacks of compactions do (rule B-25).
    if found is None or found.state is State.REQUESTED:
        return Verdict.TAKEN_BACK
    return Verdict.COMPLETED if found.is_completed else Verdict.CLEAR


def archived_meanwhile(before: Timeline, now: Timeline) -> Instant | None:
    """Return a write that was pending and may have completed and been archived since; None if there is none."""
    # Held against commits alone, oldest of which archival takes first: a clean or rollback from before that write may
    # well be active still. And any action of that time, because a compaction of layout 1 completes as a commit.
    first = now.first_not_savepointed
    known = {instant.requested_time for instant in now.writes}
    for instant in before.writes.pending():
        time = instant.requested_time
        if time not in known and (first is None or time < first):
            return instant
    return None


class Kind(enum.Enum):
    """What an action does to rows; values are texts for people."""

    APPEND = "insert, bulk_insert"
    WRITE = "upsert, delete, update, merge, overwrite, drop of partitions"
    COMPACTION = "compaction"
    LOG_COMPACTION = "log compaction"
    CLUSTERING = "clustering"

    @property
    def is_rewrite(self) -> bool:
        """Whether it puts the same rows into other files."""
        return self in (Kind.COMPACTION, Kind.LOG_COMPACTION, Kind.CLUSTERING)


@attrs.frozen(kw_only=True)
class Reads:
    """
    What a write read to decide what to write, besides the file groups that it wrote.

    Args:
        partitions: Relative paths; None for all, new ones included.
        may_hold: Which of these the conditions of the write do not rule out; None for all.
        by_condition: Whether changed rows matter, too, because they may meet its condition now. For one that looked for
            keys only new rows do: other rows do not get its keys.
        found_in: Partitions where removed rows matter, too, because rows that it found there kept others from being
            written; None for all.
    """

    partitions: frozenset[str] | None = frozenset()
    may_hold: Callable[[str], bool] | None = None
    by_condition: bool = False
    found_in: frozenset[str] | None = frozenset()

    def of(self, partitions: Iterable[str]) -> list[str]:
        """Return those of *partitions* that were read, sorted."""
        read = _among(partitions, self.partitions)
        return read if self.may_hold is None else list(filter(self.may_hold, read))

    def where_found(self, partitions: Iterable[str]) -> list[str]:
        """Return those of *partitions* in which rows kept others from being written, sorted."""
        return _among(partitions, self.found_in)


@attrs.frozen(kw_only=True)
class Touched:
    """
    What an action reads and writes, or is going to.

    Args:
        instant: The action.
        kind: What it does to rows.
        groups: File groups that it writes, replaces, or plans to rewrite.
        with_base: Those of them that get a base file, or are replaced; in the others log files are appended.
        added: Partitions that it adds rows to.
        changed: Partitions in which it changes stored rows.
        removed: Partitions from which it removes stored rows.
        reads: What it read.
        reads_widely: Whether it read rows, or looked for keys, where it wrote nothing: as a statement by its condition.
    """

    instant: Instant
    kind: Kind
    groups: frozenset[Group] = frozenset()
    with_base: frozenset[Group] = frozenset()
    added: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    reads: Reads = attrs.field(factory=Reads)
    reads_widely: bool = False


class Relation(enum.Enum):
    """What two actions have in common; the first one that applies decides. Values are texts for people."""

    GROUP = "it touches a file group that this one touches"
    ADDED = "it added rows to a partition in which this one looked for rows"
    SEEN = "it added such rows, and a write that began later, and read more than it wrote, has completed, too"
    CHANGED = "it changed rows of a partition that this one read by a condition"
    REMOVED = "it removed rows from a partition in which rows that this one found kept others from being written"


_ALL_LEVELS: Final = frozenset(Isolation)
_SERIALIZABLE: Final = frozenset({Isolation.SERIALIZABLE})
_BOTH_SERIALIZABLE: Final = frozenset({Isolation.SERIALIZABLE, Isolation.WRITE_SERIALIZABLE})
_NEVER: Final = frozenset[Isolation]()
_ROWS: Final = (Kind.APPEND, Kind.WRITE)
_REWRITES: Final = (Kind.COMPACTION, Kind.LOG_COMPACTION, Kind.CLUSTERING)


@attrs.frozen(kw_only=True)
class Rule:
    """
    One entry of the table.

    Args:
        ours: Kinds of the action that is about to complete.
        theirs: Kinds of the other one, which has completed meanwhile, or is a planned rewrite.
        relation: What they have in common.
        levels: Levels of isolation at which it is a conflict, so that ours does not complete.
        reason: Why, in one sentence.
    """

    ours: tuple[Kind, ...]
    theirs: tuple[Kind, ...]
    relation: Relation
    levels: frozenset[Isolation]
    reason: str


# fmt: off
RULES: Final = tuple(
    Rule(ours=ours, theirs=theirs, relation=relation, levels=levels, reason=reason)
    for ours, theirs, relation, levels, reason in (
        (_ROWS, _ROWS, Relation.GROUP, _ALL_LEVELS,
         "only the newest file of a file group is read, and it would lack the rows of the other one"),
        (_ROWS, (Kind.CLUSTERING,), Relation.GROUP, _ALL_LEVELS,
         "the group is replaced by the clustering, which has not read these rows"),
        (_ROWS, (Kind.COMPACTION, Kind.LOG_COMPACTION), Relation.GROUP, _ALL_LEVELS,
         "the compaction was planned without this write, so its file would hide these rows"),
        ((Kind.CLUSTERING,), _ROWS, Relation.GROUP, _ALL_LEVELS,
         "the clustering has not read the rows of the write and would drop them"),
        ((Kind.CLUSTERING,), _REWRITES, Relation.GROUP, _ALL_LEVELS,
         "both rewrite the same group, and its rows would be there twice"),
        ((Kind.COMPACTION, Kind.LOG_COMPACTION), tuple(Kind), Relation.GROUP, _NEVER,
         "what was written after its plan lies on the slice that it opened, and stays"),
        ((Kind.WRITE,), (Kind.WRITE,), Relation.ADDED, _BOTH_SERIALIZABLE,
         "each may have added a row that the other one looked for, and no order explains both"),
        ((Kind.WRITE,), (Kind.APPEND,), Relation.ADDED, _SERIALIZABLE,
         "run after it, this one would have found its rows; run before it, both are right"),
        ((Kind.WRITE,), (Kind.APPEND,), Relation.SEEN, _BOTH_SERIALIZABLE,
         "that later write may have found its rows and missed those of this one, which then cannot be run before it"),
        ((Kind.WRITE,), (Kind.WRITE,), Relation.CHANGED, _BOTH_SERIALIZABLE,
         "rows may meet the condition now that did not when it was read"),
        ((Kind.WRITE,), (Kind.WRITE,), Relation.REMOVED, _BOTH_SERIALIZABLE,
         "a row that is gone now may have kept another from being written, and no order may explain both"),
    )
)
# fmt: on


@attrs.frozen(kw_only=True)
class Conflict:
    """
    Why an action does not complete.

    Args:
        other: The action that has completed meanwhile, or is planned.
        where: The file group or partition.
        rule: The rule that decides.
    """

    other: Instant
    where: str
    rule: Rule

    def __str__(self) -> str:
        return f"{self.other}: {self.rule.relation.value} ({self.where}); {self.rule.reason}"


@attrs.frozen(kw_only=True)
class Scope:
    """
    What decides which other actions are looked at.

    Args:
        before: The timeline that our action is based on, loaded after it began.
        now: The timeline, loaded under the lock.
        strategy: Of Hudi's strategies, the one that is configured.
        slices_by_completion: Whether log files belong to slices by their completion time (layout 2).
    """

    before: Timeline
    now: Timeline
    strategy: Strategy
    slices_by_completion: bool

    def candidates(self, ours: Instant, kind: Kind) -> tuple[Instant, ...]:
        """
        Return the actions that may conflict with ours, in order of requested time.

        Those that completed since `before`, whatever the clocks of their writers say, and those that were completed
        before but requested after ours: their files are newer than ours by name. Planned rewrites are added, for they
        do not look for conflicts when they complete, except with ``PreferWriter``, by which rewrites give way (F-11).
        """
        # Compared by name, not by time: clocks of two writers may disagree, the two timelines cannot.
        done = {_key(each) for each in self.before.completed()}
        found = [
            each
            for each in self.now.commits.completed()
            if _key(each) != _key(ours) and (_key(each) not in done or each.requested_time > ours.requested_time)
        ]
        gives_way = self.strategy is Strategy.PREFER_WRITER
        if kind.is_rewrite and gives_way:
            found += [each for each in self.now.commits.pending() if _key(each) != _key(ours)]
        elif not gives_way:
            # In layout 1 a clustering is a replacecommit; `hudi_py.txn.touched` leaves out those that are none.
            rewrites = (Action.CLUSTERING, Action.REPLACE_COMMIT, Action.COMPACTION, Action.LOG_COMPACTION)
            found += [instant for instant in self.now.pending(*rewrites) if _key(instant) != _key(ours)]
        return tuple(sorted(found, key=lambda each: each.requested_time))

    def is_new(self, instant: Instant) -> bool:
        """Whether an action was begun or completed since `before`."""
        found = self.before.find(instant.requested_time, instant.action)
        return found is None or found.is_completed != instant.is_completed

    def undone(self) -> Instant | None:
        """Return a write that ours is based on and that was rolled back or restored since; None if there is none."""
        # Not the start of the timeline: a savepointed commit may be active although later ones are archived (rule D-7).
        first = self.now.first_not_savepointed
        for instant in self.before.writes.completed():
            found = self.now.find(instant.requested_time, instant.action)
            if found is None and first is not None and instant.requested_time < first:
                continue  # archived, for it lies before everything that is active
            if found is None or not found.is_completed:
                return instant
        return None

    def archived_meanwhile(self) -> Instant | None:
        """See `archived_meanwhile`."""
        return archived_meanwhile(self.before, self.now)

    def first_conflict(
        self, ours: Touched, others: Iterable[Touched], isolation: Isolation, *, by_bucket: bool = False
    ) -> Conflict | None:
        """
        Return the first conflict of our action; None if it may complete.

        Args:
            ours: Our action.
            others: The `candidates`, as they were read.
            isolation: What the action may have missed.
            by_bucket: Whether file groups are the same if their bucket is (tables with a bucket index).
        """
        others = tuple(others)
        wide = [each.instant.requested_time for each in others if each.reads_widely and each.kind is Kind.WRITE]
        for other in others:
            for relation, where in self._in_common(ours, other, max(wide, default=""), by_bucket=by_bucket):
                for rule in RULES:
                    if rule.relation is relation and ours.kind in rule.ours and other.kind in rule.theirs:
                        # The first rule for a pair and a relation decides, also where it says that there is no
                        # conflict.
                        if isolation in rule.levels:
                            return Conflict(other=other.instant, where=where, rule=rule)
                        break
        return None

    def _in_common(
        self, ours: Touched, other: Touched, last_wide: str, *, by_bucket: bool
    ) -> Iterable[tuple[Relation, str]]:
        common = first_common(self._exposed(ours, other), other.groups, by_bucket=by_bucket)
        if common is not None:
            yield Relation.GROUP, f"{common[1]} in partition {common[0]!r}"
        # A rewrite puts the same rows into other files, so nothing that was read has changed.
        if other.kind.is_rewrite:
            return
        reads = ours.reads
        for relation, read in (
            (Relation.ADDED, reads.of(other.added)),
            (Relation.SEEN, reads.of(other.added) if other.instant.requested_time < last_wide else []),
            (Relation.CHANGED, reads.of(other.changed) if reads.by_condition else []),
            (Relation.REMOVED, reads.where_found(other.removed)),
        ):
            if read:
                yield relation, f"partition {read[0]!r}"

    def _exposed(self, ours: Touched, other: Touched) -> frozenset[Group]:
        """
        Return the groups of our action that the other one endangers.

        Log files that were appended after a compaction was planned belong to the slice which that opened, either
        because we saw its plan (F-8), or because their completion time is later (layout 2).
        """
        if ours.kind.is_rewrite or other.kind not in (Kind.COMPACTION, Kind.LOG_COMPACTION):
            return ours.groups
        was_seen = self.before.find(other.instant.requested_time, other.instant.action) is not None
        if self.slices_by_completion:
            return ours.with_base
        return frozenset() if was_seen and other.instant.requested_time < ours.instant.requested_time else ours.groups


def _among(partitions: Iterable[str], chosen: AbstractSet[str] | None) -> list[str]:
    return sorted(path for path in partitions if chosen is None or path in chosen)


def first_common(ours: AbstractSet[Group], theirs: AbstractSet[Group], *, by_bucket: bool) -> Group | None:
    """Return the first of our file groups that the others have, too, with *by_bucket* as a bucket; None if none is."""
    if not by_bucket:
        return min(ours & theirs, default=None)
    # Two writers give a new bucket two file ids, and the same keys would be in both.
    buckets = {(path, file_id[:_BUCKET_DIGITS]) for path, file_id in theirs}
    return min((each for each in ours if (each[0], each[1][:_BUCKET_DIGITS]) in buckets), default=None)


def _key(instant: Instant) -> tuple[str, Action]:
    return instant.requested_time, instant.comparable_action

"""
Explains why a file is kept, and when it can be deleted. Pure.

A file is deleted with its slice, so the verdict is that of the clean's planner. This module adds all other reasons that
keep the file, and what must happen before a clean deletes it. Source: rules/table-services A.3, A.5.
"""

from __future__ import annotations

import enum
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta, tzinfo
from typing import Final

import attrs

from hudi_py.config.clean import CleanConfig, format_duration
from hudi_py.fsview.build import ViewContext
from hudi_py.fsview.fate import Protection
from hudi_py.model.files import FileSlice
from hudi_py.model.instant import Instant
from hudi_py.model.instant_time import format_instant_time, parse_instant_time
from hudi_py.model.lease import Lease
from hudi_py.model.words import human_bytes
from hudi_py.services.clean.retention.policy import Keeps, PartitionJudgement, Reason, Verdict
from hudi_py.timeline.timeline import Timeline

_ONE_MS = timedelta(milliseconds=1)


class Need(enum.Enum):
    """What must happen before a clean deletes a file; values are texts for people."""

    COMMITS = "after {} more completed commits"
    REWRITE = "after {} more completed commits, the first of which rewrites this file group"
    VERSIONS = "after {} more versions of this file group"
    TIME = "from {} on"
    AGE = "{} after this file group was rewritten"
    RECENT_COMMIT = "with a commit in the {} before the clean"
    CUT_OFF = "by a clean whose cut-off lies behind {}"
    PENDING = "when {} is completed or rolled back"
    COMPACTION = "when compaction {} is completed"
    CLUSTERING = "when clustering {} is completed or rolled back"
    SAVEPOINT = "when savepoint {} is deleted"
    FULL_CLEAN = "by a clean that looks at every partition: {}"
    PENDING_CLEAN = "after clean {}, which is pending, is finished"
    TRIGGER = "after {} more commits make a clean due"
    LEASE = "when {} is released or has expired"
    LADDER = "when newer snapshots push {} off the ladder"
    NEVER = "never by a clean: {}"

    __hash__ = object.__hash__


_OF_ONE: Final = {
    Need.COMMITS: "after 1 more completed commit",
    Need.REWRITE: "after 1 more completed commit, which rewrites this file group",
    Need.VERSIONS: "after 1 more version of this file group",
    Need.TRIGGER: "after 1 more commit makes a clean due",
}


@attrs.frozen
class Awaited:
    """One condition for the deletion of a file; all conditions of the file must be met."""

    need: Need
    value: str

    def __str__(self) -> str:
        one = _OF_ONE.get(self.need) if self.value == "1" else None
        return one or self.need.value.format(self.value)


@attrs.frozen(kw_only=True)
class Surroundings:
    """
    What an explanation needs in addition to the verdicts.

    Args:
        timeline: The active timeline.
        table_commits: Number of completed instants of ``TL.table`` (A-41).
        config: Configuration of cleaning.
        earliest: Requested time of the earliest instant to retain; None if the policy has none.
        zone: Time zone of the table's instants.
        savepoints: Time of each savepoint to its files, by partition.
        savepoint_notes: Time of each savepoint to who created it, and what for.
        keeps: All keeps, if there are more than Hudi's policy.
        leases: Leases of readers.
        always: Conditions for all deletions at this time: a pending clean, or a clean that is not due.
    """

    timeline: Timeline
    table_commits: int
    config: CleanConfig
    earliest: str | None
    zone: tzinfo
    savepoints: Mapping[str, Mapping[str, frozenset[str]]] = attrs.field(factory=dict)
    savepoint_notes: Mapping[str, str] = attrs.field(factory=dict)
    keeps: Keeps | None = None
    leases: tuple[Lease, ...] = ()
    always: tuple[Awaited, ...] = ()


@attrs.frozen(kw_only=True)
class SliceExplanation:
    """
    Why a file slice is kept, and when it can be deleted.

    Args:
        removable: Whether neither the policy nor anything else keeps it.
        rule: The rule that decides.
        also: Further reasons that keep it.
        conditions: What must happen before it is deleted; empty if the next clean deletes it.
        replaced_by: Requested time of the replacecommit that superseded its group.
    """

    file_slice: FileSlice
    removable: bool
    rule: str
    also: tuple[str, ...] = ()
    conditions: tuple[Awaited, ...] = ()
    replaced_by: str | None = None


def explain_partition(
    context: ViewContext,
    judged: PartitionJudgement,
    protection: Protection,
    around: Surroundings,
    *,
    not_examined: str | None = None,
) -> tuple[SliceExplanation, ...]:
    """
    Explain every committed slice of one partition.

    Args:
        judged: The planner's verdicts, slices of a group newest first.
        not_examined: Why the next clean does not look at this partition; None when it does.
    """
    by_group: dict[str, list[Verdict]] = {}
    for verdict in judged.verdicts:
        by_group.setdefault(verdict.file_slice.file_id, []).append(verdict)
    # Group by group: whether a slice is needed depends on the ones that are newer.
    explained = []
    for file_id, verdicts in by_group.items():
        replaced_by = context.replaced.get((judged.partition_path, file_id))
        for position, verdict in enumerate(verdicts):
            conditions = _conditions(verdict, position, [v.file_slice for v in verdicts], replaced_by, context, around)
            # Held files need both: the savepoint has to be deleted, and the policy has to let go of them as well.
            held = _held(verdict.file_slice, replaced_by is not None, protection, around)
            conditions = [each for each in conditions if not _is_said_by(held, each)] + held
            if not verdict.keep and not_examined is not None:
                conditions.append(Awaited(Need.FULL_CLEAN, not_examined))
            removable = not verdict.keep and not_examined is None
            explained.append(
                SliceExplanation(
                    file_slice=verdict.file_slice,
                    removable=removable,
                    rule=rule_of(verdict, not_examined),
                    also=(
                        *(each.value for each in verdict.also),
                        *_others(verdict.file_slice, replaced_by, context, around),
                    ),
                    conditions=(*conditions, *(around.always if not conditions else ())),
                    replaced_by=replaced_by,
                )
            )
    return tuple(explained)


def rule_of(verdict: Verdict, not_examined: str | None) -> str:
    """The rule that decides, as text; *not_examined*: why the next clean does not look at the partition."""
    if not verdict.keep and not_examined is not None:
        return f"{Reason.NOT_EXAMINED.value} ({verdict.reason.value})"
    return verdict.reason.value


def _others(
    file_slice: FileSlice, replaced_by: str | None, context: ViewContext, around: Surroundings
) -> tuple[str, ...]:
    """Facts about the slice, by name."""
    key = (file_slice.partition_path, file_slice.file_id)
    facts = [held_by(time, around) for time in holders(file_slice, around.savepoints)]
    pending = context.pending_compactions.get(key)
    if pending is not None:
        word = "log compaction" if pending.is_log_compaction else "compaction"
        facts.append(f"{word} {pending.instant_time} of its file group is pending")
    if key in context.pending_clustering:
        facts.append(f"clustering {context.pending_clustering[key]} of its file group is pending")
    if replaced_by is not None:
        facts.append(f"its file group was replaced by {replaced_by}")
    if around.config.max_old_bytes is not None:
        facts.append(f"it may go sooner: older versions of {human_bytes(around.config.max_old_bytes)} are kept at most")
    blocker = window_blocker(around.timeline, around.config)
    if blocker is not None:
        facts.append(f"{blocker} is pending, and the retention window does not pass it")
    return tuple(facts)


def holders(file_slice: FileSlice, savepoints: Mapping[str, Mapping[str, frozenset[str]]]) -> tuple[str, ...]:
    """Savepoints that protect a file of the slice, and therefore all of it (rule A-39)."""
    names = frozenset(file_slice.file_names)
    return tuple(
        time
        for time, files in sorted(savepoints.items())
        if not names.isdisjoint(files.get(file_slice.partition_path, frozenset()))
    )


def held_by(savepoint: str, around: Surroundings) -> str:
    """Text about a savepoint: its time, who created it, and what for."""
    note = around.savepoint_notes.get(savepoint, "")
    return f"held by savepoint {savepoint}" + (f" ({note})" if note else "")


def window_blocker(timeline: Timeline, config: CleanConfig) -> Instant | None:
    """The first pending instant, if a window that counts commits cannot pass it (rule A-18)."""
    commits = timeline.commits_and_compaction
    pending, completed, required = commits.pending(), commits.completed(), config.commits_required
    if not pending or not required or len(completed) <= required:
        return None
    # The commit that the window would begin with, if nothing were pending (rule A-17).
    candidate = completed[-required]
    return pending[0] if candidate.requested_time > pending[0].requested_time else None


def _held(file_slice: FileSlice, is_replaced: bool, protection: Protection, around: Surroundings) -> list[Awaited]:
    """What protects a slice from any policy; a compaction does not protect a replaced group."""
    held = []
    if protection.is_savepointed(file_slice):
        held = [Awaited(Need.SAVEPOINT, time) for time in holders(file_slice, around.savepoints)]
    operation = None if is_replaced else protection.compaction(file_slice)
    if operation is not None:
        held.append(Awaited(Need.COMPACTION, operation.instant_time))
    held += [Awaited(Need.CLUSTERING, time) for time in protection.clusterings(file_slice)]
    return held


def _is_said_by(held: Iterable[Awaited], condition: Awaited) -> bool:
    """Whether the window waits for the very service that holds the slice, which need not be said twice."""
    services = (each.value for each in held if each.need in (Need.COMPACTION, Need.CLUSTERING))
    return condition.need is Need.PENDING and any(time in condition.value for time in services)


def _conditions(
    verdict: Verdict,
    position: int,
    slices: Sequence[FileSlice],
    replaced_by: str | None,
    context: ViewContext,
    around: Surroundings,
) -> list[Awaited]:
    """Conditions of the policy."""
    if not verdict.keep:
        return []
    begins = verdict.file_slice.shown_from
    successor = slices[position - 1].base_instant_time if position else None
    if replaced_by is not None:
        # A slice of a replaced group is shown until either happens, whichever is first.
        ends = replaced_by if successor is None else min(successor, replaced_by)
        window = _window(replaced_by, around) if around.config.has_window else []
        return [*window, *_ladder(begins, ends, around), *_leased(begins, ends, around)]
    found = []
    if around.config.versions:
        key = (verdict.file_slice.partition_path, verdict.file_slice.file_id)
        # A pending compaction counts as a version that is there already (rule A-48).
        missing = around.config.versions - (key in context.pending_compactions) - position
        found += [Awaited(Need.VERSIONS, str(missing))] if missing > 0 else []
    if around.config.has_window:
        found += _window(successor, around)
    return [*found, *_ladder(begins, successor, around), *_leased(begins, successor, around)]


def _leased(begins: str, ends: str | None, around: Surroundings) -> list[Awaited]:
    """Every lease that needs the slice; none while the slice is the latest."""
    leases = () if ends is None else around.leases
    return [Awaited(Need.LEASE, str(lease)) for lease in leases if lease.needs(begins, ends)]


def _ladder(begins: str, ends: str | None, around: Surroundings) -> list[Awaited]:
    """Every kept snapshot older than all windows that shows the slice; none while the slice is the latest."""
    if around.keeps is None or ends is None:
        return []
    times = (snapshot.time for snapshot in around.keeps.snapshots if begins <= snapshot.time < ends)
    return [Awaited(Need.LADDER, time) for time in dict.fromkeys(times)]


def _window(passed: str | None, around: Surroundings) -> list[Awaited]:
    """
    What has to happen before the earliest instant to retain is later than the time given.

    Args:
        passed: Base instant of the next newer slice, or the time of the replacecommit; None for the newest slice.
    """
    config = around.config
    is_active = around.table_commits > config.commits_required  # rule A-41
    # The window has passed it, so no condition of the window is left.
    if passed is not None and around.earliest is not None and around.earliest > passed and is_active:
        return []
    conditions = []
    if config.older_than is not None and (passed is None or passed >= config.older_than):
        conditions.append(Awaited(Need.CUT_OFF, passed or "this file group's next version"))
    ages = (config.window_age or config.age_beside, config.changes_retained)
    # Age alone is not enough: without a younger commit there is no earliest one to retain, and nothing is cleaned
    #
    for age in dict.fromkeys(each for each in ages if each is not None):
        conditions += _aged(passed, age, around)
    if config.commits_required:
        conditions += _commits_until(passed, config.commits_required, around)
    if any(each is not None for each in (config.age_retained, config.changes_retained, config.older_than)):
        conditions += _pending_until(passed, around)
    return list(dict.fromkeys(conditions))


def _aged(passed: str | None, age: timedelta, around: Surroundings) -> list[Awaited]:
    """Rule A-20: it is old enough, and there is a younger commit."""
    span = format_duration(age)
    if passed is None:
        return [Awaited(Need.AGE, span)]
    conditions = [Awaited(Need.RECENT_COMMIT, span)]
    from_time = _after(passed, age, around.zone)
    return conditions if from_time is None else [Awaited(Need.TIME, from_time), *conditions]


def _commits_until(passed: str | None, retained: int, around: Surroundings) -> list[Awaited]:
    """Rules A-16 to A-18, solved for the number of commits still to come."""
    commits = around.timeline.commits_and_compaction
    completed = [i.requested_time for i in commits.completed()]
    # The smaller count, because look at different timelines, and both have to allow it.
    missing = retained + 1 - min(len(completed), around.table_commits)
    if passed is None:
        return [Awaited(Need.REWRITE, str(max(retained + 1, missing)))]
    # So many that the commit after the given time is the earliest to retain.
    missing = max(missing, bisect_right(completed, passed) + retained - len(completed))
    conditions = [Awaited(Need.COMMITS, str(missing))] if missing > 0 else []
    return conditions + _pending_until(passed, around)


def _pending_until(passed: str | None, around: Surroundings) -> list[Awaited]:
    """A window that waits for pending writes does not pass the time given while an earlier write is pending."""
    commits = around.timeline.commits_and_compaction
    pending = commits.pending()
    if not pending or passed is None:
        return []
    before = [i.requested_time for i in commits.completed() if i.requested_time < pending[0].requested_time]
    # The window ends with the last completed commit before the first pending one (rule A-18).
    return [Awaited(Need.PENDING, str(pending[0]))] if not before or before[-1] <= passed else []


def _after(time: str, span: timedelta, zone: tzinfo) -> str | None:
    """The first millisecond at which a time lies outside of the window; None if there is no such moment."""
    try:
        return format_instant_time(parse_instant_time(time, zone) + span + _ONE_MS)
    except (ValueError, OverflowError):
        return None

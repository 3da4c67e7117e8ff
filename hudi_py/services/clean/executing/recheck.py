"""
Checks whether a stored clean plan is still right, immediately before its files are deleted.

A plan describes the table at one moment. Before it is carried out, the newest commits may be rolled back, so that files
which they superseded are the newest again; or a savepoint may be created, a compaction planned, or a lease taken. So
each planned file is judged once more (`hudi_py.fsview.fate`), with a timeline that has just been loaded.

That would need a listing of each partition of the plan, and make every clean slower. But if the last commit that the
plan is based on is still completed and nothing older was undone, no commit of the plan was undone: commits are undone
newest first. Then only partitions are listed in which a savepoint or a pending action names a planned file. A lease
names no files, so one that the plan does not cover costs a listing of every partition of the plan.

Source: docs/decisions/stale-clean-plans.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from hudi_py.engine.base import Engine
from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.fsview.fate import Promise, TableFacts, judge_partition_files
from hudi_py.fsview.listing import FolderListing, other_tables
from hudi_py.fsview.loader import load_facts
from hudi_py.fsview.needs import Fallback, Fate, Needed, OtherTable, Removable
from hudi_py.fsview.survivors import group_of, lost_survivors
from hudi_py.model.files import join_path
from hudi_py.model.holes import holes_of
from hudi_py.model.instant import Action, Instant
from hudi_py.model.lease import Lease
from hudi_py.model.records import CleanerPlan
from hudi_py.runtime.log import log
from hudi_py.services.clean.executing.tasks import DeleteTask
from hudi_py.services.clean.executing.undone import refuse_under_undoing
from hudi_py.services.clean.planning.plan import POLICY
from hudi_py.services.clean.planning.situation import is_outdated
from hudi_py.services.clean.planning.stored_plan import Names, planned_names
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline

_JUDGED_BY = frozenset(Action) - {Action.CLEAN, Action.INDEXING}


def promise_of(plan: CleanerPlan) -> Promise:
    """The times that a plan keeps readable: all from its window on, or the newest only. Pure."""
    holes = holes_of(plan)
    earliest = plan.earliest_instant_to_retain
    start = holes.window or ("" if earliest is None else earliest.requested_time)
    return Promise(earliest=start or None, times=holes.snapshots)


def covers(plan: CleanerPlan, lease: Lease) -> bool:
    """Whether a plan keeps what a lease needs, as far as the times in the plan show. Pure."""
    promise = promise_of(plan)
    if not lease.is_consumer and not lease.pending and lease.instant in promise.times:
        return True
    if promise.earliest:
        return lease.floor >= promise.earliest
    # A plan by file versions names no window; it keeps what was the newest after the last commit that it knows, and
    # nothing of what that one superseded.
    last = plan.last_completed_commit_timestamp
    return bool(last) and lease.floor >= last and last not in lease.pending


def stands_as_planned(timeline: Timeline, contents: Contents, plan: CleanerPlan) -> bool | None:
    """
    Whether all commits that the plan is based on are still completed.

    Returns:
        False if one was undone, because the last one is not on the timeline. None if the timeline does not show it, so
        that the files have to be judged.
    """
    last = plan.last_completed_commit_timestamp
    if not last:  # a partial plan of ours names none, so that the next one is due (rule A-10)
        return None
    if timeline.committed.find(last) is None:
        return None if timeline.committed.is_before_start(last) else False
    if any(instant.requested_time > last for instant in timeline.of([Action.RESTORE])):
        return None  # a restore undoes many commits, in an order of its own
    rollbacks = [each for each in timeline.of([Action.ROLLBACK]) if each.requested_time > last]
    try:
        undone = [
            time
            for rollback in rollbacks
            for time in (
                contents.rollback(rollback).commits_rollback if rollback.is_completed else _targets(contents, rollback)
            )
        ]
    except (CorruptMetadata, NotFound):  # then the files decide, which costs listings and nothing else
        return None
    return True if all(time > last for time in undone) else None


def _targets(contents: Contents, rollback: Instant) -> tuple[str, ...]:
    target = contents.rollback_plan(rollback).instant_to_rollback
    return () if target is None else (target.requested_time,)


@attrs.define(kw_only=True)
class Recheck:
    """
    One stored plan, which is compared with the table whenever the table has changed.

    Args:
        contents: Reads the table's instants.
        instant: The clean.
        plan: Its plan, without files.
        names: The planned files.
        spared: Existing files that must not be deleted: partition path to name to fate.
        is_undone: Whether a commit that the plan is based on was undone since.
        only: Partition paths that the table still has; None for all.
        is_held: Whether the newest files of its groups were compared with the commits when the plan was made just now.
        timeline: The timeline of the last comparison.
        engine: Lists the partitions if they are very many.
        leases: The leases at the last comparison that the plan does not cover.
        others: Planned partitions that are another table's, each to its folder.
        policy: Mark of the table's retention policy, ``""`` without one; None if it does not matter.
    """

    contents: Contents
    instant: Instant
    plan: CleanerPlan
    names: Names = attrs.field(repr=False)
    spared: dict[str, dict[str, Fate]] = attrs.field(factory=dict)
    is_undone: bool = False
    only: frozenset[str] | None = None
    is_held: bool = False
    timeline: Timeline | None = None
    engine: Engine | None = attrs.field(default=None, repr=False)
    leases: tuple[Lease, ...] = ()
    others: Mapping[str, str] = attrs.field(factory=dict)
    policy: str | None = None

    def run(self) -> Timeline:
        """
        Judge the planned files as the table is now, unless nothing that decides has changed since the last comparison.

        Returns:
            The timeline, just loaded.

        Raises:
            RefusedError: A completed commit is being undone; that has to be finished first.
            CorruptMetadata: What decides does not decode; nothing is judged.
        """
        leases = tuple(each for each in self.contents.store.leases.in_force() if not covers(self.plan, each))
        now = self.contents.store.load()
        decides = now.of(_JUDGED_BY)
        is_new = self.timeline is None or is_outdated(self.timeline, decides)
        if is_new or not {lease.id for lease in leases} <= {each.id for each in self.leases}:
            refuse_under_undoing(self.contents, now)
            self._judge(now, leases)
        if is_new:
            self._hold(now)
        # only after all: an error must not leave the plan as if it had been judged
        self.timeline, self.leases = decides, leases
        return now

    def _judge(self, timeline: Timeline, leases: tuple[Lease, ...]) -> None:
        stands = stands_as_planned(timeline, self.contents, self.plan)
        # Never taken back: the plan stays wrong even if a commit of the same time comes again.
        self.is_undone = self.is_undone or stands is False
        everything = stands is not True or bool(leases)
        # If no commit of the plan was undone, only savepoints, leases and pending writes can need a planned file again.
        if not everything and not timeline.writes.pending() and not timeline.completed(Action.SAVEPOINT):
            return
        facts = load_facts(timeline, self.contents, promise=promise_of(self.plan), leases=leases)
        pending = tuple(facts.context.pending_times)
        paths = [
            path
            for path, names in self.names.items()
            if everything or facts.holds_any(path, names) or (pending and _any_carries(names, pending))
        ]
        listed = FolderListing(self.contents.store.storage, self.engine).each(paths)
        for path, entries in zip(paths, listed, strict=True):
            there = [entry.name for entry in entries]
            spared = _spared(facts, path, there, self.names[path])
            if spared:
                self.spared[path] = {**self.spared.get(path, {}), **spared}
        if paths:
            log.info(
                "clean.plan.judged",
                instant=self.instant.requested_time,
                partitions_listed=len(paths),
                files_needed=self.spared_count,
            )

    def _hold(self, timeline: Timeline) -> None:
        """Spare planned files of groups whose newest file is not as its commit wrote it."""
        # The planner has just made this comparison, and the table has not changed since.
        if self.is_held and self.timeline is None:
            return
        if self.timeline is None:
            self._spare_others()
        lost = lost_survivors(self.contents, timeline, self.left(), only=self.only)
        for path in {path for path, _ in lost}:
            fallbacks = {
                name: Needed((Fallback(lost[path, group_of(name)]),))
                for name in self.names[path]
                if (path, group_of(name)) in lost
            }
            self.spared[path] = {**fallbacks, **self.spared.get(path, {})}

    def _spare_others(self) -> None:
        """Spare planned files of tables below this one: Apache Hudi plans them, because it takes them for its own."""
        planned = self.names.keys() | frozenset(self.plan.partitions_to_delete)
        self.others = other_tables(self.contents.store.storage, planned)
        for path, folder in self.others.items():
            if path in self.names:
                self.spared[path] = dict.fromkeys(self.names[path], Needed((OtherTable(folder),)))
        # Their folders must stay, too, however empty.
        stay = tuple(each for each in self.plan.partitions_to_delete if each not in self.others)
        self.plan = attrs.evolve(self.plan, partitions_to_delete=stay)

    @property
    def spared_count(self) -> int:
        """Number of planned files that are kept."""
        return sum(map(len, self.spared.values()))

    @property
    def is_right(self) -> bool:
        """Whether the plan may be carried out as it stands."""
        return not self.spared and not self.is_undone and not self.is_of_other_policy

    @property
    def is_of_other_policy(self) -> bool:
        """Whether it was made under another retention policy than that of the table now."""
        return self.policy is not None and self.plan.extra_metadata.get(POLICY, "") != self.policy

    @property
    def why(self) -> str:
        """The first needed file, and what needs it; or the commit that was undone; ``""`` if the plan is valid."""
        for path, names in sorted(self.spared.items()):
            name = min(names)
            return f"{join_path(path, name)} must stay: {names[name]}"
        if self.is_undone:
            return f"{self.plan.last_completed_commit_timestamp}, the last commit that it is based on, was undone"
        if self.is_of_other_policy:
            return "the retention policy of the table has changed since it was made"
        return ""

    def left(self) -> Names:
        """The planned files without those that are kept."""
        if not self.spared:
            return self.names
        found = {}
        for path, names in self.names.items():
            stay = self.spared.get(path, {})
            kept = tuple(name for name in names if name not in stay) if stay else names
            if kept:
                found[path] = kept
        return found

    def without_spared(self, task: DeleteTask) -> DeleteTask:
        """The task without files that are kept."""
        if not self.spared:
            return task
        files = (
            (path, [name for name in names if name not in self.spared.get(path, {})]) for path, names in task.files
        )
        return task._replace(files=tuple((path, names) for path, names in files if names))


def recheck_of(
    contents: Contents,
    instant: Instant,
    *,
    only: frozenset[str] | None = None,
    is_held: bool = False,
    engine: Engine | None = None,
    policy: str | None = None,
) -> Recheck:
    """
    A pending clean, before the first comparison.

    Args:
        contents, instant, only, is_held, engine, policy: As `Recheck`.

    Raises:
        CorruptMetadata, RefusedError: Its plan is damaged, or points outside the table.
    """
    store = contents.store
    plan = contents.clean_plan(instant)
    names = planned_names(plan, store.storage.root, store.path(instant))
    plan = attrs.evolve(plan, files_to_delete={})  # the names are all that is needed of a million files
    return Recheck(
        contents=contents,
        instant=instant,
        plan=plan,
        names=names,
        only=only,
        is_held=is_held,
        engine=engine,
        policy=policy,
    )


def _spared(facts: TableFacts, path: str, there: Sequence[str], planned: Sequence[str]) -> dict[str, Fate]:
    """Planned files that exist and are not known to be garbage."""
    fates = judge_partition_files(facts, path, there)
    judged = ((name, fates.of(name)) for name in frozenset(planned).intersection(there))
    return {name: fate for name, fate in judged if not isinstance(fate, Removable)}


def _any_carries(names: Sequence[str], times: tuple[str, ...]) -> bool:
    return any(time in name for name in names for time in times)

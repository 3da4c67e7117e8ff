"""
Decides who needs a file of a table, and if nobody does, by which rule it can be deleted. Pure.

The planner and the executor of cleans, leases, undo, orphans, explain, simulation and recovery ask here, so that they
all agree. The judgement uses the current table, never a plan: what was right when it was planned may have been undone
since. Rollbacks, restores, savepoints and the check ask the other way round, what has to exist: that follows from the
commits (`hudi_py.fsview.expected`), and what is pending beside them is decided in `hudi_py.txn.pairs`.

=============  ====================================================================================================
needed by      rule
=============  ====================================================================================================
`Latest`       its slice is the newest of a live file group, or the one below it that holds the base file
`Snapshot`     its slice is what the table as of a promised time shows (`Promise`)
`Savepoint`    a savepoint names it, or another file of its slice (rule A-39); or a restore to the savepoint ends in it
`Lease`        a reader holds a lease at a time that shows its slice (`hudi_py.model.lease`)
`Pending`      a pending compaction, log compaction or clustering reads it (rules A-40, K-15); or a pending rollback or
               restore takes back what superseded it
`Fallback`     the newest file of its group is not as its commit wrote it (`hudi_py.fsview.survivors`)
=============  ====================================================================================================

Stricter than Apache Hudi: its cleaner keeps nothing for a pending clustering, nothing for a pending rollback or
restore, and no base file below a newest slice without one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Final, TypeAlias

import attrs

from hudi_py.fsview.build import GroupKey, PartitionView, PendingOperation, ViewContext, build_partition
from hudi_py.fsview.needs import (
    Failed,
    Fate,
    Latest,
    Lease,
    Need,
    Needed,
    Pending,
    Removable,
    Rule,
    Savepoint,
    Snapshot,
    Unknown,
)
from hudi_py.model.files import FileGroup, FileSlice, parse_base_file, parse_data_file
from hudi_py.model.instant import Action
from hudi_py.model.lease import Lease as HeldLease
from hudi_py.model.lease import iso

FileKey: TypeAlias = tuple[str, str]
"""(partition path, file name)"""

_UNKNOWN: Final = Unknown()
_LATEST: Final = Latest()


@attrs.frozen(kw_only=True)
class Protection:
    """
    Files that no policy may delete.

    Args:
        savepointed_files: Partition path to names of files of savepoints (rule A-39).
        pending: Pending compactions by file group (rule A-40).
        pending_files: Files that a pending compaction plan names, to its operation (K-15: kept even if the plan does
            not fit their slice or group).
        clustered_files: Files that a pending clustering reads, to its requested time.
    """

    savepointed_files: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    pending: Mapping[GroupKey, PendingOperation] = attrs.field(factory=dict)
    pending_files: Mapping[FileKey, PendingOperation] = attrs.field(factory=dict)
    clustered_files: Mapping[FileKey, str] = attrs.field(factory=dict)

    def concerns(self, partition_path: str) -> bool:
        """Whether a file of the partition may be protected; for most partitions this saves asking for each slice."""
        # Pending operations are few, and asking for all partitions then is cheaper than an index of them by partition.
        return bool(self.pending) or bool(self.clustered_files) or partition_path in self.savepointed_files

    def is_savepointed(self, file_slice: FileSlice) -> bool:
        """Rule A-39: one savepointed file protects its whole slice."""
        names = self.savepointed_files.get(file_slice.partition_path)
        return names is not None and not names.isdisjoint(file_slice.file_names)

    def is_pending(self, file_slice: FileSlice) -> bool:
        """Whether a pending compaction needs the slice."""
        return self.compaction(file_slice) is not None

    def compaction(self, file_slice: FileSlice) -> PendingOperation | None:
        """The pending compaction that needs the slice, by its time (rule A-40), or by the name of a file (K-15)."""
        operation = self.pending.get((file_slice.partition_path, file_slice.file_id))
        # Slices from the base instant of the plan on (rule A-40): the compaction reads that one, and later logs lie
        # above it.
        if operation is not None and file_slice.base_instant_time >= operation.base_instant_time:
            return operation
        if not self.pending_files:
            return None
        named = (self.pending_files.get((file_slice.partition_path, name)) for name in file_slice.file_names)
        return next(filter(None, named), None)

    def clusterings(self, file_slice: FileSlice) -> tuple[str, ...]:
        """Requested times of the pending clusterings that read a file of the slice, ascending."""
        if not self.clustered_files:
            return ()
        times = (self.clustered_files.get((file_slice.partition_path, name)) for name in file_slice.file_names)
        return tuple(sorted({time for time in times if time is not None}))


@attrs.frozen(kw_only=True)
class Promise:
    """
    Times at which the table stays readable.

    Args:
        earliest: Instant time since which every snapshot is readable; None if only the newest is.
        times: Single earlier times, ascending.
    """

    earliest: str | None = None
    times: tuple[str, ...] = ()

    def within(self, begins: str, ends: str | None) -> str | None:
        """A promised time that shows a slice, which is shown from one time on and superseded at the other, or never."""
        if self.earliest is not None and (ends is None or ends > self.earliest):
            return max(begins, self.earliest)
        return next((time for time in self.times if begins <= time and (ends is None or time < ends)), None)


NO_PROMISE: Final = Promise()


@attrs.frozen(kw_only=True)
class TableFacts:
    """
    The state of a table, without its files; `hudi_py.fsview.loader.load_facts` reads it.

    Args:
        context: The view for planning (``for_planning=True``).
        protection: Files that savepoints and pending services need.
        savepoints: Requested time of each savepoint to its files, by partition.
        undoing: Requested times of writes that still count as completed, but are being undone, to the pending rollback
            or restore.
        promise: Times that have to stay readable.
        leases: Leases of readers.
    """

    context: ViewContext
    protection: Protection = Protection()
    savepoints: Mapping[str, Mapping[str, frozenset[str]]] = attrs.field(factory=dict)
    undoing: Mapping[str, Pending] = attrs.field(factory=dict)
    promise: Promise = NO_PROMISE
    leases: tuple[HeldLease, ...] = ()

    def with_promise(self, promise: Promise) -> TableFacts:
        """The same table, with other times that stay readable."""
        return attrs.evolve(self, promise=promise)

    def holds_any(self, partition_path: str, names: Collection[str]) -> bool:
        """Whether a savepoint or a pending service names one of these files of a partition."""
        held = self.protection.savepointed_files.get(partition_path)
        if held is not None and not held.isdisjoint(names):
            return True
        reads = self._reads.get(partition_path)
        return reads is not None and not reads.isdisjoint(names)

    @cached_property
    def _reads(self) -> Mapping[str, set[str]]:
        reads: dict[str, set[str]] = {}
        for partition, name in (*self.protection.pending_files, *self.protection.clustered_files):
            reads.setdefault(partition, set()).add(name)
        return reads


@attrs.frozen(kw_only=True)
class PartitionFates:
    """
    Fates of all files of one partition; see `judge_partition_files`.

    Args:
        partition_path: Relative path.
        facts: Facts about the table.
        slices: Fate of each slice by file id and base instant.
        logs: Name of each log file to its slice.
    """

    partition_path: str
    facts: TableFacts = attrs.field(repr=False)
    slices: Mapping[tuple[str, str], Fate]
    logs: Mapping[str, tuple[str, str]]

    def of(self, name: str) -> Fate:
        """The fate of one file; a base file of a retried task has the fate of its slice."""
        base = parse_base_file(name)
        key = self.logs.get(name) if base is None else (base.file_id, base.instant_time)
        fate = _UNKNOWN if key is None else self.slices.get(key, _UNKNOWN)
        # A need of the slice is enough; what names the file itself is asked only where nothing else keeps it.
        if isinstance(fate, Needed):
            return fate
        by = tuple(_named(self.facts, self.partition_path, name, is_removable=isinstance(fate, Removable)))
        return Needed(by) if by else fate


def judge_partition_files(
    facts: TableFacts, partition_path: str, names: Iterable[str], *, about: Iterable[str] | None = None
) -> PartitionFates:
    """
    Judge every file of one partition.

    Args:
        facts: Facts about the table.
        partition_path: Relative path.
        names: Names of all files in the partition's folder.
        about: The files that will be asked about, if they are few; None for all.
    """
    # A file's fate depends on its own group alone. But without the archive each file of the folder may be the one that
    # makes the view refuse the table.
    if about is not None and facts.context.unknown_commits is None:
        names = _of_their_groups(names, about)
    files = [(name, None) for name in names]
    view = build_partition(facts.context, partition_path, files)
    needs = _needs(facts, view)
    # Half undone, either state may be the one that stays: a rollback can still be withdrawn. So both are kept.
    if facts.undoing:
        for key in _shown_without(facts, partition_path, files):
            by = needs.setdefault(key, ())
            if _LATEST not in by:
                needs[key] = (*by, max(facts.undoing.values(), key=lambda pending: pending.time))
    slices: dict[tuple[str, str], Fate] = {}
    logs: dict[str, tuple[str, str]] = {}
    # Live groups too: whatever of them is not in `needs` has been superseded by a newer slice.
    for groups, rule in ((view.groups, Rule.SUPERSEDED), (view.replaced_groups, Rule.REPLACED)):
        removable = Removable(rule)
        for group in groups:
            for file_slice in group.slices:
                key = (file_slice.file_id, file_slice.base_instant_time)
                slices[key] = Needed(needs[key]) if key in needs else removable
                logs.update((log.name, key) for log in file_slice.log_files)
    for each in view.uncommitted:
        key = (each.file_id, each.base_instant_time)
        slices[key] = Failed(each.base_instant_time)
        logs.update((log.name, key) for log in each.log_files)
    return PartitionFates(partition_path=partition_path, facts=facts, slices=slices, logs=logs)


def _of_their_groups(names: Iterable[str], about: Iterable[str]) -> Iterable[str]:
    """The names of all files of the file groups of these ones, perhaps of a few more."""
    groups = {parsed.file_id for parsed in map(parse_data_file, about) if parsed is not None}
    starts = tuple(f"{dot}{file_id}_" for file_id in groups for dot in ("", "."))
    return [name for name in names if name.startswith(starts)]


def _needs(facts: TableFacts, view: PartitionView) -> dict[tuple[str, str], tuple[Need, ...]]:
    """Needed slices with every reason, in the current table."""
    needs: dict[tuple[str, str], tuple[Need, ...]] = {}
    is_held = facts.protection.concerns(view.partition_path)
    for group in view.groups:
        latest = {each.base_instant_time for each in latest_of(group)}
        _add_group(facts, needs, group, latest, None, is_held=is_held)
    for group in view.replaced_groups:
        replaced_at = facts.context.replaced[view.partition_path, group.file_id]
        # No slice of a replaced group is the latest, however new it is; it may still be shown by earlier times.
        _add_group(facts, needs, group, frozenset(), replaced_at, is_held=is_held)
    return needs


def _add_group(
    facts: TableFacts,
    needs: dict[tuple[str, str], tuple[Need, ...]],
    group: FileGroup,
    latest: Collection[str],
    ends: str | None,
    *,
    is_held: bool,
) -> None:
    for each in group.slices:
        begins, shown = each.base_instant_time, each.shown_from
        by: tuple[Need, ...] = (_LATEST,) if begins in latest else ()
        promised = None if by else facts.promise.within(shown, ends)
        if promised is not None:
            by += (Snapshot(promised),)
        by += tuple(Lease(held.id, held.holder, iso(held.expires)) for held in facts.leases if held.needs(shown, ends))
        if is_held:
            by += tuple(_holders(facts, each, is_replaced=not latest))
        if by:
            needs[each.file_id, begins] = by
        # Slices come newest first: a slice is shown until the next newer one begins, or until the group was replaced.
        ends = begins if ends is None else min(ends, begins)


def latest_of(group: FileGroup) -> tuple[FileSlice, ...]:
    """The newest slice of a live group; also the one below it, if the newest has no base file."""
    found = []
    for file_slice in group.slices:
        found.append(file_slice)
        # A slice of log files alone has only changes: rows that none of them touched are in the base file below.
        if file_slice.base_file is not None:
            break
    return tuple(found)


def _holders(facts: TableFacts, file_slice: FileSlice, *, is_replaced: bool) -> Iterable[Need]:
    """Savepoints and pending services that need a slice; a compaction does not need a replaced group (rule A-47)."""
    if facts.protection.is_savepointed(file_slice):
        names = file_slice.file_names
        for time, held in facts.savepoints.items():
            if not held.get(file_slice.partition_path, frozenset()).isdisjoint(names):
                yield Savepoint(time)
    operation = None if is_replaced else facts.protection.compaction(file_slice)
    if operation is not None:
        yield _compacts(operation)
    yield from (Pending(Action.CLUSTERING, time) for time in facts.protection.clusterings(file_slice))


def _named(facts: TableFacts, partition_path: str, name: str, *, is_removable: bool) -> Iterable[Need]:
    """Savepoints and pending services that name the file itself; for removable files `_holders` asked compactions."""
    for time, held in facts.savepoints.items():
        if name in held.get(partition_path, ()):
            yield Savepoint(time)
    operation = None if is_removable else facts.protection.pending_files.get((partition_path, name))
    if operation is not None:
        yield _compacts(operation)
    clustering = facts.protection.clustered_files.get((partition_path, name))
    if clustering is not None:
        yield Pending(Action.CLUSTERING, clustering)


def _compacts(operation: PendingOperation) -> Pending:
    action = Action.LOG_COMPACTION if operation.is_log_compaction else Action.COMPACTION
    return Pending(action, operation.instant_time)


def _shown_without(
    facts: TableFacts, partition_path: str, files: Iterable[tuple[str, None]]
) -> Iterable[tuple[str, str]]:
    """Slices that will be the latest ones when all pending rollbacks and restores are completed."""
    view = build_partition(without_writes(facts.context, frozenset(facts.undoing)), partition_path, files)
    for group in view.groups:
        for each in latest_of(group):
            yield each.file_id, each.base_instant_time


def without_writes(context: ViewContext, times: Collection[str]) -> ViewContext:
    """The view of a table after the writes of these requested times are undone."""
    gone = frozenset(times)
    visible = context.visible_times - gone
    return attrs.evolve(
        context,
        visible_times=visible,
        last_time=max(visible, default=None),
        completed_times=context.completed_times - gone,
        pending_times=context.pending_times | gone,
        replaced={key: time for key, time in context.replaced.items() if time not in gone},
        pending_compactions={
            k: each for k, each in context.pending_compactions.items() if each.instant_time not in gone
        },
        pending_clustering={key: time for key, time in context.pending_clustering.items() if time not in gone},
    )

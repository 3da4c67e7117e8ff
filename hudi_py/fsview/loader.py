"""Reads the facts of the timeline that a file-system view needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property

import attrs

from hudi_py.config.table import TableType
from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.fsview.build import GroupKey, PendingOperation, UnknownCommits, ViewContext
from hudi_py.fsview.fate import NO_PROMISE, FileKey, Promise, Protection, TableFacts
from hudi_py.fsview.held import HeldFiles
from hudi_py.fsview.needed import NeededFiles
from hudi_py.fsview.needs import Pending
from hudi_py.model.files import newest_by_group, parse_data_file
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.lease import Lease
from hudi_py.model.records import ClusteringPlan, CommitMetadata, CompactionPlan
from hudi_py.runtime.log import log
from hudi_py.timeline.archive import has_archive, load_archived, load_archived_commits
from hudi_py.timeline.completions import content_of, contents_of, undone_by
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.store import InstantGone
from hudi_py.timeline.timeline import Timeline


@attrs.frozen
class WrittenBy:
    """Names of the files that a completed write of the active timeline names, by its requested time."""

    timeline: Timeline
    contents: Contents
    _known: dict[str, frozenset[str]] = attrs.field(factory=dict, init=False, eq=False, repr=False)

    def __call__(self, requested_time: str) -> frozenset[str]:
        """Empty if there is no such write, or it does not decode."""
        # A commit with one retried task mostly has many, and each asks again: its names are collected once.
        if requested_time not in self._known:
            self._known[requested_time] = self._read(requested_time)
        return self._known[requested_time]

    def _read(self, requested_time: str) -> frozenset[str]:
        for instant in self.timeline.writes.completed():
            if instant.requested_time == requested_time:
                try:
                    return _names_in(self.contents.commit(instant))
                except (CorruptMetadata, NotFound):  # the check reports it
                    return frozenset()
        return frozenset()


@attrs.frozen(slots=False)
class HasLogged:
    """Whether the write of a requested time is a completed delta commit, active or archived."""

    timeline: Timeline
    contents: Contents

    def __call__(self, requested_time: str) -> bool:
        """Raises `CorruptMetadata` if the archive has to be asked, and is damaged."""
        found = self.timeline.find(requested_time, Action.DELTA_COMMIT)
        if found is None and self.timeline.is_before_commits(requested_time):
            return requested_time in self._archived
        return found is not None and found.state is State.COMPLETED

    @cached_property
    def _archived(self) -> frozenset[str]:
        store = self.contents.store
        found = load_archived(store.storage, store.config).completed(Action.DELTA_COMMIT)
        return frozenset(each.requested_time for each in found)


def _names_in(commit: CommitMetadata) -> frozenset[str]:
    stats = (stat for of_partition in commit.partition_to_write_stats.values() for stat in of_partition)
    return frozenset((stat.path or "").rpartition("/")[2] for stat in stats)


def load_context(
    timeline: Timeline, contents: Contents, *, for_planning: bool = False, with_clustering: bool = True
) -> ViewContext:
    """
    Read the facts that decide about slices, for all partitions at once.

    These are the completed replacecommits and the pending plans of the active timeline; for merge-on-read tables of
    layout 2 also the completion times in the archive; and if the timeline begins with a savepointed commit, the commits
    archived after it.

    Args:
        for_planning: Show the slices that a pending compaction has opened (``TL.view``), as planners need; otherwise
            only completed commits are visible, as in Hudi's default view.
        with_clustering: Read the plans of pending clusterings. They change no row and protect no file (rule A-40), so
            neither a snapshot nor a clean depends on them.

    Raises:
        CorruptMetadata: An instant does not decode; without it no slice can be judged.
    """
    # A planner has to see the slice of a pending compaction: it is the newest, and takes later log files (rule Z-3).
    view = timeline.view if for_planning else timeline.committed
    gap = _gap_behind_savepoints(timeline)
    behind = frozenset[str]() if gap is None else _archived_between(contents, *gap)
    return ViewContext(
        log_naming=contents.store.config.format.log_naming,
        visible_times=frozenset(i.requested_time for i in view) | behind,
        first_time=view.start if view.instants else None,
        last_time=view.instants[-1].requested_time if view.instants else None,
        completed_times=frozenset(i.requested_time for i in timeline.writes.completed()) | behind,
        pending_times=frozenset(i.requested_time for i in timeline.writes.pending()),
        completion_times=_completion_times(timeline, contents),
        replaced=_replaced(timeline, contents),
        clustered=written_by_clusterings(timeline, contents),
        pending_compactions=_pending_compactions(timeline, contents),
        pending_clustering=_pending_clustering(timeline, contents) if with_clustering else {},
        written_by=WrittenBy(timeline, contents),
        has_logged=HasLogged(timeline, contents),
        extensions=contents.store.config.base_file_extensions,
        unknown_commits=None if gap is None or behind else _unknown_commits(timeline, contents, *gap),
    )


def load_facts(
    timeline: Timeline, contents: Contents, *, promise: Promise = NO_PROMISE, leases: tuple[Lease, ...] | None = None
) -> TableFacts:
    """
    Collect what decides the fate of every file of a table at this moment; no folder is listed.

    Args:
        timeline: The active timeline, just loaded.
        contents: Reads its instants.
        promise: Which times stay readable.
        leases: The leases that count; None for all that are in force, which are read.

    Raises:
        CorruptMetadata: A savepoint, a replacecommit, a pending plan or a lease does not decode: nothing can be judged.
    """
    context = load_context(timeline, contents, for_planning=True, with_clustering=False)
    savepoints = load_savepoints(timeline, contents)
    return TableFacts(
        context=context,
        protection=protection_of(context, savepoints, load_clustered_files(timeline, contents)),
        savepoints=savepoints,
        undoing=load_undoing(timeline, contents),
        promise=promise,
        leases=contents.store.leases.in_force() if leases is None else leases,
    )


def load_savepoints(timeline: Timeline, contents: Contents) -> dict[str, HeldFiles]:
    """
    Requested time of each completed savepoint to the files that it protects: partition path to names.

    What was requested before the savepoint's commit, and completed after it (a long write of another writer, a
    clustering, a compaction), belongs to the state that a restore by requested times ends in, and to none by completion
    (B-29). The savepoint names the files of one of the two at most; those of both are included.

    Raises:
        ConflictError: A commit was archived or rolled back meanwhile.
        CorruptMetadata: A savepoint does not decode, or a commit from which it is seen what belongs to that state.
    """
    found = {}
    for instant in timeline.completed(Action.SAVEPOINT):
        held = HeldFiles(contents.savepoint_files(instant))
        later = _completed_later(timeline, contents, instant, held)
        found[instant.requested_time] = HeldFiles(held, later) if later else held
    return found


def _completed_later(
    timeline: Timeline, contents: Contents, savepoint: Instant, held: Mapping[str, frozenset[str]]
) -> Mapping[str, frozenset[str]]:
    """Files that a restore to a savepoint needs because of writes that may have completed after its commit."""
    time = savepoint.requested_time
    completed = timeline.writes.completed()
    # Archived, its completion is unknown here; that of the savepoint is later.
    commit = next((each for each in completed if each.requested_time == time), savepoint)
    times = {each.requested_time for each in completed if _may_be_later(each, commit)}
    if not times:
        return {}
    found: dict[str, frozenset[str]] = {}
    for path, names in NeededFiles(contents, timeline, time).required().items():
        there = held.get(path, frozenset())
        if not names <= there:
            found[path] = frozenset(_not_superseded(names - there, there, times))
    if commit.completion_time is not None:
        # Version 9 restores by completion: without those writes, so with what they replaced.
        last = commit.completion_time
        before = frozenset(i.requested_time for i in completed if i.completion_time and i.completion_time <= last)
        for path, names in NeededFiles(contents, timeline, counted=before).required().items():
            found[path] = found.get(path, frozenset()) | names
    later = {path: names - held.get(path, frozenset()) for path, names in found.items()}
    return {path: names for path, names in later.items() if names}


def _not_superseded(names: Iterable[str], held: Iterable[str], times: Collection[str]) -> Iterator[str]:
    """The files that were written at one of these times, of groups of which the savepoint names nothing as new."""
    newest = newest_by_group(held)
    for name in names:
        parsed = parse_data_file(name)
        if parsed is not None and parsed.instant_time in times and parsed.instant_time > newest.get(parsed.file_id, ""):
            yield name


def _may_be_later(write: Instant, commit: Instant) -> bool:
    # The savepoint names everything up to the time of its commit; a restore undoes what was requested later.
    if write.requested_time >= commit.requested_time:
        return False
    # Layout 1 has no completion times: in doubt the files are held.
    if write.completion_time is None or commit.completion_time is None:
        return True
    return write.completion_time > commit.completion_time


def protection_of(
    context: ViewContext,
    savepoints: Mapping[str, HeldFiles],
    clustered_files: Mapping[FileKey, str],
) -> Protection:
    """Files that no policy may delete."""
    pending = context.pending_compactions
    return Protection(
        savepointed_files=HeldFiles(*savepoints.values()),
        pending=pending,
        pending_files={
            (key[0], name): operation for key, operation in pending.items() for name in operation.file_names
        },
        clustered_files=clustered_files,
    )


def load_undoing(timeline: Timeline, contents: Contents) -> dict[str, Pending]:
    """
    Requested times of writes that still count as completed although a pending rollback or restore undoes them.

    Rollbacks of failed writes do not matter: no reader sees the files of those. A plan that does not decode was never
    begun, and cannot be (rule B-7).
    """
    undoing: dict[str, Pending] = {}
    for instant in timeline.pending(Action.ROLLBACK, Action.RESTORE):
        try:
            times = undone_by(content_of(contents, instant)) or set()
        # Hudi deletes a requested rollback that it cannot read, and passes over an inflight one (rule B-7).
        except (CorruptMetadata, NotFound):
            continue
        undone = (each for time in times for each in timeline.writes.completed() if each.requested_time == time)
        undoing.update((each.requested_time, Pending(instant.action, instant.requested_time)) for each in undone)
    return undoing


def _gap_behind_savepoints(timeline: Timeline) -> tuple[str, str] | None:
    """
    The times between which commits may be archived although older, savepointed commits are active (rule D-7).

    For Hudi's file listing the timeline begins with the savepointed commit, so files of such commits are invisible to
    it, although it is meant to begin with the first commit without a savepoint. Here the archive says which commits are
    completed. Otherwise older rows would be shown as the latest, and the next write would build on them.
    """
    first, before = timeline.committed.start, timeline.first_not_savepointed
    if first is None or before is None or timeline.find(first, Action.SAVEPOINT) is None:
        return None
    return first, before


def _archived_between(contents: Contents, after: str, before: str) -> frozenset[str]:
    """
    Raises:
        CorruptMetadata: The archive is damaged.
    """
    try:
        return load_archived_commits(contents.store.storage, contents.store.config, after, before)
    except (CorruptMetadata, NotFound) as error:
        raise CorruptMetadata(
            f"it is unknown which commits after the savepoint {after} are archived, and so which rows are the latest; "
            f"nothing was changed; bring the archive back from a backup: {error}"
        ) from error


def _unknown_commits(timeline: Timeline, contents: Contents, after: str, before: str) -> UnknownCommits | None:
    """Without an archive, the active timeline names everything that was ever rolled back."""
    if has_archive(contents.store.storage, contents.store.config):
        return None
    known = {instant.requested_time for instant in timeline}
    for _, content in contents_of(contents, timeline.of((Action.ROLLBACK, Action.RESTORE))):
        known |= undone_by(content) or set()
    return UnknownCommits(after=after, before=before, known=frozenset(known))


def _completion_times(timeline: Timeline, contents: Contents) -> dict[str, str]:
    """
    Completion times of active writes and, if log files depend on them, of archived ones (rule Z-4).

    Without those of the archive, a log file counts as part of the newest slice of its group: it is kept longer, never
    shorter.
    """
    times = {i.requested_time: i.completion_time for i in timeline.writes.completed() if i.completion_time is not None}
    store = contents.store
    if not store.layout.has_completion_times or store.config.table_type is TableType.COPY_ON_WRITE:
        return times
    try:
        archived = load_archived(store.storage, store.config)
    except CorruptMetadata as error:
        log.warning("view.archive.unreadable", error=str(error))
        return times
    # The active timeline last: it goes before the archive, where an archival was interrupted and both have an instant.
    return {**{i.requested_time: i.completion_time for i in archived if i.completion_time is not None}, **times}


def _replaced(timeline: Timeline, contents: Contents) -> dict[GroupKey, str]:
    """Rule Z-5; instants ascend, so the larger time wins."""
    replaced: dict[GroupKey, str] = {}
    for instant in timeline.completed(Action.REPLACE_COMMIT):
        if not contents.store.read(instant):  # it decodes, as a commit that did nothing
            raise CorruptMetadata(
                f"{contents.store.storage.root}/{contents.store.path(instant)} is empty: which file groups {instant} "
                "replaced is unknown, and their rows would be shown beside the new ones; put the file back from a copy "
                "of the table"
            )
        for partition, file_ids in (contents.commit(instant).partition_to_replace_file_ids or {}).items():
            for file_id in file_ids:
                replaced[partition, file_id] = instant.requested_time
    return replaced


def written_by_clusterings(timeline: Timeline, contents: Contents) -> dict[str, frozenset[str]]:
    """
    Requested time of each completed clustering to the names of the files that it wrote.

    Raises:
        CorruptMetadata: A replacecommit does not decode.
    """
    commits = ((each, contents.commit(each)) for each in timeline.completed(Action.REPLACE_COMMIT))
    return {
        instant.requested_time: _names_in(commit)
        for instant, commit in commits
        # Without statistics of its writes it does not say what it wrote.
        if commit.operation_type == "CLUSTER" and any(commit.partition_to_write_stats.values())
    }


def _pending_compactions(timeline: Timeline, contents: Contents) -> dict[GroupKey, PendingOperation]:
    pending: dict[GroupKey, PendingOperation] = {}
    for instant in timeline.pending(Action.COMPACTION, Action.LOG_COMPACTION):
        for operation in _compaction_plan(contents, instant).operations:
            # By name, whatever the plan's paths look like: version 1 stored full paths, version 2 stores names
            # (rules/timeline 4.3).
            names = (*filter(None, (operation.data_file_path,)), *operation.delta_file_paths)
            key = (operation.partition_path or "", operation.file_id or "")
            # A slice may be in a compaction and a log compaction (E-6), and without a lock two processes may have
            # planned it: then the files of both plans are needed.
            earlier = pending.get(key)
            also = () if earlier is None else earlier.file_names
            found = PendingOperation(
                instant.requested_time,
                operation.base_instant_time or "",
                instant.action is Action.LOG_COMPACTION,
                tuple(dict.fromkeys((*also, *(name.rpartition("/")[2] for name in names)))),
            )
            if earlier is not None and found.is_log_compaction and not earlier.is_log_compaction:
                found = earlier._replace(file_names=found.file_names)  # only a compaction opens a slice
            pending[key] = found
    return pending


def _compaction_plan(contents: Contents, instant: Instant) -> CompactionPlan:
    try:
        return contents.compaction_plan(instant)
    except InstantGone:
        raise
    except (CorruptMetadata, NotFound) as error:
        raise CorruptMetadata(
            f"{error}. It is unknown which files that {instant.action.value} needs, so nothing is judged; hudi-py "
            "recover shows whether it can be removed"
        ) from error


def _pending_clustering(timeline: Timeline, contents: Contents) -> dict[GroupKey, str]:
    return {group: time for time, plan in _clustering_plans(timeline, contents) for group in sorted(plan.file_groups)}


def load_clustered_files(timeline: Timeline, contents: Contents) -> dict[FileKey, str]:
    """
    Partition path and name of every file that a pending clustering reads, to its requested time.

    A plan that does not decode is never carried out, so it needs no files.
    """
    try:
        plans = list(_clustering_plans(timeline, contents))
    except CorruptMetadata as error:
        log.warning("view.clustering.unreadable", error=str(error))
        return {}
    return {
        (file_slice.partition_path or "", path.rpartition("/")[2]): time
        for time, plan in plans
        for group in plan.input_groups
        for file_slice in group.slices
        for path in filter(None, (file_slice.data_file_path, *(file_slice.delta_file_paths or ())))
    }


def load_clustering_times(timeline: Timeline, contents: Contents) -> frozenset[str]:
    """
    Requested times of the pending clusterings.

    In layout 1 only its plan tells one from an overwrite. One whose plan does not decode is none.
    """
    found = set()
    for instant in timeline.pending(Action.CLUSTERING, Action.REPLACE_COMMIT):
        try:
            is_planned = _clustering_plan(instant, contents) is not None
        except CorruptMetadata:  # the check reports it
            is_planned = False
        if is_planned:
            found.add(instant.requested_time)
    return frozenset(found)


def _clustering_plans(timeline: Timeline, contents: Contents) -> Iterator[tuple[str, ClusteringPlan]]:
    """Requested time and plan of each pending clustering, ascending."""
    for instant in timeline.pending(Action.CLUSTERING, Action.REPLACE_COMMIT):
        plan = _clustering_plan(instant, contents)
        if plan is not None:
            yield instant.requested_time, plan


def _clustering_plan(instant: Instant, contents: Contents) -> ClusteringPlan | None:
    if instant.action is Action.REPLACE_COMMIT and contents.is_request_empty(instant):
        return None  # a clustering has a plan in its request; if that is missing, it is being rolled back
    try:
        return contents.requested_replace(instant).clustering_plan
    except NotFound:
        return None
    except CorruptMetadata as error:
        raise CorruptMetadata(
            f"{error}; hudi-py recover shows whether that {instant.action.value} can be removed"
        ) from error

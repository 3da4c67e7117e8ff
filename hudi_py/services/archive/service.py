"""
Archives a table's timeline: writes instants to the archive, then deletes those that were certainly written.

What a crash leaves after each step, and how the next run handles it:

1. The archive is written, the instants are still active. Readers count instants in both places once. The next run
   archives them again (layout 1) or recognizes them (layout 2), then deletes them.
2. Files of earlier states are deleted, the completed file exists. The instant counts as before; it is archived again.
3. Some completed files are deleted, the oldest first. The active timeline begins later, without a gap.
4. All files are deleted, but small archive files or levels are not merged, or old snapshots exist. The next run that
   archives something does this.

Source: rules/table-services D; Hudi ``TimelineArchiverV1/V2``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import attrs

from hudi_py.config.archive import ArchiveConfig
from hudi_py.config.clean import CleanConfig
from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata, RefusedError, StorageError
from hudi_py.fsview.gone import told_of_lost_archive
from hudi_py.model.instant import Action, Instant
from hudi_py.model.shown import Shown
from hudi_py.runtime.log import log
from hudi_py.services.archive.gather import first_with_replaced_files, gather, readable_commit, undoable_from
from hudi_py.services.archive.history import SNAPSHOTS_KEPT, History, history_row
from hudi_py.services.archive.log_files import Group, append_to_logs
from hudi_py.services.archive.merge_logs import LogMerge
from hudi_py.services.archive.plan import (
    ArchivePlan,
    Bound,
    bound_of_one,
    plan_archive,
)
from hudi_py.storage.base import StorageFailure
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.lock import held_if_free
from hudi_py.timeline.markers import delete_markers, instants_with_markers
from hudi_py.timeline.quarantine import pending_undos
from hudi_py.timeline.timeline import Timeline
from hudi_py.versions.format import ArchiveForm

_INSTANTS_AT_ONCE = 500  # number of instants whose contents are in memory at the same time


@attrs.frozen(kw_only=True, repr=False)
class ArchiveResult(Shown):
    """
    Result of an archival.

    Args:
        instants: Archived instants, in the order in which they were deleted from the active timeline.
        bound: Why no more was archived; None if everything was archived that the settings ask for.
        merges: Layout 1: number of archive files that were merged into one. Layout 2: number of merges.
    """

    instants: tuple[Instant, ...] = ()
    bound: Bound | None = None
    merges: int = 0

    def _facts(self) -> Mapping[str, object]:
        bound = None if self.bound is None else self.bound.value
        return {"instants": len(self.instants), "bound": bound, "merges": self.merges}

    def _listed(self) -> Iterable[tuple[str]]:
        return ((str(instant),) for instant in reversed(self.instants))


@attrs.frozen(kw_only=True)
class ArchiveService:
    """
    Archives the timeline of a table.

    Args:
        contents: Contents of the table's timeline.
        table: Configuration of the table.
        config: How much stays active.
        cleaning: Configuration of cleaning; instants that a clean still needs stay active.
        data_timeline: For a metadata table, the timeline of its data table; else None.

    A run holds the table's lock from beginning to end (D-18). If the table has no lock, the caller must make sure that
    only one process archives it at a time.
    """

    contents: Contents
    table: TableConfig
    config: ArchiveConfig
    cleaning: CleanConfig
    data_timeline: Timeline | None = None

    def plan(self) -> ArchivePlan:
        """
        Plan an archival; nothing is written.

        The rules assume that the last clean has deleted all replaced files (D-9, D-10). This is wrong if Hudi's cleans
        did not record a savepoint, or a file could not be deleted; so the folders are listed to make sure.

        Raises:
            CorruptMetadata: The last clean, which says what may be archived, does not decode.
        """
        return self._plan(self.contents.store.load())

    def _plan(self, timeline: Timeline) -> ArchivePlan:
        facts = gather(self.contents, self.table, self.config, self.cleaning, timeline, self.data_timeline)
        plan = plan_archive(timeline, facts, self.config)
        # Asked only where it matters, because it is a listing, and each commit plans an archival.
        if self.data_timeline is None and any(each.action is Action.CLEAN for each in plan.instants):
            facts = attrs.evolve(facts, undoable_from=undoable_from(self.contents.store, timeline))
            plan = plan_archive(timeline, facts, self.config)
        if plan.instants and self._is_archive_lost(timeline):
            return attrs.evolve(plan, instants=(), bound=Bound.LOST_ARCHIVE)
        if plan.instants and self.data_timeline is None and pending_undos(self.contents, timeline):
            return attrs.evolve(plan, instants=(), bound=Bound.UNDO)
        time = first_with_replaced_files(self.contents, plan.instants)
        return (
            plan if time is None else plan_archive(timeline, attrs.evolve(facts, replaced_files_of=time), self.config)
        )

    def _is_archive_lost(self, timeline: Timeline) -> bool:
        """
        Whether a new archive would stand for one that is lost as a whole; no times are asked of a metadata table's.

        It costs a listing, and only for the first archival of a table the contents of its timeline.
        """
        if self.config.anew or self.data_timeline is not None:
            return False
        why = told_of_lost_archive(self.contents, timeline)
        if why is not None:
            log.warning("archive.lost", archive=self.table.history_folder, told_by=why)
        return why is not None

    def run(self) -> ArchiveResult:
        """
        Archive what is due.

        In layout 2, nothing is archived if the table's lock is not free, as in Hudi; the next run catches up.

        Raises:
            CorruptMetadata: As `plan`, or the archive itself is damaged; then no instant was deleted.
            ConflictError: Another process archives this table; or, in layout 1, holds the table's lock.
            StorageError: A file could not be deleted; the next run tries again.
        """
        if not self.config.services_enabled:
            return ArchiveResult()
        lock = self.contents.store.lock
        if self._to_logs:
            with lock.held("archive"):
                return self._run()
        with held_if_free(lock, "archive") as is_held:
            return self._run() if is_held else ArchiveResult(bound=Bound.LOCK)

    @property
    def _to_logs(self) -> bool:
        return self.table.format.archive is ArchiveForm.LOGS

    def _run(self) -> ArchiveResult:
        logs = LogMerge(self.contents.store.storage, self.table.history_folder)
        if self._to_logs:
            logs.recover()
        # Before the plan: a savepoint that is created while the plan is made must not be taken for a known one.
        # One timeline for both, and the leases before what the plan reads of them.
        timeline = self.contents.store.load()
        known = self._held(timeline)
        plan = self._plan(timeline)
        if not plan.instants:
            return ArchiveResult(bound=plan.bound)
        self._remove_markers(plan.instants)
        done: list[Instant] = []
        bound = plan.bound
        for groups in self._batches(plan.instants):
            # Written first, deleted second: an instant that exists twice is harmless, one that exists nowhere is lost.
            archived = self._write(groups)
            going = self._still_going(archived, known)
            self._delete(going)
            done += [group.instant for group in going]
            if len(going) < len(archived):
                bound = self.plan().bound or Bound.SAVEPOINT
                break
            if len(archived) < len(groups) and self._to_logs:
                break  # a damaged commit stays active, and so must all later ones: readers take a gap for archived
        merges = self._merge_logs(logs) if self._to_logs else self._tidy_history()
        log.info("archive.completed", instants_archived=len(done), merges=merges)
        if done:
            self.contents.store.told.archived(self.contents.store, len(done))
        return ArchiveResult(instants=tuple(done), bound=bound, merges=merges)

    def _held(self, timeline: Timeline) -> frozenset[Instant | str]:
        """The savepoints of a timeline, and the leases at this moment."""
        return frozenset((*_savepoints(timeline), *(each.id for each in self.contents.store.leases.in_force())))

    def _still_going(self, groups: tuple[Group, ...], known: frozenset[Instant | str]) -> tuple[Group, ...]:
        """
        Leave out what is needed by savepoints and leases that were created since the plan was made.

        Savepoints are created without the table's lock, by Apache Hudi too. What is archived already stays active as
        well, as after an interrupted archival.

        Args:
            groups: The instants to be archived or deleted.
            known: Savepoints and leases at the time of the plan.
        """
        # Usually nothing has happened, and then nothing is planned again.
        if self._held(self.contents.store.load()) == known:
            return groups
        allowed = frozenset(self.plan().instants)
        return tuple(group for group in groups if group.instant in allowed)

    def archive_savepointed(self, requested_time: str) -> None:
        """
        Archive the commit of a savepoint that archival has passed, so that the savepoint can be deleted.

        Until then the savepoint keeps protecting the files of the commit.

        Args:
            requested_time: Requested time of the savepoint and its commit, which may be archived already.

        Raises:
            RefusedError: Something still needs the commit on the active timeline, or it does not decode; nothing was
                changed.
            CorruptMetadata, ConflictError, StorageError: As `run`.
        """
        with self.contents.store.lock.held("archive"):
            self._archive_savepointed(requested_time)

    def _archive_savepointed(self, requested_time: str) -> None:
        timeline = self.contents.store.load()
        found = [i for i in timeline.commits.completed() if i.requested_time == requested_time]
        if not found:
            return
        (commit,) = found
        facts = attrs.evolve(
            gather(self.contents, self.table, self.config, self.cleaning, timeline, self.data_timeline),
            replaced_files_of=first_with_replaced_files(self.contents, found),
        )
        bound = bound_of_one(timeline, facts, commit)
        # An instant that does not decode could be archived without its content only, and is all that says what it
        # wrote.
        if bound is None and readable_commit(self.contents, commit) is None:
            bound = Bound.DAMAGED
        if bound is None and self._is_archive_lost(timeline):
            bound = Bound.LOST_ARCHIVE
        if bound is not None:
            raise RefusedError(f"{commit} cannot be archived: {bound.value}; nothing was changed")
        if self._to_logs:
            LogMerge(self.contents.store.storage, self.table.history_folder).recover()
        self._remove_markers((commit,))
        for groups in self._batches((commit,)):
            self._delete(self._write(groups))

    def _remove_markers(self, going: tuple[Instant, ...]) -> None:
        """Markers left by a crash behind a completed commit (rule D-16)."""
        storage = self.contents.store.storage
        times = {instant.requested_time for instant in going}
        for time in instants_with_markers(storage):
            if time in times:
                delete_markers(storage, time)

    def _batches(self, going: tuple[Instant, ...]) -> Iterator[tuple[Group, ...]]:
        files: dict[tuple[str, Action], list[Instant]] = {}
        for state in self.contents.store.load().all_states:
            files.setdefault((state.requested_time, state.comparable_action), []).append(state)
        groups = [Group(instant, tuple(files[instant.requested_time, instant.comparable_action])) for instant in going]
        for start in range(0, len(groups), _INSTANTS_AT_ONCE):
            yield tuple(groups[start : start + _INSTANTS_AT_ONCE])

    def _write(self, groups: tuple[Group, ...]) -> tuple[Group, ...]:
        store, folder = self.contents.store, self.table.history_folder
        if self._to_logs:
            return append_to_logs(
                store,
                folder,
                groups,
                entries_per_block=self.config.entries_per_block,
                fails_on_damage=self.config.fails_on_damage,
            )
        rows = tuple(history_row(store, group.instant, group.files) for group in groups)
        # Not necessarily all of them: an interrupted run may have written a part under the same name.
        held = History(store.storage, folder).append(rows)
        return tuple(g for g in groups if (g.instant.requested_time, g.instant.action.value) in held)

    def _delete(self, groups: tuple[Group, ...]) -> None:
        """Earlier states first, then the completed files one by one, oldest first: never a gap (rule D-16)."""
        store = self.contents.store
        store.lock.check()  # writing may have taken so long that another process took the lock over
        pending = [store.path(file) for group in groups for file in group.files if file.is_pending]
        for path, outcome in store.storage.delete_many(pending).items():
            if isinstance(outcome, StorageFailure):
                raise StorageError(
                    f"{store.storage.root}/{path} could not be deleted: {outcome.message}; it is archived, the next "
                    "archival deletes it",
                    outcome.retryable,
                )
        for group in groups:
            for each in group.files:
                if each.is_completed:
                    store.remove(each)

    def _merge_logs(self, logs: LogMerge) -> int:
        if self.config.log_merge_files is None:
            return 0
        try:
            return logs.merge(
                files_at_least=self.config.log_merge_files, size_bytes_max=self.config.log_merge_bytes_max
            )
        except CorruptMetadata as error:  # the archive is complete unmerged; damaged files are kept for inspection
            log.warning("archive.logs.not_merged", why=str(error))
            return 0

    def _tidy_history(self) -> int:
        history = History(self.contents.store.storage, self.table.history_folder)
        try:
            merges = history.merge(self.config.files_per_merge)
        except CorruptMetadata as error:  # the archive is complete unmerged; damaged files are kept for inspection
            log.warning("archive.history.not_merged", why=str(error))
            return 0
        # Each merge has written a manifest of its own, and readers may still use those before it (rules/timeline 5.3).
        history.remove_obsolete(SNAPSHOTS_KEPT + merges)
        return merges


def _savepoints(timeline: Timeline) -> frozenset[Instant]:
    return frozenset(timeline.of([Action.SAVEPOINT]))

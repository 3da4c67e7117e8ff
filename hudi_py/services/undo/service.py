"""
Puts files back from quarantine: those of a clean, or those of a search for orphans.

The undo of a clean is a rollback of it, the one action by which Apache Hudi knows that another did not happen. All
under the table's lock:

1. ``.rollback.requested`` with a plan that names the clean and deletes nothing, then ``.rollback.inflight``;
2. the files are moved back;
3. the metadata table lists them again, with their statistics, under the time of the rollback;
4. the files of the clean leave the timeline, the completed one last: a clean that looks inflight would be carried out
   again;
5. the rollback is completed.

After a crash at any point the same call goes on, and so does `hudi-py recover`. Readers only ever see more old file
slices than before. docs/decisions/undo.md says why it is done in this form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Final

import attrs

from hudi_py.config.table import TableConfig
from hudi_py.errors import ConfigError, CorruptMetadata, RefusedError, StorageError
from hudi_py.fsview.fate import TableFacts, judge_partition_files
from hudi_py.fsview.listing import list_about
from hudi_py.fsview.loader import load_facts
from hudi_py.fsview.needs import Failed, Latest, Needed, Unknown
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.model.files import is_data_file, join_path, parse_data_file
from hudi_py.model.instant import Action, Instant
from hudi_py.model.records import InstantInfo, RollbackMetadata, RollbackPartitionMetadata, RollbackPlan
from hudi_py.model.words import counted
from hudi_py.runtime.log import log
from hudi_py.services.clean.planning.progress import PROGRESS
from hudi_py.services.undo.result import UndoReport
from hudi_py.storage.base import Entry, Storage, StorageFailure
from hudi_py.timeline.archive import load_archived
from hudi_py.timeline.completions import contents_of, undone_by
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.hidden_leases import refuse_hiding_leased
from hudi_py.timeline.quarantine import (
    Manifest,
    forget,
    is_emptied,
    load_manifest,
    paths_of,
    pending_undos,
    sizes_held,
)
from hudi_py.timeline.store import TimelineStore
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.commit import Begun, Requested, prepared

_CLEAN: Final = "clean"


@attrs.frozen(kw_only=True)
class UndoService:
    """
    Undoes removals in one table.

    Args:
        contents: The table's timeline.
        table: Its properties.
        metadata_table: Keeper of the metadata table.
    """

    contents: Contents
    table: TableConfig
    metadata_table: MetadataTableKeeper

    def plan(self, name: str) -> UndoReport:
        """
        What would be put back; nothing is written.

        Args:
            name: Requested time of a clean, or the name of a search for orphans.

        Raises:
            ConfigError: There is no such clean or search.
            RefusedError: It cannot be undone; the message says why.
            CorruptMetadata: The manifest, or an instant that decides about the files, is damaged.
        """
        manifest = self._manifest(name)
        return attrs.evolve(self._report(manifest, self._checked(manifest)), is_dry_run=True)

    def run(self, name: str) -> UndoReport:
        """
        Put the files back.

        Raises:
            ConflictError: Another process holds the table's lock; nothing was changed.
            StorageError: A file could not be moved; the undo stays pending, and the same call goes on with it.
            As `plan`.
        """
        with self._store.lock.held(f"undo of {name}"):
            manifest = self._manifest(name)
            done = self._undone_by(self._store.load(), name)
            if done is not None and not any(self._held(manifest).values()):
                # An earlier run was stopped before its last step. No file is left in quarantine.
                forget(self._storage, name)
                report = self._report(manifest, manifest.files)
                return attrs.evolve(report, rollback=done.requested_time)
            if name not in pending_undos(self.contents, self._store.load()):
                self._refuse_emptied(manifest)
            self._checked(manifest)
            self._keep_from_store(manifest)
            files = self._checked(manifest)  # again: the store may have deleted some until a moment ago
            report = self._report(manifest, files)
            if manifest.kind == _CLEAN:
                # Before the first file is moved: it may refuse, and it may have to create what the record below goes
                # to.
                self.metadata_table.prepare(writes_data=False)
                report = self._undo_clean(manifest, files, report)
            else:
                # Only what is held: the search may have been stopped before it moved all that its manifest names.
                report = attrs.evolve(report, restored=self._put_back(manifest, paths_of(files)))
            # Last: until then the manifest says what is to be put back, which is all that a second run can go by.
            forget(self._storage, name)
        log.info("undo.done", removal=name, files=len(report.files), rollback=report.rollback)
        return report

    def settle_if_lost(self, name: str) -> bool:
        """
        End an undo that was begun and can never be finished, because the quarantine of the clean is deleted.

        While the clean is completed, to every reader it was never undone: the undo is withdrawn, and what was put back
        `orphans` finds. Once it has left the timeline everything is done but the completion, for which no file matters.

        Returns:
            Whether there was such an undo.

        Raises:
            ConflictError: Another process holds the table's lock; nothing was changed.
        """
        store = self._store
        with store.lock.held(f"undo of {name}"):
            timeline = store.load()
            clean, pending = timeline.find(name, Action.CLEAN), pending_undos(self.contents, timeline).get(name)
            if pending is None or load_manifest(self._storage, name) is not None:
                return False
            if clean is None:
                with Begun(store, pending).ready() as ready:
                    # Recorded before the clean left.
                    ready.record(lambda _, __: None).publish(_metadata(pending, name, ()))
            else:
                self.metadata_table.forget(pending.requested_time)
                for each in sorted(store.files_of(pending), key=lambda each: each.state, reverse=True):
                    store.remove(each)  # the plan last: without it nobody could tell what the rest is
        log.warning("undo.lost", removal=name, rollback=pending.requested_time, was_done=clean is None)
        return True

    # --- judging -------------------------------------------------------------------------------------------------
    def _manifest(self, name: str) -> Manifest:
        # The name becomes part of a path, and may come from a command line: nothing outside the quarantine may be
        # reached with it.
        is_name = name.replace("-", "").isalnum()
        manifest = load_manifest(self._storage, name) if is_name else None
        if manifest is not None:
            return manifest
        timeline = self._store.load()
        if timeline.find(name, Action.CLEAN) is not None:
            raise RefusedError(
                f"{self._root}: clean {name} cannot be undone: its files were deleted for good, because it ran without "
                "hoodie_py.clean.quarantine=true, or its time in quarantine is over"
            )
        self._refuse_if_undone(timeline, name)
        raise ConfigError(f"{self._root} has no clean {name} whose files are in quarantine; see hudi-py timeline")

    def _undone_by(self, timeline: Timeline, name: str) -> Instant | None:
        """The completed rollback that records the undo of a clean."""
        for instant, content in contents_of(self.contents, timeline.completed(Action.ROLLBACK)):
            if name in (undone_by(content) or ()):
                return instant
        return None

    def _refuse_if_undone(self, timeline: Timeline, name: str) -> None:
        done = self._undone_by(timeline, name)
        if done is not None:
            raise ConfigError(
                f"{self._root}: clean {name} is undone already, by {done}: its files are in the table again; nothing "
                "was changed. The next clean plans them once more, so raise the retention, or create a savepoint, if "
                "they shall stay"
            )

    def _checked(self, manifest: Manifest) -> Mapping[str, Mapping[str, int]]:
        """
        The files as they will be in the table: partition path to names and sizes in bytes.

        Raises:
            RefusedError: They cannot be put back.
        """
        held = self._held(manifest)
        timeline = self._store.load()
        if manifest.kind != _CLEAN:
            files = {path: {name: names[name] for name in names if name in manifest.files.get(path, {})}
                     for path, names in held.items()}  # fmt: skip
            self._check_held(manifest, files)
            self._check_orphans(timeline, manifest, files)
            return files
        self._check_timeline(timeline, manifest)
        back: dict[str, dict[str, int]] = {}
        gone = []
        facts = cache(partial(load_facts, timeline, self.contents))  # for all partitions, if one has files to judge
        sizes_there = self._sizes_there(manifest.files)
        for path, names in manifest.files.items():
            there, here = sizes_there[path], held.get(path, {})
            self._check_places(manifest, path, here, there)
            # An attempt that was interrupted may have moved some; files that the clean never moved are there, too.
            # -1 marks a file that is in neither place; all of them are counted, so that the message can say how many
            # are lost.
            back[path] = {name: here.get(name, there.get(name, -1)) for name in names}
            gone += [join_path(path, name) for name, size in back[path].items() if size < 0]
            self._check_fates(facts, path, set(there) | set(here), here)
        if gone:
            why = f"{counted(len(gone), 'file')} of it can be found in no place any more, as {gone[0]}"
            raise RefusedError(self._no(manifest, why))
        return back

    def _refuse_emptied(self, manifest: Manifest) -> None:
        """Raise if what was found in quarantine is being deleted for good at this moment."""
        if is_emptied(self._storage, manifest) or load_manifest(self._storage, manifest.name) is None:
            raise RefusedError(self._no(manifest, "its time in quarantine is over, and its files are being deleted"))

    def _held(self, manifest: Manifest) -> dict[str, dict[str, int]]:
        return sizes_held(self._storage, manifest, self._listed)

    def _sizes_there(self, paths: Iterable[str]) -> dict[str, dict[str, int]]:
        listed = self._listed(paths)
        return {path: {each.name: each.size_bytes or 0 for each in entries} for path, entries in listed.items()}

    def _listed(self, folders: Iterable[str]) -> dict[str, list[Entry]]:
        """Many at once in an object store, because writers wait for the lock."""
        return list_about(self._storage, dict.fromkeys(folders, True))

    def _check_places(self, manifest: Manifest, path: str, here: Mapping[str, int], there: Mapping[str, int]) -> None:
        """A move would replace a file that was written under the same name since; of a copy the size is the same."""
        for name in sorted(here.keys() & there.keys()):
            if here[name] != there[name] and is_data_file(name):
                why = f"{join_path(path, name)} exists again, with {there[name]} bytes instead of {here[name]}"
                raise RefusedError(self._no(manifest, why))

    def _check_held(self, manifest: Manifest, files: Mapping[str, Mapping[str, int]]) -> None:
        """A search that was stopped before it moved the first file has none, and another one may have taken them."""
        if any(files.values()):
            return
        there = self._sizes_there(manifest.files)
        gone = [join_path(path, name) for path, names in manifest.files.items() for name in names.keys() - there[path]]
        if gone:
            why = f"none of its files is in quarantine, and {counted(len(gone), 'file')} is in no place any more, as "
            raise RefusedError(self._no(manifest, f"{why}{min(gone)}"))

    def _check_orphans(self, timeline: Timeline, manifest: Manifest, files: Mapping[str, Mapping[str, int]]) -> None:
        """Archival may have passed the time of a failed write since, and readers take what is older for committed."""
        facts = load_facts(timeline, self.contents)
        completed = {instant.requested_time for instant in timeline.writes.completed()}
        sizes_there = self._sizes_there(files)
        for path, names in files.items():
            there = sizes_there[path]
            self._check_places(manifest, path, names, there)
            try:
                fates = judge_partition_files(facts, path, sorted(there.keys() | names.keys()))
            except CorruptMetadata as error:  # of a file that is not in the table now, or nobody could have read it
                raise RefusedError(self._no(manifest, f"its files would be in doubt there: {error}")) from error
            for name in names:
                parsed, fate = parse_data_file(name), fates.of(name)
                # What a retried task left has the fate of the slice that its twin holds.
                if parsed is None or parsed.instant_time in completed or not isinstance(fate, Needed):
                    continue
                if any(isinstance(need, Latest) for need in fate.by):
                    why = f"if {join_path(path, name)} came back, readers would take it for the newest rows, for the "
                    raise RefusedError(self._no(manifest, f"{why}timeline begins later than its write by now"))

    def _check_timeline(self, timeline: Timeline, manifest: Manifest) -> None:
        clean = timeline.find(manifest.name, Action.CLEAN)
        if clean is None:
            if manifest.name in pending_undos(self.contents, timeline):
                return
            if load_archived(self._storage, self.table).find(manifest.name, Action.CLEAN) is not None:
                raise RefusedError(self._no(manifest, "it is archived"))
            self._refuse_if_undone(timeline, manifest.name)
            raise RefusedError(self._no(manifest, "it is not on the timeline"))
        if not clean.is_completed:
            raise RefusedError(self._no(manifest, "it is not completed; hudi-py recover finishes it"))
        later = [instant for instant in timeline if instant.requested_time > manifest.name]
        for each in later:
            if each.action is Action.RESTORE:
                raise RefusedError(self._no(manifest, f"{each} came after it"))
            # A later clean that deleted nothing moved no window past these files, so it may stay.
            if each.action is Action.CLEAN and (each.is_pending or self._has_deleted(each)):
                raise RefusedError(self._no(manifest, f"{each} came after it; undo that one first"))
        if manifest.name not in pending_undos(self.contents, timeline):  # one that was begun has seen every lease
            refuse_hiding_leased(self.contents, timeline, manifest.name)

    def _has_deleted(self, clean: Instant) -> bool:
        return any(done.delete_path_patterns for done in self.contents.clean(clean).partitions.values())

    def _check_fates(
        self, facts: Callable[[], TableFacts], path: str, names: set[str], back: Mapping[str, int]
    ) -> None:
        """Every file has to come back as an older version: none may become what readers take for the newest rows."""
        data = [name for name in back if is_data_file(name)]
        if not data:
            return
        fates = judge_partition_files(facts(), path, names)
        for name in data:
            fate = fates.of(name)
            is_newest = isinstance(fate, Needed) and any(isinstance(need, Latest) for need in fate.by)
            if is_newest or isinstance(fate, Failed | Unknown):
                why = "readers would take it for the newest rows" if is_newest else str(fate)
                raise RefusedError(
                    f"{self._root}: the clean cannot be undone: if {join_path(path, name)} came back, {why}; commits "
                    "were archived or undone since"
                )

    def _no(self, manifest: Manifest, why: str) -> str:
        return f"{self._root}: {manifest.kind} {manifest.name} cannot be undone: {why}; nothing was changed"

    # --- acting --------------------------------------------------------------------------------------------------
    def _undo_clean(self, manifest: Manifest, files: Mapping[str, Mapping[str, int]], report: UndoReport) -> UndoReport:
        store = self._store
        target = InstantInfo(manifest.name, Action.CLEAN.value)
        pending = pending_undos(self.contents, store.load()).get(manifest.name)
        if pending is None:
            # A plan without files: the release that carries it out by mistake deletes nothing.
            requested = prepared(store, Action.ROLLBACK).request(RollbackPlan(instant_to_rollback=target))
            # Again: a lease that is taken from now on sees the undo.
            with requested.withdrawn_if_refused() as timeline:
                refuse_hiding_leased(self.contents, timeline, manifest.name)
                # Whoever empties the quarantine from now on sees the undo, too.
                self._refuse_emptied(manifest)
        else:
            requested = Requested(store, pending)
        begun = requested.begin()
        started = store.clock.now()
        restored = self._put_back(manifest, manifest.paths())
        metadata = attrs.evolve(
            _metadata(begun.instant, manifest.name, files),
            time_taken_ms=max(0, int((store.clock.now() - started).total_seconds() * 1000)),
        )
        data = {
            path: {name: size for name, size in names.items() if is_data_file(name)} for path, names in files.items()
        }
        PROGRESS.store(self._storage, None)  # the next clean has to look at these partitions again
        with begun.ready() as ready:
            recorded = ready.record(partial(self.metadata_table.record_return, files=data))
            self._remove_clean(manifest.name)
            recorded.publish(metadata)
        return attrs.evolve(report, restored=restored, rollback=begun.instant.requested_time)

    def _keep_from_store(self, manifest: Manifest) -> None:
        """
        Take the tag off by which the store would delete the files, before one of them is in the table again.

        Raises:
            StorageError: One has still its tag; nothing was put back.
        """
        if manifest.tag is None:
            return
        held = paths_of(self._held(manifest))
        paths = [join_path(manifest.files_folder, path) for path in held]
        for path, outcome in self._storage.tag_many(paths, manifest.tag, remove=True).items():
            if isinstance(outcome, StorageFailure):
                raise StorageError(
                    f"{path} could not be freed of its tag {manifest.tag.key}: {outcome.message}; nothing was put "
                    "back, undo again",
                    outcome.retryable,
                )

    def _put_back(self, manifest: Manifest, expected: Iterable[str]) -> tuple[str, ...]:
        """Move everything that is in quarantine, so that the expected paths are in the table; repeatable."""
        held = self._held(manifest)
        paths = [join_path(path, name) for path, names in held.items() for name in names]
        outcomes = self._storage.move_many(paths, manifest.files_folder, "")
        for path, outcome in outcomes.items():
            if isinstance(outcome, StorageFailure):
                raise StorageError(f"{path} could not be put back: {outcome.message}; undo again", outcome.retryable)
        restored = frozenset(path for path, outcome in outcomes.items() if outcome is True)
        for path in expected:
            # By the store, which has its own time; or by whoever empties the quarantine, who sees no undo of orphans.
            if path not in restored and self._storage.size(path) is None:
                raise StorageError(f"{path} was deleted for good at this moment; what is left was put back")
        return tuple(sorted(restored))

    def _remove_clean(self, time: str) -> None:
        store = self._store
        found = store.load().find(time, Action.CLEAN)
        if found is not None:
            for each in sorted(store.files_of(found), key=lambda each: each.state):  # the completed file last
                store.remove(each)

    def _report(self, manifest: Manifest, files: Mapping[str, Mapping[str, int]]) -> UndoReport:
        return UndoReport(
            name=manifest.name,
            kind=manifest.kind,
            files={join_path(path, name): size for path, names in files.items() for name, size in names.items()},
            reasons=manifest.reasons,
        )

    @property
    def _store(self) -> TimelineStore:
        return self.contents.store

    @property
    def _storage(self) -> Storage:
        return self.contents.store.storage

    @property
    def _root(self) -> str:
        return self._storage.root


def _metadata(rollback: Instant, clean: str, paths: Iterable[str]) -> RollbackMetadata:
    return RollbackMetadata(
        start_rollback_time=rollback.requested_time,
        time_taken_ms=0,
        total_files_deleted=0,
        commits_rollback=(clean,),
        partitions={path: RollbackPartitionMetadata(partition_path=path) for path in paths},
        instants_rollback=(InstantInfo(clean, Action.CLEAN.value),),
    )

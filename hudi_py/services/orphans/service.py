"""
Finds the files of a table that no instant knows, and removes them: into quarantine, or for good.

Order of effects, under the table's lock: the table is judged again, the manifest of the quarantine is written, files
are moved (or deleted), then folders that are empty are removed, the deepest first. A crash at any point leaves each
file at its place, in quarantine, or, where deletion was asked for, deleted; the next run goes on with the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

import attrs

from hudi_py.config import keys
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata, NotFound, RefusedError, UnsupportedTable
from hudi_py.formats.properties import parse_properties
from hudi_py.fsview.fate import judge_partition_files
from hudi_py.fsview.listing import list_about
from hudi_py.fsview.loader import load_facts, written_by_clusterings
from hudi_py.fsview.origin import Origins
from hudi_py.mdt.read import MetadataReader
from hudi_py.mdt.table import FILES_PARTITION, MetadataTable
from hudi_py.model.files import join_path, parse_data_file
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.instant_time import EPOCH, format_instant_time, parse_instant_time
from hudi_py.model.records import CleanMetadata
from hudi_py.runtime.log import log
from hudi_py.runtime.told_time import warn_of_time_to_come
from hudi_py.services.check.facts import FewFiles, InstantFacts, TableFacts
from hudi_py.services.check.gather import gather
from hudi_py.services.check.judge_files import Expectation
from hudi_py.services.orphans.facts import OrphanAction, OrphanFate, OrphanFile, OrphanReport, OrphanVerdict
from hudi_py.services.orphans.judge import (
    Surroundings,
    Suspicion,
    doubts,
    empty_folders,
    in_turns,
    judge,
    only_approved,
    rank,
    tripped,
)
from hudi_py.services.orphans.walk import (
    Folder,
    bootstrapped_from,
    is_within,
    read_inventory,
    tables_around,
    walk_table,
)
from hudi_py.storage.base import Deletion, Entry, SideFileLeft, Storage, StorageFailure
from hudi_py.storage.deleters import Deleter, Unlink, quarantine_in
from hudi_py.timeline.archive import load_archived
from hudi_py.timeline.completions import contents_of, undone_writes
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.deletion import Permit
from hudi_py.timeline.erasures import noted
from hudi_py.timeline.heartbeat import Rhythm, pulses
from hudi_py.timeline.markers import read_markers
from hudi_py.timeline.properties_file import PROPERTIES_FILE
from hudi_py.timeline.quarantine import Manifest, free_name, pending_undos, sizes_in, store_manifest
from hudi_py.timeline.store import TimelineStore
from hudi_py.timeline.timeline import Timeline


@attrs.frozen(kw_only=True)
class OrphanService:
    """
    Removes files that no instant knows from one table.

    Args:
        contents: The table's timeline.
        table: Its properties.
        settings: As given.
        action: What to do with the files.
        older_than: Smallest age of a file that is removed; None for ``hoodie_py.orphans.older.than``.
        max_deletes: Largest number of files that one run removes; None for no limit.
        inventory: Path of an inventory file of the store, or path or URL of the manifest of one of Amazon S3, to read
            instead of listing the folders.
        now: Replaces the clock for ages.
        approved: The only files that may be removed: path to size in bytes; None for all.
    """

    contents: Contents
    table: TableConfig
    settings: Settings
    action: OrphanAction = OrphanAction.QUARANTINE
    older_than: timedelta | None = None
    max_deletes: int | None = None
    inventory: str | None = None
    now: datetime | None = None
    approved: Mapping[str, int] | None = None

    def plan(self) -> OrphanReport:
        """
        Find and judge the files; nothing is written.

        Raises:
            ConfigError: The inventory cannot be read.
            CorruptMetadata: The timeline cannot be read.
            StorageError: The storage refused or cannot be reached.
        """
        return self._search()[0]

    def run(self) -> OrphanReport:
        """
        Find, judge and remove.

        Raises:
            RefusedError: Deletion is forbidden, or there are files to remove and something about the table is in doubt;
                nothing was removed.
            ConflictError: Another writer holds the table's lock; nothing was removed.
            As `plan`.
        """
        if self.action is OrphanAction.SHOW:
            return self.plan()
        permit = self._store.deletion.permit("the removal of orphans")  # before the search, which takes long
        warn_of_time_to_come(self.now, self._store.clock, "removal of orphans")
        report, suspects, early = self._search()
        self._refuse(report)
        if not (report.to_remove or report.empty_folders):
            return report  # with nothing to remove, there is nothing to lock
        # Each commit has to decode before something is removed, and other writers wait for the lock: what is completed
        # does not change, so it is decoded before.
        known = self._facts(
            Contents(self._store.afresh()), frozenset(each.partition_path for each in suspects)
        ).instants
        with self._store.lock.held("orphans"):
            # What was found without the lock may be out of date: a write that began since has an instant now.
            again = self._judged(report, suspects, early, known)
            self._refuse(again)
            return self._remove(again, permit)

    # --- searching -----------------------------------------------------------------------------------------------
    def _search(self) -> tuple[OrphanReport, list[OrphanFile], frozenset[str]]:
        timeline = self._store.load()
        before = self._before_ms(timeline)
        others: list[str] = []
        folders: dict[str, bool] = {}
        suspects: list[OrphanFile] = []
        try:
            origins = Origins(timeline, load_archived(self._storage, self.table))
        except (CorruptMetadata, NotFound):
            # Only what the active timeline proves is a suspect then; `doubts` refuses the removal anyway, and a dry
            # run still lists what it can.
            origins = Origins(timeline, None)
        try:
            clustered = written_by_clusterings(timeline, self.contents)
        except (CorruptMetadata, NotFound):  # `doubts` names it
            clustered = {}
        undone, cleaned = undone_writes(self.contents, timeline), _cleaned(self.contents, timeline)
        suspicion = Suspicion(origins, undone, cleaned, clustered)
        for folder in self._folders(others.append):
            folders[folder.path] = bool(folder.files)
            suspects += suspicion.of(folder.path, folder.files)
        early = frozenset(suspicion.early)
        report = OrphanReport(
            action=self.action,
            older_than_ms=before,
            files_seen=suspicion.files_seen,
            other_tables=tuple(sorted(others)),
            empty_folders=self._empty(folders, others, timeline, before),
        )
        if not suspects:
            return report, suspects, early
        judged = self._judged(report, suspects, early)
        if self.inventory is not None:
            self._tell_gone(suspects, judged)
        return judged, suspects, early

    def _tell_gone(self, suspects: Sequence[OrphanFile], judged: OrphanReport) -> None:
        """Files of an inventory that are not there: deleted since, or their paths are not as the table has them."""
        there = {verdict.file.path for verdict in judged.verdicts}
        gone = [each.path for each in suspects if each.path not in there]
        gone = [path for path in gone if not is_within(path, judged.other_tables)]
        if gone and not judged.doubts:
            log.warning("orphans.inventory.not_there", inventory=self.inventory, files=len(gone), such_as=gone[0])

    def _folders(self, others: Callable[[str], None]) -> Iterator[Folder]:
        if self.inventory is not None:
            return read_inventory(self.inventory, self._storage, others)
        return walk_table(self._storage, others)

    def _empty(
        self, folders: Mapping[str, bool], others: Iterable[str], timeline: Timeline, before_ms: int
    ) -> tuple[str, ...]:
        """Only local disks have folders of their own, and while a write is pending it may just have made one."""
        # An inventory lists files only, and in an object store a folder exists no longer than its files.
        if self.inventory is not None or not self._storage.capabilities.has_folders or timeline.writes.pending():
            return ()
        full = {**folders, **dict.fromkeys(others, True)}
        empty = empty_folders(full, ())
        # A young folder counts as full: a writer creates the folder of a partition before its first file.
        return empty_folders(full, self._young(empty, before_ms)) if empty else ()

    def _young(self, paths: Iterable[str], before_ms: int) -> set[str]:
        """Those of the folders in which something was created or deleted since a time, or of which that is unknown."""
        found: set[str] = set()
        by_parent: dict[str, list[str]] = {}
        for path in paths:
            by_parent.setdefault(path.rpartition("/")[0], []).append(path)
        for parent, below in by_parent.items():
            times = {join_path(parent, e.name): e.modified_ms for e in self._storage.list(parent, details=True)}
            for path in below:
                modified_ms = times.get(path)
                if modified_ms is None or modified_ms >= before_ms:
                    found.add(path)
        return found

    def _judged(
        self,
        report: OrphanReport,
        suspects: list[OrphanFile],
        early: frozenset[str],
        known: Sequence[InstantFacts] | None = None,
    ) -> OrphanReport:
        """
        Judge the suspects by the table as it is now; those that changed since they were listed are left out.

        Args:
            report, suspects, early: As found.
            known: What instants held a moment ago, for the last look before something is removed; None for a first one.
        """
        # A store of its own: contents read before the lock was taken must not decide.
        contents = Contents(self._store.afresh())
        # One listing for all questions: a file must not be judged by other neighbours than those it was seen with.
        asked: dict[str, set[str]] = {}
        for suspect in sorted(suspects, key=lambda each: each.partition_path):
            asked.setdefault(suspect.partition_path, set()).add(suspect.name)
        listed = list_about(self._storage, asked)
        others = self._not_its_own(listed, report.other_tables)
        suspects = [each for each in suspects if not is_within(each.partition_path, others)]
        folders = {path: _files(entries) for path, entries in listed.items() if not is_within(path, others)}
        paths = frozenset(folders)
        # For a first look it is enough that a commit does not name the files in question, which costs a fiftieth.
        times = frozenset(filter(None, map(_time_in, suspects))) if known is None else None
        facts = self._facts(contents, paths, times, known or ())
        expected = Expectation(facts)
        doubtful = [*doubts(facts, expected, early), *self._store.doubts()]
        # Files that it has put back are still in the list of what the clean deleted.
        doubtful += [
            f"{undo} is pending, the undo of a clean" for undo in pending_undos(contents, facts.timeline).values()
        ]
        verdicts: list[OrphanVerdict] = []
        try:
            seen = self._surroundings(contents, facts, expected, folders, asked)
            verdicts = sorted(judge(seen, _still_there(suspects, folders)), key=lambda each: each.file.path)
            if self.approved is not None:
                verdicts = only_approved(verdicts, self.approved)
        except (CorruptMetadata, UnsupportedTable, NotFound) as error:
            doubtful.append(str(error))
        remove = sum(verdict.fate is OrphanFate.REMOVE for verdict in verdicts)
        share = self.settings[keys.ORPHANS_MAX_SHARE]
        doubtful += tripped(report.files_seen, len(verdicts), remove, share)
        before = self._before_ms(facts.timeline)
        return attrs.evolve(
            report,
            other_tables=tuple(sorted({*report.other_tables, *others})),
            verdicts=tuple(verdicts),
            doubts=tuple(doubtful),
            older_than_ms=before,
            # An empty folder may be one whose files are lost, which whoever looks into the doubt still wants to see.
            empty_folders=() if doubtful or self.approved is not None else report.empty_folders,
        )

    def _facts(
        self,
        contents: Contents,
        paths: frozenset[str],
        times: frozenset[str] | None = None,
        known: Sequence[InstantFacts] = (),
    ) -> TableFacts:
        """About these partitions; *times* as for `FewFiles`, *known* as for `gather`."""
        has_metadata = FILES_PARTITION in self.table.metadata_partitions
        return gather(contents, self.table, metadata=has_metadata, few=FewFiles(paths, times), known=known)

    def _not_its_own(self, listed: Mapping[str, Iterable[Entry]], known: Iterable[str]) -> frozenset[str]:
        """
        Folders at or around those listed whose files are not this table's own.

        Other tables, those that are *known* among them, and what this table or one of them was made from: a
        bootstrapped table shows the files of another folder.
        """
        tables = tables_around(self._storage, listed).union(known)
        sources = (bootstrapped_from(self.table.properties, self._storage.root), *map(self._source_of, sorted(tables)))
        used = {each for each in sources if each is not None and any(is_within(path, [each]) for path in listed)}
        return tables.union(used)

    def _source_of(self, folder: str) -> str | None:
        """What a table below this one was made from, relative to this one; None for nothing that lies in it."""
        path = join_path(folder, PROPERTIES_FILE)
        try:
            properties = parse_properties(self._storage.read(path), path)
        except NotFound:  # it has a `.hoodie` and is no table any more
            return None
        return bootstrapped_from(properties, self._storage.root)

    def _surroundings(
        self,
        contents: Contents,
        facts: TableFacts,
        expected: Expectation,
        folders: Mapping[str, Mapping[str, Entry]],
        asked: Mapping[str, Collection[str]],
    ) -> Surroundings:
        timeline = facts.timeline
        table_facts = load_facts(timeline, contents)
        listed = None
        if FILES_PARTITION in self.table.metadata_partitions and self.settings[keys.METADATA_ENABLED] is not False:
            metadata = MetadataTable(self._storage, self._store.clock)
            with MetadataReader(metadata, timeline) as reader:
                listed = {path: frozenset(reader.files(path)) for path in folders}
        return Surroundings(
            expected=expected,
            facts=facts,
            undone=undone_writes(contents, timeline),
            cleaned=_cleaned(contents, timeline),
            fates={
                path: judge_partition_files(table_facts, path, files, about=asked[path])
                for path, files in folders.items()
            },
            listed=listed,
            alive=frozenset(pulses(self._storage, self._store.clock, Rhythm.of(self.settings))),
            marked=frozenset(_marked(self._storage, timeline)),
            before_ms=self._before_ms(timeline),
            zone=self._store.zone,
        )

    def _before_ms(self, timeline: Timeline) -> int:
        """Files from before this time are old enough: the age asked for, and older than every write that has begun."""
        now = self.now or self._store.clock.now()
        age = self.settings[keys.ORPHANS_OLDER_THAN] if self.older_than is None else self.older_than
        times = [now - min(age, now - EPOCH)]  # an age may reach beyond the calendar
        for instant in timeline.writes.pending():
            if instant.state is not State.INFLIGHT:
                continue  # a plan that nobody carries out yet must not keep files for ever
            try:
                times.append(parse_instant_time(instant.requested_time, self._store.zone))
            except ValueError:
                continue
        return int(min(times).timestamp() * 1000)

    # --- removing ------------------------------------------------------------------------------------------------
    def _refuse(self, report: OrphanReport) -> None:
        if report.doubts and (report.to_remove or not report.verdicts):
            raise RefusedError(
                f"{self._storage.root}: no file was removed: {'; '.join(report.doubts)}. Look at hudi-py orphans "
                "--dry-run and hudi-py check"
            )

    def _remove(self, report: OrphanReport, permit: Permit) -> OrphanReport:
        permit.check()
        # The oldest first, so that runs with a limit come to an end although new orphans appear.
        turns = in_turns(each.file for each in sorted(report.to_remove, key=rank))
        now = set([path for turn in turns for path in turn][: self.max_deletes])
        chosen = [each for each in report.to_remove if each.file.path in now]
        quarantine = None
        deleter: Deleter = Unlink()
        if self.action is OrphanAction.QUARANTINE and chosen:
            manifest = self._manifest(chosen)
            # Before the first move: a file in quarantine that no manifest lists could never be put back.
            store_manifest(self._storage, manifest)
            quarantine = manifest.folder
            deleter = quarantine_in(manifest.files_folder, manifest.tag)
        outcomes: dict[str, Deletion] = {}
        failed: dict[str, str] = {}
        for turn in turns:
            held = {path: why for path, earlier in turn.items() if path in now and (why := _held_back(earlier, failed))}
            paths = [path for path in turn if path in now and path not in held]
            failed |= held
            for part in permit.in_parts(paths, before=len(outcomes)):
                gone = () if deleter.undoable_from else _folders_of(part)
                with noted(self._storage, gone, self._store.clock):
                    removed = deleter.remove(self._storage, part)
                failed |= {path: each.message for path, each in removed.items() if isinstance(each, StorageFailure)}
                outcomes |= removed
        done = [path for path, each in outcomes.items() if each is True or isinstance(each, SideFileLeft)]
        emptied = tuple(path for path in report.empty_folders if self._storage.delete_empty(path))
        log.info("orphans.removed", files=len(done), failed=len(failed), folders=len(emptied), quarantine=quarantine)
        return attrs.evolve(
            report,
            done=tuple(sorted(done)),
            failed=failed,
            left=len(report.to_remove) - len(chosen),
            removed_folders=emptied,
            quarantine=quarantine,
        )

    def _manifest(self, chosen: list[OrphanVerdict]) -> Manifest:
        now = self._store.clock.now()
        made_ms = int(now.timestamp() * 1000)
        return Manifest(
            name=free_name(self._storage, f"orphans-{format_instant_time(now.astimezone(self._store.zone))}"),
            kind="orphans",
            made_ms=made_ms,
            until_ms=made_ms + int(self.settings[keys.QUARANTINE_GRACE].total_seconds() * 1000),
            files=sizes_in((each.file.partition_path, each.file.name, each.file.size_bytes) for each in chosen),
            reasons={each.file.path: each.reason for each in chosen},
            tag=self.settings[keys.QUARANTINE_TAG],
        )

    @property
    def _store(self) -> TimelineStore:
        return self.contents.store

    @property
    def _storage(self) -> Storage:
        return self.contents.store.storage


def _files(entries: Iterable[Entry]) -> dict[str, Entry]:
    return {entry.name: entry for entry in entries if not entry.is_folder}


def _folders_of(paths: Iterable[str]) -> frozenset[str]:
    return frozenset(path.rpartition("/")[0] for path in paths)


def _held_back(earlier: Iterable[str], failed: Mapping[str, str]) -> str:
    """Why a log file stays: one that it may undo is still there. ``""`` if it may go."""
    there = next((path for path in earlier if path in failed), None)
    return "" if there is None else f"it may undo blocks of {there}, which is still there"


def _still_there(suspects: Iterable[OrphanFile], folders: Mapping[str, Mapping[str, Entry]]) -> Iterator[OrphanFile]:
    """The suspects that still exist, with their present size and age; an inventory may be days old."""
    for suspect in suspects:
        entry = folders[suspect.partition_path].get(suspect.name)
        if entry is not None:
            yield attrs.evolve(suspect, size_bytes=entry.size_bytes or 0, modified_ms=entry.modified_ms)


def _time_in(file: OrphanFile) -> str:
    parsed = parse_data_file(file.name)
    return "" if parsed is None else parsed.instant_time


def _cleaned(contents: Contents, timeline: Timeline) -> dict[str, dict[str, str]]:
    """Files that completed cleans recorded, by partition path and name, to the clean."""
    found: dict[str, dict[str, str]] = {}
    cleans: Iterable[Instant] = timeline.completed(Action.CLEAN)
    for instant, content in contents_of(contents, cleans):
        if isinstance(content, CleanMetadata):
            for path, done in content.partitions.items():
                names = dict.fromkeys(done.delete_path_patterns, instant.requested_time)
                found.setdefault(path, {}).update(names)
    return found


def _marked(storage: Storage, timeline: Timeline) -> Iterator[tuple[str, str]]:
    """Partition path and name of each file that a pending write has a marker for."""
    for instant in timeline.pending():
        for marker in read_markers(storage, instant.requested_time) or ():
            yield marker.partition_path, marker.file_name

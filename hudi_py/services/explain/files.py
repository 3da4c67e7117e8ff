"""
`explain` for files: finds the files in question and reads what the explanation needs. Nothing is written.

Every file in the folders gets an answer, also those that no planner looks at: files of pending writes, files of unknown
instants, partition metafiles, and files that do not belong to a Hudi table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import attrs

from hudi_py.errors import ConfigError, CorruptMetadata, NotFound
from hudi_py.fsview.listing import FolderListing
from hudi_py.fsview.loader import load_context, load_savepoints
from hudi_py.model.files import PARTITION_METAFILE, BaseFile, FileSlice, LogFile, join_path, parse_data_file
from hudi_py.model.instant import Action, Instant
from hudi_py.model.instant_time import iso_utc
from hudi_py.model.records import SavepointMetadata
from hudi_py.model.store_names import S3_SCHEMES
from hudi_py.services.clean.planning.situation import Situation
from hudi_py.services.clean.planning.stored_plan import planned_names
from hudi_py.services.clean.retention.policy import PartitionJudgement, Reason
from hudi_py.services.clean.service import CleanService
from hudi_py.services.explain.deleted import deletions_of, removals_of
from hudi_py.services.explain.explain import (
    Awaited,
    Need,
    SliceExplanation,
    Surroundings,
    explain_partition,
    held_by,
    holders,
)
from hudi_py.storage.base import Entry
from hudi_py.timeline.archive import load_archived


class _NothingFound(ConfigError):
    """The table has nothing of this name."""


ORPHAN = "its instant is neither on the timeline nor archived"


@attrs.frozen(kw_only=True)
class FileExplanation:
    """
    Why one file is kept or deleted.

    Args:
        path: Path relative to the table.
        kind: ``base file``, ``log file``, ``partition metafile`` or ``unknown file``.
        removable: Whether the next clean that is due deletes it.
        rule: The rule that decides.
        also: What else protects it, and other facts about it.
        written_by: The instant that wrote it; None if there is none or it is unknown.
        origin: ``completed``, ``requested``, ``inflight``, ``archived``, ``orphan`` or ``unknown``.
        conditions: What must happen before it is deleted; empty if the next clean deletes it.
        deleted_by: The clean, rollback or restore that deleted it, of a file that is not there any more.
        quarantine: The search for orphans that moved it into quarantine.
    """

    path: str
    kind: str
    size_bytes: int | None = None
    file_id: str | None = None
    base_instant_time: str | None = None
    removable: bool = False
    rule: str
    also: tuple[str, ...] = ()
    written_by: Instant | None = None
    origin: str = "unknown"
    replaced_by: str | None = None
    conditions: tuple[Awaited, ...] = ()
    deleted_by: Instant | None = None
    quarantine: str | None = None

    @property
    def is_gone(self) -> bool:
        """Whether it is not in the table any more."""
        return self.deleted_by is not None or self.quarantine is not None


@attrs.frozen(kw_only=True)
class Explanation:
    """
    The answer to one question.

    Args:
        target: The file, file group or partition in question.
        retention: The policy as a sentence.
        earliest: Requested time of the earliest instant to retain, if the policy has one.
        scope: Which partitions the next clean looks at, and why.
        files: Files by path.
    """

    target: str
    retention: str
    earliest: str | None
    scope: str
    files: tuple[FileExplanation, ...]


def explain(service: CleanService, target: str) -> Explanation:
    """
    Explain the files of a target.

    Args:
        target: A file (path, relative or below the table's base path, or bare name), a file id, or a partition. Also
            one that is gone.

    Raises:
        ConfigError: The table has no such file, file group or partition.
        CorruptMetadata: An instant that the answer needs does not decode.
    """
    explainer = Explainer(service)
    try:
        files = [each for path, entries in explainer.find(target) for each in explainer.partition(path, entries)]
    # Perhaps a clean deleted it. Looked for last, because archived cleans are read, too.
    except _NothingFound:
        files = list(explainer.deleted(target))
        if not files:
            raise
    seen = explainer.situation
    return Explanation(
        target=target,
        retention=service.config.retention,
        earliest=None if seen.earliest is None else seen.earliest.requested_time,
        scope=seen.scope.reason,
        files=tuple(sorted(files, key=lambda each: each.path)),
    )


class Explainer:
    """Explains files of one table; `hudi_py.services.usage` uses one explainer for all of them."""

    def __init__(self, service: CleanService) -> None:
        self._service = service
        self._store = service.contents.store
        self._folders = FolderListing(self._store.storage)
        self.situation: Situation = service.planner.situation(to_read=True)
        self._context = load_context(self.situation.timeline, service.contents, for_planning=True)

    # --- finding -------------------------------------------------------------------------------------------------
    def find(self, target: str) -> Iterator[tuple[str, list[Entry]]]:
        """Partitions with the files in question."""
        name = self._relative(target)
        found = False
        listing = self.situation.listing
        # With a metadata table the folders are walked nevertheless: only they show files that it does not list.
        named = () if listing.is_fresh else (path for path, _ in listing.walk())
        for path, entries in self._folders.walk(details=True, named=named):
            wanted = entries if path == name else [entry for entry in entries if _is_named(entry.name, path, name)]
            if wanted or path == name:
                found = True
                yield path, wanted
        if not found:
            raise _NothingFound(
                f"{self._store.storage.root} has no file, file group or partition {name!r}, and no clean is known that "
                "deleted it, nor a rollback or restore; see hudi-py files"
            )

    def deleted(self, target: str) -> Iterator[FileExplanation]:
        """Explain files that a clean deleted; of others, what else took them away."""
        name, contents = self._relative(target), self._service.contents

        def is_wanted(path: str, file: str) -> bool:
            return path == name or _is_named(file, path, name)

        is_one = parse_data_file(name.rpartition("/")[2]) is not None
        deletions = deletions_of(contents, self._service.table, is_wanted, is_one=is_one)
        for deletion in deletions:
            yield _gone(deletion.path, str(deletion), deletion.clean, deletion.note)
        if deletions and is_one:
            return
        told = {each.path for each in deletions}
        for removal in removals_of(contents, self._service.table, is_wanted, is_one=is_one):
            if removal.path not in told:
                yield _gone(removal.path, removal.why, removal.by, removal.note, quarantine=removal.quarantine)

    def _relative(self, target: str) -> str:
        # Users paste paths as logs and plans show them: plans of Hudi have schemes (rule A-57), those of Hadoop.
        for prefix in _spellings(self._store.storage.root):
            if target == prefix or target.startswith(f"{prefix}/"):
                target = target[len(prefix) :]
        name = target.strip("/")
        return "" if name == "." else name

    # --- explaining ----------------------------------------------------------------------------------------------
    def partition(self, path: str, wanted: Iterable[Entry]) -> Iterator[FileExplanation]:
        """Explain the wanted files of one partition."""
        judged, listed = self.judged(path)
        slices: dict[str, SliceExplanation] = {
            name: each
            for each in explain_partition(
                self._context,
                judged,
                self.situation.protection,
                self._around,
                not_examined=self.not_examined(path),
            )
            for name in each.file_slice.file_names
        }
        for entry in wanted:
            explained = slices.get(entry.name)
            # Not part of any committed slice: no planner has a verdict on it.
            if explained is None:
                yield self.outside(path, entry, listed)
            else:
                yield self._of_slice(path, entry, explained)

    def judged(
        self, path: str, there: Iterable[Entry] | None = None
    ) -> tuple[PartitionJudgement, frozenset[str] | None]:
        """
        The planner's verdicts of one partition, and the names of the files that the metadata table lists there.

        Args:
            path: Of the partition.
            there: The files in its folder, if they have been listed already.

        Returns:
            None in the place of the names where the folders are listed.
        """
        listing = self.situation.listing
        if listing.is_fresh:
            entries = self._folders.partition(path, details=True) if there is None else there
            return self.situation.judge(path, entries, self._service.config), None
        known = listing.partition(path, details=True)
        return self.situation.judge(path, known, self._service.config), frozenset(entry.name for entry in known)

    def _of_slice(self, path: str, entry: Entry, explained: SliceExplanation) -> FileExplanation:
        parsed = parse_data_file(entry.name)
        assert parsed is not None
        written_by, origin = self.writer(path, parsed)
        also = explained.also if origin != "orphan" else (*explained.also, ORPHAN)
        rule, conditions = explained.rule, explained.conditions
        if not explained.removable and self.is_uncommitted(path, parsed):
            # In a slice that readers see, but none of them reads it: neither retention nor the slice keeps it.
            rule, conditions = Reason.UNCOMMITTED.value, (Awaited(Need.PENDING, str(written_by)),)
        planned_by = self._planned.get(join_path(path, entry.name))
        if planned_by is not None:
            also = (*also, f"the pending clean {planned_by} is going to delete it")
        return FileExplanation(
            path=join_path(path, entry.name),
            kind=_kind(parsed),
            size_bytes=entry.size_bytes,
            file_id=parsed.file_id,
            base_instant_time=explained.file_slice.base_instant_time,
            removable=explained.removable,
            rule=rule,
            also=also,
            written_by=written_by,
            origin=origin,
            replaced_by=explained.replaced_by,
            conditions=conditions,
        )

    def outside(self, path: str, entry: Entry, listed: frozenset[str] | None) -> FileExplanation:
        """A file outside of all committed slices: no clean deletes it."""
        full, parsed = join_path(path, entry.name), parse_data_file(entry.name)
        if parsed is None:
            is_metafile = entry.name.startswith(PARTITION_METAFILE)
            rule = "marks the folder as a partition" if is_metafile else "no file of a Hudi table"
            never = "it is deleted with its partition" if is_metafile else "delete it by hand if you do not need it"
            kind = "partition metafile" if is_metafile else "unknown file"
            return FileExplanation(
                path=full, kind=kind, size_bytes=entry.size_bytes, rule=rule, conditions=(_never(never),)
            )
        written_by, origin = self.writer(path, parsed)
        held = [
            held_by(time, self._around)
            for time in holders(FileSlice(path, parsed.file_id, "", *_parts(parsed)), self._around.savepoints)
        ]
        if written_by is not None and written_by.is_pending:
            rule, way = Reason.UNCOMMITTED.value, Awaited(Need.PENDING, str(written_by))
        elif origin == "orphan":
            rule, way = f"{ORPHAN}: left by a write that was undone", _never("delete it when no writer is running")
        elif listed is not None and entry.name not in listed:
            rule = "the metadata table does not list it, so no reader and no planner sees it"
            way = _never("delete it when no writer is running")
        elif isinstance(parsed, LogFile):
            rule, way = "on a slice that is not committed", _never("a rollback of the slice's write deletes it")
        else:
            rule = "left by a task that was retried: another file of the same instant counts"
            way = _never("delete it when no writer is running")
        return FileExplanation(
            path=full,
            kind=_kind(parsed),
            size_bytes=entry.size_bytes,
            file_id=parsed.file_id,
            base_instant_time=parsed.instant_time if isinstance(parsed, BaseFile) else None,
            rule=rule,
            also=tuple(held),
            written_by=written_by,
            origin=origin,
            conditions=(way,),
        )

    # --- who wrote it --------------------------------------------------------------------------------------------
    def writer(self, path: str, parsed: BaseFile | LogFile) -> tuple[Instant | None, str]:
        """The instant that wrote a file, and its `FileExplanation.origin`."""
        # The time in its name is that of the slice (rules/data-files 9.1).
        if isinstance(parsed, LogFile) and self._context.log_naming.tells_slice:
            found = self.log_writers(parsed.instant_time).get(join_path(path, parsed.name))
            return (None, "unknown") if found is None else (found, found.state.name.lower())
        active = self.situation.timeline.writes.find(parsed.instant_time)
        if active is not None:
            return active, active.state.name.lower()
        archived = self._archived.get(parsed.instant_time)
        return (archived, "archived") if archived is not None else (None, "orphan")

    def is_uncommitted(self, path: str, parsed: BaseFile | LogFile) -> bool:
        """Whether a write that is not completed has added a log file to a committed slice."""
        if not isinstance(parsed, LogFile):
            return False
        written_by, _ = self.writer(path, parsed)
        return written_by is not None and written_by.is_pending

    def log_writers(self, since: str) -> Mapping[str, Instant]:
        """Path of each log file to the delta commit that wrote it, which in layout 1 only the delta commits tell."""
        found: dict[str, Instant] = {}
        # Decodes every delta commit since the slice began, so only explanations of log files pay for it.
        for instant in self.situation.timeline.completed(Action.DELTA_COMMIT):
            if instant.requested_time < since:
                continue
            for path, stats in self._service.contents.commit(instant).partition_to_write_stats.items():
                for stat in stats:
                    if stat.path is not None:
                        # The first one created the file; in layout 1 later ones append to it.
                        found.setdefault(join_path(path, stat.path.rpartition("/")[2]), instant)
        return found

    @cached_property
    def _archived(self) -> Mapping[str, Instant]:
        archived = load_archived(self._store.storage, self._service.table)
        return {instant.requested_time: instant for instant in archived.writes}

    # --- surroundings --------------------------------------------------------------------------------------------
    @cached_property
    def _around(self) -> Surroundings:
        seen = self.situation
        contents = self._service.contents
        made = {
            instant.requested_time: contents.savepoint(instant) for instant in seen.timeline.completed(Action.SAVEPOINT)
        }
        return Surroundings(
            timeline=seen.timeline,
            table_commits=len(seen.table_commits),
            config=self._service.config,
            earliest=None if seen.earliest is None else seen.earliest.requested_time,
            zone=self._store.zone,
            savepoints=load_savepoints(seen.timeline, contents),
            keeps=seen.keeps,
            leases=seen.leases,
            savepoint_notes={time: _note(each) for time, each in made.items()},
            always=tuple(self._always()),
        )

    def _always(self) -> Iterator[Awaited]:
        pending = self.situation.timeline.pending(Action.CLEAN)
        if pending and not self._service.config.allow_multiple:
            yield Awaited(Need.PENDING_CLEAN, pending[0].requested_time)
        due = self.situation.trigger
        if not due.is_due:
            yield Awaited(Need.TRIGGER, str(due.required - due.commits))

    @cached_property
    def _planned(self) -> Mapping[str, str]:
        """Files that a pending clean is going to delete, with the time of that clean."""
        planned: dict[str, str] = {}
        for instant in self.situation.timeline.pending(Action.CLEAN):
            try:
                record = self._service.contents.clean_plan(instant)
            except (CorruptMetadata, NotFound):
                continue  # `recover` reports damaged cleans; they do not change the answer
            source = self._store.path(instant)
            for partition, names in planned_names(record, self._store.storage.root, source).items():
                planned.update((join_path(partition, name), instant.requested_time) for name in names)
        return planned

    @cached_property
    def _examined(self) -> frozenset[str]:
        return frozenset(self._service.planner.scope_partitions(self.situation.scope))

    def not_examined(self, path: str) -> str | None:
        """Why the next clean does not look at a partition; None if it does."""
        scope = self.situation.scope
        if scope.everything or path in self._examined:
            return None
        return f"the next one looks at {scope.reason}"


def _spellings(root: str) -> tuple[str, ...]:
    """A location as readers name it in their errors."""
    scheme, separator, rest = root.partition("://")
    if not separator:
        return root, f"file://{root}", f"file:{root}"
    schemes = S3_SCHEMES if scheme in S3_SCHEMES else (scheme,)
    return tuple(f"{each}://{rest}" for each in schemes)


def _gone(path: str, rule: str, by: Instant | None, note: str | None, quarantine: str | None = None) -> FileExplanation:
    """Explain a file that is not there any more; *note* says whether it can be put back."""
    parsed = parse_data_file(path.rpartition("/")[2])
    return FileExplanation(
        path=path,
        kind="unknown file" if parsed is None else _kind(parsed),
        file_id=None if parsed is None else parsed.file_id,
        rule=rule,
        also=() if note is None else (note,),
        deleted_by=by,
        quarantine=quarantine,
    )


def _is_named(file_name: str, partition_path: str, wanted: str) -> bool:
    if wanted in (file_name, join_path(partition_path, file_name)):
        return True
    parsed = parse_data_file(file_name)
    return parsed is not None and wanted in (parsed.file_id, join_path(partition_path, parsed.file_id))


def _parts(parsed: BaseFile | LogFile) -> tuple[BaseFile | None, tuple[LogFile, ...]]:
    return (parsed, ()) if isinstance(parsed, BaseFile) else (None, (parsed,))


def _kind(parsed: BaseFile | LogFile) -> str:
    return "base file" if isinstance(parsed, BaseFile) else "log file"


def _never(why: str) -> Awaited:
    return Awaited(Need.NEVER, why)


def _note(savepoint: SavepointMetadata) -> str:
    """Name, creator, purpose and expiry of a savepoint, as far as it has them."""
    until = "" if savepoint.expires_at_ms is None else f"until {iso_utc(savepoint.expires_at_ms)}"
    made = ": ".join(filter(None, (savepoint.savepointed_by, savepoint.comments)))
    return ", ".join(filter(None, (savepoint.name, made, until)))

"""
Which clean deleted a file, as the timeline and its archive tell it; and of others, what else took it away.

A completed clean names the files of each partition, and the policy by which it chose them; rollbacks and restores name
theirs. Archival keeps that, so the answer outlives them on the active timeline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.model.files import join_path
from hudi_py.model.instant import Action, Instant
from hudi_py.model.instant_time import iso_utc
from hudi_py.services.clean.planning.plan import APPROVED_BY, RUN_BY
from hudi_py.timeline.archive import load_archived_contents
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.quarantine import load_manifest, removals

_UNKNOWN: Final = "who ran it is not on record, only cleans of hudi_py in a table with a retention policy say that"


@attrs.frozen(kw_only=True)
class Deletion:
    """
    A file that a clean deleted.

    Args:
        path: Relative to the table.
        clean: The completed clean.
        policy: Hudi's name of the policy by which it chose the file.
        earliest: Requested time from which on it kept everything; empty if the policy has no such time.
        approved_by: Who approved the list that it was in; empty if nobody was asked.
        run_by: User, host and process that ran the clean; empty if it does not say, as those of Apache Hudi.
        held_until: Until when the file is in quarantine, in ISO 8601; None if it is not.
        is_archived: Whether the clean is archived, after which it cannot be undone any more.
    """

    path: str
    clean: Instant
    policy: str
    earliest: str = ""
    approved_by: str = ""
    run_by: str = ""
    held_until: str | None = None
    is_archived: bool = False

    @property
    def note(self) -> str | None:
        """Whether the file can come back, as a sentence; None if it is in no quarantine."""
        if self.held_until is None:
            return None
        name = self.clean.requested_time
        if self.is_archived:
            return f"in quarantine until {self.held_until}; clean {name} is archived and cannot be undone any more"
        return f"in quarantine until {self.held_until}; hudi-py undo TABLE {name}"

    def __str__(self) -> str:
        done = "" if self.clean.completion_time is None else f", completed at {self.clean.completion_time}"
        kept = f", which kept what is needed from {self.earliest} on" if self.earliest else ""
        asked = f"; {self.approved_by} approved it" if self.approved_by else ""
        policy = self.policy or "unknown"
        ran = f"; {self.run_by} ran it" if self.run_by else f"; {_UNKNOWN}"
        return f"deleted by clean {self.clean.requested_time}{done}, by the policy {policy}{kept}{asked}{ran}"


@attrs.frozen(kw_only=True)
class Removal:
    """
    A file that something else than a clean took away.

    Args:
        path: Relative to the table.
        why: What took it away, and why, as a sentence.
        by: The rollback or restore; None for a search for orphans.
        quarantine: Name of the removal in quarantine that holds it; None if it was deleted.
        note: How, and until when, it can be put back, as a sentence; None if it cannot.
    """

    path: str
    why: str
    by: Instant | None = None
    quarantine: str | None = None
    note: str | None = None


def removals_of(
    contents: Contents, table: TableConfig, is_wanted: Callable[[str, str], bool], *, is_one: bool
) -> list[Removal]:
    """
    The files that completed rollbacks and restores deleted, and those orphans in quarantine; the newest removal first.

    Arguments, use of the archive and errors as `deletions_of`.
    """
    undoings = (Action.ROLLBACK, Action.RESTORE)
    active = reversed(contents.store.load().completed(*undoings))
    told = [
        *_set_aside(contents, is_wanted),
        *(each for instant in active for each in _undone(instant, _document(contents, instant), is_wanted)),
    ]
    if not (told and is_one):
        for instant, document in _archived(contents, table, *undoings):
            told += _undone(instant, document, is_wanted)
    found: dict[str, Removal] = {}
    for each in told:
        found.setdefault(each.path, each)
    return list(found.values())


def _undone(instant: Instant, document: Any, is_wanted: Callable[[str, str], bool]) -> Iterator[Removal]:
    """Of a rollback or restore, which is plain data under the names on disk."""
    content = _inner(document, "hoodieRollbackMetadata") or {}
    rollbacks = [content]
    if instant.action is Action.RESTORE:  # it has a rollback for each instant that it undid
        rollbacks = [each for some in (content.get("hoodieRestoreMetadata") or {}).values() for each in some]
    for rollback in rollbacks:
        undone = ", ".join(map(str, rollback.get("commitsRollback") or ()))
        for partition, done in (rollback.get("partitionMetadata") or {}).items():
            for name in (str(text).rpartition("/")[2] for text in done.get("successDeleteFiles") or ()):
                if is_wanted(partition, name):
                    why = f"deleted by {instant}, which undid {undone}"
                    yield Removal(path=join_path(partition, name), why=why, by=instant)


def _set_aside(contents: Contents, is_wanted: Callable[[str, str], bool]) -> Iterator[Removal]:
    """Of searches for orphans, whose files are in quarantine; those of cleans are told with the clean."""
    storage = contents.store.storage
    for name in removals(storage):
        try:
            manifest = load_manifest(storage, name)
        except CorruptMetadata:  # `check` reports it
            continue
        for path in () if manifest is None or manifest.kind == "clean" else manifest.paths():
            folder, _, file = path.rpartition("/")
            if manifest is not None and is_wanted(folder, file):
                why = f"moved into quarantine by {name}: {manifest.reasons.get(path, 'no instant knows it')}"
                note = f"in quarantine until {iso_utc(manifest.until_ms)}; hudi-py undo TABLE {name}"
                yield Removal(path=path, why=why, quarantine=name, note=note)


def deletions_of(
    contents: Contents, table: TableConfig, is_wanted: Callable[[str, str], bool], *, is_one: bool
) -> list[Deletion]:
    """
    The files that completed cleans deleted, as far as the timeline knows them; the newest clean first.

    The archive is not read for one file of which the active timeline tells. A file that two cleans name is that of the
    newer one.

    Args:
        contents: The table's timeline.
        table: Its properties.
        is_wanted: Whether a file is asked for, by its partition path and name.
        is_one: Whether that is one file only, not a file group or a partition.

    Raises:
        CorruptMetadata: The archive is damaged.
    """
    active = reversed(contents.store.load().completed(Action.CLEAN))
    found: dict[str, Deletion] = {}
    for clean in active:
        _add(found, _of_document(clean, _document(contents, clean)), is_wanted)
    if not (found and is_one):
        for clean, document in _archived(contents, table, Action.CLEAN):
            _add(found, _of_document(clean, document, is_archived=True), is_wanted)
    return [attrs.evolve(each, held_until=_held_until(contents, each)) for each in found.values()]


def _archived(contents: Contents, table: TableConfig, *actions: Action) -> Iterator[tuple[Instant, Any]]:
    """Completed instants of the archive with what they hold, the newest first."""
    archived = load_archived_contents(contents.store.storage, table)
    wanted = [each for each in archived if each.action in actions and each.is_completed]
    for instant in sorted(wanted, key=lambda each: each.requested_time, reverse=True):
        yield instant, archived[instant]


def _document(contents: Contents, instant: Instant) -> Any:
    """A completed instant of the active timeline as plain data; None if it is damaged or archived meanwhile."""
    try:
        return contents.plain(instant)
    except (CorruptMetadata, NotFound):  # `check` reports it; another one may tell
        return None


def _inner(document: Any, name: str) -> Any:
    """The content of an instant: archived in layout 1, it is one of several."""
    if not isinstance(document, Mapping):
        return None
    inner = document.get(name)
    return inner if isinstance(inner, Mapping) else document


def _add(found: dict[str, Deletion], deletions: Iterable[Deletion], is_wanted: Callable[[str, str], bool]) -> None:
    for each in deletions:
        folder, _, name = each.path.rpartition("/")
        if is_wanted(folder, name):
            found.setdefault(each.path, each)


def _of_document(clean: Instant, document: Any, *, is_archived: bool = False) -> Iterator[Deletion]:
    """Of a clean, which is plain data under the names on disk."""
    content = _inner(document, "hoodieCleanMetadata") or {}
    extra = content.get("extraMetadata") or {}
    for partition, done in (content.get("partitionMetadata") or {}).items():
        for text in (*(done.get("deletePathPatterns") or ()), *(done.get("successDeleteFiles") or ())):
            yield Deletion(
                path=join_path(partition, str(text).rpartition("/")[2]),  # old releases recorded whole paths
                clean=clean,
                policy=str(done.get("policy") or ""),
                earliest=str(content.get("earliestCommitToRetain") or ""),
                approved_by=str(extra.get(APPROVED_BY) or ""),
                run_by=str(extra.get(RUN_BY) or ""),
                is_archived=is_archived,
            )


def _held_until(contents: Contents, deletion: Deletion) -> str | None:
    try:
        manifest = load_manifest(contents.store.storage, deletion.clean.requested_time)
    except CorruptMetadata:
        return None
    is_held = manifest is not None and deletion.path in manifest.paths()
    return iso_utc(manifest.until_ms) if manifest is not None and is_held else None

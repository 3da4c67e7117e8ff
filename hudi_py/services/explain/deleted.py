"""
Which clean deleted a file, as the timeline and its archive tell it; and of others, what else took it away.

A completed clean names the files of each partition, and the policy by which it chose them. Archival keeps that, so the
answer outlives the clean on the active timeline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs

from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata
from hudi_py.model.files import join_path
from hudi_py.model.instant import Action, Instant
from hudi_py.model.instant_time import iso_utc
from hudi_py.model.records import RestoreMetadata, RollbackMetadata
from hudi_py.services.clean.planning.plan import APPROVED_BY, RUN_BY
from hudi_py.timeline.archive import load_archived_contents
from hudi_py.timeline.completions import contents_of
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.quarantine import load_manifest, removals


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
        undo_until: Until when the file can be put back, in ISO 8601; None if it cannot.
    """

    path: str
    clean: Instant
    policy: str
    earliest: str = ""
    approved_by: str = ""
    run_by: str = ""
    undo_until: str | None = None

    def __str__(self) -> str:
        done = "" if self.clean.completion_time is None else f", completed at {self.clean.completion_time}"
        kept = f", which kept what is needed from {self.earliest} on" if self.earliest else ""
        asked = f"; {self.approved_by} approved it" if self.approved_by else ""
        policy = self.policy or "unknown"
        ran = f"; {self.run_by} ran it" if self.run_by else ""
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
        undo_until: Until when it can be put back, in ISO 8601.
    """

    path: str
    why: str
    by: Instant | None = None
    quarantine: str | None = None
    undo_until: str | None = None


def removals_of(contents: Contents, is_wanted: Callable[[str, str], bool]) -> Iterator[Removal]:
    """
    The files that completed rollbacks and restores of the active timeline deleted, and those orphans in quarantine.

    Args:
        contents: The table's timeline.
        is_wanted: As for `deletions_of`.
    """
    storage, timeline = contents.store.storage, contents.store.load()
    for instant, content in contents_of(contents, timeline.completed(Action.ROLLBACK, Action.RESTORE)):
        done: tuple[RollbackMetadata, ...] = (content,) if isinstance(content, RollbackMetadata) else ()
        if isinstance(content, RestoreMetadata):
            done = tuple(each for some in content.rollbacks.values() for each in some)
        for rollback in done:
            for partition, result in rollback.partitions.items():
                for name in (text.rpartition("/")[2] for text in result.success_delete_files):
                    if is_wanted(partition, name):
                        undone = ", ".join(rollback.commits_rollback)
                        yield Removal(
                            path=join_path(partition, name),
                            why=f"deleted by {instant}, which undid {undone}",
                            by=instant,
                        )
    for name in removals(storage):
        try:
            manifest = load_manifest(storage, name)
        except CorruptMetadata:  # `check` reports it
            continue
        # Those of cleans are told with the clean.
        for path in () if manifest is None or manifest.kind == "clean" else manifest.paths():
            folder, _, file = path.rpartition("/")
            if manifest is not None and is_wanted(folder, file):
                why = f"moved into quarantine by {name}: {manifest.reasons.get(path, 'no instant knows it')}"
                yield Removal(path=path, why=why, quarantine=name, undo_until=iso_utc(manifest.until_ms))


def deletions_of(contents: Contents, table: TableConfig, is_wanted: Callable[[str, str], bool]) -> list[Deletion]:
    """
    The files that completed cleans deleted, as far as the timeline knows them; the newest clean first.

    The archive is read only if the active timeline does not tell. A file that two cleans name is that of the newer one.

    Args:
        contents: The table's timeline.
        table: Its properties.
        is_wanted: Whether a file is asked for, by its partition path and name.

    Raises:
        CorruptMetadata: The archive is damaged.
    """
    active = reversed(contents.store.load().completed(Action.CLEAN))
    found = _wanted(_of_active(contents, active), is_wanted)
    if not found:
        archived = load_archived_contents(contents.store.storage, table)
        cleans = [each for each in archived if each.action is Action.CLEAN and each.is_completed]
        cleans.sort(key=lambda each: each.requested_time, reverse=True)
        found = _wanted((each for clean in cleans for each in _of_document(clean, archived[clean])), is_wanted)
    return [attrs.evolve(each, undo_until=_undo_until(contents, each)) for each in found.values()]


def _wanted(deletions: Iterable[Deletion], is_wanted: Callable[[str, str], bool]) -> dict[str, Deletion]:
    found: dict[str, Deletion] = {}
    for each in deletions:
        folder, _, name = each.path.rpartition("/")
        if is_wanted(folder, name):
            found.setdefault(each.path, each)
    return found


def _of_active(contents: Contents, cleans: Iterable[Instant]) -> Iterator[Deletion]:
    for clean in cleans:
        try:
            metadata = contents.clean(clean)
        except CorruptMetadata:  # `check` reports it; another clean may tell
            continue
        for partition, done in metadata.partitions.items():
            for name in dict.fromkeys((*done.delete_path_patterns, *done.success_delete_files)):
                yield Deletion(
                    path=join_path(partition, name),
                    clean=clean,
                    policy=done.policy,
                    earliest=metadata.earliest_commit_to_retain,
                    approved_by=metadata.extra_metadata.get(APPROVED_BY) or "",
                    run_by=metadata.extra_metadata.get(RUN_BY) or "",
                )


def _of_document(clean: Instant, document: Any) -> Iterator[Deletion]:
    """Of an archived clean, which is plain data under the names on disk, in layout 1 as one of several contents."""
    inner = document.get("hoodieCleanMetadata") if isinstance(document, Mapping) else None
    content: Any = inner if isinstance(inner, Mapping) else document
    partitions = content.get("partitionMetadata") if isinstance(content, Mapping) else None
    extra = content.get("extraMetadata") if isinstance(content, Mapping) else None
    for partition, done in (partitions or {}).items():
        for text in (*(done.get("deletePathPatterns") or ()), *(done.get("successDeleteFiles") or ())):
            yield Deletion(
                path=join_path(partition, str(text).rpartition("/")[2]),  # old releases recorded whole paths
                clean=clean,
                policy=str(done.get("policy") or ""),
                earliest=str(content.get("earliestCommitToRetain") or ""),
                approved_by=str((extra or {}).get(APPROVED_BY) or ""),
                run_by=str((extra or {}).get(RUN_BY) or ""),
            )


def _undo_until(contents: Contents, deletion: Deletion) -> str | None:
    try:
        manifest = load_manifest(contents.store.storage, deletion.clean.requested_time)
    except CorruptMetadata:
        return None
    is_held = manifest is not None and deletion.path in manifest.paths()
    return iso_utc(manifest.until_ms) if manifest is not None and is_held else None

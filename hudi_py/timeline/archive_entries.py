"""
Reads the entries of the archive as they are stored: log files in layout 1, the Parquet history in layout 2.

Only here are the two forms told apart by their files; `archive` asks questions about what was archived.
Source: rules/timeline 5.2 and 5.3; Hudi ``ArchivedTimelineV1``, ``ArchivedTimelineLoaderV2``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar

import attrs

from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.formats.archive_log import ArchivedEntry, archive_file_number, decode_archive_log, latest_entries
from hudi_py.formats.instant_content import decode_content
from hudi_py.formats.lsm_history import (
    VERSION_FILE,
    HistoryFile,
    decode_manifest,
    decode_version,
    manifest_name,
    manifest_number,
    read_history,
)
from hudi_py.model.instant import Action, Instant, State
from hudi_py.storage.base import Storage
from hudi_py.versions.format import ArchiveForm

Fields: TypeAlias = Mapping[str, Any]
"""Content of an instant: fields under their names on disk."""
Read = TypeVar("Read")


class StoredInstant(NamedTuple):
    """
    One archived instant in one state, with its content as it is stored.

    Args:
        written_at: When its timeline file was written, in the time zone of the writer; None where that is not stored,
            as in layout 2.
    """

    instant: Instant
    content: Any
    source: str
    written_at: str | None = None

    def value(self) -> Any:
        """Fields under their names on disk; None if it was archived without content."""
        if not isinstance(self.content, bytes):
            return self.content
        return decode_content(self.content, f"{self.source}: {self.instant.requested_time}").value or None


def completed_contents(
    storage: Storage,
    config: TableConfig,
    actions: frozenset[str],
    read: Callable[[Fields], Read],
    since: str = "",
) -> Iterator[tuple[str, Read | None]]:
    """Requested times of completed instants since a time, with what *read* returns for their content; None without."""
    for instant in stored_instants(storage, config, with_contents=True, since=since, actions=actions):
        if instant.instant.is_completed:
            fields = instant.value()
            try:
                yield instant.instant.requested_time, None if fields is None else read(fields)
            except (AttributeError, KeyError, TypeError) as error:
                raise CorruptMetadata(
                    f"{instant.source}: {instant.instant} lacks a field that it has to have: {error}"
                ) from error


def stored_instants(
    storage: Storage,
    config: TableConfig,
    *,
    with_contents: bool = False,
    since: str = "",
    until: str | None = None,
    actions: frozenset[str] | None = None,
) -> Iterator[StoredInstant]:
    """The entry that counts of each instant, in layout 1 of each state, with requested times in a range."""
    folder = config.history_folder
    names = [entry.name for entry in storage.list(folder) if not entry.is_folder]

    def is_wanted(time: str, action: str) -> bool:
        return since <= time and (until is None or time <= until) and (actions is None or action in actions)

    if config.format.archive is ArchiveForm.LOGS:
        logs = archive_logs(storage, folder, names)
        files = (tuple(e for e in file if is_wanted(e.requested_time, e.action)) for file in logs)
        # All entries before the first is returned: an instant may be in several files, and the newest entry counts.
        for e in latest_entries(files if with_contents else map(_without_payloads, files)):
            instant = Instant(e.requested_time, _action(e.action, folder), State[e.state])
            yield StoredInstant(instant, e.payload, folder, e.state_transition_time)
        return
    seen: set[tuple[str, str]] = set()  # an instant may be in two files: one run archived it again after a crash
    for file in newest_snapshot(storage, folder, names).files:
        first, last = file.time_range
        # The names of history files have their range (rules/timeline 5.3), so most are never opened.
        if last < since or (until is not None and first > until):
            continue
        source = f"{storage.root}/{folder}/{file.name}"
        with storage.open_read(f"{folder}/{file.name}") as stream:
            for row in read_history(stream, source, with_contents=with_contents):
                key = (row.requested_time, row.action)
                if is_wanted(*key) and key not in seen:
                    seen.add(key)
                    action = _action(row.action, source)
                    instant = Instant(row.requested_time, action, State.COMPLETED, row.completion_time)
                    yield StoredInstant(instant, row.metadata, source)


def archive_logs(storage: Storage, folder: str, names: list[str]) -> Iterator[tuple[ArchivedEntry, ...]]:
    """Entries of the archive's log files, newest file first."""
    numbered = ((number, name) for name in names if (number := archive_file_number(name)) is not None)
    for _, name in sorted(numbered, reverse=True):
        yield decode_archive_log(storage.read(f"{folder}/{name}"), f"{storage.root}/{folder}/{name}")


def _without_payloads(entries: tuple[ArchivedEntry, ...]) -> tuple[ArchivedEntry, ...]:
    """Entries without contents, so that memory does not hold those of the whole archive."""
    return tuple(attrs.evolve(entry, record_name=None, payload=None) for entry in entries)


class HistorySnapshot(NamedTuple):
    """The history of layout 2 at one time: number of its manifest (0 if there is none), and its files."""

    number: int
    files: tuple[HistoryFile, ...]


def newest_snapshot(storage: Storage, folder: str, names: Iterable[str]) -> HistorySnapshot:
    """
    The snapshot that ``_version_`` names, or the largest manifest if that file is missing or damaged.

    Args:
        storage: Storage of the table.
        folder: Folder of the history.
        names: Names in that folder.

    Raises:
        CorruptMetadata: The manifest is damaged.
    """
    # Neither the largest manifest alone (an interrupted run may have written it) nor ``_version_`` alone (it is
    # replaced in place, so it may be torn) can be trusted: the first is used only if the second cannot be read.
    there = frozenset(names)
    known = sorted(number for name in there if (number := manifest_number(name)) is not None)
    if not known:
        # Written after a manifest: taken for an empty history, the next archival would overwrite it.
        if VERSION_FILE in there:
            raise CorruptMetadata(f"{storage.root}/{folder}: {VERSION_FILE} exists, but no manifest of the history")
        return HistorySnapshot(0, ())
    try:
        newest = decode_version(storage.read(f"{folder}/{VERSION_FILE}"), f"{storage.root}/{folder}/{VERSION_FILE}")
    except (NotFound, CorruptMetadata):
        newest = known[-1]
    path = f"{folder}/{manifest_name(newest)}"
    return HistorySnapshot(newest, decode_manifest(storage.read(path), f"{storage.root}/{path}"))


def _action(word: str, source: str) -> Action:
    try:
        return Action(word)
    except ValueError as error:
        raise CorruptMetadata(f"{source}: unknown action {word!r}; the archive is newer than hudi_py") from error

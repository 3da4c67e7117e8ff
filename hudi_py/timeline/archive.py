"""
Reading the archived timeline: log files in layout 1, the Parquet history in layout 2.

Source: rules/timeline 5.2 and 5.3; Hudi ``ArchivedTimelineV1``, ``ArchivedTimelineLoaderV2``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

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
from hudi_py.model.files import parse_base_file
from hudi_py.model.instant import COMPARABLE_ACTION, Action, Instant, State
from hudi_py.storage.base import Storage
from hudi_py.timeline.timeline import Timeline
from hudi_py.versions.format import ArchiveForm

_Fields: TypeAlias = Mapping[str, Any]
_Read = TypeVar("_Read")
_COMMITS: Final = frozenset({"commit", "deltacommit", "replacecommit"})
_REPLACING: Final = frozenset({"replacecommit"})
_CLEANS: Final = frozenset({"clean"})
_ROLLBACKS: Final = frozenset({"rollback"})


def load_archived(storage: Storage, config: TableConfig) -> Timeline:
    """
    The archived timeline, ascending; layout 1 keeps an entry per state, layout 2 one per instant.

    Raises:
        CorruptMetadata: A file of the archive is damaged.
    """
    instants = (each.instant for each in _entries(storage, config))
    return Timeline(tuple(sorted(instants, key=_order)))


def has_archive(storage: Storage, config: TableConfig) -> bool:
    """Whether anything was ever archived, as far as the archive's folder tells; costs one listing."""
    names = [entry.name for entry in storage.list(config.history_folder) if not entry.is_folder]
    if config.format.archive is ArchiveForm.LOGS:
        return any(archive_file_number(name) is not None for name in names)
    return VERSION_FILE in names or any(manifest_number(name) is not None for name in names)


def load_archived_contents(storage: Storage, config: TableConfig, time: str | None = None) -> dict[Instant, Any]:
    """
    What archived instants hold, as plain data under the names on disk; None for one that was archived without content.

    Args:
        time: Only the instants that were requested then; default: all.

    Raises:
        CorruptMetadata: A file of the archive is damaged.
    """
    found = _entries(storage, config, with_contents=True, since=time or "", until=time)
    return {each.instant: each.value() for each in found}


def load_archived_commits(storage: Storage, config: TableConfig, after: str, before: str) -> frozenset[str]:
    """
    Requested times of archived completed commits between two times, both excluded.

    Reads as little as tells: in layout 2 the files whose range touches that span, in layout 1 from the newest file back
    to the first whose commits all lie before it, for commits are archived in their order.

    Raises:
        CorruptMetadata: A file that was needed is damaged.
    """
    folder = config.history_folder
    names = [entry.name for entry in storage.list(folder) if not entry.is_folder]
    found: set[str] = set()
    if config.format.archive is ArchiveForm.LOGS:
        for entries in _archive_files(storage, folder, names):
            times = {e.requested_time for e in entries if e.state == "COMPLETED" and e.action in _COMMITS}
            found |= times
            if times and max(times) <= after:
                break
    else:
        for file in newest_snapshot(storage, folder, names).files:
            first, last = file.time_range
            if last > after and first < before:
                with storage.open_read(f"{folder}/{file.name}") as stream:
                    rows = read_history(stream, f"{storage.root}/{folder}/{file.name}")
                    found.update(row.requested_time for row in rows if row.action in _COMMITS)
    return frozenset(time for time in found if after < time < before)


def is_archived(storage: Storage, config: TableConfig, time: str) -> bool:
    """Whether the archive holds the completed commit of that requested time; raises as `load_archived_commits`."""
    return time in load_archived_commits(storage, config, str(int(time) - 1).zfill(len(time)), f"{time}0")


def load_archived_written(storage: Storage, config: TableConfig, after: str, before: str) -> dict[str, frozenset[str]]:
    """
    Partition path to the names of the data files that archived commits between two times wrote, both times excluded.

    Raises:
        CorruptMetadata: A file of the archive is damaged.
    """
    found: dict[str, set[str]] = {}
    for time, written in _completed(storage, config, _COMMITS, _written, after):
        for partition, path, _ in (written or ()) if after < time < before else ():
            found.setdefault(partition, set()).add(path.rpartition("/")[2])
    return {partition: frozenset(names) for partition, names in found.items()}


def load_archived_cleans(storage: Storage, config: TableConfig, since: str) -> Mapping[str, frozenset[str]]:
    """`ArchivedFiles.cleaned`, by cleans requested after *since*; raises as `load_archived_files`."""
    return load_archived_files(storage, config, cleaned_since=since).cleaned


def _deleted(clean: _Fields) -> dict[str, list[str]]:
    partitions = clean.get("partitionMetadata") or {}
    return {
        partition: [path.rpartition("/")[2] for path in done.get("deletePathPatterns") or ()]
        for partition, done in partitions.items()
    }


def load_archived_rollbacks(storage: Storage, config: TableConfig) -> Mapping[str, Mapping[str, str]]:
    """
    What archived rollbacks took back: requested time of the rollback to times and actions, ``""`` for none recorded.

    Raises:
        CorruptMetadata: A file of the archive is damaged.
    """
    return {time: taken for time, taken in _completed(storage, config, _ROLLBACKS, _taken_back) if taken is not None}


def _taken_back(rollback: _Fields) -> dict[str, str]:
    actions = {each["commitTime"]: each["action"] for each in rollback.get("instantsRollback") or ()}
    return {time: actions.get(time, "") for time in rollback.get("commitsRollback") or ()}


def load_archived_replaced(storage: Storage, config: TableConfig) -> Mapping[tuple[str, str], str]:
    """`ArchivedFiles.replaced`; raises as `load_archived_files`."""
    return load_archived_files(storage, config, replaced=True).replaced


def _replaced(commit: _Fields) -> list[tuple[str, str]]:
    partitions = commit.get("partitionToReplaceFileIds") or {}
    return [(partition, file_id) for partition, file_ids in partitions.items() for file_id in file_ids]


class ArchivedCommit(NamedTuple):
    """
    An archived completed commit, deltacommit or replacecommit, not decoded yet.

    Args:
        time: Requested time.
        data: What its completed file held; empty where the archive keeps it in another form (layout 1).
        is_replacing: Whether it may have replaced file groups.
        fields: Decodes it: fields under their names on disk.
    """

    time: str
    data: bytes
    is_replacing: bool
    fields: Callable[[], _Fields]

    def written(self) -> list[str]:
        """Paths of its data files, relative to the table."""
        return [path for _, path, _ in _written(self.fields())]

    def replaced(self) -> list[tuple[str, str]]:
        """(Partition path, file id) of the groups that it replaced."""
        return _replaced(self.fields())


def archived_commits(storage: Storage, config: TableConfig) -> Iterator[ArchivedCommit]:
    """
    All of them, in no order.

    Raises:
        CorruptMetadata: A file of the archive is damaged.
    """
    for each in _entries(storage, config, with_contents=True, actions=_COMMITS):
        if each.instant.is_completed:
            data = each.content if isinstance(each.content, bytes) else b""
            is_replacing = each.instant.action is Action.REPLACE_COMMIT
            yield ArchivedCommit(each.instant.requested_time, data, is_replacing, partial(_fields, each))


def _fields(entry: _Entry) -> _Fields:
    return entry.value() or {}


def archive_bytes(storage: Storage, config: TableConfig) -> int:
    """
    Size of the archive in bytes.

    Raises:
        CorruptMetadata: Its manifest is damaged (layout 2).
    """
    folder = config.history_folder
    if config.format.archive is ArchiveForm.LOGS:
        entries = storage.list(folder, details=True)
        return sum(each.size_bytes or 0 for each in entries if archive_file_number(each.name) is not None)
    names = [entry.name for entry in storage.list(folder) if not entry.is_folder]
    return sum(file.size_bytes for file in newest_snapshot(storage, folder, names).files)


class ArchivedFile(NamedTuple):
    """
    A base file that an archived commit wrote.

    Args:
        name: Of the file.
        time: Instant time in its name.
        size_bytes: As the commit recorded it; 0 when unknown.
    """

    name: str
    time: str
    size_bytes: int


@attrs.frozen
class ArchivedFiles:
    """
    What the archive tells of files and their groups; a group is named by its partition path and file id.

    Args:
        cleaned: Partition path to the names of the files that cleans tried to remove.
        replaced: Each group that a replacecommit replaced, to the newest of their times.
        bases: Each group that commits wrote to, to the newest of its base files there.
        first: Requested time of the oldest instant that was asked; ``""`` where there is none.
    """

    cleaned: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    replaced: Mapping[tuple[str, str], str] = attrs.field(factory=dict)
    bases: Mapping[tuple[str, str], ArchivedFile] = attrs.field(factory=dict)
    first: str = ""


def load_archived_files(
    storage: Storage,
    config: TableConfig,
    *,
    cleaned_since: str | None = None,
    replaced: bool = False,
    bases: bool = False,
    bases_until: str | None = None,
) -> ArchivedFiles:
    """
    What is asked for, in one pass over the archive.

    Args:
        cleaned_since: Only cleans requested after that time tell what was cleaned; None: it is not asked for.
        replaced, bases: Whether that is asked for.
        bases_until: Only commits up to this requested time tell of base files; default: all.

    Raises:
        CorruptMetadata: A file of the archive is damaged.
    """
    actions = (_COMMITS if bases else _REPLACING if replaced else frozenset()) | (
        frozenset() if cleaned_since is None else _CLEANS
    )

    def read(fields: _Fields) -> tuple[dict[str, list[str]], list[tuple[str, str]], list[tuple[str, str, int]]]:
        """Of a clean only the first, of a commit the others; no name on disk belongs to both."""
        return _deleted(fields), _replaced(fields) if replaced else [], _written(fields) if bases else []

    since = cleaned_since if actions == _CLEANS and cleaned_since is not None else ""
    cleaned: dict[str, set[str]] = {}
    groups: dict[tuple[str, str], str] = {}
    newest: dict[tuple[str, str], ArchivedFile] = {}
    first = ""
    for time, told in _completed(storage, config, actions, read, since):
        first = min(first or time, time)
        removed, superseded, written = told or ({}, [], [])
        for partition, names in removed.items() if cleaned_since is not None and time > cleaned_since else ():
            cleaned.setdefault(partition, set()).update(names)
        for group in superseded:
            groups[group] = max(time, groups.get(group, ""))
        for partition, path, size in written if bases_until is None or time <= bases_until else ():
            base = parse_base_file(path.rpartition("/")[2])
            if base is None:
                continue
            known = newest.get((partition, base.file_id))
            if known is None or known.time < base.instant_time:
                newest[partition, base.file_id] = ArchivedFile(base.name, base.instant_time, size)
    return ArchivedFiles({partition: frozenset(names) for partition, names in cleaned.items()}, groups, newest, first)


def _written(commit: _Fields) -> list[tuple[str, str, int]]:
    return [
        (partition, stat["path"], stat.get("fileSizeInBytes") or 0)
        for partition, stats in (commit.get("partitionToWriteStats") or {}).items()
        for stat in stats
        if stat.get("path")
    ]


def load_archived_partitions(storage: Storage, config: TableConfig, since: str) -> Mapping[str, frozenset[str]] | None:
    """
    Partitions that archived commits wrote to or replaced file groups of, by requested time, from *since* on.

    Returns:
        None when the archive does not tell: *since* is no completed commit in it, or a commit was archived without its
        content.

    Raises:
        CorruptMetadata: A file of the archive is damaged.
    """
    found = dict(_completed(storage, config, _COMMITS, _touched, since))
    if since not in found or None in found.values():
        return None
    return {time: partitions for time, partitions in found.items() if partitions is not None}


def _touched(commit: _Fields) -> frozenset[str]:
    return frozenset(commit.get("partitionToWriteStats") or ()) | frozenset(
        commit.get("partitionToReplaceFileIds") or ()
    )


# --- entries, however they are stored ---------------------------------------------------------------------------------
class _Entry(NamedTuple):
    """One archived instant in one state; its content as it is stored."""

    instant: Instant
    content: Any
    source: str

    def value(self) -> Any:
        """Fields under their names on disk; None where it was archived without content."""
        if not isinstance(self.content, bytes):
            return self.content
        return decode_content(self.content, f"{self.source}: {self.instant.requested_time}").value or None


def _completed(
    storage: Storage,
    config: TableConfig,
    actions: frozenset[str],
    read: Callable[[_Fields], _Read],
    since: str = "",
) -> Iterator[tuple[str, _Read | None]]:
    """Requested time of completed instants from *since* on, and what *read* makes of their content, None without."""
    for each in _entries(storage, config, with_contents=True, since=since, actions=actions):
        if each.instant.is_completed:
            fields = each.value()
            try:
                yield each.instant.requested_time, None if fields is None else read(fields)
            except (AttributeError, KeyError, TypeError) as error:
                raise CorruptMetadata(f"{each.source}: {each.instant} does not hold what it has to: {error}") from error


def _entries(
    storage: Storage,
    config: TableConfig,
    *,
    with_contents: bool = False,
    since: str = "",
    until: str | None = None,
    actions: frozenset[str] | None = None,
) -> Iterator[_Entry]:
    """Of each instant (in layout 1 of each of its states) the entry that counts, requested from *since* to *until*."""
    folder = config.history_folder
    names = [entry.name for entry in storage.list(folder) if not entry.is_folder]

    def is_wanted(time: str, action: str) -> bool:
        return since <= time and (until is None or time <= until) and (actions is None or action in actions)

    if config.format.archive is ArchiveForm.LOGS:
        logs = _archive_files(storage, folder, names)
        files = (tuple(e for e in file if is_wanted(e.requested_time, e.action)) for file in logs)
        for e in latest_entries(files if with_contents else map(_without_payloads, files)):
            yield _Entry(Instant(e.requested_time, _action(e.action, folder), State[e.state]), e.payload, folder)
        return
    seen: set[tuple[str, str]] = set()
    for file in newest_snapshot(storage, folder, names).files:
        first, last = file.time_range
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
                    yield _Entry(instant, row.metadata, source)


def _order(instant: Instant) -> tuple[str, str, int]:
    return (instant.requested_time, COMPARABLE_ACTION[instant.action].value, instant.state)


def _archive_files(storage: Storage, folder: str, names: list[str]) -> Iterator[tuple[ArchivedEntry, ...]]:
    """Newest first."""
    numbered = ((number, name) for name in names if (number := archive_file_number(name)) is not None)
    for _, name in sorted(numbered, reverse=True):
        yield decode_archive_log(storage.read(f"{folder}/{name}"), f"{storage.root}/{folder}/{name}")


def _without_payloads(entries: tuple[ArchivedEntry, ...]) -> tuple[ArchivedEntry, ...]:
    """So that memory holds the contents of one archive file, not of all."""
    return tuple(attrs.evolve(entry, record_name=None, payload=None) for entry in entries)


class HistorySnapshot(NamedTuple):
    """The history of layout 2 at one moment: the number of its manifest (0 = none yet), and its files."""

    number: int
    files: tuple[HistoryFile, ...]


def newest_snapshot(storage: Storage, folder: str, names: Iterable[str]) -> HistorySnapshot:
    """
    The snapshot that ``_version_`` names, or the largest manifest where that is missing or damaged.

    Args:
        storage: Of the table.
        folder: Of the history.
        names: What is in it.

    Raises:
        CorruptMetadata: The manifest is damaged.
    """
    there = frozenset(names)
    known = sorted(number for name in there if (number := manifest_number(name)) is not None)
    if not known:
        if VERSION_FILE in there:  # it comes after a manifest; taken for an empty history, this would be written over
            raise CorruptMetadata(f"{storage.root}/{folder}: {VERSION_FILE} is there, and no manifest of the history")
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
        raise CorruptMetadata(f"{source}: there is no action {word!r}; the archive is newer than hudi_py") from error

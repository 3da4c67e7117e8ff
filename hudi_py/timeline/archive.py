"""
Reading the archived timeline: log files in layout 1, the Parquet history in layout 2.

Source: rules/timeline 5.2 and 5.3; Hudi ``ArchivedTimelineV1``, ``ArchivedTimelineLoaderV2``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import attrs

from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.formats.archive_log import ArchivedEntry, archive_file_number, decode_archive_log, latest_entries
from hudi_py.formats.commit_codec import decode_commit, decode_touched
from hudi_py.formats.instant_content import decode_content
from hudi_py.formats.lsm_history import (
    VERSION_FILE,
    HistoryFile,
    HistoryRow,
    decode_manifest,
    decode_version,
    manifest_name,
    manifest_number,
    read_history,
)
from hudi_py.formats.records_codec import decode_clean_metadata, decode_rollback_metadata
from hudi_py.model.instant import COMPARABLE_ACTION, Action, Instant, State
from hudi_py.storage.base import Storage
from hudi_py.timeline.timeline import Timeline

_COMMITS: Final = frozenset({"commit", "deltacommit", "replacecommit"})


def load_archived(storage: Storage, config: TableConfig) -> Timeline:
    """
    The archived timeline, ascending; layout 1 keeps an entry per state, layout 2 one per instant.

    Raises:
        CorruptMetadata: A file of the archive is damaged.
    """
    folder = config.history_folder
    names = [entry.name for entry in storage.list(folder) if not entry.is_folder]
    instants = (
        _from_logs(storage, folder, names) if config.layout_version == 1 else _from_history(storage, folder, names)
    )
    return Timeline(tuple(sorted(instants, key=_order)))


def load_archived_contents(storage: Storage, config: TableConfig, time: str | None = None) -> dict[Instant, Any]:
    """
    What archived instants hold, as plain data under the names on disk; None for one that was archived without content.

    Args:
        time: Only the instants that were requested then; default: all.

    Raises:
        CorruptMetadata: A file of the archive is damaged.
    """
    folder = config.history_folder
    names = [entry.name for entry in storage.list(folder) if not entry.is_folder]
    if config.layout_version == 1:
        files = _archive_files(storage, folder, names)
        wanted = (tuple(e for e in file if time in (None, e.requested_time)) for file in files)
        return {
            Instant(e.requested_time, _action(e.action, folder), State[e.state]): e.payload
            for e in latest_entries(wanted)
        }
    found: dict[tuple[str, str], tuple[Instant, Any]] = {}
    for source, row in _history_rows(storage, folder, names, with_contents=True, time=time):
        instant = Instant(row.requested_time, _action(row.action, source), State.COMPLETED, row.completion_time)
        value = decode_content(row.metadata, f"{source}: {row.requested_time}").value if row.metadata else None
        found.setdefault((row.requested_time, row.action), (instant, value))
    return dict(found.values())


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
    if config.layout_version == 1:
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


def _order(instant: Instant) -> tuple[str, str, int]:
    return (instant.requested_time, COMPARABLE_ACTION[instant.action].value, instant.state)


def _from_logs(storage: Storage, folder: str, names: list[str]) -> list[Instant]:
    entries = latest_entries(_without_payloads(file) for file in _archive_files(storage, folder, names))
    return [Instant(e.requested_time, _action(e.action, folder), State[e.state]) for e in entries]


def _entries_of_logs(storage: Storage, folder: str, names: list[str]) -> tuple[ArchivedEntry, ...]:
    return latest_entries(_archive_files(storage, folder, names))


def _archive_files(storage: Storage, folder: str, names: list[str]) -> Iterator[tuple[ArchivedEntry, ...]]:
    """Newest first."""
    numbered = ((number, name) for name in names if (number := archive_file_number(name)) is not None)
    for _, name in sorted(numbered, reverse=True):
        yield decode_archive_log(storage.read(f"{folder}/{name}"), f"{storage.root}/{folder}/{name}")


def _without_payloads(entries: tuple[ArchivedEntry, ...]) -> tuple[ArchivedEntry, ...]:
    """So that memory holds the contents of one archive file, not of all."""
    return tuple(attrs.evolve(entry, record_name=None, payload=None) for entry in entries)


def _from_history(storage: Storage, folder: str, names: list[str]) -> list[Instant]:
    rows: dict[tuple[str, str], Instant] = {}
    for source, row in _history_rows(storage, folder, names):
        key = (row.requested_time, row.action)
        action = _action(row.action, source)
        rows.setdefault(key, Instant(row.requested_time, action, State.COMPLETED, row.completion_time))
    return list(rows.values())


def _history_rows(
    storage: Storage, folder: str, names: list[str], *, with_contents: bool = False, time: str | None = None
) -> Iterator[tuple[str, HistoryRow]]:
    """Each row with the file it stands in; only the rows of one requested time, where given."""
    for file in newest_snapshot(storage, folder, names).files:
        first, last = file.time_range
        if time is not None and not first <= time <= last:
            continue
        source = f"{storage.root}/{folder}/{file.name}"
        with storage.open_read(f"{folder}/{file.name}") as stream:
            for row in read_history(stream, source, with_contents=with_contents):
                if time in (None, row.requested_time):
                    yield source, row


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


def load_archived_cleans(storage: Storage, config: TableConfig, since: str) -> dict[str, frozenset[str]]:
    """
    Partition path to the names of the files that archived cleans requested after *since* tried to remove.

    Raises:
        CorruptMetadata: A file of the archive is damaged.
    """
    folder = config.history_folder
    names = [entry.name for entry in storage.list(folder) if not entry.is_folder]
    found: dict[str, set[str]] = {}
    read = _cleans_from_logs if config.layout_version == 1 else _cleans_from_history
    for partition, gone in read(storage, folder, names, since):
        found.setdefault(partition, set()).update(gone)
    return {partition: frozenset(gone) for partition, gone in found.items()}


def _cleans_from_logs(
    storage: Storage, folder: str, names: list[str], since: str
) -> Iterator[tuple[str, Iterable[str]]]:
    for entry in _entries_of_logs(storage, folder, names):
        if entry.action != "clean" or entry.state != "COMPLETED" or entry.requested_time <= since:
            continue
        for partition, done in ((entry.payload or {}).get("partitionMetadata") or {}).items():
            yield partition, [path.rpartition("/")[2] for path in done.get("deletePathPatterns") or ()]


def _cleans_from_history(
    storage: Storage, folder: str, names: list[str], since: str
) -> Iterator[tuple[str, Iterable[str]]]:
    for file in newest_snapshot(storage, folder, names).files:
        if file.time_range[1] <= since:
            continue
        source = f"{storage.root}/{folder}/{file.name}"
        with storage.open_read(f"{folder}/{file.name}") as stream:
            for row in read_history(stream, source, with_contents=True):
                if row.action == "clean" and row.requested_time > since and row.metadata:
                    metadata = decode_clean_metadata(row.metadata, f"{source}: {row.requested_time}")
                    for partition, done in metadata.partitions.items():
                        yield partition, done.delete_path_patterns


def load_archived_rollbacks(storage: Storage, config: TableConfig) -> Mapping[str, Mapping[str, str]]:
    """
    What archived rollbacks took back: requested time of the rollback to times and actions, ``""`` for none recorded.

    Raises:
        CorruptMetadata: A file of the archive is damaged.
    """
    folder = config.history_folder
    names = [entry.name for entry in storage.list(folder) if not entry.is_folder]
    read = _rollbacks_from_logs if config.layout_version == 1 else _rollbacks_from_history
    return dict(read(storage, folder, names))


def _rollbacks_from_logs(storage: Storage, folder: str, names: list[str]) -> Iterator[tuple[str, Mapping[str, str]]]:
    for entry in _entries_of_logs(storage, folder, names):
        if entry.action == "rollback" and entry.payload is not None:
            actions = {each["commitTime"]: each["action"] for each in entry.payload.get("instantsRollback") or ()}
            times = entry.payload.get("commitsRollback") or ()
            yield entry.requested_time, {time: actions.get(time, "") for time in times}


def _rollbacks_from_history(storage: Storage, folder: str, names: list[str]) -> Iterator[tuple[str, Mapping[str, str]]]:
    for file in newest_snapshot(storage, folder, names).files:
        source = f"{storage.root}/{folder}/{file.name}"
        with storage.open_read(f"{folder}/{file.name}") as stream:
            for row in read_history(stream, source, with_contents=True):
                if row.action == "rollback" and row.metadata is not None:
                    rollback = decode_rollback_metadata(row.metadata, f"{source}: {row.requested_time}")
                    actions = {each.requested_time: each.action for each in rollback.instants_rollback}
                    yield row.requested_time, {time: actions.get(time, "") for time in rollback.commits_rollback}


def load_archived_replaced(storage: Storage, config: TableConfig) -> dict[tuple[str, str], str]:
    """
    (Partition path, file id) of every group that an archived replacecommit replaced, to the newest of their times.

    Raises:
        CorruptMetadata: A file of the archive is damaged.
    """
    folder = config.history_folder
    names = [entry.name for entry in storage.list(folder) if not entry.is_folder]
    found: dict[tuple[str, str], str] = {}
    read = _replaced_from_logs if config.layout_version == 1 else _replaced_from_history
    for time, partition, file_id in read(storage, folder, names):
        found[partition, file_id] = max(time, found.get((partition, file_id), ""))
    return found


def _replaced_from_logs(storage: Storage, folder: str, names: list[str]) -> Iterator[tuple[str, str, str]]:
    for entry in _entries_of_logs(storage, folder, names):
        if entry.action == "replacecommit" and entry.state == "COMPLETED":
            for partition, file_ids in ((entry.payload or {}).get("partitionToReplaceFileIds") or {}).items():
                for file_id in file_ids:
                    yield entry.requested_time, partition, file_id


def _replaced_from_history(storage: Storage, folder: str, names: list[str]) -> Iterator[tuple[str, str, str]]:
    for source, row in _history_rows(storage, folder, names, with_contents=True):
        if row.action == "replacecommit" and row.metadata:
            touched = decode_touched(row.metadata, f"{source}: {row.requested_time}")
            for partition, file_ids in touched.replaced_file_ids.items():
                for file_id in file_ids:
                    yield row.requested_time, partition, file_id


def load_archived_partitions(storage: Storage, config: TableConfig, since: str) -> Mapping[str, frozenset[str]] | None:
    """
    Partitions that archived commits wrote to or replaced file groups of, by requested time, from *since* on.

    Returns:
        None when the archive does not tell: *since* is no completed commit in it, or a commit was archived without its
        content.

    Raises:
        CorruptMetadata: A file of the archive is damaged.
    """
    folder = config.history_folder
    names = [entry.name for entry in storage.list(folder) if not entry.is_folder]
    read = _partitions_from_logs if config.layout_version == 1 else _partitions_from_history
    found = read(storage, folder, names, since)
    if since not in found or None in found.values():
        return None
    return {time: partitions for time, partitions in found.items() if partitions is not None}


def _partitions_from_logs(
    storage: Storage, folder: str, names: list[str], since: str
) -> dict[str, frozenset[str] | None]:
    found: dict[str, frozenset[str] | None] = {}
    for entry in _entries_of_logs(storage, folder, names):
        if entry.state == "COMPLETED" and entry.action in _COMMITS and entry.requested_time >= since:
            payload = entry.payload
            found[entry.requested_time] = (
                None
                if payload is None
                else frozenset(payload.get("partitionToWriteStats") or ())
                | frozenset(payload.get("partitionToReplaceFileIds") or ())
            )
    return found


def _partitions_from_history(
    storage: Storage, folder: str, names: list[str], since: str
) -> dict[str, frozenset[str] | None]:
    found: dict[str, frozenset[str] | None] = {}
    for file in newest_snapshot(storage, folder, names).files:
        if file.time_range[1] < since:
            continue
        source = f"{storage.root}/{folder}/{file.name}"
        with storage.open_read(f"{folder}/{file.name}") as stream:
            for row in read_history(stream, source, with_contents=True):
                if row.action not in _COMMITS or row.requested_time < since:
                    continue
                if row.metadata is None:
                    found[row.requested_time] = None
                    continue
                metadata = decode_commit(row.metadata, f"{source}: {row.requested_time}")
                found[row.requested_time] = frozenset(metadata.partition_to_write_stats) | frozenset(
                    metadata.partition_to_replace_file_ids or ()
                )
    return found

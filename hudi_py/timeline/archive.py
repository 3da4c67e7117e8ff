"""
Answers questions about archived instants: which they are, and which files they wrote, replaced and deleted.

Source: rules/timeline 5.2 and 5.3; Hudi ``ArchivedTimelineV1``, ``ArchivedTimelineLoaderV2``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import tzinfo
from functools import partial
from typing import Any, Final, NamedTuple

import attrs

from hudi_py.config.table import TableConfig
from hudi_py.formats.archive_log import archive_file_number
from hudi_py.formats.commit_codec import commit_of
from hudi_py.formats.lsm_history import (
    VERSION_FILE,
    manifest_number,
    read_history,
)
from hudi_py.model.files import parse_base_file
from hudi_py.model.instant import COMPARABLE_ACTION, Action, Instant, State
from hudi_py.model.instant_time import parse_instant_time
from hudi_py.model.records import CommitMetadata
from hudi_py.storage.base import Storage
from hudi_py.timeline.archive_entries import (
    Fields,
    StoredInstant,
    archive_logs,
    completed_contents,
    newest_snapshot,
    stored_instants,
)
from hudi_py.timeline.timeline import Timeline
from hudi_py.versions.format import ArchiveForm

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
    instants = (instant.instant for instant in stored_instants(storage, config))
    return Timeline(tuple(sorted(instants, key=_order)))


def has_archive(storage: Storage, config: TableConfig) -> bool:
    """Whether anything was ever archived, according to the archive's folder; costs one listing."""
    names = [entry.name for entry in storage.list(config.history_folder) if not entry.is_folder]
    if config.format.archive is ArchiveForm.LOGS:
        return any(archive_file_number(name) is not None for name in names)
    return VERSION_FILE in names or any(manifest_number(name) is not None for name in names)


def load_archived_contents(storage: Storage, config: TableConfig, time: str | None = None) -> dict[Instant, Any]:
    """
    Contents of archived instants as plain data under the names on disk; None for one that was archived without content.

    Args:
        time: Only instants with this requested time; default: all.

    Raises:
        CorruptMetadata: A file of the archive is damaged.
    """
    found = stored_instants(storage, config, with_contents=True, since=time or "", until=time)
    return {each.instant: each.value() for each in found}


class ArchivedAction(NamedTuple):
    """
    An archived instant in its highest state.

    Args:
        content: Plain data under the names on disk; None without content.
        seconds: From the writing of its requested file to that of its completed file. None where that is not stored.
    """

    instant: Instant
    content: Any
    seconds: float | None


def load_archived_actions(storage: Storage, config: TableConfig, zone: tzinfo) -> list[ArchivedAction]:
    """
    Archived instants, oldest first, once each: layout 1 stores every state of them.

    Args:
        zone: Time zone of the table's instants.

    Raises:
        CorruptMetadata: A file of the archive is damaged.
    """
    states: dict[tuple[str, Action], dict[State, StoredInstant]] = {}
    for each in stored_instants(storage, config, with_contents=True):
        key = (each.instant.requested_time, each.instant.comparable_action)
        states.setdefault(key, {})[each.instant.state] = each
    found = []
    for known in states.values():
        highest = known[max(known)]
        begun, ended = (known[s].written_at if s in known else None for s in (State.REQUESTED, State.COMPLETED))
        found.append(ArchivedAction(highest.instant, highest.value(), _seconds_between(begun, ended, zone)))
    return sorted(found, key=lambda each: _order(each.instant))


def highest_states(instants: Iterable[Instant]) -> tuple[Instant, ...]:
    """Each instant once, in its highest state, in the order given."""
    highest: dict[tuple[str, Action], Instant] = {}
    for each in instants:
        key = (each.requested_time, each.comparable_action)
        highest[key] = max(highest.get(key, each), each, key=lambda instant: instant.state)
    return tuple(highest.values())


def _seconds_between(begun: str | None, ended: str | None, zone: tzinfo) -> float | None:
    if begun is None or ended is None:
        return None
    try:
        seconds = (parse_instant_time(ended, zone) - parse_instant_time(begun, zone)).total_seconds()
    except (ValueError, OverflowError):
        return None
    # Equal or reversed times are those of a copy of the table, not of the action.
    return seconds if seconds > 0 else None


def load_archived_commits(storage: Storage, config: TableConfig, after: str, before: str) -> frozenset[str]:
    """
    Requested times of archived completed commits between two times, both excluded.

    Reads as few files as possible: in layout 2 those whose range overlaps; in layout 1 from the newest file back to the
    first whose commits are all older, because commits are archived in order.

    Raises:
        CorruptMetadata: A file that was needed is damaged.
    """
    folder = config.history_folder
    names = [entry.name for entry in storage.list(folder) if not entry.is_folder]
    found: set[str] = set()
    if config.format.archive is ArchiveForm.LOGS:
        for entries in archive_logs(storage, folder, names):
            times = {e.requested_time for e in entries if e.state == "COMPLETED" and e.action in _COMMITS}
            found |= times
            # Older files hold older commits only: archival takes a prefix of the timeline (rule D-11).
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
    """Whether the completed commit of that time is archived; raises as `load_archived_commits`."""
    # Both ends are excluded, so the range is from just below the time to the first text behind it. Times are compared
    # as text, and an appended digit is the smallest step up.
    return time in load_archived_commits(storage, config, str(int(time) - 1).zfill(len(time)), f"{time}0")


def load_archived_written(storage: Storage, config: TableConfig, after: str, before: str) -> dict[str, frozenset[str]]:
    """
    Partition path to names of the data files of archived commits between two times, both excluded.

    Raises:
        CorruptMetadata: A file of the archive is damaged.
    """
    found: dict[str, set[str]] = {}
    for time, written in completed_contents(storage, config, _COMMITS, _written, after):
        for partition, path, _ in (written or ()) if after < time < before else ():
            found.setdefault(partition, set()).add(path.rpartition("/")[2])
    return {partition: frozenset(names) for partition, names in found.items()}


def load_archived_cleans(storage: Storage, config: TableConfig, since: str) -> Mapping[str, frozenset[str]]:
    """`ArchivedFiles.cleaned` of cleans requested after a time; raises as `load_archived_files`."""
    return load_archived_files(storage, config, cleaned_since=since).cleaned


def _deleted(clean: Fields) -> dict[str, list[str]]:
    partitions = clean.get("partitionMetadata") or {}
    return {
        partition: [path.rpartition("/")[2] for path in done.get("deletePathPatterns") or ()]
        for partition, done in partitions.items()
    }


def load_archived_rollbacks(storage: Storage, config: TableConfig) -> Mapping[str, Mapping[str, str]]:
    """
    Writes that archived rollbacks undid: time of the rollback to times and actions, ``""`` if none was recorded.

    Raises:
        CorruptMetadata: A file of the archive is damaged.
    """
    return {
        time: taken for time, taken in completed_contents(storage, config, _ROLLBACKS, _taken_back) if taken is not None
    }


def _taken_back(rollback: Fields) -> dict[str, str]:
    actions = {each["commitTime"]: each["action"] for each in rollback.get("instantsRollback") or ()}
    return {time: actions.get(time, "") for time in rollback.get("commitsRollback") or ()}


def load_archived_replaced(storage: Storage, config: TableConfig) -> Mapping[tuple[str, str], str]:
    """`ArchivedFiles.replaced`; raises as `load_archived_files`."""
    return load_archived_files(storage, config, replaced=True).replaced


def _replaced(commit: Fields) -> list[tuple[str, str]]:
    partitions = commit.get("partitionToReplaceFileIds") or {}
    return [(partition, file_id) for partition, file_ids in partitions.items() for file_id in file_ids]


class ArchivedCommit(NamedTuple):
    """
    An archived completed commit, deltacommit or replacecommit, not decoded yet.

    Args:
        time: Requested time.
        data: Content of its completed file; empty in layout 1, which stores it in another form.
        is_replacing: Whether it may have replaced file groups.
        fields: Decodes the content: fields under their names on disk.
    """

    time: str
    data: bytes
    is_replacing: bool
    fields: Callable[[], Fields]

    def written(self) -> list[str]:
        """Paths of its data files, relative to the table."""
        return [path for _, path, _ in _written(self.fields())]

    def replaced(self) -> list[tuple[str, str]]:
        """(Partition path, file id) of the groups that it replaced."""
        return _replaced(self.fields())


def archived_commits(storage: Storage, config: TableConfig) -> Iterator[ArchivedCommit]:
    """
    All archived commits, in no order.

    Raises:
        CorruptMetadata: A file of the archive is damaged.
    """
    for instant in stored_instants(storage, config, with_contents=True, actions=_COMMITS):
        # Layout 1 archives the earlier states, too, and those say nothing about what was written.
        if instant.instant.is_completed:
            data = instant.content if isinstance(instant.content, bytes) else b""
            is_replacing = instant.instant.action is Action.REPLACE_COMMIT
            yield ArchivedCommit(instant.instant.requested_time, data, is_replacing, partial(_fields, instant))


def load_archived_metadata(
    storage: Storage, config: TableConfig, times: Collection[str]
) -> dict[Instant, CommitMetadata | None]:
    """
    What archived completed commits with these requested times wrote; None for one that was archived without content.

    Raises:
        CorruptMetadata: A file of the archive is damaged.
    """
    if not times:
        return {}
    wanted = frozenset(times)
    found: dict[Instant, CommitMetadata | None] = {}
    for entry in stored_instants(
        storage, config, with_contents=True, since=min(wanted), until=max(wanted), actions=_COMMITS
    ):
        if entry.instant.is_completed and entry.instant.requested_time in wanted:
            fields = entry.value()
            where = f"{entry.source}: {entry.instant}"
            found[entry.instant] = None if fields is None else commit_of(fields, where)
    return found


def _fields(entry: StoredInstant) -> Fields:
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
        name: Name of the file.
        time: Instant time in the name.
        size_bytes: Size that the commit recorded; 0 if unknown.
    """

    name: str
    time: str
    size_bytes: int


@attrs.frozen
class ArchivedFiles:
    """
    What the archive says about files and file groups, which are identified by partition path and file id.

    Args:
        cleaned: Partition path to names of files that cleans tried to delete.
        replaced: Replaced groups to the time of the newest replacecommit.
        bases: Groups that commits wrote to, to the newest of these base files.
        first: Requested time of the oldest of these instants; ``""`` if there is none.
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
    Read the wanted facts, in one pass over the archive.

    Args:
        cleaned_since: Collect deleted files of cleans requested after this time; None for none.
        replaced, bases: Whether to collect replaced groups, and base files.
        bases_until: Only base files of commits up to this requested time; default: all.

    Raises:
        CorruptMetadata: A file of the archive is damaged.
    """
    # Decoding commits is what costs: whoever asks for replaced groups alone decodes the replacecommits.
    actions = (_COMMITS if bases else _REPLACING if replaced else frozenset()) | (
        frozenset() if cleaned_since is None else _CLEANS
    )

    def read(fields: Fields) -> tuple[dict[str, list[str]], list[tuple[str, str]], list[tuple[str, str, int]]]:
        """The first result comes from cleans, the others from commits: their field names do not overlap."""
        return _deleted(fields), _replaced(fields) if replaced else [], _written(fields) if bases else []

    # Files outside the range are not even opened, but groups and base files are wanted from all times.
    since = cleaned_since if actions == _CLEANS and cleaned_since is not None else ""
    cleaned: dict[str, set[str]] = {}
    groups: dict[tuple[str, str], str] = {}
    newest: dict[tuple[str, str], ArchivedFile] = {}
    first = ""
    for time, facts in completed_contents(storage, config, actions, read, since):
        first = min(first or time, time)
        removed, superseded, written = facts or ({}, [], [])
        for partition, names in removed.items() if cleaned_since is not None and time > cleaned_since else ():
            cleaned.setdefault(partition, set()).update(names)
        for group in superseded:
            # The larger time wins, as among active ones (rule Z-5, K-23); layout 1 gives its entries newest file first.
            groups[group] = max(time, groups.get(group, ""))
        for partition, path, size in written if bases_until is None or time <= bases_until else ():
            base = parse_base_file(path.rpartition("/")[2])
            if base is None:
                continue
            known = newest.get((partition, base.file_id))
            if known is None or known.time < base.instant_time:
                newest[partition, base.file_id] = ArchivedFile(base.name, base.instant_time, size)
    return ArchivedFiles({partition: frozenset(names) for partition, names in cleaned.items()}, groups, newest, first)


def _written(commit: Fields) -> list[tuple[str, str, int]]:
    return [
        (partition, stat["path"], stat.get("fileSizeInBytes") or 0)
        for partition, stats in (commit.get("partitionToWriteStats") or {}).items()
        for stat in stats
        if stat.get("path")
    ]


def load_archived_partitions(storage: Storage, config: TableConfig, since: str) -> Mapping[str, frozenset[str]] | None:
    """
    Partitions that archived commits wrote to or replaced groups of, by requested time, since a commit.

    Returns:
        None if the archive does not show this: the first commit is not in it, or one was archived without content.

    Raises:
        CorruptMetadata: A file of the archive is damaged.
    """
    found = dict(completed_contents(storage, config, _COMMITS, _touched, since))
    # Without the first commit, or with a commit of unknown content, the answer might lack partitions, and a clean would
    # never visit them.
    if since not in found or None in found.values():
        return None
    return {time: partitions for time, partitions in found.items() if partitions is not None}


def _touched(commit: Fields) -> frozenset[str]:
    return frozenset(commit.get("partitionToWriteStats") or ()) | frozenset(
        commit.get("partitionToReplaceFileIds") or ()
    )


def _order(instant: Instant) -> tuple[str, str, int]:
    return (instant.requested_time, COMPARABLE_ACTION[instant.action].value, instant.state)

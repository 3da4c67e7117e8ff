"""
Decides whether the state of a table before some writes still exists, so that they can be undone. Pure.

The latest slice of a file group at a time follows from the commits that were completed by then (`fsview.expected`). An
older slice that still exists, because a savepoint protects it, is not that state: the group would lose the rows of
several commits that stay completed.

If the commits that wrote the slice are archived, it was the latest one until the first of those writes, so only a clean
after that can have deleted it; the completed cleans show whether one did. Apache Hudi checks none of this.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import attrs

from hudi_py.fsview.build import GroupKey
from hudi_py.fsview.expected import ExpectedSlice
from hudi_py.model.files import BaseFile, LogFile, is_data_file, join_path, parse_data_file
from hudi_py.model.instant import Instant
from hudi_py.model.records import CommitMetadata
from hudi_py.versions.format import LogNaming

_NO_COMMIT: Final = frozenset({None, "", "null"})
Commit = tuple[Instant, CommitMetadata]


@attrs.frozen(kw_only=True)
class Touch:
    """
    State of a file group when the oldest of the writes to undo changed it.

    Args:
        base_time: Base instant of the slice that the write merged with; None if it did not record one.
        is_certain: Whether that is the time of a base file, as in copy-on-write tables.
        was_there: Whether the group existed before: it was replaced, appended to, or compacted.
    """

    base_time: str | None = None
    is_certain: bool = False
    was_there: bool = False


@attrs.frozen(kw_only=True)
class Before:
    """
    State of a table before some writes, and what is missing of it.

    Args:
        groups: File groups that the writes wrote to or replaced.
        needed: Partition path to names of the files that become the latest ones again.
        lost: Relative paths of missing files, or of groups without files; sorted.
        hidden: Relative paths of files that readers would not see, for their commits are archived after a savepoint;
            sorted.
    """

    groups: frozenset[GroupKey] = frozenset()
    needed: Mapping[str, frozenset[str]]
    lost: tuple[str, ...]
    hidden: tuple[str, ...] = ()


def touched_groups(undone: Iterable[Commit], *, is_merge_on_read: bool) -> dict[GroupKey, Touch]:
    """
    File groups that the writes wrote to or replaced, with their state before the oldest of these writes.

    Args:
        undone: Completed writes, the newest first.
        is_merge_on_read: Whether a slice may have log files.
    """
    found: dict[GroupKey, Touch] = {}
    # Newest first, so that the oldest write has the last word on a group: its state is the one to go back to.
    for instant, metadata in undone:
        mine: dict[GroupKey, Touch] = {}
        for partition, stats in metadata.partition_to_write_stats.items():
            for stat in stats:
                name = (stat.path or "").rpartition("/")[2]
                if stat.file_id is None or not is_data_file(name):
                    continue
                previous = None if stat.prev_commit in _NO_COMMIT else stat.prev_commit
                if previous is not None and previous >= instant.requested_time:
                    previous = None  # the write created the group with this log file
                mine[partition, stat.file_id] = Touch(
                    base_time=previous,
                    is_certain=previous is not None and not is_merge_on_read,
                    was_there=previous is not None,
                )
        for partition, file_ids in (metadata.partition_to_replace_file_ids or {}).items():
            for file_id in file_ids:
                mine.setdefault((partition, file_id), Touch(was_there=True))
        found |= mine
    return found


def judge_before(
    touched: Mapping[GroupKey, Touch],
    expected: Mapping[GroupKey, ExpectedSlice],
    there: Mapping[str, Collection[str]],
    cleaned: Mapping[str, Collection[str]],
    undone: Collection[str],
    log_naming: LogNaming,
    archived: Mapping[str, Collection[str]],
) -> Before:
    """
    Compare the files from before some writes with those that exist.

    Args:
        touched: File groups that the writes changed.
        expected: Latest slices according to the commits that stay.
        there: Partition path to names of its files, for every partition of a changed group.
        cleaned: Partition path to names of files that cleans deleted, for groups whose commits are archived.
        undone: Requested times of the writes to undo.
        log_naming: How log files find their slice.
        archived: Partition path to names of files whose commits are archived after a savepoint. To readers the timeline
            starts at the savepointed commit, so later files whose commits are not on it belong to failed writes.
    """
    left = _by_group(there, undone)
    gone = _by_group(cleaned, undone)
    needed: dict[str, set[str]] = {}
    lost: set[str] = set()
    for key, touch in touched.items():
        newest = expected.get(key, ExpectedSlice(None))
        partition, here, names = key[0], left.get(key, _Files()), there[key[0]]
        start = _base_time(newest, touch) or max(here.bases, default="")
        wanted = {file.name for file in newest.files}
        # Neither a commit nor the write itself names the base file: only what cleans recorded can show a loss.
        if newest.base is None and not touch.is_certain:
            wanted |= _cleaned_since(gone.get(key, _Files()), start)
        missing = {join_path(partition, name) for name in wanted if name not in names}
        is_without_base = touch.is_certain and start not in here.bases
        # Nothing of the group is left, and nothing says which file it was; the group is named instead.
        is_without_files = touch.was_there and not here.bases and not here.logs
        if not missing and (is_without_base or is_without_files):
            missing.add(join_path(partition, key[1]))
        lost |= missing
        needed.setdefault(partition, set()).update(_from(here, start, log_naming))
    return Before(
        groups=frozenset(touched),
        needed={path: frozenset(names) for path, names in needed.items() if names},
        lost=tuple(sorted(lost)),
        hidden=tuple(sorted(join_path(p, n) for p, names in needed.items() for n in names & {*archived.get(p, ())})),
    )


@attrs.frozen
class _Files:
    """Base files of a group by instant time, and its log files."""

    bases: dict[str, str] = attrs.field(factory=dict)
    logs: list[LogFile] = attrs.field(factory=list)


def _base_time(newest: ExpectedSlice, touch: Touch) -> str | None:
    if newest.base is not None:
        return newest.base.slice_time
    return touch.base_time if touch.is_certain else None


def _cleaned_since(gone: _Files, start: str) -> set[str]:
    """Deleted files of slices that were newer than the newest one that exists."""
    newer = {name for time, name in gone.bases.items() if time > start}
    # Log files of the slice itself, too: without them it is a slice of an earlier time.
    return newer | {log.name for log in gone.logs if log.instant_time >= start}


def _from(here: _Files, start: str, log_naming: LogNaming) -> set[str]:
    """Files of the slice and of newer ones; in layout 2 all log files, whose names do not show their slice."""
    bases = {name for time, name in here.bases.items() if time >= start}
    return bases | {log.name for log in here.logs if not log_naming.tells_slice or log.instant_time >= start}


def _by_group(names: Mapping[str, Collection[str]], undone: Collection[str]) -> dict[GroupKey, _Files]:
    """Files by file group, without those of the writes to undo."""
    found: dict[GroupKey, _Files] = {}
    for partition, each in names.items():
        for name in each:
            parsed = parse_data_file(name)
            if parsed is None or parsed.instant_time in undone:
                continue
            files = found.setdefault((partition, parsed.file_id), _Files())
            if isinstance(parsed, BaseFile):
                files.bases[parsed.instant_time] = name
            elif not parsed.is_cdc:
                files.logs.append(parsed)
    return found


def together(needed: Mapping[str, Collection[str]], held: Mapping[str, Collection[str]]) -> dict[str, frozenset[str]]:
    """Partition path to names, of both."""
    return {path: frozenset(needed.get(path, ())) | frozenset(held.get(path, ())) for path in {*needed, *held}}

"""
Builds file groups and slices from the names in a partition folder. Pure.

Source: rules/table-services Z-1 to Z-6, rules/data-files 1 and 9.1; Hudi ``HoodieFileGroup``,
``AbstractTableFileSystemView``.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import attrs

from hudi_py.errors import CorruptMetadata
from hudi_py.model.files import (
    BaseFile,
    FileGroup,
    FileSlice,
    LogFile,
    join_path,
    parse_base_file,
    parse_log_file,
)
from hudi_py.versions.format import LogNaming

GroupKey = tuple[str, str]
"""(partition path, file id)"""


class PendingOperation(NamedTuple):
    """A pending compaction or log compaction of one file group."""

    instant_time: str
    base_instant_time: str
    is_log_compaction: bool
    file_names: tuple[str, ...]  # what the plan will read


@attrs.frozen(kw_only=True)
class UnknownCommits:
    """
    A range of times for which it is unknown whether they are committed, because the archive is missing.

    Args:
        after, before: The range, both ends excluded.
        known: Times in the range that are on the active timeline, or were rolled back.
    """

    after: str
    before: str
    known: frozenset[str]

    def holds(self, time: str) -> bool:
        """Whether it is unknown if that time is committed."""
        return self.after < time < self.before and time not in self.known


def _unknown_names(_time: str) -> frozenset[str]:
    return frozenset()


def _never(_time: str) -> bool:
    return False


@attrs.frozen(kw_only=True)
class ViewContext:
    """
    The facts of the timeline that a view needs; small enough to be sent to every worker.

    Args:
        log_naming: How log files find their slice.
        visible_times: Requested times in ``TL.view``.
        first_time: Start of ``TL.view``; earlier instants count as committed (archived).
        last_time: Last requested time in ``TL.view``, None when it is empty: then nothing is visible.
        completed_times: Requested times of completed instants of ``TL.write``.
        pending_times: Requested times of pending instants. Hudi ignores them, so a pending commit that is older than
            all completed ones looks archived to it, and its files committed; here they are neither shown nor cleaned.
        completion_times: Requested time to completion time (layout 2).
        replaced: File group to the requested time of the replacecommit that replaced it (rule Z-5).
        clustered: Requested time of each completed clustering to the names of the files that it wrote. A file of such a
            time that it does not name is of a task that came too late: its rows are in the named files, too.
        pending_compactions: Pending compaction and log compaction, at most one per group.
        pending_clustering: File group to the requested time of the clustering that will replace it.
        written_by: Returns the names of the files that the completed write of a time names; empty if that is unknown.
            Asked only where a slice has two base files.
        has_logged: Returns whether the write of a time is a completed delta commit. Asked only in layout 1, where log
            files lie above a slice without a base file under them.
        extensions: File name extensions of the table's base files; empty where any is allowed.
        unknown_commits: Set if the timeline begins with a savepointed commit and there is no archive; else None.
    """

    log_naming: LogNaming
    visible_times: frozenset[str]
    first_time: str | None
    last_time: str | None
    completed_times: frozenset[str]
    pending_times: frozenset[str] = frozenset()
    completion_times: Mapping[str, str] = attrs.field(factory=dict)
    replaced: Mapping[GroupKey, str] = attrs.field(factory=dict)
    clustered: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    pending_compactions: Mapping[GroupKey, PendingOperation] = attrs.field(factory=dict)
    pending_clustering: Mapping[GroupKey, str] = attrs.field(factory=dict)
    written_by: Callable[[str], frozenset[str]] = attrs.field(default=_unknown_names, eq=False, repr=False)
    has_logged: Callable[[str], bool] = attrs.field(default=_never, eq=False, repr=False)
    extensions: frozenset[str] = frozenset()
    unknown_commits: UnknownCommits | None = None

    def is_committed(self, base_instant_time: str) -> bool:
        """Whether a slice of that base instant is committed (rule Z-2)."""
        # Rule Z-2: behind the last visible instant nothing is committed, even where the timeline has no instant of that
        # time.
        if self.last_time is None or base_instant_time > self.last_time:
            return False
        return base_instant_time in self.visible_times or self._is_before_start(base_instant_time)

    def is_completed(self, requested_time: str) -> bool:
        """Whether the write of that time is completed, or so old that it is archived."""
        return requested_time in self.completed_times or self._is_before_start(requested_time)

    def _is_before_start(self, time: str) -> bool:
        return self.first_time is not None and time < self.first_time and time not in self.pending_times


@attrs.frozen(kw_only=True)
class PartitionView:
    """
    One partition.

    Args:
        partition_path: Relative path.
        groups: Live file groups, by file id; slices newest first, committed ones only.
        replaced_groups: Groups that a completed replacecommit superseded.
        uncommitted: Base files of instants that are neither completed nor archived, or of late tasks of a clustering.
        other_names: Names that are neither base nor log files.
    """

    partition_path: str
    groups: tuple[FileGroup, ...]
    replaced_groups: tuple[FileGroup, ...]
    uncommitted: tuple[FileSlice, ...]
    other_names: tuple[str, ...]


class _Group:
    """Files of one group while they are collected."""

    __slots__ = ("bases", "logs")

    def __init__(self) -> None:
        self.bases: dict[str, BaseFile] = {}
        self.logs: list[LogFile] = []


def build_partition(
    context: ViewContext, partition_path: str, files: Iterable[tuple[str, int | None]]
) -> PartitionView:
    """
    Args:
        context: View context of the whole table.
        partition_path: Relative path.
        files: Name and size (None = unknown) of every file in the partition's folder.

    Raises:
        CorruptMetadata: It is unknown whether a file is committed, because the archive is missing.
    """
    collected: dict[str, _Group] = {}
    other = []
    for name, size in files:
        file = parse_base_file(name, size) or parse_log_file(name, size)
        if file is None:
            other.append(name)
        else:
            _collect(context, collected, file)
    return _partition(context, partition_path, collected, tuple(sorted(other)))


def build_of_parsed(context: ViewContext, partition_path: str, files: Iterable[BaseFile | LogFile]) -> PartitionView:
    """As `build_partition`, of names that are parsed: for callers that build many views of the same data files."""
    collected: dict[str, _Group] = {}
    for file in files:
        _collect(context, collected, file)
    return _partition(context, partition_path, collected, ())


def _collect(context: ViewContext, collected: dict[str, _Group], file: BaseFile | LogFile) -> None:
    # Without `setdefault`, which would make a group for every file: this runs for all files of a table.
    group = collected.get(file.file_id)
    if group is None:
        group = collected[file.file_id] = _Group()
    if isinstance(file, LogFile):
        group.logs.append(file)
        return
    known = group.bases.get(file.instant_time)
    if known is None or _is_rather(context, file, known):
        group.bases[file.instant_time] = file


def _is_rather(context: ViewContext, base: BaseFile, known: BaseFile) -> bool:
    """Of two files of a slice, one is of a task that was retried or came too late: the commit names the other."""
    named = context.written_by(base.instant_time)
    if (base.name in named) != (known.name in named):
        return base.name in named
    return known.name < base.name


def _partition(
    context: ViewContext, partition_path: str, collected: dict[str, _Group], other: tuple[str, ...]
) -> PartitionView:
    # A pending compaction opens a slice even in a group of which no file is listed.
    for group_partition, file_id in context.pending_compactions:
        if group_partition == partition_path and file_id not in collected:
            collected[file_id] = _Group()
    groups: list[FileGroup] = []
    replaced: list[FileGroup] = []
    uncommitted: list[FileSlice] = []
    is_committed = functools.cache(context.is_committed)  # groups of a partition share most of their instants
    for file_id in sorted(collected):
        key = (partition_path, file_id)
        committed: list[FileSlice] = []
        for file_slice in _slices(context, key, collected[file_id]):
            is_shown = is_committed(file_slice.base_instant_time)
            if is_shown and file_slice.base_instant_time in context.clustered:
                base, named = file_slice.base_file, context.clustered[file_slice.base_instant_time]
                is_shown = base is None or base.name in named
            (committed if is_shown else uncommitted).append(file_slice)
        group = FileGroup(partition_path, file_id, tuple(committed))
        (replaced if key in context.replaced else groups).append(group)
    # Only after the view is built: a file of unknown standing matters, if it would be left out.
    if context.unknown_commits is not None:
        _refuse_unknown_commits(context.unknown_commits, uncommitted)
    return PartitionView(
        partition_path=partition_path,
        groups=tuple(groups),
        replaced_groups=tuple(replaced),
        uncommitted=tuple(uncommitted),
        other_names=other,
    )


def _refuse_unknown_commits(unknown: UnknownCommits, uncommitted: Iterable[FileSlice]) -> None:
    for each in uncommitted:
        if each.base_file is not None and unknown.holds(each.base_instant_time):
            path = join_path(each.partition_path, each.base_file.name)
            raise CorruptMetadata(
                f"{path} was written behind the savepoint {unknown.after}, by a commit that is not on the active "
                "timeline, and the archive, which says whether it was completed, is missing: older rows might be "
                "shown as the latest. Nothing was changed; bring the archive back from a copy of the table; if that "
                "write was never completed, delete its files"
            )


def _slices(context: ViewContext, key: GroupKey, group: _Group) -> list[FileSlice]:
    """All slices of a group, committed or not, newest first."""
    pending = context.pending_compactions.get(key)
    # A log compaction opens no slice: its result is one more log file of the slice that is there.
    compaction = pending.instant_time if pending is not None and not pending.is_log_compaction else None
    if not group.logs and compaction is None:  # most groups of most tables, so this path is kept short
        return [FileSlice(key[0], key[1], time, group.bases[time]) for time in sorted(group.bases, reverse=True)]
    times = set(group.bases)
    if compaction is not None:
        times.add(compaction)
    logs_by_time: dict[str, list[LogFile]] = {}
    opened = None if context.log_naming.tells_slice else _Opened(context, times, compaction)
    for log in sorted(group.logs, key=lambda each: each.order):
        # Which slice a log file is on decides whether a clean deletes it with that slice, hence rule Z-4 to the letter.
        time = log.instant_time if opened is None else opened.slice_time(log)
        # A slice of log files alone: its base file was never written, or rows of a new group came as logs.
        if time not in times:
            times.add(time)
            opened = None if opened is None else _Opened(context, times, compaction)
        logs_by_time.setdefault(time, []).append(log)
    return [
        FileSlice(key[0], key[1], time, group.bases.get(time), tuple(logs_by_time.get(time, ())))
        for time in sorted(times, reverse=True)
    ]


class _Opened:
    """
    Finds the slice that a log file of layout 2 belongs to (rule Z-4).

    That is the newest one that existed when its delta commit completed; while that is pending, the newest of all.

    Where Apache Hudi counts all base files, a completed delta commit here passes over those of writes that are not
    completed in this view: of a failed or running write, of a task that came too late, of a later time than the one
    that is asked for. On such a slice, which nobody is shown, its rows would be missing from the table.
    """

    def __init__(self, context: ViewContext, times: Iterable[str], compaction: str | None) -> None:
        self._completion_times = context.completion_times
        self._all = sorted(times)
        # The slice that a pending compaction opens is read together with the one below.
        self._shown = [time for time in self._all if time == compaction or context.is_committed(time)]

    def slice_time(self, log: LogFile) -> str:
        """Base instant of the slice; the time of the log file itself if there is none."""
        completion = self._completion_times.get(log.instant_time)
        if completion is None:
            return self._all[-1] if self._all else log.instant_time
        position = bisect_right(self._shown, completion)
        return self._shown[position - 1] if position else log.instant_time


def latest_slices(context: ViewContext, partition: PartitionView) -> tuple[FileSlice, ...]:
    """
    The newest slice of each live group, without files of writes that are not completed, as Apache Hudi lists them.

    Log files behind a pending compaction are in no slice of a view of completed commits, though their rows count: what
    a reader opens is found by `hudi_py.fsview.as_of.readable_slices`. In layout 1 a log file's name does not tell which
    delta commit wrote it, so all of them stay.
    """
    latest = (group.slices[0] for group in partition.groups if group.slices)
    return tuple(without_pending_files(context, each) for each in latest)


def without_pending_files(context: ViewContext, file_slice: FileSlice) -> FileSlice:
    """The slice without log files of writes that are not completed; in layout 1 names do not show the write."""
    if context.log_naming.tells_slice:
        return file_slice
    logs = tuple(log for log in file_slice.log_files if context.is_completed(log.instant_time))
    return file_slice if len(logs) == len(file_slice.log_files) else attrs.evolve(file_slice, log_files=logs)


def newest_bases(partition: PartitionView) -> tuple[str, ...]:
    """The name of the newest base file of each live group; empty if one has log files only."""
    groups = (each.slices for each in partition.groups if each.slices)
    found = tuple(next((each.base_file.name for each in slices if each.base_file), "") for slices in groups)
    return () if "" in found else found


def latest_base_files(context: ViewContext, partition: PartitionView) -> tuple[BaseFile, ...]:
    """The newest base file of each live group, leaving out those a pending compaction or clustering is writing."""
    found = []
    for group in partition.groups:
        for file_slice in group.slices:
            base = file_slice.base_file
            if base is not None and context.is_completed(base.instant_time):
                found.append(base)
                break
    return tuple(found)

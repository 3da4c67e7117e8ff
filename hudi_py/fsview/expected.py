"""
The files that the latest slice of each file group must have, according to the completed commits. Pure.

A listing shows existing files, so if the latest version of a file is lost, an older one looks like the latest. But each
completed commit names the files that it wrote. Every reader needs the newest base file of a group among those, and the
log files on top of it; no clean, compaction or clustering deletes them as long as the group is not replaced, and a
rollback or restore first removes the commit that names them. So if one of them is missing, rows are lost.

One exception: if archival went beyond a savepoint, the savepointed commit is still active, but the commit that replaced
its groups is archived (rule D-7); `is_replaced_since` judges that.

Source: rules/table-services Z-1 to Z-6, rules/data-files 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import attrs

from hudi_py.fsview.build import GroupKey
from hudi_py.model.files import NOT_REGULAR, join_path, parse_base_file, parse_log_file
from hudi_py.model.instant import Action, Instant
from hudi_py.model.records import (
    CleanerPlan,
    CleanMetadata,
    CommitMetadata,
    RestoreMetadata,
    RollbackMetadata,
    RollbackPlan,
)
from hudi_py.versions.format import LogNaming

WAY_OUT: Final = (
    "Nothing was changed. hudi-py check shows everything that is lost; go back to a savepoint (hudi-py restore), roll "
    "that commit back, or read an earlier time (--as-of)"
)
_SIZE_UNKNOWN = 0


class Written(NamedTuple):
    """
    A data file that a completed commit names.

    Args:
        partition_path: Relative path.
        name: Name of the file, without folders.
        file_id: The file id of its group.
        slice_time: Of a base file its own time; of a log file the time that decides which slice it lies on: the base
            instant in its name (layout 1), or the completion time of its delta commit (layout 2).
        size_bytes: The largest size that a commit recorded; 0 if unknown.
        commit: The last completed commit that names it.
        is_log: Whether it is a log file.
    """

    partition_path: str
    name: str
    file_id: str
    slice_time: str
    size_bytes: int
    commit: Instant
    is_log: bool

    @property
    def path(self) -> str:
        """Relative to the table."""
        return join_path(self.partition_path, self.name)


@attrs.frozen
class ExpectedSlice:
    """
    Files that the latest slice of a live file group must have; it may have more, of archived commits.

    Args:
        base: The newest base file that an active commit names; None where they name log files only.
        logs: Log files that active commits name and that lie on *base*, or on an older one where that is None.
    """

    base: Written | None
    logs: tuple[Written, ...] = ()

    @property
    def files(self) -> tuple[Written, ...]:
        """Base file and logs."""
        return self.logs if self.base is None else (self.base, *self.logs)


class Mismatch(NamedTuple):
    """A file that readers of the latest snapshot need, and that is not as its commit wrote it."""

    file: Written
    size_bytes: int | None  # its present size (`NOT_REGULAR`: not a regular file); None if the file is missing


@attrs.define
class _Group:
    base: Written | None = None
    logs: dict[str, Written] = attrs.field(factory=dict)


def expected_slices(
    commits: Iterable[tuple[Instant, CommitMetadata]], log_naming: LogNaming
) -> dict[GroupKey, ExpectedSlice]:
    """
    The latest slices by what the commits wrote; replaced groups are left out.

    Args:
        commits: Completed writes of the active timeline, by requested time; only those up to a time for the slices of
            that time.
        log_naming: How log files find their slice.
    """
    written: list[Written] = []
    replaced: set[GroupKey] = set()
    for commit, metadata in commits:
        written += written_files(commit, metadata, log_naming)
        replaced.update(replaced_groups(metadata))
    return {key: latest for key, latest in latest_slices(written).items() if key not in replaced}


def latest_slices(written: Iterable[Written]) -> dict[GroupKey, ExpectedSlice]:
    """The latest slice of each group by what was *written*, in the order of the commits; replaced groups too."""
    groups: dict[GroupKey, _Group] = {}
    for file in written:
        group = groups.setdefault((file.partition_path, file.file_id), _Group())
        if not file.is_log:
            if group.base is None or group.base.slice_time <= file.slice_time:
                group.base = file
            continue
        known = group.logs.get(file.name)  # in layout 1 it grows with each delta commit
        larger = file.size_bytes if known is None else max(file.size_bytes, known.size_bytes)
        group.logs[file.name] = file._replace(size_bytes=larger)
    return {key: _latest(group) for key, group in groups.items()}


def _latest(group: _Group) -> ExpectedSlice:
    # What lies on an older base file was merged into this one.
    start = "" if group.base is None else group.base.slice_time
    return ExpectedSlice(group.base, tuple(log for log in group.logs.values() if log.slice_time >= start))


def written_files(commit: Instant, metadata: CommitMetadata, log_naming: LogNaming) -> Iterable[Written]:
    """The base and log files that a commit names, without change logs, which readers of snapshots do not need."""
    for partition, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            name = (stat.path or "").rpartition("/")[2]
            base = parse_base_file(name)
            log = None if base is not None else parse_log_file(name)
            if base is not None:
                yield Written(partition, name, base.file_id, base.instant_time, stat.file_size_in_bytes, commit, False)
            elif log is not None:
                # As for `build`: in layout 2 the name of a log file does not tell the slice, the completion of its
                # commit does.
                time = log.instant_time if log_naming.tells_slice else commit.completion_time or commit.requested_time
                yield Written(partition, name, log.file_id, time, stat.file_size_in_bytes, commit, True)


def replaced_groups(metadata: CommitMetadata) -> Iterable[GroupKey]:
    """The groups that a replacecommit superseded."""
    for partition, file_ids in (metadata.partition_to_replace_file_ids or {}).items():
        for file_id in file_ids:
            yield partition, file_id


def mismatches(expected: Iterable[ExpectedSlice], there: Mapping[str, Mapping[str, int | None]]) -> list[Mismatch]:
    """
    The expected files that are missing or have another size; log files may be larger: rollbacks append to them.

    Args:
        expected: Expected slices of the partitions that were listed.
        there: Partition path to names and sizes in bytes (None = not asked for) of what lies in it.
    """
    found = []
    for each in expected:
        for file in each.files:
            files = there.get(file.partition_path, {})
            if file.name not in files:
                found.append(Mismatch(file, None))
                continue
            size = files[file.name]
            if not is_size_right(file.size_bytes, size, is_log=file.is_log):
                found.append(Mismatch(file, size))
    return found


def is_size_right(recorded: int, there: int | None, *, is_log: bool) -> bool:
    """
    Whether a file is as large as its commit recorded, in bytes, as far as both are known.

    Args:
        recorded: The largest size that a commit recorded; 0 if unknown, or if the file was written empty, as files of
            benchmarks are. Such a file may be listed, planned and deleted; reading its rows fails, for it is not
            Parquet.
        there: The present size; None if not known. `NOT_REGULAR` is never right.
        is_log: Whether it is a log file, which may be larger.
    """
    if there is None:
        return True
    # Before the recorded size, which may be unknown: a folder or a pipe never holds rows.
    if there == NOT_REGULAR:
        return False
    if recorded <= _SIZE_UNKNOWN:
        return True
    return there == recorded or (is_log and there > recorded)


def damaged_file(path: str, size: int, recorded: int, writer: str) -> str:
    """The message about a data file that is not of the size that the completed *writer* recorded (0 when unknown)."""
    wrote = f"the completed {writer} wrote {f'{recorded} bytes' if recorded > _SIZE_UNKNOWN else 'a data file'} there"
    if size == NOT_REGULAR:
        what = f"is not a regular file but a folder, a pipe, a socket or a device, and {wrote}: it was replaced"
    elif recorded <= _SIZE_UNKNOWN:
        what = f"is empty, and {wrote}: it was cut off or overwritten"
    else:
        what = f"has {size} bytes, and the completed {writer} wrote {recorded}: it was cut off or overwritten"
    return f"{path} {what}, and its rows are lost. {WAY_OUT}"


def mismatch_message(root: str, found: Mismatch, *, more: str = "", story: str = "") -> str:
    """
    The message about a file that is not as its commit wrote it.

    Args:
        root: The table's location: full path or URL.
        more: Number of further files, named behind the path.
        story: Of a missing file: what removed it.
    """
    file, size = found
    path, writer = f"{root}/{file.path}{more}", f"{file.commit.action.value} {file.commit.requested_time}"
    if size is not None:
        return damaged_file(path, size, file.size_bytes, writer)
    return (
        f"{path} is missing, which the completed {writer} wrote{story}: older rows would be shown as the latest. "
        f"{WAY_OUT}"
    )


Removals = dict[tuple[str, str], list[Instant]]
"""(partition path, file name) to the instants that removed the file, or are about to."""


def removals(contents: Iterable[tuple[Instant, object]]) -> Removals:
    """
    The cleans, rollbacks and restores, completed or pending, that name a file as removed.

    For a file that the latest slice needs, this does not justify that it is missing, but it explains it: what was right
    when the clean was planned was undone since, or the instant is half done.

    Args:
        contents: Instants with their contents (`model.records`); other instants are ignored.
    """
    found: Removals = {}
    for instant, content in contents:
        for partition, name in _removed(content):
            found.setdefault((partition, name), []).append(instant)
    return found


def _removed(content: object) -> Iterable[tuple[str, str]]:
    if isinstance(content, CleanMetadata):
        for path, done in content.partitions.items():
            yield from ((path, name) for name in done.delete_path_patterns)
    elif isinstance(content, CleanerPlan):
        for path, files in content.files_to_delete.items():
            yield from ((path, file.name) for file in files)
    # Failed deletions, too: the file may be deleted since.
    elif isinstance(content, RollbackMetadata):
        for path, undone in content.partitions.items():
            for name in (*undone.success_delete_files, *undone.failed_delete_files):
                yield path, name.rpartition("/")[2]
    elif isinstance(content, RollbackPlan):
        for request in content.rollback_requests:
            for name in request.files_to_be_deleted:
                yield request.partition_path, name.rpartition("/")[2]
    elif isinstance(content, RestoreMetadata):
        for rollbacks in content.rollbacks.values():
            for rollback in rollbacks:
                yield from _removed(rollback)


def is_replaced_since(file: Written, removed_by: Iterable[Instant], replaced: Mapping[GroupKey, str]) -> bool:
    """
    Whether a completed clean removed a missing file after its group was replaced, so that it is not lost.

    Args:
        file: The missing file, of a group that no active commit replaced.
        removed_by: From `removals`.
        replaced: File group to requested time of the *archived* replacecommit that replaced it.
    """
    time = replaced.get((file.partition_path, file.file_id))
    # Replaced, and then written again under the same file id: the newer commit counts.
    if time is None or time < file.commit.requested_time:
        return False
    return any(each.action is Action.CLEAN and each.is_completed and each.requested_time > time for each in removed_by)

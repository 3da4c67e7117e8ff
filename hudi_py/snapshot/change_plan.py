"""
Which files hold the single changes of each commit of a range. Pure.

A table with change data capture has change logs beside the base files that updates and deletes wrote. Where a commit
wrote no change log, its changes follow from its files: a new base file holds inserts, a replaced or emptied file group
held deleted rows.

Source: Hudi ``HoodieCDCExtractor``, ``HoodieCDCInferenceCase``.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from hudi_py.errors import CorruptMetadata
from hudi_py.fsview.build import GroupKey
from hudi_py.model.change_logging import LoggingMode
from hudi_py.model.files import BaseFile, parse_base_file
from hudi_py.model.records import CommitMetadata, WriteStat
from hudi_py.snapshot.merged_changes import Merge, Merges

_NOT_CHANGES = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX"})


class Source(enum.Enum):
    """Where the changes of one file group in one commit come from."""

    LOGS = "its change logs"
    INSERTED = "all rows of the base file are new"
    DELETED = "all rows of the slice before are deleted"
    MERGED = "its log files, compared with the slice before"


@attrs.frozen(kw_only=True)
class Step:
    """
    The changes of one file group in one commit.

    Args:
        time: Requested time of the commit.
        source: Where they come from.
        partition_path: The group's partition.
        logs: Names of change logs.
        before: Base file before the commit; None if there was none, or if it is deleted.
        after: Base file that the commit wrote; None as for *before*.
        merge: The group's files around the commit, for `Source.MERGED` and for deleted rows in log files.
        missing: Names of files that are needed but do not exist.
    """

    time: str
    source: Source
    partition_path: str
    logs: tuple[str, ...] = ()
    before: BaseFile | None = None
    after: BaseFile | None = None
    merge: Merge | None = None
    missing: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Bytes of both base files; an unknown size counts as 0."""
        return sum(file.size_bytes or 0 for file in (self.before, self.after) if file is not None)


def is_change(metadata: CommitMetadata) -> bool:
    """Whether a commit changed rows; a clustering and a compaction only move them."""
    return metadata.operation_type not in _NOT_CHANGES and not metadata.compacted


def plan_commit(
    time: str,
    metadata: CommitMetadata,
    groups: Mapping[GroupKey, Sequence[BaseFile]],
    names: Mapping[str, frozenset[str]],
    mode: LoggingMode,
    source: str,
    merges: Callable[[], Merges],
    *,
    has_logs: bool,
) -> Iterator[Step]:
    """
    The steps of one commit. Replaced groups come first: the commit may write the same keys again.

    Args:
        time: Its requested time.
        metadata: What it wrote.
        groups: Existing base files of completed writes, by group, oldest first.
        names: Partition path to names of the existing files.
        mode: What the change logs hold.
        source: The commit, for messages.
        merges: Returns the file groups around the commit, with their log files.
        has_logs: Whether the table is merge-on-read.

    Raises:
        UnsupportedTable: Log files are merged in a way that is not served.
        CorruptMetadata: A commit that updated rows names no change log.
    """
    for partition, file_ids in (metadata.partition_to_replace_file_ids or {}).items():
        for file_id in file_ids:
            if has_logs:
                merge = merges().of(partition, file_id, (), names.get(partition, ()))
                missing = () if merge.before is not None else (f"{file_id} before {time}",)
                yield Step(time=time, source=Source.DELETED, partition_path=partition, merge=merge, missing=missing)
                continue
            before = _newest_before(groups, (partition, file_id), time)
            missing = () if before is not None else (f"{file_id} before {time}",)
            yield Step(time=time, source=Source.DELETED, partition_path=partition, before=before, missing=missing)
    for partition, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            if stat.path:
                yield _planned(time, partition, stat, groups, names, mode, source, merges)


def _planned(
    time: str,
    partition: str,
    stat: WriteStat,
    groups: Mapping[GroupKey, Sequence[BaseFile]],
    names: Mapping[str, frozenset[str]],
    mode: LoggingMode,
    source: str,
    merges: Callable[[], Merges],
) -> Step:
    there = names.get(partition, frozenset())
    name = (stat.path or "").rpartition("/")[2]
    written = parse_base_file(name, stat.file_size_in_bytes or None)
    file_id = stat.file_id or ("" if written is None else written.file_id)
    # By the time that the commit recorded, not by order: a compaction in between also writes base files.
    before = _of_time(groups, (partition, file_id), stat.prev_commit)
    after = written if name in there else None
    if stat.cdc_stats:
        logs = tuple(sorted(path.rpartition("/")[2] for path in stat.cdc_stats))
        missing = tuple(log for log in logs if log not in there)
        # A change log without rows names keys; the rows are then looked up in the base files on either side.
        if mode is LoggingMode.KEYS and before is None and stat.num_update_writes + stat.num_deletes:
            missing += (f"{file_id} of {stat.prev_commit}",)
        if mode is not LoggingMode.BOTH and after is None and stat.num_update_writes + stat.num_inserts:
            missing += (name,)
        return Step(
            time=time, source=Source.LOGS, partition_path=partition, logs=logs, before=before, after=after,
            missing=missing,
        )  # fmt: skip
    if written is None:  # a log file of rows: what it changed depends on the slice that it was written to
        needed = (name, *(each.rpartition("/")[2] for each in (stat.base_file or "", *(stat.log_files or ()))))
        missing = tuple(each for each in needed if each and each not in there)
        merge = merges().of(partition, file_id, (name,), there)
        return Step(time=time, source=Source.MERGED, partition_path=partition, merge=merge, missing=missing)
    # All rows of the file group were deleted, so the rows before are the changes.
    if stat.num_writes == 0 and stat.num_deletes:
        missing = () if before is not None else (f"{file_id} of {stat.prev_commit}",)
        return Step(time=time, source=Source.DELETED, partition_path=partition, before=before, missing=missing)
    if stat.num_update_writes == 0 and stat.num_deletes == 0 and stat.num_writes == stat.num_inserts:
        missing = () if after is not None else (name,)
        return Step(time=time, source=Source.INSERTED, partition_path=partition, after=after, missing=missing)
    raise CorruptMetadata(
        f"{source}: {stat.path} was written with updates or deletes and names no change log, so its changes are "
        "unknown; perhaps change data capture was switched on later: begin the range after this commit"
    )


def _of_time(groups: Mapping[GroupKey, Sequence[BaseFile]], key: GroupKey, time: str | None) -> BaseFile | None:
    return next((each for each in groups.get(key, ()) if each.instant_time == time), None)


def _newest_before(groups: Mapping[GroupKey, Sequence[BaseFile]], key: GroupKey, time: str) -> BaseFile | None:
    return next((each for each in reversed(groups.get(key, ())) if each.instant_time < time), None)

"""
Which files hold the single changes of each commit of a range. Pure.

A table with change data capture has change logs beside the base files that updates and deletes wrote. Where a commit
wrote no change log, its changes follow from its files: a new base file holds inserts, a replaced or emptied file group
held deleted rows.

Source: Hudi ``HoodieCDCExtractor``, ``HoodieCDCInferenceCase``.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from hudi_py.errors import CorruptMetadata
from hudi_py.fsview.build import GroupKey
from hudi_py.fsview.expected import damaged_file, is_size_right
from hudi_py.model.change_logging import LoggingMode
from hudi_py.model.files import BaseFile, LogFile, parse_base_file, parse_data_file, parse_log_file
from hudi_py.model.records import CommitMetadata, WriteStat
from hudi_py.snapshot.merged_changes import Merge, Merges

_NO_COMMIT = "null"
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
        logs: Names of change logs to the sizes in bytes that the commit recorded, 0 if unknown.
        before: Base file before the commit; None if there was none, or if it is deleted.
        after: Base file that the commit wrote; None as for *before*.
        merge: The group's files around the commit, for `Source.MERGED` and for deleted rows in log files.
        is_partly_new: Whether *after* also holds rows from before the commit, for `Source.INSERTED`.
        missing: Names of files that are needed but do not exist.
    """

    time: str
    source: Source
    partition_path: str
    logs: Mapping[str, int] = attrs.field(factory=dict)
    before: BaseFile | None = None
    after: BaseFile | None = None
    merge: Merge | None = None
    is_partly_new: bool = False
    missing: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Bytes of both base files; an unknown size counts as 0."""
        return sum(file.size_bytes or 0 for file in (self.before, self.after) if file is not None)

    def check_log(self, name: str, size: int, source: str) -> None:
        """
        Compare the size of a change log with its commit: one that ends with a block decodes without its last changes.

        Raises:
            CorruptMetadata: It was cut off.
        """
        if not size or not is_size_right(self.logs[name], size, is_log=True):
            raise CorruptMetadata(damaged_file(source, size, self.logs[name], f"commit {self.time}"))


def is_change(metadata: CommitMetadata) -> bool:
    """Whether a commit changed rows; a clustering and a compaction only move them."""
    return metadata.operation_type not in _NOT_CHANGES and not metadata.compacted


@attrs.frozen(kw_only=True)
class CommitFiles:
    """
    The files that a commit wrote to, and the others of their file groups.

    Args:
        time: Requested time of the commit.
        source: The commit, for messages.
        groups: Existing base files of completed writes, by group, oldest first.
        names: Partition path to names of the existing files.
        mode: What the change logs hold.
        merges: Returns the file groups around the commit, with their log files.
        wrote: Returns what the completed write of a time wrote.
        has_logs: Whether the table is merge-on-read.
    """

    time: str
    source: str
    groups: Mapping[GroupKey, Sequence[BaseFile]]
    names: Mapping[str, frozenset[str]]
    mode: LoggingMode
    merges: Callable[[], Merges]
    wrote: Callable[[str], CommitMetadata | None]
    has_logs: bool

    def steps(self, metadata: CommitMetadata) -> Iterator[Step]:
        """
        Plan how to read the changes of the commit. Replaced groups come first: it may write the same keys again.

        Args:
            metadata: What it wrote.

        Raises:
            UnsupportedTable: Log files are merged in a way that is not served.
            CorruptMetadata: A commit that updated rows names no change log.
        """
        for partition, file_ids in (metadata.partition_to_replace_file_ids or {}).items():
            for file_id in file_ids:
                yield self._replaced(partition, file_id)
        for partition, stats in metadata.partition_to_write_stats.items():
            for stat in stats:
                step = self._written(partition, stat) if stat.path else None
                if step is not None:
                    yield step

    def _replaced(self, partition: str, file_id: str) -> Step:
        merge = self.merges().of(partition, file_id, (), self.names.get(partition, ())) if self.has_logs else None
        before = None if self.has_logs else self._newest_before((partition, file_id))
        is_there = before is not None or (merge is not None and merge.before is not None)
        missing = () if is_there else (f"{file_id} before {self.time}",)
        return self._step(Source.DELETED, partition, before=before, merge=merge, missing=missing)

    def _newest_before(self, key: GroupKey) -> BaseFile | None:
        return next((each for each in reversed(self.groups.get(key, ())) if each.instant_time < self.time), None)

    def _step(self, source: Source, partition: str, **more: Any) -> Step:
        return Step(time=self.time, source=source, partition_path=partition, **more)

    def _written(self, partition: str, stat: WriteStat) -> Step | None:
        there = self.names.get(partition, frozenset())
        name = (stat.path or "").rpartition("/")[2]
        written = parse_base_file(name, stat.file_size_in_bytes or None)
        file_id = stat.file_id or ("" if written is None else written.file_id)
        # By the time that the commit recorded, not by order: a compaction in between also writes base files.
        before = _of_time(self.groups, (partition, file_id), stat.prev_commit)
        after = written if name in there else None
        logs = _change_logs(self.time, file_id, stat, there)
        if logs:
            missing = tuple(log for log in logs if log not in there)
            # A change log without rows names keys; the rows are then looked up in the base files on either side.
            if self.mode is LoggingMode.KEYS and before is None and stat.num_update_writes + stat.num_deletes:
                missing += (f"{file_id} of {stat.prev_commit}",)
            if self.mode is not LoggingMode.BOTH and after is None and stat.num_update_writes + stat.num_inserts:
                missing += (name,)
            return self._step(Source.LOGS, partition, logs=logs, before=before, after=after, missing=missing)
        if written is None:  # a log file of rows: what it changed depends on the slice that it was written to
            missing = tuple(each for each in _needed(self.time, name, stat, there, self.wrote) if each not in there)
            merge = self.merges().of(partition, file_id, (name,), there)
            return self._step(Source.MERGED, partition, merge=merge, missing=missing)
        # Nothing was there before: records that only delete, which Apache Hudi counts, changed nothing.
        is_new = stat.prev_commit == _NO_COMMIT and self._newest_before((partition, file_id)) is None
        if is_new and not stat.num_update_writes:
            if not stat.num_writes:
                return None
            missing = () if after is not None else (name,)
            return self._step(Source.INSERTED, partition, after=after, missing=missing)
        # All rows of the file group were deleted, so the rows before are the changes.
        if stat.num_writes == 0 and stat.num_deletes:
            missing = () if before is not None else (f"{file_id} of {stat.prev_commit}",)
            return self._step(Source.DELETED, partition, before=before, missing=missing)
        # Apache Hudi logs nothing where an insert copied the rows that a file had: the new ones have the commit's time.
        if stat.num_update_writes == 0 and stat.num_deletes == 0:
            missing = () if after is not None else (name,)
            is_partly_new = stat.num_writes != stat.num_inserts
            return self._step(Source.INSERTED, partition, after=after, is_partly_new=is_partly_new, missing=missing)
        # The archive of layout 1 does not name the change log, and cleans delete it together with the base file.
        if stat.cdc_stats is None and after is None:
            return self._step(Source.LOGS, partition, missing=(name,))
        raise CorruptMetadata(
            f"{self.source}: {stat.path} was written with updates or deletes and names no change log, so its changes "
            "are unknown; perhaps change data capture was switched on later: begin the range after this commit"
        )


def lost_before(step: Step, deleted: Iterable[str], there: Collection[str]) -> tuple[str, ...]:
    """
    Names of the files in which a replaced group had its rows, if cleans deleted these and kept older ones.

    That is what a savepoint does, and a retention that keeps single days.

    Args:
        step: A step of `Source.DELETED`.
        deleted: Names of the files of the partition that cleans deleted.
        there: Names of those that exist.
    """
    if step.source is not Source.DELETED:
        return ()
    before = step.before if step.merge is None else step.merge.before
    if before is None:
        return ()
    begin = before.instant_time if isinstance(before, BaseFile) else before.base_instant_time
    files = (each for each in map(parse_data_file, deleted) if each is not None and each.file_id == before.file_id)
    return tuple(
        sorted(
            each.name
            for each in files
            if begin <= each.instant_time < step.time
            and each.name not in there
            and not (isinstance(each, LogFile) and each.is_cdc)
        )
    )


def _change_logs(time: str, file_id: str, stat: WriteStat, there: frozenset[str]) -> dict[str, int]:
    """The change logs beside a base file: as recorded, else (archive of layout 1) those of the commit."""
    if stat.cdc_stats is not None:
        return {path.rpartition("/")[2]: size for path, size in sorted(stat.cdc_stats.items())}
    # By the text first: a partition may have many thousands of names, and each file of a commit asks.
    logs = (parse_log_file(name) for name in there if file_id in name and time in name)
    return dict.fromkeys(sorted(log.name for log in logs if log is not None and _is_change_log(log, file_id, time)), 0)


def _is_change_log(log: LogFile, file_id: str, time: str) -> bool:
    return log.is_cdc and log.file_id == file_id and log.instant_time == time


def _needed(
    time: str, name: str, stat: WriteStat, there: frozenset[str], wrote: Callable[[str], CommitMetadata | None]
) -> Iterator[str]:
    """Names of the files of the slice that a log file was written to; of a missing one that cannot be named, its id."""
    yield name
    if stat.log_files is not None:
        yield from (each.rpartition("/")[2] for each in (stat.base_file or "", *stat.log_files) if each)
        return
    # The archive of layout 1 names neither, but there the name of a log file has the time of its slice and its number.
    own = parse_log_file(name)
    if own is None or own.instant_time == time:
        return
    parsed = [each for each in map(parse_data_file, there) if each is not None and each.file_id == own.file_id]
    of_slice = [each for each in parsed if each.instant_time == own.instant_time]
    numbers = {each.version for each in of_slice if isinstance(each, LogFile) and not each.is_cdc}
    yield from (f"log file {number} of {own.file_id}" for number in range(1, own.version) if number not in numbers)
    if not any(isinstance(each, BaseFile) for each in of_slice):
        yield from _base_of(own, wrote(own.instant_time))


def _base_of(own: LogFile, metadata: CommitMetadata | None) -> Iterator[str]:
    """The base file of the slice, by the write that began it; nothing if that wrote a log file."""
    if metadata is None:
        yield f"{own.file_id} of {own.instant_time}"
        return
    stats = (stat for stats in metadata.partition_to_write_stats.values() for stat in stats)
    names = ((stat.path or "").rpartition("/")[2] for stat in stats)
    yield from (name for name in names if (base := parse_base_file(name)) is not None and base.file_id == own.file_id)


def _of_time(groups: Mapping[GroupKey, Sequence[BaseFile]], key: GroupKey, time: str | None) -> BaseFile | None:
    return next((each for each in groups.get(key, ()) if each.instant_time == time), None)

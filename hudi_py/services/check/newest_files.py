"""The newest data files of a table, as its active commits say; what checks of indexes look at. Reads commits only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hudi_py.model.files import parse_base_file, parse_log_file
from hudi_py.model.instant import Instant
from hudi_py.model.records import CommitMetadata
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline


class WrittenData(NamedTuple):
    """A base or log file that a commit wrote; *has_deletes* is set for log files only."""

    partition_path: str
    file_id: str
    name: str
    size_bytes: int
    has_deletes: bool


def newest_files(contents: Contents, timeline: Timeline, files_max: int) -> list[WrittenData]:
    """
    Return files of the newest slices, newest first: of each group its base file and the log files that came after it.

    Args:
        contents: Contents of the table's timeline.
        timeline: Timeline of the table; what is archived was looked at when it was new.
        files_max: About how many; at least one commit is taken whole.
    """
    found: list[WrittenData] = []
    # Groups that were replaced ("9" is above all times), or whose base file is found: to the time of that.
    closed: dict[tuple[str, str], str] = {}
    tells_slice = contents.store.config.format.log_naming.tells_slice
    # Newest first, until enough files are found: older ones were looked at when they were new.
    for instant in reversed(timeline.commits.completed()):
        metadata = contents.commit(instant)
        for path, file_ids in (metadata.partition_to_replace_file_ids or {}).items():
            # Readers open no file of a replaced group, so nothing has to be right about it.
            closed.update(((path, file_id), "9") for file_id in file_ids)
        written = [
            each
            for each in _written(metadata)
            # A delta commit may have been requested before the compaction on whose base file its log files are.
            if each[:2] not in closed or (not tells_slice and _is_above(each, instant, closed[each[:2]]))
        ]
        found += written
        bases = (each[:2] for each in written if parse_base_file(each.name) is not None)
        closed.update((group, instant.requested_time) for group in bases)
        if len(found) >= files_max:
            break
    return found


def _is_above(file: WrittenData, instant: Instant, base_time: str) -> bool:
    """Whether a file of layout 2 is a log file of the slice that a base file of this time began (rule Z-4)."""
    return parse_log_file(file.name) is not None and (instant.completion_time or "") > base_time


def _written(metadata: CommitMetadata) -> Iterator[WrittenData]:
    for path, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            if stat.path is not None and stat.file_id is not None:
                has_deletes = stat.log_version is not None and stat.num_deletes > 0
                name = stat.path.rpartition("/")[2]
                yield WrittenData(path, stat.file_id, name, stat.file_size_in_bytes, has_deletes)

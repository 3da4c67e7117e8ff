"""Finds where in log files completed commits wrote: damage there loses rows, damage elsewhere is of a dead writer."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from hudi_py.fsview.needed import NeededFiles
from hudi_py.model.instant import Instant
from hudi_py.model.records import CommitMetadata
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline


@attrs.frozen
class WrittenRanges:
    """
    Looks into the commits for what they wrote in a log file; can be sent to where the file is read.

    Args:
        contents: Contents of the table's instants.
        timeline: Timeline of the snapshot.
        until: Requested time of an earlier snapshot; None for the latest.
    """

    contents: Contents
    timeline: Timeline
    until: str | None = None

    def __call__(self, path: str) -> list[tuple[int, int]]:
        """Return the ranges of bytes (first, behind the last) of one log file, given by its path."""
        return written_ranges(NeededFiles(self.contents, self.timeline, self.until).metadata, path)


def written_ranges(commits: Iterable[tuple[Instant, CommitMetadata]], path: str) -> list[tuple[int, int]]:
    """
    Where completed commits wrote in one log file: ranges of bytes (first, behind the last).

    Args:
        commits: Completed commits with their contents.
        path: Path of the file, relative to the table.
    """
    return [
        # In layout 1 several delta commits append to one log file, and a stat has the size after its own part.
        (stat.log_offset or 0, stat.file_size_in_bytes)
        for _, commit in commits
        for stats in commit.partition_to_write_stats.values()
        for stat in stats
        if stat.path == path
    ]

"""What the timeline and the archive say of who wrote in a log file, where its blocks leave a doubt."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

import attrs

from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.fsview.needed import NeededFiles
from hudi_py.model.instant import Instant
from hudi_py.model.records import CommitMetadata
from hudi_py.runtime.log import log
from hudi_py.timeline.archive import load_archived, load_archived_rollbacks
from hudi_py.timeline.completions import undoing
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline


class WrittenRange(NamedTuple):
    """
    Bytes of a log file that a completed commit wrote.

    Args:
        first: The first of them.
        behind: The byte behind the last one.
        time: Requested time of the commit.
    """

    first: int
    behind: int
    time: str


@attrs.frozen(slots=False)
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

    def __call__(self, path: str) -> list[WrittenRange]:
        """Return the ranges of one log file, given by its path."""
        return written_ranges(NeededFiles(self.contents, self.timeline, self.until).metadata, path)

    @property
    def names_writes(self) -> bool:
        """Whether log files are named after their writes, in layout 2; otherwise after the slice that they are on."""
        return not self.contents.store.config.format.log_naming.tells_slice

    @cached_property
    def completed(self) -> frozenset[str]:
        """Requested times of the completed writes."""
        return frozenset(each.requested_time for each in self.timeline.writes.completed())

    def is_known(self, time: str) -> bool:
        """
        Whether there was a write of that time: one of the active timeline as it is now, one that a rollback or restore
        undid, or an archived one; true as well if the archive cannot be read, or begins later.
        """
        store = self.contents.store
        # Loaded again: a write that began after the snapshot was opened may have appended to a file meanwhile.
        if any(each.requested_time == time for each in (*self.timeline.instants, *store.load().instants)):
            return True
        if undoing(self.contents, [time]) is not None:
            return True
        try:
            archived = {each.requested_time for each in load_archived(store.storage, store.config).instants}
            if time in archived or time < min(archived, default=time):
                return True
            return any(time in undone for undone in load_archived_rollbacks(store.storage, store.config).values())
        except (CorruptMetadata, NotFound) as error:
            log.warning("read.archive.unreadable", table=store.storage.root, error=str(error))
            return True


def written_ranges(commits: Iterable[tuple[Instant, CommitMetadata]], path: str) -> list[WrittenRange]:
    """
    Where completed commits wrote in one log file.

    Args:
        commits: Completed commits with their contents.
        path: Path of the file, relative to the table.
    """
    return [
        # In layout 1 several delta commits append to one log file, and a stat has the size after its own part.
        WrittenRange(stat.log_offset or 0, stat.file_size_in_bytes, instant.requested_time)
        for instant, commit in commits
        for stats in commit.partition_to_write_stats.values()
        for stat in stats
        if stat.path == path
    ]

"""What the timeline and the archive say of who wrote in a log file, where its blocks leave a doubt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import attrs

from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.fsview.needed import NeededFiles
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

    def __call__(self, path: str) -> Sequence[WrittenRange]:
        """Return the ranges of one log file, given by its path."""
        return self._of_logs.get(path, ())

    @cached_property
    def _of_logs(self) -> Mapping[str, Sequence[WrittenRange]]:
        """Path of a log file to its ranges. Once for all slices: a write that is under way has blocks in many."""
        found: dict[str, list[WrittenRange]] = {}
        for instant, commit in NeededFiles(self.contents, self.timeline, self.until).metadata:
            for stats in commit.partition_to_write_stats.values():
                for stat in stats:
                    if stat.path is not None and stat.log_version is not None:
                        # In layout 1 several delta commits append to one log file, and a stat has the size after its
                        # own part.
                        found.setdefault(stat.path, []).append(
                            WrittenRange(stat.log_offset or 0, stat.file_size_in_bytes, instant.requested_time)
                        )
        return found

    @property
    def names_writes(self) -> bool:
        """Whether log files are named after their writes, in layout 2; otherwise after the slice that they are on."""
        return not self.contents.store.config.format.log_naming.tells_slice

    def is_completed(self, time: str) -> bool:
        """Whether the write of that time is completed, or so old that it is archived."""
        return time in self.completed or (self.timeline.is_before_commits(time) and time not in self._pending)

    @cached_property
    def completed(self) -> frozenset[str]:
        """Requested times of the completed writes of the timeline."""
        return frozenset(each.requested_time for each in self.timeline.writes.completed())

    @cached_property
    def _pending(self) -> frozenset[str]:
        return frozenset(each.requested_time for each in self.timeline.pending())

    def is_known(self, time: str) -> bool:
        """
        Whether there was a write of that time: one of the active timeline as it is now, one that a rollback or restore
        undid, or an archived one; true as well if the archive cannot be read, or begins later.
        """
        if time not in self._known:
            self._known[time] = self._is_known(time)
        return self._known[time]

    @cached_property
    def _known(self) -> dict[str, bool]:
        return {}

    def _is_known(self, time: str) -> bool:
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

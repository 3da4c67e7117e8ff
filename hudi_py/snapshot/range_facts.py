"""
What the timeline and the archive say about a range of time: each fact is read once, when it is first needed.

Nothing is decided here: `hudi_py.snapshot.range_contents` works out which commits and files belong to the range.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final

from hudi_py.errors import CorruptMetadata
from hudi_py.fsview.loader import load_context
from hudi_py.model.instant import Action, Instant
from hudi_py.model.records import CommitMetadata
from hudi_py.snapshot.retained import earliest_retained
from hudi_py.snapshot.window import Window, needs_archive
from hudi_py.timeline.archive import (
    load_archived,
    load_archived_contents,
    load_archived_metadata,
    load_archived_written,
)
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.order import COMPLETED_WRITES, order_times
from hudi_py.timeline.timeline import Timeline

_REWRITING: Final = frozenset({(Action.COMMIT, "COMPACT"), (Action.REPLACE_COMMIT, "CLUSTER")})
"""Action and operation of completed writes that change no rows."""
_BEHIND_ALL: Final = "~"  # greater than every digit


def files_named(commit: CommitMetadata, path: str) -> Iterator[str]:
    """Names of the files that a commit wrote to a partition."""
    return ((stat.path or "").rpartition("/")[2] for stat in commit.partition_to_write_stats.get(path, ()))


class RangeFacts:
    """
    Reads what a range needs to know of the table.

    Args:
        contents: Reads the instants of the timeline.
        timeline: The active timeline.
        window: The range.
        one_by_one: Whether the writes of the range are asked for one by one, so that archived ones have to be known.

    Attributes:
        now: View context of the table as it is now.
        by_completion: Whether ranges compare completion times (layout 2), else requested times.
        times: Requested time of each completed write to the time that ranges compare.
        knows_archive: Whether archived writes are among *times*.
    """

    def __init__(self, contents: Contents, timeline: Timeline, window: Window, *, one_by_one: bool = False) -> None:
        self._contents, self._timeline, self._window = contents, timeline, window
        self.by_completion = contents.store.layout.has_completion_times
        # A pending clustering hides nothing from a range of layout 2: what has not completed is not in it.
        self.now = load_context(timeline, contents, with_clustering=not self.by_completion)
        self.times: Mapping[str, str] = order_times(timeline, by_completion=self.by_completion)
        self.knows_archive = False
        # Only completion times need the archive here: requested times say by themselves on which side of a bound a
        # write lies, but when an archived write completed is only in the archive.
        reaches_back = needs_archive(window, timeline, self.times)
        if (self.by_completion and reaches_back) or (one_by_one and (reaches_back or not window.after)):
            store = contents.store
            archived = load_archived(store.storage, store.config).of(COMPLETED_WRITES)
            self.times = {**order_times(archived, by_completion=self.by_completion), **self.times}
            self.knows_archive = True

    @cached_property
    def rewritings(self) -> frozenset[str]:
        """
        Requested times of compactions and clusterings that were planned by the end of the range and completed after it.

        In layout 2 only. Costs a read for each commit that was under way at the end, because only the content shows
        what kind of commit it is.
        """
        until = self._window.until or ""
        under_way = {time for time, compared in self.times.items() if time <= until < compared}
        known = {each.requested_time: each for each in self._timeline.writes.completed()}
        found = set()
        for time in under_way:
            if time in known:
                said = (known[time].action, self._contents.commit(known[time]).operation_type)
                found |= {time} if said in _REWRITING else set()
                continue
            store = self._contents.store
            archived = load_archived_contents(store.storage, store.config, time)
            found |= {
                each.requested_time
                for each, content in archived.items()
                if isinstance(content, dict) and (each.action, content.get("operationType")) in _REWRITING
            }
        return frozenset(found)

    @cached_property
    def archived_files(self) -> Mapping[str, frozenset[str]]:
        """Partition path to names of the data files that archived commits of the range wrote (layout 1)."""
        store, until = self._contents.store, self._window.until
        # The upper bound is exclusive and the end belongs to the range: with one more digit it comes right behind it.
        behind = _BEHIND_ALL if until is None else f"{until}0"
        return load_archived_written(store.storage, store.config, self._window.after, behind)

    def metadata(self, times: Collection[str]) -> dict[Instant, CommitMetadata]:
        """
        What completed writes with these requested times wrote, also archived ones.

        Raises:
            CorruptMetadata: One was archived without its content, or the archive is damaged.
        """
        active = {each.requested_time: each for each in self._timeline.writes.completed()}
        found = {each: self._contents.commit(each) for time, each in active.items() if time in times}
        store = self._contents.store
        archived = load_archived_metadata(store.storage, store.config, frozenset(times).difference(active))
        for instant, metadata in archived.items():
            if metadata is None:
                raise CorruptMetadata(
                    f"{store.storage.root}/{store.config.history_folder}: {instant} was archived without its content, "
                    f"so what it changed is unknown; begin the range at {self.times.get(instant.requested_time)}"
                )
            found[instant] = metadata
        return found

    def files_written(self, path: str, instants: Iterable[Instant]) -> frozenset[str]:
        """Names of the files that commits wrote to a partition, by their metadata."""
        return frozenset(name for each in instants for name in files_named(self._contents.commit(each), path))

    def partitions_touched(self, instants: Iterable[Instant]) -> frozenset[str]:
        """Paths of the partitions that commits wrote to or replaced file groups of."""
        return frozenset(path for instant in instants for path in self._contents.touched(instant).partition_paths)

    def earliest_retained(self) -> str:
        """The earliest time, as ranges compare it, of which the last clean kept all files."""
        earliest = earliest_retained(self._contents, self._timeline)
        return self.times.get(earliest, earliest)

"""
The rows that changed in a range of time, as a value that stays as it was when it was opened.

A row has changed if its ``_hoodie_commit_time`` names a commit of the range; it is shown as it was at the end of the
range. Compactions and clusterings keep that column, so rows that they copy have not changed. Only partitions that
commits of the range wrote to are listed, and only files that they wrote are opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final

import attrs

from hudi_py.config.keys import Settings
from hudi_py.config.table import TableType
from hudi_py.errors import RefusedError, UnsupportedTable
from hudi_py.fsview.build import ViewContext, build_partition
from hudi_py.fsview.checked import CheckedListing
from hudi_py.fsview.gone import first_gone, first_log_gone
from hudi_py.fsview.listing import Listing
from hudi_py.fsview.loader import load_context
from hudi_py.model.files import FileSlice, LogFile, parse_base_file, parse_log_file
from hudi_py.model.instant import Action, Instant
from hudi_py.snapshot.beside_clean import refuse_what_a_clean_took
from hudi_py.snapshot.retained import earliest_retained
from hudi_py.snapshot.select import bases_of, context_as_of, readable_slices
from hudi_py.snapshot.snapshot import Snapshot
from hudi_py.snapshot.window import (
    Window,
    commits_of,
    context_at_end,
    needs_archive,
    order_times,
    refuse_pending_writes,
    visible_files,
)
from hudi_py.storage.base import Entry
from hudi_py.timeline.archive import load_archived, load_archived_contents, load_archived_written
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_py.rows.log_reading import LogReading
    from hudi_py.rows.predicate import ColumnFilter
    from hudi_py.rows.time_partitions import TimePartitions

WRITES: Final = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
_COMPACT: Final = "COMPACT"
_BEHIND_ALL: Final = "~"  # greater than every digit


@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class Changes(Snapshot):
    """
    The rows that changed in a range of time, as they were at its end.

    Args:
        window: The range.
        commits: Selects the rows that a commit of the range changed last; None for all rows.
        slices: The newest slices at the end of the range, of those that its commits wrote.
        view_context: View context of the table at the end of the range.
    """

    _window: Window
    _commits: ColumnFilter | None
    slices: tuple[FileSlice, ...]
    view_context: ViewContext

    def _facts(self) -> Mapping[str, object]:
        return {"table": self.storage.root, "range": str(self._window), "slices": len(self.slices)}

    def _slices(self) -> Iterable[FileSlice]:
        return self.slices

    def _log_reading(self, slices: Sequence[FileSlice], schema: pa.Schema) -> LogReading | None:
        """As in `Snapshot`; for table version 9, unchanged rows of base files are left out before logs are merged."""
        found = super()._log_reading(slices, schema)
        if found is None or self._commits is None or not self.config.format.ranges_come_first:
            return found
        return attrs.evolve(found, only=self._commits)

    def row_commits(self) -> ColumnFilter | None:
        """Selects the rows that a commit of the range changed last."""
        return self._commits

    def _time_partitions(self) -> TimePartitions | None:
        """As in `Snapshot`, but incremental reads of Hudi 0.15 show the stored values."""
        found = super()._time_partitions()
        return None if found is None or found.is_path_shown else found

    @property
    def _logs_until(self) -> str | None:
        # In layout 2 requested times do not order commits by completion, so a later block can be of an earlier commit:
        # which blocks count follows from the view context alone.
        return None if self.config.format.layout.has_completion_times else self._window.until

    def _log_context(self) -> ViewContext:
        return self.view_context


def open_changes(
    contents: Contents,
    timeline: Timeline,
    listing: Listing,
    settings: Settings,
    window: Window,
    *,
    whole: bool = False,
) -> Changes:
    """
    Find the files with the rows that changed in a range.

    Args:
        contents: Reads the instants of the timeline.
        timeline: The active timeline, as loaded before *listing*.
        listing: The listing of partitions and files.
        settings: The table's settings.
        window: The range.
        whole: Take all rows of the slices that the range wrote to, whenever they changed last.

    Raises:
        RefusedError: A clean deleted files that held the rows at the end of the range, or a write within it may still
            complete (layout 1).
        UnsupportedTable: The rows do not record which commit changed them.
        CorruptMetadata: A file that a commit wrote is missing, or the archive is damaged.
    """
    config = contents.store.config
    look = Look(contents, timeline, window)
    look.refuse_pending_writes()
    slices: list[FileSlice] = []
    for path, entries in look.partitions(listing):
        written = look.slices(path, entries, only_of_range=True)
        groups = {each.file_id for each in written}
        slices += [each for each in look.slices(path, entries) if each.file_id in groups] if whole else written
    is_all = whole or window.is_everything
    found = Changes(
        contents=contents, timeline=timeline, config=config, settings=settings,
        window=window, commits=None if is_all else look.commits, slices=tuple(slices),
        view_context=look.context,
    )  # fmt: skip
    # Only now, after the listing: a clean that ran meanwhile has recorded its deletions by then.
    look.refuse_deleted_files(found)
    return found


class Look:
    """
    Finds the commits, partitions and file slices of a range.

    Args:
        contents: Reads the instants of the timeline.
        timeline: The active timeline.
        window: The range.

    Attributes:
        context: View context of the end of the range.
        commits: The commits of the range.
        times: Requested time of each completed write to the time that ranges compare.

    Raises:
        UnsupportedTable: The rows do not record which commit changed them.
    """

    def __init__(self, contents: Contents, timeline: Timeline, window: Window) -> None:
        self._contents = contents
        self._timeline = timeline
        self._window = window
        store = contents.store
        if not store.config.populate_meta_fields:
            raise UnsupportedTable(
                f"{store.storage.root}: its rows do not record which commit changed them "
                "(hoodie.populate.meta.fields=false); read snapshots instead"
            )
        context = load_context(timeline, contents, with_clustering=not store.layout.has_completion_times)
        self._now = context
        if not store.layout.has_completion_times:
            self.times = order_times(timeline, by_completion=False)
            self._knows_archive = False
            self.context = context if window.until is None else context_as_of(context, window.until)
        else:
            self.times, self._knows_archive = _completions(contents, timeline, window)
            end = window.until
            if end is not None:  # planned before it, completed after it: its base files have rows of the range
                self.times |= {time: time for time in self._compactions if time <= end < self.times[time]}
            self.context = context if end is None else self._context_at_end(window)
        self._clusterings = frozenset(context.pending_clustering.values())
        self.commits = commits_of(window, self.times, by_completion=store.layout.has_completion_times)

    def context_after(self, instant: Instant) -> ViewContext:
        """View context of the table right after a commit of the range."""
        if not self._contents.store.layout.has_completion_times:
            return context_as_of(self._now, instant.requested_time)
        return self._context_at_end(Window("", self.times[instant.requested_time]))

    @cached_property
    def _compactions(self) -> frozenset[str]:
        """Read only for ends in the past: each is decoded."""
        return _compactions(self._contents, self._timeline, self._window, self.times)

    def _context_at_end(self, window: Window) -> ViewContext:
        return context_at_end(
            self._now, window, self.times, knows_archive=self._knows_archive, compactions=self._compactions
        )

    def refuse_pending_writes(self) -> None:
        """
        Raises:
            RefusedError: A write within the range may still complete (layout 1).
        """
        # In layout 2 a write that completes later gets a later completion time, and so belongs to a later range.
        if not self._contents.store.layout.has_completion_times:
            refuse_pending_writes(self._timeline, self._window, self._clusterings)

    def slices(self, path: str, entries: Iterable[Entry], *, only_of_range: bool = False) -> tuple[FileSlice, ...]:
        """
        The newest slices of a partition at the end of the range.

        Args:
            path: The partition's path.
            entries: Its files.
            only_of_range: Build slices only from files that commits of the range wrote: a log file over a base file
                from before the range is then read alone, as Apache Hudi does.
        """
        files = visible_files(self.context, entries)
        if only_of_range and self._window.after:
            named = frozenset[str]() if self._tells_write else self._logs_of_range(path)
            files = (file for file in files if self._is_of_range(file[0], named))
        return readable_slices(self.context, build_partition(self.context, path, files), self.pending_compactions)

    @property
    def pending_compactions(self) -> frozenset[str]:
        """Requested times of pending compactions."""
        return frozenset(each.requested_time for each in self._timeline.pending(Action.COMPACTION))

    @property
    def _tells_write(self) -> bool:
        """Whether names of log files have the time of their write (layout 2); else that of their slice."""
        return not self.context.log_naming.tells_slice

    def _is_of_range(self, name: str, logs: frozenset[str]) -> bool:
        base, log = parse_base_file(name), parse_log_file(name)
        if base is not None:
            return base.instant_time in self.commits
        return log is not None and (log.instant_time in self.commits if self._tells_write else name in logs)

    def _logs_of_range(self, path: str) -> frozenset[str]:
        """Log files that commits of the range wrote to a partition, by their metadata: names lack it (layout 1)."""
        stats = (self._contents.commit(each).partition_to_write_stats.get(path, ()) for each in self.instants())
        active = frozenset((stat.path or "").rpartition("/")[2] for each in stats for stat in each)
        return active | self._archived_files.get(path, frozenset())

    @cached_property
    def _archived_files(self) -> Mapping[str, frozenset[str]]:
        """Partition path to names of the data files that archived commits of the range wrote (layout 1)."""
        if not self.reaches_back:
            return {}
        store, until = self._contents.store, self._window.until
        behind = _BEHIND_ALL if until is None else f"{until}0"
        return load_archived_written(store.storage, store.config, self._window.after, behind)

    def _is_log_of_range(self) -> Callable[[str, LogFile], bool]:
        """Whether a commit of the range wrote a log file, by partition path and file; in doubt True (layout 1)."""
        if self._tells_write:
            return lambda _, log: log.instant_time in self.commits
        if self._may_be_archived(len(self.instants())):
            return lambda _path, _log: True
        named = cache(self._logs_of_range)
        return lambda path, log: log.name in named(path)

    def slices_of(self, path: str, listing: Listing) -> tuple[FileSlice, ...]:
        """As `slices`, for the files in *listing*."""
        return self.slices(path, self._at_end(listing).partition(path, details=self._window.until is not None))

    def _at_end(self, listing: Listing) -> Listing:
        until = self._window.until
        return listing.until(until) if until is not None and isinstance(listing, CheckedListing) else listing

    def partitions(self, listing: Listing) -> Iterator[tuple[str, list[Entry]]]:
        """Path and files of the partitions that commits of the range wrote to; of all where that is unknown."""
        until, listing = self._window.until, self._at_end(listing)
        instants = self.instants()
        if self._may_be_archived(len(instants)):
            yield from listing.walk(details=until is not None)
            return
        touched = {path for each in instants for path in self._contents.touched(each).partition_paths}
        for path in sorted(touched):
            yield path, listing.partition(path, details=until is not None)

    def instants(self) -> list[Instant]:
        """The commits of the range on the active timeline, by the times that ranges compare."""
        completed = self._timeline.writes.completed()
        found = [each for each in completed if self.times[each.requested_time] in self._window]
        return sorted(found, key=lambda each: self.times[each.requested_time])

    @property
    def reaches_back(self) -> bool:
        """Whether commits of the range may be archived."""
        is_sure = not self._window.after or self._knows_archive  # then archived commits are among the times
        return is_sure or needs_archive(self._window, self._timeline, self.times)

    def _may_be_archived(self, active: int) -> bool:
        """Whether a commit of the range is not on the active timeline."""
        if self.commits.times is not None:
            return len(self.commits.times) > active
        return self.reaches_back

    def refuse_deleted_files(self, found: Changes) -> None:
        """
        Raises:
            RefusedError: A clean deleted a file that held rows of the range at its end.
        """
        until = self._window.until
        if until is None:  # the newest slices, which no clean deletes
            return
        bases = bases_of(found.slices)
        refuse_what_a_clean_took(self._contents, self._timeline, self.context, until)
        gone = first_gone(
            self._contents,
            self._timeline,
            self.context,
            until,
            bases,
            with_pending=False,
            of=lambda _, base: base.instant_time in self.commits,
        )
        if gone is None:
            gone = first_log_gone(
                self._contents, self._timeline, self.context, until, found.slices, of=self._is_log_of_range()
            )
        if gone is not None:
            raise RefusedError(
                f"the changes {self._window} cannot be read: a clean deleted {gone}, which held rows at the end of "
                f"that range; {self._way_out()}"
            )

    def earliest_begin(self) -> str:
        """For a message: the earliest begin of a range that can be read, if it begins at the end of this one."""
        earliest = self._earliest()
        return f"begin it at {earliest}" if earliest > (self._window.until or "") else "begin it later"

    def _earliest(self) -> str:
        earliest = earliest_retained(self._contents, self._timeline)
        return self.times.get(earliest, earliest)

    def _way_out(self) -> str:
        earliest = self._earliest()
        if self._window.until is not None and earliest > self._window.until:
            return f"end it at {earliest} or later, or leave its end open"
        return "end it later, or leave its end open"


def _compactions(contents: Contents, timeline: Timeline, window: Window, times: Mapping[str, str]) -> frozenset[str]:
    """Requested times of completed compactions (layout 2); of archived ones those that were under way at the end."""
    store = contents.store
    if store.config.table_type is not TableType.MERGE_ON_READ:
        return frozenset()
    active = timeline.completed(Action.COMMIT)
    found = {each.requested_time for each in active if contents.commit(each).operation_type == _COMPACT}
    until = window.until or ""
    known = {each.requested_time for each in timeline.writes.completed()}
    for time in {time for time, compared in times.items() if time <= until < compared} - known:
        archived = load_archived_contents(store.storage, store.config, time)
        found |= {each.requested_time for each, said in archived.items() if _is_compaction(each, said)}
    return frozenset(found)


def _is_compaction(instant: Instant, said: Any) -> bool:
    return instant.action is Action.COMMIT and isinstance(said, dict) and said.get("operationType") == _COMPACT


def _completions(contents: Contents, timeline: Timeline, window: Window) -> tuple[dict[str, str], bool]:
    """Requested to completion times of writes, and whether archived writes are among them."""
    active = order_times(timeline, by_completion=True)
    if not needs_archive(window, timeline, active):
        return active, False
    store = contents.store
    archived = load_archived(store.storage, store.config).of(WRITES)
    return {**order_times(archived, by_completion=True), **active}, True

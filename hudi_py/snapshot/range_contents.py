"""
Which commits, partitions and file slices belong to a range of time, and whether its rows are still complete.

What the timeline and the archive say is read by `hudi_py.snapshot.range_facts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

from hudi_py.errors import RefusedError, UnsupportedTable
from hudi_py.fsview.as_of import context_as_of, readable_slices
from hudi_py.fsview.build import ViewContext, build_partition
from hudi_py.fsview.checked import CheckedListing
from hudi_py.fsview.gone import Left, first_gone
from hudi_py.fsview.listing import Listing
from hudi_py.model.files import BaseFile, FileSlice, LogFile, parse_base_file, parse_log_file
from hudi_py.model.instant import Instant
from hudi_py.model.records import CommitMetadata
from hudi_py.snapshot.beside_clean import refuse_what_a_clean_took, which_clean
from hudi_py.snapshot.range_facts import RangeFacts, files_named
from hudi_py.snapshot.window import (
    Window,
    commits_of,
    context_at_end,
    needs_archive,
    refuse_pending_writes,
    visible_files,
)
from hudi_py.storage.base import Entry
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline


class RangeContents:
    """
    Finds the commits, partitions and file slices of a range.

    Args:
        contents: Reads the instants of the timeline.
        timeline: The active timeline.
        window: The range.
        one_by_one: Whether `writes` is asked for; archived writes are then among *times*.

    Attributes:
        context: View context of the end of the range.
        commits: The commits of the range.
        times: Requested time of each completed write to the time that ranges compare.

    Raises:
        UnsupportedTable: The rows do not record which commit changed them.
    """

    def __init__(self, contents: Contents, timeline: Timeline, window: Window, *, one_by_one: bool = False) -> None:
        self._contents = contents
        self._timeline = timeline
        self._window = window
        store = contents.store
        if not store.config.populate_meta_fields:
            raise UnsupportedTable(
                f"{store.storage.root}: its rows do not record which commit changed them "
                "(hoodie.populate.meta.fields=false); read snapshots instead"
            )
        self._facts = facts = RangeFacts(contents, timeline, window, one_by_one=one_by_one)
        self.times, end = dict(facts.times), window.until
        if end is None:
            self.context = facts.now
        elif not facts.by_completion:
            self.context = context_as_of(facts.now, end)
        else:
            # The base files of these have rows of the range.
            self.times |= {time: time for time in facts.rewritings}
            self.context = self._context_at_end(window)
        self._clusterings = frozenset(facts.now.pending_clustering.values())
        self.commits = commits_of(window, self.times, by_completion=facts.by_completion)

    def context_after(self, instant: Instant) -> ViewContext:
        """View context of the table right after a commit of the range."""
        if not self._facts.by_completion:
            return context_as_of(self._facts.now, instant.requested_time)
        return self._context_at_end(Window("", self.times[instant.requested_time]))

    def _context_at_end(self, window: Window) -> ViewContext:
        facts = self._facts
        return context_at_end(
            facts.now, window, self.times, knows_archive=facts.knows_archive, rewritings=facts.rewritings
        )

    def refuse_pending_writes(self) -> None:
        """
        Raises:
            RefusedError: A write within the range may still complete (layout 1).
        """
        # In layout 2 a write that completes later gets a later completion time, and so belongs to a later range.
        if not self._facts.by_completion:
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
            named = self._logs_of_range(path) if self._asks_commits else frozenset[str]()
            files = (file for file in files if self._is_of_range(file[0], named))
        return readable_slices(self.context, build_partition(self.context, path, files), self.pending_compactions)

    @property
    def may_lack_columns(self) -> bool:
        """Whether log files of the range may have some columns of a row, and files from before it the others."""
        return self._tells_write and bool(self._window.after)  # layout 1 has no such log files

    @property
    def pending_compactions(self) -> frozenset[str]:
        """Requested times of pending compactions."""
        return self._timeline.compacting

    @property
    def _tells_write(self) -> bool:
        """Whether names of log files have the time of their write (layout 2); else that of their slice."""
        return not self.context.log_naming.tells_slice

    @property
    def _asks_commits(self) -> bool:
        """Whether the commits' metadata has to say which log files they wrote: their names do not, in layout 1."""
        return not self._tells_write or self._contents.store.config.may_be_upgraded_from_layout_1

    def _is_of_range(self, name: str, logs: frozenset[str]) -> bool:
        base, log = parse_base_file(name), parse_log_file(name)
        if base is not None:
            return base.instant_time in self.commits
        return log is not None and (name in logs or (self._tells_write and log.instant_time in self.commits))

    def _logs_of_range(self, path: str) -> frozenset[str]:
        """Log files that commits of the range wrote to a partition, by their metadata."""
        if self._tells_write:
            return frozenset(name for _, each in self.writes() for name in files_named(each, path))
        active = self._facts.files_written(path, self.instants())
        return active | self._facts.archived_files.get(path, frozenset()) if self.reaches_back else active

    def _is_log_of_range(self) -> Callable[[str, LogFile], bool]:
        """Whether a commit of the range wrote a log file, by partition path and file; in doubt True (layout 1)."""
        if not self._tells_write and self._may_be_archived(len(self.instants())):
            return lambda _path, _log: True
        named = cache(self._logs_of_range) if self._asks_commits else lambda _path: frozenset[str]()
        return lambda path, log: self._is_of_range(log.name, named(path))

    def slices_of(self, path: str, listing: Listing) -> tuple[FileSlice, ...]:
        """As `slices`, for the files in *listing*."""
        return self.slices(path, self._at_end(listing).partition(path, details=self._window.until is not None))

    def _at_end(self, listing: Listing) -> Listing:
        until = self._window.until
        if until is None or not isinstance(listing, CheckedListing):
            return listing
        # By the times that ranges compare: a commit that was requested by then and completed later has written files
        # that take the place of none.
        return listing.until(until, frozenset(time for time, compared in self.times.items() if compared <= until))

    def partitions(self, listing: Listing) -> Iterator[tuple[str, list[Entry]]]:
        """Path and files of the partitions that commits of the range wrote to; of all where that is unknown."""
        until, listing = self._window.until, self._at_end(listing)
        instants = self.instants()
        if self._may_be_archived(len(instants)):
            yield from listing.walk(details=until is not None)
            return
        for path in sorted(self._facts.partitions_touched(instants)):
            # Sizes are needed for an end in the past only: the newest files are checked when they are opened.
            yield path, listing.partition(path, details=until is not None)

    def instants(self) -> list[Instant]:
        """The commits of the range on the active timeline, by the times that ranges compare."""
        completed = self._timeline.writes.completed()
        found = [each for each in completed if self.times[each.requested_time] in self._window]
        return sorted(found, key=lambda each: self.times[each.requested_time])

    def writes(self) -> list[tuple[Instant, CommitMetadata]]:
        """The commits of the range, also archived ones, by the times that ranges compare, with what they wrote."""
        found = self._facts.metadata([time for time, compared in self.times.items() if compared in self._window])
        return sorted(found.items(), key=lambda each: (self.times[each[0].requested_time], each[0].requested_time))

    def wrote(self, time: str) -> CommitMetadata | None:
        """What the completed write with this requested time wrote; None if neither timeline nor archive has it."""
        return next(iter(self._facts.metadata([time]).values()), None)

    @property
    def reaches_back(self) -> bool:
        """Whether commits of the range may be archived."""
        is_sure = not self._window.after or self._facts.knows_archive  # then archived commits are among the times
        return is_sure or needs_archive(self._window, self._timeline, self.times)

    def _may_be_archived(self, active: int) -> bool:
        """Whether a commit of the range is not on the active timeline."""
        if self.commits.times is not None:
            return len(self.commits.times) > active
        return self.reaches_back

    def refuse_deleted_files(self, slices: Sequence[FileSlice]) -> None:
        """
        Args:
            slices: What `slices` found; they are compared with what cleans deleted since the end of the range.

        Raises:
            RefusedError: A clean deleted a file that held rows of the range at its end.
        """
        until = self._window.until
        if until is None:  # the newest slices, which no clean deletes
            return
        refuse_what_a_clean_took(self._contents, self._timeline, self.context, until)
        is_log_of_range = self._is_log_of_range()
        gone = first_gone(
            self._contents, self._timeline, self.context, until, Left.of_slices(slices), with_pending=False,
            of=lambda path, file: (
                file.instant_time in self.commits if isinstance(file, BaseFile) else is_log_of_range(path, file)
            ),
        )  # fmt: skip
        if gone is not None:
            raise RefusedError(
                f"the changes {self._window} cannot be read: {which_clean(self._contents, gone)} deleted {gone}, which "
                f"held rows at the end of that range; {self._way_out()}"
            )

    def earliest_begin(self) -> str:
        """For a message: the earliest begin of a range that can be read, if it begins at the end of this one."""
        earliest = self._facts.earliest_retained()
        return f"begin it at {earliest}" if earliest > (self._window.until or "") else "begin it later"

    def _way_out(self) -> str:
        earliest = self._facts.earliest_retained()
        if self._window.until is not None and earliest > self._window.until:
            return f"end it at {earliest} or later, or leave its end open"
        return "end it later, or leave its end open"

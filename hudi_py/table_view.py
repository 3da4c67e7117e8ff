"""The reading half of an opened table: partitions, files, rows, changes, and earlier states. Needs no JVM."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from hudi_py.config.arguments import check_flags, check_texts, count_of
from hudi_py.config.uses import Use
from hudi_py.errors import ConfigError, ConflictError
from hudi_py.model.instant import Action
from hudi_py.model.instant_time import is_beginning
from hudi_py.opened_table import OpenedTable

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_py.fsview.build import PartitionView, ViewContext
    from hudi_py.fsview.listing import Listing
    from hudi_py.model.files import BaseFile, FileSlice
    from hudi_py.rows.condition import Where
    from hudi_py.snapshot.batches import Batches
    from hudi_py.snapshot.change_log import ChangeLog
    from hudi_py.snapshot.changes import Changes
    from hudi_py.snapshot.moments import EarlierSnapshot, LatestSnapshot, SavepointSnapshot
    from hudi_py.snapshot.overview import ColumnRange, Overview
    from hudi_py.snapshot.rows import Rows
    from hudi_py.snapshot.snapshot import Snapshot
    from hudi_py.snapshot.window import Window
    from hudi_py.timeline.timeline import Timeline

__all__ = ["TableView"]

OVERVIEW_FILES_MAX = 1000
"""For this number of files, the statistics of about thirty columns are read in a few seconds."""
_LISTINGS_MAX = 5  # each time another writer has completed something in the range meanwhile


class TableView(OpenedTable):
    """A table, for reading; no method changes it. Arguments and errors as for `OpenedTable`."""

    def partitions(self) -> tuple[str, ...]:
        """Return the relative paths of all partitions, sorted; ``("",)`` for a table without partition columns."""
        return tuple(sorted(path for path, _ in self.listing.walk()))

    def partition(self, partition_path: str) -> PartitionView:
        """Return all file groups of a partition with sizes, including replaced and uncommitted files."""
        return self._partition_of(partition_path)[1]

    def file_slices(self, partition_path: str = "") -> tuple[FileSlice, ...]:
        """
        Return the slices of a partition that a read opens, at most one for each file group; nothing of pending writes.

        What was logged behind a pending compaction is read together with the slice that it compacts, and is shown so.
        """
        from hudi_py.fsview.as_of import readable_slices

        return readable_slices(*self._partition_of(partition_path))

    def _partition_of(self, partition_path: str) -> tuple[ViewContext, PartitionView, frozenset[str]]:
        check_texts(partition_path=partition_path)
        # Taken together: another thread may refresh the table at any moment.
        from hudi_py.fsview.build import build_partition

        timeline, listing = self._opened
        context = self._context_of(timeline)
        entries = listing.partition(partition_path, details=True)
        view = build_partition(context, partition_path, ((e.name, e.size_bytes) for e in entries))
        return context, view, timeline.compacting

    def snapshot(self, as_of: str | datetime | None = None, *, savepoint: str | None = None) -> Snapshot:
        """
        A read-only view of the table at one time. It stays at that time, whatever happens to the table.

        Args:
            as_of: A time as for `resolve_time`; None for the latest snapshot. The name of a savepoint reads that
                savepoint.
            savepoint: Requested time or name of a savepoint, which can be read whatever cleans and archivals came after
                it.

        Raises:
            ConfigError: There is no such savepoint, or both arguments are given.
            RefusedError: The rows of that time are no longer complete, or may still change.
        """
        if savepoint is None:
            return self._latest() if as_of is None else self.as_of(as_of)
        if as_of is not None:
            raise ConfigError(
                f"as_of={as_of} and savepoint={savepoint} both say which time to read; give only one of them"
            )
        return self._savepoint(savepoint)

    def _savepoint(self, savepoint: str) -> SavepointSnapshot:
        from hudi_py.snapshot.moments import SavepointSnapshot

        instant = self.timeline.find(self.resolve_time(savepoint, exact=True), Action.SAVEPOINT)
        if instant is None or not instant.is_completed:
            raise ConfigError(f"there is no savepoint {savepoint}; see hudi-py savepoint list")
        # By its own list, not by the timeline, which may have been archived behind it.
        held = {path: tuple(names) for path, names in self._contents.savepoint(instant).files.items()}
        return SavepointSnapshot(
            contents=self._contents,
            timeline=self.timeline,
            config=self.config,
            settings=self.settings,
            requested_time=instant.requested_time,
            held=held,
        )

    def _latest(self) -> LatestSnapshot:
        from hudi_py.snapshot.moments import LatestSnapshot

        timeline = self.timeline
        return LatestSnapshot(
            contents=self._contents,
            timeline=timeline,
            config=self.config,
            settings=self.settings,
            listing=self._listing_at(timeline),
        )

    def as_of(self, time: str | datetime) -> EarlierSnapshot | SavepointSnapshot:
        """
        A read-only view of the table as it was at an earlier time; it stays at that time whatever happens to the table.

        Args:
            time: A time as for `resolve_time`. The name of a savepoint shows the files of that savepoint.

        Raises:
            ConfigError: *time* is not a time.
            RefusedError: As `snapshot`.
        """
        from hudi_py.fsview.as_of import context_as_of
        from hudi_py.fsview.checked import CheckedListing
        from hudi_py.model.holes import holes_of
        from hudi_py.snapshot.moments import EarlierSnapshot
        from hudi_py.snapshot.retained import completed_clean
        from hudi_py.snapshot.select import check_as_of
        from hudi_py.timeline.completions import undone_writes

        if self._is_name(time):
            # By its own files, which outlive the retention: the time that the name stands for would be refused.
            return self._savepoint(str(time))
        requested_time = self.resolve_time(time)
        timeline, listing = self._opened
        context = self._context_of(timeline)
        # What a completed clean deleted follows from its record; a running clean has to be compared with the folders.
        clean = completed_clean(self._contents, timeline)
        check_as_of(
            timeline,
            requested_time,
            earliest_retained=clean.earliest_commit_to_retain,
            holes=holes_of(clean),
            pending_clusterings=frozenset(context.pending_clustering.values()),
            undone=lambda: undone_writes(self._contents, timeline, after=clean.start_clean_time),
        )
        found = EarlierSnapshot(
            contents=self._contents,
            timeline=timeline,
            config=self.config,
            settings=self.settings,
            requested_time=requested_time,
            view_context=context_as_of(context, requested_time),
            listing=listing.until(requested_time) if isinstance(listing, CheckedListing) else listing,
        )
        found.refuse_what_a_clean_took()
        return found

    def base_files(
        self, as_of: str | datetime | None = None, *, savepoint: str | None = None
    ) -> tuple[tuple[str, BaseFile], ...]:
        """
        Partition path and base file of each file slice of a snapshot.

        Args:
            as_of, savepoint: As for `snapshot`.

        Raises:
            ConfigError, RefusedError: As `snapshot`.
            UnsupportedTable, CorruptMetadata: As `Snapshot.base_files`.
        """
        return self.snapshot(as_of, savepoint=savepoint).base_files()

    def rows(
        self,
        *,
        where: Where = (),
        columns: Sequence[str] | None = None,
        as_of: str | datetime | None = None,
        savepoint: str | None = None,
        with_meta: bool = False,
        read_optimized: bool = False,
    ) -> Rows:
        """
        The rows of a snapshot as Arrow batches, without Spark; log files of merge-on-read tables are merged.

        Args:
            where: One condition, or several that all have to be met: text (``fare > 20 and (city in ('Rome', 'Oslo') or
                place.zip is null)``), a tuple ``("fare", ">", 20)``, or an expression ``Column("fare") > 20`` with
                ``&``, ``|``, ``~``. For a list of lists, all conditions of at least one inner list have to be met. The
                meaning is that of Spark SQL (docs/conditions.md). Statistics in the metadata table and in the files
                decide which files are read, never which rows are returned.
            columns: Names of the columns to return; None for all.
            as_of, savepoint: As for `snapshot`.
            with_meta: Return the ``_hoodie_*`` columns too.
            read_optimized: Read base files only, like Apache Hudi's read-optimized queries; rows in log files are left
                out.

        Raises:
            ConfigError: A column or the savepoint does not exist, or a condition is invalid.
            RefusedError, UnsupportedTable, CorruptMetadata: As `Snapshot.rows`.
        """
        check_flags(with_meta=with_meta, read_optimized=read_optimized)
        self.require(Use.READ)
        found = self.snapshot(as_of, savepoint=savepoint)
        return found.rows(where=where, columns=columns, with_meta=with_meta, read_optimized=read_optimized)

    def changes(
        self,
        start: str | datetime | None = None,
        end: str | datetime | None = None,
        *,
        with_deletes: bool = False,
        where: Where = (),
        columns: Sequence[str] | None = None,
        with_meta: bool = False,
    ) -> Batches:
        """
        The rows that changed in a range of time as Arrow batches, without Spark: each row once, as it was at the end.

        The rows of consecutive ranges add up to the latest snapshot, except for deleted rows.

        Args:
            start: Only commits later than this; None or ``"0"`` for the beginning of the table. A time as for
                `resolve_time`; it is compared with completion times, in layout 1 (table version 6) with requested
                times.
            end: Only commits up to and including this time; None for all up to now.
            with_deletes: Return deleted rows too: first the rows that existed before the range and not at its end, as
                they were before. The last column, ``_hoodie_is_deleted``, is true for them and false for all others.
            where, columns, with_meta: As for `rows`.

        Raises:
            ConfigError: The range ends before it begins; or as `rows`.
            RefusedError: A clean deleted files that the range needs, or a write within it may still complete (layout
                1); the message names the way out.
            UnsupportedTable, CorruptMetadata: As `rows`.
        """
        check_flags(with_deletes=with_deletes, with_meta=with_meta)
        self.require(Use.READ)
        # The short way: without deleted rows nothing from before the range is needed.
        if not with_deletes:
            return self.range(start, end).rows(where=where, columns=columns, with_meta=with_meta)
        from hudi_py.snapshot.deleted import open_changed_rows

        window = self._window(start, end)
        timeline, listing = self._opened_for(window)
        return open_changed_rows(
            self._contents, timeline, listing, self.settings, window,
            where=where, columns=columns, with_meta=with_meta,
        )  # fmt: skip

    def change_log(
        self,
        start: str | datetime | None = None,
        end: str | datetime | None = None,
        *,
        columns: Sequence[str] | None = None,
    ) -> ChangeLog:
        """
        All single changes in a range of time, for tables with change data capture: operation, row before, row after.

        Args:
            start, end: As for `changes`.
            columns: Names of the columns to return of each row; None for all.

        Raises:
            ConfigError: The range ends before it begins, or a column does not exist.
            RefusedError: A clean deleted files with the changes, or their commits are archived; the message names the
                earliest begin that is possible.
            UnsupportedTable: The table has no change data capture, or its log files are merged by a Java class.
            CorruptMetadata: A change log is damaged.
        """
        from hudi_py.snapshot.change_log import open_change_log

        self.require(Use.READ)
        window = self._window(start, end)
        timeline, listing = self._opened_for(window)
        return open_change_log(self._contents, timeline, listing, window, self.schema, columns)

    def range(self, start: str | datetime | None = None, end: str | datetime | None = None) -> Changes:
        """
        The rows that changed in a range of time, as a value that stays as it is now; arguments and errors as `changes`.
        """
        from hudi_py.snapshot.changes import open_changes

        window = self._window(start, end)
        timeline, listing = self._opened_for(window)
        return open_changes(self._contents, timeline, listing, self.settings, window)

    def changed_until(self) -> str | None:
        """
        The latest end of a range to which no more commits can be added: where the next range of `changes` begins.

        The timeline is listed again for this, so that a commit which the first listing missed comes after the end.

        Returns:
            The completion time of the last commit; in layout 1 the requested time of the last completed write before
            the first pending one. None for a table without commits.
        """
        from hudi_py.snapshot.window import Window, last_end, unseen_writes
        from hudi_py.timeline.order import order_times

        by_completion = self.config.format.layout.has_completion_times
        clusterings = frozenset[str]() if by_completion else frozenset(self.view_context.pending_clustering.values())
        seen = self.timeline
        found = last_end(seen, clusterings, by_completion=by_completion)
        if found:
            until = Window(until=found)
            unseen = unseen_writes(seen, self._store.load(), until, by_completion=by_completion)
            if unseen:
                times = order_times(seen, by_completion=by_completion).values()
                found = max((time for time in times if time in until and time < min(unseen)), default="")
        return found or last_end(self.archived_timeline(), frozenset(), by_completion=by_completion) or None

    def _opened_for(self, window: Window) -> tuple[Timeline, Listing]:
        """
        Return the timeline and the listing for a range; of another moment, where the range ends later than was seen.

        Whoever follows the table goes on from the end, so a commit before it must not be left out.

        Raises:
            ConflictError: Each listing missed something.
        """
        from hudi_py.mdt.listing import open_snapshot
        from hudi_py.snapshot.window import unseen_writes

        opened = self._opened
        if window.until is None:
            return opened
        by_completion = self.config.format.layout.has_completion_times
        for _ in range(_LISTINGS_MAX):
            if not unseen_writes(opened[0], self._store.load(), window, by_completion=by_completion):
                return opened
            opened = open_snapshot(self._store, self.config, self.settings, to_read=True)
        raise ConflictError(f"{self.storage.root} was changed by other writers each time it was listed; try again")

    def _window(self, start: str | datetime | None, end: str | datetime | None) -> Window:
        from hudi_py.snapshot.window import Window

        after = "" if start is None or is_beginning(start) else self.resolve_time(start)
        return Window(after, None if end is None else self.resolve_time(end))

    @property
    def schema(self) -> pa.Schema:
        """
        The columns of the table's rows as a `pyarrow.Schema`, all nullable, without the ``_hoodie_*`` ones.

        Raises:
            CorruptMetadata: The commit or the file with the schema is damaged.
        """
        return self._latest().schema

    def schema_text(self) -> str | None:
        """The Avro schema of the rows in the latest snapshot as text; see `Snapshot.schema_text`."""
        return self._latest().schema_text()

    def overview(self, *, columns_files_max: int | None = OVERVIEW_FILES_MAX) -> Overview:
        """
        Return a summary of the table; lists all files once.

        Args:
            columns_files_max: Value ranges of columns are included if the snapshot has at most this number of files;
                None to include them always.

        Raises:
            ConfigError: It is no whole number of at least -1.
            CorruptMetadata: The metadata table or an instant is damaged.
        """
        from hudi_py.snapshot.take_overview import take_overview

        most = count_of("columns_files_max", columns_files_max, least=-1)
        now = self._store.clock.now()
        return take_overview(self._contents, self._latest(), self.listing, columns_files_max=most, now=now)

    def column_ranges(self, partition: str) -> tuple[ColumnRange, ...] | None:
        """
        Return the value range of each column in one partition of the latest snapshot.

        They come from the column statistics of the metadata table.

        Args:
            partition: Relative path of the partition.

        Returns:
            Sorted by column; None if the table has no statistics of all files there, or log files, which have none.

        Raises:
            ConfigError: The table has no such partition.
            CorruptMetadata: An instant is damaged.
        """
        from hudi_py.snapshot.take_overview import partition_ranges

        if partition not in self.partitions():
            raise ConfigError(f"{self.storage.root} has no partition {partition!r}; see hudi-py files")
        return partition_ranges(self._contents, self._latest(), self.listing, partition)

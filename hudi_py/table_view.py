"""The reading half of an opened table: timeline, partitions, files, rows, and earlier states. Needs no JVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from hudi_py.config.door import admitted, require_served
from hudi_py.config.table import TableConfig
from hudi_py.config.uses import Use
from hudi_py.errors import ConfigError, CorruptMetadata, NotFound
from hudi_py.fsview.build import PartitionView, ViewContext, build_partition, latest_slices
from hudi_py.fsview.checked import CheckedListing
from hudi_py.fsview.listing import Listing
from hudi_py.fsview.loader import load_context
from hudi_py.mdt.listing import open_snapshot
from hudi_py.model.files import BaseFile, FileSlice
from hudi_py.model.holes import holes_of
from hudi_py.model.instant import Action
from hudi_py.model.instant_time import is_time, resolve_time
from hudi_py.model.shown import Shown
from hudi_py.runtime.clock import Clock, SystemClock
from hudi_py.runtime.log import log
from hudi_py.services.savepoint.plan import time_of_name
from hudi_py.snapshot.overview import Overview
from hudi_py.snapshot.retained import completed_clean
from hudi_py.snapshot.select import check_as_of, context_as_of
from hudi_py.snapshot.snapshot import EarlierSnapshot, LatestSnapshot, SavepointSnapshot, Snapshot
from hudi_py.storage.base import Storage
from hudi_py.storage.wrappers import ReadOnlyStorage
from hudi_py.timeline.archive import load_archived
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.properties_file import read_table_config
from hudi_py.timeline.store import TimelineStore
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.table_lock import table_lock

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Self

    from hudi_py.rows.condition import Where
    from hudi_py.snapshot.batches import Batches
    from hudi_py.snapshot.change_log import ChangeLog
    from hudi_py.snapshot.changes import Changes
    from hudi_py.snapshot.rows import Rows
    from hudi_py.snapshot.window import Window

__all__ = ["TableView"]

OVERVIEW_FILES_MAX = 1000
"""For this number of files, the statistics of about thirty columns are read in a few seconds."""


class TableView(Shown):
    """
    A table, for reading; no method changes it.

    Args:
        storage: Storage whose root is the table's base path.
        settings: ``hoodie.*`` settings.
        clock: Replaces the machine's clock.

    Raises:
        ConfigError: A setting is unknown, invalid, or not supported even for reading.
    """

    def __init__(
        self, storage: Storage, *, settings: Mapping[str, Any] | None = None, clock: Clock | None = None
    ) -> None:
        self.storage = storage
        self.settings = admitted(settings)
        self.config: TableConfig = read_table_config(storage)
        require_served(self.settings, Use.LOOK)
        clock = clock or SystemClock()
        # The lock is only built here, from the settings; nothing is locked by looking at a table.
        self._store = TimelineStore(storage, self.config, clock, lock=table_lock(storage, self.settings, clock))
        self._contents = Contents(self._store)

    def _facts(self) -> Mapping[str, object]:
        config = self.config
        return {"location": self.storage.root, "name": config.name, "type": config.table_type.value,
                "version": config.version, "partitioned_by": ", ".join(config.partition_fields)}  # fmt: skip

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), settings=self.settings.as_dict(), clock=self._store.clock), (self.storage,)

    def require(self, use: Use) -> None:
        """
        Raise if the settings or the table's properties ask for something that hudi_py does not do in an operation.

        Raises:
            ConfigError: A setting is not supported.
            UnsupportedTable: A property of the table is not supported.
        """
        from hudi_py.config.property_verdicts import require_table_served, unknown_properties

        require_served(self.settings, use)
        require_table_served(self.config, self.settings, use, self.storage.root)
        unknown = unknown_properties(self.config.properties)
        if unknown:
            log.warning("table.properties.unknown", table=self.storage.root, properties=unknown)

    @cached_property
    def timeline(self) -> Timeline:
        """The active timeline, loaded on first use; `refresh` forgets it."""
        try:
            return self._opened[0]
        except (CorruptMetadata, NotFound):  # the metadata table is damaged; `listing` raises this for its users
            return self._store.load()

    @property
    def listing(self) -> Listing:
        """Lists partitions and files: from the metadata table if there is one, else from the folders."""
        return self._opened[1]

    @cached_property
    def _opened(self) -> tuple[Timeline, Listing]:
        return open_snapshot(self._store, self.config, self.settings)

    @property
    def contents(self) -> Contents:
        """Decoded contents of the instants."""
        return self._contents

    def refresh(self) -> Self:
        """Forget what was loaded, so that the next call reads the current state of the table."""
        self.config = read_table_config(self.storage)
        self._forget()
        return self

    def _forget(self) -> None:
        # Timeline and listing belong together: one without the other would mix two times of the table.
        for name in ("timeline", "view_context", "_opened"):
            self.__dict__.pop(name, None)

    @cached_property
    def view_context(self) -> ViewContext:
        """The facts of the timeline that are needed to build the view of any partition."""
        return load_context(self.timeline, self._contents)

    def partitions(self) -> tuple[str, ...]:
        """Return the relative paths of all partitions, sorted; ``("",)`` for a table without partition columns."""
        return tuple(sorted(path for path, _ in self.listing.walk()))

    def partition(self, partition_path: str) -> PartitionView:
        """Return all file groups of a partition with sizes, including replaced and uncommitted files."""
        entries = self.listing.partition(partition_path, details=True)
        return build_partition(self.view_context, partition_path, ((e.name, e.size_bytes) for e in entries))

    def file_slices(self, partition_path: str = "") -> tuple[FileSlice, ...]:
        """Return the newest slice of each file group that is not replaced, without files of pending writes."""
        return latest_slices(self.view_context, self.partition(partition_path))

    def snapshot(self, as_of: str | datetime | None = None, *, savepoint: str | None = None) -> Snapshot:
        """
        A read-only view of the table at one time. It stays at that time, whatever happens to the table.

        Args:
            as_of: A time as for `resolve_time`; None for the latest snapshot.
            savepoint: Requested time of a savepoint, which can be read whatever cleans and archivals came after it.

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
        instant = self.timeline.find(savepoint, Action.SAVEPOINT)
        if instant is None or not instant.is_completed:
            raise ConfigError(f"there is no savepoint {savepoint}; see hudi-py savepoint list")
        held = {path: tuple(names) for path, names in self._contents.savepoint(instant).files.items()}
        return SavepointSnapshot(
            contents=self._contents,
            timeline=self.timeline,
            config=self.config,
            settings=self.settings,
            requested_time=savepoint,
            held=held,
        )

    def _latest(self) -> LatestSnapshot:
        return LatestSnapshot(
            contents=self._contents,
            timeline=self.timeline,
            config=self.config,
            settings=self.settings,
            listing=lambda: self.listing,
        )

    def as_of(self, time: str | datetime) -> EarlierSnapshot:
        """
        A read-only view of the table as it was at an earlier time; it stays at that time whatever happens to the table.

        Args:
            time: A time as for `resolve_time`.

        Raises:
            ConfigError: *time* is not a time.
            RefusedError: As `snapshot`.
        """
        requested_time = self.resolve_time(time)
        timeline, listing = self._opened
        # What a completed clean deleted follows from its record; a running clean has to be compared with the folders.
        clean = completed_clean(self._contents, timeline)
        check_as_of(
            timeline,
            requested_time,
            earliest_retained=clean.earliest_commit_to_retain,
            holes=holes_of(clean),
            pending_clusterings=frozenset(self.view_context.pending_clustering.values()),
        )
        found = EarlierSnapshot(
            contents=self._contents,
            timeline=timeline,
            config=self.config,
            settings=self.settings,
            requested_time=requested_time,
            view_context=context_as_of(self.view_context, requested_time),
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
        self.require(Use.READ)
        if not with_deletes:
            return self.range(start, end).rows(where=where, columns=columns, with_meta=with_meta)
        from hudi_py.snapshot.deleted import open_changed_rows

        timeline, listing = self._opened
        return open_changed_rows(
            self._contents, timeline, listing, self.settings, self._window(start, end),
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
        timeline, listing = self._opened
        return open_change_log(self._contents, timeline, listing, self._window(start, end), self.schema, columns)

    def range(self, start: str | datetime | None = None, end: str | datetime | None = None) -> Changes:
        """
        The rows that changed in a range of time, as a value that stays as it is now; arguments and errors as `changes`.
        """
        from hudi_py.snapshot.changes import open_changes

        timeline, listing = self._opened
        return open_changes(self._contents, timeline, listing, self.settings, self._window(start, end))

    def changed_until(self) -> str | None:
        """
        The latest end of a range to which no commit can be added any more: where the next range of `changes` begins.

        Returns:
            The completion time of the last commit; in layout 1 the requested time of the last completed write before
            the first pending one. None for a table without commits.
        """
        from hudi_py.snapshot.window import last_end

        by_completion = self.config.format.layout.has_completion_times
        clusterings = frozenset[str]() if by_completion else frozenset(self.view_context.pending_clustering.values())
        found = last_end(self.timeline, clusterings, by_completion=by_completion)
        return found or last_end(self.archived_timeline(), frozenset(), by_completion=by_completion) or None

    def _window(self, start: str | datetime | None, end: str | datetime | None) -> Window:
        from hudi_py.snapshot.window import Window

        is_beginning = start is None or (isinstance(start, str) and not start.strip("0 "))
        after = "" if start is None or is_beginning else self.resolve_time(start)
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

    def overview(self, *, columns_files_max: int = OVERVIEW_FILES_MAX) -> Overview:
        """
        Return a summary of the table; lists all files once.

        Args:
            columns_files_max: Value ranges of columns are included if the snapshot has at most this number of files.

        Raises:
            CorruptMetadata: The metadata table or an instant is damaged.
        """
        from hudi_py.snapshot.take_overview import take_overview

        now = self._store.clock.now()
        return take_overview(self._contents, self._latest(), self.listing, columns_files_max=columns_files_max, now=now)

    def archived_timeline(self) -> Timeline:
        """
        Return the archived instants, completed and pending, oldest first. In layout 2 only completed ones are archived.

        Raises:
            CorruptMetadata: A file of the archive is damaged.
        """
        return load_archived(self.storage, self.config)

    @property
    def zone(self) -> tzinfo:
        """The time zone of the table's instant times."""
        return self._store.zone

    def resolve_time(self, time: str | datetime) -> str:
        """
        Return the instant time that a user's input stands for.

        Args:
            time: A datetime, or a text: digits of an instant time, ISO 8601, a duration before now, or the name of a
                savepoint.

        Raises:
            ConfigError: *time* has none of these forms.
            RefusedError: Two savepoints have this name.
        """
        try:
            return resolve_time(time, now=self._store.clock.now(), zone=self.zone)
        except ConfigError as error:
            if not isinstance(time, str):
                raise
            if is_time(time.strip()) and self._knows(time.strip()):
                return time.strip()  # not a valid date, but the table has an instant with this time
            savepoints = self.timeline.completed(Action.SAVEPOINT)
            found = time_of_name(time, ((each, self._contents.savepoint(each)) for each in savepoints))
            if found is None:
                raise ConfigError(f"{error}; and there is no savepoint {time!r}") from error
            return found

    def _knows(self, requested_time: str) -> bool:
        """Return whether an instant of the timeline, active or archived, has this requested time."""
        if self.timeline.find(requested_time) is not None:
            return True
        try:
            return self.archived_timeline().find(requested_time) is not None
        except (CorruptMetadata, NotFound):
            return False

    def read_only(self) -> Self:
        """Return the same table on a storage that refuses all changes."""
        return type(self)(ReadOnlyStorage(self.storage), settings=self.settings.as_dict(), clock=self._store.clock)

    def rehearsal(self) -> Self:
        """
        Return the table as `read_only` does, for a dry run: also checks that the lock provider is known.

        Raises:
            ConfigError: The settings name an unknown lock provider.
        """
        self._store.lock.examine()
        return self.read_only()

"""What an opened table shows: its timeline, its partitions and files, its state at an earlier time. No JVM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hudi_py.config import keys
from hudi_py.config.door import admitted, require_served
from hudi_py.config.table import TableConfig
from hudi_py.config.uses import Use
from hudi_py.errors import ConfigError, CorruptMetadata, HudiError, NotFound
from hudi_py.formats.column_history import HISTORY_FOLDER, newest_history, renamed_columns
from hudi_py.formats.instant_content import decode_content
from hudi_py.fsview.build import PartitionView, ViewContext, build_partition, latest_slices
from hudi_py.fsview.checked import CheckedListing
from hudi_py.fsview.gone import first_gone
from hudi_py.fsview.listing import Listing
from hudi_py.fsview.loader import load_context
from hudi_py.fsview.needed import NeededFiles
from hudi_py.mdt.listing import open_snapshot
from hudi_py.mdt.read_statistics import StatisticsReader
from hudi_py.mdt.statistics import COLUMN_STATS
from hudi_py.mdt.table import METADATA_FOLDER, MetadataTable
from hudi_py.model.files import BaseFile, FileSlice, parse_base_file, parse_log_file
from hudi_py.model.holes import Holes, holes_of
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.instant_time import resolve_time
from hudi_py.model.records import CleanMetadata
from hudi_py.runtime.clock import Clock, SystemClock
from hudi_py.runtime.log import log
from hudi_py.services.savepoint.plan import time_of_name
from hudi_py.snapshot.beside_clean import refuse_what_a_clean_took
from hudi_py.snapshot.overview import Amount, ColumnRange, FileTotals, Overview, overview_of, ranges_of
from hudi_py.snapshot.select import (
    base_files,
    check_as_of,
    check_columns_keep_names,
    check_rows_are_whole,
    context_as_of,
    slices_of_names,
    with_recorded_sizes,
)
from hudi_py.snapshot.snapshot import Snapshot
from hudi_py.storage.base import Storage
from hudi_py.storage.wrappers import ReadOnlyStorage
from hudi_py.timeline.archive import load_archived, load_archived_contents
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.properties_file import read_table_config
from hudi_py.timeline.store import TimelineStore
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.table_lock import table_lock

if TYPE_CHECKING:
    from typing_extensions import Self

    from hudi_py.rows.condition import Where
    from hudi_py.snapshot.rows import Rows

__all__ = ["TableView"]

OVERVIEW_FILES_MAX = 1000
"""Up to so many files the statistics of some thirty columns are read in a few seconds at most."""

_NO_CLEAN = CleanMetadata(start_clean_time="", time_taken_ms=0, total_files_deleted=0)
_NO_ROW_SCHEMA = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX"})


class TableView:
    """
    A table on a storage, to look at; nothing here changes it.

    Args:
        storage: Rooted at the table's base path.
        settings: ``hoodie.*`` settings.
        clock: Replaces the machine's clock.

    Raises:
        ConfigError: A setting is unknown, not valid, or one that makes even looking at a table wrong.
    """

    def __init__(
        self, storage: Storage, *, settings: Mapping[str, Any] | None = None, clock: Clock | None = None
    ) -> None:
        self.storage = storage
        self.settings = admitted(settings)
        self.config: TableConfig = read_table_config(storage)
        require_served(self.settings, Use.LOOK)
        clock = clock or SystemClock()
        self._store = TimelineStore(storage, self.config, clock, lock=table_lock(storage, self.settings, clock))
        self._contents = Contents(self._store)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.storage.root!r}, version {self.config.version})"

    def require(self, use: Use) -> None:
        """
        Refuse a use that the settings or the table's properties make wrong, before anything of it is done.

        Raises:
            ConfigError: By the settings.
            UnsupportedTable: By the properties.
        """
        from hudi_py.config.property_verdicts import require_table_served, unknown_properties

        require_served(self.settings, use)
        require_table_served(self.config, self.settings, use, self.storage.root)
        unknown = unknown_properties(self.config.properties)
        if unknown:
            log.warning("table.properties.unknown", table=self.storage.root, properties=unknown)

    @cached_property
    def timeline(self) -> Timeline:
        """The active timeline as it was when first asked for; see `refresh`."""
        try:
            return self._snapshot[0]
        except (CorruptMetadata, NotFound):  # of the metadata table; who asks for files is told
            return self._store.load()

    @property
    def listing(self) -> Listing:
        """Where partitions and files are looked up: in the metadata table where there is one, else in the folders."""
        return self._snapshot[1]

    @cached_property
    def _snapshot(self) -> tuple[Timeline, Listing]:
        return open_snapshot(self._store, self.config, self.settings)

    @property
    def contents(self) -> Contents:
        """What the instants hold."""
        return self._contents

    def refresh(self) -> Self:
        """Forget what was loaded, so that the next question sees the table as it is now."""
        self.config = read_table_config(self.storage)
        self._forget()
        return self

    def _forget(self) -> None:
        for name in ("timeline", "view_context", "listing", "_snapshot"):
            self.__dict__.pop(name, None)

    @cached_property
    def view_context(self) -> ViewContext:
        """What decides about file slices, for every partition."""
        return load_context(self.timeline, self._contents)

    def partitions(self) -> tuple[str, ...]:
        """Relative paths of all partitions, sorted; ``("",)`` for a table without partition columns."""
        return tuple(sorted(path for path, _ in self.listing.walk()))

    def partition(self, partition_path: str) -> PartitionView:
        """All file groups of one partition, replaced and uncommitted files included; sizes are known."""
        entries = self.listing.partition(partition_path, details=True)
        return build_partition(self.view_context, partition_path, ((e.name, e.size_bytes) for e in entries))

    def file_slices(self, partition_path: str = "") -> tuple[FileSlice, ...]:
        """The newest slice of each live file group of one partition, without files of pending writes."""
        return latest_slices(self.view_context, self.partition(partition_path))

    def base_files(
        self, as_of: str | datetime | None = None, *, savepoint: str | None = None
    ) -> tuple[tuple[str, BaseFile], ...]:
        """
        Partition path and base file of everything that holds rows of a snapshot.

        Args:
            as_of: As for `resolve_time`; None for the latest snapshot.
            savepoint: Requested time of a savepoint: what it holds, whatever cleans and archivals have passed it.

        Raises:
            ConfigError: There is no such savepoint, or both are given.
            RefusedError: The table has no single answer for that time (any more).
            UnsupportedTable: There are log files to merge, base files are not Parquet or hold a part of the columns
                only, or columns have other names in older files.
            CorruptMetadata: A file that a completed commit wrote is missing, so that older rows would be shown as the
                latest, or it has another size.
        """
        _check_one_time(as_of, savepoint)
        if as_of is not None:
            return self.as_of(as_of).base_files()
        self._check_rows(savepoint)
        if savepoint is not None:
            held = base_files(self._held(savepoint), self.storage.root)
            return tuple(sorted(held, key=lambda each: (each[0], each[1].name)))
        context = load_context(self.timeline, self._contents, with_clustering=False)
        found: list[tuple[str, BaseFile]] = []
        for path, entries in self.listing.walk():
            partition = build_partition(context, path, ((e.name, e.size_bytes) for e in entries))
            found += base_files(latest_slices(context, partition), self.storage.root)
        return tuple(sorted(found, key=lambda each: (each[0], each[1].name)))

    def rows(
        self,
        *,
        where: Where = (),
        columns: Sequence[str] | None = None,
        as_of: str | datetime | None = None,
        savepoint: str | None = None,
        with_meta: bool = False,
    ) -> Rows:
        """
        The rows of a snapshot as Arrow batches, without Spark.

        Args:
            where: One condition, or several that all have to be met: text (``COLUMN OP VALUE`` with one of ``= != < <=
                > >=``, or ``COLUMN is null``, ``COLUMN is not null``), a tuple ``("COLUMN", "OP", value)``, or an
                expression ``Column("COLUMN") > value``. They mean what they mean to Spark SQL; statistics of the
                metadata table and of the files decide which files are read, never which rows come back.
            columns: Names of those wanted; None for all.
            as_of: As `base_files`.
            savepoint: As `base_files`.
            with_meta: The ``_hoodie_*`` columns too.

        Raises:
            ConfigError: There is no such column or savepoint, or a condition makes no sense.
            RefusedError, UnsupportedTable: As `base_files`.
        """
        self.require(Use.READ)
        _check_one_time(as_of, savepoint)
        if as_of is not None:
            return self.as_of(as_of).rows(where=where, columns=columns, with_meta=with_meta)
        from hudi_py.rows.read import row_schema
        from hudi_py.snapshot.rows import Rows

        needed = NeededFiles(self._contents, self.timeline, savepoint)
        files = with_recorded_sizes(self.base_files(savepoint=savepoint), lambda: needed.sizes)
        schema = row_schema(self.storage, files, self._schema_text_at(savepoint))
        return Rows(
            self.storage, files, schema,
            columns=columns, where=where, with_meta=with_meta, statistics=self.column_statistics,
            partition_fields=self.config.partition_fields,
        )  # fmt: skip

    def column_statistics(self) -> StatisticsReader | None:
        """
        What the metadata table knows of columns, to be used as a context manager; None where it has no column_stats.

        Raises:
            CorruptMetadata, StorageError: It is damaged.
        """
        if COLUMN_STATS not in self.config.metadata_partitions or self.settings[keys.METADATA_ENABLED] is False:
            return None
        return StatisticsReader(MetadataTable(self.storage), self.timeline)

    def overview(self, *, columns_files_max: int = OVERVIEW_FILES_MAX) -> Overview:
        """
        One page about the table; costs one listing.

        Args:
            columns_files_max: The ranges of columns are looked up where the snapshot has no more files than this.

        Raises:
            CorruptMetadata: The metadata table or an instant is damaged.
        """
        context = load_context(self.timeline, self._contents, with_clustering=False)

        def partitions() -> Iterator[tuple[PartitionView, dict[str, int | None]]]:
            for path, entries in self.listing.walk(details=True):
                sizes = {entry.name: entry.size_bytes for entry in entries}
                yield build_partition(context, path, sizes.items()), sizes

        def ranges(files: FileTotals) -> tuple[ColumnRange, ...] | None:
            if files.latest.files > columns_files_max or files.log_files:
                return None
            try:
                reader = self.column_statistics()
                if reader is None:
                    return None
                with reader:
                    return ranges_of(reader.scan(), files.suffixes)
            except HudiError as error:
                log.warning("overview.statistics.unusable", partition=COLUMN_STATS, reason=str(error))
                return None

        return overview_of(
            timeline=self.timeline,
            context=context,
            partitions=partitions(),
            metadata_partitions=self._metadata_amounts(),
            ranges=ranges,
            now=self._store.clock.now(),
            zone=self.zone,
        )

    def _metadata_amounts(self) -> dict[str, Amount]:
        found = {}
        for name in sorted({*self.config.metadata_partitions, *self.config.metadata_partitions_inflight}):
            amount = Amount()
            for entry in self.storage.list(f"{METADATA_FOLDER}/{name}", details=True):
                if parse_base_file(entry.name) is not None or parse_log_file(entry.name) is not None:
                    amount = amount.plus(entry.size_bytes)
            found[name] = amount
        return found

    def _check_rows(self, time: str | None) -> None:
        check_rows_are_whole(self.config.properties, self.storage.root)
        self._check_column_names(time)

    def _schema_text_at(self, time: str | None) -> str | None:
        return self.schema_text(time) or self.schema_text()  # before the first commit: the newest

    def _held(self, savepoint: str) -> tuple[FileSlice, ...]:
        instant = self.timeline.find(savepoint, Action.SAVEPOINT)
        if instant is None or not instant.is_completed:
            raise ConfigError(f"there is no savepoint {savepoint}; see hudi-py savepoint list")
        return slices_of_names(self._contents.savepoint(instant).files)

    def schema_text(self, as_of: str | None = None) -> str | None:
        """
        Avro text of the rows, without meta columns: that of the newest commit that has one (rules/timeline 4.5).

        Args:
            as_of: Instant time; None for the newest.

        Returns:
            None for a table without such a commit that was not created with a schema either.
        """
        told = self._schemas(as_of).get("schema")
        return told or self.config.properties.get("hoodie.table.create.schema") or None

    def column_schema_text(self, as_of: str | None = None) -> str | None:
        """
        JSON of the columns with their ids, from the same commit as `schema_text`; None without schema on read.

        Args:
            as_of: Instant time; None for the newest.
        """
        return self._schemas(as_of).get("latest_schema") or None

    def _schemas(self, as_of: str | None) -> Mapping[str, str | None]:
        for instant in reversed(self.timeline.commits.completed()):
            if as_of is not None and instant.requested_time > as_of:
                continue
            metadata = self._contents.commit(instant)
            if metadata.extra_metadata.get("schema") and metadata.operation_type not in _NO_ROW_SCHEMA:
                return metadata.extra_metadata
        return {}

    def _check_column_names(self, as_of: str | None) -> None:
        history = newest_history(entry.name for entry in self.storage.list(HISTORY_FOLDER))
        latest = None if history is None else self.column_schema_text(as_of)
        if latest is None:  # a schema alone has no names before
            return
        path = f"{HISTORY_FOLDER}/{history}"
        moved = renamed_columns(latest, self.storage.read(path), f"{self.storage.root}/{path}")
        check_columns_keep_names(moved, self.storage.root)

    def as_of(self, time: str | datetime) -> Snapshot:
        """
        The table as it was at that time: a value to look at, which stays in the past whatever happens.

        Args:
            time: As for `resolve_time`.

        Raises:
            ConfigError: It is no time.
            RefusedError: As `base_files`.
        """
        requested_time = self.resolve_time(time)
        check_as_of(
            self.timeline,
            requested_time,
            earliest_retained=self._completed_clean.earliest_commit_to_retain,
            holes=holes_of(self._completed_clean),
            pending_clusterings=frozenset(self.view_context.pending_clustering.values()),
        )
        timeline, listing = self._snapshot
        context = context_as_of(self.view_context, requested_time)
        refuse_what_a_clean_took(self._contents, timeline, context, requested_time)

        def gone(found: Sequence[tuple[str, BaseFile]]) -> str | None:
            refuse_what_a_clean_took(self._contents, timeline, context, requested_time)
            return first_gone(self._contents, timeline, context, requested_time, found, with_pending=False)

        return Snapshot(
            storage=self.storage,
            config=self.config,
            requested_time=requested_time,
            view_context=context,
            listing=listing.until(requested_time) if isinstance(listing, CheckedListing) else listing,
            first_gone=gone,
            check_rows=lambda: self._check_rows(requested_time),
            schema=lambda: self._schema_text_at(requested_time),
            recorded=lambda: NeededFiles(self._contents, timeline, requested_time).sizes,
            statistics=self.column_statistics,
        )

    def earliest_retained(self) -> str:
        """
        The instant time from which on everything is still there, ``""`` when unknown.

        A clean that has begun counts like a completed one: Hudi does not ask for those and finds files missing, or
        rows.
        """
        times = [self._completed_clean.earliest_commit_to_retain]
        begun = (instant for instant in self.timeline.pending(Action.CLEAN) if instant.state is State.INFLIGHT)
        for instant in begun:
            earliest = self._contents.clean_plan(instant).earliest_instant_to_retain
            if earliest is not None:
                times.append(earliest.requested_time)
        return max(times)

    @property
    def _completed_clean(self) -> CleanMetadata:
        """What the last completed clean recorded; nothing where there is none."""
        cleans = self.timeline.completed(Action.CLEAN)
        return self._contents.clean(cleans[-1]) if cleans else _NO_CLEAN

    def holes(self) -> Holes:
        """Which times before its window the last clean left readable; one that has begun counts here too."""
        begun = [instant for instant in self.timeline.pending(Action.CLEAN) if instant.state is State.INFLIGHT]
        if begun:
            return holes_of(self._contents.clean_plan(begun[-1]))
        return holes_of(self._completed_clean)

    def archived_timeline(self) -> Timeline:
        """
        Completed and pending instants that were archived, oldest first; layout 2 archives completed ones only.

        Raises:
            CorruptMetadata: A file of the archive is damaged.
        """
        return load_archived(self.storage, self.config)

    def archived_contents(self, requested_time: str | None = None) -> dict[Instant, Any]:
        """
        What archived instants hold, as `decoded` gives it for active ones; None for one archived without content.

        Args:
            requested_time: Only the instants of that time; default: all.

        Raises:
            CorruptMetadata: A file of the archive is damaged.
        """
        return load_archived_contents(self.storage, self.config, requested_time)

    @property
    def zone(self) -> tzinfo:
        """The zone of the table's instant times."""
        return self._store.zone

    def resolve_time(self, time: str | datetime) -> str:
        """
        An instant time from what a user gave: a datetime, or as text digits, ISO 8601, a duration counted back from
        now, or the name of a savepoint.

        Raises:
            ConfigError: None of these.
            RefusedError: Two savepoints have that name.
        """
        try:
            return resolve_time(time, now=self._store.clock.now(), zone=self.zone)
        except ConfigError as error:
            if not isinstance(time, str):
                raise
            savepoints = self.timeline.completed(Action.SAVEPOINT)
            found = time_of_name(time, ((each, self._contents.savepoint(each)) for each in savepoints))
            if found is None:
                raise ConfigError(f"{error}; and there is no savepoint {time!r}") from error
            return found

    def read_only(self) -> Self:
        """The same table through a storage that refuses every write."""
        return type(self)(ReadOnlyStorage(self.storage), settings=self.settings.as_dict(), clock=self._store.clock)

    def rehearsal(self) -> Self:
        """
        As `read_only`, for a dry run: a lock provider that nobody knows is refused there too.

        Raises:
            ConfigError: The settings ask for one.
        """
        self._store.lock.examine()
        return self.read_only()

    def decoded(self, instant: Instant) -> Any:
        """
        Content of one instant as plain data; None for an empty file.

        Raises:
            CorruptMetadata: It does not decode.
        """
        source = f"{self.storage.root}/{self._store.path(instant)}"
        return decode_content(self._store.read(instant), source).value


def _check_one_time(as_of: str | datetime | None, savepoint: str | None) -> None:
    if as_of is not None and savepoint is not None:
        raise ConfigError(f"as_of={as_of} and savepoint={savepoint} are two answers to one question; give one of them")

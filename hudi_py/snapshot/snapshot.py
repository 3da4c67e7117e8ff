"""
A read-only view of a table at one time: its columns, rows and statistics.

A snapshot keeps the timeline that was loaded when it was opened, so later changes to the table do not move it. Which
file slices it has depends on the time: see `hudi_py.snapshot.moments`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import attrs

from hudi_py.config.door import require_served
from hudi_py.config.property_verdicts import require_table_served
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig, TableType
from hudi_py.config.uses import Use
from hudi_py.fsview.as_of import context_as_of
from hudi_py.fsview.build import ViewContext
from hudi_py.fsview.loader import load_context
from hudi_py.fsview.moved import with_moved
from hudi_py.fsview.needed import NeededFiles
from hudi_py.fsview.written_ranges import WrittenRanges
from hudi_py.mdt.read_statistics import StatisticsReader
from hudi_py.mdt.statistics import COLUMN_STATS
from hudi_py.mdt.table import MetadataTable
from hudi_py.model.files import BaseFile, FileSlice, bases_of
from hudi_py.model.shown import Shown
from hudi_py.rows.filling import refuse_defaults
from hudi_py.rows.log_rules import log_rules_of
from hudi_py.snapshot.beside_clean import lost_meanwhile
from hudi_py.snapshot.bootstrap import with_sources
from hudi_py.snapshot.ready_indexes import is_ready, opened
from hudi_py.snapshot.schema import (
    committed_schema_text,
    rewritten_schema_text,
    schema_text_of_files,
)
from hudi_py.snapshot.select import (
    base_files,
    check_base_files,
    check_files_have_all_columns,
    check_rows_are_whole,
    has_logs,
    with_recorded_sizes,
)
from hudi_py.storage.base import Storage
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.row_schema import column_ids, moved_columns
from hudi_py.timeline.timeline import Timeline

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_py.formats.column_history import MovedColumns
    from hudi_py.rows.condition import Where
    from hudi_py.rows.log_reading import LogReading
    from hudi_py.rows.partition_values import PartitionValues
    from hudi_py.rows.path_columns import PathColumns
    from hudi_py.rows.predicate import ColumnFilter
    from hudi_py.rows.time_partitions import TimePartitions
    from hudi_py.snapshot.key_index import KeyIndexes
    from hudi_py.snapshot.rows import Rows

__all__ = ["Snapshot"]


@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class Snapshot(Shown):
    """
    The rows and columns of a table at one time.

    Args:
        contents: Reads the instants of the table's timeline.
        timeline: The timeline as it was when the snapshot was opened.
        config: The table's configuration.
        settings: The table's settings.
        requested_time: The time as an instant time; None for the latest snapshot.
    """

    _contents: Contents
    timeline: Timeline
    config: TableConfig
    _settings: Settings
    requested_time: str | None = None

    _is_present = False

    def _facts(self) -> Mapping[str, object]:
        return {"table": self.storage.root, "requested_time": self.requested_time or "latest"}

    @property
    def storage(self) -> Storage:
        """The table's storage."""
        return self._contents.store.storage

    def base_files(self) -> tuple[tuple[str, BaseFile], ...]:
        """
        Partition path and base file of each file slice with rows at that time.

        Raises:
            RefusedError: A clean deleted one of them, or began to.
            UnsupportedTable: There are log files to merge, base files are neither Parquet nor ORC or lack some of the
                columns, or columns have other names in older files.
            CorruptMetadata: A file that a completed commit wrote is missing, so that older rows would be shown as the
                latest, or it has another size.
        """
        check_files_have_all_columns(self.config.properties, self.storage.root)
        check_rows_are_whole(self.config.properties, self.storage.root)
        return base_files(self.slices_with_rows(), self.storage.root)

    def slices_with_rows(self) -> tuple[FileSlice, ...]:
        """
        The file slices that hold rows at that time, by partition path and file id.

        Raises:
            RefusedError, UnsupportedTable, CorruptMetadata: As `base_files`, but log files are allowed.
        """
        # Sorted, so that rows come in the same order whether files were listed in folders or in the metadata table.
        found = sorted(self._slices(), key=lambda each: (each.partition_path, each.file_id))
        check_base_files(found, self.config.base_file_extensions, self.storage.root)
        return tuple(with_moved(with_sources(self.storage, self.config, found), self._moved_columns()))

    def _moved_columns(self) -> MovedColumns | None:
        """Where the columns of the files are at that time; None if all have kept their names."""
        return moved_columns(self._contents, self.timeline, self.requested_time)

    def sized_slices(self, *, read_optimized: bool = False) -> tuple[FileSlice, ...]:
        """
        As `slices_with_rows`; where the listing has no size of a file, the one that its commit recorded is filled in.

        Args:
            read_optimized: Read base files only: rows in log files are left out, and older versions of them shown.
        """
        needed = NeededFiles(self._contents, self.timeline, self.requested_time)
        found = with_recorded_sizes(self.slices_with_rows(), needed.recorded)
        if not read_optimized:
            return found
        # A slice of log files alone has no rows to such a query.
        return tuple(attrs.evolve(each, log_files=()) for each in found if each.base_file is not None)

    def rows(
        self,
        *,
        where: Where = (),
        columns: Sequence[str] | None = None,
        with_meta: bool = False,
        read_optimized: bool = False,
    ) -> Rows:
        """
        The rows at that time as Arrow batches, without Spark; arguments as `hudi_py.Table.rows`.

        Raises:
            ConfigError: A column does not exist, a condition is invalid, or a setting asks for other rows.
            RefusedError, UnsupportedTable, CorruptMetadata: As `slices_with_rows`.
            UnsupportedTable: Log files are merged in a way that hudi_py does not know, or a property of the table asks
                for something that reading does not do.
        """
        from hudi_py.snapshot.rows import Rows

        # Here, and not only where a table is asked for rows: a value of an earlier time or of a range has them, too.
        require_served(self._settings, Use.READ)
        require_table_served(self.config, self._settings, Use.READ, self.storage.root)
        # Sizes first: a reader that knows the size of a file notices one that was cut off or swapped.
        slices = self.sized_slices(read_optimized=read_optimized)
        schema = self._row_schema(slices)
        return Rows(
            self.storage, slices, schema,
            columns=columns, where=where, with_meta=with_meta, statistics=self.column_statistics,
            logs=self._log_reading(slices, schema),
            commits=self.row_commits(), time_partitions=self._time_partitions(),
            lost=partial(lost_meanwhile, self._contents), path_columns=self._path_columns(),
            indexes=self._key_indexes(read_optimized=read_optimized),
            partition_values=self._partition_values(read_optimized=read_optimized),
        )  # fmt: skip

    def _partition_values(self, *, read_optimized: bool) -> PartitionValues:
        """What paths tell of the values of partition columns."""
        from hudi_py.rows.partition_values import partition_values_of

        return partition_values_of(self.config, merged=self._may_merge(read_optimized=read_optimized))

    def _may_merge(self, *, read_optimized: bool) -> bool:
        """Whether log files may be merged."""
        return self.config.table_type is TableType.MERGE_ON_READ and not read_optimized

    def _time_partitions(self) -> TimePartitions | None:
        """How partition values of time-based keys are shown as text; None where they are not."""
        # Values that only the paths have cannot differ from stored ones: there are none.
        from hudi_py.rows.time_partitions import time_partitions_of

        return time_partitions_of(self.config) if self._path_columns() is None else None

    def _path_columns(self) -> PathColumns | None:
        """Partition columns whose values are in the paths only; None where the files have all columns."""
        from hudi_py.rows.path_columns import path_columns_of

        return path_columns_of(self.config)

    def row_commits(self) -> ColumnFilter | None:
        """A filter by commit on the rows of the slices; None for all rows."""
        return None

    def _log_reading(self, slices: Sequence[FileSlice], schema: pa.Schema) -> LogReading | None:
        """
        How log files of slices are read; None without log files.

        Args:
            slices: File slices of this snapshot.
            schema: All columns of the table.

        Raises:
            UnsupportedTable: A Java class merges the rows, or ordering fields are of a kind that is not served.
        """
        if not has_logs(slices):
            return None
        from hudi_py.rows.keys import virtual_keys_of
        from hudi_py.rows.log_reading import log_reading

        root = self.storage.root
        rules = log_rules_of(self.config.properties, root, computes_keys=True)
        # Refused here, before any row is returned.
        refuse_defaults(rules.filling, self._committed_schema(), root)
        keys = virtual_keys_of(self.config.properties, root)
        reading = log_reading(rules, self._log_context().is_completed, self._logs_until, schema, root, keys)
        has_ids = column_ids(self._contents, self.timeline, self.requested_time) is not None
        reading = reading.by_ids(self._moved_columns(), has_ids=has_ids)
        return attrs.evolve(reading, written=WrittenRanges(self._contents, self.timeline, self.requested_time))

    @property
    def _logs_until(self) -> str | None:
        """Blocks of log files are read up to the first one of a later instant; None for all."""
        return self.requested_time

    def _log_context(self) -> ViewContext:
        """View context of that time: it knows which instants were completed then."""
        context = load_context(self.timeline, self._contents, with_clustering=False)
        return context if self.requested_time is None else context_as_of(context, self.requested_time)

    @property
    def schema(self) -> pa.Schema:
        """
        The columns of the rows at that time as a `pyarrow.Schema`, all nullable, without the ``_hoodie_*`` ones.

        From the newest commit that records a schema, without opening data files; else from the newest file.
        """
        from hudi_py.rows.read import chosen_columns

        return chosen_columns(self._row_schema(None), None)

    def shown_schema(self, columns: Sequence[str] | None = None, *, with_meta: bool = False) -> pa.Schema:
        """
        The columns that `rows` returns for these arguments; they are found as for `schema`.

        Raises:
            ConfigError: A column does not exist.
        """
        from hudi_py.rows.read import chosen_columns

        stored, shown = chosen_columns(self._row_schema(None), columns, with_meta=with_meta), self._time_partitions()
        return stored if shown is None else shown.schema(stored)

    def _row_schema(self, slices: Sequence[FileSlice] | None) -> pa.Schema:
        from hudi_py.rows.read import row_schema

        def files() -> tuple[tuple[str, BaseFile], ...]:
            return bases_of(self.slices_with_rows() if slices is None else slices)

        text = self._committed_schema()
        if text is None and not files():  # no base file has rows; those in log files would be lost without columns
            text = rewritten_schema_text(self._contents, self.timeline)
        stored, columns = row_schema(self.storage, files, text), self._path_columns()
        return stored if columns is None else columns.schema(stored)

    def schema_text(self) -> str | None:
        """
        The rows' Avro schema at that time as text, without meta columns; before the first commit the newest schema.

        Returns:
            None for a table without rows that was not created with a schema either.
        """
        committed = self._committed_schema()
        return committed or schema_text_of_files(self.storage, bases_of(self.slices_with_rows()), self.config.name)

    def _committed_schema(self) -> str | None:
        return committed_schema_text(self._contents, self.timeline, self.config.properties, self.requested_time)

    def column_statistics(self) -> StatisticsReader | None:
        """
        Opens the metadata table's column statistics, as a context manager; None where it has no `column_stats`, or
        where columns were renamed or dropped since.

        Raises:
            CorruptMetadata, StorageError: The metadata table is damaged.
        """
        if not is_ready(COLUMN_STATS, self.config, self._settings):
            return None
        if self._moved_columns() is not None:  # they describe columns under the names of their time
            return None
        return opened(
            COLUMN_STATS,
            lambda: StatisticsReader(MetadataTable(self.storage), self.timeline),
            self.storage,
            self._settings,
        )

    def _key_indexes(self, *, read_optimized: bool) -> KeyIndexes:
        """Indexes of record keys. The record index describes the present only, log files included."""
        from hudi_py.snapshot.key_index import KeyIndexes

        is_present = self._is_present and not read_optimized
        return KeyIndexes(self._contents, self.timeline, self.config, self._settings, is_present=is_present)

    def _slices(self) -> Iterable[FileSlice]:
        raise NotImplementedError

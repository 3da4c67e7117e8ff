"""
Computes the records that an action owes to the statistics: of which columns, and in which form.

Which columns a table of layout 2 indexes stands in its index definitions; in layout 1 the records themselves tell.
Log files have records as base files do, without sizes; one with nothing but deletes has records without values.
Deleted files get tombstones, except in layout 1: those of 0.15.0 have no effect either, and nobody asks for them.

Source: rules/data-files 11.1; Hudi 1.0.2, 1.1.1 ``HoodieIndexDefinition``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs
import pyarrow as pa

from hudi_py.config.table import TableConfig
from hudi_py.errors import NotFound
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.mdt.changes import ListingChanges
from hudi_py.mdt.file_statistics import StatisticsForm, default_columns, statistics_records
from hudi_py.mdt.index_definitions import DEFINITIONS_KEY
from hudi_py.mdt.read_statistics import StatisticsReader
from hudi_py.mdt.shares import Encoded
from hudi_py.mdt.statistics import COLUMN_STATS, TYPES
from hudi_py.mdt.table import MetadataTable
from hudi_py.model.files import join_path, parse_base_file, parse_log_file
from hudi_py.model.json_document import parse_json
from hudi_py.rows.column_ranges import ColumnRange, ranges_of_rows, read_ranges
from hudi_py.rows.log_records import rows_of_log_file
from hudi_py.rows.lookup import open_base_file
from hudi_py.rows.orc_file import OrcFile
from hudi_py.storage.base import Storage
from hudi_py.timeline.timeline import Timeline

Ranges = Mapping[str, tuple[ColumnRange, ...]]
"""Path of a base or log file to its ranges, as its writer gathered them."""

_NAMES_TYPES: Final = {"V1": False, "V2": True}
"""Version of the index to `StatisticsForm.names_types`."""


@attrs.frozen
class _Definition:
    """
    What the index definitions say of `column_stats`.

    Args:
        columns: Those that are indexed.
        names_types: See `StatisticsForm`.
    """

    columns: tuple[str, ...]
    names_types: bool


def kept_partitions(storage: Storage, config: TableConfig) -> frozenset[str]:
    """
    Return the partitions of statistics that commits of ours keep true; others are dropped before the commit.

    Args:
        storage: The data table's storage.
        config: The data table's configuration, as just read.
    """
    return _kept(storage, config)[0]


def _kept(storage: Storage, config: TableConfig) -> tuple[frozenset[str], _Definition | None]:
    """Return the partitions, and the definition of the statistics where the layout has one."""
    ready = set(config.metadata_partitions) - set(config.metadata_partitions_inflight)
    if COLUMN_STATS not in ready:
        return frozenset(), None
    definition = None
    if config.format.layout.has_completion_times:
        definition = _definition(storage, config)
        # It is unknown which columns readers expect records of; where one is missing they take the column for nulls.
        if definition is None:
            return frozenset(), None
    return frozenset(ready & TYPES.keys()), definition


class KeptStatistics:
    """
    The statistics of one table, at one moment.

    Args:
        storage: The data table's storage.
        config: The data table's configuration, as just read.
        table: The metadata table.
        timeline: The data table's timeline.
    """

    def __init__(self, storage: Storage, config: TableConfig, table: MetadataTable, timeline: Timeline) -> None:
        self._storage = storage
        self._config = config
        self._table = table
        self._timeline = timeline
        self._partitions, self._definition = _kept(storage, config)

    @property
    def is_empty(self) -> bool:
        """Whether the table has no statistics that we keep; then nothing else may be asked."""
        return not self._partitions

    def form(self, schema: pa.Schema | None) -> StatisticsForm:
        """
        Return the form of the records of files with this schema.

        Args:
            schema: None for deleted files.
        """
        columns, names_types = self._columns(schema)
        return StatisticsForm(
            table_version=self._table.table_version,
            tells_tight_bounds=self._table.format.metadata_table.tells_tight_bounds,
            names_types=names_types,
            columns=columns,
            partitions=self._partitions,
        )

    def records(self, changes: ListingChanges, ranges: Ranges | None) -> Encoded:
        """
        Return the records that an action owes.

        Args:
            changes: What it did.
            ranges: Of the files of a commit; those that are missing are read from the files. None for other actions:
                they write no rows, so log files that they list again or append a rollback block to get no records,
                and readers open files without records.
        """
        written: dict[str, dict[str, tuple[ColumnRange, ...]]] = {}
        for path, sizes in changes.added.items():
            for name in sizes:
                if parse_base_file(name) is not None or (ranges is not None and _is_log(name)):
                    known = (ranges or {}).get(join_path(path, name))
                    written.setdefault(path, {})[name] = self._read(path, name) if known is None else known
        deleted: dict[str, list[str]] = {}
        if self._config.format.layout.has_completion_times:
            for path, names in changes.deleted.items():
                deleted[path] = [each for each in map(_last, names) if parse_base_file(each) or _is_log(each)]
        return statistics_records(self.form(None), written, deleted)

    def _columns(self, schema: pa.Schema | None) -> tuple[tuple[str, ...], bool]:
        defaults = () if schema is None else default_columns(schema, self._table.format.metadata_table)
        if not self._config.format.layout.has_completion_times:
            return (() if schema is None else self._recorded(defaults)), False
        assert self._definition is not None
        return _extended(self._definition.columns, defaults), self._definition.names_types

    def _recorded(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Those that have records; all where there are none yet."""
        # Layout 1 has no definitions. A scan ends with the first record of a column, as those lie next to each other.
        with StatisticsReader(self._table, self._timeline) as reader:
            found = tuple(column for column in columns if reader.has_column(column))
        if "_hoodie_commit_seqno" in found:  # no writer names it: all columns are indexed, new ones too
            return columns
        return found or columns

    def _read(self, path: str, name: str) -> tuple[ColumnRange, ...]:
        try:
            if _is_log(name):
                batches = rows_of_log_file(self._storage, join_path(path, name))
                return ranges_of_rows(batches, self.form(batches[0].schema).columns) if batches else ()
            with self._storage.open_read(join_path(path, name)) as stream:
                file = open_base_file(stream)
                if isinstance(file, OrcFile):  # of which Apache Hudi records nothing
                    return ()
                return read_ranges(file, self.form(file.schema_arrow).columns)
        except NotFound:  # deleted since; whoever deleted it records that
            return ()


def _is_log(name: str) -> bool:
    log = parse_log_file(name)
    return log is not None and not log.is_cdc


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _extended(columns: tuple[str, ...], defaults: tuple[str, ...]) -> tuple[str, ...]:
    """
    The columns of the definition and, where no writer has chosen them, those that Apache Hudi's next write adds: it
    takes a column without a record for one of nulls.
    """
    chosen = set(columns) - set(META_COLUMNS)
    own = [name for name in defaults if name not in META_COLUMNS]
    return tuple(dict.fromkeys((*columns, *own))) if chosen == set(own[: len(chosen)]) else columns


def _definition(storage: Storage, config: TableConfig) -> _Definition | None:
    """What stands in the index definitions; None where that is not clear."""
    path = config.properties.get(DEFINITIONS_KEY, "")
    try:
        definition: Any = parse_json(storage.read(path))["indexDefinitions"][COLUMN_STATS] if path else {}
        columns = tuple(definition["sourceFields"])
    except (NotFound, ValueError, KeyError, TypeError):
        return None
    version = definition.get("version", "V1")
    if not columns or not all(isinstance(column, str) for column in columns) or version not in _NAMES_TYPES:
        return None
    return _Definition(columns, _NAMES_TYPES[version])

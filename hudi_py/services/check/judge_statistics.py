"""
Whether the statistics of columns and partitions in the metadata table hold the values of the files.

Bounds that are too narrow hide rows from every reader that asks them, so only that is an error; wider ones cost time.
Bounded: looked at are the newest files that the active commits wrote, base files by their footers, log files by their
rows. Floats and bytes are left out, whose bounds no reader of hudi_py uses.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from typing import Final, NamedTuple

import pyarrow as pa

from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.mdt.kept_statistics import KeptStatistics
from hudi_py.mdt.read_statistics import StatisticsReader
from hudi_py.mdt.statistics import PARTITION_STATS, column_prefix, key_suffix, partition_suffix
from hudi_py.mdt.table import MetadataTable
from hudi_py.model.column_statistics import ColumnStatistics
from hudi_py.model.files import join_path, parse_base_file, parse_log_file
from hudi_py.rows.bounds import PathBounds, bounds_of_chunk
from hudi_py.rows.column_ranges import ColumnRange, ranges_of_rows
from hudi_py.rows.log_records import rows_of_log_file
from hudi_py.rows.lookup import open_base_file
from hudi_py.rows.orc_file import OrcFile
from hudi_py.rows.predicate import UNKNOWN, Bounds
from hudi_py.services.check.findings import Finding, finding
from hudi_py.services.check.newest_files import WrittenData
from hudi_py.storage.base import Storage
from hudi_py.timeline.properties_file import read_table_config
from hudi_py.timeline.timeline import Timeline

_FILES_MAX: Final = 50
_LOG_BYTES_MAX: Final = 4 << 20
_EPOCH: Final = date(1970, 1, 1)


class _Column(NamedTuple):
    """Bounds of one column in one file, as the file says."""

    name: str
    arrow: pa.DataType
    bounds: Bounds


def judge_statistics(
    storage: Storage, files: Iterable[WrittenData], table: MetadataTable, timeline: Timeline
) -> Iterator[Finding]:
    """
    Compare statistics with files.

    Args:
        storage: Storage of the table.
        files: Files of the newest slices.
        table: The metadata table.
        timeline: Timeline of the table.

    Raises:
        CorruptMetadata, UnsupportedTable: A record cannot be read.
    """
    config = read_table_config(storage)
    kept = KeptStatistics(storage, config, table, timeline)
    if kept.is_empty:
        return
    with contextlib.ExitStack() as stack:
        columns = stack.enter_context(StatisticsReader(table, timeline))
        partitions = None
        if PARTITION_STATS in config.metadata_partitions:
            partitions = stack.enter_context(StatisticsReader(table, timeline, partition=PARTITION_STATS))
        indexed = _Indexed(kept)
        # The newest first: where a writer passes the statistics by, its files are the last ones.
        for each in itertools.islice(files, _FILES_MAX):
            yield from _judge(storage, each, indexed, columns, partitions)


class _Indexed:
    """The columns that have statistics, asked for once for all files with the same columns: that reads records."""

    def __init__(self, kept: KeptStatistics) -> None:
        self._kept = kept
        self._known: dict[tuple[str, ...], frozenset[str]] = {}

    def of(self, schema: pa.Schema) -> frozenset[str]:
        names = tuple(schema.names)
        if names not in self._known:
            self._known[names] = frozenset(self._kept.form(schema).columns)
        return self._known[names]


def _judge(
    storage: Storage,
    file: WrittenData,
    indexed: _Indexed,
    columns: StatisticsReader,
    partitions: StatisticsReader | None,
) -> Iterator[Finding]:
    try:
        found = list(_columns_of(storage, file, indexed))
    except (NotFound, CorruptMetadata):  # another finding
        return
    suffix, of_partition = key_suffix(file.partition_path, file.name), partition_suffix(file.partition_path)
    known = columns.get(column_prefix(column.name) + suffix for column in found)
    together = partitions.get(column_prefix(column.name) + of_partition for column in found) if partitions else {}
    where = join_path(file.partition_path, file.name)
    for name, arrow, bounds in found:
        of_file = known.get(column_prefix(name) + suffix)
        reads = PathBounds((name,), arrow)
        if of_file is None:
            # Readers open a file without any record; one that lacks a single one they take for one of nulls there.
            if known and not bounds.has_only_nulls:
                yield finding("mdt-statistics-differ", where, f"the column {name} has no record")
        elif _is_narrower(reads.of(of_file), bounds):
            yield finding("mdt-statistics-differ", where, _told(name, bounds, of_file))
        over = together.get(column_prefix(name) + of_partition)
        if over is not None and _is_narrower(reads.of(over), bounds):
            yield finding("mdt-statistics-differ", where, f"{_told(name, bounds, over)} in {PARTITION_STATS}")


def _is_narrower(recorded: Bounds, actual: Bounds) -> bool:
    """Whether a value of the file is not within what is recorded."""
    if actual.has_only_nulls:
        return False
    if recorded.minimum is None or actual.minimum is None:  # unknown on one side, or types that are not compared
        return False
    return bool(recorded.minimum > actual.minimum or recorded.maximum < actual.maximum)


def _told(name: str, bounds: Bounds, of: ColumnStatistics) -> str:
    return (
        f"the column {name} has values from {bounds.minimum!r} to {bounds.maximum!r}, recorded are {of.minimum!r} to "
        f"{of.maximum!r}"
    )


def _columns_of(storage: Storage, file: WrittenData, indexed: _Indexed) -> Iterator[_Column]:
    where = join_path(file.partition_path, file.name)
    if parse_base_file(file.name) is not None:
        with storage.open_read(where) as stream:
            opened = open_base_file(stream)
            if isinstance(opened, OrcFile):  # Apache Hudi records nothing of these
                return
            schema, footer = opened.schema_arrow, opened.metadata
            wanted = indexed.of(schema)
            for group in range(footer.num_row_groups):
                row_group = footer.row_group(group)
                for at in range(row_group.num_columns):
                    chunk = row_group.column(at)
                    if chunk.path_in_schema in wanted:
                        arrow = schema.field(chunk.path_in_schema).type
                        yield _Column(chunk.path_in_schema, arrow, bounds_of_chunk(chunk, arrow, arrow))
        return
    log = parse_log_file(file.name)
    if log is None or log.is_cdc or file.size_bytes > _LOG_BYTES_MAX:
        return
    batches = rows_of_log_file(storage, where)
    if batches and all(batch.schema == batches[0].schema for batch in batches):
        for each in ranges_of_rows(batches, indexed.of(batches[0].schema)):
            yield _Column(each.column, each.arrow, _bounds_of(each))


def _bounds_of(of: ColumnRange) -> Bounds:
    if of.minimum is None:
        return Bounds(has_only_nulls=True)
    if pa.types.is_floating(of.arrow) or pa.types.is_binary(of.arrow):
        return UNKNOWN
    if pa.types.is_date32(of.arrow):
        try:
            return Bounds(minimum=_EPOCH + timedelta(of.minimum), maximum=_EPOCH + timedelta(of.maximum))
        except OverflowError:  # before the year 1 or after 9999
            return UNKNOWN
    return Bounds(minimum=of.minimum, maximum=of.maximum)

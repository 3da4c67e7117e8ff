"""
Statistics of each column of a file: bounds, counts and sizes, collected while the file is written.

Bounds are computed from the values, not read from the footer: Parquet leaves out bounds of long texts and ignores NaN,
which Spark orders after all numbers. Source: rules/data-files 11.1; Hudi ``ParquetUtils.readColumnStatsFromMetadata``,
``HoodieTableMetadataUtil.collectColumnRangeMetadata``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa

from hudi_py.formats.arrow_types import compute

if TYPE_CHECKING:
    import pyarrow.parquet as pq


@attrs.frozen(kw_only=True)
class ColumnRange:
    """
    The statistics of one column in one file.

    Args:
        column: Its name.
        arrow: Its type.
        minimum: Lower bound as a Python value, timestamps in microseconds, dates in days since 1970, because Python's
            end with the year 9999; None where all values are null.
        maximum: Upper bound, as *minimum*; NaN where there is one.
        value_count: Number of rows.
        null_count: Number of nulls.
        size_bytes: Compressed size.
        uncompressed_bytes: Size before compression.
    """

    column: str
    arrow: pa.DataType
    minimum: Any
    maximum: Any
    value_count: int
    null_count: int
    size_bytes: int = 0
    uncompressed_bytes: int = 0


def has_range(arrow: pa.DataType) -> bool:
    """Return whether Apache Hudi keeps bounds of columns of this type by default."""
    types = pa.types
    return bool(
        types.is_boolean(arrow)
        or arrow in (pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary())
        or types.is_date32(arrow)
        or types.is_decimal128(arrow)
        or (types.is_timestamp(arrow) and arrow == pa.timestamp("us", getattr(arrow, "tz", None)))
    )


def joined(first: ColumnRange, second: ColumnRange) -> ColumnRange:
    """Return the statistics of two files together."""
    return attrs.evolve(
        first,
        minimum=_outer(first.minimum, second.minimum, low=True),
        maximum=_outer(first.maximum, second.maximum, low=False),
        value_count=first.value_count + second.value_count,
        null_count=first.null_count + second.null_count,
        size_bytes=first.size_bytes + second.size_bytes,
        uncompressed_bytes=first.uncompressed_bytes + second.uncompressed_bytes,
    )


class RangeCollector:
    """
    Gathers the ranges of one file.

    Args:
        schema: Columns of the rows, meta columns included.
        columns: Columns to collect; those that the schema lacks, or whose type has no bounds, are ignored.
    """

    def __init__(self, schema: pa.Schema, columns: Iterable[str]) -> None:
        fields: dict[str, Any] = {field.name: _plain_type(field.type) for field in schema}
        # Nested columns have no bounds of their own; settings may name them all the same.
        self._types = {name: fields[name] for name in columns if name in fields and has_range(fields[name])}
        self._ranges: dict[str, ColumnRange] = {}

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that are collected."""
        return tuple(self._types)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows to the statistics."""
        for name, arrow in self._types.items():
            found = _range_of(name, arrow, batch.column(batch.schema.get_field_index(name)))
            known = self._ranges.get(name)
            self._ranges[name] = found if known is None else joined(known, found)

    def without_sizes(self) -> tuple[ColumnRange, ...]:
        """Return the range of each column of a log file, where columns have no sizes of their own."""
        return tuple(self._ranges.values())

    def finish(self, footer: pq.FileMetaData) -> tuple[ColumnRange, ...]:
        """
        Return the range of each column.

        Args:
            footer: Footer of the finished file, which has the sizes.
        """
        sizes: dict[str, tuple[int, int]] = {}
        for group in range(footer.num_row_groups):
            row_group = footer.row_group(group)
            for position in range(row_group.num_columns):
                chunk = row_group.column(position)
                packed, plain = sizes.get(chunk.path_in_schema, (0, 0))
                sizes[chunk.path_in_schema] = (
                    packed + chunk.total_compressed_size,
                    plain + chunk.total_uncompressed_size,
                )
        return tuple(
            attrs.evolve(each, size_bytes=sizes[name][0], uncompressed_bytes=sizes[name][1])
            for name, each in self._ranges.items()
        )


def ranges_of_rows(batches: Iterable[pa.RecordBatch], columns: Iterable[str]) -> tuple[ColumnRange, ...]:
    """
    Collect the ranges of the rows of a log file.

    Args:
        batches: The rows with their meta columns, all with one schema, at least one batch; it may be without rows.
        columns: As `RangeCollector`.
    """
    collector: RangeCollector | None = None
    for batch in batches:
        collector = collector or RangeCollector(batch.schema, columns)
        collector.add(batch)
    return () if collector is None else collector.without_sizes()


def read_ranges(file: pq.ParquetFile, columns: Iterable[str]) -> tuple[ColumnRange, ...]:
    """
    Collect the ranges of an existing file.

    Args:
        file: The opened file.
        columns: As `RangeCollector`.
    """
    collector = RangeCollector(file.schema_arrow, columns)
    for batch in file.iter_batches(columns=list(collector.columns)):
        collector.add(batch)
    return collector.finish(file.metadata)


def _range_of(name: str, arrow: Any, column: Any) -> ColumnRange:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    # As numbers before Python sees them: datetime has no years after 9999, and Parquet files do.
    column = column.cast(pa.int64()) if pa.types.is_timestamp(arrow) else column
    column = column.cast(pa.int32()) if pa.types.is_date32(arrow) else column
    bounds = compute.min_max(column)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if pa.types.is_floating(arrow):
        low, high = _with_nan(low, high, bool(compute.any(compute.is_nan(column)).as_py()))
    return ColumnRange(
        column=name, arrow=arrow, minimum=low, maximum=high, value_count=len(column), null_count=column.null_count
    )


def _with_nan(low: float | None, high: float | None, has_nan: bool) -> tuple[float | None, float | None]:
    """Bounds in Java's order: NaN is the largest, and -0.0 is less than 0.0, so either may stand for both."""
    if low is None or high is None or math.isnan(low):
        return low, high
    if low > high:  # all are NaN; PyArrow before 24 says that they lie between the infinities, the wrong way round
        return math.nan, math.nan
    return (-0.0 if low == 0 else low), (math.nan if has_nan else 0.0 if high == 0 else high)


def _outer(first: Any, second: Any, *, low: bool) -> Any:
    if first is None or second is None:
        return second if first is None else first
    if isinstance(first, float):
        nans = [each for each in (first, second) if math.isnan(each)]
        # NaN is the largest value to Spark, so it stays the upper bound, and is never the lower one while there are
        # numbers.
        if nans and not low:
            return math.nan
        if nans:
            return second if math.isnan(first) else first
    return min(first, second) if low else max(first, second)


def _plain_type(arrow: Any) -> pa.DataType:
    plain: pa.DataType = arrow.value_type if pa.types.is_dictionary(arrow) else arrow
    return plain

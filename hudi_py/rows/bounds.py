"""
Bounds of a column's values from the statistics in Parquet footers and in the metadata table. Pure.

Both describe the values as they were written. Bounds are not used if their type differs from the column's type today,
or if they may be in another order than the values: bounds of bytes and of NaN, and in the metadata table bounds of
floats (wrong if a value is NaN) and of strings with characters that UTF-16 and UTF-8 order differently.

Source: `hudi_py.mdt.statistics`; Apache Parquet ``parquet.thrift`` (Statistics, ColumnOrder).
"""

from __future__ import annotations

import math
from collections.abc import Collection
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from hudi_py.rows.operand import micros_of
from hudi_py.rows.predicate import UNKNOWN, Bounds

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from hudi_py.model.column_statistics import ColumnStatistics
    from hudi_py.rows.condition import Path

_FIRST_SURROGATE: Final = "\ud800"
_STORED_SCALE_MAX: Final = 15
"""Largest number of digits after the point of decimals in the metadata table before Hudi 1.1."""


class PathBounds:
    """
    The bounds of a column, or of a field of structs, in single files, from the metadata table.

    One value serves all files, so what depends on the column alone is computed once.

    Args:
        path: The column. For a field of a struct, the number of nulls is not trusted: rows with a null struct may be
            missing in it.
        arrow: Its type today.
    """

    def __init__(self, path: Path, arrow: pa.DataType) -> None:
        self._is_field = len(path) > 1
        self._arrow = arrow
        self._kinds = _kinds_of(arrow)
        self._wanted = next((wanted for is_type, wanted in _PLAIN if is_type(arrow)), None)

    def of(self, statistics: ColumnStatistics | None) -> Bounds:
        """
        Bounds in one file.

        Args:
            statistics: From `column_stats`; None if it has no record of the column in this file.
        """
        if statistics is None:
            return UNKNOWN
        has_nulls = self._is_field or statistics.null_count != 0
        low, high = statistics.minimum, statistics.maximum
        if statistics.kind not in self._kinds or low is None or high is None:
            return Bounds(has_nulls=has_nulls)  # without bounds the counts may be those of a file without statistics
        if self._wanted is str and any(each >= _FIRST_SURROGATE for each in low + high):
            return Bounds(has_nulls=has_nulls)
        # The common types take this short way: it is passed once for each file and column of a condition.
        if type(low) is type(high) is self._wanted:
            return (
                Bounds(minimum=low, maximum=high, has_nulls=has_nulls) if low <= high else Bounds(has_nulls=has_nulls)
            )
        return _checked(low, high, self._arrow, has_nulls=has_nulls)


def _kinds_of(arrow: Any) -> Collection[str]:
    """Kinds of statistics that can be compared with values of a column of this type."""
    if pa.types.is_decimal(arrow):
        return ("decimal",) if arrow.scale <= _STORED_SCALE_MAX else ()
    if pa.types.is_timestamp(arrow):
        return ("local-timestamp-micros" if arrow.tz is None else "timestamp-micros",)
    kinds = {
        pa.int32(): ("int",),
        pa.int64(): ("int", "long"),
        pa.string(): ("string",),
        pa.bool_(): ("boolean",),
        pa.date32(): ("date",),
    }
    return kinds.get(arrow, ())


def bounds_of_chunk(chunk: pq.ColumnChunkMetaData, stored: pa.DataType, arrow: pa.DataType) -> Bounds:
    """
    Bounds of a column in one row group, from the file's footer.

    Args:
        chunk: Chunk of the column.
        stored: Its type in the file.
        arrow: Its type today.
    """
    statistics: Any = chunk.statistics  # the stubs do not know all of it
    if statistics is None:
        return UNKNOWN
    nulls = statistics.null_count if statistics.has_null_count else None
    if nulls is not None and nulls >= chunk.num_values:  # those of a column that is not nested count nulls too
        return Bounds(has_only_nulls=True)
    has_nulls = nulls != 0
    # The number of nulls is certain even where the bounds are of no use.
    if not statistics.has_min_max or not _is_comparable(stored, arrow):
        return Bounds(has_nulls=has_nulls)
    try:
        low, high = statistics.min, statistics.max
    # Dates outside of the years 1 to 9999, text that is not a number or date.
    except (ValueError, OverflowError, pa.ArrowException):
        return Bounds(has_nulls=has_nulls)
    if low == high == "":  # to some releases of pyarrow a maximum that was left out for its length is an empty text
        return Bounds(has_nulls=has_nulls)
    return _checked(low, high, arrow, has_nulls=has_nulls)


def _is_comparable(stored: pa.DataType, arrow: pa.DataType) -> bool:
    if pa.types.is_signed_integer(arrow):
        return pa.types.is_signed_integer(stored)
    if pa.types.is_decimal(arrow):
        return pa.types.is_decimal(stored)
    return stored == arrow


def _checked(low: Any, high: Any, arrow: pa.DataType, *, has_nulls: bool) -> Bounds:
    """Bounds in the form of `Bounds.minimum`; without bounds if they have another type or are in the wrong order."""
    bounds = [_plain(each, arrow) for each in (low, high)]
    if None in bounds or not bounds[0] <= bounds[1]:
        return Bounds(has_nulls=has_nulls)
    return Bounds(minimum=bounds[0], maximum=bounds[1], has_nulls=has_nulls)


def _plain(value: Any, arrow: pa.DataType) -> Any:
    if pa.types.is_timestamp(arrow) and isinstance(value, datetime):
        return micros_of(value)
    if pa.types.is_floating(arrow):
        return value if isinstance(value, float) and not math.isnan(value) else None
    for is_type, wanted in _PLAIN:
        if is_type(arrow):
            return value if type(value) is wanted else None
    return None


_PLAIN: Final[Any] = (
    (pa.types.is_boolean, bool),
    (pa.types.is_integer, int),
    (pa.types.is_timestamp, int),
    (pa.types.is_string, str),
    (pa.types.is_date, date),
    (pa.types.is_decimal, Decimal),
)

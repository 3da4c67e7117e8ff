"""
A base file in ORC, for readers of rows: a stripe is what a row group is of Parquet, and is in memory as a whole.

Statistics of stripes are not used; partitions, indexes and the metadata table decide which files are read.

Source: Hudi 1.1.1 ``HoodieAvroOrcWriter``, ``AvroOrcUtils``, ``SparkOrcReaderBase``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, BinaryIO, Final

import attrs
import pyarrow as pa

from hudi_py.errors import UnsupportedTable
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.formats.bounds import PARQUET_ROWS_ALWAYS, PARQUET_ROWS_PER_BYTE_MAX
from hudi_py.formats.conform import conform_array, conform_batch
from hudi_py.formats.orc_tail import OrcTail, Stripe, read_tail
from hudi_py.formats.stored_values import as_hudi_reads, conform_stored

_ROWS: Final = 32768
_NOTES: Final = {b"orc.avro.schema": b"parquet.avro.schema"}
"""What is noted in Parquet under another name."""
_SHOWN: Final = pa.timestamp("us", "UTC")
_UTC: Final = frozenset({"UTC", "GMT", "Etc/UTC", "Etc/GMT", "Z"})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FIRST_GREGORIAN_DAY: Final = -141_427  # 1582-10-15
_JULIAN_ERA: Final = 719_470  # days from 0000-03-01 of either calendar to 1970-01-01 of the Gregorian one
_GREGORIAN_ERA: Final = 719_468
_DAY_MS: Final = 86_400_000
# What nanoseconds hold, less a day: the smallest and largest time are in no certain time zone.
_TIMES_MS: Final = (-(1 << 63) // 1_000_000 + _DAY_MS, (1 << 63) // 1_000_000 - _DAY_MS)


@attrs.frozen
class OrcFooter:
    """The numbers of `pyarrow.parquet.FileMetaData` that readers ask for; a row group is a stripe."""

    stripes: tuple[Stripe, ...]
    metadata: dict[bytes, bytes] = attrs.field(repr=False)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return sum(each.num_rows for each in self.stripes)

    @property
    def num_row_groups(self) -> int:
        """Number of stripes."""
        return len(self.stripes)

    def row_group(self, number: int) -> Stripe:
        """One of the stripes."""
        return self.stripes[number]


class OrcFile:
    """
    The part of `pyarrow.parquet.ParquetFile` that readers of rows use.

    Args:
        stream: Seekable.
        where: Location of the file, for messages.
        few_distinct: Columns with few distinct values, to be returned as dictionaries.

    Raises:
        pyarrow.ArrowException, OSError: The file is damaged.
        UnsupportedTable: pyarrow was built without ORC.
    """

    def __init__(self, stream: BinaryIO, where: str, few_distinct: Collection[str] = ()) -> None:
        try:
            from pyarrow import orc
        except ImportError as error:  # some builds leave it out
            raise UnsupportedTable(
                f"{where}: this build of pyarrow does not read ORC ({error}); install pyarrow from PyPI"
            ) from error
        self._tail: OrcTail = read_tail(stream)
        size = stream.seek(0, os.SEEK_END)
        rows_max = max(PARQUET_ROWS_ALWAYS, size * PARQUET_ROWS_PER_BYTE_MAX)
        notes = {_NOTES.get(name, name): note for name, note in self._tail.metadata.items()}
        self.metadata = OrcFooter(self._tail.stripes, notes)
        if self.metadata.num_rows > rows_max:
            raise pa.ArrowInvalid(
                f"{self.metadata.num_rows} rows in {size} bytes: so small a file is read up to {rows_max} rows"
            )
        self._file = orc.ORCFile(stream)
        self._where = where
        self._few_distinct = frozenset(few_distinct)
        self.schema_arrow = pa.schema([field.with_type(_shown_type(field.type)) for field in self._file.schema])
        self.num_row_groups = self.metadata.num_row_groups

    def iter_batches(
        self,
        batch_size: int = _ROWS,
        row_groups: Sequence[int] | None = None,
        columns: Sequence[str] | None = None,
        *,
        use_threads: bool = True,  # as of Parquet; stripes are decoded by one thread
    ) -> Iterator[pa.RecordBatch]:
        """Rows in order, stripe by stripe."""
        for number in range(self.num_row_groups) if row_groups is None else row_groups:
            stripe = self._stripe(number, columns)
            for start in range(0, stripe.num_rows, batch_size):
                yield stripe.slice(start, batch_size)

    def read_row_group(self, number: int, columns: Sequence[str] | None = None) -> pa.Table:
        """A stripe as a table."""
        return pa.Table.from_batches([self._stripe(number, columns)])

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows as a table."""
        names = self.schema_arrow.names if columns is None else list(columns)
        schema = pa.schema([self.schema_arrow.field(name) for name in names])
        return pa.Table.from_batches((self._stripe(at, names) for at in range(self.num_row_groups)), schema)

    def _stripe(self, number: int, columns: Sequence[str] | None) -> pa.RecordBatch:
        names = self.schema_arrow.names if columns is None else list(columns)
        # A column more where none is asked for: its batch says how many rows there are.
        read = names or self.schema_arrow.names[:1]
        for name in names:
            self._check_times(name)
        rows: Any = self._file.read_stripe(number, columns=read)
        found = []
        for name in names:
            column = rows.column(name)
            shown = self.schema_arrow.field(name).type
            if self._tail.has_julian_days and column.type != (plain := _with_days(column.type)):
                column = conform_array(conform_array(column, plain, name), column.type, name, _gregorian)
            if column.type != shown:
                column = self._shown(column, shown, name, self._tail.stripes[number].zone)
            found.append(column.dictionary_encode() if name in self._few_distinct else column)
        return pa.RecordBatch.from_arrays(found, names=names) if names else rows.select([])

    def _check_times(self, name: str) -> None:
        """Refuse a column with times that pyarrow cannot show: some of its releases show others for them."""
        times = self._tail.times_ms.get(name, (0, 0))
        if times is not None and _TIMES_MS[0] <= times[0] <= times[1] <= _TIMES_MS[1]:
            return
        has = "times, and the file does not say which" if times is None else f"times {_between(times)}"
        raise UnsupportedTable(
            f"{self._where}: column {name!r} has {has}; in ORC, times {_between(_TIMES_MS)} are supported. Leave the "
            "column out (columns), or read the table with Apache Hudi"
        )

    def _shown(self, column: Array, shown: pa.DataType, name: str, zone: str) -> Array:
        """A column with times; without a zone, they are what clocks showed in the time zone of the writer."""

        def instants(array: Array, target: pa.DataType, path: str) -> Array:
            has_zone = array.type.tz is not None
            micros = compute.floor_temporal(array, unit="microsecond").cast(pa.timestamp("us", array.type.tz))
            try:
                if has_zone or zone in _UTC:
                    found: Array = micros.cast(target)
                    return found
                found = compute.assume_timezone(micros, zone).cast(target)
            except pa.ArrowInvalid as error:
                raise UnsupportedTable(
                    f"{self._where}: times of column {path!r} were stored in the time zone {zone!r} and cannot be told "
                    f"in UTC: {error}. Leave the column out (columns), or read the table with Apache Hudi in that time "
                    "zone"
                ) from error
            return found

        return conform_array(column, shown, name, instants)


def conform_read(file: Any, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """
    As `hudi_py.formats.stored_values.conform_stored`, for rows of an open base file.

    From ORC, Apache Hudi (0.15.0, 1.1.1) reads a float as the double of the same value, not of the same text.

    Raises:
        WriteError: A value does not fit its type.
    """
    if not isinstance(file.metadata, OrcFooter):
        return conform_stored(batch, schema)
    return conform_batch(batch, schema, _as_orc_reads)


def _as_orc_reads(array: Array, target: pa.DataType, path: str) -> Array:
    if pa.types.is_float32(array.type) and pa.types.is_float64(target):
        found: Array = array.cast(target)
        return found
    return as_hudi_reads(array, target, path)


def _shown_type(stored: pa.DataType) -> pa.DataType:
    """The type that Hudi shows for what pyarrow reads."""
    return _with_leaves(stored, lambda leaf: _SHOWN if pa.types.is_timestamp(leaf) else leaf)


def _with_days(stored: pa.DataType) -> pa.DataType:
    """The type with numbers of days in place of dates."""
    return _with_leaves(stored, lambda leaf: pa.int32() if pa.types.is_date32(leaf) else leaf)


def _with_leaves(stored: Any, change: Callable[[Any], pa.DataType]) -> pa.DataType:
    if isinstance(stored, pa.StructType):
        return pa.struct([field.with_type(_with_leaves(field.type, change)) for field in stored])
    if isinstance(stored, pa.MapType):
        item: Any = stored.item_field.with_type(_with_leaves(stored.item_type, change))
        return pa.map_(_with_leaves(stored.key_type, change), item)
    if isinstance(stored, pa.ListType):
        return pa.list_(stored.value_field.with_type(_with_leaves(stored.value_type, change)))
    return change(stored)


def _gregorian(array: Array, target: pa.DataType, _path: str) -> Array:
    """
    Days as the dates that Hudi shows: what it writes it takes for days of the Julian calendar before 1582-10-15.

    Source: Spark ``OrcShimUtils.getGregorianDays``, ``RebaseDateTime.rebaseJulianToGregorianDays``.
    """
    if array.type != pa.int32() or target != pa.date32():
        return array.cast(target)
    lowest = compute.min(array).as_py()
    if lowest is None or lowest >= _FIRST_GREGORIAN_DAY:
        return array.cast(target)
    encoded: Any = array.dictionary_encode()
    days = pa.array(
        [each if each >= _FIRST_GREGORIAN_DAY else _of_julian(each) for each in encoded.dictionary.to_pylist()],
        pa.int32(),
    )
    found: Array = days.take(encoded.indices).cast(target)
    return found


def _of_julian(day: int) -> int:
    """The day of the Gregorian calendar, since 1970-01-01, that is called as this one in the Julian calendar."""
    # In years that begin with March, and as days since the one that both calendars begin with.
    years, rest = divmod(4 * (day + _JULIAN_ERA) + 3, 1461)
    day_of_year = rest // 4
    return 365 * years + years // 4 - years // 100 + years // 400 + day_of_year - _GREGORIAN_ERA


def _between(times_ms: tuple[int, int]) -> str:
    """A range of times for people; in milliseconds where no calendar has one of them."""
    try:
        first, last = (f"{_EPOCH + timedelta(milliseconds=each):%Y-%m-%d}" for each in times_ms)
    except OverflowError:
        return f"from {times_ms[0]} to {times_ms[1]} milliseconds after 1970"
    return f"from {first} to {last}"

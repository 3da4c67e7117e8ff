"""
The base file of a slice under log files: which rows its log records meet, and the rows that are shown.

If no row of a row group can meet the conditions, only its keys are read: they are needed to find out which log records
win over stored rows, but none of the stored rows is returned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from hudi_py.errors import CorruptMetadata, WriteError
from hudi_py.formats.arrow_types import PARQUET_DAMAGE, compute
from hudi_py.model.files import BaseFile, FileSlice, join_path
from hudi_py.rows.footer_bounds import bounds_of_groups
from hudi_py.rows.log_merge import MergedLogs
from hudi_py.rows.log_reading import LogReading
from hudi_py.rows.log_records import KEY_COLUMN
from hudi_py.rows.meeting import UNTOUCHED, Group, Numbers, Pending, as_array, updated_rows, whole
from hudi_py.rows.orc_file import conform_read
from hudi_py.rows.ordering import ordering_values
from hudi_py.rows.pruning import may_match
from hudi_py.rows.read import one_line, open_parquet

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from hudi_py.rows.predicate import RowFilter
    from hudi_py.storage.base import Storage

_BATCH_ROWS: Final = 32768


class BaseUnderLogs:
    """
    An open base file; see `opened_base`.

    Args:
        file: The open file.
        source: Its path, for messages.
        schema: Columns to return.
        reading: How log files are read.
        filters: Conditions that the rows shown have to meet.
    """

    def __init__(
        self, file: pq.ParquetFile, source: str, schema: pa.Schema, reading: LogReading, filters: Sequence[RowFilter]
    ) -> None:
        self._file = file
        self._source = source
        self._schema = schema
        self._reading = reading
        self._filters = filters
        self._stored = file.schema_arrow.names
        if reading.keys is None and KEY_COLUMN not in self._stored:
            raise CorruptMetadata(f"{source} has no column {KEY_COLUMN} to merge the log files by")
        with self._damage_told():
            self._bounds = bounds_of_groups(file)

    def row_groups(self) -> Iterator[int]:
        """Yield the numbers of the row groups that count."""
        ignored = () if self._reading.groups is None else (self._reading.groups,)
        for number in range(self._file.metadata.num_row_groups):
            with self._damage_told():
                counts = may_match(ignored, partial(self._bounds, number))
            if counts:
                yield number

    def num_rows(self, number: int) -> int:
        """Return the number of rows of a row group."""
        return int(self._file.metadata.row_group(number).num_rows)

    def met(self, number: int, pending: Pending) -> Group:
        """Return what log records do to the rows of a row group."""
        with self._damage_told():
            # The stored key column of rows that hold no keys says nothing: it is empty.
            may_meet = self._reading.keys is not None or any(
                map(pending.may_meet, self._bounds(number, (KEY_COLUMN,), pa.string()))
            )
            return pending.meet(self._keys(number), partial(self._ordering, number)) if may_meet else UNTOUCHED

    def shown(self, number: int, group: Group, logs: MergedLogs) -> Iterator[pa.RecordBatch]:
        """
        Yield the rows of a row group that stay as they are, or that log records change in their place.

        Args:
            number: Of the row group.
            group: What log records do to it.
            logs: These records.
        """
        with self._damage_told():
            is_ruled_out = not may_match(self._filters, partial(self._bounds, number))
        if is_ruled_out and not len(group.updated):
            return
        present = [name for name in self._schema.names if name in self._stored]
        start = 0
        batches = self._file.iter_batches(batch_size=_BATCH_ROWS, columns=present, row_groups=[number])
        while True:
            with self._damage_told():
                batch = next(batches, None)
                rows = None if batch is None else conform_read(self._file, batch, self._schema)
            if rows is None:
                return
            yield from self._kept(rows, start, group, logs)
            start += rows.num_rows

    def _kept(self, batch: pa.RecordBatch, start: int, group: Group, logs: MergedLogs) -> Iterator[pa.RecordBatch]:
        end = start + batch.num_rows
        if group.is_left is None:
            yield batch
            return
        is_left = group.is_left[start:end]
        yield batch if is_left.all() else batch.filter(pa.array(is_left))
        here = np.flatnonzero((group.updated >= start) & (group.updated < end))
        if len(here):
            rows = batch.take(as_array(group.updated[here] - start))
            yield updated_rows(logs, self._reading.rules, rows, group.by[here], group.is_newer[here])

    def _ordering(self, number: int, rows: Numbers) -> list[Any]:
        reading = self._reading
        names = [field.name for field in reading.columns if field.name in self._stored]
        if not names:  # added later than this file; from a table without columns pyarrow can take no rows
            return [pa.nulls(len(rows), field.type) for field in reading.ordering]
        found = self._file.read_row_group(number, columns=names).take(as_array(rows))
        batch = found.combine_chunks().to_batches()[0]
        rows_of_table = conform_read(self._file, batch, pa.schema(reading.columns))
        return [ordering_values(rows_of_table, field) for field in reading.ordering]

    def _keys(self, number: int) -> Any:
        """Record keys of one row group, null for a row that is to be ignored."""
        file, reading = self._file, self._reading
        if reading.keys is None:
            keys = whole(file.read_row_group(number, columns=[KEY_COLUMN]).column(0)).cast(pa.string())
        else:
            fields = [field for field in reading.columns if field.name in reading.keys.record_key_fields]
            table = file.read_row_group(number, columns=[field.name for field in fields])
            batch = pa.RecordBatch.from_arrays([whole(each) for each in table.columns], schema=table.schema)
            keys = reading.keys.record_keys(conform_read(file, batch, pa.schema(fields)))
        only = reading.only
        if only is None:
            return keys
        column = whole(file.read_row_group(number, columns=[only.column]).column(0)).cast(only.arrow)
        return compute.if_else(only.mask(column), keys, pa.scalar(None, pa.string()))

    @contextmanager
    def _damage_told(self) -> Iterator[None]:
        try:
            yield
        except (*PARQUET_DAMAGE, WriteError) as error:
            raise CorruptMetadata(f"{self._source} cannot be read: {one_line(error)}") from error


@contextmanager
def base_under_logs(
    storage: Storage, file_slice: FileSlice, schema: pa.Schema, reading: LogReading, filters: Sequence[RowFilter]
) -> Iterator[BaseUnderLogs | None]:
    """
    Open the base file of a slice; None if it has none.

    Args:
        storage: The table's storage.
        file_slice, schema, reading, filters: As for `BaseUnderLogs`.

    Raises:
        CorruptMetadata: The file is damaged.
    """
    base: BaseFile | None = file_slice.base_file
    if base is None:
        yield None
        return
    path = join_path(file_slice.partition_path, base.name)
    more = [field for field in reading.columns if field.name not in schema.names]
    with open_parquet(storage, path, base, wanted=pa.schema([*schema, *more])) as file:
        yield BaseUnderLogs(file, f"{storage.root}/{path}", schema, reading, filters)

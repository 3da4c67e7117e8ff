"""
Merges a base file with log records that do not fit into memory together, part by part (`hudi_py.rows.log_parts`).

Held are the records of one part, and one byte for each row of the base file. First each part meets the keys of all row
groups, which are read once for each part. What it changes in the place of a row, and the rows that only it has, go to
temporary files; then the base file is read once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from hudi_py.rows.log_merge import MergedLogs
from hudi_py.rows.log_reading import LogReading
from hudi_py.rows.meeting import Group, Mask, MergeCount, Numbers, Pending, as_array
from hudi_py.rows.spill import Spill

if TYPE_CHECKING:
    from typing_extensions import Self

    from hudi_py.rows.base_under_logs import BaseUnderLogs

_FIXED: Final = 2  # columns before those of the rows: number of the row, whether the record is newer


class PartsMerger:
    """
    A context manager that frees its temporary files at its end.

    Args:
        schema: Columns that are asked for.
        reading: How log files are read, with the limit of memory.
        merges: Counts rows; complete when all parts were met.
    """

    def __init__(self, schema: pa.Schema, reading: LogReading, merges: MergeCount) -> None:
        self._schema = schema
        self._reading = reading
        self._merges = merges
        self._is_left: dict[int, Mask] = {}
        in_place: list[pa.DataType] = [pa.int64(), pa.bool_(), *schema.types, *[pa.bool_()] * len(schema)]
        buffer_bytes = (reading.memory_bytes or 1) // 4
        # By number, because the rows may have columns of any name.
        named = pa.schema([(str(at), each) for at, each in enumerate(in_place)])
        self._changed = Spill(named, reading.spill_folder, buffer_bytes)
        self._rest = Spill(schema, reading.spill_folder, buffer_bytes)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._changed)
        self._stack.enter_context(self._rest)
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.close()

    def meet(self, logs: MergedLogs, base: BaseUnderLogs | None) -> None:
        """
        Let the records of the next part meet the base file.

        Raises:
            SpillError: The disk is full, or fails.
        """
        pending = Pending(logs, self._reading, self._merges)
        if base is not None:
            for number in base.row_groups():
                self._meet_group(number, logs, base.met(number, pending))
        for batch in pending.rest(self._schema):
            self._rest.add(batch, np.zeros(batch.num_rows, np.int64))

    def _meet_group(self, number: int, logs: MergedLogs, group: Group) -> None:
        if group.is_left is not None:
            known = self._is_left.get(number)
            self._is_left[number] = group.is_left if known is None else known & group.is_left
        if len(group.updated):
            self._changed.add(self._in_place(logs, group), np.full(len(group.updated), number))

    def _in_place(self, logs: MergedLogs, group: Group) -> pa.RecordBatch:
        """The records that are shown in the place of rows, as they are stored until then."""
        picked = as_array(group.by)
        rows: list[Any] = [logs.rows.column(name).take(picked).combine_chunks() for name in self._schema.names]
        # Where every record is whole, all its columns count.
        held = [
            np.ones(len(group.by), np.bool_) if logs.held is None else logs.held[name][group.by]
            for name in self._schema.names
        ]
        columns = [as_array(group.updated), pa.array(group.is_newer), *rows, *map(pa.array, held)]
        return pa.RecordBatch.from_arrays(columns, schema=self._changed.schema)

    def effect(self, number: int) -> tuple[Group, MergedLogs]:
        """Return what all parts do to a row group, and the records that its `Group` names."""
        is_left = self._is_left.get(number)
        batches = list(self._changed.read(number))
        found = pa.Table.from_batches(batches, self._changed.schema).combine_chunks()
        count, width = found.num_rows, len(self._schema)
        held = [_numpy(column) for column in found.columns[_FIXED + width :]]
        rows = pa.Table.from_arrays(found.columns[_FIXED : _FIXED + width], schema=self._schema)
        logs = MergedLogs(
            keys=pa.array([], pa.string()),
            kinds=np.zeros(0, np.uint8),
            ordering=(),
            rows=rows,
            held=dict(zip(self._schema.names, held, strict=True)),
        )
        numbers: Numbers = _numpy(found.column(0))
        return Group(is_left, numbers, np.arange(count), _numpy(found.column(1))), logs

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the log files that are shown in the place of none."""
        return self._rest.read(0)


def _numpy(column: Any) -> Any:
    # Not to_pandas_dtype: before PyArrow 26 that needs pandas, which need not be installed.
    return column.to_numpy() if column.num_chunks else pa.nulls(0, column.type).to_numpy(zero_copy_only=False)

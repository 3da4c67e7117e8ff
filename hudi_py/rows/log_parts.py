"""
Log records of a file slice beyond memory: in a temporary file, in parts by key, each of which fits.

All records of a key are in one part, in their order of arrival, so that each part is merged for itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np
import pyarrow as pa

from hudi_py.formats.java_hash import java_hashes
from hudi_py.rows.log_records import LogRecords, RecordShape
from hudi_py.rows.spill import Spill

if TYPE_CHECKING:
    from typing_extensions import Self

_PARTS: Final = 64
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)  # Java's hashes of like keys are like numbers
_FIXED: Final = 3  # columns before those of the ordering fields and of the rows: block, key, kind


@attrs.frozen(kw_only=True)
class _Block:
    """What all records of a log block have in common."""

    has_rows: bool
    columns: frozenset[str] | None
    positions_in: str | None


class LogParts:
    """
    Records in parts by key; a context manager that frees the temporary file at its end.

    Args:
        shape: The shape that records are read with.
        memory_bytes: Records that are held at a time, in bytes of Arrow.
        folder: As for `Spill`.
    """

    def __init__(self, shape: RecordShape, memory_bytes: int, folder: str | None = None) -> None:
        self._shape = shape
        self._memory_bytes = memory_bytes
        self._blocks: list[_Block] = []
        types = [pa.int64(), pa.string(), pa.uint8(), *(field.type for field in shape.ordering), *shape.schema.types]
        # By number, because the rows may have columns of any name.
        self._spill = Spill(pa.schema([(str(at), each) for at, each in enumerate(types)]), folder, memory_bytes // 2)

    def __enter__(self) -> Self:
        self._spill.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        self._spill.__exit__(*failure)

    def add(self, records: LogRecords) -> None:
        """
        Add the records of the next block.

        Raises:
            SpillError: The disk is full, or fails.
        """
        count = len(records.keys)
        schema = self._spill.schema
        types: Sequence[Any] = self._shape.schema.types
        rows: list[Any] = (
            [pa.nulls(count, each) for each in types] if records.rows is None else list(records.rows.columns)
        )
        block = np.full(count, len(self._blocks))
        columns = [pa.array(block), records.keys, pa.array(records.kinds), *records.ordering, *rows]
        arrays = [each.cast(to) for each, to in zip(columns, schema.types, strict=True)]
        self._blocks.append(
            _Block(has_rows=records.rows is not None, columns=records.columns, positions_in=records.positions_in)
        )
        hashes = java_hashes(records.keys).astype(np.uint64)
        parts = (hashes * _MIX >> np.uint64(33)) % np.uint64(_PARTS)
        self._spill.add(pa.RecordBatch.from_arrays(arrays, schema=schema), parts.astype(np.int64))

    def read(self) -> Iterator[list[LogRecords]]:
        """Yield the records of as many parts as fit into memory, in order of arrival; raises as `add`."""
        together: list[int] = []
        held = 0
        for number, size in sorted(self._spill.parts().items()):
            if together and held + size > self._memory_bytes:
                yield list(self._records(together))
                together, held = [], 0
            together.append(number)
            held += size
        if together:
            yield list(self._records(together))

    def _records(self, numbers: Sequence[int]) -> Iterator[LogRecords]:
        for number in numbers:
            for batch in self._spill.read(number):
                blocks = batch.column(0).to_numpy()
                edges = (np.flatnonzero(np.diff(blocks)) + 1).tolist()
                for start, end in zip([0, *edges], [*edges, len(blocks)], strict=True):
                    yield self._of_block(self._blocks[int(blocks[start])], batch.slice(start, end - start))

    def _of_block(self, block: _Block, batch: pa.RecordBatch) -> LogRecords:
        behind = _FIXED + len(self._shape.ordering)
        rows = pa.RecordBatch.from_arrays(batch.columns[behind:], schema=self._shape.schema) if block.has_rows else None
        return LogRecords(
            keys=batch.column(1),
            kinds=batch.column(2).to_numpy(),
            ordering=tuple(batch.columns[_FIXED:behind]),
            rows=rows,
            columns=block.columns,
            positions_in=block.positions_in,
        )


def held_or_in_parts(
    records: Iterator[LogRecords], shape: RecordShape, memory_bytes: int | None, folder: str | None, stack: ExitStack
) -> list[LogRecords] | LogParts:
    """
    Read all records of a slice.

    Args:
        records: In order of arrival.
        shape: The shape that they are read with.
        memory_bytes, folder: As for `LogParts`; without a limit all are held.
        stack: Frees the temporary file.

    Returns:
        The records; or, if there are more than fit into memory, parts of them.

    Raises:
        SpillError: The disk for temporary files is full, or fails.
    """
    held: list[LogRecords] = []
    size = 0
    for each in records:
        held.append(each)
        size += _bytes_of(each)
        if memory_bytes is not None and size > memory_bytes:
            break
    else:
        return held
    parts = stack.enter_context(LogParts(shape, memory_bytes, folder))
    held.reverse()
    while held:
        parts.add(held.pop())  # freed as soon as it is written
    for each in records:
        parts.add(each)
    return parts


def _bytes_of(records: LogRecords) -> int:
    """The bytes of Arrow of a block's records."""
    rows = 0 if records.rows is None else records.rows.nbytes
    return int(rows + records.keys.nbytes + sum(each.nbytes for each in records.ordering))

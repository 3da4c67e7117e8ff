"""Gathers the rows of a write: in memory if they fit, else as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hudi_py.local.data import arrow_table, read_once, row_stream
from hudi_py.local.memory import Memory
from hudi_py.local.rows import ArrowRows
from hudi_py.local.stream import RowStream
from hudi_py.local.streamed import StreamedRows
from hudi_py.rows.spill import Spill
from hudi_py.writing.incoming import IncomingRows

_BATCH_ROWS: Final = 65_536


@contextmanager
def gathered(
    data: Any, stored: Callable[[], pa.Schema | None], memory: Memory, *, is_repeated: bool
) -> Iterator[IncomingRows]:
    """
    Yield rows that are to be written; what does not fit into memory is read during the write, batch by batch.

    Args:
        data, stored: See `hudi_py.local.data.arrow_table`.
        memory: Limits.
        is_repeated: Whether the write may be begun again, so that the rows are read more than once.

    Raises:
        ConfigError, WriteError: As `hudi_py.local.data.arrow_table`; of what is read later, as the write.
    """
    stream = row_stream(data)
    if stream is None:
        table = arrow_table(data, stored)
        # Rows that are in memory already stay there as long as they may.
        if table.nbytes <= memory.rows_bytes:
            yield ArrowRows(table)
        else:
            yield StreamedRows(RowStream(table.schema, lambda: iter(table.to_batches(_BATCH_ROWS))), memory)
        return
    head, rest = _begun(stream, memory.rows_bytes)
    if rest is None:
        yield ArrowRows(pa.Table.from_batches(head, schema=stream.schema))
        return
    given = read_once(stream.schema, _emptying(head, rest))
    # Rows that are read once go straight to the write, without a temporary file.
    if not is_repeated:
        yield StreamedRows(given, memory)
        return
    with Spill(stream.schema, memory.folder, memory.rows_bytes) as spill:
        for batch in given.read():
            spill.add(batch, np.zeros(batch.num_rows, dtype=np.int64))
        yield StreamedRows(RowStream(stream.schema, lambda: spill.read(0)), memory)


def _begun(stream: RowStream, size_max: int) -> tuple[list[pa.RecordBatch], Iterator[pa.RecordBatch] | None]:
    """Return the first batches, and the others if they are larger than *size_max* together."""
    batches = stream.read()
    head: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        head.append(batch)
        size += batch.nbytes
        if size > size_max:
            return head, batches
    return head, None


def _emptying(head: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield all batches, and free each of the first ones when the next one is asked for."""
    head.reverse()
    while head:
        yield head.pop()
    yield from rest

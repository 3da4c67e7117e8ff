"""Rows of a bulk insert as its settings want them: one for each key, sorted; in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pyarrow as pa

from hudi_py.formats.stored_values import conform_given
from hudi_py.local.memory import Memory
from hudi_py.local.parts import parts_of_keys
from hudi_py.rows.precedence import combine_before_write, delete_mask, refuse_null_ordering
from hudi_py.rows.row_order import RowOrder, in_order
from hudi_py.rows.spill import Spill
from hudi_py.writing.job import WriteJob

_KEY = "_hudi_py_key"

Read = Callable[[], Iterator[pa.RecordBatch]]


def arranged(job: WriteJob, read: Read, schema: pa.Schema, memory: Memory) -> Iterator[pa.RecordBatch]:
    """
    Yield the rows of a bulk insert.

    Args:
        job: The write.
        read: Reads the rows from their beginning; called twice at most. Beyond memory they are of one partition.
        schema: Their columns.
        memory: Rows beyond this go through temporary files.

    Raises:
        WriteError: A row has no ordering value, although one row of each key is chosen; or the temporary file failed.
    """
    with ExitStack() as stack:
        source = read
        if job.combine:
            unique = stack.enter_context(Spill(schema, memory.folder, memory.rows_bytes))
            for batch in _one_of_each_key(job, read, schema, memory):
                unique.add(batch, np.zeros(batch.num_rows, dtype=np.int64))
            source = _first_part(unique)
        if not job.layout.sorts:
            yield from source()
            return
        # Not by partition: who writes the rows puts each partition into files of its own.
        sorted_by = (*job.layout.columns, *((_KEY,) if job.layout.by_key else ()))
        named = pa.schema([*schema, pa.field(_KEY, pa.string())])

        def read_named(wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
            for batch in source():
                yield batch.append_column(_KEY, job.keys.record_keys(batch)).select(wanted.names)

        for batch in in_order(read_named, named, RowOrder(columns=sorted_by), memory.rows_bytes, memory.folder):
            yield batch.drop_columns([_KEY])


def _first_part(spill: Spill) -> Read:
    return lambda: spill.read(0)


def _one_of_each_key(job: WriteJob, read: Read, schema: pa.Schema, memory: Memory) -> Iterator[pa.RecordBatch]:
    held: list[pa.RecordBatch] = []
    size = 0
    rows = read()
    for batch in rows:
        held.append(batch)
        size += batch.nbytes
        if size > memory.rows_bytes:
            break
    else:
        yield from _combined(job, held)
        return
    with Spill(schema, memory.folder, memory.rows_bytes // 2) as keyed:
        # The number of rows is not known yet, so there are as many parts as any write needs.
        for source in (held, rows):
            for batch in source:
                keyed.add(batch, parts_of_keys(job, batch, _PARTS))
            held = []
        for number in sorted(keyed.parts()):
            yield from _combined(job, list(keyed.read(number)))


_PARTS = 64


def _combined(job: WriteJob, batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    batches = [batch for batch in batches if batch.num_rows]
    if not batches:
        return
    rows = pa.Table.from_batches(batches)
    # Ordering values are compared in the types of the table, as in other writes.
    conformed = pa.Table.from_batches([conform_given(batch, job.schema) for batch in batches])
    keys: Any = pa.chunked_array([job.keys.record_keys(batch) for batch in batches], pa.string())
    paths: Any = pa.chunked_array([job.keys.partition_paths(batch) for batch in batches], pa.string())
    refuse_null_ordering(conformed, job.rules.batch_fields, delete_mask(conformed))
    winners = combine_before_write(conformed, keys, job.rules.batch_fields, paths)
    yield from (rows if winners is None else rows.take(winners)).combine_chunks().to_batches()

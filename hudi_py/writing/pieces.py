"""Prepares rows for writing: computes keys and partitions, converts to the table's schema, splits by partition."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.formats.arrow_types import Array, compute
from hudi_py.formats.stored_values import conform_given
from hudi_py.rows.merge import RowChanges, combine_changes, key_deletes
from hudi_py.rows.precedence import delete_mask
from hudi_py.writing.job import WriteJob

DELETION: Final = "_hudi_py_deletion"
"""Optional boolean column of rows to write, without nulls: true for a row of which only the key counts, to delete."""


class Piece(NamedTuple):
    """
    Some rows of one partition, with their keys; all of them are deletions, or none by `DELETION`.

    With a global index the rows have the ids of their file groups, null for new keys, and each key is there once.
    """

    partition_path: str
    rows: pa.RecordBatch
    keys: Array
    are_deletions: bool = False
    file_ids: Array | None = None


def named_pieces(job: WriteJob, batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
    """
    Yield rows by partition, with their keys and converted to the table's schema; a delete only needs the keys.

    Raises:
        ConfigError, WriteError: A row has no valid key or partition, or does not fit the schema.
    """
    for batch, are_deletions in _by_mark(batches):
        if not batch.num_rows:
            continue
        keys, paths = job.keys.record_keys(batch), job.keys.partition_paths(batch)
        # Other values of a row to delete may be anything, even invalid: only its key is used.
        if are_deletions:
            rows = key_deletes(keys, job.schema).rows
        else:
            # Rows of a delete may have any columns, because none of them is written.
            rows = batch if job.operation == "DELETE" else conform_given(batch, job.schema)
        for path, chosen in by_value(paths):
            # All rows are of one partition, as in most writes: nothing is copied.
            if chosen is None:
                yield Piece(path, rows, keys, are_deletions)
            else:
                yield Piece(path, rows.take(chosen), keys.take(chosen), are_deletions)


def _by_mark(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, bool]]:
    """Yield rows to write and rows to delete separately, with whether they are to be deleted."""
    for batch in batches:
        position = batch.schema.get_field_index(DELETION)
        if position < 0:
            yield batch, False
        else:
            mark = batch.column(position)
            yield batch.filter(compute.invert(mark)), False
            yield batch.filter(mark), True


def runs(codes: npt.NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Yield start and stop of each run of equal values."""
    edges = [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist(), len(codes)]
    return itertools.pairwise(edges)


def changes_of(
    job: WriteJob, rows: pa.Table, keys: Any, *, combine: bool, marked: npt.NDArray[np.bool_] | None = None
) -> RowChanges:
    """
    Return the changes that rows make to their partition or file group.

    Args:
        job: The write.
        rows: Rows in the storage schema, as `named_pieces` yields them.
        keys: Their record keys.
        combine: Keep one row per key; otherwise the keys are known to differ, or duplicates are kept.
        marked: Shape (n,), True for deletions by `DELETION`; None where there are none.

    Raises:
        WriteError: A row has no ordering value, or a list contains a null.
    """
    if isinstance(keys, pa.ChunkedArray):
        keys = keys.combine_chunks()
    if job.operation == "DELETE":
        return key_deletes(keys.unique() if combine else keys, job.schema)
    deletes = delete_mask(rows)
    if marked is not None:
        deletes = pa.array(marked) if deletes is None else compute.or_(deletes, pa.array(marked))
    if not combine:
        return RowChanges(one_batch(rows), keys, deletes)
    return combine_changes(rows, keys, job.rules, deletes)


def one_batch(rows: pa.Table) -> pa.RecordBatch:
    """Return a table as a single batch, also if it has no rows."""
    columns: Any = [
        column.chunk(0) if column.num_chunks == 1 else column.combine_chunks() for column in rows.itercolumns()
    ]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def is_delete_of(changes: RowChanges) -> npt.NDArray[np.bool_]:
    """Return which of the changes are deletes."""
    if changes.deletes is None:
        return np.zeros(len(changes.keys), dtype=np.bool_)
    mask: npt.NDArray[np.bool_] = changes.deletes.to_numpy(zero_copy_only=False)
    return mask


def part_of(changes: RowChanges, positions: npt.NDArray[np.int64]) -> RowChanges:
    """Return the changes at these positions."""
    chosen: Any = pa.array(positions, pa.int64())
    deletes = changes.deletes
    return RowChanges(
        changes.rows.take(chosen), changes.keys.take(chosen), None if deletes is None else deletes.take(chosen)
    )


def by_value(paths: Array) -> Iterator[tuple[str, Array | None]]:
    """Yield each value with the positions of its rows, in order; None instead of positions for all rows."""
    encoded: Any = paths.dictionary_encode()
    values = encoded.dictionary.to_pylist()
    if len(values) == 1:
        yield values[0], None
        return
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")  # stable, because among rows of one key the later one may win
    for start, stop in runs(codes[order]):
        chosen: Array = pa.array(order[start:stop], pa.int64())
        yield values[codes[order[start]]], chosen

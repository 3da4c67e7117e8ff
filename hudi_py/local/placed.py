"""
Writes more rows than fit into memory where a global index finds their keys, without Spark.

1. The rows go to a temporary file, by the hash of their key: rows of any partition may meet the same stored row.
2. As many parts as fit into memory at a time are combined and looked up in all partitions, and the rows go to a second
   temporary file, by partition and file group. Their old rows in other partitions go with them, as deletions.
3. One file group after another is written, the partitions by several threads.

Memory: what `Memory` says; the changes of a file group for each thread. Each time some parts are placed, the keys of
the whole table are looked through.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hudi_py.local.memory import Memory
from hudi_py.local.parts import parts_of_keys
from hudi_py.local.spilled import Inserts, run_side_by_side
from hudi_py.rows.spill import Spill
from hudi_py.rows.written import WrittenFile
from hudi_py.writing.anywhere import WrittenTable, placed_pieces
from hudi_py.writing.assign import Bucket
from hudi_py.writing.assigned import assigned, with_filled
from hudi_py.writing.groups import Run, write_runs
from hudi_py.writing.job import GlobalIndex, TaskIdentity, WriteJob
from hudi_py.writing.pieces import Piece
from hudi_py.writing.tag import FILE_ID

_PARTS: Final = 64
_COPIES: Final = 2
"""Placing takes the rows and their keys as Python texts."""
_KEY: Final = "_hudi_py_key"

_Group = tuple[str, str | None, bool]
"""Partition path, file id (None for new keys), and whether its rows only delete their keys."""


def write_placed(
    job: WriteJob, index: GlobalIndex, batches: Iterable[pa.RecordBatch], schema: pa.Schema, memory: Memory
) -> list[WrittenFile]:
    """
    Write rows of any size.

    Args:
        job: The write; it looks up keys.
        index: Its global index.
        batches: All its rows, consumed once.
        schema: Their columns.
        memory: Limits.

    Raises:
        As `hudi_py.local.spilled.write_spilled` and `hudi_py.writing.anywhere.placed_pieces`.
    """
    table = WrittenTable(job)
    stored = schema if job.operation == "DELETE" else job.schema
    numbers: dict[_Group, int] = {}
    with Spill(_with_place(stored), memory.folder, memory.rows_bytes // 2) as placed:
        with Spill(schema, memory.folder, memory.rows_bytes) as keyed:
            for batch in batches:
                keyed.add(batch, parts_of_keys(job, batch, _PARTS))
            for parts in _together(keyed, memory.rows_bytes // _COPIES):
                rows = itertools.chain.from_iterable(map(keyed.read, parts))
                for piece in placed_pieces(job, index, rows, table):
                    _add(piece, placed, numbers)
        # Before the first file is written, as in small writes.
        for path, file_id, _ in numbers:
            table.partition(path).refuse_clustering([] if file_id is None else [file_id])
        return _written(job, placed, numbers)


def _with_place(schema: pa.Schema) -> pa.Schema:
    return pa.schema([*schema, pa.field(_KEY, pa.string()), pa.field(FILE_ID, pa.string())])


def _together(keyed: Spill, size_max: int) -> Iterator[list[int]]:
    """Yield numbers of parts that fit into memory together; at least one at a time."""
    chosen: list[int] = []
    size = 0
    for number, part_bytes in sorted(keyed.parts().items()):
        if chosen and size + part_bytes > size_max:
            yield chosen
            chosen, size = [], 0
        chosen.append(number)
        size += part_bytes
    if chosen:
        yield chosen


def _add(piece: Piece, placed: Spill, numbers: dict[_Group, int]) -> None:
    assert piece.file_ids is not None
    # New keys, which have no file id, are a group of their own.
    ids: Any = piece.file_ids.dictionary_encode(null_encoding="encode")
    places = [
        numbers.setdefault((piece.partition_path, file_id, piece.are_deletions), len(numbers))
        for file_id in ids.dictionary.to_pylist()
    ]
    columns: list[Any] = [*piece.rows.columns, piece.keys, piece.file_ids]
    rows = pa.RecordBatch.from_arrays(columns, schema=placed.schema)
    placed.add(rows, np.array(places, dtype=np.int64)[ids.indices.to_numpy(zero_copy_only=False)])


def _written(job: WriteJob, placed: Spill, numbers: dict[_Group, int]) -> list[WrittenFile]:
    counts: dict[tuple[str, str | None], int] = {}
    for (path, file_id, _), number in numbers.items():
        counts[path, file_id] = counts.get((path, file_id), 0) + placed.num_rows(number)
    if not counts:  # nothing but deletes of keys that the table does not have
        return []
    buckets, _ = assigned([(*group, count) for group, count in counts.items()], job)
    job = with_filled(job, buckets)
    by_path: dict[str, list[Bucket]] = {}
    for bucket in buckets:
        by_path.setdefault(bucket.partition_path, []).append(bucket)
    return run_side_by_side(
        partial(_write_partition, job, path, placed, numbers, mine) for path, mine in sorted(by_path.items())
    )


def _write_partition(
    job: WriteJob, path: str, placed: Spill, numbers: dict[_Group, int], buckets: list[Bucket], task: TaskIdentity
) -> list[WrittenFile]:
    # A record index answers for the files without a look at them, so keys that it does not know meet their rows there.
    are_new = job.anywhere is not None and not job.anywhere.in_record_index
    return write_runs(job, _runs(path, placed, numbers, buckets, are_new=are_new), task)


def _runs(
    path: str, placed: Spill, numbers: dict[_Group, int], buckets: list[Bucket], *, are_new: bool
) -> Iterator[Run]:
    """Yield the rows of a partition by file group: those that have the group, then the new ones that it takes."""
    new = numbers.get((path, None, False))
    inserts = Inserts(iter(()) if new is None else placed.read(new))
    for bucket in buckets:
        for are_deletions in (False, True):
            number = numbers.get((path, bucket.file_id, are_deletions))
            for batch in () if number is None else placed.read(number):
                yield _run(path, bucket.file_id, batch, are_deletions=are_deletions)
        for batch in inserts.take(bucket.num_inserts):
            yield _run(path, bucket.file_id, batch, are_new=are_new)


def _run(path: str, file_id: str, batch: pa.RecordBatch, *, are_deletions: bool = False, are_new: bool = False) -> Run:
    keys = batch.column(batch.schema.get_field_index(_KEY))
    return Run(path, file_id, batch.drop_columns([_KEY, FILE_ID]), keys, are_deletions, are_new)

"""
Bulk inserts: rows go to new file groups without a look-up of their keys, in bounded memory.

Runs on executors, so it uses neither Spark nor the timeline.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from hudi_py.config import keys
from hudi_py.config.bulk_insert import BulkInsertLayout
from hudi_py.errors import ConfigError
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.rows.new_files import NewFiles
from hudi_py.rows.precedence import delete_mask
from hudi_py.rows.row_order import RowOrder, check_order
from hudi_py.rows.written import WrittenFile
from hudi_py.writing.files import TaskFiles, task_files
from hudi_py.writing.job import TaskIdentity, WriteJob
from hudi_py.writing.pieces import Piece, named_pieces

_OPEN_MAX: Final = 64
"""Files that a task keeps open; each has a stream, a Bloom filter and an unfinished row group."""


def require_layout(layout: BulkInsertLayout, schema: pa.Schema, *, by_bucket: bool) -> None:
    """
    Raise unless the rows of a bulk insert can be laid out so.

    Args:
        layout: What the settings ask for.
        schema: Columns of the rows.
        by_bucket: Whether the table has a bucket index.

    Raises:
        ConfigError: They cannot.
    """
    if by_bucket and (layout.gathers or layout.sorts):
        raise ConfigError(
            f"{keys.BULK_INSERT_SORT_MODE.name} and {keys.BULK_INSERT_PARTITIONER.name} have no effect on a table with "
            "a bucket index, whose rows are placed by their bucket; leave them out; nothing was written"
        )
    check_order(RowOrder(columns=layout.columns), schema)


def run_bulk_task(job: WriteJob, batches: Iterable[pa.RecordBatch], task: TaskIdentity) -> list[WrittenFile]:
    """
    Write rows into new file groups, with at most one row group in memory.

    Args:
        job: The write.
        batches: Rows in the user's schema; rows of a partition should be adjacent, because a change of the partition
            from one row to the next starts a new file.
        task: The task.

    Raises:
        As `hudi_py.writing.tasks.run_task`.
    """
    results: list[WrittenFile] = []
    with task_files(job, task) as files:
        for path, run in itertools.groupby(named_pieces(job, batches), key=lambda piece: piece.partition_path):
            kept = filter(None, map(_without_deletes, run))
            # Looked at before a file is opened: a run of deletes alone has no row to write.
            first = next(kept, None)
            if first is not None:
                results += files.create(path, itertools.chain([first], kept), prefix=job.new_uuid())
    return results


def run_mixed_bulk_task(job: WriteJob, batches: Iterable[pa.RecordBatch], task: TaskIdentity) -> list[WrittenFile]:
    """
    As `run_bulk_task` with rows of all partitions in any order, which rows of a partition keep.

    Rows are held up to the size of a row group; then those of the largest partition are written to its file, which
    stays open.
    """
    with task_files(job, task) as files:
        partitions = _Partitions(job, files)
        try:
            for piece in named_pieces(job, batches):
                kept = _without_deletes(piece)
                if kept is not None:
                    partitions.add(piece.partition_path, *kept)
            return partitions.finish()
        except BaseException:
            partitions.abandon()
            raise


class _Partitions:
    """The rows that wait and the files that are open, by partition."""

    def __init__(self, job: WriteJob, files: TaskFiles) -> None:
        self._job = job
        self._files = files
        self._held: dict[str, list[tuple[pa.RecordBatch, Array]]] = {}
        self._bytes: dict[str, int] = {}
        self._open: dict[str, NewFiles] = {}
        self._results: list[WrittenFile] = []

    def add(self, path: str, rows: pa.RecordBatch, keys: Array) -> None:
        self._held.setdefault(path, []).append((rows, keys))
        self._bytes[path] = self._bytes.get(path, 0) + rows.nbytes
        while sum(self._bytes.values()) >= self._job.options.row_group_bytes:
            # The largest one frees most memory for one row group.
            self._write(max(self._bytes, key=self._bytes.__getitem__)).flush()

    def finish(self) -> list[WrittenFile]:
        # One after another, so that files whose rows all waited are never open together.
        for path in sorted({*self._held, *self._open}):
            if path in self._held:
                self._write(path)
            self._close(path)
        return self._results

    def abandon(self) -> None:
        for files in self._open.values():
            files.abandon()

    def _write(self, path: str) -> NewFiles:
        if path not in self._open:
            if len(self._open) >= _OPEN_MAX:
                # The one that was opened first: in rows that are nearly sorted, it is the one that is done.
                self._close(next(iter(self._open)))
            self._open[path] = self._files.begin(path, prefix=self._job.new_uuid())
        del self._bytes[path]
        for rows, record_keys in self._held.pop(path):
            self._open[path].write(rows, record_keys)
        return self._open[path]

    def _close(self, path: str) -> None:
        self._results += self._open[path].finish()
        del self._open[path]


def _without_deletes(piece: Piece) -> tuple[pa.RecordBatch, Array] | None:
    """Return rows and keys without the rows that stand for deletions, as in all inserts; None if none is left."""
    deletes = delete_mask(piece.rows)
    if deletes is None:
        return piece.rows, piece.keys
    kept = compute.invert(deletes)
    rows = piece.rows.filter(kept)
    return (rows, piece.keys.filter(kept)) if rows.num_rows else None

"""
Writes more rows than fit into memory, without Spark.

1. The rows go to a temporary file, by partition.
2. Partitions that fit into memory are written as in a small write, several at a time.
3. Of a larger partition the rows are split by the hash of their key; the rows of each key are combined, the keys are
   looked up, and the rows go to a second temporary file, by file group. Then one file group after another is written.

Memory: what `Memory` says, divided among the threads; a file group that is merged with its changes.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from hudi_py.local.arranged import arranged
from hudi_py.local.memory import Memory
from hudi_py.local.parts import parts_of_keys
from hudi_py.rows.spill import Spill
from hudi_py.rows.written import WrittenFile
from hudi_py.writing.assign import Bucket
from hudi_py.writing.assigned import assigned, with_filled
from hudi_py.writing.bulk import run_bulk_task
from hudi_py.writing.groups import TARGET, Run, runs_of, write_runs
from hudi_py.writing.job import TaskIdentity, WriteJob
from hudi_py.writing.nested import refuse_nested_rows
from hudi_py.writing.tag import BUCKET, FILE_ID, PATH, tag_buckets, tag_inserts
from hudi_py.writing.tasks import run_task

_THREADS_MAX: Final = 8


def write_spilled(
    job: WriteJob, batches: Iterable[pa.RecordBatch], schema: pa.Schema, memory: Memory
) -> list[WrittenFile]:
    """
    Write rows of any size.

    Args:
        job: The write; not one that looks keys up in a global index, see `hudi_py.local.placed`.
        batches: All its rows, consumed once.
        schema: Their columns.
        memory: Limits.

    Raises:
        WriteError, ConfigError: Rows cannot be written, or the temporary file failed.
        ConflictError: A file group is in a pending clustering, or the write is over.
        StorageError: The storage failed.
    """
    each = per_thread(memory)
    with Spill(schema, memory.folder, each.rows_bytes) as spill:
        paths = _by_partition(job, batches, spill)
        refuse_nested_rows(job, paths)
        return run_side_by_side(_tasks(job, spill, paths, each))


Task = Callable[[TaskIdentity], list[WrittenFile]]


def per_thread(memory: Memory) -> Memory:
    """Return the share of each thread of `run_side_by_side`."""
    return attrs.evolve(memory, rows_bytes=max(memory.rows_bytes // _threads(), 1))


def run_side_by_side(tasks: Iterable[Task]) -> list[WrittenFile]:
    """
    Run tasks in threads, and return what they wrote.

    In the order of the tasks, so that the commit lists files in the same order whatever thread was faster.
    """
    with ThreadPoolExecutor(_threads()) as pool:  # waits for threads that run, even if one fails
        # The number keeps the names of files apart, as the number of the partition does on Spark.
        running = [pool.submit(task, TaskIdentity(number, 0, 0)) for number, task in enumerate(tasks)]
        try:
            return [result for task in running for result in task.result()]
        except BaseException:  # Ctrl-C, too
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _threads() -> int:
    return min(os.cpu_count() or 1, _THREADS_MAX)


def _by_partition(job: WriteJob, batches: Iterable[pa.RecordBatch], spill: Spill) -> list[str]:
    """Add all rows to *spill*; return the partition paths, whose positions are the numbers of the parts."""
    known: dict[str, int] = {}
    for batch in batches:
        if batch.num_rows:
            paths: Any = job.keys.partition_paths(batch).dictionary_encode()
            numbers = [known.setdefault(path, len(known)) for path in paths.dictionary.to_pylist()]
            spill.add(batch, np.array(numbers, dtype=np.int64)[paths.indices.to_numpy(zero_copy_only=False)])
    return list(known)


def _tasks(job: WriteJob, spill: Spill, paths: list[str], memory: Memory) -> Iterator[Task]:
    """Yield what is to be done: several small partitions at once, or one large partition."""
    # A bulk insert looks up no keys, so partitions of any size pass through.
    streams = job.operation == "BULK_INSERT" and job.buckets is None
    together: list[int] = []
    size = 0
    for number, part_bytes in spill.parts().items():
        if part_bytes > memory.rows_bytes and not streams:
            yield partial(_write_large, job, paths[number], spill, number, memory)
            continue
        if together and size + part_bytes > memory.rows_bytes:
            yield partial(_write_small, job, spill, tuple(together), memory)
            together, size = [], 0
        together.append(number)
        size += part_bytes
    if together:
        yield partial(_write_small, job, spill, tuple(together), memory)


def _write_small(
    job: WriteJob, spill: Spill, numbers: tuple[int, ...], memory: Memory, task: TaskIdentity
) -> list[WrittenFile]:
    if job.operation == "BULK_INSERT" and job.buckets is None:
        parts = (arranged(job, partial(spill.read, number), spill.schema, memory) for number in numbers)
        return run_bulk_task(job, itertools.chain.from_iterable(parts), task)
    return run_task(job, itertools.chain.from_iterable(map(spill.read, numbers)), task, is_alone=True)


def _write_large(
    job: WriteJob, path: str, spill: Spill, number: int, memory: Memory, task: TaskIdentity
) -> list[WrittenFile]:
    schema = pa.schema([*spill.schema, pa.field(PATH, pa.string()), pa.field(FILE_ID, pa.string())])
    with Spill(schema, memory.folder, memory.rows_bytes // 2) as tagged:
        # None stands for inserts: they have no file group until `assigned` has counted them.
        numbers: dict[str | None, int] = {None: 0}
        for batch in _tagged(job, spill, number, memory):
            ids: Any = batch.column(batch.schema.get_field_index(FILE_ID)).dictionary_encode(null_encoding="encode")
            places = [numbers.setdefault(file_id, len(numbers)) for file_id in ids.dictionary.to_pylist()]
            tagged.add(batch, np.array(places, dtype=np.int64)[ids.indices.to_numpy(zero_copy_only=False)])
        groups = [(path, file_id, tagged.num_rows(each)) for file_id, each in numbers.items() if tagged.num_rows(each)]
        if not groups:  # nothing but deletes of keys that the table does not have
            return []
        buckets, _ = assigned(groups, job)
        job = with_filled(job, buckets)
        return write_runs(job, _routed(job, tagged, numbers, buckets), task)


def _tagged(job: WriteJob, spill: Spill, number: int, memory: Memory) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a partition with their file groups, one of each key where the operation combines them."""
    if not job.combines and not job.searches:
        yield from tag_inserts(job, spill.read(number))
        return
    # Twice as many as would just fit: hashes never spread rows evenly, and combining needs a second copy.
    parts = -(-2 * spill.parts()[number] // memory.rows_bytes)
    with Spill(spill.schema, memory.folder, memory.rows_bytes // 2) as keyed:
        for batch in spill.read(number):
            keyed.add(batch, parts_of_keys(job, batch, parts))
        yield from tag_buckets(job, _numbered(keyed))


def _numbered(keyed: Spill) -> Iterator[pa.RecordBatch]:
    for number in sorted(keyed.parts()):
        for batch in keyed.read(number):
            yield batch.append_column(BUCKET, pa.array(np.full(batch.num_rows, number)))


def _routed(job: WriteJob, tagged: Spill, numbers: dict[str | None, int], buckets: tuple[Bucket, ...]) -> Iterator[Run]:
    """Yield the rows by file group: first those that have the group, then the inserts that it takes."""
    inserts = Inserts(tagged.read(numbers[None]))
    for bucket in buckets:
        if bucket.file_id in numbers:
            yield from runs_of(job, _sent(tagged.read(numbers[bucket.file_id]), bucket))
        # Their keys are in no file of the partition, or none was looked for.
        yield from runs_of(job, _sent(inserts.take(bucket.num_inserts), bucket), are_new=True)


def _sent(batches: Iterable[pa.RecordBatch], bucket: Bucket) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        targets: Any = pa.repeat(bucket.file_id, batch.num_rows)
        yield batch.drop_columns([FILE_ID]).append_column(TARGET, targets)


class Inserts:
    """
    Hands out rows one after another.

    Args:
        batches: The rows. Only the batch of which some rows are left is held.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._left: pa.RecordBatch | None = None

    def take(self, count: int) -> Iterator[pa.RecordBatch]:
        """Yield the next *count* rows."""
        while count:
            # Not put back in front of the others with `chain`, which would hold what was in front of each file's rows.
            batch = next(self._batches) if self._left is None else self._left
            self._left = batch.slice(count) if batch.num_rows > count else None
            batch = batch.slice(0, count)
            count -= batch.num_rows
            yield batch

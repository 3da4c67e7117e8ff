"""
Large writes, second pass: writes rows that have their file group assigned, one group after another.

Memory: the changes of one existing group, or one row group of a new file group. Rows that are known to be new are
streamed into an existing group, too: one that is small takes as many as make a whole file.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from hudi_py.formats.arrow_types import Array, compute
from hudi_py.formats.conform import refuse_null_elements
from hudi_py.formats.stored_values import conform_given
from hudi_py.rows.merge import RowChanges
from hudi_py.rows.written import WrittenFile
from hudi_py.writing.files import TaskFiles, task_files
from hudi_py.writing.job import TaskIdentity, WriteJob
from hudi_py.writing.partition import PartitionFiles, load_partition
from hudi_py.writing.pieces import changes_of, runs
from hudi_py.writing.tag import PATH, refuse_untargeted

TARGET: Final = "_hudi_py_target"


class Run(NamedTuple):
    """
    Rows of one file group, in the storage schema, with their keys.

    All of them only delete their keys, or none. `are_new` says that their keys were looked for and are not in the
    group, or that the write looks for none; otherwise they may be.
    """

    path: str
    file_id: str
    rows: pa.RecordBatch
    keys: Array
    are_deletions: bool = False
    are_new: bool = False


def write_groups(job: WriteJob, batches: Iterable[pa.RecordBatch], task: TaskIdentity) -> list[WrittenFile]:
    """
    Write the file groups of a task.

    Args:
        batches: Tagged rows with their `TARGET`, a file id; rows of the same partition and target are adjacent.
        task: The task.

    Raises:
        WriteError, ConfigError: Rows cannot be written.
        ConflictError: The write is over.
        StorageError: The storage failed.
    """
    return write_runs(job, runs_of(job, batches), task)


def write_runs(job: WriteJob, runs: Iterable[Run], task: TaskIdentity) -> list[WrittenFile]:
    """
    As `write_groups`, for rows whose keys are known.

    Args:
        runs: Those of the same partition and file group are adjacent, new rows behind the others.
    """
    results: list[WrittenFile] = []
    partition: PartitionFiles | None = None
    with task_files(job, task) as files:
        for (path, file_id), group in itertools.groupby(runs, key=lambda run: run[:2]):
            if partition is None or partition.path != path:
                partition = load_partition(job, path)
            results += _write(job, files, partition, file_id, group)
    return results


def runs_of(job: WriteJob, batches: Iterable[pa.RecordBatch], *, are_new: bool = False) -> Iterator[Run]:
    """Yield tagged rows as `write_groups` takes them, cut where partition or file group change, with their keys."""
    for batch in batches:
        if not batch.num_rows:
            continue
        targets: Any = batch.column(batch.schema.get_field_index(TARGET))
        refuse_untargeted(targets)
        paths: Any = batch.column(batch.schema.get_field_index(PATH)).dictionary_encode()
        targets = targets.dictionary_encode()
        codes = targets.indices.to_numpy(zero_copy_only=False).astype("int64") * len(paths.dictionary)
        codes += paths.indices.to_numpy(zero_copy_only=False)
        keys = job.keys.record_keys(batch)
        rows = batch if job.operation == "DELETE" else conform_given(batch, job.schema)
        for start, stop in runs(codes):
            path, target = paths[start].as_py(), targets[start].as_py()
            count = stop - start
            yield Run(path, target, rows.slice(start, count), keys.slice(start, count), are_new=are_new)


def _write(
    job: WriteJob, files: TaskFiles, partition: PartitionFiles, file_id: str, group: Iterator[Run]
) -> list[WrittenFile]:
    previous = partition.latest.get(file_id)
    if previous is None and file_id not in partition.logs:  # a new group: streamed, never in memory as a whole
        rows = ((run.rows, run.keys) for run in group)
        # The writer numbers the files of a new group itself, if rows do not fit into one.
        prefix = file_id.rpartition("-")[0]
        return files.create(partition.path, rows, prefix=prefix, has_metafile=partition.has_metafile)
    if previous is not None and (job.logs is None or (partition.path, file_id) in job.logs.filled):
        known, new = _known_and_new(group)
        return [files.merge(partition.path, previous, _changes(job, known), new)]
    return [files.append(partition.logs[file_id].file_slice, _changes(job, list(group)))]


def _known_and_new(group: Iterator[Run]) -> tuple[list[Run], Iterator[tuple[pa.RecordBatch, Array]]]:
    """Return the first runs, and rows and keys of the new rows behind them, which are read later."""
    parts = itertools.groupby(group, key=lambda run: run.are_new)
    are_new, runs_here = next(parts)
    known: list[Run] = []
    if not are_new:
        known = list(runs_here)
        _, runs_here = next(parts, (True, iter(())))
    return known, ((run.rows, run.keys) for run in runs_here)


def _changes(job: WriteJob, collected: Sequence[Run]) -> RowChanges:
    marked = None
    if any(run.are_deletions for run in collected):
        marked = np.repeat([run.are_deletions for run in collected], [run.rows.num_rows for run in collected])
    schema = collected[0].rows.schema if collected else job.schema
    changes = changes_of(
        job,
        pa.Table.from_batches([run.rows for run in collected], schema),
        pa.chunked_array([run.keys for run in collected], pa.string()),
        combine=False,
        marked=marked,
    )
    if job.operation != "DELETE":  # of a delete only the key is used, so its other values may be anything
        deletes = changes.deletes
        refuse_null_elements(changes.rows if deletes is None else changes.rows.filter(compute.invert(deletes)))
    return changes

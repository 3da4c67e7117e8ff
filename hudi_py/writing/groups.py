"""
Large writes, second pass: writes rows that have their file group assigned, one group after another.

Memory: the changes of one existing group, or one row group of a new file group.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from hudi_py.formats.arrow_types import Array, compute
from hudi_py.formats.conform import refuse_null_elements
from hudi_py.formats.stored_values import conform_given
from hudi_py.rows.written import WrittenFile
from hudi_py.writing.files import TaskFiles, task_files
from hudi_py.writing.job import TaskIdentity, WriteJob
from hudi_py.writing.partition import PartitionFiles, load_partition
from hudi_py.writing.pieces import changes_of, runs
from hudi_py.writing.tag import PATH, refuse_untargeted

TARGET: Final = "_hudi_py_target"


class Run(NamedTuple):
    """Rows of one file group, in the storage schema, with their keys; all of them only delete their keys, or none."""

    path: str
    file_id: str
    rows: pa.RecordBatch
    keys: Array
    are_deletions: bool = False


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
    return write_runs(job, _runs(job, batches), task)


def write_runs(job: WriteJob, runs: Iterable[Run], task: TaskIdentity) -> list[WrittenFile]:
    """As `write_groups`, for rows whose keys are known; *runs* of the same partition and file group are adjacent."""
    results: list[WrittenFile] = []
    partition: PartitionFiles | None = None
    with task_files(job, task) as files:
        for (path, file_id), group in itertools.groupby(runs, key=lambda run: run[:2]):
            if partition is None or partition.path != path:
                partition = load_partition(job, path)
            results += _write(job, files, partition, file_id, group)
    return results


def _runs(job: WriteJob, batches: Iterable[pa.RecordBatch]) -> Iterator[Run]:
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
            yield Run(path, target, rows.slice(start, stop - start), keys.slice(start, stop - start))


def _write(
    job: WriteJob, files: TaskFiles, partition: PartitionFiles, file_id: str, group: Iterator[Run]
) -> list[WrittenFile]:
    previous = partition.latest.get(file_id)
    if previous is None and file_id not in partition.logs:  # a new group: streamed, never in memory as a whole
        rows = ((run.rows, run.keys) for run in group)
        # The writer numbers the files of a new group itself, if rows do not fit into one.
        prefix = file_id.rpartition("-")[0]
        return files.create(partition.path, rows, prefix=prefix, has_metafile=partition.has_metafile)
    collected = list(group)
    marked = np.repeat([run.are_deletions for run in collected], [run.rows.num_rows for run in collected])
    changes = changes_of(
        job,
        pa.Table.from_batches([run.rows for run in collected]),
        pa.chunked_array([run.keys for run in collected]),
        combine=False,
        marked=marked if marked.any() else None,
    )
    if job.operation != "DELETE":  # of a delete only the key is used, so its other values may be anything
        deletes = changes.deletes
        refuse_null_elements(changes.rows if deletes is None else changes.rows.filter(compute.invert(deletes)))
    is_rewritten = job.logs is None or (partition.path, file_id) in job.logs.filled
    if previous is not None and is_rewritten:
        return [files.merge(partition.path, previous, changes)]
    return [files.append(partition.logs[file_id].file_slice, changes)]

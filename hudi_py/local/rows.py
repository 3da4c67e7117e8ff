"""Rows of an Arrow table, written by threads of this process."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_py.local.arranged import arranged
from hudi_py.local.memory import Memory
from hudi_py.rows.keys import GENERATED, KeyGenerator
from hudi_py.rows.stored_keys import StoredKeys
from hudi_py.rows.written import WrittenFile
from hudi_py.writing.bulk import run_mixed_bulk_task
from hudi_py.writing.generated_keys import with_generated_keys
from hudi_py.writing.job import TaskIdentity, WriteJob
from hudi_py.writing.nested import refuse_nested_rows
from hudi_py.writing.required import Required
from hudi_py.writing.shape import in_types, written_columns, written_types
from hudi_py.writing.share import share_out
from hudi_py.writing.tasks import run_task

_THREADS_MAX: Final = 8
_ROWS_PER_THREAD: Final = 50_000
"""For fewer rows a thread takes longer to begin than it saves."""
_ALL: Final = Memory(1 << 62)
"""The rows are in memory anyway."""


@attrs.frozen
class ArrowRows:
    """
    Rows of an Arrow table; implements `IncomingRows`.

    Args:
        table: All rows. Names of columns are case-sensitive.
        paths: Path of the partition of each row, where these and the rows were checked already; else None.
    """

    table: pa.Table
    paths: Any = None

    @property
    def schema(self) -> pa.Schema:
        """See `IncomingRows`."""
        return self.table.schema

    def shaped(self, table_schema: str | None, needed: Sequence[str], *, keys_only: bool) -> ArrowRows:
        """See `IncomingRows`."""
        names = written_columns(self.table.column_names, table_schema, needed, keys_only=keys_only, ignores_case=False)
        table = self.table.select(list(names))
        schema = written_types(table.schema, table_schema)
        if schema != table.schema:
            table = pa.Table.from_batches([in_types(batch, schema) for batch in table.to_batches()], schema)
        return ArrowRows(table)

    def checked(self, required: Required, keys: KeyGenerator) -> ArrowRows:
        """See `IncomingRows`."""
        required.check(self.table.to_batches())
        return attrs.evolve(self, paths=_partition_paths(keys, self.table))

    def write(self, job: WriteJob) -> list[WrittenFile]:
        """See `IncomingRows`. Partitions of a large table are written side by side, in threads."""
        if job.keys.generates and GENERATED not in self.table.column_names and not isinstance(job.keys, StoredKeys):
            schema = self.table.schema.append(pa.field(GENERATED, pa.string()))
            keyed = with_generated_keys(self.table.to_batches(), job.instant_time)
            return ArrowRows(pa.Table.from_batches(keyed, schema=schema), self.paths).write(job)
        paths = self.paths
        if paths is None:
            Required.of_job(job).check(self.table.to_batches())
            paths = _partition_paths(job.keys, self.table)
        refuse_nested_rows(job, set(paths.unique().to_pylist()))
        shares = self._shares(job, paths)
        if len(shares) == 1:
            return self._write(job, shares[0], 0)
        with ThreadPoolExecutor(len(shares)) as pool:  # waits for all threads, even if one fails
            running = [pool.submit(self._write, job, share, number) for number, share in enumerate(shares)]
        return [result for each in running for result in each.result()]

    def _write(self, job: WriteJob, rows: pa.Table, number: int) -> list[WrittenFile]:
        task = TaskIdentity(partition_id=number, stage_id=0, attempt_id=0)
        batches = rows.combine_chunks().to_batches()
        if job.operation != "BULK_INSERT" or job.buckets is not None:
            # Alone, because `_shares` gives all rows of a partition to one task: it may assign file groups by itself.
            return run_task(job, batches, task, is_alone=True)
        return run_mixed_bulk_task(job, arranged(job, lambda: iter(batches), rows.schema, _ALL), task)

    def _shares(self, job: WriteJob, paths: Any) -> list[pa.Table]:
        """Split the rows for threads, by whole partitions: no file group may be written twice."""
        threads = min(os.cpu_count() or 1, _THREADS_MAX, self.table.num_rows // _ROWS_PER_THREAD)
        # With a global index rows of any partition may meet the same stored row, so one task has to see them all.
        if threads < 2 or job.anywhere is not None:
            return [self.table]
        counts = paths.value_counts()
        workers = share_out(counts.field(1).to_pylist(), threads)
        numbers: Any = pc.index_in(paths, value_set=counts.field(0))
        worker_of = np.array(workers)[numbers.to_numpy()]
        # A share that got no rows would still be a task, with an empty result to merge.
        shares = [self.table.filter(pa.array(worker_of == worker)) for worker in sorted(set(workers))]
        return shares if len(shares) > 1 else [self.table]


def _partition_paths(keys: KeyGenerator, rows: pa.Table) -> Any:
    return pa.chunked_array([keys.partition_paths(batch) for batch in rows.to_batches()], pa.string())

"""Rows of an Arrow table, written by this process as one task."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from hudi_py.rows.written import WrittenFile
from hudi_py.writing.job import TaskIdentity, WriteJob
from hudi_py.writing.shape import written_columns
from hudi_py.writing.tasks import run_bulk_task, run_task


@attrs.frozen
class ArrowRows:
    """
    Rows of an Arrow table; implements `IncomingRows`.

    Args:
        table: All rows. Names of columns are case-sensitive.
        stage_id: Differs between rows of one commit that are written separately, so that names of files do.
    """

    table: pa.Table
    stage_id: int = 0

    @property
    def schema(self) -> pa.Schema:
        """See `IncomingRows`."""
        return self.table.schema

    def shaped(self, table_schema: str | None, needed: Sequence[str], *, keys_only: bool) -> ArrowRows:
        """See `IncomingRows`."""
        names = written_columns(self.table.column_names, table_schema, needed, keys_only=keys_only, ignores_case=False)
        return ArrowRows(self.table.select(list(names)))

    def write(self, job: WriteJob) -> list[WrittenFile]:
        """See `IncomingRows`."""
        task = TaskIdentity(partition_id=0, stage_id=self.stage_id, attempt_id=0)
        batches = self.table.combine_chunks().to_batches()
        if job.operation != "BULK_INSERT" or job.buckets is not None:
            return run_task(job, batches, task, is_alone=True)
        # Sort by partition: a bulk insert creates new files whenever the partition changes from one row to the next.
        together = [batch.take(pc.sort_indices(job.keys.partition_paths(batch))) for batch in batches]
        return run_bulk_task(job, together, task)

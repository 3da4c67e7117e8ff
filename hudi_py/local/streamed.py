"""Rows that do not fit into memory, written batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import pyarrow as pa

from hudi_py.local.memory import Memory
from hudi_py.local.placed import write_placed
from hudi_py.local.spilled import write_spilled
from hudi_py.local.stream import RowStream
from hudi_py.rows.keys import GENERATED, KeyGenerator
from hudi_py.rows.written import WrittenFile
from hudi_py.writing.bulk import run_bulk_task
from hudi_py.writing.generated_keys import with_generated_keys
from hudi_py.writing.job import TaskIdentity, WriteJob
from hudi_py.writing.required import Required
from hudi_py.writing.shape import in_types, written_columns, written_types


@attrs.frozen(eq=False)
class StreamedRows:
    """
    Rows of a stream; implements `IncomingRows`.

    Args:
        stream: The rows. Names of columns are case-sensitive.
        memory: Limits.
    """

    stream: RowStream
    memory: Memory

    @property
    def schema(self) -> pa.Schema:
        """See `IncomingRows`."""
        return self.stream.schema

    def shaped(self, table_schema: str | None, needed: Sequence[str], *, keys_only: bool) -> StreamedRows:
        """See `IncomingRows`."""
        stream = self.stream
        names = list(
            written_columns(stream.schema.names, table_schema, needed, keys_only=keys_only, ignores_case=False)
        )
        schema = written_types(pa.schema([stream.schema.field(name) for name in names]), table_schema)

        def read() -> Iterator[pa.RecordBatch]:
            return (in_types(batch.select(names), schema) for batch in stream.read())

        return StreamedRows(RowStream(schema, read), self.memory)

    def checked(self, required: Required, keys: KeyGenerator) -> StreamedRows:
        """See `IncomingRows`; they can be read once only, perhaps."""
        return self

    def write(self, job: WriteJob) -> list[WrittenFile]:
        """See `IncomingRows`. A bulk insert into a table without partitions needs no temporary file."""
        batches, schema = Required.of_job(job).passed(self.stream.read()), self.schema
        if job.keys.generates:
            batches = with_generated_keys(batches, job.instant_time)
            schema = schema.append(pa.field(GENERATED, pa.string()))
        if job.anywhere is not None and job.searches:
            return write_placed(job, job.anywhere, batches, schema, self.memory)
        # Rows are then written as they come, and nothing has to be kept apart.
        is_plain = not job.combine and not job.layout.sorts and not job.keys.partition_fields
        if job.operation == "BULK_INSERT" and job.buckets is None and is_plain:
            return run_bulk_task(job, batches, TaskIdentity(partition_id=0, stage_id=0, attempt_id=0))
        return write_spilled(job, batches, schema, self.memory)

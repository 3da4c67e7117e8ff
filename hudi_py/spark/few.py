"""
Few rows: the driver collects them and writes the files itself.

A Spark task in Python costs several times what it takes to write a hundred rows, most of it to start the task and to
carry the rows into and out of its Python process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudi_py.errors import WriteError
from hudi_py.formats.texts import refuse_broken_rows
from hudi_py.local.rows import ArrowRows
from hudi_py.rows.written import WrittenFile
from hudi_py.runtime.log import log
from hudi_py.spark.shape import arrow_schema
from hudi_py.writing.job import TaskIdentity, WriteJob
from hudi_py.writing.required import Required
from hudi_py.writing.tasks import run_task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def few_rows(frame: DataFrame, rows_max: int) -> pa.Table | None:
    """
    Collect rows of which Spark estimates that they are few; None if they are not, or cannot be collected.

    One Spark job of one task. At most one row more than *rows_max* leaves the executors, because estimates of queries
    can be far too small.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    # Of one Spark partition, because a limit of several is a job for the first one and more for the others.
    some: Any = frame.coalesce(1).limit(rows_max + 1)
    try:
        if hasattr(type(some), "toArrow"):  # Spark 4; asked of the class, because a column may have that name
            rows = some.toArrow()
        else:
            batches = some._collect_as_arrow()  # noqa: SLF001 - what `toPandas` is made of
            rows = pa.Table.from_batches(batches, schema=None if batches else arrow_schema(frame))
    except (PySparkException, Py4JError) as error:
        if "cancelled" in str(error):  # by the user, who wants nothing to go on
            raise
        # Larger than spark.driver.maxResultSize, perhaps; if the user's query is at fault, the tasks say so.
        log.info("write.few.refused", why=str(error).partition("\n")[0])
        return None
    return None if rows.num_rows > rows_max else rows


def write_few(rows: pa.Table, job: WriteJob) -> list[WrittenFile]:
    """
    Write rows in this process.

    Raises:
        HudiError: As `hudi_py.writing.tasks.run_task`.
        TooMuchForOneTask: They touch more of the table than one task should do, and nothing was written.
    """
    refuse_broken_rows(rows)
    if job.operation == "BULK_INSERT" and job.buckets is None:
        return ArrowRows(rows).write(job)
    Required.of_job(job).check(rows.to_batches())
    is_alone = job.anywhere is not None and job.searches
    try:
        return run_task(job, rows.combine_chunks().to_batches(), TaskIdentity(0, 0, 0), is_alone=is_alone)
    except pa.ArrowException as error:  # as an error of a task that is not ours
        raise WriteError(f"the rows cannot be written; nothing of the write is visible: {error}") from error

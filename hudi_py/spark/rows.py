"""
Moving rows to the tasks that write them.

One shuffle brings all rows of a partition to one task, and there they stand together; the tasks answer with one row per
base file. Equal partition paths must come to one task, so the shuffle uses an expression that is equal whenever the
paths are.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from hudi_py.errors import HudiError
from hudi_py.formats.arrow_types import Field
from hudi_py.spark.engine import described, raise_first
from hudi_py.spark.session import use_own_python
from hudi_py.write.base_file import FileWriteResult
from hudi_py.write.tasks import TaskIdentity, WriteJob, run_task

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_FIELDS: list[Field] = [pa.field("succeeded", pa.bool_()), pa.field("value", pa.binary())]
_RESULT: Final = pa.schema(_FIELDS)
_RESULT_DDL: Final = "succeeded boolean, value binary"


def write_rows(frame: DataFrame, job: WriteJob, parallelism: int) -> list[FileWriteResult]:
    """
    Write the rows of *frame* with one Spark job.

    Args:
        parallelism: Number of tasks after the shuffle.

    Raises:
        HudiError: The first one that a task met; other tasks may have written files, which markers name.
    """
    partitioning = _partitioning(job)
    if partitioning:
        frame = frame.repartition(parallelism, *partitioning).sortWithinPartitions(*partitioning)
    elif job.operation != "BULK_INSERT":
        frame = frame.coalesce(1)
    use_own_python(frame.sparkSession)
    with described(frame.sparkSession, f"{job.operation.lower()} {job.instant_time}"):
        answers = frame.mapInArrow(_Task(job), _RESULT_DDL).collect()
    return raise_first((row["succeeded"], pickle.loads(row["value"])) for row in answers)  # noqa: S301 - our own bytes


def _partitioning(job: WriteJob) -> list[Column]:
    """
    Expressions that are equal whenever two rows have the same partition path.

    Null and the empty string share a folder. Finer differences of text do not matter: values of different text never
    share one.
    """
    return [
        F.coalesce(F.nullif(F.col(_quoted(name)).cast("string"), F.lit("")), F.lit(""))
        for name in job.keys.partition_fields
    ]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class _Task:
    """What Spark sends to the executors."""

    def __init__(self, job: WriteJob) -> None:
        self._job = job

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        task = TaskIdentity(context.partitionId(), context.stageId(), context.taskAttemptId())
        try:
            for result in run_task(self._job, batches, task):
                yield _answer(True, result)
        except HudiError as error:
            yield _answer(False, error)


def _answer(succeeded: bool, value: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([succeeded]), pa.array([pickle.dumps(value)], pa.binary())], schema=_RESULT
    )

"""
Runs write tasks on executors through Arrow: a task gets rows and returns one result per base file.

Our own errors are returned as values, so that Spark does not repeat the task.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.types import BinaryType, BooleanType, StructField, StructType

from hudi_py.engine.answers import raise_first
from hudi_py.errors import HudiError
from hudi_py.formats.arrow_types import Field
from hudi_py.formats.texts import valid_texts
from hudi_py.rows.written import WrittenFile
from hudi_py.spark.failures import executor_errors
from hudi_py.writing.job import TaskIdentity, WriteJob
from hudi_py.writing.tasks import TooMuchForOneTask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FIELDS: list[Field] = [pa.field("succeeded", pa.bool_()), pa.field("value", pa.binary())]
_RESULT: Final = pa.schema(_FIELDS)
_ANSWER: Final = StructType([StructField("succeeded", BooleanType()), StructField("value", BinaryType())])

TaskFunction = Callable[[WriteJob, Iterable[pa.RecordBatch], TaskIdentity], list[WrittenFile]]


def run_tasks(
    frame: DataFrame, function: TaskFunction, job: WriteJob, *, are_texts_valid: bool = False
) -> list[WrittenFile]:
    """
    Run *function* over each Spark partition of *frame*, as one job.

    Args:
        are_texts_valid: Whether an earlier pass has looked for text that is not UTF-8.

    Raises:
        HudiError: The first one that a task raised; other tasks may have written files, which markers name.
        TooMuchForOneTask: A task has too much work and has written nothing.
    """
    with executor_errors():
        answers = frame.mapInArrow(_Task(function, job, are_texts_valid=are_texts_valid), _ANSWER).collect()
    return raise_first((row["succeeded"], pickle.loads(row["value"])) for row in answers)  # noqa: S301 - our own bytes


class _Task:
    """The callable that Spark pickles and sends to the executors."""

    def __init__(self, function: TaskFunction, job: WriteJob, *, are_texts_valid: bool) -> None:
        self._function = function
        self._job = job
        self._are_texts_valid = are_texts_valid

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        # Attempt and stage make the names of files unique, even if Spark runs a task twice at the same time.
        task = TaskIdentity(context.partitionId(), context.stageId(), context.taskAttemptId())
        try:
            rows = batches if self._are_texts_valid else valid_texts(batches)
            for result in self._function(self._job, rows, task):
                yield _answer(True, result)
        except (HudiError, TooMuchForOneTask) as error:
            yield _answer(False, error)


def _answer(succeeded: bool, value: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([succeeded]), pa.array([pickle.dumps(value)], pa.binary())], schema=_RESULT
    )

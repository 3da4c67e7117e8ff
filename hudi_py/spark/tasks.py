"""
Running write tasks on executors through Arrow: rows go in, one answer per base file comes out.

An error of ours travels as a value where a task answers anyway, so that Spark does not try again; elsewhere, and for
errors of others, Spark's report of the Python error is turned back into one of ours.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException, PySparkTypeError
from pyspark.sql.types import BinaryType, BooleanType, StructField, StructType

from hudi_py import errors
from hudi_py.errors import ConfigError, HudiError, WriteError
from hudi_py.formats.arrow_types import Field
from hudi_py.spark.engine import raise_first
from hudi_py.write.base_file import FileWriteResult
from hudi_py.write.job import TaskIdentity, WriteJob
from hudi_py.write.tasks import TooMuchForOneTask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FIELDS: list[Field] = [pa.field("succeeded", pa.bool_()), pa.field("value", pa.binary())]
_RESULT: Final = pa.schema(_FIELDS)
_ANSWER: Final = StructType([StructField("succeeded", BooleanType()), StructField("value", BinaryType())])
_OURS: Final = re.compile(r"^hudi_py\.errors\.(\w+): (.*)$", re.MULTILINE)
_LAST_WORDS: Final = re.compile(r"^(\w[\w.]*(?:Error|Exception|Exit|Interrupt)\b.*)$", re.MULTILINE)

TaskFunction = Callable[[WriteJob, Iterable[pa.RecordBatch], TaskIdentity], list[FileWriteResult]]


def run_tasks(frame: DataFrame, function: TaskFunction, job: WriteJob) -> list[FileWriteResult]:
    """
    Run *function* over each Spark partition of *frame*, as one job.

    Raises:
        HudiError: The first one that a task met; other tasks may have written files, which markers name.
        TooMuchForOneTask: A task has given up.
    """
    with executor_errors():
        answers = frame.mapInArrow(_Task(function, job), _ANSWER).collect()
    return raise_first((row["succeeded"], pickle.loads(row["value"])) for row in answers)  # noqa: S301 - our own bytes


class _Task:
    """What Spark sends to the executors."""

    def __init__(self, function: TaskFunction, job: WriteJob) -> None:
        self._function = function
        self._job = job

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        task = TaskIdentity(context.partitionId(), context.stageId(), context.taskAttemptId())
        try:
            for result in self._function(self._job, batches, task):
                yield _answer(True, result)
        except (HudiError, TooMuchForOneTask) as error:
            yield _answer(False, error)


def _answer(succeeded: bool, value: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([succeeded]), pa.array([pickle.dumps(value)], pa.binary())], schema=_RESULT
    )


@contextmanager
def executor_errors() -> Iterator[None]:
    """
    Turn Spark's report of an error in a task into one of ours, in one line.

    Raises:
        HudiError: The one that a task raised; ConfigError when the executors' Python lacks a package; WriteError else.
    """
    try:
        yield
    except Exception as error:
        if not _is_of_a_task(error):
            raise
        raise _translated(str(error)) from error


def _is_of_a_task(error: Exception) -> bool:
    """A query that does not make sense is the user's own, and told as Spark tells it."""
    of_spark = isinstance(error, PySparkException) or type(error).__module__.startswith("py4j.")
    return of_spark and not isinstance(error, (AnalysisException, PySparkTypeError))


def _translated(text: str) -> HudiError:
    ours = _OURS.findall(text)
    if ours:
        name, message = ours[-1]
        kind = getattr(errors, name, WriteError)
        return kind(message) if isinstance(kind, type) and issubclass(kind, HudiError) else WriteError(message)
    words = _LAST_WORDS.findall(text)
    last = words[-1] if words else text.strip().splitlines()[0] if text.strip() else "no message"
    if last.startswith("ModuleNotFoundError"):
        return ConfigError(
            f"the Python of Spark's executors cannot import what the write needs ({last}); install hudi_py there, or "
            "name the Python that has it in PYSPARK_PYTHON before Spark starts"
        )
    return WriteError(f"a Spark task failed, and nothing of the write is visible: {last[:500]}")

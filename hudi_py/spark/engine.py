"""Running tasks on Spark executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from pyspark.sql import SparkSession

from hudi_py.engine.answers import Answering, raise_first
from hudi_py.engine.base import R, T
from hudi_py.errors import StorageError
from hudi_py.spark.failures import executor_errors
from hudi_py.spark.session import use_own_python

FILES_MIN: Final = 1000  # of one request to an object store; a Python task costs some 40 ms whatever it does


class SparkEngine:
    """
    One Spark job per call, at most *parallelism* tasks; a single task is done here, sooner than a job would begin.

    Args:
        spark: The session whose executors do the work.
        files_min: Fewer files than this are not worth a task of their own.
    """

    name = "spark"

    def __init__(self, spark: SparkSession, *, files_min: int = FILES_MIN) -> None:
        use_own_python(spark)
        self._spark = spark
        self.slots = int(spark.sparkContext.defaultParallelism)
        self.files_min = files_min

    def map(self, function: Callable[[T], R], items: Sequence[T], *, parallelism: int, description: str) -> Iterable[R]:
        """
        Results in the order of *items*.

        Raises:
            HudiError: The first one that a task met; StorageError when a task failed otherwise.
        """
        if len(items) <= 1:
            return [function(item) for item in items]
        context = self._spark.sparkContext
        advice = f"{description!r} did not finish, run it again"
        with described(self._spark, description), executor_errors(StorageError, advice):
            rows = context.parallelize(items, min(parallelism, len(items)))
            answers = rows.map(Answering(function)).collect()
        return raise_first(answers)


class described:  # noqa: N801 - reads as a statement
    """Shows what a Spark job is for, in Spark's own pages and logs."""

    def __init__(self, spark: SparkSession, description: str) -> None:
        self._context = spark.sparkContext
        self._description = description

    def __enter__(self) -> None:
        self._context.setJobDescription(f"hudi_py {self._description}")

    def __exit__(self, *_: object) -> None:
        self._context.setJobDescription(None)

"""Running tasks on Spark executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyspark.sql import SparkSession

from hudi_py.engine.base import R, T
from hudi_py.errors import HudiError
from hudi_py.spark.session import use_own_python


class SparkEngine:
    """
    One Spark job per call, at most *parallelism* tasks.

    Args:
        spark: The session whose executors do the work.
    """

    name = "spark"

    def __init__(self, spark: SparkSession) -> None:
        use_own_python(spark)
        self._spark = spark
        # A Python task costs some 40 ms whatever it does, and its deletions run one after the other anyway.
        self.slots = 2 * int(spark.sparkContext.defaultParallelism)

    def map(self, function: Callable[[T], R], items: Sequence[T], *, parallelism: int, description: str) -> Iterable[R]:
        if not items:
            return []
        context = self._spark.sparkContext
        with described(self._spark, description):
            outcomes = context.parallelize(items, min(parallelism, len(items))).map(_Caught(function)).collect()
        return raise_first(outcomes)


class described:  # noqa: N801 - reads as a statement
    """Shows what a Spark job is for, in Spark's own pages and logs."""

    def __init__(self, spark: SparkSession, description: str) -> None:
        self._context = spark.sparkContext
        self._description = description

    def __enter__(self) -> None:
        self._context.setJobDescription(f"hudi_py {self._description}")

    def __exit__(self, *_: object) -> None:
        self._context.setJobDescription(None)


class _Caught:
    """Our own errors travel back as values, so that the driver raises them as they are and no task is retried."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, item: Any) -> tuple[bool, Any]:
        try:
            return True, self._function(item)
        except HudiError as error:
            return False, error


def raise_first(outcomes: Iterable[tuple[bool, Any]]) -> list[Any]:
    """The results, or the first of our errors among them, raised."""
    results = []
    for succeeded, value in outcomes:
        if not succeeded:
            raise value
        results.append(value)
    return results

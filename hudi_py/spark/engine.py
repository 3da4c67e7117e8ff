"""Runs tasks on Spark executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from hudi_py.engine.answers import Answering, packed, raise_first
from hudi_py.engine.base import R, T
from hudi_py.engine.choice import is_listing_for_spark
from hudi_py.errors import StorageError
from hudi_py.spark.failures import executor_errors, naming_executors
from hudi_py.spark.probe import probe
from hudi_py.spark.session import is_in_this_process, require_classic, use_own_python
from hudi_py.storage.base import Storage

FILES_MIN: Final = 1000  # a request to an object store can delete as many; any Python task costs about 40 ms
FILES_MAX: Final = 100_000  # their names are sent in less than 1 MB; smaller tasks would only need more jobs


class SparkEngine:
    """
    Runs each `map` as one Spark job. A single task runs in this process, because starting a job takes longer.

    Args:
        spark: The session whose executors run the tasks.
        files_min: Smallest number of files for which a task is worth its cost.

    Raises:
        ConfigError: The session is one of Spark Connect.
    """

    name = "spark"
    files_max = FILES_MAX

    def __init__(self, spark: SparkSession, *, files_min: int = FILES_MIN) -> None:
        require_classic(spark)
        use_own_python(spark)
        self._spark = spark
        self.slots = int(spark.sparkContext.defaultParallelism)
        self.files_min = files_min
        self._checked: set[str] = set()

    def prepared(self, storage: Storage, files: int) -> SparkEngine:
        """
        Return this engine, after checking in a small job that its executors can work on the table.

        Raises:
            ConfigError: They cannot; the message says what is missing and how to ship it.
        """
        # Once per table: the check is a job of its own, and executors rarely change while a session lives.
        if storage.root not in self._checked and not is_in_this_process(self._spark):
            probe(self._run_probe, storage, self.slots)
            self._checked.add(storage.root)
        return self

    def for_listing(self, storage: Storage, folders: int) -> SparkEngine | None:
        """See `Engine.for_listing`."""
        is_worth_it = is_listing_for_spark(folders, is_remote="://" in storage.root)
        return self.prepared(storage, folders) if is_worth_it else None

    def map(self, function: Callable[[T], R], items: Sequence[T], *, parallelism: int, description: str) -> Iterable[R]:
        """
        Call *function* for each item and return the results in the order of *items*.

        Raises:
            HudiError: The first one that a task raised; StorageError if a task failed for another reason.
        """
        if len(items) <= 1:
            return [function(item) for item in items]
        # cloudpickle, because the class of an item may be defined where executors cannot import it from.
        sent = [packed(item, cloudpickle.dumps) for item in items]
        with naming_executors():
            return raise_first(self._job(Answering(function), sent, min(parallelism, len(items)), description))

    def _job(self, function: Callable[[bytes], Any], items: list[bytes], tasks: int, description: str) -> list[Any]:
        advice = f"{description!r} did not finish, run it again"
        with described(self._spark, description), executor_errors(StorageError, advice):
            return list(self._spark.sparkContext.parallelize(items, tasks).map(function).collect())

    def _run_probe(self, function: Callable[[Any], Any], items: list[bytes]) -> list[dict[str, str]]:
        return self._job(function, items, len(items), "check the executors")


class described:  # noqa: N801 - reads as a statement
    """Sets the description of Spark jobs inside the context, which Spark shows in its UI and logs."""

    def __init__(self, spark: SparkSession, description: str) -> None:
        self._context = spark.sparkContext
        self._description = description

    def __enter__(self) -> None:
        self._context.setJobDescription(f"hudi_py {self._description}")

    def __exit__(self, *_: object) -> None:
        self._context.setJobDescription(None)

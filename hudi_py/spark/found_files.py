"""How Spark looks for the files of a table that it is given one by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PARALLELISM: Final = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_TASKS_PER_CORE: Final = 4


@contextmanager
def found_in_few_tasks(spark: SparkSession) -> Iterator[None]:
    """
    Let Spark ask for files in a few tasks for each core, unless the session says in how many.

    Of itself it makes a task of each file, up to 10,000, and each costs more than the question.
    """
    if getattr(spark, "_jvm", None) is None or _is_set(spark):  # Spark Connect, whose server has the cores
        yield
        return
    spark.conf.set(_PARALLELISM, str(max(spark.sparkContext.defaultParallelism, 1) * _TASKS_PER_CORE))
    try:
        yield
    finally:
        spark.conf.unset(_PARALLELISM)


def _is_set(spark: SparkSession) -> bool:
    conf: Any = spark.conf
    return conf.get(_PARALLELISM, None) is not None

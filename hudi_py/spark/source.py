"""
The data source ``hudi_py`` of Spark 4: ``spark.read.format("hudi_py")`` and ``spark.readStream.format("hudi_py")``.

Spark plans in Python processes on the driver's machine and reads on executors. The table is looked at once, when Spark
asks for the columns; this fixes what every use of the DataFrame reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs
import pyarrow as pa

from hudi_py.errors import ConfigError
from hudi_py.model.instant_time import is_beginning
from hudi_py.snapshot.batches import Batches
from hudi_py.snapshot.snapshot import Snapshot
from hudi_py.spark.pieces import batches_of, in_tasks
from hudi_py.spark.python_sources import HAS_SOURCES, DataSource, DataSourceReader, InputPartition
from hudi_py.spark.question import Question
from hudi_py.spark.same_columns import check_types, fitted, opened, refuse_not_null
from hudi_py.spark.schema import spark_schema
from hudi_py.spark.session import check_session, is_of_connect, use_own_python
from hudi_py.spark.source_options import LATEST, READS_ONLY, source_options
from hudi_py.spark.stream import HudiStreamReader
from hudi_py.table import Table
from hudi_py.timeline.order import order_times

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_TASKS: Final = 32  # the planning process does not know how many cores the cluster has
_BATCH: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"


def register(spark: SparkSession) -> None:
    """
    Make the format ``hudi_py`` known to a session of Spark 4, for ``spark.read`` and ``spark.readStream``.

    Raises:
        ConfigError: It is an older Spark, or Arrow batches of the session have no limit, which Spark refuses for data
            sources in Python.
    """
    check_session(spark)
    if not HAS_SOURCES:
        raise ConfigError(
            f"Spark {spark.version} has no data sources in Python, Spark 4 has; here, read with hudi_py.read(spark, …)"
        )
    limit = str(spark.conf.get(_BATCH, "1")).strip()
    if limit.lstrip("+-").isdigit() and int(limit) <= 0:
        raise ConfigError(
            f"{_BATCH} is {limit}, no limit: Spark {spark.version} refuses that for data sources in Python (its words "
            "are: The maximum arrow batch size should be greater than 0); set a limit for this session (by default it "
            "is 10000), or read with hudi_py.read(spark, …)"
        )
    if not is_of_connect(spark):
        use_own_python(spark)
    spark.dataSource.register(HudiDataSource)


class HudiDataSource(DataSource):  # type: ignore[misc]
    """
    Reads a table; options as the arguments of `hudi_py.read`, see docs/reading-with-spark.md.

    Raises:
        ConfigError: An option is unknown or invalid.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = dict(options)
        self._asked = source_options(self.options)
        # Pickled with this object, so that another process of Spark reads what `schema` has seen.
        self._pinned: Snapshot | Question | None = None

    @classmethod
    def name(cls) -> str:
        """As in ``format("hudi_py")``."""
        return "hudi_py"

    def schema(self) -> StructType:
        """
        The columns; fixes what the DataFrame shows.

        Raises:
            As `hudi_py.open_table`, and `ConfigError` for columns that the table does not have.
        """
        table, question = opened(self._asked), self._asked.question
        found = self._settle(table)
        snapshot = found if isinstance(found, Snapshot) else table.snapshot()
        return spark_schema(question.schema(snapshot))

    def _settle(self, table: Table) -> Snapshot | Question:
        question = self._asked.question
        if not question.is_range:
            self._pinned = question.snapshot(table)
        elif question.start == LATEST:
            self._pinned = question
        else:
            self._pinned = settled(question, table)
        return self._pinned

    def reader(self, schema: StructType) -> HudiReader:
        """
        Plans a read.

        Raises:
            As `hudi_py.read`.
        """
        if self._asked.question.start == LATEST:
            raise ConfigError("start is latest, which only a stream can begin with; give a time")
        refuse_not_null(schema)
        table = opened(self._asked)
        found = self._pinned or self._settle(table)
        if isinstance(found, Snapshot):
            batches = fitted(self._asked.question, schema).rows_of(found)
        else:
            batches = fitted(found, schema).batches(table)
        check_types(batches, schema)
        return HudiReader(batches)

    def streamReader(self, schema: StructType) -> Any:  # noqa: N802  # Spark's name
        """
        Plans reads of the changes since the last read.

        Raises:
            ConfigError: An option asks for a snapshot.
        """
        return HudiStreamReader(self._asked, schema)

    def writer(self, schema: StructType, overwrite: bool) -> Any:  # Spark's signature
        """Raises `ConfigError`: rows are written by `hudi_py.WriteClient`."""
        raise ConfigError(READS_ONLY)

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:  # noqa: N802
        """As `writer`."""
        raise ConfigError(READS_ONLY)


def settled(question: Question, table: Table) -> Question:
    """The same question about a range of time, whose ends do not move."""
    start = "0" if question.start is None or is_beginning(question.start) else table.resolve_time(question.start)
    if question.end is not None:
        return attrs.evolve(question, start=start, end=table.resolve_time(question.end))
    by_completion = table.config.format.layout.has_completion_times
    last = max(order_times(table.timeline, by_completion=by_completion).values(), default=None)
    # With a begin in the future, an end would come before it.
    return attrs.evolve(question, start=start, end=None if last is None or last < start else last)


class HudiReader(DataSourceReader):  # type: ignore[misc]
    """
    One read; Spark sends it to the executors without what it plans.

    It takes no filters: Spark 4.1 and later (seen in 4.3.0) read the partitions that were chosen for one query of a
    DataFrame for its other queries, too, so that files which a filter rules out would be missing there.

    Args:
        batches: What is read.
    """

    def __init__(self, batches: Batches) -> None:
        self._found = batches.in_pieces()

    def __getstate__(self) -> dict[str, Any]:
        return {"_found": attrs.evolve(self._found, pieces=(), sizes=())}

    def partitions(self) -> list[Any]:
        """One for each task."""
        return [InputPartition(task) for task in in_tasks(self._found, _TASKS)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The rows of one task, on an executor."""
        # Spark asks in this way where there is no partition at all.
        return iter(()) if partition is None else batches_of(self._found.read, partition.value)

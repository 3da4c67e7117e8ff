"""
Spreads and sorts the rows of a bulk insert, as its settings say.

Sorting and shuffling are Spark's, so they spill to its disks. Where the settings say nothing, rows of a partition go to
few tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.types import StringType, StructField, StructType
from pyspark.sql.window import Window

from hudi_py.config.bulk_insert import BulkInsertLayout
from hudi_py.formats.texts import valid_texts
from hudi_py.rows.written import WrittenFile
from hudi_py.spark.columns import UNKNOWN_BYTES, partitioning, quoted
from hudi_py.spark.scale import TINY_BYTES, Scale
from hudi_py.spark.tasks import run_tasks
from hudi_py.writing.bulk import run_bulk_task, run_mixed_bulk_task
from hudi_py.writing.job import WriteJob
from hudi_py.writing.tag import ARRIVAL

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_FILE_BYTES: Final = 32 * 1024 * 1024
"""Input of one task in a large bulk insert: enough for files of reasonable size, and a lost task is repeated soon."""
_KEY: Final = "_hudi_py_key"
_RANK: Final = "_hudi_py_rank"


def bulk_insert(frame: DataFrame, job: WriteJob, scale: Scale, guess: int) -> list[WrittenFile]:
    """
    Write rows into new file groups.

    Args:
        frame: The rows.
        job: The write.
        scale: Limits.
        guess: Catalyst's estimate of the size of the rows.

    Raises:
        HudiError: The first one that a task raised.
    """
    columns = partitioning(frame, job.keys)
    if job.combine:
        frame = _one_of_each_key(frame, job, columns)
    layout = job.layout
    if layout.sorts:
        return run_tasks(_sorted(frame, job, columns, scale), run_bulk_task, job)
    if layout.is_chosen:
        return run_tasks(_spread(frame, layout, columns, scale), run_mixed_bulk_task, job)
    if scale.parallelism:
        frame = frame.repartition(scale.parallelism, *columns)
    # One task, because starting further ones would take longer than the rows.
    elif guess <= TINY_BYTES:
        frame = frame.coalesce(1)
    # Without partitions no shuffle is needed, only fewer tasks.
    elif not columns and guess < UNKNOWN_BYTES:
        frame = frame.coalesce(max(scale.slots, guess // _FILE_BYTES))
    elif guess <= scale.single_pass_bytes:
        frame = frame.repartition(scale.tasks, *columns)
    else:
        return run_tasks(_rebalanced(frame, columns), run_bulk_task, job)
    if columns:
        frame = frame.sortWithinPartitions(*columns)
    return run_tasks(frame, run_bulk_task, job)


def _spread(frame: DataFrame, layout: BulkInsertLayout, columns: Sequence[Column], scale: Scale) -> DataFrame:
    """Rows in the order in which they come, as tasks have them or by partition."""
    if not layout.gathers:
        return frame
    if columns:
        return frame.repartition(scale.parallelism, *columns) if scale.parallelism else frame.repartition(*columns)
    return frame.coalesce(scale.parallelism) if scale.parallelism else frame


def _sorted(frame: DataFrame, job: WriteJob, columns: Sequence[Column], scale: Scale) -> DataFrame:
    layout = job.layout
    if layout.by_key:
        # The text of the key, by Python: a number is sorted as its digits, as in Apache Hudi.
        schema = StructType([*frame.schema, StructField(_KEY, StringType())])
        frame = frame.mapInArrow(partial(_with_keys, job), schema)
    order = [*columns, *map(quoted, layout.columns), *((quoted(_KEY),) if layout.by_key else ())]
    if layout.is_global:
        frame = frame.orderBy(*order)
        frame = frame.coalesce(scale.parallelism) if scale.parallelism else frame
    else:
        frame = frame.coalesce(scale.parallelism) if scale.parallelism else frame
        frame = frame.sortWithinPartitions(*order)
    return frame.drop(_KEY)


def _with_keys(job: WriteJob, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in valid_texts(batches):
        if batch.num_rows:
            yield batch.append_column(_KEY, job.keys.record_keys(batch))


def _one_of_each_key(frame: DataFrame, job: WriteJob, columns: Sequence[Column]) -> DataFrame:
    """Keep the row with the largest ordering values of each key of a partition, and of equal ones the latest."""
    keys = [quoted(name) for name in job.keys.record_key_fields]
    # A null among ordering values is first, so that the row is kept and refused where it is written.
    values = [each for name in job.rules.batch_fields for each in _in_javas_order(frame, name)]
    order = [*(each.desc_nulls_first() for each in values), quoted(ARRIVAL).desc()]
    ranked = frame.withColumn(ARRIVAL, F.monotonically_increasing_id())
    ranked = ranked.withColumn(_RANK, F.row_number().over(Window.partitionBy(*columns, *keys).orderBy(*order)))
    return ranked.where(quoted(_RANK) == 1).drop(ARRIVAL, _RANK)


def _in_javas_order(frame: DataFrame, name: str) -> list[Column]:
    """Columns by which Spark sorts as Java compares: it compares texts by their UTF-8 bytes, and takes -0.0 for 0.0."""
    column = quoted(name)
    kind = frame.schema[name].dataType.typeName()
    if kind == "string":
        return [F.encode(column, "UTF-16BE")]
    return [column, column.cast("string") != "-0.0"] if kind in ("float", "double") else [column]


def _rebalanced(frame: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """
    Let Spark split partitions larger than ``spark.sql.adaptive.advisoryPartitionSizeInBytes`` and combine small ones.

    By SQL: in Spark 3.5 Python cannot pass columns to a hint. Hints take columns, not expressions.
    """
    names = [f"_hudi_py_partition_{number}" for number in range(len(columns))]
    named = frame.withColumns(dict(zip(names, columns, strict=True))) if names else frame
    hint = f"REBALANCE({', '.join(names)})" if names else "REBALANCE"
    rebalanced = frame.sparkSession.sql(f"SELECT /*+ {hint} */ * FROM {{rows}}", rows=named)  # noqa: S608 - our names
    return rebalanced.sortWithinPartitions(*names).drop(*names) if names else rebalanced

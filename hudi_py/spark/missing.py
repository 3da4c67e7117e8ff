"""Counts the rows that lack a value, after a task has met one: tasks see some of the rows only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from hudi_py.errors import WriteError
from hudi_py.formats.required_values import refuse_missing, requires_values
from hudi_py.rows.precedence import DELETED_COLUMN
from hudi_py.spark.columns import quoted
from hudi_py.writing.job import WriteJob
from hudi_py.writing.required import Required

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@contextmanager
def counting_missing(frame: DataFrame, job: WriteJob) -> Iterator[None]:
    """
    Where rows cannot be written, say of how many in all of *frame* that is true, if it is for want of a value.

    Only then, because counting computes the user's query once more.

    Raises:
        WriteError: With the number of all these rows, or as it was.
    """
    try:
        yield
    except WriteError as error:
        try:
            counts = _counts(frame, job, required := Required.of_job(job))
            missing = _missing(frame, required)
        except (PySparkException, Py4JError):
            raise error from None
        required.refuse(counts[0], counts[1:])
        refuse_missing(missing)
        raise


def _counts(frame: DataFrame, job: WriteJob, required: Required) -> list[int]:
    types = {field.name: field.dataType.typeName() for field in frame.schema}
    without_key: Any = F.lit(required.keys is not None)
    for name in job.keys.key_columns if required.keys is not None else ():
        is_empty = quoted(name) == "" if types.get(name) == "string" else F.lit(False)
        without_key = without_key & (quoted(name).isNull() | is_empty)
    is_kept: Any = F.lit(True)
    if types.get(DELETED_COLUMN) == "boolean":
        is_kept = ~F.coalesce(quoted(DELETED_COLUMN), F.lit(False))
    missing = [without_key, *(quoted(name).isNull() & is_kept for name in required.ordering)]
    found = frame.agg(*(F.sum(each.cast("long")) for each in missing))
    return [int(count or 0) for count in found.collect()[0]]


def _missing(frame: DataFrame, required: Required) -> Counter[str]:
    """Values that the table's schema requires, counted by tasks: SQL has no simple words for what is in lists."""
    counts: Counter[str] = Counter()
    if required.stored is not None and any(map(requires_values, required.stored)):
        for row in frame.mapInArrow(partial(_missing_here, required), "path string, count long").collect():
            counts[row[0]] += row[1]
    return counts


def _missing_here(required: Required, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    counts = required.missing(batches)
    paths: Any = pa.array(list(counts), pa.string())
    yield pa.RecordBatch.from_arrays([paths, pa.array(list(counts.values()), pa.int64())], names=["path", "count"])

"""
Reading a copy-on-write table as a DataFrame: the files of one snapshot.

Spark's own Parquet reader reads them where Spark has a file system for the table's URL. Else, as with ``s3://`` and no
jar of Hadoop's for it, they are read through our storage on the executors: every column of every file, for nothing of
the query is known there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs
import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql.pandas.types import from_arrow_schema

from hudi_py.formats.arrow_types import Field
from hudi_py.formats.conform import conform_batch
from hudi_py.formats.record_schema import meta_fields, parse_record_schema
from hudi_py.model.files import join_path
from hudi_py.reading.snapshot import read_files
from hudi_py.storage.base import Storage
from hudi_py.table import open_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILES_PER_TASK_MAX: Final = 16
_SAME_STORE: Final = {"s3": "s3a", "s3n": "s3a", "gcs": "gs"}


def read(
    spark: SparkSession,
    location: str,
    *,
    as_of: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """
    The rows of a table, the five ``_hoodie_*`` columns first.

    Args:
        spark: The session that reads.
        location: Local path or URL.
        as_of: Instant time, ISO 8601 or duration back from now (``36h``); default: the latest snapshot.
        storage_options: For looking at the table, and for reading its files where Spark has no file system for the
            URL; else that is Spark's, configured as Spark is.

    Returns:
        A DataFrame over the files of that snapshot. A clean that removes them later makes it fail, not wrong.

    Raises:
        TableNotFound: There is no table.
        RefusedError: The table cannot be read as of that time (any more).
        UnsupportedTable: There are log files to merge.
    """
    table = open_table(location, storage_options=storage_options)
    requested = None if as_of is None else table.resolve_time(as_of)
    paths = [join_path(partition, file.name) for partition, file in table.base_files(requested)]
    text = table.schema_text(requested) or table.schema_text()  # before the first commit there is only the newest
    fields = meta_fields() + (list(parse_record_schema(text)) if text is not None else [])
    schema = from_arrow_schema(pa.schema(fields))
    if not paths:
        return spark.createDataFrame([], schema)
    base = _url_for_spark(spark, table.storage.root)
    if base is None:
        tasks = max(-(-len(paths) // _FILES_PER_TASK_MAX), min(len(paths), spark.sparkContext.defaultParallelism))
        named = spark.sparkContext.parallelize([(path,) for path in paths], tasks)
        frame = spark.createDataFrame(named, "path string")
        return frame.mapInArrow(_ReadFiles(table.storage, tuple(fields)), schema)
    # Days and instants are those of today's calendar all the way back, as Spark 3 and Hudi on it write them.
    return spark.read.schema(schema).parquet(*(f"{base}/{path}" for path in paths), datetimeRebaseMode="CORRECTED")


def _url_for_spark(spark: SparkSession, root: str) -> str | None:
    """The table's URL as Spark can read it; None where no file system of its Hadoop serves it."""
    scheme, separator, rest = root.partition("://")
    if not separator:
        return f"file://{root}"
    jvm: Any = getattr(spark, "_jvm", None)
    if jvm is None:  # Spark Connect: what the server can read, only the server knows
        return root
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001  # the only way to it
    for each in filter(None, (scheme, _SAME_STORE.get(scheme))):
        try:
            jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(each, hadoop)
        except Py4JJavaError:
            continue
        return f"{each}://{rest}"
    return None


@attrs.frozen
class _ReadFiles:
    """What Spark sends to the executors: names of files in, their rows out."""

    storage: Storage
    fields: tuple[Field, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = pa.schema(self.fields)
        for batch in batches:
            for rows in read_files(self.storage, map(str, batch.column("path").to_pylist()), with_meta=True):
                yield conform_batch(rows, schema)

"""
Reading a table as a DataFrame: the files of one snapshot.

Spark's own Parquet reader reads base files without log files where Spark has a file system for the table's URL. Else,
as with ``s3://`` and no jar of Hadoop's for it, they are read through our storage on the executors: every column of
every file, for nothing of the query is known there. So are file slices with log files, which are merged there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

import attrs
import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from hudi_py.config.uses import Use
from hudi_py.errors import ConfigError
from hudi_py.formats.arrow_types import Field
from hudi_py.formats.record_schema import meta_fields, parse_record_schema
from hudi_py.model.files import BaseFile, FileSlice, LogFile, join_path
from hudi_py.rows.ages import by_stored_schema
from hudi_py.rows.committed import COMMIT_TIME, Commits
from hudi_py.rows.read import file_schema
from hudi_py.rows.slice_reader import LogReading, read_slices
from hudi_py.rows.time_partitions import TimePartitions
from hudi_py.snapshot.select import bases_of, has_logs, slices_of_names, with_recorded_sizes
from hudi_py.storage.base import Storage
from hudi_py.table import open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hudi_py.snapshot.snapshot import Snapshot
    from hudi_py.table import Table

_FILES_PER_TASK_MAX: Final = 16
_SAME_STORE: Final = {"s3": "s3a", "s3n": "s3a", "gcs": "gs"}
_GLOB: Final = re.compile(r"[\\*?{}\[\]]")  # Spark takes a path for a pattern


def read(
    spark: SparkSession,
    location: str | PathLike[str],
    *,
    as_of: str | None = None,
    savepoint: str | None = None,
    start: str | None = None,
    end: str | None = None,
    read_optimized: bool = False,
    storage_options: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> DataFrame:
    """
    The rows of a table, the five ``_hoodie_*`` columns first.

    Args:
        spark: The session that reads.
        location: Local path or URL.
        as_of: Instant time, ISO 8601 or duration back from now (``36h``); default: the latest snapshot.
        savepoint: Instant or name of a savepoint: what it holds, which no clean takes.
        start, end: Only rows that changed in that range of time, as `Table.changes` tells; ``start="0"`` for everything
            until *end*.
        read_optimized: Base files alone: what the log files of merge-on-read tables hold is left out.
        storage_options: For looking at the table, and for reading its files where Spark has no file system for the
            URL; else that is Spark's, configured as Spark is.
        settings: As for `open_table`.

    Returns:
        A DataFrame over the files of that snapshot. A clean that removes them later makes it fail, not wrong.

    Raises:
        TableNotFound: There is no table.
        ConfigError: There is no such savepoint, two questions are asked at once, or a setting is unknown or refused.
        RefusedError: The table cannot be read as of that time, or in that range (any more).
        UnsupportedTable: Log files are merged by a Java class, or hold what is not read.
    """
    table = open_table(location, storage_options=storage_options, settings=settings)
    table.require(Use.READ)
    if read_optimized and (start is not None or end is not None):
        raise ConfigError("read_optimized shows a snapshot; it does not go with start or end")
    found = _asked(table, as_of, savepoint, start, end)
    slices, text = found.sized_slices(read_optimized=read_optimized), found.schema_text()
    fields = meta_fields() + (list(parse_record_schema(text)) if text is not None else [])
    shown = found._time_partitions()  # noqa: SLF001  # not for users
    stored = pa.schema(fields)
    schema = _nullable(from_arrow_schema(stored if shown is None else shown.schema(stored)))
    if not slices:
        return spark.createDataFrame([], schema)
    logs = found._log_reading(slices, pa.schema(fields))  # noqa: SLF001  # not for users
    reader = _ReadSlices(table.storage, tuple(fields), logs, shown)
    base = _url_for_spark(spark, table.storage.root)
    if base is None or shown is not None:
        return _changed(_through_storage(spark, slices, reader, schema), found)
    merged = [each for each in slices if has_logs([each])]
    files = bases_of(each for each in slices if not has_logs([each]))
    groups = by_stored_schema(files, pa.schema(fields), lambda *file: file_schema(table.storage, *file))
    frames = [_frame(spark, base, *each, schema) for each in groups]
    if merged:
        frames.append(_through_storage(spark, merged, reader, schema))
    return _changed(reduce(DataFrame.union, frames), found)


def _asked(table: Table, as_of: str | None, savepoint: str | None, start: str | None, end: str | None) -> Snapshot:
    if start is None and end is None:
        return table.snapshot(as_of, savepoint=None if savepoint is None else table.resolve_time(savepoint))
    if as_of is not None or savepoint is not None:
        raise ConfigError("start and end ask for changes, as_of and savepoint for a snapshot; give one of them")
    return table.range(start, end)


def _changed(frame: DataFrame, found: Snapshot) -> DataFrame:
    """The rows that a commit of the range changed last; all of a snapshot."""
    commits = found.row_commits()
    if not isinstance(commits, Commits):
        return frame
    time = frame[COMMIT_TIME]
    condition = time > commits.after
    if commits.until is not None:
        condition &= time <= commits.until
    if commits.times is not None:
        condition &= time.isin(sorted(commits.times))
    return frame.where(condition)


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


def _nullable(schema: StructType) -> StructType:
    """As Spark shows what it reads from files: everything may be null, inside of nested types too."""
    return StructType([StructField(each.name, _nullable_type(each.dataType)) for each in schema])


def _nullable_type(kind: DataType) -> DataType:
    if isinstance(kind, StructType):
        return _nullable(kind)
    if isinstance(kind, ArrayType):
        return ArrayType(_nullable_type(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(_nullable_type(kind.keyType), _nullable_type(kind.valueType))
    return kind


def _frame(
    spark: SparkSession, base: str, stored: pa.Schema, files: list[tuple[str, BaseFile]], schema: StructType
) -> DataFrame:
    """Files of one stored schema, their columns in the types of the table."""
    # Days and instants are those of today's calendar all the way back, as Spark 3 and Hudi on it write them.
    frame = spark.read.schema(from_arrow_schema(stored)).parquet(
        *(_GLOB.sub(r"\\\g<0>", f"{base}/{join_path(partition, file.name)}") for partition, file in files),
        datetimeRebaseMode="CORRECTED",
    )
    present = {field.name: field.dataType for field in frame.schema}
    if all(present[field.name] == field.dataType for field in schema):
        return frame
    return frame.select(*(frame[field.name].cast(field.dataType) for field in schema))


def _through_storage(
    spark: SparkSession, slices: Sequence[FileSlice], reader: _ReadSlices, schema: StructType
) -> DataFrame:
    count = len(slices)
    tasks = max(-(-count // _FILES_PER_TASK_MAX), min(count, spark.sparkContext.defaultParallelism))
    frame = spark.createDataFrame(spark.sparkContext.parallelize(map(_named, slices), tasks), _NAMED)
    return frame.mapInArrow(reader, schema)


_NAMED: Final = "partition string, names array<string>, sizes array<bigint>"


def _named(file_slice: FileSlice) -> tuple[str, list[str], list[int | None]]:
    """What a task needs of a slice; its files are held against the sizes, where they are known."""
    bases = () if file_slice.base_file is None else (file_slice.base_file,)
    files: tuple[BaseFile | LogFile, ...] = (*bases, *file_slice.log_files)
    return file_slice.partition_path, [file.name for file in files], [file.size_bytes for file in files]


@attrs.frozen
class _ReadSlices:
    """What Spark sends to the executors: names of the files of slices in, their rows out."""

    storage: Storage
    fields: tuple[Field, ...]
    logs: LogReading | None
    time_partitions: TimePartitions | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = pa.schema(field.with_nullable(nullable=True) for field in self.fields)
        for batch in batches:
            for row in batch.to_pylist():
                partition, sizes = row["partition"], dict(zip(row["names"], row["sizes"], strict=True))
                known = {name: size for name, size in sizes.items() if size is not None}
                slices = with_recorded_sizes(slices_of_names({partition: row["names"]}), lambda: {partition: known})  # noqa: B023
                for rows in read_slices(self.storage, slices, schema, self.logs):
                    shown = self.time_partitions
                    yield rows if shown is None else shown.shown(rows, partition)

"""
Reading a table as a DataFrame.

Spark's own Parquet reader reads base files without log files if only columns are chosen and Spark has a file system
for the table's URL; filters and columns of the query are then pushed down into it, and its index of files has the
values of partition columns. Everything else is read through our storage, on the executors: slices with log files are
merged there, conditions (``where``) choose files and row groups there, and ``columns`` says which columns are read. A
query's own filters are unknown there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, reduce
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import attrs
import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, DateType, DoubleType, FloatType, MapType, StructType, TimestampNTZType

from hudi_py.errors import NotFound, StorageError
from hudi_py.model.files import BaseFile, FileSlice, bases_of, join_path
from hudi_py.rows.ages import by_stored_schema
from hudi_py.rows.committed import COMMIT_TIME, Commits
from hudi_py.rows.condition import Where
from hudi_py.rows.read import file_schema
from hudi_py.snapshot.batches import Pieces
from hudi_py.snapshot.rows import ReadSlice
from hudi_py.snapshot.select import has_logs, size_of
from hudi_py.spark.columns import quoted
from hudi_py.spark.file_index import PartitionFiles, has_index, indexed_frame
from hudi_py.spark.found_files import found_in_few_tasks
from hudi_py.spark.lost_files import explain_lost_files
from hudi_py.spark.pieces import frame_of, in_tasks
from hudi_py.spark.question import Question
from hudi_py.spark.schema import spark_schema
from hudi_py.spark.session import check_session, is_of_connect
from hudi_py.table import open_table

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession
    from pyspark.sql.types import DataType

_Values: TypeAlias = tuple[Any, ...]
"""Names of columns, each with its value."""
_Shown: TypeAlias = Callable[[str], Mapping[str, Any]]
"""Values of partition columns, by the partition's path."""
_Key = TypeVar("_Key")
_FRAMES_MAX: Final = 32
"""Of a DataFrame, which is planned anew for each."""
_TASKS_MORE: Final = 2
"""So many times the tasks, at most, for reading partitions apart."""
_OPTIONS: Final = {
    # Whatever the session says: rows of a file that is damaged, or that a clean deleted, are never left out in silence.
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    # Spark 3, and Hudi on it, write early dates and times in today's calendar, so nothing has to be converted.
    "datetimeRebaseMode": "CORRECTED",
}
_SAME_STORE: Final = {"s3": "s3a", "s3n": "s3a", "gcs": "gs"}
_GLOB: Final = re.compile(r"[\\*?{}\[\]]")  # Spark takes a path for a pattern


def read(
    spark: SparkSession,
    location: str | PathLike[str],
    *,
    where: Where = (),
    columns: Sequence[str] | None = None,
    as_of: str | None = None,
    savepoint: str | None = None,
    start: str | None = None,
    end: str | None = None,
    with_deletes: bool = False,
    change_log: bool = False,
    read_optimized: bool = False,
    storage_options: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> DataFrame:
    """
    The rows of a table, the five ``_hoodie_*`` columns first.

    Args:
        spark: The session that reads.
        location: Local path or URL.
        where: Conditions as for `Table.rows`: they decide which files and row groups are read, as those of a query on
            the DataFrame do only where Spark reads the files itself (docs/reading-with-spark.md).
        columns: Names of the columns to return, in this order; others are not read. For a change log: columns of the
            rows before and after.
        as_of: Instant time, ISO 8601, duration back from now (``36h``) or name of a savepoint; default: the latest
            snapshot.
        savepoint: Instant or name of a savepoint, which can be read whatever cleans came after it.
        start, end: Only rows that changed in that range of time, as for `Table.changes`; ``start="0"`` for everything
            until *end*.
        with_deletes: With *start*: also rows that were deleted in the range, as they were before it; the last column,
            ``_hoodie_is_deleted``, is true for them.
        change_log: Each single change of the range, as for `Table.change_log`; ``ts`` gives their order.
        read_optimized: Read base files only; rows in log files of merge-on-read tables are left out.
        storage_options: For opening the table, and for reading its files where Spark has no file system for the URL;
            otherwise Spark reads them with its own configuration.
        settings: As for `open_table`.

    Returns:
        A DataFrame over the files of that snapshot. If a clean deletes them later, reading fails; rows are never wrong.

    Raises:
        TableNotFound: There is no table.
        ConfigError: There is no such savepoint or column, a condition is invalid, two questions are asked at once,
            or a setting is unknown or refused.
        RefusedError: The table cannot be read as of that time, or no longer in that range.
        UnsupportedTable: Log files are merged by a Java class, or have content that hudi_py does not read.
    """
    check_session(spark)
    question = Question(
        where=where, columns=columns, as_of=as_of, savepoint=savepoint, start=start, end=end,
        read_optimized=read_optimized, with_deletes=with_deletes, change_log=change_log,
    )  # fmt: skip
    table = open_table(location, storage_options=storage_options, settings=settings)
    batches = question.batches(table)
    schema, found = spark_schema(batches.schema), batches.in_pieces()
    frames: list[DataFrame] = []
    is_indexed = has_index(spark)
    plain, others = _plain(found, is_indexed=is_indexed)
    base = _url_for_spark(spark, table.storage.root) if plain else None
    if base is None:
        others = found
    elif isinstance(found.read, ReadSlice):
        explain_lost_files(table.contents)
        # Files first, so that a DataFrame of plain files only is a plain scan, into which Spark pushes filters.
        try:
            frames += _frames(spark, base, found.read, plain, is_indexed=is_indexed)
        except StorageError as error:
            raise _lost(found.read, plain, error) from error
    frames += [_with(frame_of(spark, some, schema), values) for values, some in _apart(spark, others)]
    return reduce(DataFrame.union, frames) if frames else spark.createDataFrame([], schema)


def _lost(read: ReadSlice, slices: Sequence[FileSlice], error: StorageError) -> StorageError:
    """The error for files that are not there, in words that name what deleted one of them, where that is known."""
    there: dict[str, set[str]] = {}
    for each in slices:
        path = each.partition_path
        if path not in there:
            there[path] = {entry.name for entry in read.storage.list(path)}
        missing = [file.name for file in each.files if file.name not in there[path]]
        if missing and read.lost is not None:
            return read.lost(each, NotFound(f"{read.storage.root}/{join_path(path, missing[0])} is missing"))
    return error


def _plain(found: Pieces, *, is_indexed: bool) -> tuple[tuple[FileSlice, ...], Pieces]:
    """The slices that Spark's own reader reads as they are asked for, and the other pieces."""
    read = found.read
    # Spark's reader shows what the files hold, and knows no other condition than those on commit times.
    if not isinstance(read, ReadSlice) or read.shows_other_values or not all(map(_is_commits, read.filters)):
        return (), found
    plain = [each for each in found.pieces if not has_logs([each]) and each.is_plain and _is_parquet(each)]
    if not is_indexed:  # each value makes a DataFrame
        by_value = _by_values(_shown_by(read, is_indexed=False), plain)
        if len(by_value) > _FRAMES_MAX:
            plain = list(by_value.get((), ()))
    chosen = set(map(id, plain))
    others = tuple(each for each in found.pieces if id(each) not in chosen)
    return tuple(plain), Pieces(read=read, pieces=others, sizes=tuple(map(size_of, others)))


def _shown_by(read: ReadSlice, *, is_indexed: bool) -> _Shown:
    """What rows show of their paths; without an index only what may not be stored in them."""
    paths = read.partition_values
    if paths is None or read.path_columns is not None or read.time_partitions is not None:
        return lambda _: {}
    told = paths.shown if is_indexed else paths.other_than_stored
    return cache(lambda path: {name: value.as_py() for name, value in told(path, read.stored).items()})


def _apart(spark: SparkSession, found: Pieces) -> list[tuple[_Values, Pieces]]:
    """
    The same pieces by the values of partition columns that all of their rows show, unless that makes many more tasks.

    Spark leaves out what a query's conditions on such columns rule out, because it sees the values in its plan.
    """
    read = found.read
    if not isinstance(read, ReadSlice) or not found.pieces or is_of_connect(spark):
        return [((), found)] if found.pieces else []
    shown = _shown_by(read, is_indexed=True)
    by = _by_values(shown, [each for each in found.pieces if each.is_plain])
    by.setdefault((), []).extend(each for each in found.pieces if not each.is_plain)
    apart = [
        (key, attrs.evolve(found, pieces=tuple(some), sizes=tuple(map(size_of, some))))
        for key, some in by.items()
        if some
    ]
    slots = spark.sparkContext.defaultParallelism
    tasks = sum(len(in_tasks(some, slots)) for _, some in apart)
    if len(apart) > _FRAMES_MAX or tasks > _TASKS_MORE * len(in_tasks(found, slots)):
        return [((), found)]
    return apart


def _with(frame: DataFrame, values: _Values) -> DataFrame:
    """The same rows; all of them have these values, which Spark then knows."""
    for name, value in values:
        if name in frame.columns:
            kind = frame.schema[name].dataType
            # As text: PySpark makes moments of the process's zone of times without one, and fails before the year 1000.
            plain = str(value) if value is not None and isinstance(kind, (DateType, TimestampNTZType)) else value
            frame = frame.withColumn(name, F.lit(plain).cast(kind))
    return frame


def _is_parquet(file_slice: FileSlice) -> bool:
    base = file_slice.base_file
    return base is None or base.extension == "parquet"


def _by_values(shown: _Shown, slices: Sequence[FileSlice]) -> dict[_Values, list[FileSlice]]:
    """Slices by the values that their rows show instead of the stored ones."""
    return _grouped(slices, lambda path: tuple(shown(path).items()))


def _by_columns(shown: _Shown, slices: Sequence[FileSlice]) -> dict[tuple[str, ...], list[FileSlice]]:
    """Slices by the columns that show values of their paths."""
    return _grouped(slices, lambda path: tuple(shown(path)))


def _grouped(slices: Sequence[FileSlice], key: Callable[[str], _Key]) -> dict[_Key, list[FileSlice]]:
    found: dict[_Key, list[FileSlice]] = {}
    for each in slices:
        found.setdefault(key(each.partition_path), []).append(each)
    return found


def _is_commits(condition: object) -> bool:
    return isinstance(condition, Commits)


def _frames(
    spark: SparkSession, base: str, read: ReadSlice, slices: Sequence[FileSlice], *, is_indexed: bool
) -> list[DataFrame]:
    schema = spark_schema(read.stored)
    shown = _shown_by(read, is_indexed=is_indexed)
    found = []
    by: Mapping[tuple[Any, ...], list[FileSlice]]
    by = _by_columns(shown, slices) if is_indexed else _by_values(shown, slices)
    for key, some in by.items():
        groups = by_stored_schema(bases_of(some), read.stored, lambda *file: file_schema(read.storage, *file))
        for stored, files in groups:
            with found_in_few_tasks(spark):
                if is_indexed and key:
                    frame = _indexed(spark, base, stored, files, schema, {path: shown(path) for path, _ in files})
                else:
                    frame = _frame(spark, base, stored, files)
            frame = _in_types(frame, schema)
            for commits in read.filters:
                assert isinstance(commits, Commits)
                frame = _changed(frame, commits)
            frame = frame if is_indexed else _with(frame, key)
            found.append(frame if len(read.names) == len(schema) else frame.select(*map(quoted, read.names)))
    return found


def _changed(frame: DataFrame, commits: Commits) -> DataFrame:
    """The rows that one of the commits changed last."""
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
    if jvm is None:  # Spark Connect: only the server knows what it can read
        return root
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001  # the only way to it
    # Hadoop knows S3 as s3a; users write s3.
    for each in filter(None, (scheme, _SAME_STORE.get(scheme))):
        try:
            jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(each, hadoop)
        except Py4JJavaError:
            continue
        return f"{each}://{rest}"
    return None


def _frame(spark: SparkSession, base: str, stored: pa.Schema, files: list[tuple[str, BaseFile]]) -> DataFrame:
    """Files of one stored schema."""
    return spark.read.schema(from_arrow_schema(stored, prefer_timestamp_ntz=True)).parquet(
        *(_GLOB.sub(r"\\\g<0>", f"{base}/{join_path(partition, file.name)}") for partition, file in files), **_OPTIONS
    )


def _indexed(
    spark: SparkSession,
    base: str,
    stored: pa.Schema,
    files: list[tuple[str, BaseFile]],
    schema: StructType,
    shown: Mapping[str, Mapping[str, Any]],
) -> DataFrame:
    """The same, with the values of partition columns that *shown* has for each path, all of them for the same ones."""
    urls: dict[str, list[str]] = {}
    for path, file in files:
        urls.setdefault(path, []).append(f"{base}/{join_path(path, file.name)}")
    partitions = [PartitionFiles(some, shown[path]) for path, some in urls.items()]
    names = partitions[0].values
    others = pa.schema([field for field in stored if field.name not in names])
    of_files = from_arrow_schema(others, prefer_timestamp_ntz=True)
    of_paths = StructType([field for field in schema if field.name in names])
    return indexed_frame(spark, partitions, of_files, of_paths, _OPTIONS)


def _in_types(frame: DataFrame, schema: StructType) -> DataFrame:
    """The columns in the types and the order of the table."""
    present = {field.name: field.dataType for field in frame.schema}
    if list(present.items()) == [(field.name, field.dataType) for field in schema]:
        return frame
    return frame.select(
        *(_cast(quoted(field.name), present[field.name], field.dataType).alias(field.name) for field in schema)
    )


def _cast(column: Column, present: DataType, wanted: DataType) -> Column:
    """
    Spark's own cast, but for floats: as to Hudi, a double has the same shortest text (0.1 stays 0.1).

    What is nested is built anew, because its cast would go by position, and so would miss floats and new fields.
    """
    if present.simpleString() == wanted.simpleString():  # whatever either says of nulls
        return column
    if isinstance(present, StructType) and isinstance(wanted, StructType):
        types = {field.name: field.dataType for field in present}
        fields = [
            _cast(column.getField(field.name), types[field.name], field.dataType).alias(field.name)
            if field.name in types
            else F.lit(None).cast(field.dataType).alias(field.name)
            for field in wanted
        ]
        return F.when(column.isNotNull(), F.struct(*fields))
    if isinstance(present, ArrayType) and isinstance(wanted, ArrayType):
        was, now = present.elementType, wanted.elementType
        return F.transform(column, lambda element: _cast(element, was, now))
    if isinstance(present, MapType) and isinstance(wanted, MapType):
        before, after = present.valueType, wanted.valueType
        return F.transform_values(column, lambda _, value: _cast(value, before, after))
    if isinstance(present, FloatType) and isinstance(wanted, DoubleType):
        column = column.cast("string")
    return column.cast(wanted)

"""
Files of a table for Spark's own Parquet reader, with the values of the partition columns in Spark's index of files.

Spark then opens only the files of partitions that a query's conditions leave, and shows those values in their rows.
``DataFrameReader`` takes such values from paths as it reads them itself (``name=value``, in the types that it guesses),
which are not those of every table. So the index is made from Spark's own classes, which Python reaches in the driver;
where a Spark does not have them as Apache Spark 3.5 to 4 does, `has_index` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import attrs
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from hudi_py.errors import StorageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SOURCES: Final = "org.apache.spark.sql.execution.datasources"
_ARGUMENTS: Final = {f"{_SOURCES}.InMemoryFileIndex": 7, f"{_SOURCES}.HadoopFsRelation": 7,
                     f"{_SOURCES}.PartitionPath": 2, f"{_SOURCES}.PartitionSpec": 2}  # fmt: skip
"""Number of arguments of the constructors."""


@attrs.frozen
class PartitionFiles:
    """
    Files of one folder.

    Args:
        urls: Of the files, as Spark reads them; not patterns.
        values: Of the partition columns, in the types of Python.
    """

    urls: Sequence[str]
    values: Mapping[str, Any]


def has_index(spark: SparkSession) -> bool:
    """Whether the session's Spark has the classes; not through Spark Connect."""
    jvm: Any = getattr(spark, "_jvm", None)
    if jvm is None:
        return False
    try:
        return all(
            any(each.getParameterCount() == count for each in jvm.java.lang.Class.forName(name).getConstructors())
            for name, count in _ARGUMENTS.items()
        )
    except (Py4JError, TypeError, AttributeError):
        return False


def indexed_frame(
    spark: SparkSession,
    partitions: Sequence[PartitionFiles],
    stored: StructType,
    partition_columns: StructType,
    options: Mapping[str, str],
) -> DataFrame:
    """
    A DataFrame over Parquet files.

    Args:
        spark: A session in the driver, for which `has_index` is true.
        partitions: The files, each folder once.
        stored: Columns that are read from the files.
        partition_columns: Columns whose values are those of `PartitionFiles.values`.
        options: Of Spark's Parquet reader.

    Raises:
        StorageError: Spark finds other files than these ones.
    """
    jvm: Any = spark._jvm  # noqa: SLF001  # the only way to them
    session: Any = spark._jsparkSession  # noqa: SLF001
    none = getattr(getattr(jvm.scala, "None$"), "MODULE$")
    sources = jvm.org.apache.spark.sql.execution.datasources
    values = _rows(spark, [each.values for each in partitions], partition_columns)
    files = _paths(jvm, [url for each in partitions for url in each.urls])
    firsts = accumulate((len(each.urls) for each in partitions[:-1]), initial=0)
    # Its folder as Hadoop says it, by which Spark looks the files up.
    places = [sources.PartitionPath(row, files[at].getParent()) for row, at in zip(values, firsts, strict=True)]
    columns, types = _java_type(session, partition_columns), _java_type(session, stored)
    given = _map(jvm, options)
    index = sources.InMemoryFileIndex(
        session,
        _listed(jvm, files),
        given,
        none,
        getattr(getattr(sources, "NoopCache$"), "MODULE$"),
        jvm.scala.Some(sources.PartitionSpec(columns, _seq(jvm, places))),
        none,
    )
    found = index.listFiles(_seq(jvm, []), _seq(jvm, []))
    sizes = [found.apply(at).files().size() for at in range(found.size())]
    if sizes != [len(each.urls) for each in partitions]:
        raise StorageError(
            f"Spark finds {sum(sizes)} of the {len(files)} files of the table in their folders, as "
            f"{partitions[0].urls[0]}; a clean may have deleted some: open the table and read again"
        )
    parquet = sources.parquet.ParquetFileFormat()
    relation = sources.HadoopFsRelation(index, columns, types, none, parquet, given, session)
    return DataFrame(session.baseRelationToDataFrame(relation), spark)


def _paths(jvm: Any, urls: Sequence[str]) -> Any:
    """Hadoop's paths, as an array of Java. In two calls, because one for each file takes seconds for many."""
    # No path contains a NUL.
    return jvm.org.apache.hadoop.util.StringUtils.stringToPath(
        jvm.java.util.regex.Pattern.compile("\0").split("\0".join(urls))
    )


def _listed(jvm: Any, array: Any) -> Any:
    # Python finds methods by the exact type of an array; this one takes any.
    return jvm.scala.Predef.genericWrapArray(array).toSeq()


def _rows(spark: SparkSession, values: Sequence[Mapping[str, Any]], columns: StructType) -> Sequence[Any]:
    """Rows as Spark keeps them, without their names."""
    rows = [tuple(each[name] for name in columns.names) for each in values]
    frame = spark.createDataFrame(rows, columns).coalesce(1)  # in this order
    return list(frame._jdf.queryExecution().executedPlan().executeCollect())  # noqa: SLF001


def _java_type(session: Any, columns: StructType) -> Any:
    return session.parseDataType(columns.json())


def _seq(jvm: Any, items: Iterable[Any]) -> Any:
    listed = jvm.java.util.ArrayList()
    for each in items:
        listed.add(each)
    return jvm.org.apache.spark.api.python.PythonUtils.toSeq(listed)


def _map(jvm: Any, items: Mapping[str, str]) -> Any:
    listed = jvm.java.util.HashMap()
    for name, text in items.items():
        listed.put(name, text)
    return jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(listed)

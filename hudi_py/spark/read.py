"""Reading a copy-on-write table as a DataFrame: the files of one snapshot through Spark's own Parquet reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from hudi_py.formats.record_schema import meta_fields, parse_record_schema
from hudi_py.model.files import join_path
from hudi_py.table import open_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
        as_of: Instant time, ISO 8601, duration back from now (``36h``) or a savepoint's name; default: the latest
            snapshot.
        storage_options: For looking at the table; reading the files is Spark's, configured as Spark is.

    Returns:
        A DataFrame over the files of that snapshot. A clean that removes them later makes it fail, not wrong.

    Raises:
        TableNotFound: There is no table.
        RefusedError: The table cannot be read as of that time (any more).
        UnsupportedTable: There are log files to merge.
    """
    table = open_table(location, storage_options=storage_options)
    requested = None if as_of is None else table.resolve_time(as_of)
    files = table.base_files(requested)
    text = table.schema_text(requested) or table.schema_text()  # before the first commit there is only the newest
    fields = meta_fields() + (list(parse_record_schema(text)) if text is not None else [])
    schema = from_arrow_schema(pa.schema(fields))
    if not files:
        return spark.createDataFrame([], schema)
    root = table.storage.root
    base = root if "://" in root else f"file://{root}"
    # Days and instants are those of today's calendar all the way back, as Spark 3 and Hudi on it write them.
    return spark.read.schema(schema).parquet(
        *(f"{base}/{join_path(partition, file.name)}" for partition, file in files),
        datetimeRebaseMode="CORRECTED",
    )

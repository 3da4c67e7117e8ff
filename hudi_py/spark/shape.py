"""Selects the columns of a DataFrame that are written, under their names in the table."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import StructType

from hudi_py.errors import ConfigError
from hudi_py.spark.columns import quoted
from hudi_py.writing.shape import written_columns, written_types

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Up to Spark 4.1 times are in UTC; later ones ask which zone is meant.
_ZONE: Final[dict[str, Any]] = (
    {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
)


def shaped_rows(rows: DataFrame, table_schema: str | None, needed: Sequence[str], *, keys_only: bool) -> DataFrame:
    """
    Return the rows with the columns that are written, under their names in the table.

    Args:
        rows: Rows of the user.
        table_schema: Avro text of the table's schema; None for a new table.
        needed: Columns for keys, partitions and ordering.
        keys_only: Keep only the columns in *needed*.

    Raises:
        ConfigError: See `written_columns`; or Spark cannot pass a column's type to Python.
    """
    schema = arrow_schema(rows)
    names = written_columns(schema.names, table_schema, needed, keys_only=keys_only, ignores_case=_ignores_case(rows))
    given = pa.schema(schema.field(name).with_name(spelled) for name, spelled in names.items())
    wanted = written_types(given, table_schema)
    if list(names) == schema.names and all(name == spelled for name, spelled in names.items()) and given == wanted:
        return rows
    columns = []
    for name, now, then in zip(names, given, wanted, strict=True):
        # A column without a type: Spark, too, takes a null for one of any type.
        column = quoted(name) if now == then else quoted(name).cast(from_arrow_type(then.type))
        columns.append(column.alias(then.name))
    return rows.select(*columns)


def arrow_schema(rows: DataFrame) -> pa.Schema:
    """
    Return the schema of the rows as tasks receive them.

    Raises:
        ConfigError: A column has a type that Spark cannot pass to Python.
    """
    column = ""
    try:
        fields = []
        for field in rows.schema:
            # One column at a time, because Spark's error does not name it.
            column = f"column {field.name!r}"
            fields += list(to_arrow_schema(StructType([field]), **_ZONE))
    except PySparkException as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(
            f"{column or 'a column'} has a type that cannot be written: {reason}; cast it or leave it out"
        ) from error
    return pa.schema(fields)


def _ignores_case(rows: DataFrame) -> bool:
    return str(rows.sparkSession.conf.get("spark.sql.caseSensitive", "false")) != "true"

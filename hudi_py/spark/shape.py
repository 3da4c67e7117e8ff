"""The columns of a DataFrame as a table wants them: its spelling, and no more than is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from hudi_py.errors import ConfigError
from hudi_py.formats.record_schema import NOT_DATA, parse_record_schema
from hudi_py.spark.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def shaped_rows(rows: DataFrame, table_schema: str | None, needed: Sequence[str], *, keys_only: bool) -> DataFrame:
    """
    Spell columns as the table does, where Spark takes both spellings for one name, and drop Hudi's own columns.

    Args:
        rows: What the user gave.
        table_schema: Avro text of the table's rows; None for a new table.
        needed: Columns that the keys, partitions and the order of rows are made of.
        keys_only: Drop all others.

    Raises:
        ConfigError: A needed column is missing, two columns have one name, or a type is beyond Python.
    """
    present = arrow_schema(rows).names
    known = [] if table_schema is None else parse_record_schema(table_schema).names
    spelling = {name.lower(): name for name in known} if _ignores_case(rows) else {}
    names = {name: spelling.get(name.lower(), name) for name in present}
    twice = [name for name in present if present.count(name) > 1]
    if twice:
        raise ConfigError(f"the rows have several columns called {twice[0]!r}; rename or drop all but one")
    _refuse_missing(list(names.values()), needed)
    wanted = set(needed) if keys_only else set(names.values()) - NOT_DATA
    kept = [name for name, spelled in names.items() if spelled in wanted]
    if kept == present and all(name == spelled for name, spelled in names.items()):
        return rows
    return rows.select(*(quoted(name).alias(names[name]) for name in kept))


def arrow_schema(rows: DataFrame) -> pa.Schema:
    """
    Schema of the rows as they come to the tasks.

    Raises:
        ConfigError: A column has a type that Spark cannot give to Python.
    """
    column = ""
    try:
        fields = []
        for field in rows.schema:
            column = f"column {field.name!r}"
            fields += list(to_arrow_schema(StructType([field])))
    except PySparkException as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(
            f"{column or 'a column'} has a type that cannot be written: {reason}; cast it or leave it out"
        ) from error
    return pa.schema(fields)


def _refuse_missing(names: Sequence[str], needed: Sequence[str]) -> None:
    missing = [name for name in needed if name not in names]
    if not missing:
        return
    meant = [name for name in names if name.lower() in {each.lower() for each in missing}]
    hint = f"; did you mean {', '.join(meant)}? Case counts" if meant else ""
    raise ConfigError(
        f"the rows have no column {', '.join(missing)}, which the table's keys, partitions or order are made of{hint}"
    )


def _ignores_case(rows: DataFrame) -> bool:
    return str(rows.sparkSession.conf.get("spark.sql.caseSensitive", "false")) != "true"

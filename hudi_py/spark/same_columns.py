"""Answers of a table in the columns that were announced to Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hudi_py.config.uses import Use
from hudi_py.errors import ConfigError
from hudi_py.snapshot.batches import Batches
from hudi_py.snapshot.deleted import DELETED
from hudi_py.spark.question import Question
from hudi_py.spark.schema import spark_schema
from hudi_py.spark.source_options import SourceOptions
from hudi_py.table import Table, open_table

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def opened(options: SourceOptions) -> Table:
    """The table, for reading."""
    table = open_table(options.location, storage_options=options.storage_options, settings=options.settings)
    table.require(Use.READ)
    return table


def fitted(question: Question, schema: StructType) -> Question:
    """The same question for the columns of a schema that Spark knows already."""
    if question.change_log:
        return attrs.evolve(question, columns=schema["after"].dataType.fieldNames())
    names = [name for name in schema.names if not (question.with_deletes and name == DELETED)]
    return attrs.evolve(question, columns=names)


def check_types(batches: Batches, schema: StructType) -> None:
    """
    Raises:
        ConfigError: The rows have other types than were announced to Spark.
    """
    found = spark_schema(batches.schema)
    if found.simpleString() == schema.simpleString():
        return
    other = next(
        (f"{ours.name} is {ours.dataType.simpleString()}, not {theirs.dataType.simpleString()}"
         for ours, theirs in zip(found, schema, strict=False) if ours.dataType != theirs.dataType),
        "other columns",
    )  # fmt: skip
    raise ConfigError(
        f"the table's columns are not those of the query: {other}; a query that began before a column's type was "
        "widened has to be started again, and a schema that is given has to have the table's types"
    )

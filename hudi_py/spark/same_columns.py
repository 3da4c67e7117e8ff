"""Answers of a table in the columns that were announced to Spark."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from hudi_py.config.uses import Use
from hudi_py.errors import ConfigError
from hudi_py.snapshot.batches import Batches
from hudi_py.snapshot.deleted import DELETED
from hudi_py.spark.question import Question
from hudi_py.spark.schema import spark_schema
from hudi_py.spark.source_options import SourceOptions
from hudi_py.table import Table, open_table


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


def refuse_not_null(schema: StructType) -> None:
    """
    Raises:
        ConfigError: It says that values are never null: Spark would not look whether one is.
    """
    path = next(_never_null(schema, ""), None)
    if path is not None:
        raise ConfigError(
            f"the schema that is given says that {path} is never null, which hudi_py promises of no column, "
            "and Spark would take nulls for values; leave NOT NULL out (nullable=True)"
        )


def _never_null(kind: DataType, path: str) -> Iterator[str]:
    """Paths of what is not nullable in a type."""
    if isinstance(kind, StructType):
        for field in kind:
            inner = f"{path}.{field.name}".lstrip(".")
            if not field.nullable:
                yield inner
            yield from _never_null(field.dataType, inner)
    elif isinstance(kind, ArrayType):
        if not kind.containsNull:
            yield f"{path}.element"
        yield from _never_null(kind.elementType, f"{path}.element")
    elif isinstance(kind, MapType):
        if not kind.valueContainsNull:
            yield f"{path}.value"
        yield from _never_null(kind.valueType, f"{path}.value")


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

"""
What a write does to the schema of a table: nothing, a widening, or it is refused.

Allowed are new columns (always nullable, always at the end, because older files do not have them), int to long and
float to double at the top level. Nullability of present columns never changes: whether rows respect it is a question
about values, which `conform` answers.

Source: Hudi 1.1.1, ``AvroSchemaCompatibility``, ``AvroSchemaEvolutionUtils``; narrower than Hudi on purpose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import attrs
import pyarrow as pa

from hudi_py.errors import ConfigError, WriteError
from hudi_py.formats.arrow_types import Field
from hudi_py.formats.record_schema import append_fields, format_record_schema, parse_record_schema, storage_schema

_PROMOTIONS: Final[Mapping[pa.DataType, pa.DataType]] = {pa.int32(): pa.int64(), pa.float32(): pa.float64()}


@attrs.frozen(kw_only=True)
class ResolvedSchema:
    """
    The schema a commit writes with.

    Args:
        text: Avro, for ``extraMetadata.schema`` of the commit; without meta columns.
        schema: The same as storage schema.
        added: Names of the columns the table did not have.
        promoted: Names of the columns whose type grew.
        cautions: What is peculiar about new columns, as sentences: some readers refuse a table for it.
    """

    text: str
    schema: pa.Schema
    added: tuple[str, ...] = ()
    promoted: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()


def resolve_schema(table_text: str | None, incoming: pa.Schema, table_name: str) -> ResolvedSchema:
    """
    Decide the schema for writing rows of *incoming* into a table.

    Args:
        table_text: Schema of the latest commit that has one; None for a table without commits. Taken over as it is
            unless the table grows.
        incoming: Schema of the rows, any order of columns. Meta columns are ignored.
        table_name: ``hoodie.table.name``; used for a new table only.

    Raises:
        ConfigError: A column has a type that cannot be stored or does not fit the table's.
        WriteError: The rows lack a column that must not be null.
    """
    rows = storage_schema(incoming)
    if table_text is None:
        text = format_record_schema(rows, table_name)
        return ResolvedSchema(text=text, schema=rows, cautions=_cautions(rows, rows.names))

    table = parse_record_schema(table_text)
    _refuse_missing(table, rows)
    columns, added, promoted = [], [], []
    for field in table:
        unified = _unify(field, rows.field(field.name)) if field.name in rows.names else field
        columns.append(unified)
        if unified != field:
            promoted.append(field.name)
    for field in rows:
        if field.name not in table.names:
            columns.append(field.with_nullable(nullable=True))
            added.append(field.name)
    widened = storage_schema(pa.schema(columns))  # a new column may clash with a present one by case
    text = append_fields(table_text, widened) if added or promoted else table_text
    return ResolvedSchema(
        text=text,
        schema=widened,
        added=tuple(added),
        promoted=tuple(promoted),
        cautions=_cautions(widened, added),
    )


def _cautions(schema: pa.Schema, names: Iterable[str]) -> tuple[str, ...]:
    added = [schema.field(name) for name in names]
    zoneless = ", ".join(field.name for field in added if _holds_local_time(field.type))
    foreign = ", ".join(field.name for field in added if not str(field).isascii())
    found = []
    if zoneless:
        found.append(
            f"{zoneless}: timestamps without time zone, for which Apache Hudi before 1.1 and hudi-rs refuse to read "
            "the table; where they have to, cast to timestamps in UTC"
        )
    if foreign:
        found.append(f"{foreign}: a name with letters beyond ASCII, for which hudi-rs refuses to read the table")
    return tuple(found)


def _holds_local_time(arrow: pa.DataType) -> bool:
    if isinstance(arrow, pa.TimestampType):
        return arrow.tz is None
    return any(_holds_local_time(arrow.field(at).type) for at in range(arrow.num_fields))


def _refuse_missing(table: pa.Schema, rows: pa.Schema) -> None:
    missing = [field.name for field in table if field.name not in rows.names and not field.nullable]
    if missing:
        raise WriteError(f"the rows lack {', '.join(missing)}, which the table's schema requires; add the column(s)")


def _unify(table: Field, rows: Field) -> Field:
    if fits(rows.type, table.type):
        return table
    if _PROMOTIONS.get(table.type) == rows.type:
        return table.with_type(rows.type)
    raise ConfigError(
        f"column {table.name!r} is {rows.type} in the rows and {table.type} in the table; "
        f"cast the column to {table.type}, or write it under a new name"
    )


def fits(rows: pa.DataType, table: pa.DataType) -> bool:
    """
    Whether every value of type *rows* is also one of type *table*.

    Nullability is not looked at; fields of a struct may come in any order.
    """
    if isinstance(table, pa.StructType) and isinstance(rows, pa.StructType):
        names = {field.name: field.type for field in rows}
        return names.keys() == {field.name for field in table} and all(
            fits(names[field.name], field.type) for field in table
        )
    if isinstance(table, pa.ListType) and isinstance(rows, pa.ListType):
        return fits(rows.value_type, table.value_type)
    if isinstance(table, pa.MapType) and isinstance(rows, pa.MapType):
        return fits(rows.item_type, table.item_type)
    if isinstance(table, pa.Decimal128Type) and isinstance(rows, pa.Decimal128Type):
        return bool(rows.scale == table.scale and rows.precision <= table.precision)
    return bool(rows == table or _PROMOTIONS.get(rows) == table)

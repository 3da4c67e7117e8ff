"""
Decides whether rows fit a table's schema: as it is, by widening it, or not at all.

Allowed are new columns (always nullable and at the end, because older files do not have them), and at the top level int
to long and float to double. The nullability of existing columns never changes; `conform` checks that the values of new
rows respect it.

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
    The schema that a commit writes.

    Args:
        text: Avro text for ``extraMetadata.schema`` of the commit, without meta columns.
        schema: The same as storage schema.
        added: Names of new columns.
        promoted: Names of columns whose type was widened.
        cautions: Sentences about new columns that some readers of the table do not support.
    """

    text: str
    schema: pa.Schema
    added: tuple[str, ...] = ()
    promoted: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()


def resolve_schema(table_text: str | None, incoming: pa.Schema, table_name: str) -> ResolvedSchema:
    """
    Return the schema with which rows of *incoming* are written to a table.

    Args:
        table_text: Schema in the latest commit that has one; None for a table without commits. Kept unchanged unless
            columns are added or promoted.
        incoming: Schema of the rows, with columns in any order. Meta columns are ignored.
        table_name: ``hoodie.table.name``; used only for a new table.

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
            # Whatever the rows say: files that were written before have no values for it.
            columns.append(field.with_nullable(nullable=True))
            added.append(field.name)
    widened = storage_schema(pa.schema(columns))  # a new column may clash with a present one by case
    # Unchanged rows keep the text byte for byte, so other writers do not see a new schema.
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
            f"{zoneless}: timestamps without time zone; Apache Hudi before 1.1 and hudi-rs refuse to read tables with "
            "them. If they have to read this table, cast to timestamps in UTC"
        )
    if foreign:
        found.append(f"{foreign}: a name with letters beyond ASCII; hudi-rs refuses to read tables with such names")
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
    Return whether every value of type *rows* can be stored as type *table*.

    Ignores nullability; fields of a struct may be in any order.
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

"""
Ordering fields of rows: columns, or fields of structs (``a.b``).

Source: Hudi 0.15.0 to 1.1.1 ``HoodieAvroUtils.getNestedFieldVal``, ``OrderingValues``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from hudi_py.errors import UnsupportedTable
from hudi_py.formats.arrow_types import Array, Field, compute


def ordering_field(schema: pa.Schema, name: str) -> Field | None:
    """
    The field with the ordering values, under its whole name; None if the table lacks it.

    Args:
        schema: All columns of the table.
        name: As in the table's properties; a column whose name has a dot goes before a field of a struct.
    """
    if name in schema.names:
        return schema.field(name).with_nullable(nullable=True)
    root, *path = name.split(".")
    if not path or root not in schema.names:
        return None
    arrow = schema.field(root).type
    for each in path:
        if not isinstance(arrow, pa.StructType) or arrow.get_field_index(each) < 0:
            return None
        arrow = arrow.field(each).type
    return pa.field(name, arrow)


def ordering_columns(schema: pa.Schema, fields: Iterable[Field]) -> tuple[Field, ...]:
    """The columns that hold the values of *fields*, each once, all nullable."""
    names = dict.fromkeys(field.name if field.name in schema.names else field.name.split(".")[0] for field in fields)
    return tuple(schema.field(name).with_nullable(nullable=True) for name in names)


def ordering_values(rows: pa.RecordBatch, field: Field) -> Array:
    """The values of one ordering field; null also where a struct around it is null."""
    if field.name in rows.schema.names:
        return rows.column(field.name)
    root, *path = field.name.split(".")
    found: Any = rows.column(root)
    for each in path:
        found = compute.struct_field(found, each)
    values: Array = found
    return values


def sequence_parts(texts: Array) -> list[Array]:
    """
    Return the two numbers of positions in a log of MySQL, ``FILE.POSITION``; null where the text is.

    Raises:
        UnsupportedTable: A text is not of this form.
    """
    parts: Any = compute.split_pattern(texts.cast(pa.string()), ".")
    try:
        return [compute.list_element(parts, at).cast(pa.int64()) for at in (0, 1)]
    except pa.ArrowInvalid as error:
        raise UnsupportedTable(
            f"rows are ordered by texts that are not FILE.POSITION ({error}); read the table with Apache Hudi, or its "
            "base files alone (read-optimized)"
        ) from error

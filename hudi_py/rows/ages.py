"""
Which columns and types base files of different ages hold. Pure.

Spark 3.5 reads a column in the type it was written in or not at all, so that files from before a widening have to be
read apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from hudi_py.model.files import BaseFile

_WIDENED: Final = frozenset({pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.date32()})


def by_stored_schema(
    files: Sequence[tuple[str, BaseFile]], schema: pa.Schema, stored: Callable[[str, BaseFile], pa.Schema]
) -> list[tuple[pa.Schema, list[tuple[str, BaseFile]]]]:
    """
    Group files by the schema to read them with: *schema* in the types that they were written in.

    A table's types only grow, so what two instants have in common all between them have too: few files are asked.

    Args:
        files: Partition path and base file.
        schema: Columns of the table.
        stored: Schema of one file; called for a few.
    """
    ordered = sorted(files, key=lambda each: each[1].instant_time)
    found: dict[pa.Schema, list[tuple[str, BaseFile]]] = {}
    known: dict[str, pa.Schema] = {}

    def schema_at(position: int) -> pa.Schema:
        partition, base = ordered[position]
        if base.instant_time not in known:
            known[base.instant_time] = stored(partition, base)
        return known[base.instant_time]

    spans = [(0, len(ordered) - 1)] if ordered else []
    while spans:
        first, last = spans.pop()
        if _common(schema_at(first), schema) != _common(schema_at(last), schema):
            middle = (first + last) // 2
            spans += [(first, middle), (middle + 1, last)]
            continue
        found.setdefault(as_stored(schema, schema_at(first)), []).extend(ordered[first : last + 1])
    return list(found.items())


def _common(stored: pa.Schema, schema: pa.Schema) -> dict[str, pa.DataType]:
    """What a file holds of the table's columns."""
    return {name: stored.field(name).type for name in stored.names if name in schema.names}


def as_stored(schema: pa.Schema, stored: pa.Schema) -> pa.Schema:
    """The columns of *schema* in the types of a file; those that it lacks as they are."""
    return pa.schema(
        field.with_type(_stored_type(field.type, stored.field(field.name).type))
        if field.name in stored.names
        else field
        for field in schema
    )


def _stored_type(table: pa.DataType, stored: pa.DataType) -> pa.DataType:
    if isinstance(table, pa.StructType) and isinstance(stored, pa.StructType):
        inside = {field.name: field.type for field in stored}
        return pa.struct(
            field.with_type(_stored_type(field.type, inside.get(field.name, field.type))) for field in table
        )
    if isinstance(table, pa.ListType) and isinstance(stored, pa.ListType):
        element = table.value_field
        return pa.list_(element.with_type(_stored_type(element.type, stored.value_type)))
    if isinstance(table, pa.MapType) and isinstance(stored, pa.MapType):
        make: Any = pa.map_  # the stubs know types only, but a field is what carries "not null"
        kept: pa.DataType = make(
            table.key_type, table.item_field.with_type(_stored_type(table.item_type, stored.item_type))
        )
        return kept
    return stored if stored in _WIDENED or pa.types.is_decimal128(stored) else table

"""
Groups base files by the column types that they were written with. Pure.

Spark 3.5 can read a column only in the type in which it was written, so files from before a type was widened have to be
read separately.
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
    Group files by the schema to read them with: the columns of *schema* in the types of the files.

    A table's types only get wider. So if two instants have the same types, all instants between them have too, and few
    files have to be opened.

    Args:
        files: Partition path and base file.
        schema: Columns of the table.
        stored: Returns the schema of one file; called for few files.
    """
    ordered = sorted(files, key=lambda each: each[1].instant_time)
    found: dict[pa.Schema, list[tuple[str, BaseFile]]] = {}
    known: dict[str, pa.Schema] = {}

    def schema_at(position: int) -> pa.Schema:
        partition, base = ordered[position]
        if base.instant_time not in known:
            known[base.instant_time] = stored(partition, base)
        return known[base.instant_time]

    # Halve spans of time until the first and the last file of each have the same types.
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
    """The table's columns that a file has, with their types in the file."""
    return {name: stored.field(name).type for name in stored.names if name in schema.names}


def as_stored(schema: pa.Schema, stored: pa.Schema) -> pa.Schema:
    """
    The columns of *schema* in the types of a file; columns that the file lacks keep their type.

    Fields that its structs lack are left out: Spark 3.5 takes a struct for null of which it is asked for no other ones.
    """
    return pa.schema(
        field.with_type(_stored_type(field.type, stored.field(field.name).type))
        if field.name in stored.names
        else field
        for field in schema
    )


def _stored_type(table: pa.DataType, stored: pa.DataType) -> pa.DataType:
    if isinstance(table, pa.StructType) and isinstance(stored, pa.StructType):
        inside = {field.name: field.type for field in stored}
        held = [field for field in table if field.name in inside]
        return pa.struct(field.with_type(_stored_type(field.type, inside[field.name])) for field in held)
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

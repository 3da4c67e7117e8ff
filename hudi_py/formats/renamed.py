"""Gives the columns of rows that an older file stores the names of today, at any depth."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from hudi_py.formats.arrow_types import Array
from hudi_py.formats.conform import entries_of, list_of, map_of, values_of
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.model.moved import StoredNames

_KEPT: Final = frozenset({*META_COLUMNS, "_hoodie_operation"})
"""Columns of Hudi itself, which nobody renames or drops."""


def name_today(stored: str, moved: StoredNames) -> str | None:
    """Return what a column of a file is called today; None if it was dropped."""
    return stored if stored in _KEPT else moved.names.get(stored)


def stored_name(today: str, moved: StoredNames) -> str | None:
    """Return what a column of today is called in a file; None if the file lacks it."""
    if today in _KEPT:
        return today
    return next((stored for stored, name in moved.names.items() if name == today), None)


def renamed_batch(batch: pa.RecordBatch, moved: StoredNames) -> pa.RecordBatch:
    """
    Return the rows with the columns that are still there, under their names of today.

    Args:
        batch: Rows as a file stores them.
        moved: Where its columns are.
    """
    left = [(name, today) for name in batch.schema.names if (today := name_today(name, moved)) is not None]
    # Selected first: of a batch without columns nothing but this keeps the number of rows.
    batch = batch.select([name for name, _ in left])
    for position, (name, today) in enumerate(left):
        field, inside = batch.schema.field(position), moved.inside.get(name)
        if inside is None and today == name:
            continue
        column = batch.column(position) if inside is None else _renamed(batch.column(position), inside)
        batch = batch.set_column(position, pa.field(today, column.type, field.nullable), column)
    return batch


def renamed_schema(schema: pa.Schema, moved: StoredNames) -> pa.Schema:
    """Return the columns that `renamed_batch` makes of rows of *schema*."""
    nothing: Any = [pa.nulls(0, field.type) for field in schema]
    return renamed_batch(pa.RecordBatch.from_arrays(nothing, schema=schema), moved).schema


def _renamed(array: Any, moved: StoredNames) -> Array:
    """Values of one column, with the fields below it renamed."""
    if isinstance(array, pa.StructArray):
        fields, children = [], []
        for field in array.type:
            today, inside = moved.names.get(field.name), moved.inside.get(field.name)
            if today is None:
                continue
            child = array.field(array.type.get_field_index(field.name))
            child = child if inside is None else _renamed(child, inside)
            fields.append(pa.field(today, child.type, field.nullable))
            children.append(child)
        if not children:  # all fields were dropped; a struct without any has no length
            return pa.nulls(len(array), pa.struct([]))
        make: Any = pa.StructArray.from_arrays
        struct: Array = make(children, fields=fields, mask=array.is_null())
        return struct
    if isinstance(array, pa.MapArray):
        item: Any = array.type.item_field
        pairs: Any = array.cast(entries_of(array.type))
        values: Any = values_of(pairs)
        new = _below(values.field(1), "value", moved)
        arrow = pa.map_(array.type.key_type, item.with_type(new.type))
        both = pa.StructArray.from_arrays([values.field(0), new], fields=list(entries_of(arrow).value_type))
        return map_of(list_of(pairs, both, entries_of(arrow)), arrow)
    if isinstance(array, pa.LargeListArray):
        array = array.cast(pa.list_(array.type.value_field))
    if isinstance(array, pa.ListArray):
        new = _below(values_of(array), "element", moved)
        return list_of(array, new, pa.list_(array.type.value_field.with_type(new.type)))
    kept: Array = array
    return kept


def _below(values: Any, name: str, moved: StoredNames) -> Array:
    inside = moved.inside.get(name)
    kept: Array = values if inside is None else _renamed(values, inside)
    return kept

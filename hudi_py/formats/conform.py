"""
Converts rows of any accepted Arrow schema to the storage schema, and checks their values.

Used for rows that users write, and (`hudi_py.formats.stored_values`) for rows of older files, whose lists, nullability
and types may differ from the table's current schema.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa

from hudi_py.errors import WriteError
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.formats.required_values import count_missing, refuse_missing, requires_values
from hudi_py.model.words import counted

Convert: TypeAlias = Callable[[Array, pa.DataType, str], Array]
"""Converts values that are not nested to another type; the text is the column's name for errors."""


def cast_exactly(array: Array, target: pa.DataType, path: str) -> Array:
    """
    A `Convert` that changes no value.

    Raises:
        WriteError: A value does not fit.
    """
    try:
        cast: Array = array.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise WriteError(f"column {path!r}: {array.type} cannot be converted to {target}: {error}") from error
    return cast


def conform_batch(batch: pa.RecordBatch, schema: pa.Schema, convert: Convert = cast_exactly) -> pa.RecordBatch:
    """
    Return the columns of *schema*, in its order, cast to its types; other columns are dropped.

    Args:
        batch: Rows; columns are matched by name. Missing nullable columns are filled with null.
        schema: A storage schema, with or without meta columns in front.
        convert: Converts values of another type.

    Raises:
        WriteError: A value does not fit its type, or is null where the schema has no nulls.
    """
    columns: list[Array] = []
    required = [field for field in schema if requires_values(field)]
    # The usual case; one comparison is cheaper than one for each column.
    if not required and batch.schema.equals(schema):
        return pa.RecordBatch.from_arrays(batch.columns, schema=schema)
    for field in schema:
        position = batch.schema.get_field_index(field.name)
        column: Array
        if position >= 0:
            column = conform_array(batch.column(position), field.type, field.name, convert)
        else:
            column = pa.nulls(batch.num_rows, field.type)
        columns.append(column)
    conformed = pa.RecordBatch.from_arrays(columns, schema=schema)
    for field in required:
        refuse_missing(dict(count_missing(conformed.column(field.name), field)))
    return conformed


def conform_array(array: Array, target: pa.DataType, path: str, convert: Convert = cast_exactly) -> Array:
    """
    Cast one column. Whether a value is null where the target has none is not looked at.

    Args:
        array: Values of a type from which `hudi_py.formats.schema_evolution` makes *target*.
        target: A storage type.
        path: The column's name for errors, dotted when nested.
        convert: As for `conform_batch`.

    Raises:
        WriteError: As for `conform_batch`.
    """
    # The usual case, and it copies nothing.
    if array.type == target:
        return array
    if isinstance(target, pa.StructType) and isinstance(array, pa.StructArray):
        return _conform_struct(array, target, path, convert)
    if isinstance(target, pa.MapType) and isinstance(array, pa.MapArray):
        return map_of(_conform_list(array.cast(entries_of(array.type)), entries_of(target), path, convert), target)
    if isinstance(target, pa.ListType) and isinstance(array, pa.LargeListArray):
        array = array.cast(pa.list_(array.type.value_field))
    if isinstance(target, pa.ListType) and isinstance(array, pa.ListArray):
        return _conform_list(array, target, path, convert)
    return convert(array, target, path)


def refuse_null_elements(batch: pa.RecordBatch) -> None:
    """
    Raise if a list contains a null element, at any depth.

    Hudi's default Avro writer cannot write such a list. If one were stored, other writers could not upsert its file
    group any more.

    Raises:
        WriteError: Names the column, and says what to do.
    """
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if pa.types.is_nested(field.type):
            _refuse_elements(column, field.name)


def _refuse_elements(array: Array, path: str) -> None:
    if isinstance(array, pa.StructArray):
        for field, child in zip(array.type, array.flatten(), strict=True):
            if pa.types.is_nested(field.type):
                _refuse_elements(child, f"{path}.{field.name}")
    elif isinstance(array, pa.MapArray):
        if pa.types.is_nested(array.type.item_type):
            entries: Any = array.cast(entries_of(array.type))
            entries = entries.flatten()
            _refuse_elements(entries.flatten()[1], f"{path}.value")
    elif isinstance(array, pa.ListArray):
        elements = array.flatten()
        if elements.null_count:
            raise WriteError(
                f"column {path!r} has {counted(elements.null_count, 'null element')} in its lists, which Hudi's own "
                "writers cannot copy; remove them (filter), or wrap the elements in a struct"
            )
        if pa.types.is_nested(array.type.value_type):
            _refuse_elements(elements, f"{path}.element")


def _conform_struct(array: Any, target: pa.StructType, path: str, convert: Convert) -> Array:
    # A struct that is null has no fields that could lack a value, so its own nulls excuse theirs. Without any, there is
    # no mask: PyArrow before 26 ends the process over entries of a map that have one, even if it is empty.
    mask = array.is_null() if array.null_count else None
    # What a null struct has in its fields is no value, and may be anything: other libraries leave values there.
    fields = [array.field(at) for at in range(len(array.type))] if mask is None else array.flatten()
    children = []
    for field in target:
        name = f"{path}.{field.name}"
        position = array.type.get_field_index(field.name)
        child: Array
        if position >= 0:
            child = conform_array(fields[position], field.type, name, convert)
        else:
            child = pa.nulls(len(array), field.type)
        children.append(child)
    make: Any = pa.StructArray.from_arrays
    result: Array = make(children, fields=list(target), mask=mask)
    return result


def _conform_list(array: Any, target: Any, path: str, convert: Convert) -> Array:
    """Rebuild a list array around its conformed elements; the result has no offset of its own."""
    element = target.value_field
    array = _without_hidden(array)
    return list_of(array, conform_array(values_of(array), element.type, f"{path}.element", convert), target)


def _without_hidden(array: Any) -> Any:
    """Return the same lists; a null one has no elements, which are no values, and may be anything."""
    is_whole = not array.null_count or len(array.flatten()) == len(values_of(array))
    return array if is_whole else lists_in_turn(array)


def lists_in_turn(array: Any) -> Array:
    """Return the same lists as a list array whose elements follow one another, without those of null lists."""
    lengths = compute.fill_null(compute.list_value_length(array), 0)
    ends: Any = compute.cumulative_sum(lengths).cast(pa.int32())
    make: Any = pa.ListArray.from_arrays
    found: Array = make(
        pa.concat_arrays([pa.array([0], pa.int32()), ends]),
        array.flatten(),
        type=pa.list_(array.type.value_field),
        mask=array.is_null() if array.null_count else None,
    )
    return found


def list_of(array: Any, values: Array, target: pa.DataType) -> Array:
    """Return the lists of *array* around other elements, which take the places of `values_of`."""
    # A slice keeps the offsets of the array that it was cut from.
    offsets = compute.subtract(array.offsets, array.offsets[0])
    make: Any = pa.ListArray.from_arrays
    result: Array = make(offsets, values, type=target, mask=array.is_null() if array.null_count else None)
    return result


def map_of(entries: Any, target: pa.DataType) -> Array:
    """Return lists of pairs as maps: in memory both are the same, so nothing is copied."""
    make: Any = pa.MapArray.from_buffers
    result: Array = make(target, len(entries), entries.buffers()[:2], entries.null_count, 0, [values_of(entries)])
    return result


def values_of(array: Any) -> Array:
    """Return the elements from the first to the last list of a (possibly sliced) list array, without copying."""
    start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
    values: Array = array.values.slice(start, end - start)
    return values


def entries_of(arrow: Any) -> Any:
    """Return a map's type as a list of structs: Arrow can slice and flatten lists, but not maps."""
    return pa.list_(pa.struct([pa.field("key", arrow.key_type, nullable=False), arrow.item_field.with_name("value")]))

"""
Types in which the columns of Python programs can be stored, at any depth, where that loses nothing.

Categories and runs become their values, times get microseconds, unsigned integers the next larger signed type (64 bits
stay), lists and bytes of a fixed size and views plain ones, types of extensions the type beneath. Values that would
change are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from hudi_py.errors import WriteError
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.formats.conform import conform_array, lists_in_turn
from hudi_py.formats.map_keys import refuse_repeated_keys
from hudi_py.formats.texts import refuse_broken_texts

_WIDER: Final[Mapping[pa.DataType, pa.DataType]] = {
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),  # by value, as times: nothing in a Hudi table is larger and still an integer
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.string_view(): pa.string(),  # Arrow sorts and takes no views yet
    pa.binary_view(): pa.binary(),
}
_DIGITS_MAX: Final = 38
_LISTS: Final = (pa.ListType, pa.FixedSizeListType, pa.ListViewType, pa.LargeListViewType)


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """Return the types that `stored_types` gives the columns of a schema."""
    return pa.schema([field.with_type(_stored_type_of(field)) for field in schema])


def stored_types(table: pa.Table) -> pa.Table:
    """
    Return the rows with types that can be stored; columns that have no such type stay as they are.

    Raises:
        WriteError: A value would be changed, such as a time with nanoseconds, a text is none, or a map has a key twice.
    """
    for position, field in enumerate(table.schema):
        wanted = _stored_type_of(field)
        if wanted != field.type:
            chunks = [_converted(chunk, wanted, field.name) for chunk in table.column(position).chunks]
            make: Any = pa.chunked_array
            column = make(chunks, type=wanted)  # there may be no chunks that say it
            table = table.set_column(position, field.with_type(wanted), column)
        # Only now: what is hidden below nulls may be anything, and is gone.
        refuse_broken_texts(table.column(position), field.name)
        refuse_repeated_keys(table.column(position), field.name)
    return table


def _stored_type_of(field: Any) -> pa.DataType:
    try:
        return _stored_type(field.type)
    except RecursionError as error:
        raise WriteError(f"column {field.name!r} is nested too deeply; nothing was committed") from error


def _stored_type(arrow: Any) -> pa.DataType:
    if isinstance(arrow, pa.DictionaryType | pa.RunEndEncodedType):
        value_type: pa.DataType = arrow.value_type
        return _stored_type(value_type)
    if isinstance(arrow, pa.BaseExtensionType):
        return pa.bool_() if isinstance(arrow, pa.Bool8Type) else _stored_type(arrow.storage_type)
    if isinstance(arrow, pa.TimestampType) and arrow.unit != "us":
        return pa.timestamp("us", arrow.tz)
    if pa.types.is_decimal(arrow):
        return _stored_decimal(arrow)
    if isinstance(arrow, pa.FixedSizeBinaryType):  # decimals are some, too
        return pa.binary()
    if isinstance(arrow, pa.StructType):
        return pa.struct([field.with_type(_stored_type(field.type)) for field in arrow])
    make_map: Any = pa.map_
    if isinstance(arrow, pa.MapType):
        mapped: pa.DataType = make_map(
            arrow.key_field.with_type(_stored_type(arrow.key_type)), _element(arrow.item_field)
        )
        return mapped
    if isinstance(arrow, _LISTS):
        return pa.list_(_element(arrow.value_field))
    if isinstance(arrow, pa.LargeListType):
        element = _element(arrow.value_field)
        # Those of plain values are cut by whoever writes them.
        return arrow if element == arrow.value_field else pa.list_(element)
    return _WIDER.get(arrow, arrow)


def _stored_decimal(arrow: Any) -> pa.DataType:
    # Digits in front of the point that a negative scale leaves out count.
    digits = arrow.precision - min(arrow.scale, 0)
    if digits > _DIGITS_MAX:
        kept: pa.DataType = arrow
        return kept
    return pa.decimal128(digits, max(arrow.scale, 0))


def _element(field: Any) -> Any:
    return field.with_type(_stored_type(field.type))


def _converted(array: Any, wanted: Any, path: str) -> Array:
    """
    Raises:
        WriteError: A value would be changed.
    """
    try:
        if isinstance(array, pa.DictionaryArray):
            values: Any = _converted(array.dictionary, wanted, path)
            taken: Array = values.take(array.indices)
            return taken
        if isinstance(array, pa.RunEndEncodedArray):
            return _converted(compute.run_end_decode(array), wanted, path)
        if isinstance(array, pa.ExtensionArray):
            return _converted(array.storage, wanted, path)
        if isinstance(array, pa.ListViewArray | pa.LargeListViewArray):
            array = lists_in_turn(array)  # Arrow 26 loses the end of them where one is null
        if isinstance(wanted, pa.ListType) and not isinstance(array, pa.ListArray):
            # With the elements that it has; those are converted next, one by one.
            array = array.cast(pa.list_(array.type.value_field))
        if isinstance(wanted, pa.ListType | pa.StructType | pa.MapType) and array.type != wanted:
            return conform_array(array, wanted, path, _converted)
        cast: Array = array.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise WriteError(f"column {path!r}: {array.type} cannot be stored as {wanted}: {error}") from error
    return cast

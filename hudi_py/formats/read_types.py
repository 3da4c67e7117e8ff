"""
Column types that other writers give a table and hudi_py reads, in addition to those that it writes.

A vector (since Hudi 1.2) is stored as the bytes of its numbers, little-endian, and shown as a list, as by Apache Hudi;
a blob is a struct whose kind is an enum, shown as text.

Source: Hudi 1.2.0 ``HoodieSchema``, ``VectorConversionUtils``; Avro 1.11 specification, logical types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from hudi_py.errors import UnsupportedTable
from hudi_py.formats.arrow_types import Array, Field
from hudi_py.formats.record_schema import AvroTypes

_VECTOR: Final = {b"hudi.type": b"VECTOR"}
"""Marks the element of a list that files store as bytes."""
_NUMBERS: Final[Mapping[str, pa.DataType]] = {"FLOAT": pa.float32(), "DOUBLE": pa.float64(), "INT8": pa.int8()}
_OTHERS: Final[Mapping[tuple[str, str | None], pa.DataType]] = {
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("enum", None): pa.string(),
}


class ReadTypes(AvroTypes):
    """The types of `AvroTypes`, and those that are only read."""

    def other(self, avro: Mapping[str, Any], kind: str, logical: str | None, path: str) -> pa.DataType:
        """
        Raises:
            UnsupportedTable: The type is not known here either.
        """
        if (kind, logical) == ("fixed", "vector"):
            number = _NUMBERS.get(avro["elementType"])
            if number is None or avro.get("storageBacking", "FIXED_BYTES") != "FIXED_BYTES":
                raise UnsupportedTable(
                    f"column {path!r} is a vector of {avro['elementType']} stored as {avro.get('storageBacking')}, "
                    "which this version of hudi_py does not know; upgrade it, or leave the column out"
                )
            return pa.list_(pa.field("element", number, nullable=False, metadata=_VECTOR))
        if (kind, logical) == ("bytes", "decimal"):
            return pa.decimal128(avro["precision"], avro.get("scale", 0))
        if kind == "fixed":
            return pa.binary()
        known = _OTHERS.get((kind, logical))
        if known is None and logical:  # to readers that do not know it, a logical type is the type beneath it
            return self._type({**avro, "logicalType": None}, "", path)
        return known or super().other(avro, kind, logical, path)


def has_vectors(field: Field) -> bool:
    """Whether a column, or a field of it, is stored in other bytes than Parquet's own lists."""
    arrow: Any = field.type
    if isinstance(arrow, pa.StructType):
        return any(map(has_vectors, arrow))
    if isinstance(arrow, pa.MapType):
        return has_vectors(arrow.item_field)
    if not isinstance(arrow, pa.ListType):
        return False
    return (arrow.value_field.metadata or {}).items() >= _VECTOR.items() or has_vectors(arrow.value_field)


def lists_of_vectors(array: Any, target: Any) -> Array:
    """
    Convert vectors to lists.

    Args:
        array: Shape (n,), each value the bytes of d numbers, all of the same d.
        target: A list of numbers of fixed width.

    Raises:
        ValueError: The number of bytes is not a multiple of the size of one number.
    """
    size, number = array.type.byte_width, target.value_type
    dimension, rest = divmod(size, number.bit_width // 8)
    if rest:
        raise ValueError(f"vectors of {size} bytes hold no whole number of {number} values")
    count = len(array) * dimension
    values = pa.Array.from_buffers(number, count, [None, array.buffers()[1]], offset=array.offset * dimension)
    offsets = pa.array(range(0, count + 1, dimension) if dimension else [0] * (len(array) + 1), pa.int32())
    make: Any = pa.ListArray.from_arrays
    result: Array = make(offsets, values, type=target, mask=array.is_null() if array.null_count else None)
    return result

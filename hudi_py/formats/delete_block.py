"""
Content of a delete block in a log file: the keys of deleted records.

Source: rules/data-files 9.2; Hudi 0.15.0 to 1.1.1 ``HoodieDeleteBlock``, ``HoodieDeleteRecordList.avsc``.
"""

from __future__ import annotations

import functools
import io
import struct
from collections.abc import Iterable
from decimal import Context, Decimal
from typing import Any, Final, NamedTuple

import fastavro

from hudi_py.errors import CorruptMetadata, UnsupportedTable

_VERSION: Final = 3
_SERIALIZED_BY_JAVA: Final = (1, 2)
_HEAD: Final = struct.Struct(">ii")
_WRAPPED: Final = (
    *(("boolean", "boolean"), ("int", "int"), ("long", "long"), ("float", "float"), ("double", "double")),
    *(("bytes", "bytes"), ("string", "string"), ("date", "int"), ("decimal", "bytes"), ("time", "long")),
    *(("timestamp", "long"), ("local_date", "int")),
)
"""Kinds of ordering values and the types in their wrappers, in the order of the union, which begins with null."""
_LISTED_ONLY: Final = "local_date"  # a wrapper that occurs in lists only
_DECIMAL_SCALE: Final = 15
_EXACT: Final = Context(prec=80)
_PREFIX: Final = "of_"  # without it the wrappers would have the names of primitive types, and be taken for them
_LIST: Final = "of_list"
_NO_ORDERING: Final = (f"{_PREFIX}int", {"value": 0})


class OrderingValue(NamedTuple):
    """
    One ordering value: its kind, see `_WRAPPED`, and its value as number, text or bytes.

    Dates are days, times microseconds since 1970; decimals are Python's.
    """

    kind: str
    value: Any


class DeletedKey(NamedTuple):
    """
    One deleted record.

    Args:
        record_key: Key of the record.
        partition_path: Partition of the record, according to the block.
        ordering: One value for each ordering field; empty if the delete wins whatever the record's values are: for
            this, Hudi writes null, or the int 0.
    """

    record_key: str
    partition_path: str | None
    ordering: tuple[OrderingValue, ...] = ()


def decode_delete_block(content: bytes, source: str) -> tuple[DeletedKey, ...]:
    """
    The deleted records in a delete block.

    Raises:
        CorruptMetadata: The block does not decode, or a record has no key.
        UnsupportedTable: The block was written by Hudi before 0.13, serialized by Java.
    """
    try:
        version, length = _HEAD.unpack_from(content)
        # Java's own serialization can only be read with its classes.
        if version in _SERIALIZED_BY_JAVA:
            raise UnsupportedTable(
                f"{source}: a delete block of version {version}, as Apache Hudi before 0.13 wrote it; compact the "
                "table with Apache Hudi"
            )
        if version != _VERSION or length != len(content) - _HEAD.size:
            raise ValueError(f"version {version}, {length} of {len(content) - _HEAD.size} bytes")
        stream = io.BytesIO(content[_HEAD.size :])
        record: Any = fastavro.schemaless_reader(stream, _schema(), None, return_record_name=True)
        if stream.tell() != length:  # a changed byte made the list shorter: rows that were deleted would be back
            raise ValueError("the records do not fill the block")
        found = tuple(
            DeletedKey(each["recordKey"], each["partitionPath"], _ordering(each["orderingVal"]))
            for each in record["deleteRecordList"]
        )
        if any(each.record_key is None for each in found):
            raise ValueError("a record has no key")
    except UnsupportedTable:
        raise
    except Exception as error:  # fastavro fails in many ways on bytes that are not a record
        raise CorruptMetadata(f"{source}: a delete block does not decode: {error!r}") from error
    return found


def encode_delete_block(deleted: Iterable[DeletedKey]) -> bytes:
    """
    Encode deleted records as Apache Hudi does; the inverse of `decode_delete_block`.

    A delete without ordering values gets the int 0: with null, Hudi 0.15 could not read the table.
    """
    records = [
        {"recordKey": each.record_key, "partitionPath": each.partition_path, "orderingVal": _wrapped(each.ordering)}
        for each in deleted
    ]
    out = io.BytesIO()
    fastavro.schemaless_writer(out, _schema(), {"deleteRecordList": records})
    content = out.getvalue()
    return _HEAD.pack(_VERSION, len(content)) + content


def _wrapped(ordering: tuple[OrderingValue, ...]) -> Any:
    if not ordering:
        return _NO_ORDERING
    values = [(_PREFIX + kind, {"value": _unscaled(value) if kind == "decimal" else value}) for kind, value in ordering]
    return values[0] if len(values) == 1 else (_LIST, {"wrappedValues": values})


def _unscaled(value: Decimal) -> bytes:
    # In a context of its own: the default one rounds to 28 digits, and decimals here have up to 38.
    number = int(value.scaleb(_DECIMAL_SCALE, _EXACT))
    return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)


def _ordering(wrapped: Any) -> tuple[OrderingValue, ...]:
    if wrapped is None:
        return ()
    name, record = wrapped
    if name != _LIST:
        found = (_value(name, record),)
        return () if found == (OrderingValue("int", 0),) else found  # Hudi's word for "no ordering value"
    return tuple(OrderingValue("int", 0) if each is None else _value(*each) for each in record["wrappedValues"] or ())


def _value(name: str, record: Any) -> OrderingValue:
    kind, value = name.removeprefix(_PREFIX), record["value"]
    if kind == "decimal":
        value = Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-_DECIMAL_SCALE)
    return OrderingValue(kind, value)


@functools.cache
def _schema() -> Any:
    wrappers: list[Any] = [
        {"type": "record", "name": _PREFIX + kind, "fields": [{"name": "value", "type": held}]}
        for kind, held in _WRAPPED
        if kind != _LISTED_ONLY
    ]
    names = [wrapper["name"] for wrapper in wrappers]
    alone = {
        "type": "record",
        "name": _PREFIX + _LISTED_ONLY,
        "fields": [{"name": "value", "type": dict(_WRAPPED)[_LISTED_ONLY]}],
    }
    listed_values = {"type": "array", "items": ["null", *names, alone]}
    of_several = {
        "type": "record",
        "name": _LIST,
        "fields": [{"name": "wrappedValues", "type": ["null", listed_values]}],
    }
    fields = [
        {"name": "recordKey", "type": ["null", "string"]},
        {"name": "partitionPath", "type": ["null", "string"]},
        {"name": "orderingVal", "type": ["null", *wrappers, of_several]},
    ]
    record = {"type": "record", "name": "HoodieDeleteRecord", "fields": fields}
    listed = {"name": "deleteRecordList", "type": {"type": "array", "items": record}}
    return fastavro.parse_schema({"type": "record", "name": "HoodieDeleteRecordList", "fields": [listed]})

"""
Content of a delete block in a log file: the keys that go.

Source: rules/data-files 9.2; Hudi 0.15.0 to 1.1.1 ``HoodieDeleteBlock``, ``HoodieDeleteRecordList.avsc``.
"""

from __future__ import annotations

import functools
import io
import struct
from typing import Any, Final, NamedTuple

import fastavro

from hudi_py.errors import CorruptMetadata

_VERSION: Final = 3
_HEAD: Final = struct.Struct(">ii")
_WRAPPED: Final = (
    *("boolean", "int", "long", "float", "double", "bytes", "string"),
    *("int", "bytes", "long", "long"),  # date, decimal, time, timestamp
)
"""What the wrappers of an ordering value hold, in the order of their union, behind null."""


class DeletedKey(NamedTuple):
    """One record that goes."""

    record_key: str
    partition_path: str | None


def decode_delete_block(content: bytes, source: str) -> tuple[DeletedKey, ...]:
    """
    The records that a delete block names.

    Raises:
        CorruptMetadata: It does not decode, or one of them has no key.
    """
    try:
        version, length = _HEAD.unpack_from(content)
        if version != _VERSION or length != len(content) - _HEAD.size:
            raise ValueError(f"version {version}, {length} of {len(content) - _HEAD.size} bytes")
        record: Any = fastavro.schemaless_reader(io.BytesIO(content[_HEAD.size :]), _schema(), None)
        found = tuple(DeletedKey(each["recordKey"], each["partitionPath"]) for each in record["deleteRecordList"])
        if any(each.record_key is None for each in found):
            raise ValueError("a record has no key")
    except Exception as error:  # fastavro fails in many ways on bytes that are no record
        raise CorruptMetadata(f"{source}: a delete block does not decode: {error!r}") from error
    return found


@functools.cache
def _schema() -> Any:
    wrappers = [
        {"type": "record", "name": f"Wrapper{number}", "fields": [{"name": "value", "type": kind}]}
        for number, kind in enumerate(_WRAPPED)
    ]
    fields = [
        {"name": "recordKey", "type": ["null", "string"]},
        {"name": "partitionPath", "type": ["null", "string"]},
        {"name": "orderingVal", "type": ["null", *wrappers]},
    ]
    record = {"type": "record", "name": "HoodieDeleteRecord", "fields": fields}
    listed = {"name": "deleteRecordList", "type": {"type": "array", "items": record}}
    return fastavro.parse_schema({"type": "record", "name": "HoodieDeleteRecordList", "fields": [listed]})

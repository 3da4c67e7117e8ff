"""
Names and sizes of the files that a record lists, in half the time that decoding every field takes.

A whole table is listed this way: a million files are in a few thousand records. The map of files is read by hand where
the writer's schema has it in the form that every release of Hudi writes; the fields before it are left to the Avro
library, those behind it are not read. For any other schema, and for a record that must be merged, there is
`hudi_py.mdt.records.decode_files`. Pure.

Source: Apache Avro 1.11 specification, binary encoding; Hudi 0.15.0 to 1.1.1 ``HoodieMetadata.avsc``.
"""

from __future__ import annotations

import functools
import io
import json
from typing import Any, Final, NamedTuple

import fastavro

from hudi_py.errors import CorruptMetadata
from hudi_py.mdt.records import check_type, decode_files, present

_FIELD: Final = "filesystemMetadata"
_VALUE_FIELDS: Final = [("size", "long"), ("isDeleted", "boolean")]
_LONG_BITS_MAX: Final = 64


class _Layout(NamedTuple):
    """What stands before the map, as a schema of its own; and the number of the map in its union."""

    head: Any
    branch: int


def decode_present(value: bytes, writer_schema: str, source: str) -> dict[str, int]:
    """
    `present` of `decode_files`: name to size in bytes of the files that the record lists as there.

    Args:
        value: Avro binary of a ``HoodieMetadataRecord``.
        writer_schema: The schema in the log block's header or the HFile's file info.
        source: Where it was read from, for messages.

    Raises:
        CorruptMetadata: As `decode_files`; what follows the files is not looked at.
    """
    layout = _layout(writer_schema)
    # Never guessed: a schema in another form goes the slow way.
    if layout is None:
        return present(decode_files(value, writer_schema, source))
    try:
        stream = io.BytesIO(value)
        head: Any = fastavro.schemaless_reader(stream, layout.head, None)
        branch, position = _long(value, stream.tell())
        files = _files(value, position) if branch == layout.branch else {}
    except Exception as error:  # fastavro fails in many ways on bytes that are not a record
        raise CorruptMetadata(f"{source}: a record of the metadata table does not decode: {error!r}") from error
    check_type(head["type"], source)
    return files


def _files(value: bytes, position: int) -> dict[str, int]:
    """The map at *position*: blocks with a count, the size in bytes if that is negative, and the entries."""
    files: dict[str, int] = {}
    total = len(value)
    while True:
        count, position = _long(value, position)
        if count == 0:
            return files
        if count < 0:
            count = -count
            _, position = _long(value, position)
        for _ in range(count):
            low, high = value[position], value[position + 1]
            if low & 0x80 and not (high & 0x80 or low & 1):  # `_long` of two bytes, which nearly every name takes
                length, position = (low & 0x7F | high << 7) >> 1, position + 2
            else:
                length, position = _long(value, position)
            end = position + length
            # Python would cut a slice that is too long, and a torn record would list a file with half a name.
            if not position <= end < total:
                raise ValueError(f"a name of {length} bytes at byte {position} of {total}")
            name = value[position:end].decode()
            size, position = _long(value, end)
            # The last entry of a name counts, as in the map that the Avro library would build.
            if value[position]:
                files.pop(name, None)
            else:
                files[name] = size
            position += 1


def _long(value: bytes, position: int) -> tuple[int, int]:
    """A number in zigzag form, seven bits a byte, and the position after it."""
    byte = value[position]
    position += 1
    number = byte & 0x7F
    shift = 7
    while byte & 0x80:
        # Damaged bytes could otherwise make a number of any length.
        if shift >= _LONG_BITS_MAX:
            raise ValueError(f"the number before byte {position} does not end")
        byte = value[position]
        position += 1
        number |= (byte & 0x7F) << shift
        shift += 7
    return (number >> 1) ^ -(number & 1), position


@functools.lru_cache(maxsize=16)
def _layout(text: str) -> _Layout | None:
    try:
        schema = json.loads(text)
        names = [field["name"] for field in schema["fields"]]
        at = names.index(_FIELD)
        if "type" not in names[:at]:
            return None
        union = schema["fields"][at]["type"]
        for number, branch in enumerate(union):
            if isinstance(branch, dict) and branch["type"] == "map":
                fields = [(field["name"], field["type"]) for field in branch["values"]["fields"]]
                if fields != _VALUE_FIELDS or not isinstance(union, list):
                    return None
                head = {"type": "record", "name": "Head", "fields": schema["fields"][:at]}
                return _Layout(fastavro.parse_schema(head), number)
    except (KeyError, TypeError, ValueError):  # whatever it is, the general way tells what is wrong with it
        return None
    return None

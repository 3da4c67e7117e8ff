r"""
Reads and writes Avro object container files, in the form that Hudi uses for instants.

Layout (rules/timeline 4.2)::

    "Obj\x01" | header map (avro.schema, rarely avro.codec or words of an application) | 16 bytes sync marker
    | block: object count, size in bytes, objects, sync marker | more blocks, in foreign files only

The header is parsed here, and schemas are cached by their text, because a timeline has thousands of small files with
the same few schemas; parsing them every time would take most of the time. fastavro decodes the objects.
"""

from __future__ import annotations

import functools
import io
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import attrs
import fastavro

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.bounds import SCHEMA_BYTES_MAX, check_items, check_schema, inflate

MAGIC: Final = b"Obj\x01"
SYNC_SIZE_BYTES: Final = 16


@attrs.frozen(slots=True)
class AvroFile:
    """
    Content of a container file.

    Args:
        schema_text: Schema of the writer, as in the header.
        sync: Sync marker, 16 bytes; the same record with the same marker gives the same bytes.
        records: One dict per object; Hudi's instants have exactly one.
        codec: ``null`` or ``deflate``.
        record_name: Name of the writer's top-level record, without its namespace.
        notes: Further entries of the header, added by an application; other readers ignore them.
    """

    schema_text: str
    sync: bytes
    records: tuple[dict[str, Any], ...]
    codec: str
    record_name: str
    notes: Mapping[str, bytes] = attrs.field(factory=dict)


class _Header(NamedTuple):
    schema_bytes: bytes
    codec: str
    notes: dict[str, bytes]
    sync: bytes
    end: int


class _Writer(NamedTuple):
    """A schema, parsed for fastavro."""

    text: str
    parsed: Any
    record_name: str


def notes_of_avro_file(data: bytes, source: str) -> Mapping[str, bytes]:
    """
    Return the further entries of the header, as `AvroFile` has them, without a look at the records.

    Raises:
        CorruptMetadata: The header is damaged.
    """
    return _parse_header(data, source).notes


def plain_record(data: bytes, source: str) -> tuple[bytes, int, int] | None:
    """
    Return the schema of the one record of a file as `encode_avro_file` makes it, where the record begins, and where it
    ends; None for any other form.

    Raises:
        CorruptMetadata: The header or the block is damaged.
    """
    header = _parse_header(data, source)
    count, position = parse_long(data, header.end, source)
    size, position = parse_long(data, position, source)
    if header.codec != "null" or count != 1 or position + size + SYNC_SIZE_BYTES != len(data):
        return None
    end = position + size
    return (header.schema_bytes, position, end) if data.endswith(header.sync) else None


def decode_avro_file(data: bytes, source: str, reader_schema: str | None = None) -> AvroFile:
    """
    Decode a whole container file.

    Args:
        data: The file's bytes.
        source: Where they come from, for messages.
        reader_schema: Resolve the records to this schema by name: missing fields get their defaults, unknown ones are
            dropped. None gives the records as written.

    Raises:
        CorruptMetadata: The bytes are not a complete container file, or do not resolve to *reader_schema*.

    Source: Avro 1.11 specification, "Object Container Files"; Hudi reads the same leniently (rules/timeline 4.2, 4.3).
    """
    header = _parse_header(data, source)
    writer = _foreign_writer(header.schema_bytes, source)
    reader = None
    if reader_schema is not None and reader_schema != writer.text:
        # Only where schemas differ, because resolving takes time for each record.
        reader = _writer(reader_schema.encode()).parsed
    records: list[dict[str, Any]] = []
    position = header.end
    while position < len(data):
        count, position = parse_long(data, position, source)
        size, position = parse_long(data, position, source)
        end = position + size
        if count < 0 or size < 0 or end + SYNC_SIZE_BYTES > len(data):
            raise _corrupt(data, source, position, f"an Avro block of {count} objects and {size} bytes does not fit")
        if data[end : end + SYNC_SIZE_BYTES] != header.sync:
            raise _corrupt(data, source, end, "the sync marker after an Avro block is wrong")
        payload = data[position:end]
        if header.codec == "deflate":
            payload = _inflate(payload, data, source, position)
        records += _decode_records(payload, count, writer, reader, f"{source} (block at byte {position})")
        position = end + SYNC_SIZE_BYTES
    if not records:
        raise _corrupt(data, source, position, f"the Avro file ends without a single {writer.record_name}")
    return AvroFile(writer.text, header.sync, tuple(records), header.codec, writer.record_name, header.notes)


def decode_record(body: bytes, schema_text: str, source: str) -> dict[str, Any]:
    """
    Decode one bare Avro record, as in log blocks.

    Raises:
        CorruptMetadata: The bytes are not exactly one record of that schema, or the schema does not parse.
    """
    return _decode_records(body, 1, _foreign_writer(schema_text.encode(), source), None, source)[0]


def encode_avro_file(
    schema_text: str, record: dict[str, Any], sync: bytes, notes: Mapping[str, bytes] | None = None
) -> bytes:
    """
    Encode one record as Hudi does: a header with ``avro.schema`` only, one block, one object.

    Args:
        schema_text: Goes into the header unchanged.
        record: Value of that schema.
        sync: Sync marker of 16 random bytes; an argument, because this module is pure.
        notes: Further entries of the header, see `AvroFile`; keys must not begin with ``avro.``, which Avro reserves.
    """
    return frame_record(schema_text, [encode_record(schema_text, record)], sync, notes)


def frame_record(
    schema_text: str, body: Sequence[bytes], sync: bytes, notes: Mapping[str, bytes] | None = None
) -> bytes:
    """Put one encoded record, given in pieces, into a container; the rest of `encode_avro_file`."""
    assert len(sync) == SYNC_SIZE_BYTES, sync
    header = {"avro.schema": schema_text.encode(), **(notes or {})}
    entries = [part for key, value in header.items() for text in (key.encode(), value) for part in _sized(text)]
    return b"".join(
        (
            MAGIC,
            format_long(len(header)),
            *entries,
            format_long(0),
            sync,
            format_long(1),
            format_long(sum(map(len, body))),
            *body,
            sync,
        )
    )


def encode_record(schema_text: str, record: dict[str, Any]) -> bytes:
    """Encode one bare record, the inverse of `decode_record`."""
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, _writer(schema_text.encode()).parsed, record)
    return stream.getvalue()


def _sized(text: bytes) -> tuple[bytes, bytes]:
    return format_long(len(text)), text


def _parse_header(data: bytes, source: str) -> _Header:
    if data[:4] != MAGIC:
        raise _corrupt(data, source, 0, "an Avro file should start with 'Obj' 01")
    schema_bytes, codec, position = None, b"null", 4
    notes: dict[str, bytes] = {}
    while True:
        count, position = parse_long(data, position, source)
        if count == 0:
            break
        if count < 0:  # then the size of the block in bytes follows
            count, (_, position) = -count, parse_long(data, position, source)
        for _ in range(count):  # a large count cannot loop for long: every round consumes bytes
            key, position = _parse_bytes(data, position, source)
            value, position = _parse_bytes(data, position, source)
            if key == b"avro.schema":
                schema_bytes = value
            elif key == b"avro.codec":
                codec = value
            # Kept for applications: savepoints of hudi_py have their name there.
            elif not key.startswith(b"avro."):
                notes[key.decode(errors="replace")] = value
    if schema_bytes is None:
        raise _corrupt(data, source, position, "the Avro header has no schema")
    if codec not in (b"null", b"deflate"):
        raise _corrupt(data, source, position, f"Avro codec {codec!r} is not supported")
    end = position + SYNC_SIZE_BYTES
    if end > len(data):
        raise _corrupt(data, source, position, "the Avro header is cut off in the sync marker")
    return _Header(schema_bytes, codec.decode(), notes, data[position:end], end)


def _decode_records(payload: bytes, count: int, writer: _Writer, reader: Any, source: str) -> list[dict[str, Any]]:
    stream = io.BytesIO(payload)
    try:
        check_items(payload)
        records: list[Any] = [fastavro.schemaless_reader(stream, writer.parsed, reader) for _ in range(count)]
    except Exception as error:  # fastavro fails on foreign bytes in too many ways to list
        raise CorruptMetadata(
            f"{source}: {writer.record_name} does not decode near byte {stream.tell()} of {len(payload)}: {error!r}"
        ) from error
    # Bytes that are left over belong to a record of another schema.
    if stream.tell() != len(payload):
        raise CorruptMetadata(f"{source}: {writer.record_name} ends at byte {stream.tell()} of {len(payload)}")
    return records


def _inflate(payload: bytes, data: bytes, source: str, position: int) -> bytes:
    try:
        return inflate(payload, -zlib.MAX_WBITS)  # ignores bytes after the end: fastavro writes half a checksum there
    except ValueError as error:
        raise _corrupt(data, source, position, f"an Avro block does not inflate: {error}") from error


def parse_long(data: bytes, position: int, source: str) -> tuple[int, int]:
    """
    Decode the zigzag varint at *position*; return the value and the position after it.

    Raises:
        CorruptMetadata: There is none.
    """
    number = shift = 0
    for index in range(position, min(position + 10, len(data))):
        byte = data[index]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), index + 1
        shift += 7
    raise _corrupt(data, source, position, "the Avro file is cut off or damaged in a number")


def _parse_bytes(data: bytes, position: int, source: str) -> tuple[bytes, int]:
    size, start = parse_long(data, position, source)
    end = start + size
    if size < 0 or end > len(data):
        raise _corrupt(data, source, start, f"{size} bytes of the Avro header do not fit")
    return data[start:end], end


def format_long(value: int) -> bytes:
    """Encode a long as Avro does: zigzag, seven bits per byte, lowest bits first."""
    number = (value << 1) ^ (value >> 63)
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _corrupt(data: bytes, source: str, position: int, what: str) -> CorruptMetadata:
    return CorruptMetadata(f"{source}: {what} (byte {position} of {len(data)})")


def _foreign_writer(schema_bytes: bytes, source: str) -> _Writer:
    try:
        return _writer(schema_bytes)
    except Exception as error:  # the schema may be any bytes, and fastavro fails in many ways
        raise CorruptMetadata(f"{source}: the Avro schema does not parse: {error!r}") from error


@functools.lru_cache(maxsize=64)
def _writer(schema_bytes: bytes) -> _Writer:
    # Before it is parsed: the schema comes from a file that anyone may have written.
    if len(schema_bytes) > SCHEMA_BYTES_MAX:
        raise ValueError(f"{len(schema_bytes)} bytes are too many")
    text = schema_bytes.decode()
    schema = json.loads(text)
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ValueError("not a record")
    check_schema(schema)
    return _Writer(text, fastavro.parse_schema(_with_plain_texts(schema)), str(schema["name"]).rpartition(".")[2])


def _with_plain_texts(schema: Any) -> Any:
    """The same schema without Java's class of each text, after which fastavro would look at every single value."""
    if isinstance(schema, list):
        return [_with_plain_texts(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.keys() == {"type", "avro.java.string"} and schema["type"] == "string":
        return "string"
    parts = {key: _with_plain_texts(schema[key]) for key in ("type", "items", "values") if key in schema}
    if isinstance(schema.get("fields"), list):
        parts["fields"] = [_with_plain_texts(field) for field in schema["fields"]]
    return {**schema, **parts}

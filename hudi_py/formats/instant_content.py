"""Decodes and encodes any instant file: empty, one Avro record, or JSON (rules/timeline 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.avro_file import MAGIC, decode_avro_file, encode_avro_file
from hudi_py.formats.commit_json import decode_json, encode_json


@attrs.frozen(slots=True)
class Content:
    """
    A decoded instant file.

    Args:
        kind: Form of the file.
        value: Fields under their names on disk; empty for an empty file.
        record_name: Avro only: name of the record without namespace, for example ``HoodieCleanerPlan``.
        schema_text: Avro only: schema of the writer.
        sync: Avro only: sync marker, needed to write the same bytes again.
        notes: Avro only: further entries of the header, see `AvroFile`.
    """

    kind: Literal["empty", "avro", "json"]
    value: dict[str, Any] = attrs.field(factory=dict)
    record_name: str | None = None
    schema_text: str | None = None
    sync: bytes | None = None
    notes: Mapping[str, bytes] = attrs.field(factory=dict)


def decode_content(data: bytes, source: str, reader_schema: str | None = None) -> Content:
    """
    Decode an instant file by looking at its first bytes.

    Args:
        data: The whole file.
        source: Where it comes from, for messages.
        reader_schema: For Avro: resolve to this schema instead of giving the record as written.

    Raises:
        CorruptMetadata: It is neither empty, nor an Avro container of one record, nor a JSON object.
    """
    if not data:
        return Content("empty")
    # By the bytes, because table versions and releases differ in what they write where.
    if data.startswith(MAGIC):
        file = decode_avro_file(data, source, reader_schema)
        if len(file.records) != 1:
            raise CorruptMetadata(f"{source}: has {len(file.records)} Avro records; an instant has exactly one")
        return Content("avro", file.records[0], file.record_name, file.schema_text, file.sync, file.notes)
    if data.lstrip()[:1] == b"{":
        return Content("json", decode_json(data, source))
    raise CorruptMetadata(f"{source}: neither Avro nor JSON, it starts with {data[:4]!r} (byte 0 of {len(data)})")


def encode_content(content: Content) -> bytes:
    """Encode *content*; for a decoded file of Hudi the result is equal to the file, byte for byte."""
    if content.kind == "empty":
        return b""
    if content.kind == "json":
        return encode_json(content.value)
    assert content.schema_text is not None
    assert content.sync is not None
    return encode_avro_file(content.schema_text, content.value, content.sync, content.notes)

"""
Records of the `files` partition and how they are merged. Pure.

A record says which files were added to a partition and which were deleted. The key is the partition's path (``.`` when
the table is not partitioned); the record under ``__all_partitions__`` lists the partitions themselves in the same form.

Source: rules/data-files 11; Hudi 1.1.1 ``HoodieMetadataPayload``.
"""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import fastavro

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.avro_registry import schema_text

RECORD: Final = "HoodieMetadataRecord"
ALL_PARTITIONS: Final = "__all_partitions__"
UNPARTITIONED: Final = "."
TYPE_PARTITIONS: Final = 1
TYPE_FILES: Final = 2
META_FIELD_COUNT: Final = 5


class FileInfo(NamedTuple):
    """What a record says of one file (or partition, of size 0)."""

    size_bytes: int
    is_deleted: bool


Files = dict[str, FileInfo]
"""File name to what happened to it."""


def key_of(partition_path: str) -> str:
    """Key of a partition's record."""
    return partition_path or UNPARTITIONED


def partition_of(key: str) -> str:
    """Inverse of `key_of`."""
    return "" if key == UNPARTITIONED else key


class Alone(dict[str, FileInfo]):
    """The files of a record whose key was deleted before: nothing that was said of it earlier counts any more."""


def merge_files(older: Mapping[str, FileInfo], newer: Mapping[str, FileInfo]) -> Files:
    """
    One record after another.

    The same file in both: a deletion removes it from the result, otherwise the larger size counts. A deletion of a
    file that *older* does not know, or has as deleted, stays in the result, because a record merged later (that of the
    base file) may know it.
    """
    merged = dict(older)
    for name, info in newer.items():
        known = merged.get(name)
        if known is None or (known.is_deleted and info.is_deleted):
            merged[name] = info
        elif info.is_deleted:
            # Both are dropped: below this record nothing of the file is left to delete.
            del merged[name]
        else:
            merged[name] = FileInfo(max(known.size_bytes, info.size_bytes), False)
    return merged


def present(files: Mapping[str, FileInfo]) -> dict[str, int]:
    """Name to size in bytes of those that are not deleted."""
    return {name: info.size_bytes for name, info in files.items() if not info.is_deleted}


def decode_files(value: bytes, writer_schema: str, source: str) -> Files:
    """
    What a record says, whatever fields of other partitions its schema has.

    Args:
        value: Avro binary of a ``HoodieMetadataRecord``.
        writer_schema: The schema in the log block's header or the HFile's file info.
        source: Where it was read from, for messages.

    Raises:
        CorruptMetadata: It is something else, or of a type that the `files` partition does not have.
    """
    try:
        record: Any = fastavro.schemaless_reader(io.BytesIO(value), parsed_schema(writer_schema), None)
        kind = record["type"]
        files = record["filesystemMetadata"] or {}
        decoded = {name: FileInfo(info["size"], info["isDeleted"]) for name, info in files.items()}
    except Exception as error:  # fastavro fails in many ways on bytes that are not a record
        raise CorruptMetadata(f"{source}: a record of the metadata table does not decode: {error!r}") from error
    check_type(kind, source)
    return decoded


def check_type(kind: Any, source: str) -> None:
    """
    Raises:
        CorruptMetadata: The type does not occur in the partition `files`.
    """
    if kind not in (TYPE_PARTITIONS, TYPE_FILES):
        raise CorruptMetadata(f"{source}: a record of type {kind} does not belong in the partition `files`")


def encode_files(key: str, files: Mapping[str, FileInfo], table_version: int, *, file_name: str | None = None) -> bytes:
    """
    Inverse of `decode_files`.

    Args:
        key: Key of the record; the HFile carries it, the record only its type.
        files: What happened.
        table_version: 6, 8 or 9.
        file_name: Name of the base file, when written into one.
    """
    out = io.BytesIO()
    record = {
        "_hoodie_file_name": file_name,
        # Empty as in Hudi, because the HFile has the key.
        "key": "",
        "type": TYPE_PARTITIONS if key == ALL_PARTITIONS else TYPE_FILES,
        "filesystemMetadata": {
            name: {"size": info.size_bytes, "isDeleted": info.is_deleted} for name, info in files.items()
        },
    }
    fastavro.schemaless_writer(out, parsed_schema(schema_text(RECORD, table_version)), record)
    return out.getvalue()


@functools.cache
def payload_schema(table_version: int) -> str:
    """The schema without the five meta fields, as commit metadata of the metadata table names it."""
    schema = json.loads(schema_text(RECORD, table_version))
    schema["fields"] = schema["fields"][META_FIELD_COUNT:]
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


def sorted_entries(records: Mapping[str, bytes]) -> Iterable[tuple[bytes, bytes]]:
    """Entries as an HFile wants them: by the bytes of the key."""
    return sorted((key.encode(), value) for key, value in records.items())


@functools.lru_cache(maxsize=16)
def parsed_schema(text: str) -> Any:
    """
    Return a schema in the form that fastavro takes.

    Every block and every base file repeats its schema, 7 to 9 KB of JSON, and parsing that takes longer than decoding
    a record; a table has a handful of different ones, one for each release that wrote to it.
    """
    return fastavro.parse_schema(json.loads(text))

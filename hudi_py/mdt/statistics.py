"""
Records of the partitions `column_stats` and `partition_stats`, and how they are merged. Pure.

A record says within which bounds the values of one column lie, in one file or in one partition of the data table. Its
key is made of hashes: of the column, of the partition, and (`column_stats` only) of the file's name.

What the bounds are worth, as seen on tables of Hudi 0.15.0, 1.0.2 and 1.1.1:

* A column of floats with a NaN in it has the bounds 0.0 and 0.0, whatever its values are.
* Tombstones of 0.15.0 lack the first letters of the file's name, so the record of the deleted file stays.
* 1.1.1 (index version 2) names the type of the values and keeps decimals as bytes; before it, decimals stand at scale
  15, those of a fixed length are bytes or missing.

Source: rules/data-files 11.1; Hudi 1.1.1 ``HoodieTableMetadataUtil.mergeColumnStatsRecords``,
``HoodieMetadataPayload``, ``HashID``, ``ValueType``.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import io
import json
import math
from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Context, Decimal
from typing import Any, Final

import attrs
import fastavro
from xxhash import xxh64_digest

from hudi_py.errors import CorruptMetadata, UnsupportedTable
from hudi_py.mdt.records import key_of, parsed_schema
from hudi_py.model.column_statistics import ColumnStatistics

COLUMN_STATS: Final = "column_stats"
PARTITION_STATS: Final = "partition_stats"
TYPES: Final = {COLUMN_STATS: 3, PARTITION_STATS: 6}
"""Partition of the metadata table to the type of its records."""

_FIELD: Final = "ColumnStatsMetadata"
_SEED: Final = 0xFFFFFFFFDABADABA  # an int of 32 bits to Java, widened with its sign
_HASH_CHARACTERS: Final = 12  # eight bytes in Base64
_EPOCH: Final = date(1970, 1, 1)
_EXACT: Final = Context(prec=100)
_VALUE_TYPES: Final = {
    2: "boolean",
    3: "int",
    4: "long",
    5: "float",
    6: "double",
    7: "string",
    8: "bytes",
    10: "decimal",
    12: "date",
    16: "timestamp-micros",
    19: "local-timestamp-micros",
}
"""Ordinals of Hudi 1.1's ``ValueType`` to our kinds; others (times, milliseconds, nanoseconds) have no use here."""

_WRAPPERS: Final = {
    "BooleanWrapper": "boolean",
    "IntWrapper": "int",
    "LongWrapper": "long",
    "FloatWrapper": "float",
    "DoubleWrapper": "double",
    "BytesWrapper": "bytes",
    "StringWrapper": "string",
    "DateWrapper": "date",
    "LocalDateWrapper": "date",
    "DecimalWrapper": "decimal",
    "TimeMicrosWrapper": "time-micros",
    "TimestampMicrosWrapper": "timestamp-micros",
}


@attrs.frozen
class StatisticsRecord:
    """
    A record as it is stored.

    Args:
        kind: Its type, see `TYPES`.
        fields: Of ``HoodieMetadataColumnStats``; wrappers as pairs of their name and their fields.
    """

    kind: int
    fields: Mapping[str, Any]

    @property
    def is_deleted(self) -> bool:
        """Whether it is a tombstone."""
        return bool(self.fields["isDeleted"])


# --- keys -------------------------------------------------------------------------------------------------------------
def column_prefix(column: str) -> str:
    """What the keys of all records of a column begin with."""
    return _hash(column)


def key_suffix(partition_path: str, file_name: str) -> str:
    """What follows the column's prefix in the key of a record of `column_stats`."""
    digest = hashlib.md5(file_name.encode(), usedforsecurity=False).digest()
    return partition_suffix(partition_path) + base64.b64encode(digest).decode()


def partition_suffix(partition_path: str) -> str:
    """What follows the column's prefix in the key of a record of `partition_stats`."""
    return _hash(key_of(partition_path))


def suffix_of(key: str) -> str:
    """A record's key without the column's part."""
    return key[_HASH_CHARACTERS:]


@functools.lru_cache(maxsize=4096)
def _hash(text: str) -> str:
    return base64.b64encode(xxh64_digest(text.encode(), _SEED)).decode()


# --- bytes ------------------------------------------------------------------------------------------------------------
def decode_statistics(value: bytes, writer_schema: str, partition: str, source: str) -> StatisticsRecord:
    """
    A record of `column_stats` or `partition_stats`.

    Args:
        value: Avro binary of a ``HoodieMetadataRecord``.
        writer_schema: The schema in the log block's header or the HFile's file info.
        partition: Partition of the metadata table.
        source: Where it was read from, for messages.

    Raises:
        CorruptMetadata: It is something else.
    """
    try:
        record: Any = fastavro.schemaless_reader(
            io.BytesIO(value), parsed_schema(writer_schema), None, return_record_name=True
        )
        kind = record["type"]
        _, fields = record[_FIELD]
        for name in ("fileName", "columnName", "minValue", "maxValue", "isDeleted"):
            fields[name]
    except Exception as error:  # fastavro fails in many ways on bytes that are not a record
        raise CorruptMetadata(f"{source}: a record of {partition} does not decode: {error!r}") from error
    if kind != TYPES[partition] or not isinstance(fields["columnName"], str) or not isinstance(fields["fileName"], str):
        raise CorruptMetadata(f"{source}: a record of type {kind} does not belong in {partition}")
    return StatisticsRecord(kind, fields)


def encode_statistics(record: StatisticsRecord, schema: str, *, file_name: str | None) -> bytes:
    """
    Inverse of `decode_statistics`.

    Args:
        record: What to write.
        schema: As `widest_schema` tells.
        file_name: Name of the base file; None in a log file.
    """
    out = io.BytesIO()
    parsed = parsed_schema(schema)
    name = _statistics_name(schema)
    content = {"_hoodie_file_name": file_name, "key": "", "type": record.kind, _FIELD: (name, dict(record.fields))}
    fastavro.schemaless_writer(out, parsed, content)
    return out.getvalue()


def widest_schema(schemas: list[str]) -> str:
    """The schema that can hold the records of all: releases only add fields, and kinds of values."""
    return max(schemas, key=_width)


@functools.lru_cache(maxsize=16)
def _width(schema: str) -> tuple[int, int, int]:
    fields = json.loads(schema)["fields"]
    inner = _record_of(schema)["fields"]
    bounds = next(field["type"] for field in inner if field["name"] == "minValue")
    return len(inner), len(bounds), len(fields)


@functools.lru_cache(maxsize=16)
def _record_of(schema: str) -> Any:
    field = next(each for each in json.loads(schema)["fields"] if each["name"] == _FIELD)
    return next(branch for branch in field["type"] if isinstance(branch, dict))


@functools.lru_cache(maxsize=16)
def _statistics_name(schema: str) -> str:
    inner = _record_of(schema)
    namespace = inner.get("namespace") or json.loads(schema).get("namespace")
    return f"{namespace}.{inner['name']}" if namespace else str(inner["name"])


# --- merging ----------------------------------------------------------------------------------------------------------
def merge_statistics(older: StatisticsRecord, newer: StatisticsRecord, source: str) -> StatisticsRecord:
    """
    One record after another of the same key, as Apache Hudi merges them.

    Raises:
        UnsupportedTable: Their bounds are of different kinds, of which neither can hold the other's.
    """
    # A tombstone, a file that was written again under its name, or bounds that were computed of all files.
    if newer.is_deleted or older.is_deleted or newer.fields.get("isTightBound"):
        return newer
    merged = dict(newer.fields)
    merged["minValue"] = _outer(older, newer, "minValue", source)
    merged["maxValue"] = _outer(older, newer, "maxValue", source)
    for name in ("valueCount", "nullCount", "totalSize", "totalUncompressedSize"):
        known = (older.fields.get(name), newer.fields.get(name))
        # A sum of something unknown is unknown; 0 would say that there are no nulls.
        merged[name] = None if None in known else sum(known)
    return StatisticsRecord(newer.kind, merged)


def _outer(older: StatisticsRecord, newer: StatisticsRecord, bound: str, source: str) -> Any:
    """The lower of two lower bounds, the higher of two upper ones; one that is missing does not count."""
    first, second = older.fields[bound], newer.fields[bound]
    if first is None or second is None:
        return first if second is None else second
    is_same = first[0] == second[0] and older.fields.get("valueType") == newer.fields.get("valueType")
    if not is_same or "value" not in first[1]:
        raise UnsupportedTable(
            f"{source}: bounds of the column {newer.fields['columnName']} are of different kinds, {_short(first[0])} "
            f"and {_short(second[0])}, which this release does not merge; Apache Hudi's next write compacts them"
        )
    ordered = sorted((first, second), key=lambda wrapped: _order(newer, wrapped))
    return ordered[0] if bound == "minValue" else ordered[1]


def _order(record: StatisticsRecord, wrapped: Any) -> Any:
    """
    What bounds are compared by.

    UTF-16 units of strings, decimals as numbers, NaN behind all numbers: that is Java's order, by which Hudi merges.
    Bytes without sign: so Parquet and Spark have them, though Hudi merges them with sign. Its readers compare neither,
    a condition on a binary column with statistics is a ClassCastException there (1.1.1).
    """
    value = wrapped[1]["value"]
    if isinstance(value, float):
        return math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, value)
    if isinstance(value, str):
        return value.encode("utf-16-be", "surrogatepass")
    if isinstance(value, bytes) and _kind(record, wrapped) == "decimal":
        return int.from_bytes(value, "big", signed=True)
    return value


# --- meaning ----------------------------------------------------------------------------------------------------------
def statistics_of(record: StatisticsRecord) -> ColumnStatistics:
    """What a record says that is not a tombstone."""
    fields = record.fields
    low, high = fields["minValue"], fields["maxValue"]
    kinds = {_kind(record, wrapped) for wrapped in (low, high) if wrapped is not None}
    # Bounds of two kinds say nothing that could be trusted.
    kind = kinds.pop() if len(kinds) == 1 else None
    counts = [fields.get(name) for name in ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")]
    # -1 stands for unknown, as in tombstones.
    known = [None if count is None or count < 0 else count for count in counts]
    return ColumnStatistics(
        column=fields["columnName"],
        where=fields["fileName"],
        kind=kind,
        minimum=None if kind is None or low is None else _value(record, kind, low),
        maximum=None if kind is None or high is None else _value(record, kind, high),
        value_count=known[0],
        null_count=known[1],
        size_bytes=known[2],
        uncompressed_bytes=known[3],
    )


def _kind(record: StatisticsRecord, wrapped: Any) -> str | None:
    stored = _WRAPPERS.get(_short(wrapped[0]))
    named = record.fields.get("valueType")
    ordinal = 0 if named is None else named[1]["typeOrdinal"]
    return _VALUE_TYPES.get(ordinal) if ordinal else stored


def _value(record: StatisticsRecord, kind: str, wrapped: Any) -> Any:
    value = wrapped[1]["value"]
    if kind == "date" and isinstance(value, int):
        try:
            return _EPOCH + timedelta(days=value)
        except OverflowError:  # before the year 1 or after 9999
            return None
    if kind == "decimal" and isinstance(value, bytes):
        _, _, scale = (record.fields["valueType"][1]["additionalInfo"] or "").partition(",")
        if not scale.strip().isdigit():
            return None
        return Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-int(scale), _EXACT)
    return value


def _short(name: str) -> str:
    return name.rpartition(".")[2]

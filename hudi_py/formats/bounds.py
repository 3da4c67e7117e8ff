"""
Limits for the memory that decoding may take, to resist damaged and malicious files. Pure.

A few bytes can expand to gigabytes: compressed zeros, records of one byte that each become a Python dict, fields that
take no bytes at all. What Hudi writes stays far below these limits; anything above is refused before it is decoded. The
storage limits the size of files as a whole, see ``READ_BYTES_MAX`` there.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

INFLATED_RATIO_MAX: Final = 100  # Hudi's metadata compresses to a fifth; Hudi does not compress Avro at all
INFLATED_BYTES_ALWAYS: Final = 1 << 22  # always allowed: a block of nearly empty Bloom filters, half a megabyte each
INFLATED_BYTES_MAX: Final = 1 << 28
ITEMS_BYTES_ALWAYS: Final = 1 << 20  # values are not counted in smaller payloads
ITEMS_SHARE_MAX: Final = 0.4  # values per byte of Avro; files of Hudi have at most 0.23
JSON_CONTAINERS_ALWAYS: Final = 1 << 16
JSON_BYTES_PER_CONTAINER: Final = 16
PARQUET_GROUP_BYTES_ALWAYS: Final = 1 << 30  # a row group of Apache Hudi has 120 MB by default
PARQUET_ROWS_ALWAYS: Final = 1 << 27
PARQUET_ROWS_PER_BYTE_MAX: Final = 100  # a row of Hudi has a key or, without meta columns, some value of its own
SCHEMA_BYTES_MAX: Final = 1 << 24
SCHEMA_DEPTH_MAX: Final = 64
SCHEMA_FIELDS_MAX: Final = 20_000
SCHEMA_CELLS_PER_BYTE_MAX: Final = 4  # values in memory per byte on disk, in one record

_TEXT_BYTES_MIN: Final = 17  # size of the shortest text whose length byte is not in _SMALL, including that byte
_SMALL: Final = bytes(range(2 * (_TEXT_BYTES_MIN - 1)))  # first bytes of nulls, flags, union branches, short texts


def inflated_bytes_max(deflated_bytes: int) -> int:
    """Return how many bytes a compressed block of this size may expand to."""
    return min(INFLATED_BYTES_MAX, max(INFLATED_BYTES_ALWAYS, deflated_bytes * INFLATED_RATIO_MAX))


def inflate(data: bytes, wbits: int) -> bytes:
    """
    Decompress one complete stream, to at most `inflated_bytes_max` bytes.

    Args:
        data: The compressed bytes.
        wbits: Format of the stream, see `zlib.decompressobj`.

    Raises:
        ValueError: The data is not such a stream, is incomplete, or expands to more bytes.
    """
    machine = zlib.decompressobj(wbits)
    limit = inflated_bytes_max(len(data))
    try:
        inflated = machine.decompress(data, limit)
        if not machine.eof and machine.decompress(machine.unconsumed_tail, 1):
            raise ValueError(f"{len(data)} compressed bytes expand to more than {limit}")
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not machine.eof:
        raise ValueError("it is cut off")
    return inflated


def check_items(payload: bytes) -> None:
    """
    Raise if an Avro payload consists almost only of tiny values, each of which takes a hundred bytes in memory.

    Raises:
        ValueError: There are too many values.
    """
    if len(payload) <= ITEMS_BYTES_ALWAYS:
        return
    small = len(payload) - len(payload.translate(None, _SMALL))
    items = small + (len(payload) - small) // _TEXT_BYTES_MIN
    if items > len(payload) * ITEMS_SHARE_MAX:
        raise ValueError(f"{len(payload)} bytes with up to {items} values are not metadata of Hudi")


def check_json(text: str) -> None:
    """
    Raise if a JSON text consists almost only of brackets.

    Raises:
        ValueError: There are too many lists and objects.
    """
    containers = text.count("{") + text.count("[")
    if containers > max(JSON_CONTAINERS_ALWAYS, len(text) // JSON_BYTES_PER_CONTAINER):
        raise ValueError(f"{containers} lists and objects in {len(text)} characters are not metadata of Hudi")


def check_schema(schema: Any) -> None:
    """
    Raise if a small file with this Avro schema could loop for ever, exhaust the stack or fill the memory.

    Raises:
        ValueError: Types contain themselves or are nested too deeply, elements of an array take no bytes, a record has
            far more fields than bytes, or there are too many fields.
    """
    if _Measure().of(schema, 0)[0] == 0:
        raise ValueError("a record without content")


def check_columns(record: Any) -> None:
    """
    Raise if the columns of this record schema, of the rows of a table, could fill the memory or exhaust the stack.

    Named types count wherever they are used: each of a few that uses the one before twice doubles the columns.

    Raises:
        ValueError: There are too many columns, or they are nested too deeply.
    """
    count, depth = _Columns().of(record, 0)
    if count > SCHEMA_FIELDS_MAX:
        raise ValueError(f"more than {SCHEMA_FIELDS_MAX} columns, those inside of others included")
    if depth > SCHEMA_DEPTH_MAX:
        raise ValueError("columns are nested too deeply")


class _Columns:
    """Computes for types the number of their fields and how deeply they are nested; keeps both for named types."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[int, int]] = {}

    def of(self, schema: Any, depth: int) -> tuple[int, int]:
        # A column that may be null is a union around a type, so there are two steps for each level.
        if depth > 2 * SCHEMA_DEPTH_MAX:
            raise ValueError("columns are nested too deeply")
        if isinstance(schema, list):
            return self._all(schema, depth + 1)
        if isinstance(schema, str):
            return self.known.get(schema.rpartition(".")[2], (1, 0))
        kind = schema["type"]
        if kind == "record":
            count, deep = self._all([field["type"] for field in schema["fields"]], depth + 1)
        elif kind in ("array", "map"):
            count, deep = self.of(schema["items" if kind == "array" else "values"], depth + 1)
        else:
            return self.of(kind, depth + 1)
        found = count + 1, deep + 1
        if kind == "record":
            # Two types may have one name in different namespaces; the larger one counts.
            before = self.known.get(_short(schema), (0, 0))
            self.known[_short(schema)] = max(before[0], found[0]), max(before[1], found[1])
        return found

    def _all(self, types: list[Any], depth: int) -> tuple[int, int]:
        found = [self.of(each, depth) for each in types]
        return sum(count for count, _ in found), max((deep for _, deep in found), default=0)


class _Measure:
    """Computes for types the smallest size in bytes, and the number of values in memory for it; keeps named types."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[int, int] | None] = {}
        self.fields = 0

    def of(self, schema: Any, depth: int) -> tuple[int, int]:
        if depth > SCHEMA_DEPTH_MAX:
            raise ValueError("nested too deeply")
        if isinstance(schema, list):
            for branch in schema:
                self.of(branch, depth + 1)
            return 1, 1
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, (dict, list)):
            return self.of(kind, depth + 1)
        if kind == "array" and self.of(schema["items"], depth + 1)[0] == 0:
            raise ValueError("an array of nothing")
        if kind == "map":
            self.of(schema["values"], depth + 1)
        if kind in ("fixed", "enum"):
            found = (int(schema["size"]) if kind == "fixed" else 1), 1
            self.known[_short(schema)] = found
            return found
        if kind == "record":
            return self._record(schema, depth)
        known = self.known.get(kind.rpartition(".")[2], (1, 1))
        if known is None:
            raise ValueError(f"{kind} contains itself")
        return (0, 1) if kind == "null" else known

    def _record(self, schema: Any, depth: int) -> tuple[int, int]:
        self.fields += len(schema["fields"])
        if self.fields > SCHEMA_FIELDS_MAX:
            raise ValueError(f"more than {SCHEMA_FIELDS_MAX} fields")
        self.known[_short(schema)] = None  # not finished: a reference to it now would be recursive
        measured = [self.of(field["type"], depth + 1) for field in schema["fields"]]
        size, cells = sum(size for size, _ in measured), 1 + sum(cells for _, cells in measured)
        if cells > SCHEMA_CELLS_PER_BYTE_MAX * max(size, 1):
            raise ValueError(f"{_short(schema)} has {cells} values in {size} bytes")
        self.known[_short(schema)] = (size, cells)
        return size, cells


def _short(schema: Any) -> str:
    return str(schema["name"]).rpartition(".")[2]

"""
How much bytes of a table may become in memory. Pure.

A few bytes can stand for a lot: deflated zeros, records of which each takes one byte and a dictionary of Python, fields
that take no bytes at all. Nothing that Hudi writes comes near the limits here; what does not keep them is refused
before it is decoded. Files as a whole are bounded by the storage, see ``READ_BYTES_MAX`` there.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

INFLATED_RATIO_MAX: Final = 100  # Hudi's own metadata shrinks to a fifth; it stores Avro as it is anyway
INFLATED_BYTES_ALWAYS: Final = 1 << 20  # so much a block may grow to whatever its size
INFLATED_BYTES_MAX: Final = 1 << 28
ITEMS_BYTES_ALWAYS: Final = 1 << 20  # of smaller payloads the items are not counted
ITEMS_SHARE_MAX: Final = 0.4  # values per byte of Avro; 0.23 at most in what Hudi writes
JSON_CONTAINERS_ALWAYS: Final = 1 << 16
JSON_BYTES_PER_CONTAINER: Final = 16
SCHEMA_BYTES_MAX: Final = 1 << 24
SCHEMA_DEPTH_MAX: Final = 64
SCHEMA_FIELDS_MAX: Final = 20_000
SCHEMA_CELLS_PER_BYTE_MAX: Final = 4  # of one record: values in memory per byte on disk

_TEXT_BYTES_MIN: Final = 17  # a text whose length byte is none of _SMALL, together with that byte
_SMALL: Final = bytes(range(2 * (_TEXT_BYTES_MIN - 1)))  # what a null, a flag, a branch, a short text begins with


def inflated_bytes_max(deflated_bytes: int) -> int:
    """How many bytes that many deflated ones may become."""
    return min(INFLATED_BYTES_MAX, max(INFLATED_BYTES_ALWAYS, deflated_bytes * INFLATED_RATIO_MAX))


def inflate(data: bytes, wbits: int) -> bytes:
    """
    Inflate one complete stream, never to more than `inflated_bytes_max`.

    Args:
        wbits: Which kind of stream, as zlib names it.

    Raises:
        ValueError: It is none, is cut off or becomes too large.
    """
    machine = zlib.decompressobj(wbits)
    limit = inflated_bytes_max(len(data))
    try:
        inflated = machine.decompress(data, limit)
        if not machine.eof and machine.decompress(machine.unconsumed_tail, 1):
            raise ValueError(f"{len(data)} compressed bytes become more than {limit}")
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not machine.eof:
        raise ValueError("it is cut off")
    return inflated


def check_items(payload: bytes) -> None:
    """
    Refuse an Avro payload that consists of next to nothing but tiny values, each of which costs a hundred bytes.

    Raises:
        ValueError: It does.
    """
    if len(payload) <= ITEMS_BYTES_ALWAYS:
        return
    small = len(payload) - len(payload.translate(None, _SMALL))
    items = small + (len(payload) - small) // _TEXT_BYTES_MIN
    if items > len(payload) * ITEMS_SHARE_MAX:
        raise ValueError(f"{len(payload)} bytes that may be {items} values are no metadata of Hudi")


def check_json(text: str) -> None:
    """
    Refuse JSON that consists of next to nothing but brackets.

    Raises:
        ValueError: It does.
    """
    containers = text.count("{") + text.count("[")
    if containers > max(JSON_CONTAINERS_ALWAYS, len(text) // JSON_BYTES_PER_CONTAINER):
        raise ValueError(f"{containers} lists and objects in {len(text)} characters are no metadata of Hudi")


def check_schema(schema: Any) -> None:
    """
    Refuse an Avro schema that would let a small file loop for ever, exhaust the stack or fill the memory.

    Raises:
        ValueError: Types contain themselves or are nested too deeply, items of an array take no bytes, a record has
            far more fields than bytes, or there are too many fields.
    """
    if _Measure().of(schema, 0)[0] == 0:
        raise ValueError("a record without content")


class _Measure:
    """Smallest number of bytes, and number of values in memory then, of types; remembers the named ones."""

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
        size, cells = sum(each[0] for each in measured), 1 + sum(each[1] for each in measured)
        if cells > SCHEMA_CELLS_PER_BYTE_MAX * max(size, 1):
            raise ValueError(f"{_short(schema)} has {cells} values in {size} bytes")
        self.known[_short(schema)] = (size, cells)
        return size, cells


def _short(schema: Any) -> str:
    return str(schema["name"]).rpartition(".")[2]

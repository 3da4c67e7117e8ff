"""
Encodes Arrow columns as Avro records, all records of a block at once: the inverse of `hudi_py.formats.avro_columns`.

Each type is encoded in two steps: first the size of each value is computed, then all values are written into one
buffer, a byte or a column at a time. So no Python code runs per record, and the block is allocated once.

Source: Avro 1.11 specification, binary encoding; types as `hudi_py.formats.record_schema`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.errors import UnsupportedTable, WriteError
from hudi_py.formats.log_block import DATA_BLOCK_VERSION
from hudi_py.model.words import counted

Numbers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_HEAD: Final = struct.Struct(">ii")
_SIZE: Final = np.dtype(">i4")
_SEVEN_BITS: Final = 7
_NUMBER_BYTES_MAX: Final = 10
_DECIMAL_BYTES: Final = 16
_INTEGERS: Final = {"int": pa.int32(), "long": pa.int64()}


class _Piece(NamedTuple):
    """n values: their sizes in bytes, and a function that writes them to n places."""

    sizes: Numbers
    write: Callable[[Bytes, Numbers], None]


_Encode = Callable[[Any], _Piece]


def encode_data_block(rows: pa.RecordBatch, schema_text: str) -> bytes:
    """
    Encode the content of an Avro data block of a log file: int32 3, int32 count, per record int32 size and the record.

    Args:
        rows: n rows with the columns of the schema, in its order.
        schema_text: Avro JSON of their schema.

    Raises:
        WriteError: A value is null where the schema does not allow null.
        UnsupportedTable: A column has a type that cannot be stored.
    """
    record = json.loads(schema_text)
    names = [field["name"] for field in record["fields"]]
    if names != rows.schema.names:
        raise ValueError(f"columns {rows.schema.names} are not those of the schema: {names}")
    piece = _record_of(rows.columns, _Compiler().fields(record, ""))
    starts = _HEAD.size + _starts(piece.sizes + _SIZE.itemsize)
    out = np.empty(_HEAD.size + int(piece.sizes.sum()) + _SIZE.itemsize * rows.num_rows, np.uint8)
    out[: _HEAD.size] = np.frombuffer(_HEAD.pack(DATA_BLOCK_VERSION, rows.num_rows), np.uint8)
    # Java writes sizes big endian.
    lengths = piece.sizes.astype(_SIZE).view(np.uint8).reshape(-1, _SIZE.itemsize)
    out[starts[:, None] + np.arange(_SIZE.itemsize)] = lengths
    piece.write(out, starts + _SIZE.itemsize)
    return out.tobytes()


class _Compiler:
    """Converts Avro types to encoders; keeps named types, because Avro defines a type only where it first occurs."""

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}

    def fields(self, record: Mapping[str, Any], enclosing: str) -> list[_Encode]:
        full = _full_name(record, enclosing)
        self._named[full] = record
        return [self._encoder(field["type"], full.rpartition(".")[0], field["name"]) for field in record["fields"]]

    def _encoder(self, avro: Any, namespace: str, path: str) -> _Encode:
        if isinstance(avro, list):
            return self._union(avro, namespace, path)
        if isinstance(avro, str):
            named = self._named.get(avro, self._named.get(f"{namespace}.{avro}"))
            return self._encoder({"type": avro} if named is None else named, namespace, path)
        kind, logical = avro["type"], avro.get("logicalType")
        if isinstance(kind, (dict, list)):
            return self._encoder(kind, namespace, path)
        if kind == "record":
            inner = self.fields(avro, namespace)
            return lambda array: _record_of(array.flatten(), inner)
        if kind == "array":
            return _list_of(self._encoder(avro["items"], namespace, path))
        if kind == "map":
            return _map_of(self._encoder(avro["values"], namespace, path))
        if (kind, logical) == ("fixed", "decimal"):
            self._named[_full_name(avro, namespace)] = avro
            return _decimal_of(int(avro["size"]))
        return self._primitive(kind, path)

    def _union(self, avro: list[Any], namespace: str, path: str) -> _Encode:
        branches = [at for at, branch in enumerate(avro) if branch != "null"]
        if len(branches) != 1:
            raise UnsupportedTable(f"column {path!r} is a union of {len(branches)} types; it cannot be written")
        inner = self._encoder(avro[branches[0]], namespace, path)
        null = avro.index("null") if "null" in avro else None
        return lambda array: _optional(array, inner, branches[0], null, path)

    def _primitive(self, kind: str, path: str) -> _Encode:
        if kind in _INTEGERS:
            return lambda array: _numbers(_plain(array.view(_INTEGERS[kind]), path).astype(np.int64))
        if kind in ("string", "bytes"):
            return lambda array: _texts(_whole(array, path))
        if kind == "boolean":
            return lambda array: _fixed(_plain(array, path).astype(np.uint8).reshape(-1, 1))
        if kind in ("float", "double"):
            size = 4 if kind == "float" else 8
            return lambda array: _fixed(_plain(array, path).astype(f"<f{size}").view(np.uint8).reshape(-1, size))
        raise UnsupportedTable(f"column {path!r} has the Avro type {kind}, which cannot be written")


def _full_name(avro: Mapping[str, Any], namespace: str) -> str:
    name: str = avro["name"]
    inside = avro.get("namespace", namespace)
    return name if "." in name or not inside else f"{inside}.{name}"


def _starts(sizes: Numbers) -> Numbers:
    """The begin of each value when they are written one after another."""
    return np.cumsum(sizes) - sizes


def _whole(array: Any, path: str) -> Any:
    if array.null_count:
        raise WriteError(
            f"column {path!r} has {counted(array.null_count, 'null')}, which its type in the table does not allow"
        )
    return array


def _plain(array: Any, path: str) -> Any:
    return _whole(array, path).to_numpy(zero_copy_only=False)


# --- values -----------------------------------------------------------------------------------------------------------
def _numbers(values: Numbers) -> _Piece:
    """Numbers of variable length: seven bits per byte, the sign in the lowest bit."""
    zigzag = ((values << 1) ^ (values >> 63)).view(np.uint64)
    sizes = np.ones(len(values), np.int64)
    for length in range(1, _NUMBER_BYTES_MAX):
        longer = zigzag >= np.uint64(1 << _SEVEN_BITS * length)
        if not longer.any():
            break
        sizes += longer

    def write(out: Bytes, at: Numbers) -> None:
        for place in range(int(sizes.max(initial=0))):
            rows = np.flatnonzero(sizes > place)
            # The highest bit of a byte says that another byte follows.
            part = (zigzag[rows] >> np.uint64(_SEVEN_BITS * place)).astype(np.uint8) & 0x7F
            out[at[rows] + place] = part | np.where(sizes[rows] > place + 1, 0x80, 0).astype(np.uint8)

    return _Piece(sizes, write)


def _texts(array: Any) -> _Piece:
    _, offsets, data = array.buffers()
    if not len(array):
        return _numbers(np.zeros(0, np.int64))
    bounds = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    values = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    lengths = np.diff(bounds)
    head = _numbers(lengths)

    def write(out: Bytes, at: Numbers) -> None:
        head.write(out, at)
        # Numbers each byte within its text: one assignment then copies all texts, however many there are.
        within = np.arange(int(lengths.sum())) - np.repeat(_starts(lengths), lengths)
        out[np.repeat(at + head.sizes, lengths) + within] = values[bounds[0] : bounds[-1]]

    return _Piece(head.sizes + lengths, write)


def _fixed(values: Bytes) -> _Piece:
    """Shape (n, size): the bytes of n values."""
    size = values.shape[1]

    def write(out: Bytes, at: Numbers) -> None:
        out[at[:, None] + np.arange(size)] = values

    return _Piece(np.full(len(values), size, np.int64), write)


def _decimal_of(size: int) -> _Encode:
    def encode(array: Any) -> _Piece:
        raw = np.frombuffer(array.buffers()[1], np.uint8) if len(array) else np.zeros(0, np.uint8)
        wide = raw[array.offset * _DECIMAL_BYTES : (array.offset + len(array)) * _DECIMAL_BYTES]
        # The lowest bytes in reverse: Arrow is little-endian, Avro big-endian.
        return _fixed(wide.reshape(-1, _DECIMAL_BYTES)[:, size - 1 :: -1] if size else wide.reshape(-1, 0))

    return encode


def _optional(array: Any, inner: _Encode, branch: int, null: int | None, path: str) -> _Piece:
    if null is None:
        _whole(array, path)
    there = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
    values = inner(array.drop_null() if array.null_count else array)
    sizes = np.ones(len(array), np.int64)
    sizes[there] += values.sizes

    def write(out: Bytes, at: Numbers) -> None:
        if null is not None:
            out[at] = null << 1
        out[at[there]] = branch << 1
        values.write(out, at[there] + 1)

    return _Piece(sizes, write)


# --- containers of values ---------------------------------------------------------------------------------------------
def _record_of(columns: Sequence[Any], encoders: Sequence[_Encode]) -> _Piece:
    pieces = [encode(column) for encode, column in zip(encoders, columns, strict=True)]

    def write(out: Bytes, at: Numbers) -> None:
        for piece in pieces:
            piece.write(out, at)
            at = at + piece.sizes

    return _Piece(np.sum([piece.sizes for piece in pieces], axis=0, dtype=np.int64), write)


def _elements(counts: Numbers, pieces: Sequence[_Piece]) -> _Piece:
    """Lists with *counts* elements each; *pieces* has the elements of all lists, one list after another."""
    element_sizes: Numbers = np.sum([piece.sizes for piece in pieces], axis=0, dtype=np.int64)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(element_sizes)])
    ends = np.cumsum(counts)
    totals = before[ends] - before[ends - counts]
    filled = np.flatnonzero(counts)
    head = _numbers(counts[filled])
    sizes = np.ones(len(counts), np.int64)  # the empty block that ends each list; empty lists have only that one
    sizes[filled] += head.sizes + totals[filled]

    def write(out: Bytes, at: Numbers) -> None:
        out[at + sizes - 1] = 0
        head.write(out, at[filled])
        first = np.repeat(at[filled] + head.sizes - before[(ends - counts)[filled]], counts[filled])
        places = first + before[:-1]
        for piece in pieces:
            piece.write(out, places)
            places = places + piece.sizes

    return _Piece(sizes, write)


def _bounds(array: Any) -> tuple[Numbers, int, int]:
    """Lengths of the lists, and the begin and end of their elements: a sliced array has elements of other rows too."""
    offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    return np.diff(offsets), int(offsets[0]) if len(offsets) else 0, int(offsets[-1]) if len(offsets) else 0


def _list_of(element: _Encode) -> _Encode:
    def encode(array: Any) -> _Piece:
        counts, start, stop = _bounds(array)
        return _elements(counts, [element(array.values.slice(start, stop - start))])

    return encode


def _map_of(value: _Encode) -> _Encode:
    def encode(array: Any) -> _Piece:
        counts, start, stop = _bounds(array)
        keys, items = (part.slice(start, stop - start) for part in (array.keys, array.items))
        return _elements(counts, [_texts(keys), value(items)])

    return encode

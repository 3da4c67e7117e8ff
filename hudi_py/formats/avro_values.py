"""
Decodes single Avro values, one field of all records of a block at once; see `hudi_py.formats.avro_columns`.

Source: Avro 1.11 specification, binary encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.int64]

_SHIFT_MAX: Final = 63
_DECIMAL_BYTES: Final = 16
_OFFSET_MAX: Final = int(np.iinfo(np.int32).max)


class At:
    """The positions in n records: all bytes, and for each record the next position and its end."""

    __slots__ = ("data", "end", "pos")

    def __init__(self, data: npt.NDArray[np.uint8], pos: Numbers, end: Numbers) -> None:
        self.data = data
        self.pos = pos
        self.end = end

    def __len__(self) -> int:
        return len(self.pos)

    def of_rows(self, rows: Numbers) -> At:
        """The positions in some of the records; advancing them does not advance these."""
        return At(self.data, self.pos[rows], self.end[rows])

    def skip(self, sizes: Numbers | int) -> Numbers:
        """Advance each record by its size; return the earlier positions."""
        began = self.pos
        # Before anything is read or allocated: in a damaged block, sizes may be anything.
        left = self.end - began
        # Without signs a negative size is beyond everything.
        is_beyond = left < sizes if isinstance(sizes, int) else left.view(np.uint64) < sizes.view(np.uint64)
        if is_beyond.any():
            raise ValueError("a value does not fit into its record")
        self.pos = began + sizes
        return began


Decode = Callable[[At], Any]


class Node(NamedTuple):
    """One type: the Arrow type of its values, how to decode them, and the smallest size of a value in bytes."""

    arrow: pa.DataType
    decode: Decode
    size_min: int


def longs(at: At) -> Numbers:
    """Numbers of variable length: seven bits per byte, the sign in the lowest bit."""
    pos = at.skip(1)
    byte = at.data[pos]
    more = (byte >= 0x80).nonzero()[0]
    found: Numbers
    # Most numbers of a block have one byte, and then no loop is needed.
    if not len(more):
        short = byte.astype(np.int64)
        found = (short >> 1) ^ -(short & 1)
        return found
    value = (byte & 0x7F).astype(np.uint64)
    shift = 7
    end = at.pos
    while len(more):
        if shift > _SHIFT_MAX or (end[more] >= at.end[more]).any():
            raise ValueError("a number does not end")
        byte = at.data[end[more]]
        value[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        end[more] += 1
        more = more[byte >= 0x80]
        shift += 7
    found = (value >> np.uint64(1)).astype(np.int64) ^ -(value & np.uint64(1)).astype(np.int64)
    return found


def ints(at: At) -> Any:
    """Numbers of variable length that fit into 32 bits."""
    return pa.array(longs(at)).cast(pa.int32())


def booleans(at: At) -> Any:
    """Booleans of one byte."""
    return pa.array(at.data[at.skip(1)] != 0)


def _gathered(at: At, size: int) -> npt.NDArray[np.uint8]:
    """The next *size* bytes of each record; shape (n, size)."""
    began = at.skip(size)
    found: npt.NDArray[np.uint8] = at.data[began[:, None] + np.arange(size)]
    return found


def float_of(size: int) -> Node:
    """Floating-point numbers of 4 or 8 bytes."""
    kind = np.dtype(f"<f{size}")
    arrow = pa.float32() if size == kind.itemsize == 4 else pa.float64()
    return Node(arrow, lambda at: pa.array(np.ascontiguousarray(_gathered(at, size)).view(kind).ravel()), size)


def _buffer(values: Any) -> Any:
    return pa.py_buffer(values)


def _picked(values: Any, places: Any) -> Any:
    return values.take(pa.array(places))


def texts(at: At, arrow: pa.DataType) -> Any:
    """Strings or bytes, each after its length."""
    sizes = longs(at)
    began = at.skip(sizes)
    # Summed in 64 bits: Arrow's offsets of strings have 32, and must not overflow silently.
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    if offsets[-1] > _OFFSET_MAX:
        raise ValueError("texts of one block are longer than 2 GiB together")
    values = at.data[np.repeat(began - offsets[:-1], sizes) + np.arange(offsets[-1])]
    parts = [None, _buffer(offsets.astype(np.int32)), _buffer(values)]
    return pa.Array.from_buffers(arrow, len(sizes), parts)


def fixed_of(size: int) -> Node:
    """Bytes of fixed length."""
    arrow = pa.binary(size)
    return Node(arrow, lambda at: pa.Array.from_buffers(arrow, len(at), [None, _buffer(_gathered(at, size))]), size)


def enum_of(symbols: Sequence[str]) -> Node:
    """Symbols of an enum, as strings."""
    return Node(pa.string(), lambda at: _picked(pa.array(symbols, pa.string()), branches_of(at, len(symbols))), 1)


def decimal_of(avro: Mapping[str, Any]) -> Node:
    """Decimals, stored as fixed or as bytes."""
    arrow = pa.decimal128(avro["precision"], avro.get("scale", 0))
    fixed = int(avro["size"]) if avro["type"] == "fixed" else None

    def decode(at: At) -> Any:
        sizes = np.full(len(at), fixed, np.int64) if fixed is not None else longs(at)
        began = at.skip(sizes)
        ends = began + sizes
        # Avro has as many bytes as the number needs, big-endian; Arrow has 16, little-endian: extended by the sign.
        places = ends[:, None] + np.arange(-_DECIMAL_BYTES, 0)
        is_value = places >= began[:, None]
        # A value without bytes is 0; the byte at its place belongs to the next field.
        is_negative = (at.data[began] >= 0x80) & (sizes > 0)
        filler = np.where(is_negative, 0xFF, 0).astype(np.uint8)[:, None]
        wide = np.where(is_value, at.data[np.maximum(places, 0)], filler)
        little = np.ascontiguousarray(wide[:, ::-1])
        return pa.Array.from_buffers(arrow, len(at), [None, _buffer(little)])

    return Node(arrow, decode, 1 if fixed is None else fixed)


def branches_of(at: At, count: int) -> Numbers:
    """The number of the branch of a union of *count* types, or of a symbol of an enum, for each record."""
    found = longs(at)
    if (found < 0).any() or (found >= count).any():
        raise ValueError("a union has no such branch")
    return found

"""
The tail of an ORC file: what pyarrow does not tell of one, and reading its rows right depends on.

pyarrow shows times in nanoseconds, which hold the years 1677 to 2262 only, and wraps others silently. They are what
clocks showed in the time zone of the writer, which pyarrow does not name.

Source: ORC specification v1, file tail; ``orc_proto.proto``.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Final, TypeAlias

import attrs
import pyarrow as pa

from hudi_py.formats.bounds import inflated_bytes_max

_MAGIC: Final = b"ORC"
_TAIL_MAX: Final = 256  # a postscript, whose length is the last byte
_CHUNK_HEADER: Final = 3
_TIMES: Final = (9, 18)  # as clocks show them, and as they are in UTC
_NO_CODEC, _ZLIB, _SNAPPY, _LZ4, _ZSTD = 0, 1, 2, 4, 5

# Numbers of fields.
_FOOTER_LENGTH, _CODEC, _CODEC_BLOCK, _MARK = 1, 2, 3, 8000
_STRIPES, _TYPES, _NOTES, _STATISTICS, _CALENDAR = 3, 4, 5, 7, 12
_OFFSET, _INDEX_LENGTH, _DATA_LENGTH, _STRIPE_FOOTER_LENGTH, _ROWS = 1, 2, 3, 4, 5
_KIND, _SUBTYPES, _NAMES = 1, 2, 3
_NOTE_NAME, _NOTE, _ZONE, _VALUES, _OF_TIMES = 1, 2, 3, 1, 9
_SMALLEST, _LARGEST, _SMALLEST_UTC, _LARGEST_UTC = 1, 2, 3, 4

_PROLEPTIC: Final = 2  # a calendar: the Gregorian one for all days

_VARINT, _EIGHT_BYTES, _TEXT, _FOUR_BYTES = 0, 1, 2, 5
"""Types of fields in Protocol Buffers."""
_Message: TypeAlias = Sequence[tuple[int, Any]]
"""Number and value of each field."""


@attrs.frozen
class Stripe:
    """
    Rows that are stored together.

    Args:
        num_rows: Number of rows.
        zone: The time zone of its times; empty if it has none or does not say it.
    """

    num_rows: int
    zone: str


@attrs.frozen
class OrcTail:
    """
    What the tail says.

    Args:
        stripes: Of the file, in order.
        times_ms: Of each column with times, at any depth, the smallest and largest in milliseconds; None if it does not
            say them for all times in it. Columns without any time are left out.
        has_julian_days: Whether days before 1582-10-15 are counted in the Julian calendar.
        metadata: Notes of the writer: record schema, Bloom filter, smallest and largest key.
    """

    stripes: tuple[Stripe, ...]
    times_ms: Mapping[str, tuple[int, int] | None]
    has_julian_days: bool
    metadata: dict[bytes, bytes] = attrs.field(repr=False)


def is_orc(stream: BinaryIO) -> bool:
    """Whether a file begins as ORC files do."""
    stream.seek(0)
    return stream.read(len(_MAGIC)) == _MAGIC


def read_tail(stream: BinaryIO) -> OrcTail:
    """
    Read the tail of an ORC file.

    Args:
        stream: Seekable.

    Raises:
        pyarrow.ArrowInvalid: It is damaged, or compressed in a way that is not supported.
    """
    try:
        return _Reader(stream).tail()
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, zlib.error, OSError) as error:
        raise pa.ArrowInvalid(f"the tail of the ORC file is damaged: {error}") from error


class _Reader:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        size = stream.seek(0, io.SEEK_END)
        last = self._bytes(max(size - _TAIL_MAX, 0), min(size, _TAIL_MAX))
        self._end = size - 1 - last[-1]
        said = dict(_fields(last[-1 - last[-1] : -1]))
        if said.get(_MARK) != _MAGIC:
            raise ValueError("it has no mark of ORC")
        self._codec: int = said.get(_CODEC, _NO_CODEC)
        self._block: int = said.get(_CODEC_BLOCK, 0)
        self._footer_length: int = said[_FOOTER_LENGTH]

    def tail(self) -> OrcTail:
        footer = list(self._message(self._end - self._footer_length, self._footer_length))
        types = [list(_fields(value)) for number, value in footer if number == _TYPES]
        statistics = [dict(_fields(value)) for number, value in footer if number == _STATISTICS]
        notes = [dict(_fields(value)) for number, value in footer if number == _NOTES]
        stripes = [dict(_fields(value)) for number, value in footer if number == _STRIPES]
        times = _times(types, statistics)
        return OrcTail(
            stripes=tuple(Stripe(each.get(_ROWS, 0), self._zone(each) if times else "") for each in stripes),
            times_ms=times,
            has_julian_days=dict(footer).get(_CALENDAR) != _PROLEPTIC,
            metadata={each[_NOTE_NAME]: each.get(_NOTE, b"") for each in notes},
        )

    def _zone(self, stripe: dict[int, Any]) -> str:
        start = stripe.get(_OFFSET, 0) + stripe.get(_INDEX_LENGTH, 0) + stripe.get(_DATA_LENGTH, 0)
        zone: bytes = dict(self._message(start, stripe[_STRIPE_FOOTER_LENGTH])).get(_ZONE, b"")
        return zone.decode()

    def _message(self, start: int, length: int) -> Iterator[tuple[int, Any]]:
        return _fields(self._unpacked(self._bytes(start, length)))

    def _bytes(self, start: int, length: int) -> bytes:
        if start < 0 or length < 0:
            raise ValueError("it names bytes outside of the file")
        self._stream.seek(start)
        found = self._stream.read(length)
        if len(found) != length:
            raise ValueError("it names bytes outside of the file")
        return found

    def _unpacked(self, data: bytes) -> bytes:
        if self._codec == _NO_CODEC:
            return data
        found, at, size, size_max = [], 0, 0, inflated_bytes_max(len(data))
        while at < len(data):
            header = int.from_bytes(data[at : at + _CHUNK_HEADER], "little")
            at += _CHUNK_HEADER
            chunk = data[at : at + (header >> 1)]
            at += header >> 1
            found.append(chunk if header & 1 else self._inflated(chunk))
            size += len(found[-1])
            if size > size_max:
                raise ValueError(f"it unpacks to more than {size_max} bytes")
        return b"".join(found)

    def _inflated(self, chunk: bytes) -> bytes:
        size_max = min(self._block, inflated_bytes_max(len(chunk)))
        if self._codec == _ZLIB:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(chunk, size_max)
        if self._codec == _ZSTD:
            with pa.input_stream(io.BytesIO(chunk), compression="zstd") as unpacked:
                return bytes(unpacked.read(size_max))
        if self._codec in (_SNAPPY, _LZ4):
            # Snappy says its size first; of LZ4 the rest of the block is zeros, which are the end of a message.
            size = min(_varint(chunk, 0)[0], size_max) if self._codec == _SNAPPY else size_max
            codec = pa.Codec("snappy" if self._codec == _SNAPPY else "lz4_raw")
            return bytes(codec.decompress(chunk, decompressed_size=size, asbytes=True))
        raise ValueError(f"compression {self._codec} is not supported; only NONE, ZLIB, SNAPPY, LZ4 and ZSTD are")


def _times(types: Sequence[_Message], statistics: Sequence[dict[int, Any]]) -> dict[str, tuple[int, int] | None]:
    """Smallest and largest time of each column; types are in the order of a walk through the tree of columns."""
    names = [value.decode() for number, value in types[0] if number == _NAMES]
    starts = [number for key, value in types[0] if key == _SUBTYPES for number in _numbers(value)]
    found: dict[str, tuple[int, int] | None] = {}
    for name, start, end in zip(names, starts, [*starts[1:], len(types)], strict=True):
        for at in range(start, end):
            said = statistics[at] if at < len(statistics) else None
            if dict(types[at]).get(_KIND, 0) in _TIMES and (said is None or said.get(_VALUES, 0)):
                found[name] = _wider(found[name], _range(said)) if name in found else _range(said)
    return found


def _range(statistics: dict[int, Any] | None) -> tuple[int, int] | None:
    said = dict(_fields((statistics or {}).get(_OF_TIMES, b"")))
    low = said.get(_SMALLEST_UTC, said.get(_SMALLEST))
    high = said.get(_LARGEST_UTC, said.get(_LARGEST))
    return None if low is None or high is None else (_signed(low), _signed(high))


def _wider(one: tuple[int, int] | None, other: tuple[int, int] | None) -> tuple[int, int] | None:
    return None if one is None or other is None else (min(one[0], other[0]), max(one[1], other[1]))


def _numbers(packed: bytes | int) -> list[int]:
    """Numbers that are packed, or a single one that is not."""
    if isinstance(packed, int):
        return [packed]
    found, at = [], 0
    while at < len(packed):
        number, at = _varint(packed, at)
        found.append(number)
    return found


def _signed(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of each field of a message of Protocol Buffers."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        if not key:
            return
        kind = key & 7
        value: int | bytes
        if kind == _VARINT:
            value, at = _varint(message, at)
        elif kind == _TEXT:
            length, at = _varint(message, at)
            if length > len(message) - at:
                raise ValueError("a field is longer than its message")
            value, at = message[at : at + length], at + length
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            length = 8 if kind == _EIGHT_BYTES else 4
            value, at = message[at : at + length], at + length
        else:
            raise ValueError(f"a field has the unknown type {kind}")
        yield key >> 3, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at

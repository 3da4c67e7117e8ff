"""
CRC-32C (Castagnoli) in plain Python, a hundred megabytes a second. Pure.

The standard library has only the other CRC-32. A byte-at-a-time loop would take longer than reading the file, so the
data is cut into lanes of 128 bytes which are walked side by side: the running remainders of all lanes are four byte
strings, and one table look-up for all lanes is one `bytes.translate`. The lanes' remainders are then joined, which
is possible because a CRC is linear: appending 128 bytes multiplies the remainder by a constant.
"""

from __future__ import annotations

from functools import cache
from typing import Final

_POLYNOMIAL: Final = 0x82F63B78  # reflected
_LANE: Final = 128


def _byte_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return tuple(table)


_TABLE: Final = _byte_table()
_PLANES: Final = tuple(bytes(value >> shift & 0xFF for value in _TABLE) for shift in (0, 8, 16, 24))


def _append_zeros(value: int) -> int:
    """The remainder after a lane of zeros."""
    for _ in range(_LANE):
        value = (value >> 8) ^ _TABLE[value & 0xFF]
    return value


@cache
def _join_tables() -> tuple[tuple[int, ...], ...]:
    """Per byte of a remainder, what a lane of zeros makes of it; built on first use, it takes some milliseconds."""
    return tuple(tuple(_append_zeros(byte << shift) for byte in range(256)) for shift in (0, 8, 16, 24))


def crc32c(data: bytes) -> int:
    """Checksum of *data*, as in RFC 3720: ``crc32c(b"123456789") == 0xE3069283``."""
    return crc32c_chunks(data, max(len(data), 1))[0]


def crc32c_chunks(data: bytes, chunk_bytes: int) -> list[int]:
    """
    Checksums of *data* cut into chunks, all in one pass.

    Args:
        data: Any length; empty data counts as one empty chunk.
        chunk_bytes: Length of each chunk but the last.
    """
    if len(data) < 4 * _LANE:
        return [_plain(data[start : start + chunk_bytes]) for start in range(0, max(len(data), 1), chunk_bytes)]
    chunks = [data[start : start + chunk_bytes] for start in range(0, len(data), chunk_bytes)]
    lanes = bytearray()
    counts = []
    for chunk in chunks:
        # The usual start value is the same as inverting the first four bytes; leading zeros then change nothing.
        inverted = bytes(byte ^ 0xFF for byte in chunk[:4]) + chunk[4:]
        padding = -len(chunk) % _LANE
        lanes += b"\0" * padding + inverted
        counts.append((padding + len(chunk)) // _LANE)
    remainders = _walk(bytes(lanes))
    sums = []
    position = 0
    for chunk, count in zip(chunks, counts, strict=True):
        short = len(chunk) < 4
        sums.append(_plain(chunk) if short else _joined(remainders, position, count) ^ 0xFFFFFFFF)
        position += count
    return sums


def _plain(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value = (value >> 8) ^ _TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def _walk(lanes: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """Remainders of all lanes, one byte string per byte of the remainder, lowest first."""
    count = len(lanes) // _LANE
    plane0, plane1, plane2, plane3 = _PLANES
    low = second = third = high = 0
    for column in range(_LANE):
        index = (low ^ int.from_bytes(lanes[column::_LANE], "little")).to_bytes(count, "little")
        low = second ^ int.from_bytes(index.translate(plane0), "little")
        second = third ^ int.from_bytes(index.translate(plane1), "little")
        third = high ^ int.from_bytes(index.translate(plane2), "little")
        high = int.from_bytes(index.translate(plane3), "little")
    first, *rest = (part.to_bytes(count, "little") for part in (low, second, third, high))
    return (first, rest[0], rest[1], rest[2])


def _joined(remainders: tuple[bytes, bytes, bytes, bytes], start: int, count: int) -> int:
    first, second, third, fourth = remainders
    join0, join1, join2, join3 = _join_tables()
    value = 0
    for lane in range(start, start + count):
        value = join0[value & 0xFF] ^ join1[value >> 8 & 0xFF] ^ join2[value >> 16 & 0xFF] ^ join3[value >> 24]
        value ^= first[lane] | second[lane] << 8 | third[lane] << 16 | fourth[lane] << 24
    return value

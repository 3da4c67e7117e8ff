"""
Encodes the positions of records for the header of a log block.

A 64-bit Roaring bitmap in its portable form, as Base64 text: for each upper half of the numbers (32 bits) a bitmap of
the lower halves, and in that for each of their upper 16 bits a container, an array or a set of bits. Runs, the third
kind of container, only save space, and no reader asks for them.

Source: Hudi ``LogReaderUtils.encodePositions``; the Roaring format specification.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

_WITHOUT_RUNS: Final = 12346
_ARRAY_MAX: Final = 4096
"""Number of values from which a set of bits is smaller than an array."""

Numbers = npt.NDArray[np.int64]


def encode_positions(positions: Numbers) -> str:
    """
    Return the text of the header.

    Args:
        positions: Numbers of rows, ascending, none of them twice.
    """
    halves = list(_grouped(positions, 32))
    parts = [struct.pack("<q", len(halves))]
    for high, lows in halves:
        containers = list(_grouped(lows, 16))
        parts.append(struct.pack("<III", high, _WITHOUT_RUNS, len(containers)))
        parts += [struct.pack("<HH", key, len(values) - 1) for key, values in containers]
        contents = [_container(values) for _, values in containers]
        offset = 8 + 8 * len(contents)  # from the beginning of this bitmap: its cookie, its count, both tables
        for content in contents:
            parts.append(struct.pack("<I", offset))
            offset += len(content)
        parts += contents
    return base64.b64encode(b"".join(parts)).decode("ascii")


def _grouped(numbers: Numbers, bits: int) -> Iterator[tuple[int, Numbers]]:
    """Yield each upper part with the lower *bits* of its numbers."""
    uppers, starts = np.unique(numbers >> bits, return_index=True)
    lowers = np.split(numbers & ((1 << bits) - 1), starts[1:])
    yield from zip(uppers.tolist(), lowers, strict=True) if len(uppers) else ()


def _container(values: Numbers) -> bytes:
    if len(values) <= _ARRAY_MAX:
        return values.astype("<u2").tobytes()
    bits: npt.NDArray[Any] = np.zeros(1 << 16, np.uint8)
    bits[values] = 1
    return np.packbits(bits, bitorder="little").tobytes()

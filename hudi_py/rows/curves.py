"""
Places of rows on a line, so that rows with like values in several columns come to lie together. Pure.

`column_codes` maps the values of a column to numbers in their order, `place_on` puts those of several columns together
along a curve through all of them.

Source: J. Skilling, *Programming the Hilbert curve* (2004), for `_hilbert`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.formats.arrow_types import Array, compute

Codes = npt.NDArray[np.uint64]
_PREFIX_BYTES: Final = 8
_BITS: Final = 63
"""Of a place; one less than a number has, so that none is negative to Arrow."""
_COLUMN_BITS_MAX: Final = 16


def column_codes(column: Array, prefix: bytes = b"") -> Codes:
    """
    Return a number for each value, in the order of the values; 0 for null.

    Texts and binary values are distinguished by the eight bytes behind *prefix*, so different ones may have the same
    number.

    Args:
        column: Values of a type that has an order.
        prefix: Bytes that most values begin with; those below and above have the smallest and the largest number.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()  # type: ignore[attr-defined]
        kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        codes = _text_codes(column, prefix)
    elif pa.types.is_boolean(kind):
        codes = column.cast(pa.uint8()).fill_null(0).to_numpy(zero_copy_only=False).astype(np.uint64)
    elif pa.types.is_decimal(kind) or pa.types.is_floating(kind):
        codes = _float_codes(column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False))
    else:
        bits = 32 if kind.bit_width == 32 else 64
        if pa.types.is_temporal(kind):
            column = column.view(pa.int32() if bits == 32 else pa.int64())
        numbers = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        # Flipping the sign bit puts negative numbers before positive ones in an unsigned order.
        codes = numbers.view(np.uint64) ^ np.uint64(1 << 63)
    if column.null_count:
        is_null = column.is_null().to_numpy(zero_copy_only=False)
        # The smallest value shares its number with the one above it, so that null alone has 0.
        codes = np.where(is_null, np.uint64(0), np.maximum(codes, np.uint64(1)))
    return codes


def common_prefix(column: Array) -> bytes:
    """Return the bytes that all texts or binary values begin with; none for other types."""
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        return b""
    bounds: Any = compute.min_max(column.cast(pa.binary()))
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low is None:
        return b""
    length = next((at for at, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    return bytes(low[:length])


def _float_codes(values: npt.NDArray[np.float64]) -> Codes:
    """Order of IEEE 754 as that of numbers; NaN is the largest."""
    # Both zeros are equal, but have different bits.
    bits = np.where(values == 0, 0.0, values).view(np.uint64)
    sign = np.uint64(1 << 63)
    # Bits of negative numbers grow with their size, so they are turned around.
    codes = np.where(bits & sign, ~bits, bits | sign)
    return np.where(np.isnan(values), np.uint64(0xFFFFFFFFFFFFFFFF), codes)


def _text_codes(column: Any, prefix: bytes) -> Codes:
    plain = column.cast(pa.binary()).fill_null(b"")
    _, offset_buffer, data = plain.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[plain.offset : plain.offset + len(plain) + 1].astype(np.int64)
    content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    starts, ends = offsets[:-1] + len(prefix), offsets[1:]
    codes = np.zeros(len(plain), np.uint64)
    for step in range(_PREFIX_BYTES):
        at = starts + step
        is_there = at < ends
        byte = np.where(is_there, content[np.where(is_there, at, 0)], 0).astype(np.uint64)
        codes = (codes << np.uint64(8)) | byte
    if prefix:
        # By a sample all values begin with it, and some of the others do not.
        others = ~compute.starts_with(plain, pattern=prefix).to_numpy(zero_copy_only=False)
        below = compute.less(plain, pa.scalar(prefix, pa.binary())).to_numpy(zero_copy_only=False)
        codes = np.where(others, np.where(below, np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF)), codes)
    return codes


@attrs.frozen(eq=False)
class Quantiles:
    """
    Cuts a column into ranges with about the same number of rows. A value that many rows have is in the range in the
    middle of those that it fills.

    Args:
        sample: Ascending codes of some of the rows.
        ranges: How many ranges, of which few or all hold something.
    """

    sample: Codes
    ranges: int

    @classmethod
    def of(cls, sample: Codes, ranges: int) -> Quantiles:
        """By a sample of codes in any order."""
        return cls(np.sort(sample), ranges)

    def ranks(self, codes: Codes) -> Codes:
        """Return the number of the range of each code, from 0 on."""
        # Of all ranges, also where there are fewer codes: a curve halves a column at the middle of its ranges.
        below = np.searchsorted(self.sample, codes, side="left")
        until = np.searchsorted(self.sample, codes, side="right")
        ranks: Codes = ((below + until) * self.ranges // (2 * max(1, len(self.sample)))).astype(np.uint64)
        return np.minimum(ranks, np.uint64(self.ranges - 1))


def cell_ends(places: Codes, files: int) -> Codes:
    """
    Return the places at which files should begin, so that each holds whole cells of the curve, in ascending order.

    A file that has a few rows of the next cell covers that cell, too, and is opened for it. So each end is moved, by a
    tenth of a file at most, to where the highest bit of the place changes.

    Args:
        places: Of the rows, or of a sample.
        files: How many files the rows go to; fewer ends come back where places are equal.
    """
    ordered = np.sort(places)
    # A plan may ask for millions of files, where its target size was given in another unit.
    files = max(1, min(files, len(ordered)))
    window = len(ordered) // (10 * files)
    found: list[np.uint64] = []
    for number in range(1, files):
        wanted = number * len(ordered) // files
        first, last = max(1, wanted - window), min(len(ordered), wanted + window + 1)
        changed = ordered[first - 1 : last - 1] ^ ordered[first:last]
        bit = int(changed.max(initial=0)).bit_length() - 1
        if bit >= 0:
            at = first + np.flatnonzero(changed >= np.uint64(1 << bit))
            begin = ordered[at[np.abs(at - wanted).argmin()]]
            found.append(begin >> np.uint64(bit) << np.uint64(bit))
    return np.unique(np.array(found, np.uint64))


def bits_per_column(columns: int) -> int:
    """Return the number of bits of a rank, so that those of all columns fit into a place."""
    return max(1, min(_COLUMN_BITS_MAX, _BITS // columns))


def place_on(layout: str, ranks: Sequence[Codes], bits: int) -> Codes:
    """
    Return the places of rows on a line.

    Args:
        layout: ``ZORDER`` or ``HILBERT``.
        ranks: For each column a number for each row, below 2 to the power of *bits*.
        bits: See `bits_per_column`.
    """
    axes = [rank.copy() for rank in ranks]
    if layout == "HILBERT":
        _hilbert(axes, bits)
    return _interleaved(axes, bits)


def _interleaved(axes: Sequence[Codes], bits: int) -> Codes:
    """Take one bit of each axis in turn, the highest first."""
    place = np.zeros_like(axes[0])
    one = np.uint64(1)
    for bit in reversed(range(bits)):
        for axis in axes:
            place = (place << one) | ((axis >> np.uint64(bit)) & one)
    return place


def _hilbert(axes: list[Codes], bits: int) -> None:
    """Turn coordinates into what `_interleaved` makes a place on the Hilbert curve of, in place."""
    first = axes[0]
    for bit in reversed(range(1, bits)):
        high = np.uint64(1 << bit)
        low = np.uint64((1 << bit) - 1)
        for axis in axes:
            is_set = (axis & high) != 0
            swapped = np.where(is_set, np.uint64(0), (first ^ axis) & low)
            first ^= np.where(is_set, low, swapped)
            if axis is not first:
                axis ^= swapped
    for before, axis in pairwise(axes):
        axis ^= before
    flip = np.zeros_like(first)
    for bit in reversed(range(1, bits)):
        high = np.uint64(1 << bit)
        flip ^= np.where((axes[-1] & high) != 0, np.uint64((1 << bit) - 1), np.uint64(0))
    for axis in axes:
        axis ^= flip

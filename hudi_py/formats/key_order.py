"""
Sorts strings and floating-point numbers in Java's order; strings (by UTF-16 code units) without converting them.

The orders of UTF-16 and UTF-8 differ in one place: characters above U+FFFF are surrogate pairs in UTF-16 and sort
before U+E000. In UTF-8 their first bytes are F0 to F4, those of U+E000 to U+FFFF are EE and EF, so it is enough to
swap these two groups of first bytes.

Source: Hudi, ``HoodieBloomFilterWriteSupport`` (``String.compareTo``).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.formats.arrow_types import Array, compute


def _swapped() -> npt.NDArray[np.uint8]:
    table = np.arange(256, dtype=np.uint8)
    table[[0xF0, 0xF1, 0xF2, 0xF3, 0xF4, 0xEE, 0xEF]] = [0xEE, 0xEF, 0xF0, 0xF1, 0xF2, 0xF3, 0xF4]
    return table


_TO_ORDER: Final = _swapped()
_FROM_ORDER: Final = np.argsort(_TO_ORDER).astype(np.uint8)


def java_order(strings: Array) -> Array:
    """
    Map strings to binaries whose byte order is Java's order of the strings.

    Args:
        strings: Any string type; nulls stay nulls.

    Returns:
        Large binaries, to be compared or sorted; `from_java_order` converts one back.
    """
    binary: Array = strings.cast(pa.large_binary())
    validity, offsets, data = binary.buffers()
    raw = np.zeros(0, dtype=np.uint8) if data is None else np.frombuffer(memoryview(data), dtype=np.uint8)
    if not (raw >= 0xEE).any():
        return binary  # nothing to swap: the common case, and no copy
    make: Any = pa.Array.from_buffers
    buffers = [validity, offsets, pa.py_buffer(_TO_ORDER[raw].data)]
    result: Array = make(pa.large_binary(), len(binary), buffers, binary.null_count, binary.offset)
    return result


def java_numbers(numbers: Array) -> Array:
    """
    Map floating-point numbers to integers whose order is Java's: -0.0 before 0.0, and NaN, equal to itself, last.

    Args:
        numbers: Floats or doubles; nulls stay nulls.

    Returns:
        64-bit integers, to be compared or sorted.

    Source: Java ``Double.compareTo``.
    """
    values = numbers.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)  # one NaN, as Double.doubleToLongBits
    # The bits of negative numbers grow with their magnitude.
    codes = np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)
    found: Array = pa.array(codes, mask=numbers.is_null().to_numpy(zero_copy_only=False))
    return found


def from_java_order(key: bytes) -> str:
    """Return the string for a value of `java_order`."""
    return _FROM_ORDER[np.frombuffer(key, dtype=np.uint8)].tobytes().decode("utf-8")


def key_range(strings: Array) -> tuple[bytes, bytes] | None:
    """Return the smallest and the largest string, as `java_order` values; None if there are no strings."""
    extremes = compute.min_max(java_order(strings)).as_py()
    return None if extremes["min"] is None else (extremes["min"], extremes["max"])

"""
Strings in Java's order, by UTF-16 code unit, without leaving UTF-8.

The two orders differ in one place: characters above U+FFFF are surrogate pairs for Java and sort before U+E000. In
UTF-8 these are the first bytes F0 to F4 against EE and EF, so swapping the two groups of first bytes is enough.

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
        Large binaries, to be compared or sorted; `from_java_order` turns one back.
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


def from_java_order(key: bytes) -> str:
    """Turn one value of `java_order` back into its string."""
    return _FROM_ORDER[np.frombuffer(key, dtype=np.uint8)].tobytes().decode("utf-8")


def key_range(strings: Array) -> tuple[bytes, bytes] | None:
    """Smallest and largest string, as `java_order` values; None when there is none."""
    extremes = compute.min_max(java_order(strings)).as_py()
    return None if extremes["min"] is None else (extremes["min"], extremes["max"])

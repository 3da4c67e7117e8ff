"""
Java's ``String.hashCode`` of whole columns. Pure.

Hudi chooses buckets, and file groups of indexes, by this hash. It is computed from UTF-16 units: the sum of unit *
31^(number of units after it), in 32 bits. Source: Java SE, ``String.hashCode``, ``List.hashCode``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.formats.arrow_types import Array, compute


def java_hashes(texts: Array) -> npt.NDArray[np.uint32]:
    """
    Hash strings.

    Args:
        texts: Strings, n of them, without nulls.

    Returns:
        Shape (n,), the bits of Java's int.
    """
    column: Any = texts.cast(pa.large_string())
    plain = compute.equal(compute.binary_length(column), compute.utf8_length(column)).to_numpy(zero_copy_only=False)
    if not plain.all():  # UTF-8 bytes equal UTF-16 units for ASCII only; other texts are hashed one by one
        hashes = np.zeros(len(column), dtype=np.uint32)
        hashes[plain] = java_hashes(column.filter(pa.array(plain)))
        hashes[~plain] = [_hash(text) for text in column.filter(pa.array(~plain)).to_pylist()]
        return hashes
    _, offsets, data = column.buffers()
    edges = np.frombuffer(offsets, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    lengths = np.diff(edges)
    hashes = np.zeros(len(column), dtype=np.uint32)
    filled = lengths > 0
    if not filled.any():
        return hashes
    units = np.frombuffer(data, dtype=np.uint8)[edges[0] : edges[-1]].astype(np.uint32)
    following = np.repeat(edges[1:] - edges[0] - 1, lengths) - np.arange(len(units))
    powers = np.cumprod(np.concatenate([[1], np.full(lengths.max() - 1, 31)]).astype(np.uint32), dtype=np.uint32)
    units *= powers[following]
    hashes[filled] = np.add.reduceat(units, (edges[:-1] - edges[0])[filled], dtype=np.uint32)
    return hashes


def _hash(text: str) -> int:
    units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), dtype="<u2")
    value = 0
    for unit in units.tolist():
        value = (31 * value + unit) & 0xFFFFFFFF
    return value

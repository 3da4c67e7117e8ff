"""
Content of Avro data blocks in log files and change logs, by column.

Layout: int32 version, int32 count, per record int32 size and Avro binary in the schema of the block's header.

Source: rules/data-files 9.2; Hudi 0.15.0 to 1.1.1 ``HoodieAvroDataBlock``.
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.avro_columns import decode_columns

_HEAD: Final = struct.Struct(">ii")
_SIZE: Final = struct.Struct(">i")
_VERSIONS: Final = (1, 2, 3)


def decode_data_block(
    content: bytes, schema_text: str, source: str, columns: frozenset[str] | None = None
) -> pa.RecordBatch:
    """
    Decode the records of a block; arguments, rows and errors as `decode_columns`.

    Raises:
        CorruptMetadata: Also for another version, or if the sizes do not add up.
    """
    starts, ends = _places(content, source)
    return decode_columns(content, starts, ends, schema_text, source, columns)


def _places(content: bytes, source: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The begin and the end of each record."""
    try:
        version, count = _HEAD.unpack_from(content)
        if version not in _VERSIONS:
            raise ValueError(f"version {version} is not known")
        # Before the loop, which a damaged number would make run for minutes.
        if not 0 <= count <= len(content) // _SIZE.size:
            raise ValueError(f"{count} records do not fit")
        ends = []
        at, unpack, step = _HEAD.size, _SIZE.unpack_from, _SIZE.size
        for _ in range(count):
            (size,) = unpack(content, at)
            # A negative size would lead back into the block, without end.
            if size < 0:
                raise ValueError("a record of negative size")
            at += step + size
            ends.append(at)
        if at != len(content):
            raise ValueError("the records do not fill the block")
    except (struct.error, ValueError) as error:
        raise CorruptMetadata(f"{source}: a data block does not decode: {error}") from error
    edges = np.array([_HEAD.size, *ends], np.int64)
    return edges[:-1] + _SIZE.size, edges[1:]

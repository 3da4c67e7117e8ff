"""The record keys of whole files, for the indexes of the metadata table."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from hudi_py.formats.arrow_types import Array, compute
from hudi_py.formats.log_block import BlockType, iterate_log_blocks
from hudi_py.rows.log_records import KEY_COLUMN, Kind, RecordShape, records_of
from hudi_py.rows.lookup import read_keys
from hudi_py.rows.written import NO_KEYS, KeyChanges
from hudi_py.storage.base import Storage

_KEYS_ONLY: Final = RecordShape(schema=pa.schema([(KEY_COLUMN, pa.string())]), ordering=())
_RECORDS: Final = (BlockType.AVRO_DATA, BlockType.PARQUET_DATA, BlockType.HFILE_DATA, BlockType.DELETE)


def keys_of_base_file(storage: Storage, path: str) -> Array:
    """
    Return the record keys of a base file.

    Raises:
        NotFound: There is no such file.
        CorruptMetadata: It is not a base file.
    """
    with storage.open_read(path) as stream:
        keys: Array = read_keys(stream).combine_chunks()
    return keys


def keys_of_log_file(storage: Storage, path: str) -> KeyChanges:
    """
    Return the keys of the rows and of the deletes in a log file; of a key that has both, the last one counts.

    Raises:
        NotFound: There is no such file.
        CorruptMetadata: A block does not decode.
    """
    source = f"{storage.root}/{path}"
    blocks = iterate_log_blocks(storage.read(path), source)
    # In the order of the records, so that the last one of a key decides.
    is_row: dict[str | None, bool] = {}
    for records in records_of(((block, source) for block in blocks if block.block_type in _RECORDS), _KEYS_ONLY):
        is_row.update(zip(records.keys.to_pylist(), (records.kinds == Kind.ROW).tolist(), strict=True))
    keys, mask = pa.array(list(is_row), pa.string()), np.fromiter(is_row.values(), np.bool_, len(is_row))
    return KeyChanges(keys.filter(pa.array(mask)), keys.filter(pa.array(~mask))) if is_row else _NONE


def texts(keys: Array) -> list[str]:
    """Return keys as texts."""
    return [str(key) for key in keys.to_pylist()]


def difference(keys: Array, others: Array) -> Array:
    """Return those of *keys* that are not among *others*."""
    found: Array = keys.filter(compute.invert(compute.is_in(keys, value_set=others)))
    return found


_NONE: Final = KeyChanges(NO_KEYS, NO_KEYS)

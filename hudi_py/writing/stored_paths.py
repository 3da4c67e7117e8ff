"""
Compares the keys and paths that a write would compute with those of rows that the table has.

Releases of Hudi store only some settings of a key generator by time in the table. A write with others would put rows of
one time into another folder than before, and an upsert would not find the older row there. In the same way releases
differ in the form of single-column keys, and a key in the other form would be a second row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa

from hudi_py.errors import ConfigError
from hudi_py.model.files import FileSlice, join_path
from hudi_py.rows.keys import KeyGenerator, is_prefixed
from hudi_py.rows.lookup import read_keys
from hudi_py.rows.read import open_parquet
from hudi_py.rows.stored_keys import KEY, PATH
from hudi_py.storage.base import Storage

_ROWS_MAX: Final = 1000


def check_stored_paths(storage: Storage, slices: Sequence[FileSlice], keys: KeyGenerator) -> None:
    """
    Compute the paths of some stored rows, of the first and of the last file.

    Args:
        storage: The table's storage.
        slices: File slices with the rows of the table.
        keys: The key generator of the write.

    Raises:
        ConfigError: A stored row has another path.
        CorruptMetadata, StorageError: A file is damaged or cannot be read.
    """
    if not keys.times:
        return
    for rows in _some_rows(storage, slices, keys.partition_fields, PATH):
        computed = keys.partition_paths(rows)
        for wanted, path in zip(rows.column(PATH).to_pylist(), computed.to_pylist(), strict=True):
            if wanted != path:
                raise ConfigError(
                    f"with these hoodie.keygen.timebased.* settings a row that {storage.root} has in the partition "
                    f"{wanted!r} would belong to {path!r}; give the settings that the table's other writers have"
                )


def check_stored_keys(storage: Storage, slices: Sequence[FileSlice], keys: KeyGenerator) -> None:
    """
    Compute the keys of some stored rows, of the first and of the last file; for keys that `may_differ_in_text`.

    Apache Hudi stores one timestamp as different texts: upserts as its number of microseconds, bulk inserts by the row
    writer as what the writer's clock showed. Rows whose key is computed as the former are not found among the latter.

    Args:
        storage, slices, keys: As for `check_stored_paths`.

    Raises:
        ConfigError: A stored row has another key.
        CorruptMetadata, StorageError: A file is damaged or cannot be read.
    """
    for rows in _some_rows(storage, slices, keys.key_columns, KEY):
        computed = keys.record_keys(rows)
        for stored, key in zip(rows.column(KEY).to_pylist(), computed.to_pylist(), strict=True):
            if stored != key:
                raise ConfigError(
                    f"{storage.root} has the key {stored!r} of a row whose key would be {key!r}: its writers stored "
                    "times as another text, so rows with these keys would not be found; nothing was written; delete "
                    "and update by conditions (where=), or rewrite the table's rows with one kind of key"
                )


def may_differ_in_text(keys: KeyGenerator, schema: pa.Schema) -> bool:
    """Whether a key is made of a value that Apache Hudi stores as different texts, see `hudi_py.rows.key_texts`."""
    kinds = [schema.field(name).type for name in keys.key_columns if name in schema.names]
    return any(pa.types.is_timestamp(each) or pa.types.is_date(each) or pa.types.is_decimal(each) for each in kinds)


def _some_rows(
    storage: Storage, slices: Sequence[FileSlice], columns: Sequence[str], stored: str
) -> Iterator[pa.RecordBatch]:
    with_base = [file_slice for file_slice in slices if file_slice.base_file is not None]
    # The first and the last: rows of two times of the table's life, without opening all files.
    for each in with_base[:1] + with_base[1:][-1:]:
        assert each.base_file is not None
        with open_parquet(storage, join_path(each.partition_path, each.base_file.name), each.base_file) as file:
            rows = next(file.iter_batches(_ROWS_MAX, columns=[*columns, stored]), None)
        if rows is not None:
            yield rows


def are_keys_prefixed(storage: Storage, slices: Iterable[FileSlice], field: str) -> bool | None:
    """
    Return whether stored keys have the form ``column:value``; None if the table has no rows.

    Args:
        storage: The table's storage.
        slices: File slices with the rows of the table.
        field: The record key column.
    """
    for file_slice in slices:
        if file_slice.base_file is not None:
            with storage.open_read(join_path(file_slice.partition_path, file_slice.base_file.name)) as stream:
                first = read_keys(stream)
            # One key is enough, because all keys of a table have the same form.
            return is_prefixed(first[0].as_py(), field) if len(first) else None
    return None

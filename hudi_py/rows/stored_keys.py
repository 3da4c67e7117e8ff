"""Keys of rows that were read from the table: they are in the rows' meta columns."""

from __future__ import annotations

from typing import Final

import attrs
import pyarrow as pa

from hudi_py.formats.arrow_types import Array
from hudi_py.rows.keys import KeyGenerator

KEY: Final = "_hoodie_record_key"
PATH: Final = "_hoodie_partition_path"
FILE: Final = "_hoodie_file_name"


@attrs.frozen
class StoredKeys(KeyGenerator):
    """A key generator that returns the stored keys and computes nothing."""

    @classmethod
    def like(cls, generator: KeyGenerator) -> StoredKeys:
        """Return stored keys with the fields of *generator*."""
        return cls(**attrs.asdict(generator, recurse=False))

    def record_keys(self, batch: pa.RecordBatch) -> Array:
        """Return the stored keys."""
        keys: Array = batch.column(batch.schema.get_field_index(KEY))
        return keys

    def partition_paths(self, batch: pa.RecordBatch) -> Array:
        """Return the stored partition paths."""
        paths: Array = batch.column(batch.schema.get_field_index(PATH))
        return paths

"""
A base file some of whose columns have other names today, as if it stored them under those.

Source: Hudi 1.1.1 ``InternalSchemaMerger``: a column is found in a file by its id, and is null where the file has none
of that id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from hudi_py.formats.renamed import renamed_batch, renamed_schema, stored_name
from hudi_py.model.moved import StoredNames

_ROWS: Final = 32768


class MovedFile:
    """
    The part of `pyarrow.parquet.ParquetFile` that readers of rows use.

    Args:
        file: The file, as `pyarrow.parquet.ParquetFile` or `hudi_py.rows.joined_file.JoinedFile`.
        moved: Where its columns are today.
    """

    def __init__(self, file: Any, moved: StoredNames) -> None:
        self.stored = file
        self.moved = moved
        self.metadata = file.metadata
        self.num_row_groups: int = file.metadata.num_row_groups
        self.schema_arrow = renamed_schema(file.schema_arrow.remove_metadata(), moved)

    def iter_batches(
        self,
        batch_size: int = _ROWS,
        row_groups: Sequence[int] | None = None,
        columns: Sequence[str] | None = None,
        *,
        use_threads: bool = True,
    ) -> Iterator[pa.RecordBatch]:
        """Rows in order; *columns* by their names of today."""
        # All groups are named: of a bootstrapped file None means the same, and ParquetFile wants a list.
        groups = range(self.num_row_groups) if row_groups is None else row_groups
        names = self._stored(columns)
        for batch in self.stored.iter_batches(batch_size, list(groups), names, use_threads=use_threads):
            yield renamed_batch(batch, self.moved)

    def read_row_group(self, number: int, columns: Sequence[str] | None = None) -> pa.Table:
        """A row group as a table; *columns* by their names of today, each of which the file has."""
        table = self.stored.read_row_group(number, columns=self._stored(columns))
        batches = [renamed_batch(each, self.moved) for each in table.to_batches()]
        wanted = self.schema_arrow.names if columns is None else columns
        schema = batches[0].schema if batches else pa.schema([self.schema_arrow.field(name) for name in wanted])
        return pa.Table.from_batches(batches, schema)

    def _stored(self, columns: Sequence[str] | None) -> list[str]:
        wanted = self.schema_arrow.names if columns is None else columns
        return [name for each in wanted if (name := stored_name(each, self.moved)) is not None]

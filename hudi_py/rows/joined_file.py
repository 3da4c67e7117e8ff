"""
A base file of a bootstrapped table, whose columns are in a file outside of the table, as if it were a single file.

The table's own file has the meta columns, the other one the columns of the table, row by row in the same order. The
file outside is only read.

Source: Hudi 0.15.0 ``HoodieBootstrapRelation``; 1.1.1 ``BootstrapFileSplitReader`` of ``HoodieReaderContext``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_py.errors import CorruptMetadata

_ROWS: Final = 32768


@attrs.frozen
class JoinedFooter:
    """The numbers of `pyarrow.parquet.FileMetaData` that readers ask for; all rows are one row group."""

    num_rows: int
    metadata: Any

    @property
    def num_row_groups(self) -> int:
        """0 for a file without rows."""
        return min(self.num_rows, 1)


class JoinedFile:
    """
    The part of `pyarrow.parquet.ParquetFile` that readers of rows use.

    Args:
        own: The table's file.
        other: The file outside.
        values: Columns that neither has, with their values as text.
        where: Both locations, for messages.

    Raises:
        CorruptMetadata: Their numbers of rows differ.
    """

    def __init__(
        self, own: pq.ParquetFile, other: pq.ParquetFile, values: Mapping[str, str | None], where: str
    ) -> None:
        # Rows are joined by position, so a single row more or less would give all rows after it the values of others.
        if own.metadata.num_rows != other.metadata.num_rows:
            raise CorruptMetadata(
                f"{where}: the first has {own.metadata.num_rows} rows, the second {other.metadata.num_rows}; the file "
                "that the table was made from was changed since, restore it"
            )
        self._own, self._other = own, other
        stored = own.schema_arrow.names
        columns = other.schema_arrow
        theirs = [field for field in columns if field.name not in stored]
        self._values = {name: text for name, text in values.items() if name not in {*stored, *columns.names}}
        more = [pa.field(name, pa.string()) for name in self._values]
        self.schema_arrow = pa.schema([*own.schema_arrow, *theirs, *more])
        self.metadata = JoinedFooter(own.metadata.num_rows, own.metadata.metadata)

    def iter_batches(
        self,
        batch_size: int = _ROWS,
        row_groups: Sequence[int] | None = None,
        columns: Sequence[str] | None = None,
        *,
        use_threads: bool = True,
    ) -> Iterator[pa.RecordBatch]:
        """Rows in order; *row_groups* is empty or names the only one."""
        if row_groups is not None and not list(row_groups):
            return
        wanted = self.schema_arrow.names if columns is None else list(columns)
        own = [name for name in wanted if name in self._own.schema_arrow.names]
        other = [name for name in wanted if name not in own and name not in self._values]
        # At least one column of the table's file, whose batches say how many rows there are.
        parts = [(self._own, own or self._own.schema_arrow.names[:1])]
        if other:
            parts.append((self._other, other))
        for pieces in _in_step(
            [file.iter_batches(batch_size, columns=names, use_threads=use_threads) for file, names in parts]
        ):
            found: dict[str, Any] = {}
            for piece in pieces:
                found.update(zip(piece.schema.names, piece.columns, strict=True))
            count = pieces[0].num_rows
            for name, text in self._values.items():
                found[name] = pa.repeat(pa.scalar(text, pa.string()), count)
            fields = [self.schema_arrow.field(name) for name in wanted]
            yield pa.RecordBatch.from_arrays([found[field.name] for field in fields], schema=pa.schema(fields))

    def read_row_group(self, number: int, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows as a table."""
        wanted = self.schema_arrow.names if columns is None else list(columns)
        schema = pa.schema([self.schema_arrow.field(name) for name in wanted])
        return pa.Table.from_batches(self.iter_batches(columns=columns, row_groups=[number]), schema)


def _in_step(streams: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[list[pa.RecordBatch]]:
    """Batches of all streams, cut so that each list has the same rows of all; all have the same number of rows."""
    left: list[pa.RecordBatch | None] = [None] * len(streams)
    while True:
        for at, stream in enumerate(streams):
            while left[at] is None or not left[at].num_rows:  # type: ignore[union-attr]
                batch = next(stream, None)
                if batch is None:
                    return
                left[at] = batch
        ready: list[pa.RecordBatch] = left  # type: ignore[assignment]
        # Batches end with row groups, and the row groups of two files end at different rows.
        count = min(each.num_rows for each in ready)
        yield [each.slice(0, count) for each in ready]
        left = [each.slice(count) for each in ready]

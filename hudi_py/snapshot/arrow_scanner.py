"""
Reads rows as a scanner of Arrow's datasets does: with a filter, and with columns that may be computed.

Arrow evaluates filter and columns, one batch after the other in the thread of the caller. A scanner of its own over all
batches would read them in its pool of threads for files; the reading of files needs that pool itself, and a few scans
at the same time would wait for each other for ever.

Source: pyarrow ``Scanner``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

if TYPE_CHECKING:
    from hudi_py.snapshot.batches import Batches

Columns: TypeAlias = Sequence[str] | Mapping[str, Any] | None
"""Names of columns, or expressions by the name of their result; None for all."""

arrow_scanner: Final[Callable[..., ds.Scanner]] = ds.Scanner.from_batches
"""With other types, because the stubs know fewer forms of columns."""


class RowsScanner:
    """
    The methods of a `pyarrow.dataset.Scanner`; each call reads the rows again.

    Args:
        rows: Rows with all columns that are needed.
        columns: What is returned.
        chosen: A `pyarrow.compute.Expression` that rows have to meet; None for all rows.
        batch_size: Largest number of rows of a batch.
        options: Others of `pyarrow.dataset.Scanner.from_batches`.

    Raises:
        pyarrow.ArrowInvalid: A column does not exist, or an expression does not fit.
    """

    def __init__(
        self, rows: Batches, columns: Columns, chosen: Any, batch_size: int, options: Mapping[str, Any]
    ) -> None:
        self._rows = rows
        self._batch_size = batch_size
        self._options = {**options, "columns": columns, "filter": chosen, "batch_size": batch_size}
        self.dataset_schema: pa.Schema = rows.schema
        self.projected_schema: pa.Schema = self._of([]).projected_schema

    def _of(self, batches: Sequence[pa.RecordBatch]) -> ds.Scanner:
        return arrow_scanner(iter(batches), schema=self.dataset_schema, **self._options)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The batches, in the order of the rows; none is empty."""
        for batch in self._rows:
            for start in range(0, batch.num_rows, self._batch_size):
                for found in self._of([batch.slice(start, self._batch_size)]).to_batches():
                    if found.num_rows:
                        yield found

    def to_reader(self) -> pa.RecordBatchReader:
        """The batches as a `pyarrow.RecordBatchReader`."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        stream: Any = self.to_reader()
        return stream.__arrow_c_stream__(requested_schema)

    def to_table(self) -> pa.Table:
        """All rows in memory."""
        return pa.Table.from_batches(self.to_batches(), self.projected_schema)

    def head(self, num_rows: int) -> pa.Table:
        """The first rows; no more files are read than these need, but for those that are read ahead."""
        found: list[pa.RecordBatch] = []
        left = num_rows
        batches = self.to_batches()
        while left > 0 and (batch := next(batches, None)) is not None:
            found.append(batch.slice(0, left))
            left -= batch.num_rows
        return pa.Table.from_batches(found, self.projected_schema)

    def take(self, indices: Any) -> pa.Table:
        """The rows at these places, counted from 0; raises `IndexError` if there are not as many."""
        places = indices if isinstance(indices, pa.Array) else pa.array(indices, pa.int64())
        last = pc.max(places).as_py()
        return self.head(0 if last is None else last + 1).take(places)

    def count_rows(self) -> int:
        """The number of rows."""
        return sum(batch.num_rows for batch in self.to_batches())

"""
Rows in the order of their columns, in bounded memory.

Rows that fit into memory are sorted there. Of more rows the places on the line are cut into ranges by a sample; the
rows go to a temporary file by their range, and each range is sorted by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from hudi_py.errors import ConfigError
from hudi_py.formats.arrow_types import compute
from hudi_py.rows.curves import Codes, Quantiles, bits_per_column, cell_ends, column_codes, common_prefix, place_on
from hudi_py.rows.spill import Spill

Read = Callable[[pa.Schema], Iterator[pa.RecordBatch]]
"""Reads the rows from their beginning, with these columns."""

_SAMPLE_ROWS: Final = 200_000
_BATCH_ROWS: Final = 32768
_PARTS_MAX: Final = 512


@attrs.frozen(kw_only=True)
class RowOrder:
    """
    An order of rows. Null comes first.

    Args:
        columns: Names of top-level columns.
        layout: ``LINEAR`` (by the first column, then by the second, ...), ``ZORDER`` or ``HILBERT``.
    """

    columns: tuple[str, ...]
    layout: str = "LINEAR"

    @property
    def is_linear(self) -> bool:
        """Whether one column comes after the other; so a curve through a single column does."""
        return self.layout == "LINEAR" or len(self.columns) == 1


def check_order(order: RowOrder, schema: pa.Schema) -> None:
    """
    Raise unless rows can be sorted so.

    Args:
        schema: Columns of the rows.

    Raises:
        ConfigError: There is no such column, its values have no order, or a column is named twice.
    """
    for name in order.columns:
        if name not in schema.names:
            raise ConfigError(f"cannot sort by {name}: the table has no such column; it has {', '.join(schema.names)}")
        if pa.types.is_nested(schema.field(name).type):
            raise ConfigError(f"cannot sort by {name}: its values are {schema.field(name).type}; name a plain column")
    if len(set(order.columns)) < len(order.columns):
        raise ConfigError(f"cannot sort by {', '.join(order.columns)}: a column is named twice")


def in_order(
    read: Read, schema: pa.Schema, order: RowOrder, memory_bytes: int, folder: str | None = None
) -> Iterator[pa.RecordBatch]:
    """Read rows and yield them sorted; arguments as for `sort_rows`."""
    return (batch for batch, _ in sort_rows(read, schema, order, memory_bytes, folder).batches)


@attrs.frozen(kw_only=True)
class SortedRows:
    """
    Args:
        count: Number of the rows that were read.
        line: Where rows lie; None for a linear order.
        batches: The rows, and the places of each batch where there is a line.
    """

    count: int
    line: _Line | None = None
    batches: Iterator[tuple[pa.RecordBatch, Codes | None]]

    def ends(self, files: int) -> Codes:
        """Return the places at which files should begin; none for a linear order."""
        return np.array([], np.uint64) if self.line is None else cell_ends(self.line.sample, files)


def sort_rows(
    read: Read, schema: pa.Schema, order: RowOrder, memory_bytes: int, folder: str | None = None
) -> SortedRows:
    """
    Read rows and sort them.

    Args:
        read: See `Read`; called once if the rows fit into memory.
        schema: Columns of the rows, among them those of the order.
        order: The order.
        memory_bytes: Rows beyond this are sorted by way of temporary files.
        folder: Of these files; None for the machine's.
    """
    held: list[pa.RecordBatch] = []
    size = 0
    rows = read(schema)
    for batch in rows:
        held.append(batch)
        size += batch.nbytes
        if size > memory_bytes:
            break
    else:
        table = pa.Table.from_batches(held, schema=schema)
        curve = None if order.is_linear or not held else _line_by(_thinned(table.select(list(order.columns))), order)
        return SortedRows(count=table.num_rows, line=curve, batches=_sorted(table, order, curve))
    held_rows = sum(batch.num_rows for batch in held)
    line, count = _line_of(read, schema, order)
    # Twice as many parts as memory needs, because a sample cuts unevenly.
    parts = min(_PARTS_MAX, max(2, -(-2 * size * count // (held_rows * memory_bytes))))

    def spilled() -> Iterator[tuple[pa.RecordBatch, Codes | None]]:
        ranges = line.cut(parts)
        with Spill(schema, folder, memory_bytes // 4) as spill:
            # `rows` goes on where the first loop stopped; what that loop held is released as soon as it is on disk.
            for source in (held, rows):
                for batch in source:
                    spill.add(batch, ranges.ranks(line.places(pa.Table.from_batches([batch]))).astype(np.int64))
                held.clear()
            for number in sorted(spill.parts()):
                yield from _sorted_part(spill.read(number), order, line, memory_bytes)

    return SortedRows(count=count, line=None if order.is_linear else line, batches=spilled())


@attrs.frozen(eq=False)
class _Line:
    """
    Puts rows on the line.

    Args:
        order: Columns and layout.
        prefixes: For each column, the bytes that all its values begin with.
        quantiles: For each column, its ranges.
        sample: Places of the sample.
    """

    order: RowOrder
    prefixes: tuple[bytes, ...]
    quantiles: tuple[Quantiles, ...]
    sample: Codes

    def places(self, rows: pa.Table) -> Codes:
        codes = _codes(rows, self.order.columns, self.prefixes)
        if self.order.is_linear:
            return codes[0]
        ranks = [each.ranks(code) for each, code in zip(self.quantiles, codes, strict=True)]
        return place_on(self.order.layout, ranks, bits_per_column(len(ranks)))

    def cut(self, parts: int) -> Quantiles:
        return Quantiles.of(self.sample, parts)


def _line_of(read: Read, schema: pa.Schema, order: RowOrder) -> tuple[_Line, int]:
    """Return a line that a sample of the rows decided, and the number of rows; reads the columns of the order only."""
    narrow = pa.schema([schema.field(name) for name in order.columns])
    picked: list[pa.Table] = []
    count, step, held = 0, 1, 0
    for batch in read(narrow):
        # Every n-th row of all rows, not of each batch: else small batches would weigh more.
        taken = pa.Table.from_batches([batch]).take(_numbers(np.arange(-count % step, batch.num_rows, step)))
        count += batch.num_rows
        picked.append(taken)
        held += taken.num_rows
        if held > 2 * _SAMPLE_ROWS:  # every second one of those that were taken, and from now on
            step *= 2
            whole = pa.concat_tables(picked)
            picked = [whole.take(_numbers(np.arange(0, whole.num_rows, 2)))]
            held = picked[0].num_rows
    return _line_by(pa.concat_tables(picked), order), count


def _line_by(sample: pa.Table, order: RowOrder) -> _Line:
    # Codes hold a few bytes of each value, so the bytes that all values share would be wasted on them.
    prefixes = tuple(common_prefix(_whole(sample.column(name))) for name in order.columns)
    codes = _codes(sample, order.columns, prefixes)
    if order.is_linear:
        return _Line(order, prefixes, (), codes[0])
    bits = bits_per_column(len(codes))
    quantiles = tuple(Quantiles.of(code, 1 << bits) for code in codes)
    ranks = [each.ranks(code) for each, code in zip(quantiles, codes, strict=True)]
    return _Line(order, prefixes, quantiles, place_on(order.layout, ranks, bits))


def _codes(rows: pa.Table, columns: Sequence[str], prefixes: Sequence[bytes]) -> list[Codes]:
    return [column_codes(_whole(rows.column(name)), prefix) for name, prefix in zip(columns, prefixes, strict=True)]


def _numbers(places: Any) -> Any:
    return pa.array(places)


def _whole(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _sorted(rows: pa.Table, order: RowOrder, line: _Line | None) -> Iterator[tuple[pa.RecordBatch, Codes | None]]:
    if line is None or order.is_linear:
        places, indices = None, _indices(rows, order.columns)
    else:
        places = line.places(rows)
        # Stable: rows at the same place keep their order, so a repeated run writes the same files.
        by_place = np.argsort(places, kind="stable")
        places, indices = places[by_place], _numbers(by_place)
    start = 0
    while start < rows.num_rows:
        for batch in rows.take(indices.slice(start, _BATCH_ROWS)).combine_chunks().to_batches():
            yield batch, None if places is None else places[start : start + batch.num_rows]
            start += batch.num_rows


def _indices(rows: pa.Table, columns: Sequence[str]) -> Any:
    """Return the numbers of the rows in order; PyArrow alone would put null last."""
    by: dict[str, Any] = {}
    for number, name in enumerate(columns):
        column = rows.column(name)
        if column.null_count:
            by[f"{number}?"] = compute.is_valid(column).cast(pa.uint8())
        by[str(number)] = column
    keys: Any = [(name, "ascending") for name in by]
    return compute.sort_indices(pa.table(by), sort_keys=keys)


def _thinned(rows: pa.Table) -> pa.Table:
    step = max(1, rows.num_rows // _SAMPLE_ROWS)
    return rows if step == 1 else rows.take(_numbers(np.arange(0, rows.num_rows, step)))


def _sorted_part(
    rows: Iterator[pa.RecordBatch], order: RowOrder, line: _Line, memory_bytes: int
) -> Iterator[tuple[pa.RecordBatch, Codes | None]]:
    """Rows of one range. One that is larger than memory, because its places are equal, is sorted piece by piece."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in rows:
        held.append(batch)
        size += batch.nbytes
        if size > memory_bytes:
            yield from _sorted(pa.Table.from_batches(held), order, line)
            held, size = [], 0
    if held:
        yield from _sorted(pa.Table.from_batches(held), order, line)

"""
The log file of a log compaction, which takes the place of the log blocks that it was merged from, piece by piece.

Source: rules/table-services E-28; Hudi ``HoodieAppendHandle``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import BinaryIO, Final

import pyarrow as pa

from hudi_py.formats.delete_block import DeletedKey
from hudi_py.formats.log_block import HeaderKey
from hudi_py.formats.record_schema import with_meta_fields
from hudi_py.rows.column_ranges import ColumnRange, RangeCollector
from hudi_py.rows.log_file import LogFileOptions, encoded_deletes, encoded_rows, pieces_of

_DELETES_MAX: Final = 16_384
"""Keys of one delete block: encoding takes a kilobyte or two for each."""


class MergedLogWriter:
    """
    Writes it; a key is written once, as a row or as deleted.

    Args:
        sink: The opened file.
        merged: Instant times of the blocks that it stands for, oldest first.
        instant_time: Requested time of the log compaction.
        avro_schema: Record schema, without meta columns.
        schema: Columns of the rows, with their meta columns.
        options: Layout.
        ranged: Columns whose ranges are collected.
    """

    def __init__(
        self,
        sink: BinaryIO,
        merged: Sequence[str],
        instant_time: str,
        avro_schema: str,
        schema: pa.Schema,
        options: LogFileOptions,
        ranged: Sequence[str],
    ) -> None:
        self._sink = sink
        self._header = {
            int(HeaderKey.INSTANT_TIME): instant_time,
            int(HeaderKey.SCHEMA): with_meta_fields(avro_schema),
            int(HeaderKey.COMPACTED_BLOCK_TIMES): ",".join(merged),
        }
        self._schema = schema
        self._options = options
        self._ranges = RangeCollector(schema, ranged)
        self.num_rows = 0
        self.num_deleted = 0
        self.size_bytes = 0

    def write(self, rows: pa.RecordBatch, deleted: Iterator[DeletedKey]) -> None:
        """
        Write rows as they are stored, with their meta columns, and deleted keys.

        Raises:
            WriteError: A value is null where the table's schema has no null.
            StorageError: The storage failed.
        """
        self._ranges.add(rows)
        self.num_rows += rows.num_rows
        for start, count in pieces_of(rows):
            self._write(encoded_rows(rows.slice(start, count), self._header, self._options))
        while keys := list(islice(deleted, _DELETES_MAX)):
            self.num_deleted += len(keys)
            self._write(encoded_deletes(keys, self._header))

    def finish(self) -> None:
        """Write the last of it: a file without a block would not stand for those that it was merged from."""
        if not self.size_bytes:
            nothing = pa.RecordBatch.from_pylist([], schema=self._schema)
            self._ranges.add(nothing)
            self._write(encoded_rows(nothing, self._header, self._options))

    def ranges(self) -> tuple[ColumnRange, ...]:
        """Return the ranges of the rows."""
        return self._ranges.without_sizes()

    def _write(self, block: bytes) -> None:
        self._sink.write(block)
        self.size_bytes += len(block)

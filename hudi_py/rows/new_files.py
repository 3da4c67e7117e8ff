"""
Writes rows into new file groups of a partition, starting another file whenever one is full.

After a crash the files have no completed instant: readers ignore them, and rollback finds them by their markers and
deletes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import BinaryIO

import pyarrow as pa

from hudi_py.formats.arrow_types import Array
from hudi_py.rows.base_file import BaseFileOptions, BaseFileWriter
from hudi_py.rows.written import NO_KEYS, FileTarget, KeyChanges, WrittenFile, of_their_own, written_file
from hudi_py.runtime.clock import MONOTONIC, Seconds


class NewFiles:
    """
    New files of one partition. Either `finish` or `abandon` ends them.

    Args:
        open_file: Called with 0, 1, 2, ... for each file's target and stream; the stream is closed here. The caller
            creates the marker before it opens the stream.
        numbered: Takes a number of rows and returns the number of the first of them within the task. Several of these
            objects may share it, so that sequence numbers stay unique.
        schema: Storage schema.
        avro_schema: The same as Avro text, without meta columns.
        options: Layout and maximum size.
        monotonic: Clock in seconds, for the timings.
    """

    def __init__(
        self,
        open_file: Callable[[int], tuple[FileTarget, BinaryIO]],
        numbered: Callable[[int], int],
        *,
        schema: pa.Schema,
        avro_schema: str,
        options: BaseFileOptions,
        monotonic: Seconds = MONOTONIC,
    ) -> None:
        self._open_file = open_file
        self._numbered = numbered
        self._schema = schema
        self._avro_schema = avro_schema
        self._options = options
        self._monotonic = monotonic
        self._results: list[WrittenFile] = []
        self._open: tuple[BaseFileWriter, BinaryIO, float] | None = None
        self._keys: list[Array] = []

    def write(self, rows: pa.RecordBatch, keys: Array) -> None:
        """
        Write rows.

        Args:
            rows: Rows in the storage schema.
            keys: Their record keys.

        Raises:
            WriteError: As `BaseFileWriter.write_new`.
        """
        for part, part_keys in _pieces(rows, keys, self._options):
            if self._open is None:
                started = self._monotonic()
                target, sink = self._open_file(len(self._results))
                self._open = BaseFileWriter(sink, target, self._schema, self._avro_schema, self._options), sink, started
            writer = self._open[0]
            writer.write_new(part, part_keys, self._numbered(part.num_rows))
            # Held until the file is whole, because a file that is abandoned has added no keys.
            if self._options.tracks_keys:
                self._keys.append(of_their_own(part_keys))
            if writer.is_full():
                self._close()

    def flush(self) -> None:
        """Write the rows that are held in memory as a row group."""
        if self._open is not None:
            self._open[0].flush()

    def finish(self) -> list[WrittenFile]:
        """Complete the last file; return one result per file, none without rows."""
        if self._open is not None:
            self._close()
        return self._results

    def abandon(self) -> None:
        """Leave the file that is open without a footer: no reader can take it for a whole one."""
        if self._open is not None:
            writer, sink, _ = self._open
            self._open = None
            writer.abandon()
            sink.close()

    def _close(self) -> None:
        assert self._open is not None
        writer, sink, started = self._open
        size_bytes = writer.close()
        self._open = None
        # Only now is the file durable, so the result is added after it.
        sink.close()
        self._results.append(
            written_file(
                writer.target,
                rows=writer.num_rows,
                size_bytes=size_bytes,
                elapsed_ms=round((self._monotonic() - started) * 1000),
                ranges=writer.ranges(),
                keys=KeyChanges(pa.concat_arrays(self._keys), NO_KEYS) if self._keys else None,
            )
        )
        self._keys.clear()


def write_new_files(files: NewFiles, batches: Iterable[tuple[pa.RecordBatch, Array]]) -> list[WrittenFile]:
    """
    Write rows into *files*, and finish them.

    Args:
        files: New files, nothing written yet.
        batches: Pairs of rows (storage schema) and their keys, consumed lazily.
    """
    try:
        for rows, keys in batches:
            files.write(rows, keys)
        return files.finish()
    except BaseException:
        # Not closed as a whole file: a footer would make what is incomplete readable.
        files.abandon()
        raise


def _pieces(rows: pa.RecordBatch, keys: Array, options: BaseFileOptions) -> Iterable[tuple[pa.RecordBatch, Array]]:
    """Cut a batch into pieces that are small beside a file, so that no file gets much larger than its maximum."""
    piece_bytes = min(options.row_group_bytes, max(options.max_file_bytes // 4, 1))
    count = max(rows.num_rows // max(rows.nbytes // piece_bytes, 1), 1)
    for start in range(0, rows.num_rows, count):
        yield rows.slice(start, count), keys.slice(start, count)

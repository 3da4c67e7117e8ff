"""
Rows that are moved to new files and stay what they are: their commit times and sequence numbers are kept.

Source: Hudi ``HoodieCreateHandle`` with ``preserveMetadata``; rules/table-services E-41.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, Final

import attrs
import pyarrow as pa

from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.formats.stored_values import conform_stored
from hudi_py.rows.base_file import BaseFileOptions, BaseFileWriter
from hudi_py.rows.pieces import Pieces
from hudi_py.rows.written import FileTarget, WrittenFile, written_file
from hudi_py.runtime.clock import MONOTONIC

_COMMIT_TIME, _SEQUENCE_NUMBER, _RECORD_KEY = META_COLUMNS[:3]
_TOLERANCE: Final = 1.25


def stored_columns(schema: pa.Schema) -> pa.Schema:
    """Return the columns that `move_rows` needs of each row: the ``_hoodie_*`` ones and those of *schema*."""
    meta = [pa.field(name, pa.string()) for name in META_COLUMNS]
    return pa.schema([*meta, *(field.with_nullable(nullable=True) for field in schema)])


def move_rows(
    pieces: Pieces,
    open_file: Callable[[int], tuple[FileTarget, BinaryIO]],
    *,
    schema: pa.Schema,
    avro_schema: str,
    options: BaseFileOptions,
) -> list[WrittenFile]:
    """
    Write rows into new file groups, in the order in which they come.

    Args:
        pieces: Rows with the columns of `stored_columns`, consumed one batch at a time. Where they are shared out to
            files, a file may be a quarter larger than its maximum: rows that are shared out evenly are seldom equally
            large, and what is cut off at the maximum would be a sliver.
        open_file: As for `hudi_py.rows.new_files.NewFiles`.
        schema: Storage schema, without meta columns.
        avro_schema: The same as Avro text.
        options: Layout and maximum size of the files.

    Returns:
        One result per file, none when there are no rows.

    Raises:
        WriteError: A row has null in a column that must have a value.
    """
    results: list[WrittenFile] = []
    if pieces.are_shared_out:
        options = attrs.evolve(options, max_file_bytes=int(options.max_file_bytes * _TOLERANCE))
    piece = next(pieces, None)
    while piece is not None:
        started = MONOTONIC()
        target, sink = open_file(len(results))
        writer = BaseFileWriter(sink, target, schema, avro_schema, options)
        try:
            while piece is not None:
                _write(writer, piece.rows, schema)
                is_full = writer.is_full()
                if is_full:
                    pieces.begin_file()
                # The next piece is fetched before the file is closed, so that no empty file follows the last row.
                piece = next(pieces, None)
                if is_full or (piece is not None and piece.begins_file):
                    break
            size_bytes = writer.close()
        except BaseException:
            writer.abandon()
            raise
        finally:
            sink.close()
        elapsed_ms = round((MONOTONIC() - started) * 1000)
        results.append(
            written_file(
                target, rows=writer.num_rows, size_bytes=size_bytes, elapsed_ms=elapsed_ms, ranges=writer.ranges()
            )
        )
    return results


def _write(writer: BaseFileWriter, batch: pa.RecordBatch, schema: pa.Schema) -> None:
    rows = conform_stored(batch, schema)
    # With a new time, incremental readers would take a moved row for a changed one.
    times, numbers = batch.column(_COMMIT_TIME), batch.column(_SEQUENCE_NUMBER)
    writer.write_rows(rows, batch.column(_RECORD_KEY), times, numbers)

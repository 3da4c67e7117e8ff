"""
One new change log: the rows that the rewriting of a base file changed, before and after.

Collected while the base file is merged, and written beside it (``HoodieMergeHandleWithChangeLog``). Memory: the encoded
log, and the changed rows of one block.

Source: rules/data-files 9.4; Hudi 0.15.0 to 1.2.0 ``HoodieCDCLogger``.
"""

from __future__ import annotations

import io
from typing import Any, Final

import pyarrow as pa

from hudi_py.formats.arrow_types import Array
from hudi_py.formats.change_block import change_schema_text, encode_change_block
from hudi_py.model.change_logging import LoggingMode
from hudi_py.model.files import join_path
from hudi_py.rows.written import FileTarget

_BLOCK_BYTES_MAX: Final = 8 * 1024 * 1024
"""Changes of one block, in bytes of Arrow; encoding takes ten times that."""


def change_log_path(target: FileTarget) -> str:
    """Return the path of the change log beside a base file, relative to the table."""
    # Always number 1: the slice begins with its base file, and has no other log then.
    name = f".{target.file_id}_{target.instant_time}.log.1_{target.write_token}.cdc"
    return join_path(target.partition_path, name)


class ChangeLogEncoder:
    """
    Collects the changes of one base file, and encodes its change log.

    Args:
        mode: What the table's change logs hold.
        schema: Storage schema of the rows, without meta columns.
        avro_schema: The same as Avro text.
        instant_time: Requested time of the commit.
    """

    def __init__(self, mode: LoggingMode, schema: pa.Schema, avro_schema: str, instant_time: str) -> None:
        self._names = mode.columns
        self._row = pa.struct(list(schema))
        self._schema_text = change_schema_text(mode, avro_schema)
        self._instant_time = instant_time
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self._blocks = io.BytesIO()

    def add(self, operation: str, keys: Array, before: pa.RecordBatch | None, after: pa.RecordBatch | None) -> None:
        """
        Add n changes.

        Args:
            operation: ``i``, ``u`` or ``d``.
            keys: n record keys.
            before: n rows without meta columns; None if the rows are new.
            after: As *before*; None if the rows are deleted.
        """
        sides = [rows for name, rows in (("before", before), ("after", after)) if name in self._names]
        size = sum(rows.nbytes for rows in sides if rows is not None)
        # Cut before encoding: the changes of a large row group would be a single block of ten times its size in memory.
        step = max(len(keys) // max(size // _BLOCK_BYTES_MAX, 1), 1)
        for start in range(0, len(keys), step):
            parts = [None if rows is None else rows.slice(start, step) for rows in (before, after)]
            self._add(operation, keys.slice(start, step), *parts)

    def finish(self) -> bytes:
        """Return the content of the file; without changes it has one block without records."""
        # Hudi's readers refuse a rewritten base file without a change log, so there is one in any case.
        if self._pending or not self._blocks.tell():
            self._flush()
        return self._blocks.getvalue()

    def _add(self, operation: str, keys: Array, before: pa.RecordBatch | None, after: pa.RecordBatch | None) -> None:
        count = len(keys)
        columns: dict[str, Any] = {
            "op": pa.repeat(operation, count),
            "ts_ms": pa.repeat(self._instant_time, count),
            "record_key": keys,
            "before": self._rows(before, count),
            "after": self._rows(after, count),
        }
        batch = self._batch([columns[name] for name in self._names])
        self._pending.append(batch)
        self._pending_bytes += batch.nbytes
        if self._pending_bytes >= _BLOCK_BYTES_MAX:
            self._flush()

    def _rows(self, rows: pa.RecordBatch | None, count: int) -> Array:
        if rows is None:
            nothing: Array = pa.nulls(count, self._row)
            return nothing
        made: Any = pa.StructArray.from_arrays(rows.columns, fields=list(self._row))
        result: Array = made
        return result

    def _batch(self, columns: list[Any]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(columns, names=list(self._names))

    def _flush(self) -> None:
        table = pa.Table.from_batches(self._pending) if self._pending else None
        for batch in [] if table is None else table.combine_chunks().to_batches():
            self._blocks.write(encode_change_block(batch, self._schema_text, self._instant_time))
        if table is None:
            texts = {"op", "ts_ms", "record_key"}
            empty = [pa.array([], pa.string() if name in texts else self._row) for name in self._names]
            self._blocks.write(encode_change_block(self._batch(empty), self._schema_text, self._instant_time))
        self._pending, self._pending_bytes = [], 0

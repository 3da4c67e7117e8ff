"""
Rows beyond the memory of a task, kept in a temporary file of this machine until they are needed again.

The file has no name once it is open, so that the system frees it however the process ends: after an error, Ctrl-C or
SIGKILL there is nothing to clean up.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.errors import ConfigError, SpillError

if TYPE_CHECKING:
    from typing_extensions import Self

_BUFFER_BYTES: Final = 16 << 20
_BATCH_ROWS: Final = 32_768


class SpillFolderError(ConfigError):
    """No file can be created in the folder for temporary files."""


class Spill:
    """
    Rows in numbered parts, in a temporary file; a context manager that frees the file at its end.

    Rows of a part come back in the order in which they were added. Several threads may read, one may add.

    Args:
        schema: Columns of the rows.
        folder: Where the file lies; None for the machine's temporary folder (``TMPDIR``).
        buffer_bytes: Rows that are held before they are written; small parts make small reads.

    Raises:
        SpillFolderError: No file can be created in the folder.
    """

    def __init__(self, schema: pa.Schema, folder: str | None = None, buffer_bytes: int = _BUFFER_BYTES) -> None:
        self.schema = schema
        self._folder = folder or tempfile.gettempdir()
        self._buffer_bytes = buffer_bytes
        self._held: list[tuple[pa.RecordBatch, npt.NDArray[np.int64]]] = []
        self._held_bytes = 0
        self._end = 0
        self._segments: dict[int, list[tuple[int, int]]] = {}
        self._sizes: dict[int, int] = {}
        self._rows: dict[int, int] = {}
        try:
            # Not a folder with named files: those of a killed process would stay.
            self._file = tempfile.TemporaryFile(dir=self._folder, prefix="hudi_py-")  # noqa: SIM115 - see `__exit__`
        except OSError as error:
            raise SpillFolderError(
                f"{self._folder} is not a folder for rows that do not fit into memory: {error}; "
                "hoodie.memory.spillable.map.path or TMPDIR names another one"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.clear()
        self._file.close()

    def add(self, rows: pa.RecordBatch, numbers: npt.NDArray[np.int64]) -> None:
        """
        Add rows.

        Args:
            rows: n rows.
            numbers: Shape (n,), the part of each row, 0 or greater.

        Raises:
            SpillError: The disk is full, or fails.
        """
        if not rows.num_rows:
            return
        self._held.append((rows, numbers))
        self._held_bytes += rows.nbytes
        if self._held_bytes >= self._buffer_bytes:
            self.flush()

    def flush(self) -> None:
        """Write the rows that are held; raises as `add`."""
        if not self._held:
            return
        rows = pa.Table.from_batches([batch for batch, _ in self._held], schema=self.schema)
        numbers = np.concatenate([each for _, each in self._held])
        self._held, self._held_bytes = [], 0
        order = np.argsort(numbers, kind="stable")  # stable: rows of a part keep their order
        present, starts = np.unique(numbers[order], return_index=True)
        edges = [*starts.tolist(), len(order)]
        for place, number in enumerate(present.tolist()):
            chosen: Any = pa.array(order[edges[place] : edges[place + 1]])
            self._write(number, rows if len(present) == 1 else rows.take(chosen))

    def parts(self) -> dict[int, int]:
        """Return the number of each part that has rows, with their size in bytes of Arrow."""
        self.flush()
        return dict(self._sizes)

    def num_rows(self, number: int) -> int:
        """Return the number of rows of a part."""
        self.flush()
        return self._rows.get(number, 0)

    def read(self, number: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part; a part without rows yields nothing. Raises as `add`."""
        self.flush()
        for offset, size in self._segments.get(number, ()):
            try:
                # With a position of its own, so that threads can read at the same time.
                content = os.pread(self._file.fileno(), size, offset)
            except OSError as error:
                raise self._failed(error) from error
            with pa.ipc.open_stream(pa.py_buffer(content)) as reader:
                yield from reader

    def _write(self, number: int, rows: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.schema) as writer:
            writer.write_table(rows.combine_chunks(), max_chunksize=_BATCH_ROWS)
        content = sink.getvalue()
        try:
            self._file.seek(self._end)
            self._file.write(content)
            self._file.flush()
        except OSError as error:
            raise self._failed(error) from error
        self._segments.setdefault(number, []).append((self._end, content.size))
        self._sizes[number] = self._sizes.get(number, 0) + rows.nbytes
        self._rows[number] = self._rows.get(number, 0) + rows.num_rows
        self._end += content.size

    def _failed(self, error: OSError) -> SpillError:
        return SpillError(
            f"rows do not fit into memory, and after {self._end} bytes the temporary file in {self._folder} failed: "
            f"{error.strerror or error}. Nothing was committed; free space there, or let "
            "hoodie.memory.spillable.map.path or TMPDIR name another folder"
        )

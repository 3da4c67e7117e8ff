"""
Rows on their way to several files: where one file ends and the next begins. Pure.

Rows in no special order, or in that of a column, are shared out evenly. Rows along a curve are cut at the ends of its
cells (`hudi_py.rows.curves.cell_ends`), nearly evenly.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs
import numpy as np
import pyarrow as pa

from hudi_py.rows.curves import Codes

_MORE_ROWS: Final = 1.15
"""A file that waits for the end of a cell may hold so many times its share."""
_NO_LIMIT: Final = 1 << 62


@attrs.frozen(eq=False)
class Piece:
    """
    Args:
        rows: The rows.
        begins_file: Whether they belong to another file than the piece before.
    """

    rows: pa.RecordBatch
    begins_file: bool


class Pieces:
    """
    Cuts batches where files begin; iterate over it once.

    Args:
        batches: Rows, and where they lie on a curve: ascending places, or None.
        rows_per_file: A file's share; None where only its size decides.
        ends: Ascending places at which files should begin.
    """

    def __init__(
        self,
        batches: Iterable[tuple[pa.RecordBatch, Codes | None]],
        rows_per_file: int | None = None,
        ends: Codes | None = None,
    ) -> None:
        self._batches = iter(batches)
        self._share = rows_per_file or _NO_LIMIT
        self._ends = np.array([], np.uint64) if ends is None else ends
        self._limit = int(self._share * _MORE_ROWS) if len(self._ends) else self._share
        self._filled = 0
        self._rest: pa.RecordBatch | None = None
        self._cuts: list[int] = []
        self._at = 0
        self.are_shared_out = rows_per_file is not None

    def begin_file(self) -> None:
        """Count the rows of a file from here on; one that was full early is followed by a whole one."""
        self._filled = 0

    def __iter__(self) -> Pieces:
        return self

    def __next__(self) -> Piece:
        while self._rest is None or self._at == self._rest.num_rows:
            self._rest, places = next(self._batches)
            self._at = 0
            self._cuts = [] if places is None or not len(places) else self._cuts_in(places)
        begins_file = self._filled >= self._limit or self._is_end_of_cell()
        if begins_file:
            self._filled = 0
        start = self._at
        end = min(self._rest.num_rows, start + self._limit - self._filled)
        end = next((each for each in self._cuts if start < each < end), end)
        self._filled += end - start
        self._at = end
        return Piece(self._rest.slice(start, end - start), begins_file)

    def _cuts_in(self, places: Codes) -> list[int]:
        reached = int(np.searchsorted(self._ends, places[-1], side="right"))
        cuts: list[int] = np.searchsorted(places, self._ends[:reached]).tolist()
        self._ends = self._ends[reached:]
        return cuts

    def _is_end_of_cell(self) -> bool:
        # Half a file at least: where many rows lie at one place, the ends of two files may be close together.
        return self._at in self._cuts and self._filled * 2 >= self._share

"""
At which rows of a base file the records of a log file are, where the base file has several rows with one key.

Apache Hudi 1.x changes each row of such a key if every log block of the slice says at which rows its records are. One
block that does not, and of each key only the first row is changed: the others are shown as they were before all log
files. So every block over such a base file has to say it, whatever keys it holds. Over a base file that has each key
once both ways show the same rows.

Source: Hudi 1.0.2, 1.1.1, 1.2.0 (``tests/interop/test_turns_over_copies.py``).
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt

from hudi_py.formats.arrow_types import Array, ChunkedArray, compute

_NEVER: Final = -1

Numbers = npt.NDArray[np.int64]


@attrs.frozen(eq=False, kw_only=True)
class RecordPositions:
    """
    Where the records of a log file are.

    Args:
        base_instant_time: Time of the base file.
        rows: Shape (n,), numbers of its rows, ascending: the record for each.
    """

    base_instant_time: str
    rows: Numbers

    def part(self, chosen: Any) -> RecordPositions:
        """Return those of some records: a mask, numbers or a slice."""
        return attrs.evolve(self, rows=self.rows[chosen])


def has_copies(keys: ChunkedArray) -> bool:
    """Whether rows with these keys have some key several times."""
    return len(keys.unique()) < len(keys)


def rows_of_keys(stored: ChunkedArray, keys: Array) -> tuple[Numbers, Numbers] | None:
    """
    Find all rows with the changed keys.

    Args:
        stored: Keys of a base file, in row order.
        keys: Keys to find, none of them twice.

    Returns:
        Number of the key and number of the row for each row that has one, ascending by row. None if some key has no
        row: then Apache Hudi says of no record where it is.
    """
    found: Any = compute.index_in(stored, value_set=keys)
    numbers = found.fill_null(_NEVER).to_numpy().astype(np.int64)
    rows = np.flatnonzero(numbers != _NEVER)
    numbers = numbers[rows]
    return (numbers, rows) if len(np.unique(numbers)) == len(keys) else None

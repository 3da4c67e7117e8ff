"""Limits for the use of Spark."""

from __future__ import annotations

from typing import Final

import attrs

TINY_BYTES: Final = 1024 * 1024
"""Rows of this size go to one task."""


@attrs.frozen(kw_only=True)
class Scale:
    """
    Limits for the use of Spark.

    Args:
        parallelism: Number of tasks after a shuffle, set by the user; None to choose it here.
        slots: Number of tasks that run at the same time.
        driver_rows: So many rows the driver writes itself.
        single_pass_bytes: Rows larger than this, by Catalyst's estimate, are written in two passes; 0 for all rows.
    """

    parallelism: int | None
    slots: int
    driver_rows: int
    single_pass_bytes: int

    @property
    def tasks(self) -> int:
        """Number of tasks after a shuffle in small writes: two per slot, because a hash distributes rows unevenly."""
        return self.parallelism or 2 * self.slots

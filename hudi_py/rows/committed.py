"""Rows by the commit that changed them last: a condition on ``_hoodie_commit_time`` for ranges of commits. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import attrs
import pyarrow as pa

from hudi_py.formats.arrow_types import Array, compute
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.rows.predicate import Bounds

COMMIT_TIME: Final = META_COLUMNS[0]


@attrs.frozen(kw_only=True)
class Commits:
    """
    A set of commits by requested time; also a `ColumnFilter` that selects the rows which they changed last.

    Args:
        after: Only commits requested later than this; ``""`` for all.
        until: Only commits requested at this time or earlier; None for all.
        times: Only commits with these requested times; None for all.
    """

    after: str = ""
    until: str | None = None
    times: frozenset[str] | None = None

    column = COMMIT_TIME
    arrow = pa.string()

    def __contains__(self, time: str) -> bool:
        in_range = self.after < time and (self.until is None or time <= self.until)
        return in_range and (self.times is None or time in self.times)

    def of(self, times: Collection[str]) -> frozenset[str]:
        """The *times* that belong to the set."""
        return frozenset(time for time in times if time in self)

    def mask(self, column: Array) -> Array:
        """Which rows a commit of the set changed last; null if a row has no commit time."""
        # As text, which is how Hudi compares instant times, whatever their length.
        found: Array = compute.greater(column, pa.scalar(self.after, pa.string()))
        if self.until is not None:
            found = compute.and_(found, compute.less_equal(column, pa.scalar(self.until, pa.string())))
        if self.times is not None:
            found = compute.and_(found, compute.is_in(column, value_set=pa.array(sorted(self.times), pa.string())))
        return found

    def may_match(self, bounds: Bounds) -> bool:
        """Whether a commit of the set may have changed a row within *bounds*."""
        if bounds.has_only_nulls:
            return False
        if bounds.minimum is None or bounds.maximum is None:
            return True
        low, high = bounds.minimum, bounds.maximum
        if high <= self.after or (self.until is not None and low > self.until):
            return False
        return self.times is None or any(low <= time <= high for time in self.times)

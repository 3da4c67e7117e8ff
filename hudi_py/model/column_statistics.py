"""Statistics of one column in a file or partition, as stored in the metadata table."""

from __future__ import annotations

from typing import Any

import attrs


@attrs.frozen(kw_only=True)
class ColumnStatistics:
    """
    Statistics of one column.

    Args:
        column: Name of the column; with dots if it is nested.
        where: Name of the file, or path of the partition for `partition_stats`.
        kind: Type of the bounds: ``boolean``, ``int``, ``long``, ``float``, ``double``, ``string``, ``bytes``,
            ``date``, ``decimal``, ``time-micros``, ``timestamp-micros``, ``local-timestamp-micros``; None if there are
            no bounds, or their type is unknown to this release.
        minimum: Lower bound as bool, int (microseconds since 1970 for timestamps), float, str, bytes, date, Decimal or
            time; None if unknown.
        maximum: Upper bound, in the same form.
        value_count: Number of rows; None if unknown.
        null_count: Number of nulls; None if unknown.
        size_bytes: Compressed size of the column; None if unknown.
        uncompressed_bytes: Size of the column before compression; None if unknown.
    """

    column: str
    where: str
    kind: str | None
    minimum: Any
    maximum: Any
    value_count: int | None
    null_count: int | None
    size_bytes: int | None
    uncompressed_bytes: int | None

"""What is known of one column of a file or partition without reading its rows."""

from __future__ import annotations

from typing import Any

import attrs


@attrs.frozen(kw_only=True)
class ColumnStatistics:
    """
    What a record says of one column.

    Args:
        column: Its name; with dots where it is nested.
        where: The file's name, or the partition's path for `partition_stats`.
        kind: Of the bounds: ``boolean``, ``int``, ``long``, ``float``, ``double``, ``string``, ``bytes``, ``date``,
            ``decimal``, ``time-micros``, ``timestamp-micros``, ``local-timestamp-micros``; None where there are no
            bounds, or they are of a kind that this release does not know.
        minimum: Lower bound as bool, int (microseconds since 1970 for timestamps), float, str, bytes, date, Decimal or
            time; None where unknown.
        maximum: Upper bound.
        value_count: Number of rows; None where unknown, as the following.
        null_count: Number of nulls.
        size_bytes: In the file, compressed.
        uncompressed_bytes: The same before compression.
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

"""Rows that are read batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import pyarrow as pa


@attrs.frozen(eq=False)
class RowStream:
    """
    Rows in batches.

    Args:
        schema: Their columns.
        read: Yields all batches from the beginning.
    """

    schema: pa.Schema
    read: Callable[[], Iterator[pa.RecordBatch]]

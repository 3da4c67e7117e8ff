"""Bytes in columns of text that are no text: Arrow and Spark hand them on, and no reader decodes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from hudi_py.errors import WriteError
from hudi_py.formats.arrow_types import holds_type


def valid_texts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """
    Yield batches as they are.

    Raises:
        WriteError: As `refuse_broken_texts`.
    """
    for batch in batches:
        refuse_broken_rows(batch)
        yield batch


def refuse_broken_rows(rows: pa.Table | pa.RecordBatch) -> None:
    """Look through all columns; raises as `refuse_broken_texts`."""
    for field, column in zip(rows.schema, rows.columns, strict=True):
        refuse_broken_texts(column, field.name)


def refuse_broken_texts(column: Any, name: str) -> None:
    """
    Look through a column, at any depth.

    Args:
        column: An array, or a chunked one.
        name: Of the column.

    Raises:
        WriteError: A text is not UTF-8.
    """
    if holds_type(column.type, _is_text):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise WriteError(
                f"column {name!r} has bytes that are no text in UTF-8 ({error}); nothing was committed. Decode them, "
                "or cast the column to binary"
            ) from error


def _is_text(arrow: Any) -> bool:
    return pa.types.is_string(arrow) or pa.types.is_large_string(arrow)

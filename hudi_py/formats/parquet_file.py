"""
Tells a Parquet file that lacks a column from one whose column has a damaged name.

A footer names each column twice: in the schema, and with the values of each row group. A reader finds a column by the
first name and takes a file without it for one from before the column was added, so a single damaged letter there would
turn the column into nulls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    import pyarrow.parquet as pq


def check_wanted(file: pq.ParquetFile, wanted: pa.Schema) -> None:
    """
    Compare both names of each column if the file lacks one of *wanted*, or a field inside of one.

    Raises:
        pyarrow.ArrowInvalid: They differ.
    """
    if lacks(file.schema_arrow, wanted):
        check_names(file)


def lacks(stored: pa.Schema | pa.StructType, wanted: pa.Schema | pa.StructType) -> bool:
    """Whether a column of *wanted*, or a field inside of one, is not in *stored*."""
    for field in wanted:
        at = stored.get_field_index(field.name)
        if at < 0 or _lacks_inside(stored.field(at).type, field.type):
            return True
    return False


def _lacks_inside(stored: Any, wanted: Any) -> bool:
    if isinstance(stored, pa.StructType) and isinstance(wanted, pa.StructType):
        return lacks(stored, wanted)
    if isinstance(stored, pa.ListType) and isinstance(wanted, pa.ListType):
        return _lacks_inside(stored.value_type, wanted.value_type)
    if isinstance(stored, pa.MapType) and isinstance(wanted, pa.MapType):
        return _lacks_inside(stored.item_type, wanted.item_type)
    return False


def check_names(file: pq.ParquetFile) -> None:
    """
    Compare both names of each column; not needed for a file that has all columns that are read.

    Raises:
        pyarrow.ArrowInvalid: They differ.
    """
    footer = file.metadata
    if not footer.num_row_groups:  # no rows
        return
    # Each row group names the columns again; one is enough to find a letter that differs from the schema.
    schema, group = footer.schema, footer.row_group(0)
    for at in range(footer.num_columns):
        named, stored = schema.column(at).path, group.column(at).path_in_schema
        if named != stored:
            raise pa.ArrowInvalid(
                f"the footer is damaged: it calls column {at + 1} {named!r} in the schema and {stored!r} where its "
                "values are"
            )

"""
What the footer of a Parquet file tells about damage and malice, before any rows are read.

A footer names each column twice: in the schema, and with the values of each row group. A reader finds a column by the
first name and takes a file without it for one from before the column was added, so a single damaged letter there would
turn the column into nulls.

A footer also says how many rows there are and how much they unpack to. A small file of many rows or of much is refused.
What a footer does not show is in SECURITY.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudi_py.formats.bounds import (
    INFLATED_RATIO_MAX,
    PARQUET_GROUP_BYTES_ALWAYS,
    PARQUET_ROWS_ALWAYS,
    PARQUET_ROWS_PER_BYTE_MAX,
)

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


def check_size(footer: pq.FileMetaData, size_bytes: int, *, is_read_whole: bool = False) -> None:
    """
    Compare rows and unpacked bytes with the size of the file.

    Args:
        footer: Of the file.
        size_bytes: Of the whole file.
        is_read_whole: Whether all rows will be in memory, not one row group at a time.

    Raises:
        pyarrow.ArrowInvalid: There are too many for such a small file.
    """
    rows_max = max(PARQUET_ROWS_ALWAYS, size_bytes * PARQUET_ROWS_PER_BYTE_MAX)
    if footer.num_rows > rows_max:
        raise pa.ArrowInvalid(
            f"{footer.num_rows} rows in {size_bytes} bytes: so small a file is read up to {rows_max} rows"
        )
    group_max = max(PARQUET_GROUP_BYTES_ALWAYS, size_bytes * INFLATED_RATIO_MAX)
    unpacked = 0
    for number in range(footer.num_row_groups):
        size = footer.row_group(number).total_byte_size
        unpacked = unpacked + size if is_read_whole else size
        if size < 0 or unpacked > group_max:
            raise pa.ArrowInvalid(
                f"row group {number} unpacks to {unpacked} bytes: of a file of {size_bytes} bytes up to {group_max} "
                "are read"
            )

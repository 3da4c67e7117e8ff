"""
Conditions that rows of a table meet if they can match rows of a source, so that a merge reads no others. Pure.

A match is equality in each column, and null equals nothing. Few values are asked for one by one, which indexes and
Bloom filters understand; of many only the least and the greatest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from hudi_py.config.table import TableConfig, TableType
from hudi_py.formats.arrow_types import compute
from hudi_py.model.files import DEFAULT_PARTITION
from hudi_py.rows.condition import Comparison, Condition, IsIn
from hudi_py.rows.partition_values import partition_values_of

_VALUES_MAX: Final = 1000


def possible_matches(source: pa.Table, table: TableConfig) -> tuple[Condition, ...]:
    """
    Return what every row of the table meets that equals a row of *source* in all of its columns.

    Args:
        source: The columns that are compared, in the types of the table.
        table: The table; conditions on its partition columns are refused where their values are not certain.
    """
    values = partition_values_of(table, merged=table.table_type is TableType.MERGE_ON_READ)
    # Where stored values are shown, a row may equal the source and lie in the partition of another value.
    plain = values.fields if values.is_shown else ()
    return tuple(
        condition
        for name in source.column_names
        for condition in _of_column(name, source.column(name), table, is_plain=name in plain)
    )


def _of_column(name: str, column: Any, table: TableConfig, *, is_plain: bool) -> Iterator[Condition]:
    is_text = pa.types.is_string(column.type)
    if not (is_text or pa.types.is_signed_integer(column.type) or pa.types.is_date32(column.type)):
        return
    distinct = compute.unique(column).drop_null()
    is_partition = name in table.partition_fields
    if len(distinct) <= _VALUES_MAX:
        values = tuple(distinct.to_pylist())
        is_certain = is_plain and not {"", DEFAULT_PARTITION}.intersection(values)
        if is_certain or not is_partition:
            yield IsIn((name,), values)
    elif not is_partition:
        bounds = compute.min_max(distinct)
        yield Comparison((name,), ">=", bounds["min"].as_py())
        yield Comparison((name,), "<=", bounds["max"].as_py())

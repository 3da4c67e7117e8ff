"""Conditions on a table: those that name a column which it lacks, or do not fit their column, are refused. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.rows.condition import Condition
from hudi_py.rows.predicate import Filter, columns_of, filters_of, names_in
from hudi_py.rows.read import chosen_columns


def bound_filters(conditions: Sequence[Condition], schema: pa.Schema) -> tuple[Filter, ...]:
    """
    Bind conditions to the columns of a table, meta columns among them.

    Args:
        conditions: Conditions that all have to be met.
        schema: All columns of the table, without the ``_hoodie_*`` ones.

    Raises:
        ConfigError: A column does not exist, or a condition does not fit it.
    """
    if not conditions:
        return ()
    asked = chosen_columns(schema, columns_of(conditions, [*META_COLUMNS, *schema.names]))
    return filters_of(conditions, asked, [*META_COLUMNS, *names_in(schema)])

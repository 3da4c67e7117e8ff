"""Chooses which columns of the user's rows are written, under which names and in which types. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from hudi_py.errors import ConfigError
from hudi_py.formats.conform import conform_array
from hudi_py.formats.record_schema import NOT_DATA, parse_record_schema
from hudi_py.formats.schema_evolution import with_known_types


def written_columns(
    present: Sequence[str], table_schema: str | None, needed: Sequence[str], *, keys_only: bool, ignores_case: bool
) -> Mapping[str, str]:
    """
    Return the columns to write: their names in the rows, in order, to their names in the table.

    Args:
        present: Columns of the rows.
        table_schema: Avro text of the table's schema; None for a new table.
        needed: Columns for keys, partitions and ordering.
        keys_only: Write only the columns in *needed*.
        ignores_case: Whether names that differ only in case are the same; then the name in the table is used.

    Raises:
        ConfigError: A needed column is missing, or two columns have the same name.
    """
    known = [] if table_schema is None else parse_record_schema(table_schema).names
    spelling = {name.lower(): name for name in known} if ignores_case else {}
    names = {name: spelling.get(name.lower(), name) for name in present}
    twice = [name for name in present if present.count(name) > 1]
    if twice:
        raise ConfigError(f"the rows have several columns called {twice[0]!r}; rename or drop all but one")
    _refuse_missing(list(names.values()), needed)
    wanted = set(needed) if keys_only else set(names.values()) - NOT_DATA
    return {name: spelled for name, spelled in names.items() if spelled in wanted}


def written_types(schema: pa.Schema, table_schema: str | None) -> pa.Schema:
    """
    Return the schema of rows with the table's types where that of the rows is only null: none of them has a value.

    Args:
        schema: Of the rows, with names as in the table.
        table_schema: Avro text of the table's schema; None for a new table.
    """
    return schema if table_schema is None else with_known_types(schema, parse_record_schema(table_schema))


def in_types(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the types of `written_types`."""
    if batch.schema.equals(schema):
        return batch
    columns = [
        conform_array(column, field.type, field.name) for field, column in zip(schema, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _refuse_missing(names: Sequence[str], needed: Sequence[str]) -> None:
    missing = [name for name in needed if name not in names]
    if not missing:
        return
    meant = [name for name in names if name.lower() in {absent.lower() for absent in missing}]
    hint = f"; did you mean {', '.join(meant)}? Names are case-sensitive" if meant else ""
    raise ConfigError(
        f"the rows have no column {', '.join(missing)}, which the table needs for keys, partitions or ordering{hint}"
    )

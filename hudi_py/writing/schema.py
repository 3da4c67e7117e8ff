"""The schema that a write stores rows in, with a warning about columns that some readers do not support."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from hudi_py.errors import ConfigError
from hudi_py.formats.record_schema import parse_record_schema
from hudi_py.formats.schema_evolution import ResolvedSchema, resolve_schema
from hudi_py.rows.precedence import DELETED_COLUMN as FLAG
from hudi_py.runtime.log import log


def schema_to_write(
    text: str | None,
    incoming: pa.Schema,
    table_name: str,
    *,
    keys_only: bool,
    placing: Collection[str] = (),
    ordering: Collection[str] = (),
    may_become_text: bool = False,
) -> ResolvedSchema:
    """
    Return the schema that a commit writes.

    Args:
        text: Avro text of the table's schema; None for a table without commits.
        incoming: Schema of the rows.
        table_name: ``hoodie.table.name``.
        keys_only: Whether only the keys of the rows matter; then the table's schema stays.
        placing: Columns of which keys and partitions are made.
        ordering: Columns by which rows of one key are compared.
        may_become_text: See `resolve_schema`.

    Raises:
        ConfigError, WriteError: See `resolve_schema`.
        ConfigError: One of *placing* or *ordering* has another type than in the table, with other texts or order.
        ConfigError: The flag of deletions is not a boolean: its rows would be stored and not deleted.
    """
    table = None if text is None else parse_record_schema(text)
    if table is not None:
        _refuse_other_meaning(table, incoming, placing, ordering)
    if keys_only and table is not None:
        given = [incoming.field(field.name) if field.name in incoming.names else field for field in table]
        resolve_schema(text, pa.schema(given), table_name)  # keys of another type would never match those of the table
        return resolve_schema(text, table, table_name)
    _refuse_flag_that_is_none(text, incoming)
    resolved = resolve_schema(text, incoming, table_name, may_become_text=may_become_text)
    for caution in resolved.cautions:
        log.warning("write.columns.peculiar", why=caution)
    return resolved


def _refuse_other_meaning(
    table: pa.Schema, incoming: pa.Schema, placing: Collection[str], ordering: Collection[str]
) -> None:
    types = pa.types
    for field in table:
        if field.name not in incoming.names:
            continue
        given = incoming.field(field.name).type
        pair = (field.type, given)
        why = ""
        if field.name in placing and any(map(types.is_integer, pair)) and any(map(types.is_floating, pair)):
            why = "keys and partitions are made of it, and 1 and 1.0 would be different ones"
        if field.name in ordering and types.is_string(given) and not types.is_string(field.type):
            why = "rows of one key are compared by it, and texts have another order than numbers"
        if why:
            raise ConfigError(
                f"column {field.name!r} is {given} in the rows and {field.type} in the table; {why}; cast the column "
                f"to {field.type}"
            )


def _refuse_flag_that_is_none(text: str | None, incoming: pa.Schema) -> None:
    position = incoming.get_field_index(FLAG)
    if position < 0 or incoming.field(position).type == pa.bool_():
        return
    if text is None or FLAG not in parse_record_schema(text).names:
        raise ConfigError(
            f"column {FLAG!r} is {incoming.field(position).type}, and only a boolean says which rows are to be "
            "deleted; cast it to boolean, or write it under another name"
        )

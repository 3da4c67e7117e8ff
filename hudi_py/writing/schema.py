"""The schema that a write stores rows in, with a warning about columns that some readers do not support."""

from __future__ import annotations

import pyarrow as pa

from hudi_py.formats.record_schema import parse_record_schema
from hudi_py.formats.schema_evolution import ResolvedSchema, resolve_schema
from hudi_py.runtime.log import log


def schema_to_write(text: str | None, incoming: pa.Schema, table_name: str, *, keys_only: bool) -> ResolvedSchema:
    """
    Return the schema that a commit writes.

    Args:
        text: Avro text of the table's schema; None for a table without commits.
        incoming: Schema of the rows.
        table_name: ``hoodie.table.name``.
        keys_only: Whether only the keys of the rows matter; then the table's schema stays.

    Raises:
        ConfigError, WriteError: See `resolve_schema`.
    """
    if keys_only and text is not None:
        return resolve_schema(text, parse_record_schema(text), table_name)
    resolved = resolve_schema(text, incoming, table_name)
    for caution in resolved.cautions:
        log.warning("write.columns.peculiar", why=caution)
    return resolved

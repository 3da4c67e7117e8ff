"""The columns of a table's rows at one time: from its commits, or from its newest file if no commit records them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hudi_py.model.files import BaseFile, join_path
from hudi_py.storage.base import Storage
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.row_schema import schema_entries, schema_entries_at
from hudi_py.timeline.timeline import Timeline


def committed_schema_text(
    contents: Contents, timeline: Timeline, properties: Mapping[str, str], as_of: str | None = None
) -> str | None:
    """
    The rows' Avro schema as text, without meta columns, from the newest commit that records it (rules/timeline 4.5).

    Args:
        properties: The table's properties: it may have been created with a schema.
        as_of: Instant time; None for the newest schema. Before the first commit the newest is returned too.
    """
    # A time before the first commit has no schema of its own; the newest one shows at least which columns there are.
    created = properties.get("hoodie.table.create.schema")
    if as_of is not None and (found := schema_entries_at(contents, timeline, as_of).get("schema") or created):
        return found
    return schema_entries(contents, timeline, None).get("schema") or created


def rewritten_schema_text(contents: Contents, timeline: Timeline) -> str | None:
    """
    The rows' Avro schema from the newest commit of any kind, compactions and clusterings included.

    For rows whose columns neither a commit nor a base file records: those in log files, or none at all.
    """
    return schema_entries(contents, timeline, None, passes=frozenset()).get("schema")


def schema_text_of_files(storage: Storage, files: Sequence[tuple[str, BaseFile]], table_name: str) -> str | None:
    """
    The rows' Avro schema from the newest file, for tables whose commits with a schema are all archived or rolled back.

    Without it, a write would take the columns of its own rows for all columns of the table, and drop the others from
    the files that it rewrites.

    Args:
        files: Partition path and base file of each file of the snapshot.
        table_name: Names the record if the file has no Avro schema.

    Returns:
        None for a table without files.

    Raises:
        CorruptMetadata: The newest file is not a Parquet file.
    """
    if not files:
        return None
    from hudi_py.formats.record_schema import format_record_schema, storage_schema, without_meta_fields
    from hudi_py.rows.lookup import read_footer
    from hudi_py.rows.read import file_schema

    partition_path, newest = max(files, key=lambda file: file[1].instant_time)
    with storage.open_read(join_path(partition_path, newest.name)) as stream:
        stored = read_footer(stream).avro_schema
    if stored is not None:
        return without_meta_fields(stored)
    return format_record_schema(storage_schema(file_schema(storage, partition_path, newest)), table_name)

"""The schema of a table whose timeline does not tell it: that of its newest file."""

from __future__ import annotations

from collections.abc import Sequence

from hudi_py.formats.record_schema import format_record_schema, storage_schema, without_meta_fields
from hudi_py.model.files import BaseFile, join_path
from hudi_py.rows.lookup import read_footer
from hudi_py.rows.read import file_schema
from hudi_py.storage.base import Storage


def schema_text_of_files(storage: Storage, files: Sequence[tuple[str, BaseFile]], table_name: str) -> str | None:
    """
    Avro text of the rows that lie in a table whose commits with a schema are all archived or rolled back.

    Without it a write would take the columns of its own rows for those of the table, and drop all others from the files
    that it rewrites.

    Args:
        files: Of the latest snapshot: partition path and base file.
        table_name: Names the record where the file holds no Avro text.

    Returns:
        None for a table without files.

    Raises:
        CorruptMetadata: The newest file is no Parquet file.
    """
    if not files:
        return None
    partition_path, newest = max(files, key=lambda file: file[1].instant_time)
    with storage.open_read(join_path(partition_path, newest.name)) as stream:
        told = read_footer(stream).avro_schema
    if told is not None:
        return without_meta_fields(told)
    return format_record_schema(storage_schema(file_schema(storage, partition_path, newest)), table_name)

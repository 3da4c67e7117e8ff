"""
Writing a base file of the `files` partition.

The name appears before the file is complete; nobody looks at it until the instant in its name is completed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hudi_py.formats.avro_registry import schema_text
from hudi_py.formats.hfile_writer import HFileWriter
from hudi_py.mdt.records import RECORD, Files, encode_files
from hudi_py.mdt.table import FILES_GROUP, FILES_PARTITION, WRITE_TOKEN, MetadataTable
from hudi_py.model.files import format_base_file


class Written(NamedTuple):
    """A base file: its name, its length and the number of its records."""

    name: str
    size_bytes: int
    record_count: int


def write_base_file(table: MetadataTable, instant_time: str, records: Iterable[tuple[str, Files]]) -> Written:
    """
    Write (or write again) the base file of an instant.

    Args:
        table: The metadata table.
        instant_time: In the name of the file.
        records: Key and files by the bytes of the key; deletions are left out, they have done their work.
    """
    name = format_base_file(FILES_GROUP, WRITE_TOKEN, instant_time, "hfile")
    path = f"{FILES_PARTITION}/{name}"
    first = last = b""
    count = 0
    with table.storage.open_write(path) as out:
        writer = HFileWriter(out)
        for key, files in records:
            kept = {file: info for file, info in files.items() if not info.is_deleted}
            if not kept:
                continue
            last = key.encode()
            first = first if count else last
            count += 1
            writer.append(last, encode_files(key, kept, table.table_version, file_name=name))
        schema = schema_text(RECORD, table.table_version).encode()
        writer.close(info={"schema": schema, "minRecordKey": first, "maxRecordKey": last})
    return Written(name, table.storage.size(path) or 0, count)

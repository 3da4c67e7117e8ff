"""
Writing base files of the metadata table: what a file group holds, base file and logs merged.

The name appears before the file is complete; nobody looks at it until the instant in its name is completed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hudi_py.formats.avro_registry import schema_text
from hudi_py.formats.hfile_writer import HFileWriter
from hudi_py.formats.log_block import LogBlock
from hudi_py.mdt.blocks import merge_blocks
from hudi_py.mdt.keyed_merge import merged_records, renamed
from hudi_py.mdt.lookup import KEYED, Stored
from hudi_py.mdt.read import Base, Part
from hudi_py.mdt.read_statistics import StatisticsPart, open_part
from hudi_py.mdt.records import RECORD, Files, encode_files
from hudi_py.mdt.statistics import encode_statistics, widest_schema
from hudi_py.mdt.table import FILES_GROUP, FILES_PARTITION, WRITE_TOKEN, MetadataTable, Slice
from hudi_py.model.files import LogFile, format_base_file


class Written(NamedTuple):
    """A base file: its name, its length and the number of its records."""

    name: str
    size_bytes: int
    record_count: int


def write_base_file(table: MetadataTable, instant_time: str, records: Iterable[tuple[str, Files]]) -> Written:
    """
    Write (or write again) the base file of an instant in the `files` partition.

    Args:
        table: The metadata table.
        instant_time: Instant time in the name of the file.
        records: Key and files by the bytes of the key; deletions are left out, they have done their work.
    """
    name = format_base_file(FILES_GROUP, WRITE_TOKEN, instant_time, "hfile")
    schema = schema_text(RECORD, table.table_version)
    return _write(table, FILES_PARTITION, name, _encoded(table, name, records), schema)


def write_keyed_base_file(
    table: MetadataTable, partition: str, file_id: str, instant_time: str, records: Iterable[tuple[str, bytes]]
) -> Written:
    """
    Write the base file of a file group of `record_index` or `bloom_filters`.

    Args:
        table: The metadata table.
        partition: Its partition.
        file_id: Id of the file group.
        instant_time: In the name of the file.
        records: Key and record in the newest schema of the table's version, by the bytes of the key.
    """
    name = format_base_file(file_id, WRITE_TOKEN, instant_time, "hfile")
    schema = schema_text(RECORD, table.table_version)
    stored = ((key, Stored(value, schema, name)) for key, value in records)
    return _write(table, partition, name, renamed(stored, schema, name), schema)


def write_merged(
    table: MetadataTable, planned: Slice, blocks: list[tuple[LogFile, LogBlock]], instant_time: str
) -> Written:
    """
    Write (or write again) the base file that takes the place of a slice.

    Args:
        table: The metadata table.
        planned: The slice, of a partition that `hudi_py.mdt.compaction` knows.
        blocks: Those of its log files that count, see `visible_blocks`.
        instant_time: Requested time of the compaction.

    Raises:
        CorruptMetadata: A file of the slice is damaged.
        UnsupportedTable: Two statistics do not go together.
    """
    with contextlib.ExitStack() as stack:
        if planned.partition == FILES_PARTITION:
            # `compact` and `_planned_slice` refuse a slice of `files` without a base file: a new metadata table begins
            # with one.
            assert planned.base is not None
            path = planned.path(planned.base.name)
            base = Base(stack.enter_context(table.storage.open_read(path)), table.source(path))
            return write_base_file(table, instant_time, Part(base, merge_blocks(table, planned, blocks)).scan())
        name = format_base_file(planned.file_id, WRITE_TOKEN, instant_time, "hfile")
        if planned.partition in KEYED:
            schema = schema_text(RECORD, table.table_version)
            merged = merged_records(table, planned, blocks, stack)
            return _write(table, planned.partition, name, renamed(merged, schema, name), schema)
        part = open_part(table, planned, blocks, stack)
        # Records of several releases may meet here. The schema of the oldest one would drop the type of values that
        # 1.1.1 names, so all are written in the one that holds most.
        schema = widest_schema(part.schemas) if part.schemas else schema_text(RECORD, table.table_version)
        return _write(table, planned.partition, name, _encoded_statistics(part, schema, name), schema)


def _encoded(table: MetadataTable, name: str, records: Iterable[tuple[str, Files]]) -> Iterator[tuple[str, bytes]]:
    for key, files in records:
        # A base file is the oldest word on a partition: a deletion there has nothing left to delete, and would be kept
        # for good. A partition without files has no record; `__all_partitions__` still lists it.
        kept = {file: info for file, info in files.items() if not info.is_deleted}
        if kept:
            yield key, encode_files(key, kept, table.table_version, file_name=name)


def _encoded_statistics(part: StatisticsPart, schema: str, name: str) -> Iterator[tuple[str, bytes]]:
    for key, record in part.scan():
        yield key, encode_statistics(record, schema, file_name=name)


def _write(
    table: MetadataTable, partition: str, name: str, entries: Iterable[tuple[str, bytes]], schema: str
) -> Written:
    path = f"{partition}/{name}"
    first = last = b""
    count = 0
    with table.storage.open_write(path) as out:
        writer = HFileWriter(out)
        for key, value in entries:
            # Entries come in order of the keys, so the first and the last are the bounds that the footer names.
            last = key.encode()
            first = first if count else last
            count += 1
            writer.append(last, value)
        writer.close(info={"schema": schema.encode(), "minRecordKey": first, "maxRecordKey": last})
    # Asked for, not counted: Hudi reads a file up to the recorded length, so it has to be what the storage has.
    return Written(name, table.storage.size(path) or 0, count)

"""
What one delta commit of the metadata table writes: a log file for each file group that gets records, and its metadata.

Source: rules/data-files 11; Hudi 1.1.1 ``HoodieBackedTableMetadataWriter``, ``HoodieTableMetadataUtil``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from hudi_py.formats.avro_registry import schema_text
from hudi_py.formats.delete_block import DeletedKey, encode_delete_block
from hudi_py.formats.hfile_writer import encode_hfile
from hudi_py.formats.log_block import BlockType, HeaderKey, LogBlock
from hudi_py.mdt.lookup import PREFIXES, by_number, group_numbers
from hudi_py.mdt.records import RECORD, payload_schema, sorted_entries
from hudi_py.mdt.table import WRITE_TOKEN, MetadataTable, Slice
from hudi_py.model.files import LogFile
from hudi_py.model.records import CommitMetadata, RuntimeStats, WriteStat
from hudi_py.timeline.timeline import Timeline

Encoded = dict[str, dict[str, "bytes | None"]]
"""Partition of the metadata table to key to record; None deletes the record of a key."""
_OPERATION: Final = "UPSERT_PREPPED"


@attrs.frozen
class Share:
    """
    What one file group of the metadata table gets.

    Args:
        file_slice: Its current slice.
        blocks: Blocks of its new log file; empty if it gets none.
        count: Number of records.
        deleted_count: Number of keys that it deletes.
    """

    file_slice: Slice
    blocks: tuple[LogBlock, ...]
    count: int
    deleted_count: int = 0


def shares_of(
    table: MetadataTable, timeline: Timeline, partition: str, requested_time: str, records: Mapping[str, bytes | None]
) -> list[Share]:
    """The records of a partition by file group: the hash of the key tells which."""
    slices = by_number(table, table.slices(timeline, partition), PREFIXES[partition])
    groups: list[dict[str, bytes | None]] = [{} for _ in slices]
    for key, number in zip(records, group_numbers(records, len(slices)), strict=True):
        groups[number][key] = records[key]
    return [_share(table, each, requested_time, group) for each, group in zip(slices, groups, strict=True)]


def _share(table: MetadataTable, file_slice: Slice, requested_time: str, records: Mapping[str, bytes | None]) -> Share:
    kept = {key: value for key, value in records.items() if value is not None}
    gone = sorted((key for key, value in records.items() if value is None), key=str.encode)
    blocks = []
    if kept:
        # The data block first, as Hudi writes them (rules/data-files 11.3).
        blocks.append(record_block(table, requested_time, kept))
    if gone:
        blocks.append(_delete_block(table, file_slice.partition, requested_time, gone))
    return Share(file_slice, tuple(blocks), len(kept), len(gone))


def _delete_block(table: MetadataTable, partition: str, requested_time: str, keys: Iterable[str]) -> LogBlock:
    header = {
        int(HeaderKey.INSTANT_TIME): requested_time,
        int(HeaderKey.SCHEMA): schema_text(RECORD, table.table_version),
    }
    content = encode_delete_block(DeletedKey(key, partition) for key in keys)
    return LogBlock(BlockType.DELETE, header, content)


def record_block(table: MetadataTable, requested_time: str, values: Mapping[str, bytes]) -> LogBlock:
    """Return a data block of records, given by key."""
    schema = schema_text(RECORD, table.table_version)
    content = encode_hfile(sorted_entries(values), info={"schema": schema.encode()})
    header = {int(HeaderKey.INSTANT_TIME): requested_time, int(HeaderKey.SCHEMA): schema}
    return LogBlock(BlockType.HFILE_DATA, header, content)


def new_log(table: MetadataTable, file_slice: Slice, requested_time: str) -> LogFile:
    """Name the next log file of a file group."""
    time, version = requested_time, 1
    if table.format.log_naming.tells_slice:
        # Layout 1 names a log file by the slice that it lies on; with a compaction pending that is the one which the
        # compaction opened.
        time = file_slice.next_base_time
        version += max((log.version for log in file_slice.logs if log.instant_time == time), default=0)
    name = f".{file_slice.file_id}_{time}.log.{version}_{WRITE_TOKEN}"
    return LogFile(name, file_slice.file_id, time, version, WRITE_TOKEN)


def inflight_metadata(shares: list[Share]) -> CommitMetadata:
    """The workload profile, as Hudi writes it: an empty line for inserts, and one for each group that is updated."""
    stats: dict[str, tuple[WriteStat, ...]] = {}
    for share in shares:
        count = share.count + share.deleted_count
        if count:
            at = share.file_slice
            group = WriteStat(file_id=at.file_id, prev_commit=at.next_base_time, num_update_writes=count)
            stats[at.partition] = (*stats.get(at.partition, (WriteStat(file_id=""),)), group)
    return CommitMetadata(partition_to_write_stats=stats, operation_type=_OPERATION)


def completed_metadata(table: MetadataTable, written: list[tuple[Share, LogFile | None, int]]) -> CommitMetadata:
    """Return the metadata of the delta commit: each share with its log file and the size of that."""
    stats: dict[str, tuple[WriteStat, ...]] = {}
    for share, log, size in written:
        if log is not None:
            partition = share.file_slice.partition
            stats[partition] = (*stats.get(partition, ()), _stat(table, share, log, size))
    return CommitMetadata(
        partition_to_write_stats=stats,
        extra_metadata={"schema": payload_schema(table.table_version)},
        operation_type=_OPERATION,
    )


def _stat(table: MetadataTable, share: Share, log: LogFile, size: int) -> WriteStat:
    file_slice = share.file_slice
    stat = WriteStat(
        file_id=file_slice.file_id,
        path=file_slice.path(log.name),
        prev_commit=log.instant_time,
        partition_path=file_slice.partition,
        base_file="",
        log_version=log.version,
        log_offset=0,
        num_writes=share.count,
        num_update_writes=share.count,
        num_deletes=share.deleted_count,
        total_write_bytes=size,
        file_size_in_bytes=size,
        log_files=(log.name,),
        runtime_stats=RuntimeStats(),
    )
    if not table.format.log_naming.tells_slice:
        return stat
    base = file_slice.base
    # Layout 1 lists all log files of the slice in each stat, layout 2 only the new one (rules/data-files 8).
    same = tuple(other.name for other in file_slice.logs if other.instant_time == log.instant_time)
    return attrs.evolve(
        stat,
        base_file=base.name if base is not None and base.instant_time == log.instant_time else "",
        log_files=same if log.name in same else (*same, log.name),
    )

"""
Which log blocks of a metadata-table slice count, and in what order.

A block counts when its instant is completed in the metadata table and not pending in the data table, unless a later
rollback block names it. The first condition hides writes of the metadata table that failed, the second those whose
data instant was never completed: the metadata table is always written first.

Source: rules/data-files 9.2, 10 and 11; Hudi 0.15.0 to 1.1.1
``HoodieTableMetadataUtil.getValidInstantTimestamps`` and ``AbstractHoodieLogRecordReader``.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

from hudi_py.errors import CorruptMetadata, UnsupportedTable
from hudi_py.formats.commit_codec import decode_commit
from hudi_py.formats.delete_block import decode_delete_block
from hudi_py.formats.hfile import HFile
from hudi_py.formats.kept import kept_if_small
from hudi_py.formats.log_block import BlockType, HeaderKey, LogBlock, iterate_log_blocks
from hudi_py.mdt.recorded import WAY_OUT
from hudi_py.mdt.records import Alone, Files, decode_files, merge_files
from hudi_py.mdt.table import MetadataTable, Slice, is_committed
from hudi_py.model.files import LogFile
from hudi_py.model.instant import Action
from hudi_py.model.instant_time import INIT_TIME
from hudi_py.rows.log_scan import scan_blocks
from hudi_py.timeline.timeline import Timeline


class Validity:
    """
    Which instants' blocks count.

    Args:
        timeline: The metadata table's timeline.
        data_timeline: The data table's timeline.
    """

    def __init__(self, timeline: Timeline, data_timeline: Timeline) -> None:
        self._timeline = timeline
        # Both states of one time may be on the timeline: a savepoint has the time of its commit, and while one of the
        # two is pending, the completed one still decides.
        self._completed = {instant.requested_time for instant in data_timeline.completed()}
        self._pending = {instant.requested_time for instant in data_timeline.pending()} - self._completed

    def __contains__(self, requested_time: str) -> bool:
        if not is_committed(self._timeline, requested_time):
            return False
        return requested_time not in self._pending or requested_time.startswith(INIT_TIME)


def read_blocks(table: MetadataTable, file_slice: Slice, log: LogFile) -> list[LogBlock]:
    """
    All blocks of one log file, torn ones included.

    Raises:
        CorruptMetadata: It is shorter than a completed delta commit recorded.
    """
    path = file_slice.path(log.name)
    data = table.storage.read(path)
    # A file that is cut off exactly between two blocks reads well, and lacks the newest files. Only the length tells.
    if len(data) < (log.size_bytes or 0):
        raise CorruptMetadata(
            f"{table.source(path)} is damaged: it has {len(data)} bytes, and a completed delta commit of the metadata "
            f"table wrote {log.size_bytes}; {WAY_OUT}"
        )
    return list(iterate_log_blocks(data, table.source(path)))


def visible_blocks(
    table: MetadataTable, file_slice: Slice, timeline: Timeline, validity: Validity
) -> list[tuple[LogFile, LogBlock]]:
    """
    The data and delete blocks of a slice that count, oldest first.

    Raises:
        CorruptMetadata: A log file that counts is damaged.
        UnsupportedTable: The slice holds a block of a kind that the metadata table does not have.
    """
    placed = (
        (log, block, table.source(file_slice.path(log.name)))
        for log in file_slice.logs
        for block in read_blocks(table, file_slice, log)
    )
    # Named after the slice in layout 1, and by a version-6 table that was upgraded.
    base = None if table.config.format.log_naming.tells_slice or file_slice.base is None else file_slice.base
    scanned = scan_blocks(placed, validity.__contains__, slice_time=None if base is None else base.instant_time)
    found = scanned.blocks
    for log, block in found:
        _check_kind(block, table.source(file_slice.path(log.name)))
    # Only now, because it decodes every delta commit; hardly any table has such blocks.
    suspects = scanned.torn + scanned.left_out
    if suspects:
        _check_suspects(table, file_slice, timeline, validity, suspects, found)
    return found


def merge_blocks(table: MetadataTable, file_slice: Slice, blocks: list[tuple[LogFile, LogBlock]]) -> dict[str, Files]:
    """
    Key to the files that the blocks list, merged among themselves and not yet with the base file.

    Hudi merges in the same two steps, and deletions of files that only the base file knows depend on it.
    """
    merged: dict[str, Files] = {}
    for log, block in blocks:
        source = table.source(file_slice.path(log.name))
        if block.block_type is BlockType.DELETE:
            source = f"{source} (block at byte {block.offset})"
            merged.update((key, Alone()) for key in deleted_keys(block, file_slice.partition, source))
            continue
        for key, files in decode_block(block, source):
            known = merged.get(key)
            merged[key] = files if known is None else merge_files(known, files)
            # What comes after a deleted key is a new record, and must not be merged with what the base file has of that
            # key.
            if isinstance(known, Alone):
                merged[key] = Alone(merged[key])
    return merged


def deleted_keys(block: LogBlock, partition: str, source: str) -> Iterator[str]:
    """
    The keys that a delete block deletes from a partition of the metadata table.

    Apache Hudi 1.1 deletes the record of a partition that a clean has removed as a whole.
    """
    for key, named, _ in decode_delete_block(block.content, source):
        # A delete block is in the log file of one partition; one that names another was put there by mistake, and
        # whoever obeyed it would lose records.
        if named not in (None, partition):
            raise CorruptMetadata(f"{source}: deletes {key!r} of the partition {named!r}, which is another one")
        yield key


def decode_block(block: LogBlock, source: str) -> tuple[tuple[str, Files], ...]:
    """Key and files of the records of an HFile data block, by key; values are shared, so they must not be changed."""
    source = f"{source} (block at byte {block.offset})"
    return _decoded(block.content, _schema_of(block, source), source)


@kept_if_small
def _decoded(content: bytes, schema: str, source: str) -> tuple[tuple[str, Files], ...]:
    hfile = HFile(io.BytesIO(content), len(content), source)
    return tuple((decode_key(key, source), decode_files(value, schema, source)) for key, value in hfile)


def open_block(block: LogBlock, source: str) -> tuple[HFile, str]:
    """
    The records of an HFile data block, and the schema that they were written with.

    Raises:
        CorruptMetadata: The block has no schema, or its content is no HFile.
    """
    schema = _schema_of(block, source)
    return HFile(io.BytesIO(block.content), len(block.content), source), schema


def _schema_of(block: LogBlock, source: str) -> str:
    schema = block.header.get(HeaderKey.SCHEMA)
    if schema is None:
        raise CorruptMetadata(f"{source}: a data block without a schema")
    return schema


def open_hfile(stream: BinaryIO, source: str) -> tuple[HFile, str]:
    """
    The records of a base file on a seekable stream, and the schema that they were written with.

    Raises:
        CorruptMetadata: The file has no schema, or is no HFile.
    """
    hfile = HFile(stream, stream.seek(0, io.SEEK_END), source)
    schema = hfile.info.get(b"schema")
    if schema is None:
        raise CorruptMetadata(f"{source}: the file info has no schema")
    return hfile, schema.decode("utf-8", "replace")


def decode_key(key: bytes, source: str) -> str:
    """A record's key as text."""
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        raise CorruptMetadata(f"{source}: the key {key!r} is not UTF-8") from error


def _check_kind(block: LogBlock, source: str) -> None:
    # A log compaction repeats older blocks in a newer one. Read by these rules, deletions would be applied twice and
    # cancel each other.
    if HeaderKey.COMPACTED_BLOCK_TIMES in block.header:
        raise UnsupportedTable(
            f"{source}: the metadata table was log-compacted, which this release does not read; "
            "set hoodie.metadata.enable=false to list the storage instead"
        )
    if block.block_type not in (BlockType.HFILE_DATA, BlockType.DELETE):
        raise UnsupportedTable(
            f"{source}: byte {block.offset}: a block {block.block_type.name} is not known in the metadata table; "
            "set hoodie.metadata.enable=false to list the storage instead"
        )


def _check_suspects(
    table: MetadataTable,
    file_slice: Slice,
    timeline: Timeline,
    validity: Validity,
    suspects: list[tuple[LogFile, LogBlock]],
    found: list[tuple[LogFile, LogBlock]],
) -> None:
    """
    Let a block be passed over only when no delta commit that counts can have written it.

    Writers that die leave torn blocks and blocks of pending instants, and Hudi passes over all of them. One of a
    completed delta commit is damage, and what the listing would lack without it could be deleted or overwritten as
    unknown.
    """
    # One log file may have blocks of several instants (layout 1 with append), so the name alone proves nothing.
    seen = {(log.name, block.header.get(HeaderKey.INSTANT_TIME, "")) for log, block in found}
    places = {log.name: block.offset for log, block in suspects}
    for instant in timeline.completed(Action.DELTA_COMMIT):
        if instant.requested_time not in validity:
            continue
        metadata = decode_commit(table.store.read(instant), table.source(table.store.path(instant)))
        for stat in metadata.partition_to_write_stats.get(file_slice.partition, ()):
            name = (stat.path or "").rpartition("/")[2]
            if name in places and (name, instant.requested_time) not in seen:
                raise CorruptMetadata(
                    f"{table.source(file_slice.path(name))}: byte {places[name]}: the block of the completed delta "
                    f"commit {instant.requested_time} is damaged; {WAY_OUT}"
                )

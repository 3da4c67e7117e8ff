"""
Reading the partitions `column_stats` and `partition_stats`.

The same slices, blocks and rules as for `files` (`hudi_py.mdt.blocks`). The log files are held in memory, of a base
file one block at a time; all records of a column lie next to each other there.

Source: rules/data-files 9.1 and 11; Hudi 1.1.1 ``HoodieBackedTableMetadata``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from hudi_py.formats.hfile import HFile
from hudi_py.formats.log_block import BlockType, LogBlock
from hudi_py.mdt.blocks import Validity, decode_key, deleted_keys, open_block, open_hfile, visible_blocks
from hudi_py.mdt.statistics import (
    COLUMN_STATS,
    StatisticsRecord,
    column_prefix,
    decode_statistics,
    merge_statistics,
    statistics_of,
)
from hudi_py.mdt.table import MetadataTable, Slice
from hudi_py.model.column_statistics import ColumnStatistics
from hudi_py.model.files import LogFile
from hudi_py.timeline.timeline import Timeline


class StatisticsReader:
    """
    One of the two partitions as it is at one moment. Use it as a context manager: it holds the base files open.

    Args:
        table: The metadata table.
        data_timeline: The data table's timeline: blocks of its pending instants do not count.
        timeline: The metadata table's timeline; loaded when left out.
        partition: `COLUMN_STATS` or `PARTITION_STATS`.

    Raises:
        CorruptMetadata: A file that counts is damaged.
        UnsupportedTable: It holds what this release does not read.
        StorageError: As the storage.
    """

    def __init__(
        self,
        table: MetadataTable,
        data_timeline: Timeline,
        timeline: Timeline | None = None,
        *,
        partition: str = COLUMN_STATS,
    ) -> None:
        timeline = timeline or table.store.load()
        validity = Validity(timeline, data_timeline)
        with contextlib.ExitStack() as stack:
            self._parts = [
                open_part(table, file_slice, visible_blocks(table, file_slice, timeline, validity), stack)
                for file_slice in table.slices(timeline, partition)
            ]
            # Only now: if one part cannot be opened, the others are closed again.
            self._stack = stack.pop_all()

    def __enter__(self) -> StatisticsReader:  # noqa: PYI034 - typing has no Self in 3.10
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the base files."""
        self._stack.close()

    def scan(self) -> Iterator[tuple[str, ColumnStatistics]]:
        """Key and meaning of every record; by the bytes of the key within each file group."""
        for part in self._parts:
            for key, record in part.scan():
                yield key, statistics_of(record)

    def of_column(self, column: str) -> dict[str, ColumnStatistics]:
        """The records of one column by their keys, for which see `hudi_py.mdt.statistics.key_suffix`."""
        prefix = column_prefix(column)
        return {key: statistics_of(record) for part in self._parts for key, record in part.scan(prefix)}

    def get(self, keys: Iterable[str]) -> dict[str, ColumnStatistics]:
        """The records of single keys, for which see `hudi_py.mdt.statistics`; keys without a record are left out."""
        # HFiles are in the order of bytes, which is not that of texts in Python.
        wanted = sorted(set(keys), key=str.encode)
        return {key: statistics_of(record) for part in self._parts for key, record in part.find(wanted)}

    def has_column(self, column: str) -> bool:
        """Whether there is a record of a column."""
        return any(True for part in self._parts for _ in part.scan(column_prefix(column)))


class Logged(NamedTuple):
    """What the log files say of a key: nothing is left of it (None), and whether the base file's word still counts."""

    record: StatisticsRecord | None
    is_alone: bool


class _Base(NamedTuple):
    """A base file: its records, the schema that they were written with, and where it is, for messages."""

    hfile: HFile
    schema: str
    source: str


class StatisticsPart:
    """
    One file group: its base file under its logs.

    Args:
        base: Its base file, or None.
        logs: As `merge_statistics_blocks` tells.
        partition: Partition of the metadata table.
        schemas: Schemas of all its records.
    """

    def __init__(self, base: _Base | None, logs: dict[str, Logged], partition: str, schemas: list[str]) -> None:
        self._base = base
        self._partition = partition
        self.logs = logs
        self.schemas = schemas if base is None else [*schemas, base.schema]

    def scan(self, prefix: str = "") -> Iterator[tuple[str, StatisticsRecord]]:
        """All keys that begin with *prefix*, by their bytes; without those that are deleted."""
        waiting = sorted((key for key in self.logs if key.startswith(prefix)), key=str.encode, reverse=True)
        for key, older in self._stored(prefix):
            while waiting and waiting[-1].encode() < key.encode():
                yield from self._present(waiting.pop(), None)
            if waiting and waiting[-1] == key:
                waiting.pop()
            yield from self._present(key, older)
        while waiting:
            yield from self._present(waiting.pop(), None)

    def find(self, keys: Sequence[str]) -> Iterator[tuple[str, StatisticsRecord]]:
        """Those of *keys*, ascending by their bytes, that have a record and are not deleted."""
        stored: dict[str, StatisticsRecord] = {}
        if self._base is not None:
            found = self._base.hfile.find(key.encode() for key in keys)
            stored = {decode_key(key, self._base.source): self._decoded(value) for key, value in found}
        for key in keys:
            yield from self._present(key, stored.get(key))

    def check_logged(self) -> None:
        """
        Merge every key of the log files.

        Raises:
            As `decode_statistics` and `merge_statistics`.
        """
        for key in self.logs:
            value = None if self._base is None else self._base.hfile.get(key.encode())
            self._merged(key, None if value is None else self._decoded(value))

    def _present(self, key: str, older: StatisticsRecord | None) -> Iterator[tuple[str, StatisticsRecord]]:
        record = self._merged(key, older)
        if record is not None and not record.is_deleted:
            yield key, record

    def _merged(self, key: str, older: StatisticsRecord | None) -> StatisticsRecord | None:
        logged = self.logs.get(key)
        if logged is None:
            return older
        # Deleted, or written again after a deletion: the base file has no say any more.
        if older is None or logged.record is None or logged.is_alone:
            return logged.record
        return merge_statistics(older, logged.record, self._partition)

    def _stored(self, prefix: str) -> Iterator[tuple[str, StatisticsRecord]]:
        if self._base is None:
            return
        start = prefix.encode()
        # Keys are Base64, so 0xff is behind everything that begins with the prefix.
        for key, value in self._base.hfile.scan(start, start + b"\xff" if start else None):
            yield decode_key(key, self._base.source), self._decoded(value)

    def _decoded(self, value: bytes) -> StatisticsRecord:
        assert self._base is not None
        return decode_statistics(value, self._base.schema, self._partition, self._base.source)


def open_part(
    table: MetadataTable,
    file_slice: Slice,
    blocks: list[tuple[LogFile, LogBlock]],
    stack: contextlib.ExitStack,
) -> StatisticsPart:
    """
    One file group of either partition.

    Args:
        table: The metadata table.
        file_slice: The group's slice.
        blocks: Those of its log files that count, see `visible_blocks`.
        stack: Closes the base file.
    """
    base = None
    if file_slice.base is not None:
        path = file_slice.path(file_slice.base.name)
        hfile, schema = open_hfile(stack.enter_context(table.storage.open_read(path)), table.source(path))
        base = _Base(hfile, schema, table.source(path))
    logs, schemas = merge_statistics_blocks(table, file_slice, blocks)
    return StatisticsPart(base, logs, file_slice.partition, schemas)


def merge_statistics_blocks(
    table: MetadataTable, file_slice: Slice, blocks: list[tuple[LogFile, LogBlock]]
) -> tuple[dict[str, Logged], list[str]]:
    """Key to what the blocks say of it, merged among themselves and not yet with the base file; and their schemas."""
    merged: dict[str, Logged] = {}
    schemas: list[str] = []
    for log, block in blocks:
        source = f"{table.source(file_slice.path(log.name))} (block at byte {block.offset})"
        if block.block_type is BlockType.DELETE:
            for key in deleted_keys(block, file_slice.partition, source):
                merged[key] = Logged(None, is_alone=True)
            continue
        hfile, schema = open_block(block, source)
        schemas.append(schema)
        for raw, value in hfile:
            key = decode_key(raw, source)
            newer = decode_statistics(value, schema, file_slice.partition, source)
            known = merged.get(key)
            if known is not None and known.record is not None:
                newer = merge_statistics(known.record, newer, source)
            merged[key] = Logged(newer, known is not None and known.is_alone)
    return merged, schemas

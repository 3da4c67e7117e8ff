"""
Listing partitions and files through the metadata table.

Opening reads the log files of the current slice (few and small: Hudi compacts them after ten commits) and the index of
the base file; after that a partition costs one block of it, and `scan` goes through all of it once with one block in
memory. No folder of the data table is listed.

Source: rules/data-files 9.1, 10 and 11; Hudi 1.1.1 ``HoodieBackedTableMetadata``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from hudi_py.errors import CorruptMetadata
from hudi_py.mdt.blocks import Validity, decode_key, merge_blocks, open_hfile, visible_blocks
from hudi_py.mdt.present import decode_present
from hudi_py.mdt.records import ALL_PARTITIONS, Alone, Files, decode_files, key_of, merge_files, partition_of, present
from hudi_py.mdt.table import MetadataTable, Slice
from hudi_py.timeline.timeline import Timeline


class MetadataReader:
    """
    The `files` partition as it is at one moment. Use it as a context manager: it holds the base file open.

    Args:
        table: The metadata table.
        data_timeline: The data table's timeline: blocks of its pending instants do not count.
        timeline: Of the metadata table; loaded when left out. Beside running writers and without the lock, load it
            *before* the data table's and pass it: an action that completes in between is then not seen at all.

    Raises:
        CorruptMetadata: A file that counts is damaged.
        UnsupportedTable: It holds what this release does not read.
        StorageError: As the storage; `NotFound` when another writer cleaned the files away meanwhile: open again.
    """

    def __init__(self, table: MetadataTable, data_timeline: Timeline, timeline: Timeline | None = None) -> None:
        self._stack = contextlib.ExitStack()
        self._table = table
        # Loaded after the data table's it may be newer: then blocks of actions count that the caller does not know yet.
        timeline = timeline or table.store.load()
        self._moment = table, data_timeline, timeline
        validity = Validity(timeline, data_timeline)
        self._parts: list[Part] = []
        # Files that were opened before an error are closed by this; after it they belong to the reader.
        with contextlib.ExitStack() as stack:
            for file_slice in table.slices(timeline):
                logs = merge_blocks(table, file_slice, visible_blocks(table, file_slice, timeline, validity))
                self._parts.append(Part(self._base(file_slice, stack), logs))
            self._stack = stack.pop_all()
        # An empty answer would look like an empty table.
        if not self._parts:
            raise CorruptMetadata(
                f"{table.source('files')}: the metadata table has no file group there although the table's properties "
                "name it; hoodie.metadata.enable=false drops it, Apache Hudi creates it again"
            )

    def __enter__(self) -> MetadataReader:  # noqa: PYI034 - typing has no Self in 3.10
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._moment  # the same moment, its files opened again

    def close(self) -> None:
        """Close the base file."""
        self._stack.close()

    def partitions(self) -> tuple[str, ...]:
        """Relative paths of all partitions, sorted; ``("",)`` for a table without partitions."""
        return tuple(sorted(partition_of(key) for key in self._present(ALL_PARTITIONS)))

    def files(self, partition_path: str) -> dict[str, int]:
        """File name to size in bytes; empty when the partition is not known."""
        return self._present(key_of(partition_path))

    def scan(self) -> Iterator[tuple[str, dict[str, int]]]:
        """Partition path and files (name to size in bytes) of each partition that has any, by path."""
        for part in self._parts:
            for key, listed in part.listed():
                if key != ALL_PARTITIONS and listed:
                    yield partition_of(key), listed

    def record(self, key: str) -> Files:
        """What base file and log files say of a key, deletions of unknown files included."""
        merged: Files = {}
        for part in self._parts:
            merged.update(part.get(key))
        return merged

    def logged(self, key: str) -> Files:
        """What the log files alone say of a key."""
        merged: Files = {}
        for part in self._parts:
            merged.update(part.logs.get(key, {}))
        return merged

    def _present(self, key: str) -> dict[str, int]:
        return present(self.record(key))

    def _base(self, file_slice: Slice, stack: contextlib.ExitStack) -> Base | None:
        if file_slice.base is None:
            return None
        path = file_slice.path(file_slice.base.name)
        stream = stack.enter_context(self._table.storage.open_read(path))
        return Base(stream, self._table.source(path))


class Base:
    """
    A base file: key to files.

    Args:
        stream: A seekable stream; it is read as long as this value is used.
        source: Where it is, for messages.
    """

    def __init__(self, stream: BinaryIO, source: str) -> None:
        self._source = source
        self._hfile, self._schema = open_hfile(stream, source)

    def get(self, key: str) -> Files | None:
        """What it says of a key, or None."""
        value = self._hfile.get(key.encode())
        return None if value is None else self.decode(value)

    def values(self) -> Iterator[tuple[str, bytes]]:
        """All keys, by their bytes, and what `decode` and `decode_present` take."""
        for key, value in self._hfile:
            yield decode_key(key, self._source), value

    def decode(self, value: bytes) -> Files:
        """See `decode_files`."""
        return decode_files(value, self._schema, self._source)

    def decode_present(self, value: bytes) -> dict[str, int]:
        """See `hudi_py.mdt.present.decode_present`."""
        return decode_present(value, self._schema, self._source)


class Part:
    """One file group: its base file under its logs."""

    def __init__(self, base: Base | None, logs: dict[str, Files]) -> None:
        self._base = base
        self.logs = logs

    def get(self, key: str) -> Files:
        """What base file and logs say of a key."""
        older = None if self._base is None else self._base.get(key)
        return _over(older, self.logs.get(key))

    def scan(self) -> Iterator[tuple[str, Files]]:
        """All keys, by their bytes."""
        for key, value in self._keys():
            yield key, _over(self._older(value), self.logs.get(key))

    def listed(self) -> Iterator[tuple[str, dict[str, int]]]:
        """All keys, by their bytes, with what is `present`."""
        for key, value in self._keys():
            # The fast way: most partitions have no entry in the log files, so nothing has to be merged.
            if self._base is not None and value is not None and key not in self.logs:
                yield key, self._base.decode_present(value)
            else:
                yield key, present(_over(self._older(value), self.logs.get(key)))

    def _older(self, value: bytes | None) -> Files | None:
        return None if self._base is None or value is None else self._base.decode(value)

    def _keys(self) -> Iterator[tuple[str, bytes | None]]:
        """Keys of base file and logs, and the value in the base file."""
        # Records that a delete block took away, and that nothing has written since.
        gone = {key for key, files in self.logs.items() if isinstance(files, Alone) and not files}
        waiting = sorted(self.logs.keys() - gone, key=str.encode, reverse=True)
        for key, value in self._base.values() if self._base is not None else ():
            if key in gone:
                continue
            while waiting and waiting[-1].encode() < key.encode():
                yield waiting.pop(), None
            if waiting and waiting[-1] == key:
                waiting.pop()
            yield key, value
        while waiting:
            yield waiting.pop(), None


def _over(older: Files | None, newer: Files | None) -> Files:
    if isinstance(newer, Alone):
        return newer
    if older is None or newer is None:
        return older or newer or {}
    return merge_files(older, newer)

"""
Point look-ups in partitions of the metadata table whose file groups are chosen by a hash of the key.

Of the base files only the index blocks and the data blocks that may hold a key are read; the log files of a group are
read whole (Hudi compacts them after ten commits). Groups in which no key can lie are not opened. The newest record of a
key counts, no two are merged.

Source: rules/data-files 11 and 11.3; Hudi 1.1.1 ``HoodieTableMetadataUtil.mapRecordKeyToFileGroupIndex``.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from hudi_py.errors import CorruptMetadata, UnsupportedTable
from hudi_py.formats.hfile import HFile
from hudi_py.formats.log_block import BlockType, LogBlock
from hudi_py.fsview.listing import listing_threads
from hudi_py.mdt.blocks import Validity, deleted_keys, open_block, open_hfile, visible_blocks
from hudi_py.mdt.statistics import COLUMN_STATS, PARTITION_STATS
from hudi_py.mdt.table import MetadataTable, Slice
from hudi_py.timeline.timeline import Timeline

if TYPE_CHECKING:
    from typing_extensions import Self

BLOOM_FILTERS: Final = "bloom_filters"
RECORD_INDEX: Final = "record_index"
KEYED: Final = frozenset({BLOOM_FILTERS, RECORD_INDEX})
"""Partitions in which the newest record of a key counts alone."""
PREFIXES: Final = {
    COLUMN_STATS: "col-stats",
    PARTITION_STATS: "partition-stats",
    RECORD_INDEX: "record-index",
    BLOOM_FILTERS: "bloom-filters",
}
"""Partition, besides `files`, to the beginning of its file groups' ids; the group's number follows."""

_GROUP: Final = re.compile(r"-([0-9]{4,})-[0-9]+")
_KEYS_AT_ONCE: Final = 64  # a Bloom filter has up to half a megabyte
_MASK: Final = (1 << 32) - 1
_INT_MAX: Final = (1 << 31) - 1


class Stored(NamedTuple):
    """
    A record as it is stored.

    Args:
        value: Avro binary of a ``HoodieMetadataRecord``.
        schema: That it was written with.
        source: Where it was found, for messages.
    """

    value: bytes
    schema: str
    source: str


class KeyedPartition:
    """
    One partition as it is at one moment. Use it as a context manager: it holds base files open.

    Args:
        table: The metadata table.
        data_timeline: The data table's timeline: blocks of its pending instants do not count.
        timeline: The metadata table's timeline; loaded when left out.

    Raises:
        CorruptMetadata: A file that counts is damaged or missing.
        UnsupportedTable: Its file groups are numbered for each partition of the data table.
        StorageError: As the storage.
    """

    partition: ClassVar[str]
    """Its name, a key of `PREFIXES`."""

    def __init__(self, table: MetadataTable, data_timeline: Timeline, timeline: Timeline | None = None) -> None:
        self._table = table
        self._timeline = timeline or table.store.load()
        self._validity = Validity(self._timeline, data_timeline)
        self._slices = by_number(table, table.slices(self._timeline, self.partition), PREFIXES[self.partition])
        self._groups: dict[int, list[_Layer]] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the base files."""
        self._stack.close()

    def find(self, keys: Iterable[str]) -> Iterator[tuple[str, Stored]]:
        """The newest record of each key that has one and was not deleted since, a few in memory at a time."""
        by_group: dict[int, set[bytes]] = {}
        for key in keys:
            by_group.setdefault(group_number(key, len(self._slices)), set()).add(key.encode())
        for number in sorted(by_group):
            asked = sorted(by_group[number])
            for start in range(0, len(asked), _KEYS_AT_ONCE):
                yield from _newest(self._layers(number), asked[start : start + _KEYS_AT_ONCE])

    def count(self) -> int:
        """The number of keys that have a record; all groups are opened, several at a time on an object store."""
        with ThreadPoolExecutor(listing_threads(self._table.storage)) as pool:
            return sum(map(_count, pool.map(self._layers, range(len(self._slices)))))

    def _layers(self, number: int) -> list[_Layer]:
        # Kept for the next call: opening a group reads its log files whole.
        layers = self._groups.get(number)
        if layers is None:
            layers = self._groups[number] = self._open(self._slices[number])
        return layers

    def _open(self, file_slice: Slice) -> list[_Layer]:
        table = self._table
        layers = []
        if file_slice.base is not None:
            path = file_slice.path(file_slice.base.name)
            stream = self._stack.enter_context(table.storage.open_read(path))
            hfile, schema = open_hfile(stream, table.source(path))
            layers.append(_Layer(hfile, frozenset(), schema, table.source(path)))
        for log, block in visible_blocks(table, file_slice, self._timeline, self._validity):
            source = f"{table.source(file_slice.path(log.name))} (block at byte {block.offset})"
            layers.append(_layer(block, self.partition, source))
        return layers


class _Layer(NamedTuple):
    """A base file, or a block of a log file: the records it holds, and the keys it deletes."""

    held: HFile | None
    deleted: frozenset[bytes]
    schema: str
    source: str


def _layer(block: LogBlock, partition: str, source: str) -> _Layer:
    if block.block_type is BlockType.DELETE:
        return _Layer(None, frozenset(key.encode() for key in deleted_keys(block, partition, source)), "", source)
    hfile, schema = open_block(block, source)
    return _Layer(hfile, frozenset(), schema, source)


def _newest(layers: list[_Layer], keys: list[bytes]) -> Iterator[tuple[str, Stored]]:
    """The record of each key in the newest of the layers that knows it; *keys* ascend."""
    left = keys
    for layer in reversed(layers):
        here = {} if layer.held is None else dict(layer.held.find(left))
        for key, value in here.items():
            yield key.decode(), Stored(value, layer.schema, layer.source)
        # A deleted key is not looked for in older layers: what they say of it is not true any more.
        left = [key for key in left if key not in here and key not in layer.deleted]


def _count(layers: list[_Layer]) -> int:
    """Number of keys that have a record: the trailer tells of the largest layer, the others are read."""
    held = [0 if each.held is None else each.held.entry_count for each in layers]
    if not any(held):
        return 0
    # A table's first commit may be in a log file, and have more keys than all that came before and after it.
    largest = held.index(max(held))
    older, newer = _states(layers[:largest]), _states(layers[largest + 1 :])
    hfile = layers[largest].held
    assert hfile is not None
    known = {key for key, _ in hfile.find(sorted(older.keys() | newer.keys()))}
    known_no_more = sum(not newer.get(key, True) for key in known)
    others = older | newer
    return held[largest] - known_no_more + sum(is_there for key, is_there in others.items() if key not in known)


def _states(layers: Iterable[_Layer]) -> dict[bytes, bool]:
    """Whether each key that *layers* know, the oldest first, has a record after all of them."""
    is_there: dict[bytes, bool] = {}
    for layer in layers:
        is_there.update(dict.fromkeys(layer.deleted, False))
        is_there.update((key, True) for key, _ in layer.held or ())
    return is_there


def by_number(table: MetadataTable, slices: Iterable[Slice], prefix: str) -> list[Slice]:
    """
    The slices by the numbers of their file groups.

    Args:
        table: The metadata table.
        slices: File slices of one partition.
        prefix: See `PREFIXES`.

    Raises:
        As `KeyedPartition`.
    """
    numbers: dict[int, Slice] = {}
    for file_slice in slices:
        found = _GROUP.fullmatch(file_slice.file_id.removeprefix(prefix))
        if found is None or not file_slice.file_id.startswith(prefix):
            raise UnsupportedTable(
                f"{table.source(file_slice.partition)}: the file group {file_slice.file_id} is numbered within a "
                "partition of the table, which this release does not look up keys in"
            )
        numbers[int(found[1])] = file_slice
    # The number of groups is part of the hash. With one missing, every key would be looked up in the wrong group, and
    # rows would be written a second time.
    if not numbers or sorted(numbers) != list(range(len(numbers))):
        raise CorruptMetadata(
            f"{table.source(prefix)}: file groups {sorted(numbers)} were found, and the numbers have to be 0, 1, 2 and "
            "so on: it is unknown in which group a key lies"
        )
    return [numbers[number] for number in range(len(numbers))]


def group_numbers(keys: Iterable[str], count: int) -> Iterator[int]:
    """`group_number` of each key."""
    return iter([0] * sum(1 for _ in keys)) if count == 1 else (group_number(key, count) for key in keys)


def group_number(key: str, count: int) -> int:
    """The number of the file group, of *count*, that a key lies in: Java's hash of text."""
    number = 0
    # UTF-16 units and 32 bits with overflow, as in Java: any other hash would look in the wrong group.
    for unit in memoryview(key.encode("utf-16-le", "surrogatepass")).cast("H"):
        number = (31 * number + unit) & _MASK
    return (number if number <= _INT_MAX else _MASK + 1 - number) % count

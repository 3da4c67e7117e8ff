"""
Reads HFiles (version 3), the base files and log blocks of the metadata table. Pure: works on a seekable stream.

Opening reads the trailer and the section that HBase calls *load on open* (root index, meta index, file info). A look-up
then reads the index blocks on its path and one data block; a scan has one data block in memory at a time. Nothing in
the file is trusted: every offset, length and count is compared with the size of the file before anything is read or
allocated.

Source: rules/data-files 11; Apache HBase HFile v3; Hudi 1.1.1 ``HFileReaderImpl``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import BinaryIO, Final, NamedTuple

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.hfile_blocks import HFileBlocks, damaged_hfile, read_exactly
from hudi_py.formats.hfile_layout import (
    CODEC_GZIP,
    CODEC_NONE,
    DATA,
    ENTRY,
    FILE_INFO,
    INDEX_ENTRY,
    INTERMEDIATE_INDEX,
    LEAF_INDEX,
    META,
    ROOT_INDEX,
    TRAILER_BYTES,
    Trailer,
    decode_trailer,
    read_hadoop_vint,
    read_message,
    read_varint,
)

_INDEX_LEVELS_MAX: Final = 8


class _Pointer(NamedTuple):
    """An index entry: position and size of a block, and its first key (or a smaller separator)."""

    row: bytes
    offset: int
    size: int


class HFile:
    """
    An open HFile; several threads may use it at the same time.

    Args:
        stream: Seekable stream; must stay open while the file is used, and is not closed here.
        size: Size of the file in bytes.
        source: Path of the file, for messages.
        verify: Compare data with its checksums.

    Raises:
        CorruptMetadata: The file is not an HFile of version 3, or its trailer, index or file info are damaged.
    """

    def __init__(self, stream: BinaryIO, size: int, source: str, *, verify: bool = True) -> None:
        self._size = size
        self._source = source
        self._body_bytes = size - TRAILER_BYTES
        if size < TRAILER_BYTES:
            raise self._corrupt(0, f"{size} bytes are too few for an HFile")
        # From the end: only the trailer says where everything else is.
        last = read_exactly(stream, self._body_bytes, TRAILER_BYTES, source)
        self.trailer: Trailer = decode_trailer(last, source, self._body_bytes)
        # Before any block is read: its numbers say how much to read.
        self._check_trailer()
        self._blocks = HFileBlocks(stream, self._body_bytes, self.trailer.codec, source, verify=verify)
        offset = self.trailer.load_on_open_offset
        payload, following = self._blocks.block(offset, (ROOT_INDEX,))
        self._root = self._root_pointers(payload, offset, self.trailer.data_index_count)
        self._rows = [pointer.row for pointer in self._root]
        payload, _ = self._blocks.block(following, (ROOT_INDEX,))
        self._meta = self._meta_pointers(payload, following)
        self.info: Mapping[bytes, bytes] = self._read_info()
        self._has_mvcc = self.info.get(b"KEY_VALUE_VERSION") == b"\0\0\0\x01"
        self._has_tags = b"hfile.MAX_TAGS_LEN" in self.info
        self._last: tuple[int, bytes] | None = None
        self._indexes: dict[int, tuple[int, list[_Pointer], list[bytes]]] = {}

    @property
    def entry_count(self) -> int:
        """Number of entries, according to the trailer."""
        return self.trailer.entry_count

    def get(self, key: bytes) -> bytes | None:
        """Return the value of *key*, or None; reads at most one data block."""
        pointer = self._locate(key)
        if pointer is None:
            return None
        for row, value in self._data_entries(pointer):
            if row >= key:
                return value if row == key else None
        return None

    def find(self, keys: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """
        Yield the entries of *keys*, which have to be ascending; each data block that may have one is read once.

        Raises:
            CorruptMetadata: A block is damaged.
        """
        at = -1
        found: tuple[bytes, bytes] | None = None
        entries: Iterator[tuple[bytes, bytes]] = iter(())
        for key in keys:
            pointer = self._locate(key)
            if pointer is None:
                continue
            if pointer.offset != at:
                at, entries = pointer.offset, self._data_entries(pointer)
                found = next(entries, None)
            while found is not None and found[0] < key:
                found = next(entries, None)
            if found is not None and found[0] == key:
                yield found

    def scan(self, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """
        Yield entries with ``start <= key < end``, in key order.

        Args:
            start: First key to return.
            end: First key not to return; None for all keys up to the end.

        Raises:
            CorruptMetadata: A block is damaged, or keys are not in order.
        """
        previous = b""
        for pointer in self._pointers(start):
            if end is not None and pointer.row >= end:
                return
            for row, value in self._data_entries(pointer):
                if row < previous:
                    raise self._corrupt(pointer.offset, "the keys of the block are not in order")
                previous = row
                if end is not None and row >= end:
                    return
                if row >= start:
                    yield row, value

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        count = 0
        for entry in self.scan():
            count += 1
            yield entry
        # Blocks are checked one by one, so only the count shows that whole blocks are missing.
        if count != self.trailer.entry_count:
            raise self._corrupt(
                self._body_bytes, f"the trailer announces {self.trailer.entry_count} entries, the file has {count}"
            )

    def meta(self, name: str) -> bytes | None:
        """Return the content of the meta block with this name (``bloomFilter``), or None."""
        pointer = self._meta.get(name.encode())
        return None if pointer is None else self._blocks.block(pointer.offset, (META,))[0]

    @property
    def meta_names(self) -> tuple[str, ...]:
        """Names of the meta blocks."""
        return tuple(name.decode("utf-8", "replace") for name in self._meta)

    # --- index ---------------------------------------------------------------------------------------------------
    def _locate(self, key: bytes) -> _Pointer | None:
        """Return the data block that can contain *key*, or None."""
        rows, pointers = self._rows, self._root
        for level in range(self.trailer.index_levels, 0, -1):
            # The last block that begins at or before the key: no other block can have it.
            position = bisect_right(rows, key) - 1
            if position < 0:
                return None
            if level == 1:
                return pointers[position]
            # A root of several levels leads to further index blocks; only the last level has the data blocks.
            pointers, rows = self._index_of(pointers[position], level)
        return None

    def _index_of(self, pointer: _Pointer, level: int) -> tuple[list[_Pointer], list[bytes]]:
        """An index block and its rows; the last block of each level is kept, because callers look up ascending keys."""
        kept = self._indexes.get(level)
        if kept is None or kept[0] != pointer.offset:
            pointers = self._index_block(pointer, leaf=level == 2)
            kept = self._indexes[level] = pointer.offset, pointers, [each.row for each in pointers]
        return kept[1], kept[2]

    def _pointers(self, start: bytes) -> Iterator[_Pointer]:
        """Yield data blocks in order, from the one that can contain *start*."""
        # Begin one block before the first pointer that is not smaller: equal keys may begin in that block.
        return self._walk(self._root, self.trailer.index_levels, start)

    def _walk(self, pointers: list[_Pointer], level: int, start: bytes) -> Iterator[_Pointer]:
        first = max(bisect_left([pointer.row for pointer in pointers], start) - 1, 0)
        for pointer in pointers[first:]:
            if level == 1:
                yield pointer
            else:
                yield from self._walk(self._index_block(pointer, leaf=level == 2), level - 1, start)

    def _index_block(self, pointer: _Pointer, *, leaf: bool) -> list[_Pointer]:
        payload, _ = self._blocks.block(pointer.offset, (LEAF_INDEX if leaf else INTERMEDIATE_INDEX,))
        count = int.from_bytes(payload[:4], "big")
        # One offset more than there are entries: the last one is the end of the last entry.
        table = 4 + 4 * (count + 1)
        if table > len(payload):
            raise self._corrupt(pointer.offset, f"an index block is too short for its {count} entries")
        bounds = [int.from_bytes(payload[at : at + 4], "big") + table for at in range(4, table, 4)]
        pointers = []
        for low, high in pairwise(bounds):
            if low + INDEX_ENTRY.size > high or high > len(payload):
                raise self._corrupt(pointer.offset, "an entry of the index block lies outside the block")
            offset, size = INDEX_ENTRY.unpack_from(payload, low)
            row = self._row(payload[low + INDEX_ENTRY.size : high], pointer.offset)
            pointers.append(_Pointer(row, offset, size))
        self._check_pointers(pointers, pointer.offset)
        return pointers

    def _root_pointers(self, payload: bytes, offset: int, count: int) -> list[_Pointer]:
        pointers = [
            _Pointer(self._row(name, offset), at, size) for name, at, size in self._named(payload, offset, count)
        ]
        self._check_pointers(pointers, offset)
        return pointers

    def _meta_pointers(self, payload: bytes, offset: int) -> dict[bytes, _Pointer]:
        named = self._named(payload, offset, self.trailer.meta_index_count)
        return {name: _Pointer(name, at, size) for name, at, size in named}

    def _named(self, payload: bytes, offset: int, count: int) -> list[tuple[bytes, int, int]]:
        entries = []
        position = 0
        for _ in range(count):
            if position + INDEX_ENTRY.size >= len(payload):
                raise self._corrupt(offset, f"the index is too short for its {count} entries")
            at, size = INDEX_ENTRY.unpack_from(payload, position)
            try:
                length, position = read_hadoop_vint(payload, position + INDEX_ENTRY.size)
            except ValueError as error:
                raise self._corrupt(offset, f"the index does not parse: {error}") from error
            if length < 0 or position + length > len(payload):
                raise self._corrupt(offset, "a key of the index is longer than the index")
            entries.append((payload[position : position + length], at, size))
            position += length
        if position != len(payload) and self.trailer.index_levels == 1:  # otherwise the middle key follows
            raise self._corrupt(offset, f"the index has more than the {count} entries that the trailer announces")
        return entries

    def _check_pointers(self, pointers: list[_Pointer], offset: int) -> None:
        if pointers and pointers[-1].offset >= offset:  # an index must not lead to itself, which would never end
            raise self._corrupt(offset, "the index points to a block after itself")
        for before, after in pairwise(pointers):
            if after.row < before.row or after.offset <= before.offset:
                raise self._corrupt(offset, "the entries of the index are not in order")

    # --- entries -------------------------------------------------------------------------------------------------
    def _data_entries(self, pointer: _Pointer) -> Iterator[tuple[bytes, bytes]]:
        last = self._last  # taken once: another thread may put another block there
        if last is None or last[0] != pointer.offset:
            self._last = last = (pointer.offset, self._blocks.block(pointer.offset, (DATA,))[0])
        payload = last[1]
        position, end = 0, len(payload)
        while position < end:
            if position + ENTRY.size > end:
                raise self._corrupt(pointer.offset, f"an entry is cut off at byte {position} of the block")
            key_bytes, value_bytes = ENTRY.unpack_from(payload, position)
            position += ENTRY.size
            after = position + key_bytes + value_bytes
            if key_bytes < 0 or value_bytes < 0 or after > end:
                raise self._corrupt(pointer.offset, f"the entry before byte {position} is longer than its block")
            key = payload[position : position + key_bytes]
            # The row alone: family, column and time of a key are the same in all entries that Hudi writes.
            yield self._row(key, pointer.offset), payload[position + key_bytes : after]
            position = self._after_entry(payload, after, pointer.offset)

    def _after_entry(self, payload: bytes, position: int, offset: int) -> int:
        """Pass over what follows a value: tags (length and bytes) and the number of the transaction."""
        if self._has_tags:
            position += 2 + int.from_bytes(payload[position : position + 2], "big")
        if self._has_mvcc:
            try:
                _, position = read_hadoop_vint(payload, position)
            except ValueError as error:
                raise self._corrupt(offset, f"an entry is cut off: {error}") from error
        return position

    def _row(self, key: bytes, offset: int) -> bytes:
        """The row of a key: a length of two bytes and the row, alone or followed by HBase's other parts."""
        length = int.from_bytes(key[:2], "big")
        if len(key) < 2 + length or len(key) < 2:
            raise self._corrupt(offset, f"a key of {len(key)} bytes cannot contain a row of {length}")
        return key[2 : 2 + length]

    # --- trailer and file info -----------------------------------------------------------------------------------
    def _check_trailer(self) -> None:
        trailer = self.trailer
        if trailer.codec not in (CODEC_GZIP, CODEC_NONE):
            raise self._corrupt(self._body_bytes, f"compression {trailer.codec} is not known (1 gzip, 2 none)")
        if trailer.encryption_key:
            raise self._corrupt(self._body_bytes, "the file is encrypted, which Hudi does not do")
        if not 1 <= trailer.index_levels <= _INDEX_LEVELS_MAX:
            raise self._corrupt(self._body_bytes, f"{trailer.index_levels} levels of index are not possible")
        if max(trailer.data_index_count, trailer.meta_index_count) > self._size:
            raise self._corrupt(self._body_bytes, "the trailer announces more index entries than the file has bytes")

    def _read_info(self) -> dict[bytes, bytes]:
        offset = self.trailer.file_info_offset
        payload, _ = self._blocks.block(offset, (FILE_INFO,))
        if payload[:4] != b"PBUF":
            raise self._corrupt(offset, "the file info does not begin with PBUF")
        info = {}
        try:
            length, start = read_varint(payload, 4)
            if start + length > len(payload):
                raise ValueError("it is cut off")
            for number, pair in read_message(payload[start : start + length]):
                fields = dict(read_message(pair)) if number == 1 and isinstance(pair, bytes) else {}
                name, value = fields.get(1, b""), fields.get(2, b"")
                if isinstance(name, bytes) and isinstance(value, bytes):
                    info[name] = value
        except ValueError as error:
            raise self._corrupt(offset, f"the file info does not parse: {error}") from error
        return info

    def _corrupt(self, offset: int, what: str) -> CorruptMetadata:
        return damaged_hfile(self._source, offset, what)

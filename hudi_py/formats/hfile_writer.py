"""
Writes HFiles (version 3) that Hudi 0.15.0, 1.0.2 and 1.1.1 can read. Pure: writes to a stream.

The files have one index level, gzip, CRC-32C checksums and full keys everywhere, like those of Hudi 0.15.0 and 1.0.2;
1.1.1 reads this form too. Memory: one data block, and the index (about sixty bytes per 64 KiB of data).

Source: rules/data-files 11; Apache HBase HFile v3.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import BinaryIO, Final

from hudi_py.formats.crc32c import crc32c_chunks
from hudi_py.formats.hfile_layout import (
    CHECKSUM_CHUNK,
    CHECKSUM_CRC32C,
    CODEC_GZIP,
    CODEC_NONE,
    DATA,
    ENTRY,
    FILE_INFO,
    HEAD,
    INDEX_ENTRY,
    KEY_TAIL,
    META,
    ROOT_INDEX,
    Trailer,
    encode_trailer,
    write_field,
    write_hadoop_vint,
    write_varint,
)

BLOCK_BYTES: Final = 64 * 1024
ROW_BYTES_MAX: Final = 2**15 - 1
_COMPARATOR: Final = "org.apache.hudi.io.storage.HoodieHBaseKVComparator"
_MINOR_VERSION: Final = 3


class HFileWriter:
    """
    Writes an HFile: call `append` in key order, then `close`.

    Args:
        out: Stream at position 0; not closed here.
        created_ms: Creation time for the file info, in epoch milliseconds.
        compress: Whether to compress with gzip.
        block_bytes: A data block ends when it has at least this size.
    """

    def __init__(
        self, out: BinaryIO, *, created_ms: int = 0, compress: bool = True, block_bytes: int = BLOCK_BYTES
    ) -> None:
        self._out = out
        self._created_ms = created_ms
        self._codec = CODEC_GZIP if compress else CODEC_NONE
        self._block_bytes = block_bytes
        self._position = 0
        self._uncompressed_bytes = 0
        self._previous: dict[bytes, int] = {}
        self._block = bytearray()
        self._first_row = b""
        self._last_row: bytes | None = None
        self._index: list[tuple[bytes, int, int]] = []
        self._count = self._key_bytes = self._value_bytes = 0

    def append(self, key: bytes, value: bytes) -> None:
        """
        Add an entry.

        Raises:
            ValueError: The key is not larger than the previous one, or longer than 32767 bytes.
        """
        # Readers search by halving, and would not find a key that is out of order.
        if self._last_row is not None and key <= self._last_row:
            raise ValueError(f"key {key!r} is not larger than the previous one")
        if len(key) > ROW_BYTES_MAX:
            raise ValueError(f"the key has {len(key)} bytes; keys in an HFile have at most {ROW_BYTES_MAX}")
        if not self._block:
            # The index has the first key of each block.
            self._first_row = key
        full = _full_key(key)
        # The last byte is the number of the transaction, always 0; readers expect it where the file info says so.
        self._block += ENTRY.pack(len(full), len(value)) + full + value + b"\0"
        self._last_row = key
        self._count += 1
        self._key_bytes += len(full)
        self._value_bytes += len(value)
        if len(self._block) >= self._block_bytes:
            self._close_block()

    def close(self, *, info: Mapping[str, bytes] | None = None, meta: Mapping[str, bytes] | None = None) -> None:
        """
        Write the index, meta blocks, file info and trailer.

        Args:
            info: Entries of the file info in addition to HBase's (``schema``, ``minRecordKey``, ...).
            meta: Meta blocks by name (``bloomFilter``).
        """
        self._close_block()
        meta_index = []
        for name in sorted(meta or {}):
            offset, size = self._write(META, (meta or {})[name])
            meta_index.append((name.encode(), offset, size))
        # One level however large the file: Hudi's readers of all releases support that, and it keeps the writer simple.
        entries = [(_full_key(row), offset, size) for row, offset, size in self._index]
        index = _encode_index(entries)
        load_on_open, _ = self._write(ROOT_INDEX, index)
        self._write(ROOT_INDEX, _encode_index(meta_index))
        file_info, _ = self._write(FILE_INFO, self._encode_info(info or {}))
        trailer = Trailer(
            file_info_offset=file_info,
            load_on_open_offset=load_on_open,
            data_index_bytes=len(index),
            uncompressed_bytes=self._uncompressed_bytes,
            data_index_count=len(self._index),
            meta_index_count=len(meta_index),
            entry_count=self._count,
            index_levels=1,
            first_data_offset=self._index[0][1] if self._index else -1,
            last_data_offset=self._index[-1][1] if self._index else -1,
            comparator=_COMPARATOR,
            codec=self._codec,
        )
        self._out.write(encode_trailer(trailer, minor_version=_MINOR_VERSION))

    def _close_block(self) -> None:
        if self._block:
            offset, size = self._write(DATA, bytes(self._block))
            self._index.append((self._first_row, offset, size))
            self._block.clear()

    def _encode_info(self, info: Mapping[str, bytes]) -> bytes:
        # Without entries there is no average to compute.
        count = max(self._count, 1)
        pairs = {
            "KEY_VALUE_VERSION": (1).to_bytes(4, "big"),
            "MAX_MEMSTORE_TS_KEY": (0).to_bytes(8, "big"),
            "hfile.AVG_KEY_LEN": (self._key_bytes // count).to_bytes(4, "big"),
            "hfile.AVG_VALUE_LEN": (self._value_bytes // count).to_bytes(4, "big"),
            "hfile.CREATE_TIME_TS": self._created_ms.to_bytes(8, "big"),
            **info,
        }
        if self._last_row is not None:
            pairs["hfile.LASTKEY"] = _full_key(self._last_row)
        fields = (write_field(1, name.encode()) + write_field(2, pairs[name]) for name in sorted(pairs))
        message = b"".join(write_field(1, pair) for pair in fields)
        return b"PBUF" + write_varint(len(message)) + message

    def _write(self, magic: bytes, content: bytes) -> tuple[int, int]:
        """Write one block; return its offset and its length on disk."""
        payload = content
        if self._codec == CODEC_GZIP:
            # 16: with the header of gzip, which HBase's codec expects.
            machine = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS | 16)
            payload = machine.compress(content) + machine.flush()
        checked = HEAD.size + len(payload)
        # The header is part of what is checked, but not the checksums themselves.
        sums = 4 * -(-checked // CHECKSUM_CHUNK)
        head = HEAD.pack(
            magic,
            len(payload) + sums,
            len(content),
            # Each block has the offset of the previous one of its kind, -1 for the first.
            self._previous.get(magic, -1),
            CHECKSUM_CRC32C,
            CHECKSUM_CHUNK,
            checked,
        )
        stored = b"".join(checksum.to_bytes(4, "big") for checksum in crc32c_chunks(head + payload, CHECKSUM_CHUNK))
        self._out.write(head + payload + stored)
        offset = self._previous[magic] = self._position
        self._position += checked + sums
        self._uncompressed_bytes += HEAD.size + len(content)
        return offset, checked + sums


def encode_hfile(
    entries: Iterable[tuple[bytes, bytes]],
    *,
    created_ms: int = 0,
    compress: bool = True,
    block_bytes: int = BLOCK_BYTES,
    info: Mapping[str, bytes] | None = None,
    meta: Mapping[str, bytes] | None = None,
) -> bytes:
    """
    Return the bytes of a whole HFile, for log blocks.

    Args:
        entries: Keys and values, in key order, without duplicates.
        created_ms: Creation time for the file info, in epoch milliseconds.
        compress: Whether to compress with gzip.
        block_bytes: A data block ends when it has at least this size.
        info: Entries of the file info in addition to HBase's.
        meta: Meta blocks by name.

    Raises:
        ValueError: The keys are not in order, or too long.
    """
    out = BytesIO()
    writer = HFileWriter(out, created_ms=created_ms, compress=compress, block_bytes=block_bytes)
    for key, value in entries:
        writer.append(key, value)
    writer.close(info=info, meta=meta)
    return out.getvalue()


def _full_key(row: bytes) -> bytes:
    return len(row).to_bytes(2, "big") + row + KEY_TAIL


def _encode_index(entries: Iterable[tuple[bytes, int, int]]) -> bytes:
    return b"".join(INDEX_ENTRY.pack(offset, size) + write_hadoop_vint(len(key)) + key for key, offset, size in entries)

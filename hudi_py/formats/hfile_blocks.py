"""
Reads the blocks of an HFile: header, checksums, decompression. Pure: works on a seekable stream.

Nothing in the file is trusted: every length is compared with the size of the file before anything is read or allocated.

Source: rules/data-files 11; Apache HBase HFile v3.
"""

from __future__ import annotations

import threading
import zlib
from typing import BinaryIO

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.bounds import inflated_bytes_max
from hudi_py.formats.crc32c import crc32c_chunks
from hudi_py.formats.hfile_layout import (
    CHECKSUM_CRC32,
    CHECKSUM_CRC32C,
    CHECKSUM_NONE,
    CODEC_GZIP,
    HEAD,
    UNCOMPRESSED_MAX,
    BlockHead,
)


class HFileBlocks:
    """
    The blocks of an open HFile; several threads may read them at the same time.

    Args:
        stream: Seekable stream.
        body_bytes: Size of the file without its trailer, in bytes.
        codec: Compression of all blocks, according to the trailer.
        source: Path of the file, for messages.
        verify: Compare data with its checksums.
    """

    def __init__(self, stream: BinaryIO, body_bytes: int, codec: int, source: str, *, verify: bool) -> None:
        self._stream = stream
        self._body_bytes = body_bytes
        self._codec = codec
        self._source = source
        self._verify = verify
        self._position = threading.Lock()  # the stream has one, which another thread would move before it is read

    def block(self, offset: int, magics: tuple[bytes, ...]) -> tuple[bytes, int]:
        """Return the decompressed payload of the block at *offset*, and the offset after the block."""
        if offset < 0 or offset + HEAD.size > self._body_bytes:
            raise self._corrupt(offset, "a block is expected there, but the file is shorter")
        raw_head = self._read(offset, HEAD.size)
        head = BlockHead(*HEAD.unpack(raw_head))
        if head.magic not in magics:
            expected = " or ".join(magic.decode() for magic in magics)
            raise self._corrupt(offset, f"expected a block {expected}, found {head.magic!r}")
        self._check_head(head, offset)
        body = self._read(offset + HEAD.size, head.stored_bytes)
        payload = body[: head.payload_bytes]
        if self._verify:
            self._check_sums(head, raw_head + payload, body[head.payload_bytes :], offset)
        return self._uncompressed(head, payload, offset), offset + HEAD.size + head.stored_bytes

    def _check_head(self, head: BlockHead, offset: int) -> None:
        if not 0 <= head.payload_bytes <= head.stored_bytes <= self._body_bytes - offset - HEAD.size:
            raise self._corrupt(offset, "the lengths in the header of the block exceed the file")
        if not 0 <= head.uncompressed_bytes <= UNCOMPRESSED_MAX:
            raise self._corrupt(
                offset, f"the block claims {head.uncompressed_bytes} bytes, more than a block of Hudi has"
            )
        # Before decompressing: a few kilobytes can claim to become gigabytes.
        if self._codec == CODEC_GZIP and head.uncompressed_bytes > inflated_bytes_max(head.payload_bytes):
            raise self._corrupt(
                offset,
                f"{head.payload_bytes} compressed bytes claim to become {head.uncompressed_bytes}, which is too many",
            )
        if head.checksum_type not in (CHECKSUM_NONE, CHECKSUM_CRC32, CHECKSUM_CRC32C):
            raise self._corrupt(offset, f"checksum type {head.checksum_type} is unknown")
        if head.checksum_type != CHECKSUM_NONE:
            chunk = head.checksum_chunk
            # With chunks of a few bytes a small file could ask for more checksums than it has data.
            if chunk < 256 or head.checksum_bytes != 4 * -(-head.checked_bytes // chunk):
                raise self._corrupt(offset, "the number of checksums does not fit the length of the block")

    def _check_sums(self, head: BlockHead, checked: bytes, stored: bytes, offset: int) -> None:
        if head.checksum_type == CHECKSUM_NONE:
            return
        chunk = head.checksum_chunk
        if head.checksum_type == CHECKSUM_CRC32C:
            sums = crc32c_chunks(checked, chunk)
        else:
            sums = [zlib.crc32(checked[start : start + chunk]) for start in range(0, len(checked), chunk)]
        if b"".join(checksum.to_bytes(4, "big") for checksum in sums) != stored:
            raise self._corrupt(offset, "the block does not match its checksum")

    def _uncompressed(self, head: BlockHead, payload: bytes, offset: int) -> bytes:
        if self._codec == CODEC_GZIP:
            machine = zlib.decompressobj(zlib.MAX_WBITS | 16)
            try:
                # Ask for one byte more than announced: this shows if there is more, without decompressing all of it.
                payload = machine.decompress(payload, head.uncompressed_bytes + 1)
                if not machine.eof and len(payload) <= head.uncompressed_bytes:
                    payload += machine.decompress(machine.unconsumed_tail, 1)
            except zlib.error as error:
                raise self._corrupt(offset, f"the block does not uncompress: {error}") from error
            if not machine.eof:
                raise self._corrupt(offset, "the compressed block does not end where it should")
        if len(payload) != head.uncompressed_bytes:
            raise self._corrupt(offset, f"the block has {len(payload)} bytes instead of {head.uncompressed_bytes}")
        return payload

    def _read(self, offset: int, length: int) -> bytes:
        with self._position:
            return read_exactly(self._stream, offset, length, self._source)

    def _corrupt(self, offset: int, what: str) -> CorruptMetadata:
        return damaged_hfile(self._source, offset, what)


def read_exactly(stream: BinaryIO, offset: int, length: int, source: str) -> bytes:
    """Return *length* bytes at *offset*. Raises `CorruptMetadata` if the file ends before."""
    stream.seek(offset)
    data = stream.read(length)
    if len(data) != length:
        raise damaged_hfile(source, offset, f"expected {length} bytes, the file ends after {len(data)}")
    return data


def damaged_hfile(source: str, offset: int, what: str) -> CorruptMetadata:
    """Return the error for damage at a byte of an HFile."""
    return CorruptMetadata(f"{source}: byte {offset}: {what}; nothing was changed, compare with a copy of the file")

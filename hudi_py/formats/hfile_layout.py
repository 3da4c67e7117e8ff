"""
Parts of the HFile format that reader and writer share: magic numbers, headers, numbers, the trailer. Pure.

Source: rules/data-files 11; the HFile v3 format of Apache HBase.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from hudi_py.errors import CorruptMetadata

DATA: Final = b"DATABLK*"
META: Final = b"METABLKc"
ROOT_INDEX: Final = b"IDXROOT2"
INTERMEDIATE_INDEX: Final = b"IDXINTE2"
LEAF_INDEX: Final = b"IDXLEAF2"
FILE_INFO: Final = b"FILEINF2"
TRAILER: Final = b'TRABLK"$'

TRAILER_BYTES: Final = 4096
MAJOR_VERSION: Final = 3
CHECKSUM_CHUNK: Final = 16384
CHECKSUM_NONE: Final = 0
CHECKSUM_CRC32: Final = 1
CHECKSUM_CRC32C: Final = 2
CODEC_GZIP: Final = 1
CODEC_NONE: Final = 2

HEAD: Final = struct.Struct(">8siiqbii")
ENTRY: Final = struct.Struct(">ii")
INDEX_ENTRY: Final = struct.Struct(">qi")
KEY_TAIL: Final = b"\x00" + (2**63 - 1).to_bytes(8, "big") + b"\x04"
"""Follows the row in a full key: no column family, the latest timestamp, type *put*."""

UNCOMPRESSED_MAX: Final = 1 << 29
"""A block that claims to be larger is damaged: real blocks have 64 KiB plus at most one entry."""


class BlockHead(NamedTuple):
    """The header of a block, 33 bytes."""

    magic: bytes
    stored_bytes: int  # payload and checksums
    uncompressed_bytes: int
    previous_offset: int
    checksum_type: int
    checksum_chunk: int
    checked_bytes: int  # head and payload

    @property
    def payload_bytes(self) -> int:
        """Length of the payload as stored."""
        return self.checked_bytes - HEAD.size

    @property
    def checksum_bytes(self) -> int:
        """Length of the checksums after the payload."""
        return self.stored_bytes - self.payload_bytes


_OF_DATA: Final = (9, 10)
_NOWHERE: Final = (1 << 64) - 1


class Trailer(NamedTuple):
    """
    Positions of the other parts: offsets in bytes from the start of the file, and numbers of entries.

    The offsets of the first and the last data block are -1 where there is none.
    """

    file_info_offset: int
    load_on_open_offset: int
    data_index_bytes: int
    uncompressed_bytes: int
    data_index_count: int
    meta_index_count: int
    entry_count: int
    index_levels: int
    first_data_offset: int
    last_data_offset: int
    comparator: str
    codec: int
    encryption_key: bytes = b""


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """
    Return the unsigned LEB128 number (as in protobuf) at *position*, and the position after it.

    Raises:
        ValueError: The number is cut off, or longer than ten bytes.
    """
    value = shift = 0
    # Bounded, because damaged bytes could be one endless number.
    while shift < 70:
        if position >= len(data):
            raise ValueError("a number does not end")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError("a number is longer than ten bytes")


def write_varint(value: int) -> bytes:
    """Encode a number; the inverse of `read_varint`."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_hadoop_vint(data: bytes, position: int) -> tuple[int, int]:
    """
    Return the number at *position* as Hadoop's ``WritableUtils`` writes it, and the position after it.

    Raises:
        ValueError: The number is cut off.
    """
    first = int.from_bytes(data[position : position + 1], "big", signed=True)
    if position >= len(data):
        raise ValueError("a number does not end")
    position += 1
    # Small numbers are the byte itself; else it says how many bytes follow, and from -121 down that the number is
    # negative.
    if first >= -112:
        return first, position
    count = -(first + 112) if first >= -120 else -(first + 120)
    if position + count > len(data):
        raise ValueError("a number does not end")
    value = int.from_bytes(data[position : position + count], "big")
    return (value if first >= -120 else ~value), position + count


def write_hadoop_vint(value: int) -> bytes:
    """Encode a number that is not negative; the inverse of `read_hadoop_vint`."""
    if value <= 127:
        return bytes([value])
    body = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return (-112 - len(body)).to_bytes(1, "big", signed=True) + body


def read_message(data: bytes) -> list[tuple[int, int | bytes]]:
    """
    Return the fields of a protobuf message as number and value (int for varints and fixed sizes, else bytes).

    Raises:
        ValueError: The bytes are not a protobuf message.
    """
    fields: list[tuple[int, int | bytes]] = []
    position = 0
    while position < len(data):
        tag, position = read_varint(data, position)
        kind = tag & 7
        if kind == 0:
            number, position = read_varint(data, position)
            fields.append((tag >> 3, number))
            continue
        if kind == 2:
            length, position = read_varint(data, position)
        # Not used here, but fields that later releases add have to be passed over.
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError(f"wire type {kind}")
        if position + length > len(data):
            raise ValueError("a field is longer than its message")
        content = data[position : position + length]
        fields.append((tag >> 3, content if kind == 2 else int.from_bytes(content, "little")))
        position += length
    return fields


def write_field(number: int, value: int | bytes) -> bytes:
    """Encode one protobuf field: a varint or bytes."""
    if isinstance(value, int):
        return write_varint(number << 3) + write_varint(value)
    return write_varint(number << 3 | 2) + write_varint(len(value)) + value


def decode_trailer(block: bytes, source: str, offset: int) -> Trailer:
    """
    Decode the trailer of an HFile.

    Args:
        block: The last 4096 bytes of the file.
        source: Path of the file, for messages.
        offset: Offset of the block in the file.

    Raises:
        CorruptMetadata: The block is not the trailer of an HFile of version 3.
    """
    # Its upper byte is the minor version.
    version = int.from_bytes(block[-4:], "big") & 0xFFFFFF
    if block[:8] != TRAILER:
        raise CorruptMetadata(f"{source}: byte {offset}: no HFile trailer; the file is damaged or not an HFile")
    if version != MAJOR_VERSION:
        raise CorruptMetadata(f"{source}: byte {offset}: HFile version {version}; only version 3 is supported")
    try:
        length, start = read_varint(block, 8)
        if start + length > len(block) - 4:
            raise ValueError("the message is longer than the trailer")
        fields = dict(read_message(block[start : start + length]))
    except ValueError as error:
        raise CorruptMetadata(f"{source}: byte {offset}: the HFile trailer does not parse ({error})") from error

    def number(key: int, default: int = 0) -> int:
        value = fields.get(key, default)
        # -1 as an unsigned number: the file has no data block.
        if key in _OF_DATA and value == _NOWHERE:
            return -1
        if not isinstance(value, int) or value >= 1 << 63:
            raise CorruptMetadata(f"{source}: byte {offset}: field {key} of the HFile trailer is not a valid number")
        return value

    def text(key: int) -> bytes:
        value = fields.get(key, b"")
        return value if isinstance(value, bytes) else b""

    return Trailer(
        file_info_offset=number(1),
        load_on_open_offset=number(2),
        data_index_bytes=number(3),
        uncompressed_bytes=number(4),
        data_index_count=number(5),
        meta_index_count=number(6),
        entry_count=number(7),
        index_levels=number(8, 1),
        first_data_offset=number(9),
        last_data_offset=number(10),
        comparator=text(11).decode("utf-8", "replace"),
        codec=number(12, CODEC_NONE),
        encryption_key=text(13),
    )


def encode_trailer(trailer: Trailer, *, minor_version: int) -> bytes:
    """Encode the trailer; the inverse of `decode_trailer`."""
    # -1, for no data block, is the largest number in an unsigned field.
    fields = [write_field(number, value & _NOWHERE) for number, value in enumerate(map(int, trailer[:10]), start=1)]
    fields.append(write_field(11, trailer.comparator.encode()))
    fields.append(write_field(12, trailer.codec))
    message = b"".join(fields)
    body = TRAILER + write_varint(len(message)) + message
    version = (minor_version << 24 | MAJOR_VERSION).to_bytes(4, "big")
    return body + b"\0" * (TRAILER_BYTES - len(body) - 4) + version

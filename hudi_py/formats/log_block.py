"""
Blocks of a Hudi log file, format version 1 (rules/timeline 5.2, rules/data-files 9.2). All numbers are big endian.

::

    "#HUDI#" | int64 block size | int32 format version 1 | int32 block type | header | int64 content size | content
    | footer | int64 total size

The block size is the number of bytes after it up to the end of the block, the total size that of all bytes before it.
Header and footer are an int32 count, followed by that number of (int32 key, int32 size, UTF-8 text).
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator, Mapping
from typing import BinaryIO, Final

import attrs

from hudi_py.errors import CorruptMetadata

MAGIC: Final = b"#HUDI#"
FORMAT_VERSION: Final = 1
DATA_BLOCK_VERSION: Final = 3
ROLLBACK_BLOCK: Final = "0"

_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_FRAME_SIZE_BYTES: Final = len(MAGIC) + _LONG.size
_BLOCKS_MAX: Final = 1 << 17  # a delta commit adds one or two blocks to a file, and a compaction ends the slice
_HEADER_BYTES_MAX: Final = 1 << 24  # size of one text in a header; the longest is a schema
_TORN_BYTES_MAX: Final = 1 << 30  # Hudi begins a new log file at this size, and mostly long before
_WINDOW_BYTES: Final = 1 << 20  # bytes that are searched for a magic at a time, at most
_FIRST_WINDOW_BYTES: Final = 1 << 12


class BlockType(enum.IntEnum):
    """The type of a block; the numbers are those on disk."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2  # never written: stands for bytes between two blocks that are not a block
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


_WRITTEN: Final = frozenset(BlockType) - {BlockType.CORRUPT}


class HeaderKey(enum.IntEnum):
    """Keys of a block's header."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


@attrs.frozen(slots=True)
class LogBlock:
    """
    One block.

    Args:
        block_type: Type of ``content``; for CORRUPT that is the raw bytes between two blocks.
        header: `HeaderKey` numbers to texts, in the order of the file; unknown keys are kept.
        content: The block's payload.
        offset: Where the block starts in its file.
        size_bytes: Size of the whole block, from its magic to the next one.
    """

    block_type: BlockType
    header: Mapping[int, str]
    content: bytes
    offset: int = 0
    size_bytes: int = attrs.field(default=0, eq=False)


def iterate_log_blocks(data: bytes, source: str) -> Iterator[LogBlock]:
    """
    Yield the blocks of a log file in order.

    A block is torn if its sizes disagree, or if neither another block nor the end of the file follows it. Then all
    bytes up to the next magic are yielded as one CORRUPT block, as in Hudi (``HoodieLogFileReader.isBlockCorrupted``),
    and so are last bytes that are too few for a magic: Hudi ignores those.

    Raises:
        CorruptMetadata: The file does not start with a block, a block that is not torn does not parse, or there are
            more blocks than Hudi writes.
    """
    position = 0
    for _ in range(_BLOCKS_MAX + 1):
        if position >= len(data):
            return
        # Too few bytes for a magic are the begin of a write that died, not another kind of file.
        is_cut = len(data) - position < len(MAGIC)
        if not is_cut and data[position : position + len(MAGIC)] != MAGIC:
            raise _corrupt(data, source, position, "a log file should start with '#HUDI#'")
        end = _block_end(data, position)
        if end is None:
            # Behind the magic of the torn block itself, else it would be found again and again.
            found = data.find(MAGIC, position + len(MAGIC))
            end = len(data) if found < 0 else found
            yield LogBlock(BlockType.CORRUPT, {}, data[position:end], position, end - position)
        else:
            yield _parse_block(data, source, position, end)
        position = end
    raise _corrupt(data, source, position, f"more than {_BLOCKS_MAX} log blocks are not of Hudi")


def scan_log_blocks(stream: BinaryIO, size_bytes: int, source: str) -> Iterator[LogBlock]:
    """
    As `iterate_log_blocks`, but contents are skipped, so that memory does not depend on the size of the file.

    Args:
        stream: Seekable, at any position.
        size_bytes: Size of the file.
        source: Its path, for messages.
    """
    position = 0
    for _ in range(_BLOCKS_MAX + 1):
        if position >= size_bytes:
            return
        end = _scanned_end(stream, position, size_bytes)
        if end is None:
            if size_bytes - position >= len(MAGIC) and _read_at(stream, position, len(MAGIC)) != MAGIC:
                raise CorruptMetadata(f"{source}: a log file should start with '#HUDI#' (byte {position})")
            end = _next_magic(stream, position + len(MAGIC), size_bytes)
            yield LogBlock(BlockType.CORRUPT, {}, b"", position, end - position)
        else:
            yield _scanned_block(stream, end, source, position)
        position = end
    raise CorruptMetadata(f"{source}: more than {_BLOCKS_MAX} log blocks are not of Hudi (byte {position})")


def encode_rollback_block(instant_time: str, target_time: str) -> bytes:
    """A log file with one block, which undoes what *target_time* wrote to the same slice (rule B-20)."""
    header = {
        int(HeaderKey.INSTANT_TIME): instant_time,
        int(HeaderKey.COMMAND_BLOCK_TYPE): ROLLBACK_BLOCK,
        int(HeaderKey.TARGET_INSTANT_TIME): target_time,
    }
    return encode_log_block(LogBlock(BlockType.COMMAND, header, b""))


def is_rollback_block(block: LogBlock, target_time: str) -> bool:
    """Whether a block undoes what *target_time* wrote."""
    return (
        block.block_type is BlockType.COMMAND
        and block.header.get(HeaderKey.COMMAND_BLOCK_TYPE) == ROLLBACK_BLOCK
        and block.header.get(HeaderKey.TARGET_INSTANT_TIME) == target_time
    )


def encode_log_block(block: LogBlock) -> bytes:
    """Encode one block with an empty footer; the inverse of `iterate_log_blocks`."""
    assert block.block_type is not BlockType.CORRUPT
    header = [_INT.pack(len(block.header))]
    for key, text in block.header.items():
        raw = text.encode()
        header += (_INT.pack(key), _INT.pack(len(raw)), raw)
    body = b"".join(
        (
            _INT.pack(FORMAT_VERSION),
            _INT.pack(block.block_type),
            *header,
            _LONG.pack(len(block.content)),
            block.content,
            _INT.pack(0),
        )
    )
    size = len(body) + _LONG.size
    return b"".join((MAGIC, _LONG.pack(size), body, _LONG.pack(size + len(MAGIC))))


def split_data_block(content: bytes, source: str) -> list[bytes]:
    """
    Split the content of an Avro data block into its records.

    Layout: int32 3, int32 count, per record int32 size and Avro binary in the schema of the block's header.

    Raises:
        CorruptMetadata: Another version, or the sizes do not add up.
    """
    version, position = _parse_int(content, source, 0)
    if version != DATA_BLOCK_VERSION:
        raise _corrupt(content, source, 0, f"data block version {version} is not known")
    count, position = _parse_int(content, source, position)
    bodies = []
    for _ in range(count):  # ends early for a false count: every round consumes four bytes or fails
        size, position = _parse_int(content, source, position)
        body, position = _take(content, source, position, size)
        bodies.append(body)
    if position != len(content):
        raise _corrupt(content, source, position, "a data block has bytes after its last record")
    return bodies


def join_data_block(bodies: list[bytes]) -> bytes:
    """Build the content of an Avro data block, the inverse of `split_data_block`."""
    parts = [_INT.pack(DATA_BLOCK_VERSION), _INT.pack(len(bodies))]
    for body in bodies:
        parts += (_INT.pack(len(body)), body)
    return b"".join(parts)


def _read_at(stream: BinaryIO, position: int, size: int) -> bytes:
    stream.seek(position)
    return stream.read(size)


def _scanned_end(stream: BinaryIO, position: int, size_bytes: int) -> int | None:
    """Return the end of the block at *position*, or None if there is no block or it is torn; as `_block_end`."""
    frame = _read_at(stream, position, _FRAME_SIZE_BYTES)
    if len(frame) < _FRAME_SIZE_BYTES or frame[: len(MAGIC)] != MAGIC:
        return None
    (size,) = _LONG.unpack_from(frame, len(MAGIC))
    end = position + _FRAME_SIZE_BYTES + int(size)
    if size < _LONG.size or end > size_bytes:
        return None
    # One read for the size at the end of this block and the magic of the next one.
    tail = _read_at(stream, end - _LONG.size, _LONG.size + len(MAGIC))
    is_whole, behind = tail[: _LONG.size] == _LONG.pack(size + len(MAGIC)), tail[_LONG.size :]
    return end if is_whole and (len(behind) < len(MAGIC) or behind == MAGIC) else None


def _next_magic(stream: BinaryIO, position: int, size_bytes: int) -> int:
    """The begin of the next block after a torn one, or the end of the file."""
    # Windows that grow: a file of nothing but magics is searched a hundred thousand times.
    at, window, limit = position, _FIRST_WINDOW_BYTES, min(size_bytes, position + _TORN_BYTES_MAX)
    while at < limit:
        # Windows overlap, because a magic may cross their border.
        found = _read_at(stream, at, window + len(MAGIC) - 1).find(MAGIC)
        if found >= 0:
            return at + found
        at += window
        window = min(2 * window, _WINDOW_BYTES)
    return size_bytes


def _scanned_block(stream: BinaryIO, end: int, source: str, position: int) -> LogBlock:
    """The block from *position* to *end* without its content; its sizes have been checked."""
    at = position + _FRAME_SIZE_BYTES

    def take(size: int) -> bytes:
        nonlocal at
        raw = _read_at(stream, at, size) if 0 <= size <= min(end - at, _HEADER_BYTES_MAX) else b""
        if len(raw) != size:
            raise CorruptMetadata(f"{source}: the header of the log block at byte {position} does not fit into it")
        at += size
        return raw

    def number() -> int:
        return int(_INT.unpack(take(_INT.size))[0])

    version, kind = number(), number()
    if version != FORMAT_VERSION or kind not in _WRITTEN:
        raise CorruptMetadata(f"{source}: log block of version {version}, type {kind} (byte {position})")
    header = {}
    for _ in range(number()):  # ends early for a false count: every round consumes eight bytes or fails
        key = number()
        header[key] = take(number()).decode("utf-8", "replace")
    return LogBlock(BlockType(kind), header, b"", position, end - position)


def _block_end(data: bytes, position: int) -> int | None:
    """Return the end of the block at *position*, or None if it is torn."""
    start = position + _FRAME_SIZE_BYTES
    if start > len(data):
        return None
    (size,) = _LONG.unpack_from(data, start - _LONG.size)
    end = start + int(size)
    if size < _LONG.size or end > len(data):
        return None
    (total,) = _LONG.unpack_from(data, end - _LONG.size)
    # Too few bytes for a magic are not another block; they are yielded as torn on their own.
    is_followed = len(data) - end < len(MAGIC) or data[end : end + len(MAGIC)] == MAGIC
    return end if total == size + len(MAGIC) and is_followed else None


def _parse_block(data: bytes, source: str, position: int, end: int) -> LogBlock:
    version, at = _parse_int(data, source, position + _FRAME_SIZE_BYTES)
    if version != FORMAT_VERSION:
        raise _corrupt(data, source, at - _INT.size, f"log format version {version} is not known")
    number, at = _parse_int(data, source, at)
    if number not in _WRITTEN:
        raise _corrupt(data, source, at - _INT.size, f"log block type {number} is not known")
    header, at = _parse_header(data, source, at)
    raw, at = _take(data, source, at, _LONG.size)
    content, at = _take(data, source, at, _LONG.unpack(raw)[0])
    _, at = _parse_header(data, source, at)  # the footer; no keys exist
    if at != end - _LONG.size:
        raise _corrupt(data, source, at, f"the parts of a log block do not fill it to byte {end - _LONG.size}")
    return LogBlock(BlockType(number), header, content, position, end - position)


def _parse_header(data: bytes, source: str, position: int) -> tuple[dict[int, str], int]:
    count, position = _parse_int(data, source, position)
    header = {}
    for _ in range(count):
        key, position = _parse_int(data, source, position)
        size, position = _parse_int(data, source, position)
        raw, position = _take(data, source, position, size)
        try:
            header[key] = raw.decode()
        except UnicodeDecodeError as error:
            raise _corrupt(data, source, position, "the header of a log block is not UTF-8") from error
    return header, position


def _parse_int(data: bytes, source: str, position: int) -> tuple[int, int]:
    raw, position = _take(data, source, position, _INT.size)
    return _INT.unpack(raw)[0], position


def _take(data: bytes, source: str, position: int, size: int) -> tuple[bytes, int]:
    end = position + size
    if size < 0 or end > len(data):
        raise _corrupt(data, source, position, f"{size} bytes of a log block do not fit")
    return data[position:end], end


def _corrupt(data: bytes, source: str, position: int, what: str) -> CorruptMetadata:
    return CorruptMetadata(f"{source}: {what} (byte {position} of {len(data)})")

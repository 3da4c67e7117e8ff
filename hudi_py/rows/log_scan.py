"""
Which blocks of a slice's log files count, and in what order. Shared by data tables and the metadata table.

A data or delete block counts when its instant does, unless a rollback block behind it names that instant (layout 1), or
a log compaction has taken it up: then the compacted block stands in the place of the newest block that it replaces, and
the others are passed over. Whatever stands between two blocks and is no block is passed over.

A snapshot of an earlier time ends at the first block of a later instant, rollback blocks among them. That is what
Apache Hudi does, and so data that was written behind such a rollback block is not seen as of its own time in layout 1.

Source: rules/data-files 9.2; Hudi 0.15.0 ``AbstractHoodieLogRecordReader.scanInternalV1`` and ``scanInternalV2``,
1.1.1 ``BaseHoodieLogRecordReader``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

import attrs

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.log_block import (
    ROLLBACK_BLOCK,
    BlockType,
    HeaderKey,
    LogBlock,
    iterate_log_blocks,
    scan_log_blocks,
)
from hudi_py.fsview.expected import damaged_file, is_size_right
from hudi_py.model.files import LogFile
from hudi_py.storage.base import Storage

_BLOCK_BYTES_MAX: Final = 1 << 30  # the largest log file that Hudi writes by default; its blocks have a quarter of that
_WHOLE_BYTES_MAX: Final = 8 * 1024 * 1024
"""Log files up to this size are read at once; of larger ones the headers first, then the blocks that count."""

Placed = tuple[LogFile, LogBlock]
"""A block and the file that it stands in."""


class Scanned(NamedTuple):
    """
    What `scan_blocks` found.

    Args:
        blocks: Data and delete blocks that count, oldest first.
        torn: What is no block.
    """

    blocks: list[Placed]
    torn: list[Placed]


def scan_blocks(
    blocks: Iterable[tuple[LogFile, LogBlock, str]], counts: Callable[[str], bool], until: str | None = None
) -> Scanned:
    """
    Choose the blocks of a slice that count.

    Args:
        blocks: Of all its log files in the order of `LogFile.order`, and the path of the file for messages.
        counts: Whether blocks of that instant count: it is completed, and not one to be passed over.
        until: Instant time, whose first later block ends what is seen; None for the latest snapshot. Rollback blocks
            behind it count all the same: an instant that is not on the timeline any more may pass for an archived one.

    Raises:
        CorruptMetadata: A command block is no rollback, or a block does not name its instant.
    """
    found: list[Placed] = []
    torn: list[Placed] = []
    is_ended = False
    for log, block, source in blocks:
        if is_ended and (block.block_type is not BlockType.COMMAND or not found):
            continue
        if block.block_type is BlockType.CORRUPT:
            torn.append((log, block))
            continue
        time = block.header.get(HeaderKey.INSTANT_TIME)
        if time is None:
            raise CorruptMetadata(f"{source}: the block at byte {block.offset} does not name its instant")
        is_ended = is_ended or (until is not None and time > until)
        if block.block_type is BlockType.COMMAND:
            found = _without_rolled_back(found, block, source)
        elif not is_ended and counts(time):
            found.append((log, block))
    return Scanned(_with_compacted(found), torn)


def read_log_blocks(storage: Storage, path: str, source: str, recorded_bytes: int | None = None) -> Iterator[LogBlock]:
    """
    The blocks of one log file, torn ones included; contents of large files are left out, see `with_content`.

    Args:
        storage: Where the file is.
        path: Path of the file.
        source: The same for messages.
        recorded_bytes: What a completed commit recorded as its size; it may have grown since.

    Raises:
        CorruptMetadata: It is no log file, or shorter than recorded.
    """
    with storage.open_read(path) as stream:
        size = stream.seek(0, os.SEEK_END)
        if not is_size_right(recorded_bytes or 0, size, is_log=True):
            raise CorruptMetadata(damaged_file(source, size, recorded_bytes or 0, "delta commit"))
        stream.seek(0)
        if size <= _WHOLE_BYTES_MAX:
            yield from iterate_log_blocks(stream.read(size), source)
        else:
            yield from scan_log_blocks(stream, size, source)


def with_content(storage: Storage, path: str, block: LogBlock, source: str) -> LogBlock:
    """
    The block with its content, read again where `read_log_blocks` left it out.

    Raises:
        CorruptMetadata: The file has changed meanwhile, or the block is larger than Apache Hudi makes any.
    """
    if block.content:
        return block
    if block.size_bytes > _BLOCK_BYTES_MAX:
        raise CorruptMetadata(
            f"{source}: the block at byte {block.offset} claims {block.size_bytes} bytes; Apache Hudi makes none "
            f"larger than {_BLOCK_BYTES_MAX}. Bring the file back from a copy of the table"
        )
    with storage.open_read(path) as stream:
        stream.seek(block.offset)
        data = stream.read(block.size_bytes)
    read = next(iterate_log_blocks(data, f"{source} (from byte {block.offset})"), None)
    if read is None or read.header != block.header:
        raise CorruptMetadata(f"{source}: the block at byte {block.offset} was overwritten while it was read")
    return attrs.evolve(read, offset=block.offset)


def _without_rolled_back(found: list[Placed], command: LogBlock, source: str) -> list[Placed]:
    target = command.header.get(HeaderKey.TARGET_INSTANT_TIME)
    if command.header.get(HeaderKey.COMMAND_BLOCK_TYPE) != ROLLBACK_BLOCK or target is None:
        raise CorruptMetadata(f"{source}: byte {command.offset}: a command block that is not a rollback")
    return [(log, block) for log, block in found if block.header.get(HeaderKey.INSTANT_TIME) != target]


def _with_compacted(found: list[Placed]) -> list[Placed]:
    """The blocks with those of log compactions in the place of what they took up."""
    by_time: dict[str, list[Placed]] = {}
    for log, block in found:
        by_time.setdefault(block.header[HeaderKey.INSTANT_TIME], []).append((log, block))
    taken_up: dict[str, str] = {}
    for time in reversed(by_time):
        for original in _compacted_times(by_time[time]):
            taken_up[original] = taken_up.get(time, time)
    if not taken_up:
        return found
    moved = {taken_up[time] for time in by_time if time in taken_up}
    order: dict[str, None] = {}
    for time in reversed(by_time):
        if time in taken_up or time not in moved:
            order.setdefault(taken_up.get(time, time))
    return [placed for time in reversed(order) for placed in by_time[time]]


def _compacted_times(blocks: list[Placed]) -> list[str]:
    texts = (block.header.get(HeaderKey.COMPACTED_BLOCK_TIMES, "") for _, block in blocks)
    return [time.strip() for text in texts for time in text.split(",") if time.strip()]

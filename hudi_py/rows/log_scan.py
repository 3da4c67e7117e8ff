"""
Which blocks of a slice's log files count, and in what order. Used for data tables and the metadata table.

A data or delete block counts if its instant does, unless a later rollback block names that instant (layout 1) or a log
compaction has included it: then the compacted block takes the place of the newest block that it replaces, and the
replaced blocks are skipped. Bytes between blocks that are not a block are skipped.

A snapshot of an earlier time ends at the first block of a later instant, rollback blocks included. Apache Hudi does the
same; so in layout 1, data written after such a block, as of a write that was requested later and failed, is not visible
as of its own time. Ranges of time do not end there: Hudi reads the files of their commits, and those do not name it.

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
WHOLE_BYTES_MAX: Final = 8 * 1024 * 1024
"""Smaller log files are read at once; of larger ones first the headers, then the blocks that count."""

Placed = tuple[LogFile, LogBlock]
"""A block and the file that it is in."""


class Scanned(NamedTuple):
    """
    What `scan_blocks` found.

    Args:
        blocks: Data and delete blocks that count, oldest first.
        torn: Bytes that are not a block.
        left_out: Data and delete blocks whose instant does not count, and the one that ended the scan.
        taken_back: Those that count, but for a later rollback block.
    """

    blocks: list[Placed]
    torn: list[Placed]
    left_out: list[Placed]
    taken_back: list[Placed]


def scan_blocks(
    blocks: Iterable[tuple[LogFile, LogBlock, str]],
    counts: Callable[[str], bool],
    until: str | None = None,
    *,
    ends_at_later: bool = True,
    slice_time: str | None = None,
) -> Scanned:
    """
    Choose the blocks of a slice that count.

    Args:
        blocks: The blocks of all its log files in the order of `LogFile.order`, each with its file, and the path of the
            file for messages.
        counts: Whether blocks of an instant count: whether it is completed and wanted.
        until: Instant time; blocks of later instants do not count. None for the latest snapshot. Later rollback blocks
            have an effect all the same: an instant that is no longer on the timeline may be taken for an archived one.
        ends_at_later: Whether the first block of a later instant ends the scan.
        slice_time: Base instant of the slice where log files are named after their writes (layout 2), else None. One
            that has this time in its name may be of a version-6 table that was upgraded.

    Raises:
        CorruptMetadata: A command block is not a rollback, or a block does not name its instant, or another one than
            the name of its file.
    """
    found: list[Placed] = []
    torn: list[Placed] = []
    left_out: list[Placed] = []
    taken_back: list[Placed] = []
    is_ended = False
    for log, block, source in blocks:
        if is_ended and (block.block_type is not BlockType.COMMAND or not (found or left_out)):
            continue
        if block.block_type is BlockType.CORRUPT:
            # Reported, not raised: whether rows are lost depends on who wrote these bytes (`hudi_py.rows.lost_blocks`).
            torn.append((log, block))
            continue
        time = block.header.get(HeaderKey.INSTANT_TIME)
        if time is None:
            raise CorruptMetadata(f"{source}: the block at byte {block.offset} does not name its instant")
        is_rollback = block.block_type is BlockType.COMMAND
        if slice_time not in (None, log.instant_time) and not is_rollback and time != log.instant_time:
            raise CorruptMetadata(
                f"{source}: the block at byte {block.offset} is damaged: it says that {time} wrote it, but the file is "
                f"of {log.instant_time}. Nothing was changed; bring the file back from a copy of the table"
            )
        is_later, was_ended = until is not None and time > until, is_ended
        is_ended = is_ended or (is_later and ends_at_later)
        if is_rollback:
            target = _rolled_back(block, source)
            # Only blocks before the command: a later write may use the same slice, but never the same time.
            taken_back += [(log, block) for log, block in found if _time_of(block) == target]
            found = [(log, block) for log, block in found if _time_of(block) != target]
            left_out = [(log, block) for log, block in left_out if _time_of(block) != target]
        elif not is_ended and not is_later and counts(time):
            found.append((log, block))
        elif not was_ended:
            left_out.append((log, block))
    return Scanned(_with_compacted(found), torn, left_out, taken_back)


def read_log_blocks(
    storage: Storage,
    path: str,
    source: str,
    recorded_bytes: int | None = None,
    *,
    whole_bytes_max: int = WHOLE_BYTES_MAX,
) -> Iterator[LogBlock]:
    """
    The blocks of one log file, torn ones included; for large files without contents, see `with_content`.

    Args:
        storage: The storage of the file.
        path: Path of the file.
        source: The same for messages.
        recorded_bytes: The size that a completed commit recorded; the file may have grown since.
        whole_bytes_max: Larger files are not read whole.

    Raises:
        CorruptMetadata: It is not a log file, or is shorter than recorded.
    """
    with storage.open_read(path) as stream:
        size = stream.seek(0, os.SEEK_END)
        if not is_size_right(recorded_bytes or 0, size, is_log=True):
            raise CorruptMetadata(damaged_file(source, size, recorded_bytes or 0, "delta commit"))
        stream.seek(0)
        if size <= whole_bytes_max:
            yield from iterate_log_blocks(stream.read(size), source)
        else:
            yield from scan_log_blocks(stream, size, source)


def with_content(storage: Storage, path: str, block: LogBlock, source: str) -> LogBlock:
    """
    The block with its content, which is read now if `read_log_blocks` left it out.

    Raises:
        CorruptMetadata: The file has changed meanwhile, or the block is larger than Apache Hudi makes any.
    """
    if block.content:
        return block
    # The size is what the file claims: a damaged one must not make us reserve that much memory.
    if block.size_bytes > _BLOCK_BYTES_MAX:
        raise CorruptMetadata(
            f"{source}: the block at byte {block.offset} claims {block.size_bytes} bytes; Apache Hudi makes none "
            f"larger than {_BLOCK_BYTES_MAX}. Bring the file back from a copy of the table"
        )
    with storage.open_read(path) as stream:
        stream.seek(block.offset)
        data = stream.read(block.size_bytes)
    read = next(iterate_log_blocks(data, f"{source} (from byte {block.offset})"), None)
    # Compared because the file was opened twice: a different header means that it was replaced in between.
    if read is None or read.header != block.header:
        raise CorruptMetadata(f"{source}: the block at byte {block.offset} was overwritten while it was read")
    return attrs.evolve(read, offset=block.offset)


def _time_of(block: LogBlock) -> str | None:
    return block.header.get(HeaderKey.INSTANT_TIME)


def _rolled_back(command: LogBlock, source: str) -> str:
    target = command.header.get(HeaderKey.TARGET_INSTANT_TIME)
    if command.header.get(HeaderKey.COMMAND_BLOCK_TYPE) != ROLLBACK_BLOCK or target is None:
        raise CorruptMetadata(f"{source}: byte {command.offset}: a command block that is not a rollback")
    return target


def _with_compacted(found: list[Placed]) -> list[Placed]:
    """
    The blocks, with compacted blocks in the place of those that they include.

    One that includes none of the blocks here is left out, as in Apache Hudi: what it holds is in the base file already,
    and its rows may be older than those.
    """
    by_time: dict[str, list[Placed]] = {}
    for log, block in found:
        by_time.setdefault(block.header[HeaderKey.INSTANT_TIME], []).append((log, block))
    # From the newest to the oldest, so that a compacted block which was itself compacted later is followed to the last.
    taken_up: dict[str, str] = {}
    for time in reversed(by_time):
        for original in _compacted_times(by_time[time]):
            taken_up[original] = taken_up.get(time, time)
    if not taken_up:
        return found
    compacted = {time for time in by_time if _compacted_times(by_time[time])}
    order: dict[str, None] = {}
    for time in reversed(by_time):
        if time not in compacted:
            order.setdefault(taken_up.get(time, time))
    return [placed for time in reversed(order) for placed in by_time[time]]


def _compacted_times(blocks: list[Placed]) -> list[str]:
    texts = (block.header.get(HeaderKey.COMPACTED_BLOCK_TIMES, "") for _, block in blocks)
    return [time.strip() for text in texts for time in text.split(",") if time.strip()]

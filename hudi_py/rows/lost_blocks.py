"""
Whether what a scan of log files passed over are rows that completed commits wrote: then older rows would be shown.

Bytes that are no block, blocks of writes that never completed and blocks that a rollback took back are part of healthy
tables, and passed over. But a damaged header makes a block of a completed commit look like one of those. The commit
tells the bytes that it wrote; once it is archived, a block whose instant nobody knows is still a doubt.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.log_block import HeaderKey
from hudi_py.fsview.expected import WAY_OUT
from hudi_py.model.files import join_path
from hudi_py.rows.log_scan import Placed, Scanned
from hudi_py.runtime.log import log as events

if TYPE_CHECKING:
    from hudi_py.fsview.written_ranges import WrittenRange, WrittenRanges


def refuse_lost(found: Scanned, root: str, partition_path: str, written: WrittenRanges | None) -> None:
    """
    Refuse to go on if a block that was passed over belongs to a completed commit, or to nobody.

    Args:
        found: Of the log files of one slice.
        root: The table, for messages.
        partition_path: Of the slice.
        written: Asked where something was passed over; None if nobody knows.

    Raises:
        CorruptMetadata: Rows would be lost.
    """
    for placed in found.torn:
        path, offset, size = _place(placed, partition_path)
        # Bytes between blocks do not prove a loss: a writer that died left them, and its rows never were committed.
        if next(_writers(placed, partition_path, written), None) is not None:
            raise CorruptMetadata(
                f"{root}/{path} holds {size} bytes at byte {offset} that are not a log block, and a completed commit "
                f"wrote there: its rows are lost, older rows would be shown. {WAY_OUT}"
            )
        events.warning("read.log.torn", file=f"{root}/{path}", byte=offset, bytes=size)
    if written is None:
        return
    for placed in found.left_out:
        time = placed[1].header[HeaderKey.INSTANT_TIME]
        # Completed, but not yet at the time or not in the range that is read.
        if written.is_completed(time):
            continue
        path, offset, _ = _place(placed, partition_path)
        said = f"{root}/{path} holds a block at byte {offset} that says {time} wrote it"
        writer = next((each for each in _writers(placed, partition_path, written) if each.time != time), None)
        if writer is not None:
            raise CorruptMetadata(
                f"{said}, but the completed commit {writer.time} wrote there: the block is damaged, its rows are lost, "
                f"older rows would be shown. {WAY_OUT}"
            )
        if _may_be_of_an_archived_commit(placed, found, written) and not written.is_known(time):
            raise CorruptMetadata(
                f"{said}, and there was no such write, according to the timeline, its rollbacks and the archive: the "
                f"block may be damaged, and older rows would be shown. {WAY_OUT}; hudi-py read --read-optimized shows "
                "the base files alone"
            )
    for placed in found.taken_back:
        time = placed[1].header[HeaderKey.INSTANT_TIME]
        if written.is_completed(time) and any(e.time == time for e in _writers(placed, partition_path, written)):
            path, offset, _ = _place(placed, partition_path)
            raise CorruptMetadata(
                f"{root}/{path} holds a block at byte {offset} that a rollback block takes back, but its commit {time} "
                f"is completed: older rows would be shown. If it was rolled back meanwhile, read again. {WAY_OUT}"
            )


def _may_be_of_an_archived_commit(placed: Placed, found: Scanned, written: WrittenRanges) -> bool:
    """
    Whether a completed commit that is archived by now may have written a block that no active commit wrote.

    If none can, it is of a write that failed, even one whose instants somebody deleted by hand: such tables are read.
    """
    log, block = placed
    time = block.header[HeaderKey.INSTANT_TIME]
    if written.names_writes and log.instant_time == time:  # twice the same time is no damage
        return False
    # Archival takes the oldest commits. So they wrote nothing to a slice that began later, or behind an active one.
    start = min(written.completed, default="")
    if log.instant_time >= start:
        return False
    here = (*log.order, block.offset)
    return not any(
        (*log.order, block.offset) < here and block.header[HeaderKey.INSTANT_TIME] in written.completed
        for log, block in found.blocks
    )


def _place(placed: Placed, partition_path: str) -> tuple[str, int, int]:
    log, block = placed
    return join_path(partition_path, log.name), block.offset, block.size_bytes


def _writers(placed: Placed, partition_path: str, written: WrittenRanges | None) -> Iterator[WrittenRange]:
    """Commits that wrote some of the bytes of a block."""
    path, offset, size = _place(placed, partition_path)
    for each in () if written is None else written(path):
        if each.first < offset + size and offset < each.behind:
            yield each

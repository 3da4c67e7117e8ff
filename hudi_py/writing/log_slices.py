"""
A partition of a merge-on-read table before a write: which slices get log files, and which log files may have new keys.

With the index of a Spark writer (SIMPLE, BLOOM), rows with new keys are written to base files only, so only base files
have to be searched for keys. Other writers put new keys into log files; log files that may have new keys are searched
too, because their keys would otherwise be written a second time.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

import attrs
import pyarrow as pa

from hudi_py.formats.arrow_types import Array
from hudi_py.formats.log_block import BlockType, iterate_log_blocks, scan_log_blocks
from hudi_py.fsview.build import PartitionView, ViewContext
from hudi_py.model.files import BaseFile, FileGroup, LogFile, join_path, parse_log_file
from hudi_py.model.instant import Instant
from hudi_py.model.records import CommitMetadata
from hudi_py.rows.log_file import LogFileOptions, LogSlice
from hudi_py.rows.log_records import KEY_COLUMN, Kind, RecordShape, records_of
from hudi_py.rows.log_scan import Placed, Scanned, scan_blocks
from hudi_py.rows.lost_blocks import refuse_lost
from hudi_py.storage.base import Storage

if TYPE_CHECKING:
    from hudi_py.fsview.written_ranges import WrittenRanges

_KEYS_ONLY: Final = RecordShape(schema=pa.schema([(KEY_COLUMN, pa.string())]), ordering=())
_DATA: Final = (BlockType.AVRO_DATA, BlockType.PARQUET_DATA, BlockType.HFILE_DATA)


@attrs.frozen(kw_only=True)
class LogWriting:
    """
    How a write puts changes into log files; part of the job of a write to a merge-on-read table.

    Args:
        options: Layout of log files.
        keyless: Partition path to names of log files without new keys, according to their commits.
        small_files_max: ``hoodie.merge.small.file.group.candidates.limit``: number of groups in a partition that one
            write fills with inserts.
        filled: Partition path and file id of groups that get inserts, and so a new base file; known only in the second
            pass of a large write.
        written: Tells which commit wrote where damage is found; a key that is overlooked would be written twice.
    """

    options: LogFileOptions
    keyless: Mapping[str, frozenset[str]]
    small_files_max: int = 1
    filled: frozenset[tuple[str, str]] = frozenset()
    written: WrittenRanges | None = None


@attrs.frozen(kw_only=True)
class GroupLogs:
    """
    A file group of a merge-on-read table.

    Args:
        file_slice: The slice that gets new log files.
        behind: Log files written after its newest base file, oldest first.
        keyed: The log files in *behind* that may have keys which the base file lacks.
        completed: Returns whether the write of a time is completed.
        is_plain: Whether the group has a base file, no log files and no pending compaction, so that inserts can be
            added to it.
        written: As in `LogWriting`.
    """

    file_slice: LogSlice
    behind: tuple[LogFile, ...]
    keyed: tuple[LogFile, ...]
    completed: Callable[[str], bool]
    is_plain: bool
    written: WrittenRanges | None = None


def group_logs(
    context: ViewContext,
    view: PartitionView,
    names: Iterable[str],
    latest: Mapping[str, BaseFile],
    logs: LogWriting,
) -> dict[str, GroupLogs]:
    """
    Return the slices and log files of each live file group of a partition, by file id.

    Args:
        context: View of the table before the write.
        view: The partition's file groups.
        names: Names of the files in its folder.
        latest: Newest base file of each group.
        logs: How the write puts changes into log files.
    """
    by_group: dict[str, list[LogFile]] = {}
    for log in filter(None, map(parse_log_file, names)):
        if not log.is_cdc:
            by_group.setdefault(log.file_id, []).append(log)
    return {
        group.file_id: _group(context, group, by_group.get(group.file_id, []), latest.get(group.file_id), logs)
        for group in view.groups
        if group.slices  # otherwise it has nothing but files of writes that were not completed
    }


def _group(
    context: ViewContext, group: FileGroup, logs: list[LogFile], base: BaseFile | None, writing: LogWriting
) -> GroupLogs:
    keyless = writing.keyless.get(group.partition_path, frozenset())
    pending = context.pending_compactions.get((group.partition_path, group.file_id))
    compaction = pending.instant_time if pending is not None and not pending.is_log_compaction else None
    # Once a compaction is planned, new log files belong to the slice that it opens: it would not merge them.
    time = max(group.slices[0].base_instant_time, compaction or "")
    start = "" if base is None else base.instant_time
    # Log files of older slices are merged into the base file already; their keys are in it.
    below = {
        log.name for file_slice in group.slices if file_slice.base_instant_time < start for log in file_slice.log_files
    }
    behind = sorted((log for log in logs if log.name not in below), key=lambda log: log.order)
    names_slice = context.log_naming.tells_slice
    if names_slice:
        # Names of layout 1 have the time of their slice, so the name decides; log files of failed writes have it, too.
        in_slice = tuple(log for log in behind if log.instant_time == time)
        behind = [log for log in behind if log.instant_time >= start]
    else:
        # With the files of older slices that are not merged yet: readers of changes look for the row before in what the
        # stat names, and 1.0.2 and 1.1.1 fail where that is only the empty slice of a pending compaction.
        in_slice = tuple(log for log in behind if context.is_completed(log.instant_time))
    return GroupLogs(
        file_slice=LogSlice(
            partition_path=group.partition_path,
            file_id=group.file_id,
            base_instant_time=time,
            base_file="" if base is None or (names_slice and base.instant_time != time) else base.name,
            logs=in_slice,
        ),
        behind=tuple(behind),
        completed=context.is_completed,
        keyed=tuple(log for log in behind if log.name not in keyless),
        is_plain=base is not None and not behind and pending is None,
        written=writing.written,
    )


def keys_in_logs(
    storage: Storage, partition_path: str, logs: Iterable[LogFile], written: WrittenRanges | None
) -> Iterator[Array]:
    """
    Yield the record keys of the rows in log files, one array per data block; some rows may have been deleted since.

    Args:
        storage: The table's storage.
        partition_path: Where the files are.
        logs: The files.
        written: As in `LogWriting`.

    Raises:
        CorruptMetadata: A log file is damaged.
    """
    for log in logs:
        path = join_path(partition_path, log.name)
        source = f"{storage.root}/{path}"
        # Blocks are not filtered by their commits: a key too many is only searched for once more, a key too few would
        # be written twice.
        content = storage.read(path)
        # First the headers alone: contents of all blocks at once would be the file a second time.
        headers = scan_log_blocks(io.BytesIO(content), len(content), source)
        torn: list[Placed] = [(log, block) for block in headers if block.block_type is BlockType.CORRUPT]
        refuse_lost(Scanned([], torn, [], []), storage.root, partition_path, written)
        blocks = iterate_log_blocks(content, source)
        data = ((block, source) for block in blocks if block.block_type in _DATA)
        yield from (records.keys for records in records_of(data, _KEYS_ONLY))


def deleted_in_logs(storage: Storage, partition_path: str, logs: GroupLogs) -> set[str]:
    """
    Return the keys whose last record in a group's log files is a deletion.

    Raises:
        CorruptMetadata: A log file is damaged.
    """
    placed = []
    for log in logs.behind:
        source = f"{storage.root}/{join_path(partition_path, log.name)}"
        blocks = iterate_log_blocks(storage.read(join_path(partition_path, log.name)), source)
        placed += [(log, block, source) for block in blocks]
    scanned = scan_blocks(placed, logs.completed)
    refuse_lost(scanned, storage.root, partition_path, logs.written)
    found = scanned.blocks
    deleted: set[str] = set()
    for records in records_of(
        ((block, f"{storage.root}/{partition_path}/{log.name}") for log, block in found), _KEYS_ONLY
    ):
        keys = [str(key) for key in records.keys.to_pylist()]
        # In the order of the records: a key that was deleted and inserted again is not deleted.
        deleted.difference_update(keys)
        deleted.update(key for key, kind in zip(keys, records.kinds.tolist(), strict=True) if kind != Kind.ROW)
    return deleted


def keyless_logs(commits: Iterable[tuple[Instant, CommitMetadata]]) -> dict[str, frozenset[str]]:
    """Return the log files without new keys, according to the commits that wrote them: partition path to names."""
    found: dict[str, set[str]] = {}
    for _, metadata in commits:
        for partition, stats in metadata.partition_to_write_stats.items():
            for stat in stats:
                # Only a commit that says "no inserts" frees a file from being searched; files of commits that are
                # archived are searched, too.
                if stat.log_version is not None and not stat.num_inserts:
                    found.setdefault(partition, set()).add((stat.path or "").rpartition("/")[2])
    return {partition: frozenset(names) for partition, names in found.items()}

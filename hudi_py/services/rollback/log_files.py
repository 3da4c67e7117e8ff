"""
Undoes blocks in log files that are kept (layout 1), by rollback blocks after them.

Every rollback block gets a log file of its own, with the next version of the slice. An APPEND marker of the *rollback*
names that file before it exists, so that a repeated rollback finds it, of hudi_py or of Apache Hudi, and the metadata
table gets to know it.

Two processes may carry out one rollback at once; the record of the faster one names the files, and the slower one must
not add others. So first folders are listed, then markers are read, then it is asked whether the rollback is over: a
file that was listed has a marker then, or the rollback is over; one that was not listed has the name tried first.

Source: rules/table-services B-20, B-20a, B-21; Hudi ``RollbackHelperV1``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import attrs

from hudi_py.errors import AlreadyExists, ConflictError
from hudi_py.formats.log_block import encode_rollback_block, is_rollback_block, scan_log_blocks
from hudi_py.model.files import LogFile, join_path, parse_log_file
from hudi_py.services.rollback.plan import BlocksToUndo
from hudi_py.storage.base import Storage
from hudi_py.timeline.markers import Marker, MarkerType, create_marker, read_markers

_UNKNOWN_WRITER: Final = "1-0-1"
_ATTEMPTS_MAX: Final = 100


@attrs.frozen(kw_only=True)
class AppendedBlocks:
    """Log files of one partition, names to sizes in bytes: with rollback blocks, and with blocks of the write."""

    rollback_logs: Mapping[str, int]
    logs_of_write: Mapping[str, int]


@attrs.frozen
class RollbackBlocks:
    """
    Writes the rollback blocks of one rollback.

    Args:
        storage: Storage of the table.
        rollback_time: Requested time of the rollback.
        target_time: Requested time of the write that it undoes.
    """

    storage: Storage
    rollback_time: str
    target_time: str

    def append(
        self, requests: Iterable[BlocksToUndo], is_over: Callable[[], bool], *, look_only: bool = False
    ) -> dict[str, AppendedBlocks]:
        """
        Write one block for each slice that has log files, unless an earlier attempt wrote it. Repeatable.

        Args:
            requests: The slices.
            is_over: Whether another process has ended the rollback; then nothing is written.
            look_only: Write nothing, return what exists.

        Returns:
            Partition path to the log files.

        Raises:
            ConflictError: Another process created every log version first.
        """
        by_partition: dict[str, list[BlocksToUndo]] = {}
        for request in requests:
            by_partition.setdefault(request.partition_path, []).append(request)
        if not by_partition:
            return {}
        logs = {path: self._logs(path) for path in by_partition}
        markers = read_markers(self.storage, self.rollback_time) or frozenset()
        earlier = {(marker.partition_path, marker.file_name) for marker in markers}
        look_only = look_only or is_over()
        return {
            path: self._append_in(path, group, logs[path], earlier, look_only=look_only)
            for path, group in by_partition.items()
        }

    def _logs(self, partition: str) -> list[LogFile]:
        entries = self.storage.list(partition, details=True)
        return [log for entry in entries if (log := parse_log_file(entry.name, entry.size_bytes)) is not None]

    def _append_in(
        self,
        partition: str,
        group: list[BlocksToUndo],
        logs: list[LogFile],
        earlier: set[tuple[str, str]],
        *,
        look_only: bool,
    ) -> AppendedBlocks:
        done: dict[str, int] = {}
        undone: dict[str, int] = {}
        for request in group:
            in_slice = [log_file for log_file in logs if (log_file.file_id, log_file.instant_time) == request.slice_key]
            # Recorded although they stay: the metadata table takes the sizes of the failed write's log files from here
            # (B-20a).
            undone |= {each.name: each.size_bytes or 0 for each in in_slice if each.name in request.log_names}
            mine = [each for each in in_slice if (partition, each.name) in earlier]
            done |= {each.name: each.size_bytes or 0 for each in mine}
            # A marker alone proves nothing: the earlier attempt may have died before it wrote the block.
            if (
                in_slice
                and not look_only
                and not any(self._holds_block(partition, each.name, each.size_bytes or 0) for each in mine)
            ):
                name, size = self._write(partition, request, max(each.version for each in in_slice))
                done[name] = size
        return AppendedBlocks(rollback_logs=done, logs_of_write=undone)

    def _holds_block(self, partition: str, name: str, size_bytes: int) -> bool:
        path = join_path(partition, name)
        with self.storage.open_read(path) as stream:
            blocks = scan_log_blocks(stream, size_bytes, f"{self.storage.root}/{path}")
            return any(is_rollback_block(block, self.target_time) for block in blocks)

    def _write(self, partition: str, request: BlocksToUndo, version: int) -> tuple[str, int]:
        content = encode_rollback_block(self.rollback_time, self.target_time)
        # A version belongs to the process that creates its file first: other writers may append to the slice meanwhile.
        for number in range(version + 1, version + 1 + _ATTEMPTS_MAX):
            name = f".{request.file_id}_{request.base_instant_time}.log.{number}_{_UNKNOWN_WRITER}"
            create_marker(self.storage, self.rollback_time, Marker(partition, name, MarkerType.APPEND))
            try:
                self.storage.create_new(join_path(partition, name), content)
            except AlreadyExists:
                size = self.storage.size(join_path(partition, name))
                if size and self._holds_block(partition, name, size):  # another process carries out this rollback, too
                    return name, size
                continue
            return name, len(content)
        raise ConflictError(
            f"{self.storage.root}/{partition}: other writers create every log version of {request.file_id}; try again"
        )

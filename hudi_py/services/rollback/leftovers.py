"""
Finds what a write left behind: files of its own, and in layout 1 blocks in log files of other writes.

Markers name the files, in either form. Without a marker folder the table is listed, because a missing folder does not
prove that there are no files (K-25). Source: rules/table-services B.3; Hudi ``MarkerBasedRollbackStrategy``,
``ListingBasedRollbackStrategy``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import attrs

from hudi_py.config.table import TableType
from hudi_py.errors import CorruptMetadata, RefusedError
from hudi_py.formats.log_block import HeaderKey, scan_log_blocks
from hudi_py.fsview.foreign import foreign_base_files
from hudi_py.fsview.listing import FolderListing, walk_partitions
from hudi_py.model.files import LogFile, join_path, parse_base_file, parse_log_file
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import CommitMetadata
from hudi_py.runtime.log import log
from hudi_py.services.rollback.plan import (
    BEFORE_UPGRADE,
    UNDO_BEFORE_UPGRADE,
    FileKey,
    Written,
    appended_to,
    belongs_to,
    files_of_commit,
)
from hudi_py.storage.base import Storage
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.markers import Marker, read_markers

_UNMARKED = "it has files but no markers; a completed write whose completed file was lost looks the same"


def refuse_barred(storage: Storage, partitions: Collection[str], undone: object) -> None:
    """
    Refuse what would be left half undone.

    Args:
        storage: The table's storage.
        partitions: Paths of those from which files are to be deleted.
        undone: What is to be undone, for the message.

    Raises:
        RefusedError: A symbolic link leads to one of them.
    """
    for path in sorted(partitions):
        barrier = storage.barrier(path)
        if barrier is not None:
            raise RefusedError(f"{undone} cannot be undone, nothing was changed: {barrier}")


@attrs.frozen
class Leftovers:
    """
    Finds what writes of one table left.

    Args:
        contents: The table's timeline.
    """

    contents: Contents

    def of_pending(self, target: Instant, *, by_listing: bool = False, whole_slices: bool = False) -> Written:
        """
        Files of a write that did not complete; one that was only requested has written nothing (rule B-12).

        Args:
            by_listing: Also look for its own files in the folders, as a restore does (rule B-13).
            whole_slices: As in `of_completed`.

        Raises:
            CorruptMetadata: A marker names a file that cannot be of that write, so it is unknown what it wrote.
            RefusedError: A symbolic link leads to one of its files.
        """
        if target.state is State.REQUESTED and not whole_slices:
            return Written()
        return self._reachable(target, self._of_pending(target, by_listing=by_listing, whole_slices=whole_slices))

    def _of_pending(self, target: Instant, *, by_listing: bool, whole_slices: bool) -> Written:
        # A rollback trusts markers, which cost one listing. A restore lists the whole table, as Hudi's does: the write
        # may be a completed one that a restore made pending again, whose markers were deleted.
        markers = read_markers(self._storage, target.requested_time)
        listed = markers is None or by_listing
        own = self.carrying(target, logs=whole_slices or target.action is not Action.COMPACTION) if listed else set()
        if markers is None:
            if own:
                log.warning("rollback.unmarked", instant=target.requested_time, files=len(own), why=_UNMARKED)
            return Written(own=frozenset(own), appended=self._with_blocks_of(target))
        names = {(marker.partition_path, marker.file_name) for marker in markers if not _is_legacy(marker)}
        written = self._written(target, names, "a marker of it", strict=True)
        appended = dict(written.appended)
        # Such a marker names the slice, but not the log file: which one it was is found in their blocks.
        for marker in filter(_is_legacy, markers):
            appended |= self._with_blocks_of(target, marker)
        return Written(own=written.own | own, appended=appended)

    def announced(self, requested_time: str, *, logs: bool) -> Written:
        """
        Files of a write that markers name now, in layout 1 also log files of others that exist.

        For the executor of a plan that was made earlier and names the rest. If markers cannot be read, none: our own
        tasks never leave torn ones.

        Args:
            requested_time: Of the write.
            logs: Whether log files may be its own; see `belongs_to`.
        """
        try:
            markers = read_markers(self._storage, requested_time) or frozenset()
        except CorruptMetadata as error:  # they were readable when the plan was made, or the folders were listed
            log.warning("rollback.markers.unreadable", instant=requested_time, why=str(error))
            return Written()
        names = {(marker.partition_path, marker.file_name) for marker in markers}
        return self._split(requested_time, names, logs=logs)[0]

    def of_completed(self, target: Instant, metadata: CommitMetadata, *, whole_slices: bool = False) -> Written:
        """
        Files that a completed write recorded; in layout 1 also the log files of its base files.

        Those are of writes that were rolled back since, and would hide the slice below.

        Args:
            whole_slices: Also for a compaction, as in a restore (rules/table-services B.3).

        Raises:
            CorruptMetadata: It recorded a file that cannot be of that write.
            RefusedError: A symbolic link leads to one of its files.
        """
        written = self._written(target, files_of_commit(metadata), "it", strict=not whole_slices)
        if self._logs_stay and (whole_slices or target.action is not Action.COMMIT):
            found = self.logs_on(target.requested_time, metadata.partition_to_write_stats)
            written = attrs.evolve(written, own=written.own | found)
        return self._reachable(target, written)

    def _reachable(self, target: Instant, written: Written) -> Written:
        """Refuse before anything is undone if a file cannot be deleted, so that the write is not half undone."""
        refuse_barred(self._storage, {path for path, _ in (*written.own, *written.appended)}, target)
        return written

    def carrying(self, target: Instant, *, logs: bool) -> set[FileKey]:
        """
        Every data file with the time of the instant in its name, from a listing of the whole table.

        Base files of a format that the table does not have are left out: it is unknown what wrote them.

        Args:
            target: The write.
            logs: Also log files.
        """
        extensions = self.contents.store.config.base_file_extensions
        return {
            (partition, entry.name)
            for partition, entries in walk_partitions(self._storage)
            for entry in entries
            if belongs_to(entry.name, target.requested_time, logs=logs)
            and not foreign_base_files((entry.name,), extensions)
        }

    def logs_on(self, base_instant_time: str, partitions: Iterable[str]) -> set[FileKey]:
        """Log files of layout 1 that belong to base files of that instant."""
        listing = FolderListing(self._storage)
        found = set()
        for partition in partitions:
            logs = filter(None, (parse_log_file(entry.name) for entry in listing.partition(partition)))
            found |= {(partition, log.name) for log in logs if log.instant_time == base_instant_time}
        return found

    @property
    def _storage(self) -> Storage:
        return self.contents.store.storage

    @property
    def _logs_stay(self) -> bool:
        """Whether log files hold blocks of several delta commits, in slices that outlive them."""
        config = self.contents.store.config
        return config.format.log_naming.tells_slice and config.table_type is TableType.MERGE_ON_READ

    def _written(self, target: Instant, names: set[FileKey], who: str, *, strict: bool) -> Written:
        """Split names into the write's own files, and existing log files that it appended to."""
        written, strange = self._split(target.requested_time, names, logs=target.action is not Action.COMPACTION)
        # Deleting it might delete the rows of another write; leaving it out might leave rows of this one.
        if strange and strict:
            self._refuse_of_before_upgrade(target, strange)
            raise CorruptMetadata(
                f"{self._storage.root}: {target}: {who} names {strange[0]}, which is not a file of that write; nothing "
                "was deleted"
            )
        return written

    def _refuse_of_before_upgrade(self, target: Instant, strange: Iterable[str]) -> None:
        """
        Refuse a delta commit of layout 1 that an upgrade left pending: nothing is damaged, and nothing tells it undone.

        Without its instant, blocks of it would count once they are older than the timeline; layout 2 has no rollback
        blocks.
        """
        config = self.contents.store.config
        if self._logs_stay or config.table_type is not TableType.MERGE_ON_READ:
            return
        if all(appended_to(name, target.requested_time) for name in strange):
            raise RefusedError(
                f"{self._storage.root}: {target} {BEFORE_UPGRADE.format(next(iter(strange)))}; nothing was deleted, "
                f"and no reader sees its rows; {UNDO_BEFORE_UPGRADE}"
            )

    def _split(self, time: str, names: set[FileKey], *, logs: bool) -> tuple[Written, list[str]]:
        """As `_written`, and the names that can be neither."""
        own = {(path, name) for path, name in names if belongs_to(name, time, logs=logs)}
        others = names - own
        strange = sorted(name for _, name in others if not (self._logs_stay and appended_to(name, time)))
        appended: dict[FileKey, int] = {}
        listing = FolderListing(self._storage)
        appendable = {(path, name) for path, name in others if name not in strange}
        for partition in {path for path, _ in appendable}:
            # Only log files that exist: a marker is created before its file, and the write may have died in between.
            for entry in listing.partition(partition, details=True):
                if (partition, entry.name) in appendable:
                    appended[partition, entry.name] = entry.size_bytes or 0
        return Written(own=frozenset(own), appended=appended), strange

    def _with_blocks_of(self, target: Instant, marker: Marker | None = None) -> dict[FileKey, int]:
        """
        Log files of layout 1 with blocks of the write, to their sizes; all log files are read.

        Args:
            marker: If given, only the log files of the slice that it names.
        """
        if not self._logs_stay or target.action not in (Action.DELTA_COMMIT, Action.LOG_COMPACTION):
            return {}
        base = None if marker is None else parse_base_file(marker.file_name)

        def wanted(log: LogFile) -> bool:
            # A slice that began after the write cannot have its blocks.
            if log.instant_time >= target.requested_time:
                return False
            return base is None or (log.file_id, log.instant_time) == (base.file_id, base.instant_time)

        found = {}
        for partition, file in self._logs(None if marker is None else marker.partition_path, wanted):
            path = join_path(partition, file.name)
            with self._storage.open_read(path) as stream:
                blocks = scan_log_blocks(stream, file.size_bytes or 0, f"{self._storage.root}/{path}")
                if any(block.header.get(HeaderKey.INSTANT_TIME) == target.requested_time for block in blocks):
                    found[partition, file.name] = file.size_bytes or 0
        return found

    def _logs(self, partition: str | None, wanted: Callable[[LogFile], bool]) -> Iterator[tuple[str, LogFile]]:
        listing = FolderListing(self._storage)
        folders = (
            listing.walk(details=True)
            if partition is None
            else iter([(partition, listing.partition(partition, details=True))])
        )
        for path, entries in folders:
            for entry in entries:
                log = parse_log_file(entry.name, entry.size_bytes)
                if log is not None and wanted(log):
                    yield path, log


def _is_legacy(marker: Marker) -> bool:
    """Whether an old writer made it: those named the base file below the log file that they appended to."""
    return marker.type.value == "APPEND" and parse_base_file(marker.file_name) is not None

"""
Which file slices a snapshot shows: the latest ones, those of an earlier time, or those that a savepoint keeps.

What all of them do with their slices (columns, rows, statistics) is in `hudi_py.snapshot.snapshot`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from hudi_py.config import keys
from hudi_py.errors import RefusedError
from hudi_py.fsview.as_of import readable_slices
from hudi_py.fsview.build import PartitionView, ViewContext, build_partition
from hudi_py.fsview.gone import Left, first_gone
from hudi_py.fsview.listing import Listing
from hudi_py.fsview.loader import load_context
from hudi_py.fsview.planned import views
from hudi_py.model.files import FileGroup, FileSlice, bases_of, parse_log_file
from hudi_py.snapshot.archived import refuse_what_is_missing
from hudi_py.snapshot.beside_clean import refuse_what_a_clean_took, which_clean
from hudi_py.snapshot.select import slices_of_names, with_recorded_sizes
from hudi_py.snapshot.snapshot import Snapshot
from hudi_py.storage.base import Entry

__all__ = ["EarlierSnapshot", "LatestSnapshot", "SavepointSnapshot"]


@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class LatestSnapshot(Snapshot):
    """
    The rows of all completed commits.

    Args:
        listing: Returns the listing of partitions and files; called only when files are needed: a schema comes from
            commits.
    """

    _listing: Callable[[], Listing]

    _is_present = True

    def __getstate__(self) -> dict[str, Any]:
        # The table that lists on demand stays behind, so the listing itself is sent.
        return {**vars(self), "_listing": partial(_itself, self._listing())}

    def _slices(self) -> Iterable[FileSlice]:
        context = load_context(self.timeline, self._contents, with_clustering=False)
        for partition in views(self._listing(), partial(_built, context)):
            yield from readable_slices(context, partition, self.timeline.compacting)

    def sized_slices(self, *, read_optimized: bool = False) -> tuple[FileSlice, ...]:
        """As in `Snapshot`; if folders were listed, refuses where files of archived commits are missing."""
        found = super().sized_slices(read_optimized=read_optimized)
        # A listing by the metadata table names every file, whether its commit is archived or not.
        if self._listing().is_fresh:
            bytes_max = self._settings[keys.READ_ARCHIVE_BYTES_MAX]
            refuse_what_is_missing(self._contents, self.timeline, bases_of(found), bytes_max)
        return found


def _built(context: ViewContext, path: str, entries: Iterable[Entry]) -> PartitionView:
    return build_partition(context, path, ((each.name, each.size_bytes) for each in entries))


def _itself(listing: Listing) -> Listing:
    """Replaces the table's listing in a pickled snapshot."""
    return listing


@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class SavepointSnapshot(Snapshot):
    """The rows of a savepoint; cleans keep its files, and its own metadata names them after archival."""

    requested_time: str
    _held: dict[str, tuple[str, ...]]

    @property
    def view_context(self) -> ViewContext:
        """View context of its time."""
        return self._log_context()

    def partitions(self) -> tuple[str, ...]:
        """Relative paths of the partitions that it holds files of, sorted."""
        return tuple(sorted(path for path, names in self._held.items() if names))

    def partition(self, partition_path: str) -> PartitionView:
        """The file groups of one partition that the savepoint holds, with one slice each; sizes are known."""
        sizes = {e.name: e.size_bytes or 0 for e in self.storage.list(partition_path, details=True)}
        slices = with_recorded_sizes(self.file_slices(partition_path), lambda _: {partition_path: sizes})
        groups = tuple(FileGroup(partition_path, each.file_id, (each,)) for each in slices)
        return PartitionView(
            partition_path=partition_path, groups=groups, replaced_groups=(), uncommitted=(), other_names=()
        )

    def file_slices(self, partition_path: str = "") -> tuple[FileSlice, ...]:
        """The slices of one partition that the savepoint holds."""
        return tuple(each for each in self._slices() if each.partition_path == partition_path)

    def _slices(self) -> Iterable[FileSlice]:
        """The slices without log files of later writes, which a restore to the savepoint would delete."""
        # Log names of layout 1 have the time of their slice, not of a write: there `_logs_until` ends at later blocks.
        held: Mapping[str, Iterable[str]] = self._held
        if not self.config.format.log_naming.tells_slice:
            held = {path: [name for name in names if not self._is_later_log(name)] for path, names in held.items()}
        return slices_of_names(held)

    def _is_later_log(self, name: str) -> bool:
        log = parse_log_file(name)
        return log is not None and log.instant_time > self.requested_time


@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class EarlierSnapshot(Snapshot):
    """
    The table as it was at an earlier time, from the files that existed when the snapshot was opened.

    Args:
        requested_time: The time as an instant time.
        view_context: View context of that time.
        listing: The listing of partitions and files.
    """

    requested_time: str
    view_context: ViewContext
    _listing: Listing

    def partitions(self) -> tuple[str, ...]:
        """Relative paths of all partitions, sorted; partitions created later are among them."""
        return tuple(sorted(path for path, _ in self._listing.walk()))

    def partition(self, partition_path: str) -> PartitionView:
        """The file groups of one partition at that time; sizes are known."""
        entries = self._listing.partition(partition_path, details=True)
        return build_partition(self.view_context, partition_path, ((e.name, e.size_bytes) for e in entries))

    def file_slices(self, partition_path: str = "") -> tuple[FileSlice, ...]:
        """
        The slices of one partition that a read of that time opens, at most one for each file group.

        Raises:
            RefusedError: A clean deleted a file of the partition that held rows at that time.
        """
        found = readable_slices(self.view_context, self.partition(partition_path), self.timeline.compacting)
        self._refuse_gaps(found, partition_path)
        return found

    def refuse_what_a_clean_took(self) -> None:
        """
        Compare the folders that a pending clean names with this snapshot.

        Raises:
            RefusedError: The clean deleted a file of this snapshot.
        """
        refuse_what_a_clean_took(self._contents, self.timeline, self.view_context, self.requested_time)

    def _log_context(self) -> ViewContext:
        return self.view_context

    def _slices(self) -> Iterable[FileSlice]:
        found: list[FileSlice] = []
        for partition in views(self._listing, partial(_built, self.view_context)):
            found += readable_slices(self.view_context, partition, self.timeline.compacting)
        self._refuse_gaps(found)
        return found

    def _refuse_gaps(self, found: Sequence[FileSlice], partition_path: str | None = None) -> None:
        """
        Refuse to show slices if a file of that time is missing.

        Args:
            found: Slices of that time, of which files are left.
            partition_path: The only partition whose slices were looked for; None for all.
        """
        # Again after the listing: a clean may have begun in between, and then the listing may lack files already.
        self.refuse_what_a_clean_took()
        gone = first_gone(
            self._contents, self.timeline, self.view_context, self.requested_time, Left.of_slices(found),
            with_pending=False, of=lambda path, _file: partition_path in (None, path),
        )  # fmt: skip
        if gone is not None:
            raise RefusedError(
                f"the table cannot be read as of {self.requested_time}: {which_clean(self._contents, gone)} deleted "
                f"{gone}, which held rows at that time; read a later instant, or the latest snapshot"
            )

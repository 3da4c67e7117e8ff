"""
Listings for callers who find the newest files of each partition themselves: each partition is checked afterwards.

If the newest commits name the newest file of each group that has files, and the caller found exactly those, the
partition is as written, but for groups of which nothing is left. Nothing can be planned for these, so a planner does
not read older commits to find them; for readers they are looked for at the end, among the commits not read until then.
Everything else is checked as `hudi_py.fsview.checked` does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from hudi_py.fsview.build import PartitionView, newest_bases
from hudi_py.fsview.checked import CheckedListing, has_sizes, hold_data
from hudi_py.fsview.listing import Listing
from hudi_py.storage.base import Entry


class ListingForPlan:
    """
    A `Listing` whose caller passes each partition to `check` before it asks for the next one.

    Args:
        listing: Checks the partitions.
    """

    is_fresh = True
    compared: Collection[str] = ()

    def __init__(self, listing: CheckedListing) -> None:
        self._listing = listing
        self._may_hide = False

    def walk(self, *, details: bool = False) -> Iterator[tuple[str, list[Entry]]]:
        """
        Every partition with the files directly in it.

        Raises:
            CorruptMetadata: A partition is hidden: its metafile is missing, or there is one above it.
        """
        walked: set[str] = set()
        for path, entries, is_partition in self._listing.folders.walk_folders(details=details):
            if is_partition and self._listing.has(path):
                walked.add(path)
                yield path, entries
            else:
                # A folder with data files and no metafile: rows may be missing from the walk.
                self._may_hide = self._may_hide or hold_data(entries)
        if self._may_hide:
            self._listing.check_hidden(walked)

    def each(self, paths: Sequence[str], *, details: bool = False) -> Iterator[tuple[str, list[Entry]]]:
        """As `partition`, of many at once, with their paths."""
        return zip(paths, self._listing.folders.each(paths, details=details), strict=True)

    def partition(self, path: str, *, details: bool = False) -> list[Entry]:
        """Files directly in one partition."""
        return self._listing.folders.partition(path, details=details)

    def check(self, path: str, entries: Collection[Entry], newest: Collection[str]) -> None:
        """
        Compare a partition with the commits.

        Args:
            path, entries: The partition as it was listed.
            newest: Name of the newest base file of each group; empty if names alone do not describe the partition.

        Raises:
            CorruptMetadata: A file that the latest slices need is missing.
            ConflictError: The table changed meanwhile.
        """
        if newest and not has_sizes(entries) and self._listing.needs.are_newest(path, newest, entries):
            return
        # A partition without data may be a metafile above real partitions, which the walk then did not reach.
        self._may_hide = self._may_hide or not hold_data(entries)
        self._listing.check(path, entries)


def views(listing: Listing, build: Callable[[str, list[Entry]], PartitionView]) -> Iterator[PartitionView]:
    """
    The view of each partition for a reader, checked as `CheckedListing.walk` does, if that is the listing.

    Args:
        listing: Where partitions and files come from; names are enough.
        build: Builds the view of one partition.

    Raises:
        As `CheckedListing.walk`.
    """
    if not isinstance(listing, CheckedListing):
        yield from (build(path, entries) for path, entries in listing.walk())
        return
    walked: dict[str, int] = {}
    for path, entries in listing.folders.walk():
        if not listing.has(path):
            continue
        view = build(path, entries)
        newest = newest_bases(view)
        if newest and not has_sizes(entries) and listing.needs.are_newest(path, newest, entries):
            walked[path] = listing.needs.count_so_far(path)
        else:
            listing.check(path, entries)
            walked[path] = len(listing.needs.by_partition.get(path, ()))
        yield view
    for path, count in walked.items():
        # Older commits name more files there: of groups that have none.
        if len(listing.needs.by_partition.get(path, ())) > count:
            listing.partition(path)
    listing.check_hidden(walked)

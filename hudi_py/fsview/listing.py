"""
Finds partitions and their files by walking the table's folders.

A folder is a partition when it holds a partition metafile; below one nothing is looked for. Source: Hudi
``FileSystemBackedTableMetadata``, rules/data-files 2.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final, Protocol

from hudi_py.engine.base import Engine
from hudi_py.errors import CorruptMetadata
from hudi_py.fsview.lister import FolderLister
from hudi_py.model.files import (
    METADATA_FOLDER,
    NOT_REGULAR,
    PARTITION_METAFILE,
    PARTITION_METAFILES,
    above,
    is_text,
    join_path,
)
from hudi_py.storage.base import Details, Entry, Storage

_name, _is_folder = itemgetter(Entry._fields.index("name")), itemgetter(Entry._fields.index("is_folder"))


_REMOTE_THREADS: Final = 16  # object stores answer a listing in tens of milliseconds; local folders at once


class Listing(Protocol):
    """Where a view gets its partitions and files from: folders, or the metadata table."""

    @property
    def is_fresh(self) -> bool:
        """Whether it shows what is in the folders at this moment, files of pending writes included."""

    @property
    def compared(self) -> Collection[str]:
        """Paths of the partitions shown so far in which all sizes were held against what the commits recorded."""

    def walk(self, *, details: bool = False) -> Iterator[tuple[str, list[Entry]]]:
        """Every partition with the files directly in it; sizes too, with *details*."""

    def partition(self, path: str, *, details: bool = False) -> list[Entry]:
        """Files directly in one partition; empty when there is no such partition."""


class FolderListing:
    """
    The folders themselves.

    Args:
        storage: The table's storage.
        engine: Lists very many folders on its executors; None for threads alone.
    """

    is_fresh = True
    compared: Collection[str] = ()

    def __init__(self, storage: Storage, engine: Engine | None = None) -> None:
        self._storage = storage
        self._lister = FolderLister(storage, engine, listing_threads(storage))

    def walk(self, *, details: bool = False, named: Iterable[str] = ()) -> Iterator[tuple[str, list[Entry]]]:
        """See `Listing`; *named* as for `walk_partitions`."""
        return _partitions_of(self._storage, self.walk_folders(details=details), details=details, named=named)

    def walk_folders(self, *, details: bool = False) -> Iterator[tuple[str, list[Entry], bool]]:
        """Every folder down to the partitions: its path, the files directly in it, whether it is a partition."""
        return _walk_folders(self._lister, details=details)

    def partition(self, path: str, *, details: bool = False) -> list[Entry]:
        """See `Listing`."""
        return _files(self._storage.list(path, details=details))

    def each(self, paths: Sequence[str], *, details: bool = False) -> Iterator[list[Entry]]:
        """As `partition`, of many at once, in their order."""
        return map(_files, self._lister.each(paths, details=details))


def _files(entries: list[Entry]) -> list[Entry]:
    """Without folders, of which a partition as a rule has none."""
    return [entry for entry in entries if not entry.is_folder] if any(map(_is_folder, entries)) else entries


def sizes_of(storage: Storage, paths: Iterable[str]) -> dict[str, int | None]:
    """Return the size in bytes (None: not a regular file) of each of these files that is there, folder by folder."""
    names: dict[str, list[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        names.setdefault(folder, []).append(name)
    found: dict[str, int | None] = {}
    for folder, wanted in names.items():
        for name, size in storage.sizes(folder, wanted).items():
            found[join_path(folder, name)] = None if size == NOT_REGULAR else size
    return found


def is_partition(entries: Sequence[Entry]) -> bool:
    """Whether the folder of these entries is a partition; a folder with the name of a metafile does not count."""
    names = list(map(_name, entries))
    if PARTITION_METAFILE in names:  # compared, for a set of a million names costs three times as much
        return not entries[names.index(PARTITION_METAFILE)].is_folder or _has_metafile(entries)
    return any(metafile in names for metafile in PARTITION_METAFILES) and _has_metafile(entries)


def _has_metafile(entries: Iterable[Entry]) -> bool:
    return any(entry.name in PARTITION_METAFILES and not entry.is_folder for entry in entries)


def is_table(entries: Iterable[Entry]) -> bool:
    """Whether the folder of these entries, which is not that of the table itself, is one of another table."""
    return METADATA_FOLDER in map(_name, entries)


def other_tables(storage: Storage, partition_paths: Collection[str]) -> dict[str, str]:
    """
    Those of some partitions that lie in another table below this one, each to the folder of that table.

    A walk goes into none; but a metadata table that Apache Hudi made of the folders lists their partitions, too.

    Raises:
        StorageError: A folder cannot be listed.
    """
    around = {path: [each for each in (*above(path), path) if each] for path in partition_paths}
    folders = sorted({folder for each in around.values() for folder in each})
    inside = FolderLister(storage, threads=listing_threads(storage)).each(
        [join_path(folder, METADATA_FOLDER) for folder in folders]
    )
    tables = {folder for folder, entries in zip(folders, inside, strict=True) if entries}
    if not tables:
        return {}
    return {path: folder for path, each in around.items() for folder in each[::-1] if folder in tables}


def listing_threads(storage: Storage) -> int:
    """How many folders to list at once."""
    return _REMOTE_THREADS if "://" in storage.root else 1


def list_about(storage: Storage, asked: Mapping[str, Details]) -> dict[str, list[Entry]]:
    """As `FolderLister.about`, with as many threads as the storage deserves: for whoever lists while writers wait."""
    return FolderLister(storage, threads=listing_threads(storage)).about(asked)


def walk_partitions(
    storage: Storage, *, details: bool = False, threads: int = 1, named: Iterable[str] = ()
) -> Iterator[tuple[str, list[Entry]]]:
    """
    Yield every partition with the files directly in it; each folder is listed once.

    Args:
        details: Ask for sizes too.
        threads: Folders listed at once; more than 1 pays off where a listing is a round trip.
        named: Partitions that the metadata table or the commits know, for `walk_within`; consumed at the end.
    """
    return _partitions_of(
        storage, walk_folders(storage, details=details, threads=threads), details=details, named=named
    )


def _partitions_of(
    storage: Storage, folders: Iterable[tuple[str, list[Entry], bool]], *, details: bool, named: Iterable[str]
) -> Iterator[tuple[str, list[Entry]]]:
    walked = set()
    for folder, entries, is_partition in folders:
        if is_partition:
            walked.add(folder)
            yield folder, entries
    yield from walk_within(storage, named, walked, details=details)


def walk_within(
    storage: Storage, named: Iterable[str], walked: Collection[str], *, details: bool = False
) -> Iterator[tuple[str, list[Entry]]]:
    """
    Yield those of the *named* partitions that lie inside of *walked* ones, with the files directly in them.

    Values of different depths (``2024`` and ``2024/01``) put one partition into another. A walk ends at the outer one,
    as Hudi's does; the inner one is known to the metadata table and to the commits alone.
    """
    for path in sorted(frozenset(named).difference(walked)):
        if any(outer in walked for outer in above(path) if outer):
            entries = storage.list(path, details=details)
            if is_partition(entries):
                yield path, _files(entries)


def walk_folders(
    storage: Storage,
    *,
    details: bool = False,
    threads: int = 1,
    start: str = "",
    to_the_bottom: bool = False,
    with_others: bool = False,
) -> Iterator[tuple[str, list[Entry], bool]]:
    """
    Yield every folder down to the partitions: its path, the files directly in it, whether it is a partition.

    A folder with a ``.hoodie`` of its own is another table: its partitions are none of this one, and its files would
    pass for old ones here, because their times are not on this table's timeline.

    Args:
        details, threads: As `walk_partitions`.
        start: Folder to begin with.
        to_the_bottom: Go on below partitions.
        with_others: Yield the folders of other tables, too; none of them counts as a partition.
    """
    lister = FolderLister(storage, threads=threads)
    return _walk_folders(lister, details=details, start=start, to_the_bottom=to_the_bottom, with_others=with_others)


def _walk_folders(
    lister: FolderLister, *, details: bool, start: str = "", to_the_bottom: bool = False, with_others: bool = False
) -> Iterator[tuple[str, list[Entry], bool]]:
    level = [start]
    others: set[str] = set()
    while level:
        below: list[str] = []
        # Level by level, so that on object stores all folders of a level are listed at the same time.
        for folder, entries in zip(level, lister.each(level, details=details), strict=True):
            found = is_partition(entries)
            if folder != start and (is_table(entries) or (others and not others.isdisjoint(above(folder)))):
                if not with_others:
                    continue
                others.add(folder)
                found = False
            if found and not is_text(folder):
                raise CorruptMetadata(
                    f"{lister.storage.root}/{folder}: the name of this partition is not UTF-8, so no commit can hold "
                    "it, or tell about its rows; rename the folder as commits call it, or move it out of the table"
                )
            yield folder, _files(entries), found
            # As Hudi: what lies below a partition belongs to it.
            if found and not to_the_bottom:
                continue
            below += [
                join_path(folder, entry.name)
                for entry in entries
                if entry.is_folder and not (folder == "" and entry.name == METADATA_FOLDER)
            ]
        level = below

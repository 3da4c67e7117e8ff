"""
Looks into every file of a table that may hold rows or record keys. Read only.

The folders are walked, not listed through the metadata table: a file that nobody lists holds bytes as well. The
quarantine is looked at before and after them, because a clean or an undo may move files meanwhile. What the timeline,
its archive, markers and plans hold are names of files, never rows or keys; only commits of table version 6, and copies
of them that `recover` made, may hold smallest and largest values of their log files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import attrs

from hudi_py.fsview.listing import listing_threads, walk_folders
from hudi_py.model.files import METADATA_FOLDER, METADATA_TABLE_FOLDER, PARTITION_METAFILES, join_path, parse_data_file
from hudi_py.model.instant import Instant
from hudi_py.services.erasure.copies import trace_in_copy
from hudi_py.services.erasure.facts import ErasureHolds, ErasurePlace, ErasureTrace
from hudi_py.services.erasure.indexes import OF_FILES_GONE, IndexSearch
from hudi_py.services.erasure.past import KeptBounds
from hudi_py.services.erasure.rows import Wanted, trace_in
from hudi_py.storage.base import Entry, Storage, is_temporary
from hudi_py.timeline import quarantine


class Found(NamedTuple):
    """A file that holds what is looked for, or may hold it; ``is_partition``: whether its folder is a partition."""

    folder: str
    entry: Entry
    place: ErasurePlace
    trace: ErasureTrace
    is_partition: bool = False

    @property
    def path(self) -> str:
        """Relative to the table."""
        return join_path(self.folder, self.entry.name)


@attrs.define
class Search:
    """
    One look at all files.

    Args:
        storage: Of the table.
        partition: Path of the partition; None for all.
        wanted: The record keys.
        bounds: Smallest and largest values that commits keep.
        paths: Data files of the table that are in their folders, looked at so far.
        index_paths: Files of the metadata table that may hold keys or values, relative to it.
        files_seen: Number of files looked at so far.
        has_folder: Whether the folder of the partition is there.
    """

    storage: Storage
    partition: str | None
    wanted: Wanted
    bounds: Collection[KeptBounds] = ()
    paths: set[str] = attrs.field(factory=set)
    index_paths: set[str] = attrs.field(factory=set)
    files_seen: int = 0
    has_folder: bool = False

    def run(self) -> list[Found]:
        """
        Everything that was found, by path.

        Raises:
            NotFound: A file was deleted or moved since it was listed.
            StorageError: A file or folder cannot be read.
        """
        found = [*self._quarantined(), *self._in_table(), *self._quarantined(), *self._in_metadata_table()]
        return [each for _, each in sorted({each.path: each for each in found}.items())]

    def in_timeline(self) -> Mapping[Instant, ErasureTrace]:
        """Commits that hold smallest or largest values of files that are gone (after `run`, which read the others)."""
        found: dict[Instant, ErasureTrace] = {}
        for kept in self.bounds:
            if self.wanted.keys and join_path(kept.partition_path, kept.file_name) in self.paths:
                continue
            keys = tuple(sorted(self.wanted.keys & kept.keys))
            unsure = OF_FILES_GONE if self.wanted.keys and not keys else ""
            trace, before = ErasureTrace(ErasureHolds.VALUES, keys, unsure), found.get(kept.commit)
            if before is None or before.why_unsure:
                found[kept.commit] = trace
            elif keys:
                found[kept.commit] = attrs.evolve(before, keys=tuple(sorted({*before.keys, *keys})))
        return found

    def _in_table(self) -> Iterator[Found]:
        start = self.partition or ""
        for folder, entries, is_partition in self._walk(start):
            # Below a partition there may be another one, whose rows are not those asked for.
            if self.partition is not None and folder != self.partition and is_partition:
                continue
            self.has_folder = self.has_folder or is_partition
            for entry in [*entries, *self._temporary(folder)]:
                if entry.name in PARTITION_METAFILES:
                    continue
                if parse_data_file(entry.name) is not None:
                    self.paths.add(join_path(folder, entry.name))
                yield from self._looked_into(folder, entry, ErasurePlace.TABLE, is_partition=is_partition)

    def _quarantined(self) -> Iterator[Found]:
        for folder, entries, _ in self._walk(quarantine.FOLDER):
            inner = folder.removeprefix(f"{quarantine.FOLDER}/").partition("/")[2]
            is_of_files = inner == "files" or inner.startswith("files/")
            path = inner.removeprefix("files").removeprefix("/")
            if is_of_files and self.partition not in (None, path):
                continue
            for entry in [*entries, *self._temporary(folder)]:
                # Beside the files of a removal there is its manifest; beside the removals, what `recover` copied.
                if folder == quarantine.FOLDER and parse_data_file(entry.name) is None:
                    yield from self._copied(entry)
                elif is_of_files or parse_data_file(entry.name) is not None:
                    yield from self._looked_into(folder, entry, ErasurePlace.QUARANTINE)

    def _copied(self, entry: Entry) -> Iterator[Found]:
        """Copies of instants; their names say nothing of what they hold."""
        self.files_seen += 1
        path = join_path(quarantine.FOLDER, entry.name)
        trace = trace_in_copy(self.storage.read(path), self.partition, self.wanted)
        if trace is not None:
            yield Found(quarantine.FOLDER, entry, ErasurePlace.QUARANTINE, trace)

    def _in_metadata_table(self) -> Iterator[Found]:
        names = frozenset(path.rpartition("/")[2] for path in self.paths)
        index = IndexSearch(
            storage=self.storage, partition=self.partition, wanted=self.wanted, is_there=names.__contains__
        )
        entries = {
            join_path(folder, entry.name): (folder, entry)
            for folder, listed, _ in self._walk(METADATA_TABLE_FOLDER)
            for entry in listed
            if not index.passes_over(join_path(folder, entry.name))
        }
        self.files_seen += len(entries)
        self.index_paths.update(path.removeprefix(f"{METADATA_TABLE_FOLDER}/") for path in entries)
        for path, trace in index.traces(list(entries)):
            yield Found(*entries[path], ErasurePlace.METADATA_TABLE, trace)

    def _walk(self, start: str) -> Iterator[tuple[str, list[Entry], bool]]:
        threads = listing_threads(self.storage)
        folders = walk_folders(
            self.storage, details=True, threads=threads, start=start, to_the_bottom=True, with_others=True
        )
        # What is in a `.hoodie` further down is the timeline of another table.
        return (each for each in folders if METADATA_FOLDER not in each[0].removeprefix(start).split("/"))

    def _temporary(self, folder: str) -> Iterator[Entry]:
        """What a writer that died left half written."""
        return (entry for entry in self.storage.list_hidden(folder) if is_temporary(entry.name))

    def _looked_into(
        self, folder: str, entry: Entry, place: ErasurePlace, *, is_partition: bool = False
    ) -> Iterator[Found]:
        self.files_seen += 1
        trace = trace_in(self.storage, join_path(folder, entry.name), entry.size_bytes, self.wanted)
        if trace is not None:
            yield Found(folder, entry, place, trace, is_partition)

"""
A listing of the folders that never shows old rows as current: a missing file of the latest slices is an error.

The files that completed commits name are compared with the files in the folders. Names are found without decoding the
commits; only if one is missing everything is decoded, to find out what is lost. tools/bench/README.md says what this
costs. If the listing has sizes, these are compared with the recorded ones too: a file that was cut off has lost rows.
Files of archived commits are not covered, because nothing on the active timeline names them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final

from hudi_py.engine.base import Engine
from hudi_py.errors import ConflictError, CorruptMetadata, NotFound, RefusedError
from hudi_py.fsview.expected import (
    Mismatch,
    Removals,
    expected_slices,
    is_size_right,
    mismatch_message,
    mismatches,
    removals,
)
from hudi_py.fsview.group_files import archived_replacements
from hudi_py.fsview.listing import FolderListing, is_table
from hudi_py.fsview.needed import NeededFiles
from hudi_py.model.files import PARTITION_METAFILE, above, is_data_file, join_path
from hudi_py.model.instant import Action, Instant
from hudi_py.storage.base import Entry
from hudi_py.timeline.archive import load_archived_cleans
from hudi_py.timeline.cleaned import clean_that_took
from hudi_py.timeline.completions import undoing
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline

_name = itemgetter(Entry._fields.index("name"))
_size = itemgetter(Entry._fields.index("size_bytes"))
_NOTHING: Final[frozenset[str]] = frozenset()


class CheckedListing:
    """
    The folders, compared with the commits. Files of pending writes and others that no commit names are shown too.

    Args:
        contents: Reads the instants of the table's timeline.
        timeline: The timeline as loaded before the folders are listed.
        until: Require only files of commits up to this time, for a snapshot of that time; `hudi_py.fsview.gone` judges
            files that cleans deleted since.
        only: Partition paths that the table still has; None for all. The commits of a metadata table name partitions
            that were dropped since, which only the data table knows.
        counted: As for `NeededFiles`.
    """

    is_fresh = True

    def __init__(
        self,
        contents: Contents,
        timeline: Timeline,
        until: str | None = None,
        only: Collection[str] | None = None,
        counted: frozenset[str] | None = None,
    ) -> None:
        self._contents = contents
        self._timeline = timeline
        self._until = until
        self._only = only
        self._counted = counted
        self.folders = FolderListing(contents.store.storage)
        self.needs = NeededFiles(contents, timeline, until, counted)
        self.compared: set[str] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._contents, self._timeline, self._until, self._only, self._counted)

    def until(self, time: str, counted: frozenset[str] | None = None) -> CheckedListing:
        """The same for a snapshot of that time, or of the *counted* commits, as for `NeededFiles`."""
        return CheckedListing(self._contents, self._timeline, time, self._only, counted)

    def walk(self, *, details: bool = False) -> Iterator[tuple[str, list[Entry]]]:
        """
        Every partition with the files directly in it; sizes too, with *details*.

        Raises:
            CorruptMetadata: A file that the latest slices need is missing, or does not have the size that its commit
                recorded; raised at the latest at the end of the walk.
            ConflictError: The table changed meanwhile.
        """
        walked: set[str] = set()
        for path, entries in self.folders.walk(details=details):
            if not self.has(path):
                continue
            walked.add(path)
            self.check(path, entries)
            yield path, entries
        # At the end: only then is it known which partitions of the commits no walk has found.
        self.check_hidden(walked)

    def check_hidden(self, walked: Collection[str]) -> None:
        """
        Look for partitions that the walk did not find; *walked* are those that it found.

        Raises:
            As `walk`.
        """
        for path in filter(self.has, self.needs.by_partition.keys() - frozenset(walked)):
            entries = self.folders.partition(path)
            self.check(path, entries)
            # `check` has passed although none of its files is there, so something explains that they are deleted.
            if self.needs.by_partition[path].isdisjoint(map(_name, entries)):
                continue  # a clean deleted them
            # Values of different depths put one partition into another, and a walk ends at the outer one, as Hudi's
            # does.
            outer = next((each for each in above(path) if each in walked), None)
            if outer is None:
                other = next((each for each in (path, *above(path)) if each and self._is_table(each)), None)
                if other is not None:
                    raise CorruptMetadata(
                        f"{self._root}/{other} has a .hoodie of its own, so it is another table, yet commits of this "
                        f"one wrote to {path}; nothing was changed; move that .hoodie, or the other table, elsewhere"
                    )
                raise CorruptMetadata(
                    f"{self._root}/{join_path(path, PARTITION_METAFILE)} is missing, so rows of the partition would "
                    "not be shown; nothing was changed; hudi-py recover writes it again"
                )
            if not self._holds_data(outer):
                raise CorruptMetadata(
                    f"{self._root}/{join_path(outer, PARTITION_METAFILE)} says that its folder is a partition, yet it "
                    f"holds no data files, and rows of partitions within it, as {path}, would not be shown; nothing "
                    "was changed; remove that file"
                )

    def _is_table(self, path: str) -> bool:
        return is_table(self._contents.store.storage.list(path))

    def _holds_data(self, path: str) -> bool:
        """Partitions within one that holds rows are hidden from Apache Hudi, too."""
        return hold_data(self.folders.partition(path))

    def by_engine(self, engine: Engine) -> CheckedListing:
        """The same, whose folders an engine may list; it needs executors that reach the table."""
        found = CheckedListing(self._contents, self._timeline, self._until, self._only, self._counted)
        found.folders = FolderListing(self._contents.store.storage, engine)
        return found

    def each(self, paths: Sequence[str], *, details: bool = False) -> Iterator[tuple[str, list[Entry]]]:
        """As `partition`, of many at once, with their paths."""
        for path, entries in zip(paths, self.folders.each(paths, details=details), strict=True):
            self.check(path, entries)
            yield path, entries

    def partition(self, path: str, *, details: bool = False) -> list[Entry]:
        """Files directly in one partition; raises as `walk`."""
        entries = self.folders.partition(path, details=details)
        self.check(path, entries)
        return entries

    def has(self, path: str) -> bool:
        """Whether the table still has that partition."""
        return self._only is None or path in self._only

    @property
    def _root(self) -> str:
        return self._contents.store.storage.root

    def check(self, path: str, entries: Collection[Entry]) -> None:
        """
        Compare the files of a partition with the commits.

        Raises:
            As `walk`.
        """
        if not has_sizes(entries):
            # As few Python steps as possible for each file: this runs for every file of every listing.
            is_as_written = {*map(_name, entries)}.issuperset(self.needs.by_partition.get(path, _NOTHING))
        else:
            there = dict(zip(map(_name, entries), map(_size, entries), strict=True))
            is_as_written = all(
                name in there and is_size_right(size, there[name], is_log=name.startswith("."))
                for name, size in self.needs.sizes.get(path, {}).items()
            )
            self.compared.add(path)
        if not is_as_written:
            self._explain_or_raise(path, entries)

    # --- what is lost ---------------------------------------------------------------------------------------------
    def _explain_or_raise(self, path: str, entries: Collection[Entry]) -> None:
        """Raise, unless something explains why files are missing or have another size."""
        # From cheap to expensive, as each explanation is rarer: commits, cleans, the archive, another process.
        slices = expected_slices(self.needs.metadata, self._contents.store.config.format.log_naming)
        here = (each for (partition, _), each in slices.items() if partition == path)
        found = mismatches(here, {path: dict(zip(map(_name, entries), map(_size, entries), strict=True))})
        if not found:
            return
        removed = self._removals()
        # Of an earlier time a clean may have deleted files by right; of the latest snapshot never.
        if self._until is not None:
            found = [each for each in found if (path, each.file.name) not in removed]
            if found:  # of an archival cut short the cleans may be archived, and the commits not yet
                store = self._contents.store
                taken = load_archived_cleans(store.storage, store.config, self._until).get(path, frozenset())
                found = [each for each in found if each.file.name not in taken]
        if not found:
            return
        since = {(path, each.file.file_id): each.file.commit.requested_time for each in found}
        archived = archived_replacements(self._contents, since)
        found = [each for each in found if (path, each.file.file_id) not in archived]
        if not found:
            return
        # Asked last, for it is a request: another process may have completed, undone or archived something meanwhile.
        if self._contents.store.load().instants != self._timeline.instants:
            clean = clean_that_took(self._contents, path, [each.file.name for each in found])
            changed = f"{self._root} was changed by another process while it was listed"
            if clean is not None:
                raise ConflictError(
                    f"{changed}: {clean} deleted files of {path or 'it'} since the table was opened; open it and read "
                    "again, under a lease that keeps its files (table.lease(ttl=...), hudi-py lease run)"
                )
            file = found[0].file
            missing = join_path(path, file.name)
            by = undoing(self._contents, [file.commit.requested_time])
            if by is not None:
                raise ConflictError(f"{changed}: {by} undid the write of {missing}; open it and read again")
            raise ConflictError(f"{changed}, and {missing} is not there as it was written; try again")
        message = self._message(found, removed)
        by = self._half_undone(found)
        if by is not None:
            raise RefusedError(
                f"{self._root}: {by} has begun and is not finished, so files may be gone that "
                f"commits still name ({message}); finish it first: hudi-py recover"
            )
        raise CorruptMetadata(message)

    def _message(self, found: list[Mismatch], removed: Removals) -> str:
        first = found[0]
        more = f" (and {len(found) - 1} more in this partition)" if len(found) > 1 else ""
        by = removed.get((first.file.partition_path, first.file.name))
        story = f"; {by[-1]} removed it, and what made that right was undone since" if by else ""
        return mismatch_message(self._root, first, more=more, story=story)

    def _half_undone(self, found: Iterable[Mismatch]) -> Instant | None:
        """What is undoing a commit of these files at this moment, or was interrupted: nothing is damaged then."""
        for restore in self._timeline.pending(Action.RESTORE):
            return restore
        by = undoing(self._contents, {each.file.commit.requested_time for each in found})
        return by if by is not None and by.is_pending else None

    def _removals(self) -> Removals:
        contents: list[tuple[Instant, object]] = []
        for instant in self._timeline.of([Action.CLEAN, Action.ROLLBACK]):
            try:
                if instant.action is Action.CLEAN:
                    read = self._contents.clean if instant.is_completed else self._contents.clean_plan
                    contents.append((instant, read(instant)))
                elif instant.is_completed:
                    contents.append((instant, self._contents.rollback(instant)))
            except (CorruptMetadata, NotFound):  # it only tells the story
                continue
        return removals(contents)


def hold_data(entries: Iterable[Entry]) -> bool:
    """Whether there is a base or log file among them."""
    return any(is_data_file(_name(entry)) for entry in entries)


def has_sizes(entries: Collection[Entry]) -> bool:
    """Whether the listing has sizes; it has them for all files or for none."""
    return next(map(_size, entries), None) is not None

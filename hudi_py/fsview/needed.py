"""
Finds names and sizes of the files that the latest slices of a table must have, without decoding commits.

`hudi_py.fsview.expected` says why they must exist; this finds the same files fast, in the undecoded bytes of commits;
`hudi_py.fsview.group_files` does so for single groups. Files of archived commits are not covered, because nothing on
the active timeline names them.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from operator import itemgetter
from threading import RLock
from typing import Final, NamedTuple

from hudi_py.errors import ConflictError, CorruptMetadata, NotFound
from hudi_py.fsview.covered import CoveredGroups, oldest_beside
from hudi_py.fsview.expected import expected_slices
from hudi_py.fsview.group_files import replaced_in
from hudi_py.fsview.listing import listing_threads
from hudi_py.fsview.named import count_files, count_replaced
from hudi_py.fsview.named_logs import named_files
from hudi_py.fsview.recorded import recorded_sizes
from hudi_py.model.instant import Action, Instant
from hudi_py.model.records import CommitMetadata
from hudi_py.storage.base import Entry
from hudi_py.timeline.archive import load_archived_metadata
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.store import InstantGone
from hudi_py.timeline.timeline import Timeline

_Names = dict[str, set[str]]
"""Partition path to names of files."""
_name = itemgetter(Entry._fields.index("name"))
_LOOKED_BACK: Final = 3  # earlier commits whose files a commit may all have replaced; mostly the last one
_NO_NAMES: Final[frozenset[str]] = frozenset()


class _NeedsDecoding(Exception):
    """A commit names files in a form for which it has to be decoded."""


class _Layer(NamedTuple):
    """
    What one commit adds.

    Args:
        position: Its place among the commits, the newest first.
        bases, logs: Paths of the files that no newer commit replaced.
    """

    position: int
    bases: list[str]
    logs: list[str]


class NeededFiles:
    """
    The files that must exist according to the completed commits of a timeline.

    Args:
        contents: Reads the instants of the table's timeline.
        timeline: The timeline as loaded before the folders are listed.
        until: Only commits up to this time count, for a snapshot of that time.
        counted: Only commits with these requested times count, whatever *until* is: a range of completion times ends
            between them. None for no such limit.
    """

    def __init__(
        self,
        contents: Contents,
        timeline: Timeline,
        until: str | None = None,
        counted: frozenset[str] | None = None,
    ) -> None:
        self._contents = contents
        self._timeline = timeline
        self._until = until
        self._counted = counted
        self._bases: _Names = {}
        self._logs: _Names = {}
        self._layers = self._newest_first()
        self._read_until = 0  # place of the oldest commit whose log files may lie on base files of those read so far
        self._position = -1
        self._lost: NotFound | None = None
        # Folders are listed by several threads, each of which may ask for more commits to be read.
        self._lock = RLock()

    @cached_property
    def commits(self) -> tuple[Instant, ...]:
        """Completed writes, by requested time."""
        completed = self._timeline.writes.completed()
        if self._counted is not None:
            return tuple(i for i in completed if i.requested_time in self._counted)
        return tuple(i for i in completed if self._until is None or i.requested_time <= self._until)

    @cached_property
    def _oldest_beside(self) -> list[int]:
        return oldest_beside(self.commits[::-1])

    @cached_property
    def by_partition(self) -> Mapping[str, AbstractSet[str]]:
        """Partition path to names of the files of its latest slices."""
        try:
            return self._named()
        except NotFound:
            return {}  # a commit was archived or rolled back since; reading it again raises the error

    def are_newest(self, partition_path: str, names: Collection[str], entries: Iterable[Entry]) -> bool:
        """
        Whether the latest slices of a partition have exactly these base files, and all their log files are there.

        Commits are read from the newest on, and only until the answer is known. Older commits may name further groups
        of the partition, but no file of those is left.

        Args:
            partition_path: Path of the partition.
            names: One base file for each group that has files in the folder.
            entries: The files in the folder.
        """
        while True:
            with self._lock:
                here = self._bases.get(partition_path, _NO_NAMES)
                if self._position >= self._read_until and here.issuperset(names):
                    logs = self._logs.get(partition_path)
                    return len(here) == len(names) and (not logs or logs.issubset(map(_name, entries)))
                try:
                    if not self._look_further():
                        return False
                except NotFound:
                    return False

    def count_so_far(self, partition_path: str) -> int:
        """Number of files that the latest slices of a partition must have according to the commits read so far."""
        return len(self._bases.get(partition_path, ())) + len(self._logs.get(partition_path, ()))

    def required(self) -> Mapping[str, frozenset[str]]:
        """
        As `by_partition`, for a write or a deletion, which must not continue without them.

        Raises:
            ConflictError: A commit was archived or rolled back meanwhile.
        """
        try:
            return {partition: frozenset(names) for partition, names in self._named().items()}
        except NotFound as error:
            raise ConflictError(f"{error}: another process archived or undid it meanwhile; try again") from error

    @cached_property
    def sizes(self) -> Mapping[str, Mapping[str, int]]:
        """The same with sizes in bytes as the commits recorded them, 0 if unknown; log files may be larger."""
        return self.recorded(self.by_partition)

    def recorded(self, files: Mapping[str, Collection[str]]) -> Mapping[str, Mapping[str, int]]:
        """
        As `sizes`, for some files; commits are read only if one of these may be theirs.

        Args:
            files: Partition path to file names.
        """
        return recorded_sizes(self._contents, self.commits, files)

    def _named(self) -> Mapping[str, AbstractSet[str]]:
        with self._lock:
            while self._look_further():
                pass
            if not self._logs:
                return self._bases
            none: AbstractSet[str] = frozenset()
            return {
                path: self._bases.get(path, none) | self._logs.get(path, none)
                for path in self._bases.keys() | self._logs.keys()
            }

    def _look_further(self) -> bool:
        """Add the files of the next older commit; False if all were read."""
        if self._lost is not None:
            raise self._lost
        try:
            layer = self._next_layer()
        except NotFound as error:
            self._lost = error
            raise
        if layer is None:
            self._position = len(self.commits)
            return False
        self._position = layer.position
        self._read_until = max(self._read_until, self._oldest_beside[layer.position])
        _add(self._bases, layer.bases)
        _add(self._logs, layer.logs)
        return True

    def _next_layer(self) -> _Layer | None:
        try:
            return next(self._layers, None)
        # Names found so far may belong to groups that a commit which cannot be searched wrote later.
        except _NeedsDecoding:
            self._bases.clear()
            self._logs.clear()
            return self._decoded

    def _newest_first(self) -> Iterator[_Layer]:
        """
        The newest files of live groups, commit by commit, the newest first.

        Of an older commit only groups matter that no newer commit wrote a base file of. If newer commits replaced as
        many files of a commit as it wrote, none of its files is needed, and its content is not searched.

        Raises:
            _NeedsDecoding: All commits have to be decoded.
            NotFound: A commit was archived or rolled back since.
        """
        naming = self._contents.store.config.format.log_naming
        covered = CoveredGroups(replaced_in(self._contents, self.commits), tells_slice=naming.tells_slice)
        replaced: Counter[str] = Counter()
        newest_first = self.commits[::-1]
        for position, (instant, data) in enumerate(self._read(newest_first)):
            time = instant.requested_time
            count = count_files(data, time) if replaced[time] else 0
            may_name_logs = instant.action is not Action.COMMIT
            # Otherwise newer commits replaced every file of this one, and there is nothing to find in it. Nothing
            # replaces log files one by one.
            has_logs = bool(may_name_logs and count and b".log." in data)
            if has_logs or not 0 < count == replaced[time]:
                files = named_files(data, time, may_name_logs=may_name_logs)
                if files is None:
                    raise _NeedsDecoding
                has_logs, count = bool(files.logs), len(files.bases)
                logs = covered.newest_logs(instant, files.logs)
                bases = covered.newest_bases(time, files.bases)
                yield _Layer(position, _texts(bases, time), _decoded(logs))
            if not has_logs:
                for other in newest_first[position + 1 : position + 1 + _LOOKED_BACK]:
                    there = count_replaced(data, time, other.requested_time)
                    replaced[other.requested_time] += there
                    count -= there
                    if count <= 0:
                        break

    def _read(self, instants: Sequence[Instant]) -> Iterator[tuple[Instant, bytes]]:
        """
        Each commit with its content, which is not kept: commits may be large and many.

        On object stores each read is a round trip, so several commits are read at the same time.
        """
        store = self._contents.store
        threads = listing_threads(store.storage)
        if threads <= 1:
            yield from ((instant, store.look_through(instant)) for instant in instants)
            return
        for start in range(0, len(instants), threads):
            some = instants[start : start + threads]
            with ThreadPoolExecutor(threads) as pool:
                read = list(pool.map(store.look_through, some))
            yield from zip(some, read, strict=True)

    @property
    def _decoded(self) -> _Layer:
        slices = expected_slices(self.metadata, self._contents.store.config.format.log_naming).values()
        bases = [each.base.path for each in slices if each.base is not None]
        logs = [log.path for each in slices for log in each.logs]
        return _Layer(len(self.commits) - 1, bases, logs)

    @cached_property
    def metadata(self) -> list[tuple[Instant, CommitMetadata]]:
        """
        The completed commits, decoded, also those that were archived meanwhile; without damaged ones.

        Raises:
            InstantGone: One was rolled back meanwhile, or archived without its content.
        """
        self._prefetch()
        found = []
        gone: dict[Instant, InstantGone] = {}
        for instant in self.commits:
            try:
                found.append((instant, self._contents.commit(instant)))
            except InstantGone as error:
                gone[instant] = error
            except CorruptMetadata as error:  # a snapshot may not need it; the check reports it
                self._contents.pass_over(instant, error)
        found += self._archived(gone)
        return sorted(found, key=lambda each: each[0].requested_time)

    def _archived(self, gone: Mapping[Instant, InstantGone]) -> Iterator[tuple[Instant, CommitMetadata]]:
        store = self._contents.store
        archived = load_archived_metadata(store.storage, store.config, [each.requested_time for each in gone])
        by_time = {instant.requested_time: metadata for instant, metadata in archived.items()}
        for instant, error in gone.items():
            metadata = by_time.get(instant.requested_time)
            if metadata is None:
                raise error
            yield instant, metadata

    def _prefetch(self) -> None:
        """On object stores each commit is a round trip."""
        store = self._contents.store
        threads = listing_threads(store.storage)
        if threads > 1:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(self._read_ahead, self.commits))

    def _read_ahead(self, instant: Instant) -> None:
        with contextlib.suppress(NotFound):
            self._contents.store.read(instant)


def _texts(paths: Collection[bytes], time: str) -> list[str]:
    """Full paths for those from `base_paths`; built all at once, for no path contains a NUL."""
    end = f"_{time}.parquet"
    return f"{end}\0".join((*b"\0".join(paths).decode().split("\0"), ""))[:-1].split("\0") if paths else []


def _decoded(paths: list[bytes]) -> list[str]:
    return b"\0".join(paths).decode().split("\0") if paths else []


def _add(names: _Names, paths: Iterable[str]) -> None:
    """Add files, whose partitions come one after the other as a rule."""
    last, here = None, set[str]()
    for path in paths:
        partition, _, name = path.rpartition("/")
        if partition != last:
            last, here = partition, names.setdefault(partition, set())
        here.add(name)

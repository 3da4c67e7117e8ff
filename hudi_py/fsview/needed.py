"""
Finds names and sizes of the files that the latest slices of a table must have, without decoding commits.

`hudi_py.fsview.expected` says why they must exist; this finds the same files fast, in the undecoded bytes of commits.
Files of archived commits are not covered, because nothing on the active timeline names them.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import chain, compress, zip_longest
from operator import not_
from typing import Final

from hudi_py.errors import ConflictError, CorruptMetadata, NotFound
from hudi_py.fsview.build import GroupKey
from hudi_py.fsview.expected import (
    ExpectedSlice,
    Written,
    expected_slices,
    latest_slices,
    replaced_groups,
    written_files,
)
from hudi_py.fsview.listing import listing_threads
from hudi_py.fsview.named import (
    base_paths,
    base_sizes,
    base_sizes_of_groups,
    count_files,
    count_replaced,
    group_of,
)
from hudi_py.model.files import join_path
from hudi_py.model.instant import Action, Instant
from hudi_py.model.records import CommitMetadata
from hudi_py.runtime.log import log
from hudi_py.timeline.archive import load_archived_replaced
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline

_Files = tuple[list[str], list[int]]
"""Paths or names, and their sizes; without sizes if these were not asked for."""
_LOOKED_BACK: Final = 3  # earlier commits whose files a commit may all have replaced; mostly the last one
_NO_NAMES: Final[frozenset[str]] = frozenset()


class _NeedsDecoding(Exception):
    """A commit names files in a form for which it has to be decoded."""


class NeededFiles:
    """
    The files that must exist according to the completed commits of a timeline.

    Args:
        contents: Reads the instants of the table's timeline.
        timeline: The timeline as loaded before the folders are listed.
        until: Only commits up to this time count, for a snapshot of that time.
    """

    def __init__(self, contents: Contents, timeline: Timeline, until: str | None = None) -> None:
        self._contents = contents
        self._timeline = timeline
        self._until = until
        self._names: dict[str, set[str]] = {}
        self._layers = self._newest_first(with_sizes=False)
        self._lost: NotFound | None = None

    @cached_property
    def commits(self) -> tuple[Instant, ...]:
        """Completed writes, by requested time."""
        completed = self._timeline.writes.completed()
        return tuple(i for i in completed if self._until is None or i.requested_time <= self._until)

    @cached_property
    def by_partition(self) -> Mapping[str, AbstractSet[str]]:
        """Partition path to names of the files of its latest slices."""
        # Asked for already: names and sizes come from the same pass.
        if "sizes" in self.__dict__:
            return {partition: files.keys() for partition, files in self.sizes.items()}
        try:
            return self._named()
        except NotFound:
            return {}  # a commit was archived or rolled back since; reading it again raises the error

    def are_newest(self, partition_path: str, names: Collection[str]) -> bool:
        """
        Whether the latest slices of a partition are exactly these base files, as far as commits were read.

        Commits are read from the newest on, and only until the answer is known. Older commits may name further groups
        of the partition, but no file of those is left.

        Args:
            names: One base file for each group that has files in the folder.
        """
        while True:
            here = self._names.get(partition_path, _NO_NAMES)
            if here.issuperset(names):
                return len(here) == len(names)
            try:
                if not self._look_further():
                    return False
            except NotFound:
                return False

    def of_write(self) -> Mapping[str, frozenset[str]]:
        """
        As `by_partition`, for a write, which must not continue without them.

        Raises:
            ConflictError: A commit was archived or rolled back meanwhile.
        """
        try:
            return {partition: frozenset(names) for partition, names in self._named().items()}
        except NotFound as error:
            raise ConflictError(f"{error}: another process archived or undid it meanwhile; try again") from error

    @cached_property
    def sizes(self) -> dict[str, dict[str, int]]:
        """The same with sizes in bytes as the commits recorded them, 0 if unknown; log files may be larger."""
        try:
            sizes = _joined(self._newest_first(with_sizes=True))
        except _NeedsDecoding:
            sizes = self._decoded
        except NotFound:
            return {}
        return {partition: dict(zip(*files, strict=True)) for partition, files in _by_partition(*sizes).items()}

    def sizes_of(self, groups: Mapping[str, Collection[str]]) -> dict[str, dict[str, int]]:
        """
        As `sizes`, for some groups; commits are read newest first, until all groups are found.

        Args:
            groups: Partition path to file ids.

        Raises:
            CorruptMetadata: A replacecommit does not decode.
        """
        files = self._quick_sizes_of(groups)
        if files is None:
            files = [(file.path, file.size_bytes) for each in self.newest_of(groups).values() for file in each.files]
        sizes: dict[str, dict[str, int]] = {}
        for path, size in files:
            partition, _, name = path.rpartition("/")
            sizes.setdefault(partition, {})[name] = size
        return sizes

    def newest_of(self, groups: Mapping[str, Collection[str]]) -> dict[GroupKey, ExpectedSlice]:
        """
        The files that decoded commits name for the latest slices of some groups.

        Some log files may be left out, and all files written before a commit that does not decode.

        Args:
            groups: Partition path to file ids.

        Returns:
            The groups that a commit names, without replaced ones.

        Raises:
            CorruptMetadata: A replacecommit does not decode.
        """
        left = {(path, file_id) for path, file_ids in groups.items() for file_id in file_ids}
        wanted, layers = frozenset(left), list[list[Written]]()
        for instant in reversed(self.commits):
            if not left:
                break
            try:
                written = written_files(
                    instant, self._contents.commit(instant), self._contents.store.config.format.log_naming
                )
                layers.append([each for each in written if (each.partition_path, each.file_id) in wanted])
            except NotFound:
                break
            except CorruptMetadata as error:
                log.warning("view.commit.unreadable", instant=instant.requested_time, reason=str(error))
                break
            # A base file ends the search for its group: older commits name only files below it. Log files do not.
            left.difference_update((each.partition_path, each.file_id) for each in layers[-1] if not each.is_log)
        found = latest_slices(file for layer in reversed(layers) for file in layer)
        replaced = self._replaced_groups() if found else ()
        return {key: each for key, each in found.items() if join_path(*key).encode() not in replaced}

    def _quick_sizes_of(self, groups: Mapping[str, Collection[str]]) -> list[tuple[str, int]] | None:
        """The same from undecoded commits; None if a commit has to be decoded."""
        left = {join_path(path, file_id).encode() for path, file_ids in groups.items() for file_id in file_ids}
        found: list[tuple[bytes, str, int]] = []
        for instant in reversed(self.commits):
            if not left:
                break
            time = instant.requested_time
            try:
                sizes = base_sizes_of_groups(self._contents.store.read(instant), time, left)
            except NotFound:
                break
            if sizes is None:
                return None
            found += ((path, time, size) for path, size in sizes.items())
            left.difference_update(map(group_of, sizes))
        gone = self._replaced_groups() if found else ()
        return [
            (f"{path.decode()}_{time}.parquet", size)
            for path, time, size in found
            if not gone or group_of(path) not in gone
        ]

    def _named(self) -> Mapping[str, AbstractSet[str]]:
        while self._look_further():
            pass
        return self._names

    def _look_further(self) -> bool:
        """Add the files of the next older commit; False if all were read."""
        if self._lost is not None:
            raise self._lost
        try:
            files = self._next_files()
        except NotFound as error:
            self._lost = error
            raise
        if files is None:
            return False
        for partition, (names, _) in _by_partition(files[0], ()).items():
            self._names.setdefault(partition, set()).update(names)
        return True

    def _next_files(self) -> _Files | None:
        try:
            return next(self._layers, None)
        # Names found so far may belong to groups that a commit which cannot be searched wrote later.
        except _NeedsDecoding:
            self._names.clear()
            return self._decoded

    def _newest_first(self, *, with_sizes: bool) -> Iterator[_Files]:
        """
        The newest files of live groups, with or without sizes, commit by commit, the newest first.

        Of an older commit only groups matter that no newer commit wrote. If newer commits replaced as many files of a
        commit as it wrote, none of its files is needed, and its content is not searched.

        Raises:
            _NeedsDecoding: All commits have to be decoded.
            NotFound: A commit was archived or rolled back since.
        """
        known = self._replaced_groups()
        replaced: Counter[str] = Counter()
        is_first = True
        newest: list[bytes] = []
        newest_first = self.commits[::-1]
        for position, (instant, data) in enumerate(self._read(newest_first), 1):
            time = instant.requested_time
            count = count_files(data, time)
            names_logs = instant.action is not Action.COMMIT and b".log." in data  # which nothing replaces one by one
            # Otherwise newer commits replaced every file of this one, and there is nothing to find in it.
            if names_logs or not 0 < count == replaced[time]:
                paths = base_paths(data, time)
                if paths is None:
                    raise _NeedsDecoding
                needed = paths
                if known or not is_first:
                    known.update(_groups(newest))
                    newest, groups = [], _groups(paths)
                    needed = list(compress(paths, map(not_, map(known.__contains__, groups))))
                    known.update(groups)
                else:
                    newest = paths  # their groups are computed only if an older commit is searched, too
                is_first = False
                sizes = base_sizes(data, time, frozenset(needed)) if with_sizes else {}
                if sizes is None:
                    raise _NeedsDecoding
                yield _texts(sizes or needed, time), list(sizes.values())
            if not names_logs:
                for other in newest_first[position : position + _LOOKED_BACK]:
                    there = count_replaced(data, time, other.requested_time)
                    replaced[other.requested_time] += there
                    count -= there
                    if count <= 0:
                        break

    def _replaced_groups(self) -> set[bytes]:
        """Replaced groups: partition path and file id, as `group_of` returns them."""
        replacing = (self._contents.commit(i) for i in self.commits if i.action is Action.REPLACE_COMMIT)
        return {join_path(*key).encode() for metadata in replacing for key in replaced_groups(metadata)}

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

    @cached_property
    def _decoded(self) -> _Files:
        slices = expected_slices(self.metadata, self._contents.store.config.format.log_naming).values()
        files = [file for each in slices for file in each.files]
        return [file.path for file in files], [file.size_bytes for file in files]

    @cached_property
    def metadata(self) -> list[tuple[Instant, CommitMetadata]]:
        """The completed commits, decoded; without damaged ones."""
        self._prefetch()
        found = []
        for instant in self.commits:
            try:
                found.append((instant, self._contents.commit(instant)))
            except CorruptMetadata as error:  # a snapshot may not need it; the check reports it
                log.warning("view.commit.unreadable", instant=instant.requested_time, reason=str(error))
        return found

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


def _groups(paths: list[bytes]) -> list[bytes]:
    """Paths from `base_paths` without the end of the name: partition path and file id."""
    return [path[: path.find(b"_", path.rfind(b"/") + 1)] for path in paths]


def _texts(paths: Collection[bytes], time: str) -> list[str]:
    """Full paths for those from `base_paths`; built all at once, for no path contains a NUL."""
    end = f"_{time}.parquet"
    return f"{end}\0".join((*b"\0".join(paths).decode().split("\0"), ""))[:-1].split("\0") if paths else []


def _joined(found: Iterable[_Files]) -> _Files:
    layers = list(found)
    names, sizes = zip(*layers, strict=True) if layers else ((), ())
    return list(chain.from_iterable(names)), list(chain.from_iterable(sizes))


def _by_partition(paths: Iterable[str], sizes: Iterable[int]) -> dict[str, _Files]:
    """Names and sizes by partition path; without sizes if there are none."""
    found: dict[str, _Files] = {}
    for path, size in zip_longest(paths, sizes):
        partition, _, name = path.rpartition("/")
        here = found.get(partition)
        if here is None:
            here = found[partition] = ([], [])
        here[0].append(name)
        if size is not None:
            here[1].append(size)
    return found


def archived_replacements(contents: Contents, since: Mapping[GroupKey, str]) -> set[GroupKey]:
    """
    The groups that an archived replacecommit replaced: archival went beyond a savepoint (rule D-7).

    Args:
        since: Groups to look up, each with the time of the commit that wrote its newest file.
    """
    store = contents.store
    try:
        replaced = load_archived_replaced(store.storage, store.config)
    except (CorruptMetadata, NotFound) as error:
        log.warning("view.archive.unreadable", error=str(error))
        return set()
    return {key for key, written in since.items() if replaced.get(key, "") > written}

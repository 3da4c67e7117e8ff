"""
Names and sizes of the files that the latest slices of a table must consist of, found without decoding commits.

See `hudi_py.fsview.expected` for why they must be there; this is the same, quickly, from what stands in the commits.
Files of archived commits are not covered: nothing on the active timeline names them.
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
"""Paths or names, and sizes of the same; no sizes where they were not asked for."""
_LOOKED_BACK: Final = 3  # commits before one that it may have replaced all files of; mostly it is the last one
_NO_NAMES: Final[frozenset[str]] = frozenset()


class _DecodingTells(Exception):
    """A commit names files in a way that only decoding understands."""


class NeededFiles:
    """
    What the completed commits of a timeline say that must be there.

    Args:
        contents: Reads the instants of the table's timeline.
        timeline: As loaded before the folders are listed.
        until: Only what was committed up to this time counts, as a snapshot of that time needs it.
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
        if "sizes" in self.__dict__:
            return {partition: files.keys() for partition, files in self.sizes.items()}
        try:
            return self._named()
        except NotFound:
            return {}  # archived or rolled back since: who asks for it is told

    def are_newest(self, partition_path: str, names: Collection[str]) -> bool:
        """
        Whether the latest slices of a partition's groups are these base files, and no others that are known so far.

        Commits are looked through from the newest on, only as far as that takes: the older ones may name further groups
        of the partition, of which then no file is left.

        Args:
            names: One for each group that has files there.
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
        As `by_partition`, for a write, which must not go without.

        Raises:
            ConflictError: A commit was archived or rolled back meanwhile.
        """
        try:
            return {partition: frozenset(names) for partition, names in self._named().items()}
        except NotFound as error:
            raise ConflictError(f"{error}: another process archived or undid it meanwhile; try again") from error

    @cached_property
    def sizes(self) -> dict[str, dict[str, int]]:
        """The same with the sizes in bytes that the commits recorded, 0 where unknown; a log file may be larger."""
        try:
            sizes = _joined(self._newest_first(with_sizes=True))
        except _DecodingTells:
            sizes = self._decoded
        except NotFound:
            return {}
        return {partition: dict(zip(*files, strict=True)) for partition, files in _by_partition(*sizes).items()}

    def sizes_of(self, groups: Mapping[str, Collection[str]]) -> dict[str, dict[str, int]]:
        """
        As `sizes`, of some groups; only as many commits are read as that takes, newest first.

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
        What the commits name for the latest slices of some groups, decoded.

        Some log files may be left out, and everything that was written before a commit that does not decode.

        Args:
            groups: Partition path to file ids.

        Returns:
            Without the groups that no commit names and the replaced ones.

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
            left.difference_update((each.partition_path, each.file_id) for each in layers[-1] if not each.is_log)
        found = latest_slices(file for layer in reversed(layers) for file in layer)
        replaced = self._replaced_groups() if found else ()
        return {key: each for key, each in found.items() if join_path(*key).encode() not in replaced}

    def _quick_sizes_of(self, groups: Mapping[str, Collection[str]]) -> list[tuple[str, int]] | None:
        """The same from the bytes; None where decoding has to tell."""
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
        """Add what the next older commits name; False when all were looked through."""
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
        except _DecodingTells:
            self._names.clear()
            return self._decoded

    def _newest_first(self, *, with_sizes: bool) -> Iterator[_Files]:
        """
        The newest files of live groups, without sizes or with them, those that the newest commit names first.

        From the newest commit on: of the older ones only the groups matter that no newer one wrote. Where a commit's
        files are as many as those that newer commits replaced, none of them is needed, and none is looked for.

        Raises:
            _DecodingTells: Decoding has to tell all of them.
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
            if not 0 < count == replaced[time]:
                paths = base_paths(data, time)
                if paths is None:
                    raise _DecodingTells
                needed = paths
                if known or not is_first:
                    known.update(_groups(newest))
                    newest, groups = [], _groups(paths)
                    needed = list(compress(paths, map(not_, map(known.__contains__, groups))))
                    known.update(groups)
                else:
                    newest = paths  # of which groups are made only where an older commit is looked through too
                is_first = False
                sizes = base_sizes(data, time, frozenset(needed)) if with_sizes else {}
                if sizes is None:
                    raise _DecodingTells
                yield _texts(sizes or needed, time), list(sizes.values())
            if instant.action is Action.COMMIT or b".log." not in data:
                for other in newest_first[position : position + _LOOKED_BACK]:
                    there = count_replaced(data, time, other.requested_time)
                    replaced[other.requested_time] += there
                    count -= there
                    if count <= 0:
                        break

    def _replaced_groups(self) -> set[bytes]:
        """Path of each, without the end of the name."""
        replacing = (self._contents.commit(i) for i in self.commits if i.action is Action.REPLACE_COMMIT)
        return {join_path(*key).encode() for metadata in replacing for key in replaced_groups(metadata)}

    def _read(self, instants: Sequence[Instant]) -> Iterator[tuple[Instant, bytes]]:
        """
        Each with its content, which is not held: commits may be large and many.

        On object stores each is a round trip, so there some are read at once.
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
        """The same with what they hold, decoded; without those that are damaged."""
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
    """What `base_paths` gives, each without the end of the name: partition path and file id."""
    return [path[: path.find(b"_", path.rfind(b"/") + 1)] for path in paths]


def _texts(paths: Collection[bytes], time: str) -> list[str]:
    """What `base_paths` gives of a commit, in full; no path holds a NUL, so all are made at once."""
    end = f"_{time}.parquet"
    return f"{end}\0".join((*b"\0".join(paths).decode().split("\0"), ""))[:-1].split("\0") if paths else []


def _joined(found: Iterable[_Files]) -> _Files:
    layers = list(found)
    names, sizes = zip(*layers, strict=True) if layers else ((), ())
    return list(chain.from_iterable(names)), list(chain.from_iterable(sizes))


def _by_partition(paths: Iterable[str], sizes: Iterable[int]) -> dict[str, _Files]:
    """Names and sizes by partition path; without sizes where there are none."""
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
        since: Groups to ask about, each with the time of the commit that wrote its newest file.
    """
    store = contents.store
    try:
        replaced = load_archived_replaced(store.storage, store.config)
    except (CorruptMetadata, NotFound) as error:
        log.warning("view.archive.unreadable", error=str(error))
        return set()
    return {key for key, written in since.items() if replaced.get(key, "") > written}

"""
Names and sizes of the files that the latest slices of a table must consist of, found without decoding commits.

See `hudi_py.fsview.expected` for why they must be there; this is the same, quickly, from what stands in the commits.
Files of archived commits are not covered: nothing on the active timeline names them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

from hudi_py.errors import ConflictError, CorruptMetadata, NotFound
from hudi_py.fsview.build import GroupKey
from hudi_py.fsview.expected import expected_slices, replaced_groups
from hudi_py.fsview.listing import listing_threads
from hudi_py.fsview.named import base_paths, base_sizes
from hudi_py.model.files import join_path
from hudi_py.model.instant import Action, Instant
from hudi_py.model.records import CommitMetadata
from hudi_py.runtime.log import log
from hudi_py.timeline.archive import load_archived_contents
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline


class NeededFiles:
    """
    What the completed commits of a timeline say that must be there.

    Args:
        contents: Of the table's timeline.
        timeline: As loaded before the folders are listed.
        until: Only what was committed up to this time counts, as a snapshot of that time needs it.
    """

    def __init__(self, contents: Contents, timeline: Timeline, until: str | None = None) -> None:
        self._contents = contents
        self._timeline = timeline
        self._until = until

    @cached_property
    def commits(self) -> tuple[Instant, ...]:
        """Completed writes, by requested time."""
        completed = self._timeline.writes.completed()
        return tuple(i for i in completed if self._until is None or i.requested_time <= self._until)

    @cached_property
    def by_partition(self) -> dict[str, frozenset[str]]:
        """Partition path to names of the files of its latest slices."""
        try:
            return self._named()
        except NotFound:
            return {}  # archived or rolled back since: who asks for it is told

    def of_write(self) -> Mapping[str, frozenset[str]]:
        """
        As `by_partition`, for a write, which must not go without.

        Raises:
            ConflictError: A commit was archived or rolled back meanwhile.
        """
        try:
            return self._named()
        except NotFound as error:
            raise ConflictError(f"{error}: another process archived or undid it meanwhile; try again") from error

    @cached_property
    def sizes(self) -> dict[str, dict[str, int]]:
        """The same with the sizes in bytes that the commits recorded, 0 where unknown; a log file may be larger."""
        try:
            sizes = self._recorded_sizes()
        except NotFound:
            return {}
        return _by_partition(self._decoded if sizes is None else sizes)

    def _named(self) -> dict[str, frozenset[str]]:
        newest = self._newest
        paths = self._decoded if newest is None else [(_path(path, time), 0) for path, time in newest]
        return {partition: frozenset(names) for partition, names in _by_partition(paths).items()}

    @cached_property
    def _newest(self) -> list[tuple[bytes, str]] | None:
        """What `base_paths` gives for the newest files of live groups, with their times; None: decoding has to tell."""
        self._prefetch()
        newest: dict[bytes, tuple[bytes, str]] = {}
        replaced: set[GroupKey] = set()
        for instant in self.commits:
            paths = base_paths(self._contents.store.read(instant), instant.requested_time)
            if paths is None:
                return None
            newest.update(
                (path[: path.find(b"_", path.rfind(b"/") + 1)], (path, instant.requested_time)) for path in paths
            )
            if instant.action is Action.REPLACE_COMMIT:
                replaced.update(replaced_groups(self._contents.commit(instant)))
        gone = {join_path(*key).encode() for key in replaced}
        return [file for group, file in newest.items() if group not in gone]

    def _recorded_sizes(self) -> list[tuple[str, int]] | None:
        newest = self._newest
        if newest is None:
            return None
        by_time: dict[str, set[bytes]] = {}
        for path, time in newest:
            by_time.setdefault(time, set()).add(path)
        found: list[tuple[str, int]] = []
        for instant in self.commits:
            wanted = by_time.get(instant.requested_time)
            if wanted is None:
                continue
            sizes = base_sizes(self._contents.store.read(instant), instant.requested_time, wanted)
            if sizes is None:
                return None
            found += ((_path(path, instant.requested_time), size) for path, size in sizes.items())
        return found

    @cached_property
    def _decoded(self) -> list[tuple[str, int]]:
        slices = expected_slices(self.metadata, self._contents.store.layout.version).values()
        return [(file.path, file.size_bytes) for each in slices for file in each.files]

    @cached_property
    def metadata(self) -> list[tuple[Instant, CommitMetadata]]:
        """The same with what they hold, decoded; without those that are damaged."""
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


def _path(path: bytes, time: str) -> str:
    return f"{path.decode()}_{time}.parquet"


def _by_partition(files: Iterable[tuple[str, int]]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for path, size in files:
        partition, _, name = path.rpartition("/")
        found.setdefault(partition, {})[name] = size
    return found


def archived_replacements(contents: Contents, since: Mapping[GroupKey, str]) -> set[GroupKey]:
    """
    The groups that an archived replacecommit replaced: archival went beyond a savepoint (rule D-7).

    Args:
        since: Groups to ask about, each with the time of the commit that wrote its newest file.
    """
    store = contents.store
    try:
        archived = load_archived_contents(store.storage, store.config)
    except (CorruptMetadata, NotFound) as error:
        log.warning("view.archive.unreadable", error=str(error))
        return set()
    replaced = set()
    for instant, content in archived.items():
        for partition, file_ids in ((content or {}).get("partitionToReplaceFileIds") or {}).items():
            keys = {(partition, file_id) for file_id in file_ids}
            replaced |= {key for key in keys & since.keys() if instant.requested_time > since[key]}
    return replaced

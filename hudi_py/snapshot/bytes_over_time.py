"""Bytes of a table over time by what they are there for, from what its instants hold. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from hudi_py.model.files import BaseFile, parse_data_file
from hudi_py.model.instant import Action, Instant

FILES_MAX: Final = 2_000_000
"""More files than that, counted over the whole timeline, are not followed: their names take memory."""

Group = tuple[str, str]
"""Partition path and file id."""


File = tuple[str, str]
"""Partition path and name."""


@attrs.frozen
class Stored:
    """
    The data files of a table after an action, in bytes, each file under one reason.

    Args:
        instant: The action.
        live: The newest rows: what readers of the latest snapshot opened.
        superseded: Versions that a newer one of their file group took the place of, and that were not deleted yet.
        replaced: Files of groups that a clustering, an overwrite or a drop replaced, not deleted yet.
        savepoint: Of these two, what a savepoint holds that exists today, since it was made.
    """

    instant: Instant
    live: int
    superseded: int
    replaced: int
    savepoint: int


@attrs.frozen
class _Change:
    """What an action wrote, superseded, held and deleted."""

    instant: Instant
    written: tuple[tuple[str, str, int], ...]
    replaced: tuple[Group, ...]
    held: tuple[File, ...]
    deleted: tuple[File, ...]


class BytesOverTime:
    """
    Follows the files of a table from instant to instant.

    Only completed actions count. Files of commits that the timeline and its archive do not know any more are missing
    here, so the last sum may be smaller than that of the files.
    """

    def __init__(self) -> None:
        self._changes: list[_Change] = []
        self._names = 0

    def add(self, instant: Instant, content: Any) -> None:
        """Take an instant with its decoded content, in any order; anything but an object counts as empty."""
        if not instant.is_completed or not isinstance(content, Mapping) or self._names > FILES_MAX:
            return
        is_savepoint = instant.action is Action.SAVEPOINT
        change = _Change(
            instant,
            tuple(_written(content)),
            tuple(_replaced(content)),
            tuple(_held(content)) if is_savepoint else (),
            tuple(_deleted(instant, content)),
        )
        self._names += len(change.written) + len(change.held) + len(change.deleted)
        if change.written or change.replaced or change.held or change.deleted:
            self._changes.append(change)

    def points(self) -> tuple[Stored, ...]:
        """Return the sums after each action, in order of completion; nothing if there are too many files."""
        if self._names > FILES_MAX:
            return ()
        state = _State()
        return tuple(state.after(change) for change in sorted(self._changes, key=lambda each: _completed(each.instant)))


class _Reason(enum.Enum):
    """Why the bytes of a file are there."""

    LIVE = "live"
    SUPERSEDED = "superseded"
    REPLACED = "replaced"
    SAVEPOINT = "savepoint"

    __hash__ = object.__hash__


class _State:
    """The data files so far."""

    def __init__(self) -> None:
        self._sizes: dict[File, int] = {}
        self._live: dict[Group, dict[str, str]] = {}  # names of the newest slice, each with the time of its write
        self._replaced: set[File] = set()
        self._held: set[File] = set()
        self._sums = dict.fromkeys(_Reason, 0)

    def after(self, change: _Change) -> Stored:
        for partition, name, size in change.written:
            self._write(change.instant, partition, name, size)
        for group in change.replaced:
            names = self._live.pop(group, {})
            self._replaced.update((group[0], name) for name in names)
            self._retire(group, names)
        for file in change.held:
            self._hold(file)
        for file in change.deleted:
            self._delete(file)
        return Stored(change.instant, *(self._sums[reason] for reason in _Reason))

    def _reason(self, file: File) -> _Reason:
        """Of a file that is not live."""
        if file in self._held:
            return _Reason.SAVEPOINT
        return _Reason.REPLACED if file in self._replaced else _Reason.SUPERSEDED

    def _write(self, instant: Instant, partition: str, name: str, size: int) -> None:
        file = parse_data_file(name)
        if file is None:
            return
        group = (partition, file.file_id)
        there = self._live.setdefault(group, {})
        if isinstance(file, BaseFile):
            # Log files of a slice that a compaction had opened before its base file was there belong to that slice.
            opened = instant.requested_time
            passed = {each: time for each, time in there.items() if each != name and time <= opened}
            for each in passed:
                del there[each]
            self._retire(group, passed)
        key = (partition, name)
        before = self._sizes.get(key, 0)
        if before:
            self._sums[_Reason.LIVE if name in there else self._reason(key)] -= before
        # A log file of layout 1 is written by several commits, and each records its whole size.
        self._sizes[key] = size
        self._sums[_Reason.LIVE] += size
        there[name] = _completed(instant)[0]

    def _retire(self, group: Group, names: Iterable[str]) -> None:
        """Names that were live, and are not any more."""
        for file in ((group[0], name) for name in names):
            size = self._sizes.get(file, 0)
            self._sums[_Reason.LIVE] -= size
            self._sums[self._reason(file)] += size

    def _hold(self, file: File) -> None:
        before = self._reason(file)
        self._held.add(file)
        parsed = parse_data_file(file[1])
        if parsed is not None and file[1] not in self._live.get((file[0], parsed.file_id), {}):
            size = self._sizes.get(file, 0)
            self._sums[before] -= size
            self._sums[_Reason.SAVEPOINT] += size

    def _delete(self, file: File) -> None:
        size, parsed = self._sizes.pop(file, None), parse_data_file(file[1])
        if size is None or parsed is None:
            return
        was_live = self._live.get((file[0], parsed.file_id), {}).pop(file[1], None) is not None
        self._sums[_Reason.LIVE if was_live else self._reason(file)] -= size


def _completed(instant: Instant) -> tuple[str, str]:
    # Layout 1 has no completion times.
    return (instant.completion_time or instant.requested_time, instant.requested_time)


def _written(content: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    for partition, stats in _items(content.get("partitionToWriteStats")):
        for stat in stats if isinstance(stats, list) else ():
            path = stat.get("path") if isinstance(stat, Mapping) else None
            if isinstance(path, str) and path:
                size = stat.get("fileSizeInBytes")
                # A size below 0 is unknown.
                yield partition, path.rpartition("/")[2], size if isinstance(size, int) and size > 0 else 0


def _replaced(content: Mapping[str, Any]) -> Iterator[Group]:
    for partition, ids in _items(content.get("partitionToReplaceFileIds")):
        yield from ((partition, str(file_id)) for file_id in (ids if isinstance(ids, list) else ()))


def _held(content: Mapping[str, Any]) -> Iterator[File]:
    for partition, found in _items(content.get("partitionMetadata")):
        names = found.get("savepointDataFile") if isinstance(found, Mapping) else None
        yield from ((partition, str(name)) for name in (names if isinstance(names, list) else ()))


def _deleted(instant: Instant, content: Mapping[str, Any]) -> Iterator[File]:
    if instant.action is not Action.CLEAN:  # what rollbacks and restores delete is of writes that the timeline forgot
        return
    inner = content.get("hoodieCleanMetadata")  # as one of several contents, in the archive of layout 1
    for partition, done in _items((inner if isinstance(inner, Mapping) else content).get("partitionMetadata")):
        found = done if isinstance(done, Mapping) else {}
        for name in ("deletePathPatterns", "successDeleteFiles"):
            texts = found.get(name)
            # Old releases recorded whole paths.
            yield from (
                (partition, str(text).rpartition("/")[2]) for text in (texts if isinstance(texts, list) else ())
            )


def _items(value: Any) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, Mapping) else ()

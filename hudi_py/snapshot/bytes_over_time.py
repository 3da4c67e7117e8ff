"""Bytes of a table over time, the newest rows and older versions, from what its instants hold. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from hudi_py.model.files import BaseFile, parse_data_file
from hudi_py.model.instant import Action, Instant

FILES_MAX: Final = 2_000_000
"""More files than that, counted over the whole timeline, are not followed: their names take memory."""

Group = tuple[str, str]
"""Partition path and file id."""


@attrs.frozen
class Stored:
    """
    The data files of a table after an action.

    Args:
        instant: The action.
        live: Bytes of the newest rows: what readers of the latest snapshot opened.
        older: Bytes of older versions that were not deleted yet.
    """

    instant: Instant
    live: int
    older: int


@attrs.frozen
class _Change:
    """What an action wrote, superseded and deleted; paths as pairs of partition path and name."""

    instant: Instant
    written: tuple[tuple[str, str, int], ...]
    replaced: tuple[Group, ...]
    deleted: tuple[tuple[str, str], ...]


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
        change = _Change(
            instant, tuple(_written(content)), tuple(_replaced(content)), tuple(_deleted(instant, content))
        )
        self._names += len(change.written) + len(change.deleted)
        if change.written or change.replaced or change.deleted:
            self._changes.append(change)

    def points(self) -> tuple[Stored, ...]:
        """Return the sums after each action, in order of completion; nothing if there are too many files."""
        if self._names > FILES_MAX:
            return ()
        state = _State()
        return tuple(state.after(change) for change in sorted(self._changes, key=lambda each: _completed(each.instant)))


class _State:
    """The data files so far."""

    def __init__(self) -> None:
        self._sizes: dict[tuple[str, str], int] = {}
        self._live: dict[Group, dict[str, str]] = {}  # names of the newest slice, each with the time of its write
        self._sums = [0, 0]  # all, live

    def after(self, change: _Change) -> Stored:
        for partition, name, size in change.written:
            self._write(change.instant, partition, name, size)
        for group in change.replaced:
            self._retire(group, self._live.pop(group, {}))
        for partition, name in change.deleted:
            self._delete(partition, name)
        total, live = self._sums
        return Stored(change.instant, live, total - live)

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
            self._retire(group, passed)
            for each in passed:
                del there[each]
        # A log file of layout 1 is written by several commits, and each records its whole size.
        key = (partition, name)
        grown = size - self._sizes.get(key, 0)
        self._sizes[key] = size
        self._sums[0] += grown
        self._sums[1] += grown if name in there else size
        there[name] = _completed(instant)[0]

    def _retire(self, group: Group, names: Iterable[str]) -> None:
        self._sums[1] -= sum(self._sizes.get((group[0], name), 0) for name in names)

    def _delete(self, partition: str, name: str) -> None:
        size = self._sizes.pop((partition, name), None)
        file = parse_data_file(name)
        if size is None or file is None:
            return
        self._sums[0] -= size
        if self._live.get((partition, file.file_id), {}).pop(name, None) is not None:
            self._sums[1] -= size


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


def _deleted(instant: Instant, content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
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

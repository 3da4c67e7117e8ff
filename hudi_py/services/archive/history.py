"""
Layout 2: archived instants as rows of Parquet files, which a numbered manifest lists; small files are merged by level.

What a crash leaves after each step, and what the next run does:

1. a Parquet file that no manifest names: it is written again, or removed as unused;
2. a manifest that ``_version_`` does not name: it is written again; without ``_version_`` it counts, and is complete;
3. ``_version_`` is replaced, the instants are still active: the manifest has the file, only the instants are deleted.

Source: rules/timeline 5.3; Hudi ``LSMTimelineWriter``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.formats.lsm_history import (
    VERSION_FILE,
    HistoryFile,
    HistoryRow,
    decode_manifest,
    encode_manifest,
    encode_version,
    history_file_name,
    is_history_file,
    iterate_history,
    manifest_name,
    manifest_number,
    read_history,
    write_history,
)
from hudi_py.model.instant import Action, Instant, State
from hudi_py.storage.base import Storage
from hudi_py.timeline.archive_entries import HistorySnapshot, newest_snapshot
from hudi_py.timeline.store import TimelineStore

SNAPSHOTS_KEPT: Final = 3
_LEVEL_MAX: Final = 9  # one digit in the name
_MERGED_BYTES_MAX: Final = 1024**3
_WITH_PLAN: Final = frozenset({Action.CLEAN, Action.COMPACTION, Action.LOG_COMPACTION})


@attrs.frozen
class History:
    """
    The archived timeline of one layout-2 table, to be written.

    Args:
        storage: Storage of the table.
        folder: Folder of the history.
    """

    storage: Storage
    folder: str

    def append(self, rows: tuple[HistoryRow, ...]) -> frozenset[tuple[str, str]]:
        """
        Add rows to the history.

        Args:
            rows: Ascending by requested time.

        Returns:
            Requested time and action of the rows that the history has now: only those instants may be deleted.
        """
        # The name follows from the rows, so a run that repeats an interrupted one recognizes its file.
        snapshot = self._snapshot()
        name = history_file_name(rows[0].requested_time, rows[-1].requested_time, 0)
        if any(file.name == name for file in snapshot.files):  # an earlier run was interrupted after this point
            return self._held(name, rows)
        added = self._write(name, iter((rows,)))
        self._publish(snapshot.number + 1, (*snapshot.files, added))
        return frozenset((row.requested_time, row.action) for row in rows)

    def merge(self, files_per_merge: int) -> int:
        """
        Merge files of each level that has too many into one of the next level; returns the number of merges.

        Args:
            files_per_merge: Number of files of a level that makes a merge due, and that one merge takes.
        """
        merges = 0
        for level in range(_LEVEL_MAX):
            # Upwards: merges of a level add files to the next one, which may be due then.
            while self._merge_level(level, files_per_merge):
                merges += 1
        return merges

    def remove_obsolete(self, snapshots_kept: int) -> None:
        """Remove all but the newest manifests, then every Parquet file that none of those names."""
        names = [entry.name for entry in self.storage.list(self.folder)]
        newest = newest_snapshot(self.storage, self.folder, names).number
        numbers = sorted(number for name in names if (number := manifest_number(name)) is not None)
        # A larger one was left by a crash before `_version_` named it; nobody reads it.
        kept = [number for number in numbers if number <= newest][-snapshots_kept:]
        for number in numbers:
            if number not in kept:
                self.storage.delete(self._path(manifest_name(number)))
        used: set[str] = set()
        for number in kept:
            path = self._path(manifest_name(number))
            try:
                used.update(file.name for file in decode_manifest(self.storage.read(path), self._source(path)))
            except (CorruptMetadata, NotFound):
                return  # the files that this manifest names are unknown: in doubt, nothing is deleted
        for name in names:
            if is_history_file(name) and name not in used:
                self.storage.delete(self._path(name))

    def _held(self, name: str, rows: tuple[HistoryRow, ...]) -> frozenset[tuple[str, str]]:
        """Rows of the existing file; those that became due since the interrupted run go into another file."""
        with self.storage.open_read(self._path(name)) as stream:
            there = frozenset((row.requested_time, row.action) for row in read_history(stream, self._source(name)))
        missing = tuple(row for row in rows if (row.requested_time, row.action) not in there)
        # The name promises instants of this range. Adding more files under doubt could hide that the old one is
        # damaged.
        if len(missing) == len(rows):
            raise CorruptMetadata(f"{self._source(name)}: holds none of the instants in the range of its name")
        return there | self.append(missing) if missing else there

    def _snapshot(self) -> HistorySnapshot:
        names = [entry.name for entry in self.storage.list(self.folder)]
        return newest_snapshot(self.storage, self.folder, names)

    def _merge_level(self, level: int, files_per_merge: int) -> bool:
        snapshot = self._snapshot()
        candidates = sorted((f for f in snapshot.files if f.level == level), key=lambda file: file.name)
        if len(candidates) < files_per_merge:
            return False
        chosen: list[HistoryFile] = []
        for file in candidates[:files_per_merge]:
            chosen.append(file)
            if sum(each.size_bytes for each in chosen) > _MERGED_BYTES_MAX:
                break
        ranges = [file.time_range for file in chosen]
        name = history_file_name(min(r[0] for r in ranges), max(r[1] for r in ranges), level + 1)
        if len(chosen) < 2 or any(file.name == name for file in snapshot.files):
            return False
        merged = self._write(name, self._rows_of(chosen))
        # Inputs stay on disk until no kept manifest names them: a reader may have opened one of those.
        rest = tuple(file for file in snapshot.files if file not in chosen)
        self._publish(snapshot.number + 1, (*rest, merged))
        return True

    def _rows_of(self, files: list[HistoryFile]) -> Iterator[tuple[HistoryRow, ...]]:
        for file in files:
            with self.storage.open_read(self._path(file.name)) as stream:
                yield from iterate_history(stream, self._source(file.name), with_contents=True)

    def _write(self, name: str, batches: Iterator[tuple[HistoryRow, ...]]) -> HistoryFile:
        path = self._path(name)
        with self.storage.open_write(path) as stream:
            write_history(stream, batches)
        return HistoryFile(name, self.storage.size(path) or 0)

    def _publish(self, number: int, files: tuple[HistoryFile, ...]) -> None:
        # The manifest first: readers open the one that ``_version_`` names, so it has to be complete by then.
        self.storage.replace(self._path(manifest_name(number)), encode_manifest(files))
        self.storage.replace(self._path(VERSION_FILE), encode_version(number))

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def _source(self, name: str) -> str:
        return f"{self.storage.root}/{self.folder}/{name}"


def history_row(store: TimelineStore, instant: Instant, files: tuple[Instant, ...]) -> HistoryRow:
    """
    Build the row of one completed instant.

    Args:
        store: Active timeline.
        instant: The completed instant.
        files: All its files, in the order of their states.
    """
    # Past the cache of the store: contents of thousands of instants would stay in memory.
    metadata = store.storage.read(store.path(instant)) or None
    return HistoryRow(
        instant.requested_time, instant.completion_time, instant.action.value, metadata, _plan(store, instant, files)
    )


def _plan(store: TimelineStore, instant: Instant, files: tuple[Instant, ...]) -> bytes | None:
    """The requested file of a clean or compaction; the inflight file of a replacecommit unless that is empty."""
    plan = b""
    for file in files:
        if file.is_completed:
            continue
        is_planned = file.action in _WITH_PLAN and (file.state is State.REQUESTED or not plan)
        if is_planned or instant.action is Action.REPLACE_COMMIT:
            # The inflight file goes over the requested one where it is not empty (rules/timeline 5.3).
            plan = store.storage.read(store.path(file)) or plan
    return plan or None

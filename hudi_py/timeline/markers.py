"""
Markers: the names of data files that a write is about to create, so that files of a failed write can be found.

hudi_py writes direct markers: one empty file per data file, created before the data file. The markers of Apache Hudi's
timeline server (a few text files that list names) are read too. Source: rules/timeline 6.2; Hudi ``WriteMarkers``,
``MarkerUtils``.
"""

from __future__ import annotations

import enum
from collections.abc import Container, Iterable
from typing import Final, NamedTuple

from hudi_py.errors import AlreadyExists, CorruptMetadata, NotFound, StorageError
from hudi_py.model.files import join_path
from hudi_py.storage.base import Entry, Storage, StorageFailure
from hudi_py.timeline.timeline import Timeline

_TEMP_FOLDER: Final = ".hoodie/.temp"
_TYPE_FILE: Final = "MARKERS.type"
_SEPARATOR: Final = ".marker."


class MarkerType(enum.Enum):
    """What the write does to the file."""

    CREATE = "CREATE"
    MERGE = "MERGE"
    APPEND = "APPEND"


class Marker(NamedTuple):
    """One data file of a write."""

    partition_path: str
    file_name: str
    type: MarkerType

    @property
    def path(self) -> str:
        """Path of the data file, relative to the table."""
        return join_path(self.partition_path, self.file_name)


def marker_folder(instant_time: str) -> str:
    """Folder of all markers of one instant, relative to the table."""
    return f"{_TEMP_FOLDER}/{instant_time}"


def create_marker(storage: Storage, instant_time: str, marker: Marker) -> None:
    """Create a direct marker, unless it exists already."""
    path = f"{marker_folder(instant_time)}/{marker.path}{_SEPARATOR}{marker.type.value}"
    try:
        storage.create_new(path, b"")
    except AlreadyExists:
        return


def read_markers(storage: Storage, instant_time: str) -> frozenset[Marker] | None:
    """
    All markers of an instant, in either form; None if its marker folder does not exist.

    Raises:
        CorruptMetadata: An entry is not a marker, so it is unknown what the write created.
    """
    folder = marker_folder(instant_time)
    entries = storage.list(folder)
    if not entries:
        return None
    # The file alone tells the two forms apart (rule B-14b). hudi_py never writes it: Hudi fails on one that says DIRECT
    # (rules/data-files 8).
    if any(entry.name == _TYPE_FILE for entry in entries):
        lines: set[str] = set()
        for entry in entries:
            if entry.name.startswith("MARKERS") and entry.name != _TYPE_FILE:
                lines.update(_lines(storage, f"{folder}/{entry.name}"))
        return frozenset(_parse(line, folder) for line in lines if line)
    return frozenset(_parse(path, folder) for path in _walk(storage, folder, ""))


def read_markers_of(storage: Storage, instant_time: str, partition_path: str) -> frozenset[Marker]:
    """As `read_markers`, those of one partition; direct ones in one request."""
    folder = marker_folder(instant_time)
    below = f"{partition_path}/" if partition_path else ""
    names = [each.name for each in _listed(storage, f"{folder}/{partition_path}".rstrip("/")) if not each.is_folder]
    if names and _TYPE_FILE not in names:
        return frozenset(_parse(below + name, folder) for name in names)
    every = read_markers(storage, instant_time) or frozenset()
    return frozenset(marker for marker in every if marker.partition_path == partition_path)


def delete_markers(storage: Storage, instant_time: str) -> None:
    """Remove all markers of an instant, if there are any."""
    storage.delete_folder(marker_folder(instant_time))


def delete_unnamed(storage: Storage, markers: Iterable[Marker], written: Container[str | None]) -> None:
    """
    Delete the files that have a marker and that no task result names: retried tasks left them (G-3).

    Call it right before the action completes: they would become visible with it.

    Args:
        storage: Storage of the table.
        markers: All markers of the action.
        written: Paths of the files that the action records.

    Raises:
        StorageError: A file could not be deleted.
    """
    # Markers are created before their files, so no file of the write can be missing here.
    leftovers = [marker.path for marker in markers if marker.path not in written]
    for path, result in storage.delete_many(leftovers).items():
        if isinstance(result, StorageFailure):
            raise StorageError(
                f"{path}, left by a retried task, could not be deleted: {result.message}", result.retryable
            )


def instants_with_markers(storage: Storage) -> tuple[str, ...]:
    """Times of all instants that have a marker folder."""
    return tuple(sorted(entry.name for entry in storage.list(_TEMP_FOLDER) if entry.is_folder))


def delete_markers_of_completed(storage: Storage, timeline: Timeline) -> tuple[str, ...]:
    """Delete the markers that a crash left of completed actions; return the times of all marker folders found."""
    marked = instants_with_markers(storage)
    for time in marked:
        if any(instant.requested_time == time and instant.is_completed for instant in timeline):
            delete_markers(storage, time)
    return marked


def _walk(storage: Storage, folder: str, below: str) -> list[str]:
    found = []
    for entry in _listed(storage, join_path(folder, below) if below else folder):
        path = join_path(below, entry.name)
        found += _walk(storage, folder, path) if entry.is_folder else [path]
    return found


def _listed(storage: Storage, folder: str) -> list[Entry]:
    try:
        return storage.list(folder)
    except NotFound:
        return []


def _lines(storage: Storage, path: str) -> list[str]:
    try:
        return storage.read(path).decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise CorruptMetadata(
            f"{storage.root}/{path} is damaged ({error}); remove it if no write of that time is running"
        ) from error


def _parse(path: str, folder: str) -> Marker:
    # From the right: a partition path may contain the separator, a type never does.
    data_path, separator, word = path.rpartition(_SEPARATOR)
    partition, _, name = data_path.rpartition("/")
    if not separator or word not in MarkerType.__members__:
        raise CorruptMetadata(f"{folder}/{path} is not a marker; remove it if no write of that time is running")
    return Marker(partition, name, MarkerType[word])

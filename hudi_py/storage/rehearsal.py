"""A storage on which an operation can be rehearsed: it reads a table, and keeps in memory what would be changed."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, cast

from hudi_py.errors import AlreadyExists, NotFound, RefusedError
from hudi_py.model.files import NOT_REGULAR, join_path
from hudi_py.model.tag import Tag
from hudi_py.runtime.clock import epoch_ms
from hudi_py.storage.base import (
    Capabilities,
    Deletion,
    Details,
    Entry,
    Listing,
    Storage,
    StorageFailure,
    Versioned,
    check_all_below_root,
    check_below_root,
    checked_moves,
)
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import ReadOnlyStorage


class RehearsalStorage:
    """
    Shows *inner* with the changes that were made here. Nothing is written to *inner*: it is wrapped as read-only.

    Files that are moved are not read: only where their content lies is remembered.

    Args:
        inner: The table. Changes that others make to it meanwhile show through.
        clock_ms: Returns the modification time of files that are written, in epoch milliseconds.
        bytes_max: How many bytes all files that are streamed may have together; None for no limit.
    """

    def __init__(self, inner: Storage, *, clock_ms: Callable[[], int] = epoch_ms, bytes_max: int | None = None) -> None:
        self._inner = ReadOnlyStorage(inner)
        self._written = MemoryStorage(inner.root, clock_ms=clock_ms)
        self._moved = _Moved()
        self._deleted: set[str] = set()
        self._deleted_folders: tuple[str, ...] = ()  # with a slash behind each
        self._room = None if bytes_max is None else _Room(bytes_max)

    @property
    def too_large(self) -> list[str]:
        """Paths of files for which there was no room."""
        return [] if self._room is None else self._room.refused

    @property
    def capabilities(self) -> Capabilities:
        inner = self._inner.capabilities  # what the real run would be refused for is refused here
        return self._written.capabilities._replace(
            atomic_create=inner.atomic_create,
            conditional_replace=inner.conditional_replace,
            tags=inner.tags,
            is_rehearsal=True,
        )

    @property
    def root(self) -> str:
        return self._inner.root

    def list(self, folder: str, *, details: Details = False) -> Listing:
        found = {entry.name: entry for entry in self._left(folder, self._inner.list(folder, details=details))}
        found |= {name: Entry(name, True) for name in self._moved.folders_in(folder)}
        found |= {entry.name: entry for entry in self._moved_here(folder, details=details)}
        # Last, because a file that was replaced here hides that of the table.
        found |= {entry.name: entry for entry in self._written.list(folder, details=details)}
        return [*found.values()]

    def list_hidden(self, folder: str) -> Listing:
        found = {entry.name: entry for entry in self._left(folder, self._inner.list_hidden(folder))}
        found |= {entry.name: entry for entry in self._written.list_hidden(folder)}
        return [*found.values()]

    def read(self, path: str) -> bytes:
        holder, place = self._holder(path)
        return holder.read(place)

    def size(self, path: str) -> int | None:
        try:
            holder, place = self._holder(path)
        except NotFound:
            return None
        return holder.size(place)

    def sizes(self, folder: str, names: Sequence[str]) -> Mapping[str, int]:
        prefix = f"{folder}/" if folder else ""
        found = self._inner.sizes(folder, names)
        left = {name: size for name, size in found.items() if not self._is_deleted(prefix + name)}
        moved = self._moved.names_in(folder)
        # One by one: whoever moves files asks for the sizes at their old place.
        there = {name: self._inner.size(moved[name]) for name in names if name in moved}
        known = {name: size for name, size in there.items() if size is not None}
        return {**left, **known, **self._written.sizes(folder, names)}

    def barrier(self, folder: str) -> str | None:
        return self._inner.barrier(folder)

    def open_read(self, path: str) -> BinaryIO:
        holder, place = self._holder(path)
        return holder.open_read(place)

    def create_new(
        self, path: str, data: bytes, before: Callable[[], None] | None = None, *, lasts: bool = True
    ) -> None:
        if self.size(check_below_root(path)) is not None:
            raise AlreadyExists(f"{self.root}/{path} exists already; it was left as it is")
        self._written.create_new(path, data, before)

    def replace(self, path: str, data: bytes) -> None:
        self._written.replace(path, data)

    def read_version(self, path: str) -> Versioned:
        self._take_over(path)
        return self._written.read_version(path)

    def swap(self, path: str, data: bytes, version: str | None) -> str | None:
        if self.size(path) is not None:
            # `swap` compares with a version of the memory, which knows only files that it has.
            self._take_over(path)
        return self._written.swap(path, data, version)

    def open_write(self, path: str) -> BinaryIO:
        stream = self._written.open_write(path)
        return stream if self._room is None else cast("BinaryIO", _InRoom(stream, self._room, path))

    def delete(self, path: str) -> bool:
        was_there = self.size(check_below_root(path)) is not None
        self._forget(path)
        return was_there

    def delete_many(self, paths: Iterable[str]) -> Mapping[str, Deletion]:
        wanted = tuple(dict.fromkeys(paths))
        check_all_below_root(wanted)
        there = self._there(wanted)
        for path in wanted:
            self._forget(path)
        return {path: path in there for path in wanted}

    def delete_folder(self, folder: str) -> None:
        self._written.delete_folder(folder)
        self._moved.remove_folder(folder)
        self._deleted_folders += (f"{check_below_root(folder)}/",)

    def delete_empty(self, folder: str) -> bool:
        check_below_root(folder)
        return False  # what is rehearsed has no folders of its own

    def move_many(self, paths: Iterable[str], source: str, target: str) -> Mapping[str, Deletion]:
        moves = checked_moves(paths, source, target)
        there = self._there([old for old, _ in moves.values()])
        for old, new in moves.values():
            if old not in there:
                continue
            holder, place = self._holder(old)
            if holder is self._written:
                self._written.replace(new, holder.read(place))
            else:
                self._written.delete(new)
                self._moved.add(new, place)
            self._forget(old)
        return {path: old in there for path, (old, _) in moves.items()}

    def tag_many(self, paths: Iterable[str], tag: Tag, *, remove: bool = False) -> Mapping[str, bool | StorageFailure]:
        return {path: self.size(check_below_root(path)) is not None for path in paths}  # nobody looks at them here

    def _there(self, paths: Sequence[str]) -> set[str]:
        """Those of the paths that exist; asked folder by folder, as an object store answers a folder at once."""
        of_folder: dict[str, dict[str, None]] = {}
        for path in paths:
            folder, _, name = path.rpartition("/")
            of_folder.setdefault(folder, {})[name] = None
        return {
            join_path(folder, name)
            for folder, names in of_folder.items()
            for name, size in self.sizes(folder, tuple(names)).items()
            if size != NOT_REGULAR or self.size(join_path(folder, name)) is not None
        }

    def _moved_here(self, folder: str, *, details: Details) -> Iterator[Entry]:
        """The entries of files that were moved into a folder; sizes and times are looked up where their content is."""
        of_place: dict[str, dict[str, str]] = {}
        for name, place in self._moved.names_in(folder).items():
            if details is True or (details and name in details):
                old_folder, _, old_name = place.rpartition("/")
                of_place.setdefault(old_folder, {})[old_name] = name
            else:
                yield Entry(name, False)
        for old_folder, names in of_place.items():
            for entry in self._inner.list(old_folder, details=names.keys()):
                if entry.name in names:
                    yield entry._replace(name=names[entry.name])

    def _holder(self, path: str) -> tuple[Storage, str]:
        """Return the storage that has the content of *path*, and where. Raises `NotFound` if it was deleted here."""
        if self._written.size(path) is not None:
            return self._written, path
        place = self._moved.place_of(path)
        if place is not None:
            return self._inner, place
        if self._is_deleted(path):
            raise NotFound(f"{self.root}/{path}: no such object")
        return self._inner, path

    def _take_over(self, path: str) -> None:
        if self._written.size(path) is None:
            self._written.replace(path, self.read(path))

    def _forget(self, path: str) -> None:
        self._written.delete(path)
        self._moved.remove(path)
        self._deleted.add(path)

    def _is_deleted(self, path: str) -> bool:
        return path in self._deleted or path.startswith(self._deleted_folders)

    def _left(self, folder: str, entries: Iterable[Entry]) -> Listing:
        prefix = f"{folder}/" if folder else ""
        return [
            entry
            for entry in entries
            if not self._is_deleted(f"{prefix}{entry.name}/" if entry.is_folder else prefix + entry.name)
        ]


class _Room:
    """What is left of the memory for files that are streamed."""

    def __init__(self, size_bytes: int) -> None:
        self._lock = threading.Lock()
        self._left = size_bytes
        self.refused: list[str] = []

    def take(self, size_bytes: int, path: str) -> None:
        """
        Raises:
            RefusedError: There is no room.
        """
        with self._lock:
            self._left -= size_bytes
            if self._left >= 0:
                return
            self.refused.append(path)
        raise RefusedError(f"{path} is too large for a dry run, which writes to memory; only the run itself can tell")


class _InRoom(io.BufferedIOBase):
    """A file that is streamed, as far as there is room for it."""

    def __init__(self, stream: BinaryIO, room: _Room, path: str) -> None:
        self._stream, self._room, self._path = stream, room, path

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._room.take(memoryview(data).nbytes, self._path)
        return self._stream.write(data)

    def tell(self) -> int:
        return self._stream.tell()

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


class _Moved:
    """Where the content lies of files that were moved, by folder; safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: dict[str, dict[str, str]] = {}
        self._folders: dict[str, set[str]] = {}

    def add(self, path: str, place: str) -> None:
        folder, _, name = path.rpartition("/")
        with self._lock:
            if folder not in self._names:
                self._names[folder] = {}
                below = folder
                while below:
                    above, _, last = below.rpartition("/")
                    self._folders.setdefault(above, set()).add(last)
                    below = above
            self._names[folder][name] = place

    def place_of(self, path: str) -> str | None:
        folder, _, name = path.rpartition("/")
        return self._names.get(folder, {}).get(name)

    def names_in(self, folder: str) -> dict[str, str]:
        with self._lock:
            return dict(self._names.get(folder, {}))

    def folders_in(self, folder: str) -> frozenset[str]:
        with self._lock:
            return frozenset(self._folders.get(folder, ()))

    def remove(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        with self._lock:
            self._names.get(folder, {}).pop(name, None)

    def remove_folder(self, folder: str) -> None:
        above, _, last = folder.rpartition("/")
        with self._lock:
            self._folders.get(above, set()).discard(last)
            for held in (self._names, self._folders):
                for each in [each for each in held if each == folder or each.startswith(f"{folder}/")]:
                    del held[each]

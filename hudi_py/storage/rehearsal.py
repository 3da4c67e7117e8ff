"""A storage on which an operation can be rehearsed: it reads a table, and keeps in memory what would be changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import BinaryIO

from hudi_py.errors import AlreadyExists, NotFound
from hudi_py.model.tag import Tag
from hudi_py.storage.base import (
    Capabilities,
    Deletion,
    Details,
    Entry,
    Listing,
    Storage,
    StorageFailure,
    Versioned,
    check_below_root,
    checked_moves,
)
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import ReadOnlyStorage


class RehearsalStorage:
    """
    Shows *inner* with the changes that were made here. Nothing is written to *inner*: it is wrapped as read-only.

    Args:
        inner: The table. Changes that others make to it meanwhile show through.
    """

    def __init__(self, inner: Storage) -> None:
        self._inner = ReadOnlyStorage(inner)
        self._written = MemoryStorage(inner.root)
        self._deleted: set[str] = set()
        self._deleted_folders: set[str] = set()

    @property
    def capabilities(self) -> Capabilities:
        inner = self._inner.capabilities  # what the real run would be refused for is refused here
        return self._written.capabilities._replace(
            atomic_create=inner.atomic_create, conditional_replace=inner.conditional_replace, is_rehearsal=True
        )

    @property
    def root(self) -> str:
        return self._inner.root

    def list(self, folder: str, *, details: Details = False) -> Listing:
        found = {entry.name: entry for entry in self._left(folder, self._inner.list(folder, details=details))}
        # Last, because a file that was replaced here hides that of the table.
        found |= {entry.name: entry for entry in self._written.list(folder, details=details)}
        return [*found.values()]

    def list_hidden(self, folder: str) -> Listing:
        found = {entry.name: entry for entry in self._left(folder, self._inner.list_hidden(folder))}
        found |= {entry.name: entry for entry in self._written.list_hidden(folder)}
        return [*found.values()]

    def read(self, path: str) -> bytes:
        return self._holder(path).read(path)

    def size(self, path: str) -> int | None:
        if self._written.size(path) is None and self._is_deleted(path):
            return None
        return self._holder(path).size(path)

    def sizes(self, folder: str, names: Sequence[str]) -> Mapping[str, int]:
        prefix = f"{folder}/" if folder else ""
        found = self._inner.sizes(folder, names)
        left = {name: size for name, size in found.items() if not self._is_deleted(prefix + name)}
        return {**left, **self._written.sizes(folder, names)}

    def barrier(self, folder: str) -> str | None:
        return self._inner.barrier(folder)

    def open_read(self, path: str) -> BinaryIO:
        return self._holder(path).open_read(path)

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
        return self._written.open_write(path)

    def delete(self, path: str) -> bool:
        was_there = self.size(check_below_root(path)) is not None
        self._written.delete(path)
        self._deleted.add(path)
        return was_there

    def delete_many(self, paths: Iterable[str]) -> Mapping[str, Deletion]:
        wanted = dict.fromkeys(paths)
        for path in wanted:
            check_below_root(path)
        return {path: self.delete(path) for path in wanted}

    def delete_folder(self, folder: str) -> None:
        self._written.delete_folder(folder)
        self._deleted_folders.add(f"{check_below_root(folder)}/")

    def delete_empty(self, folder: str) -> bool:
        check_below_root(folder)
        return False  # what is rehearsed has no folders of its own

    def move_many(self, paths: Iterable[str], source: str, target: str) -> Mapping[str, Deletion]:
        moved: dict[str, Deletion] = {}
        for path, (old, new) in checked_moves(paths, source, target).items():
            moved[path] = self.size(old) is not None
            if moved[path]:
                self._written.replace(new, self.read(old))
                self.delete(old)
        return moved

    def tag_many(self, paths: Iterable[str], tag: Tag, *, remove: bool = False) -> Mapping[str, bool | StorageFailure]:
        return {path: self.size(check_below_root(path)) is not None for path in paths}  # nobody looks at them here

    def _holder(self, path: str) -> Storage:
        """Return the storage that holds the content of *path*. Raises `NotFound` if it was deleted here."""
        if self._written.size(path) is not None:
            return self._written
        if self._is_deleted(path):
            raise NotFound(f"{self.root}/{path}: no such object")
        return self._inner

    def _take_over(self, path: str) -> None:
        if self._written.size(path) is None:
            self._written.replace(path, self.read(path))

    def _is_deleted(self, path: str) -> bool:
        return path in self._deleted or any(path.startswith(folder) for folder in self._deleted_folders)

    def _left(self, folder: str, entries: Iterable[Entry]) -> Listing:
        prefix = f"{folder}/" if folder else ""
        return [
            entry
            for entry in entries
            if not self._is_deleted(f"{prefix}{entry.name}/" if entry.is_folder else prefix + entry.name)
        ]

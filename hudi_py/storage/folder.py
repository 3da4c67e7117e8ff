"""A folder of a storage, used as a storage of its own: the metadata table lies inside the table it describes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import BinaryIO

import attrs

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
    check_path,
)


@attrs.frozen
class FolderStorage:
    """
    A storage whose root is a folder of *outer*.

    Calls pass through *outer*, so its wrappers (crash doubles, counters, retries) still see every one.

    Args:
        outer: The storage that does the work.
        folder: Path relative to the root of *outer*, not empty.
    """

    outer: Storage
    folder: str

    @property
    def capabilities(self) -> Capabilities:
        return self.outer.capabilities

    @property
    def root(self) -> str:
        return f"{self.outer.root}/{self.folder}"

    def list(self, folder: str, *, details: Details = False) -> list[Entry]:
        return list(self.outer.list(self._path(folder), details=details))

    def list_hidden(self, folder: str) -> Listing:
        return self.outer.list_hidden(self._path(folder))

    def read(self, path: str) -> bytes:
        return self.outer.read(self._path(path))

    def size(self, path: str) -> int | None:
        return self.outer.size(self._path(path))

    def sizes(self, folder: str, names: Sequence[str]) -> Mapping[str, int]:
        return self.outer.sizes(self._path(folder), names)

    def barrier(self, folder: str) -> str | None:
        return self.outer.barrier(self._path(folder))

    def open_read(self, path: str) -> BinaryIO:
        return self.outer.open_read(self._path(path))

    def create_new(
        self, path: str, data: bytes, before: Callable[[], None] | None = None, *, lasts: bool = True
    ) -> None:
        self.outer.create_new(self._path(path), data, before, lasts=lasts)

    def replace(self, path: str, data: bytes) -> None:
        self.outer.replace(self._path(path), data)

    def read_version(self, path: str) -> Versioned:
        return self.outer.read_version(self._path(path))

    def swap(self, path: str, data: bytes, version: str | None) -> str | None:
        return self.outer.swap(self._path(path), data, version)

    def open_write(self, path: str) -> BinaryIO:
        return self.outer.open_write(self._path(path))

    def delete(self, path: str) -> bool:
        return self.outer.delete(self._path(path))

    def delete_many(self, paths: Iterable[str]) -> Mapping[str, Deletion]:
        by_outer = {self._path(path): path for path in paths}
        return {by_outer[path]: done for path, done in self.outer.delete_many(by_outer).items()}

    def delete_folder(self, folder: str) -> None:
        self.outer.delete_folder(self._path(folder))

    def delete_empty(self, folder: str) -> bool:
        return self.outer.delete_empty(self._path(folder))

    def move_many(self, paths: Iterable[str], source: str, target: str) -> Mapping[str, Deletion]:
        return self.outer.move_many(paths, self._path(source), self._path(target))

    def tag_many(self, paths: Iterable[str], tag: Tag, *, remove: bool = False) -> Mapping[str, bool | StorageFailure]:
        by_outer = {self._path(path): path for path in paths}
        return {by_outer[path]: done for path, done in self.outer.tag_many(by_outer, tag, remove=remove).items()}

    def _path(self, path: str) -> str:
        # Checked here, because behind the folder's name a path could climb out of it.
        check_path(path)
        return f"{self.folder}/{path}" if path else self.folder

"""
A storage in memory, for tests and experiments.

Behaves like an object store: folders exist only as prefixes of paths. But a streamed file is visible under its name
from the start, as on a local disk, so that simulated crashes leave the same half-written files as real ones.
"""

from __future__ import annotations

import hashlib
import io
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, BinaryIO, cast

from hudi_py.errors import AlreadyExists, NotFound
from hudi_py.model.tag import Tag
from hudi_py.runtime.clock import epoch_ms
from hudi_py.runtime.randomness import new_uuid
from hudi_py.storage.base import (
    Capabilities,
    Details,
    Entry,
    Listing,
    StorageFailure,
    Versioned,
    check_below_root,
    check_names,
    check_path,
    checked_moves,
    is_hidden,
)

# Weak references, so that the tables of tests are freed.
_LIVE: weakref.WeakValueDictionary[str, MemoryStorage] = weakref.WeakValueDictionary()


class MemoryStorage:
    """
    Objects in a dictionary, safe for threads.

    Unpickling in the process of the original returns the original, so that tasks shipped by an engine read and change
    the same table; in another process it returns a copy. `copy` always makes an independent copy.

    Args:
        root: Value of the property `root`.
        clock_ms: Returns the modification time of files, in epoch milliseconds.
    """

    def __init__(self, root: str = "memory://table", *, clock_ms: Callable[[], int] = epoch_ms) -> None:
        self._root = root.rstrip("/")
        self._clock_ms = clock_ms
        self._objects: dict[str, tuple[bytes, int]] = {}  # path -> content, modification time
        self._tags: dict[str, dict[str, str]] = {}
        self._lock = threading.RLock()
        self._identity = new_uuid()
        _LIVE[self._identity] = self

    @classmethod
    def from_files(cls, files: Mapping[str, bytes], root: str = "memory://table") -> MemoryStorage:
        """
        Create a storage that holds *files*, a mapping of paths to contents.

        Raises:
            ConfigError: A path is not below the root.
        """
        storage = cls(root)
        for path, data in files.items():
            storage.replace(path, data)
        return storage

    def files(self) -> dict[str, bytes]:
        """Return the contents of all files, including hidden ones, by path in sorted order."""
        with self._lock:
            return {path: self._objects[path][0] for path in sorted(self._objects)}

    def copy(self) -> MemoryStorage:
        """Return an independent copy with the same contents and modification times."""
        twin = MemoryStorage(self._root, clock_ms=self._clock_ms)
        with self._lock:
            twin._objects, twin._tags = dict(self._objects), dict(self._tags)
        return twin

    def __copy__(self) -> MemoryStorage:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, object]) -> MemoryStorage:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        with self._lock:
            return _attach, (self._identity, self._root, dict(self._objects))

    def __repr__(self) -> str:
        return f"MemoryStorage({self._root!r}, {len(self._objects)} objects)"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            atomic_create=True, atomic_replace=True, has_folders=False, conditional_replace=True, tags=True
        )

    @property
    def root(self) -> str:
        return self._root

    def list(self, folder: str, *, details: Details = False) -> Listing:
        prefix = f"{folder}/" if check_path(folder) else ""
        found: dict[str, Entry] = {}
        with self._lock:
            for path, (data, modified_ms) in self._objects.items():
                if not path.startswith(prefix):
                    continue
                name, slash, _ = path[len(prefix) :].partition("/")
                if slash:
                    # With its slash, because in an object store a file may have the name of a folder.
                    found[name + "/"] = Entry(name, True)
                elif not is_hidden(name):
                    found[name] = (
                        Entry(name, False, len(data), modified_ms)
                        if details is True or (details and name in details)
                        else Entry(name, False)
                    )
        return [*found.values()]

    def list_hidden(self, folder: str) -> Listing:
        prefix = f"{folder}/" if check_path(folder) else ""
        with self._lock:
            inside = [(path[len(prefix) :], found) for path, found in self._objects.items() if path.startswith(prefix)]
        return [
            Entry(name, False, len(data), modified_ms)
            for name, (data, modified_ms) in inside
            if "/" not in name and is_hidden(name)
        ]

    def read(self, path: str) -> bytes:
        with self._lock:
            found = self._objects.get(check_below_root(path))
        if found is None:
            raise NotFound(f"{self._root}/{path}: no such object")
        return found[0]

    def size(self, path: str) -> int | None:
        with self._lock:
            found = self._objects.get(check_below_root(path))
        return None if found is None else len(found[0])

    def sizes(self, folder: str, names: Sequence[str]) -> Mapping[str, int]:
        prefix = f"{folder}/" if check_path(folder) else ""
        check_names(names)
        with self._lock:
            found = {name: self._objects.get(prefix + name) for name in names}
        return {name: len(stored[0]) for name, stored in found.items() if stored is not None}

    def barrier(self, folder: str) -> str | None:
        check_path(folder)
        return None  # there are no links

    def open_read(self, path: str) -> BinaryIO:
        return io.BytesIO(self.read(path))

    def create_new(
        self, path: str, data: bytes, before: Callable[[], None] | None = None, *, lasts: bool = True
    ) -> None:
        check_below_root(path)
        if before is not None:
            before()
        with self._lock:
            if path in self._objects:
                raise AlreadyExists(f"{self._root}/{path} exists already; it was left as it is")
            # A copy, because the caller may use its buffer again.
            self._objects[path] = (bytes(data), self._clock_ms())

    def replace(self, path: str, data: bytes) -> None:
        check_below_root(path)
        with self._lock:
            self._objects[path] = (bytes(data), self._clock_ms())
            self._tags.pop(path, None)

    def read_version(self, path: str) -> Versioned:
        content = self.read(path)
        return Versioned(content, _version(content))

    def swap(self, path: str, data: bytes, version: str | None) -> str | None:
        check_below_root(path)
        with self._lock:
            found = self._objects.get(path)
            if version != (None if found is None else _version(found[0])):
                return None
            self.replace(path, data)
        return _version(data)

    def open_write(self, path: str) -> BinaryIO:
        # Visible at once and empty, like a data file on a local disk that is still being written.
        self.replace(path, b"")
        return cast("BinaryIO", _DataFile(self, path))

    def delete(self, path: str) -> bool:
        check_below_root(path)
        with self._lock:
            self._tags.pop(path, None)
            return self._objects.pop(path, None) is not None

    def delete_many(self, paths: Iterable[str]) -> Mapping[str, bool | StorageFailure]:
        wanted = dict.fromkeys(paths)
        for path in wanted:
            check_below_root(path)
        return {path: self.delete(path) for path in wanted}

    def delete_folder(self, folder: str) -> None:
        prefix = check_below_root(folder) + "/"
        with self._lock:
            for path in [path for path in self._objects if path.startswith(prefix)]:
                del self._objects[path]
                self._tags.pop(path, None)

    def delete_empty(self, folder: str) -> bool:
        check_below_root(folder)
        return False  # a folder exists only while something is in it

    def move_many(self, paths: Iterable[str], source: str, target: str) -> Mapping[str, bool | StorageFailure]:
        wanted = checked_moves(paths, source, target)
        with self._lock:
            there = {path: self._objects.pop(old, None) for path, (old, _) in wanted.items()}
            self._objects.update({wanted[path][1]: found for path, found in there.items() if found is not None})
            # A copy on the server has the tags of its source.
            self._tags.update({new: self._tags.pop(old) for old, new in wanted.values() if old in self._tags})
        return {path: found is not None for path, found in there.items()}

    def tag_many(self, paths: Iterable[str], tag: Tag, *, remove: bool = False) -> Mapping[str, bool | StorageFailure]:
        wanted = {check_below_root(path): False for path in paths}
        with self._lock:
            for path in wanted.keys() & self._objects.keys():
                wanted[path] = True
                others = {key: value for key, value in self.tags(path).items() if key != tag.key}
                self._tags[path] = others if remove else {**others, tag.key: tag.value}
        return wanted

    def tags(self, path: str) -> Mapping[str, str]:
        """Return the tags of an object."""
        return self._tags.get(path, {})


class _DataFile(io.BytesIO):
    """A data file being written: empty until closed; after an exception half of it remains, like a torn write."""

    def __init__(self, storage: MemoryStorage, path: str) -> None:
        super().__init__()
        self._storage, self._path, self._is_torn = storage, path, False

    def close(self) -> None:
        if not self.closed:
            content = self.getvalue()
            self._storage.replace(self._path, content[: len(content) // 2] if self._is_torn else content)
        super().close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_torn = kind is not None
        self.close()


def _version(content: bytes) -> str:
    """Return a version derived from the content, as ETags of object stores are."""
    return hashlib.sha256(content).hexdigest()


def _attach(identity: str, root: str, objects: dict[str, tuple[bytes, int]]) -> MemoryStorage:
    """Return the original if it lives in this process, else a copy that keeps its identity."""
    storage = _LIVE.get(identity)
    if storage is None:
        storage = MemoryStorage(root)
        storage._identity, storage._objects = identity, objects
        _LIVE[identity] = storage
    return storage

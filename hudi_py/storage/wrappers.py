"""
Wrappers of a storage. All verbs of a wrapper pass through one method, `DelegatingStorage._around`, so a subclass states
in one place what happens before, after or instead of a call. The test doubles in `hudi_py.testing` work the same way.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, BinaryIO, TypeVar

from hudi_py.errors import RefusedError
from hudi_py.model.files import join_path
from hudi_py.model.tag import Tag
from hudi_py.storage.base import (
    MUTATING_VERBS,
    Capabilities,
    Deletion,
    Details,
    Listing,
    Storage,
    StorageFailure,
    Versioned,
    spoken,
)

T = TypeVar("T")
Paths = tuple[str, ...]
Calls = list[tuple[str, str]]


class DelegatingStorage:
    """
    Passes all calls on to *inner*. Picklable if *inner* is; an unpickled copy counts and records on its own.

    Args:
        inner: The storage that does the work.
    """

    def __init__(self, inner: Storage) -> None:
        self.inner = inner
        self._lock = threading.Lock()

    def _around(self, verb: str, paths: Paths, call: Callable[[], T]) -> T:
        """Run *call*. Every verb passes through here with its name and its paths; subclasses override this."""
        return call()

    def __getstate__(self) -> dict[str, Any]:
        # A lock cannot be pickled.
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    @property
    def capabilities(self) -> Capabilities:
        return self.inner.capabilities

    @property
    def root(self) -> str:
        return self.inner.root

    def list(self, folder: str, *, details: Details = False) -> Listing:
        return self._around("list", (folder,), lambda: self.inner.list(folder, details=details))

    def list_hidden(self, folder: str) -> Listing:
        return self._around("list_hidden", (folder,), lambda: self.inner.list_hidden(folder))

    def read(self, path: str) -> bytes:
        return self._around("read", (path,), lambda: self.inner.read(path))

    def size(self, path: str) -> int | None:
        return self._around("size", (path,), lambda: self.inner.size(path))

    def sizes(self, folder: str, names: Sequence[str]) -> Mapping[str, int]:
        return self._around("sizes", (folder,), lambda: self.inner.sizes(folder, names))

    def barrier(self, folder: str) -> str | None:
        return self._around("barrier", (folder,), lambda: self.inner.barrier(folder))

    def open_read(self, path: str) -> BinaryIO:
        return self._around("open_read", (path,), lambda: self.inner.open_read(path))

    def create_new(
        self, path: str, data: bytes, before: Callable[[], None] | None = None, *, lasts: bool = True
    ) -> None:
        # Without it as those are called that know of none.
        more = (before,) if before else ()
        self._around("create_new", (path,), lambda: self.inner.create_new(path, data, *more, lasts=lasts))

    def replace(self, path: str, data: bytes) -> None:
        self._around("replace", (path,), lambda: self.inner.replace(path, data))

    def read_version(self, path: str) -> Versioned:
        return self._around("read_version", (path,), lambda: self.inner.read_version(path))

    def swap(self, path: str, data: bytes, version: str | None) -> str | None:
        return self._around("swap", (path,), lambda: self.inner.swap(path, data, version))

    def open_write(self, path: str) -> BinaryIO:
        return self._around("open_write", (path,), lambda: self.inner.open_write(path))

    def delete(self, path: str) -> bool:
        return self._around("delete", (path,), lambda: self.inner.delete(path))

    def delete_many(self, paths: Iterable[str]) -> Mapping[str, Deletion]:
        # Once, because *paths* may be an iterator, and the wrapper looks at them before the call.
        wanted = tuple(paths)
        return self._around("delete_many", wanted, lambda: self.inner.delete_many(wanted))

    def delete_folder(self, folder: str) -> None:
        self._around("delete_folder", (folder,), lambda: self.inner.delete_folder(folder))

    def delete_empty(self, folder: str) -> bool:
        return self._around("delete_empty", (folder,), lambda: self.inner.delete_empty(folder))

    def move_many(self, paths: Iterable[str], source: str, target: str) -> Mapping[str, Deletion]:
        wanted = tuple(paths)
        moved = tuple(join_path(source, path) for path in wanted)
        return self._around("move_many", moved, lambda: self.inner.move_many(wanted, source, target))

    def tag_many(self, paths: Iterable[str], tag: Tag, *, remove: bool = False) -> Mapping[str, bool | StorageFailure]:
        wanted = tuple(paths)
        return self._around("tag_many", wanted, lambda: self.inner.tag_many(wanted, tag, remove=remove))


class ReadOnlyStorage(DelegatingStorage):
    """
    Refuses all verbs that change something, before they do anything; used for dry runs.

    Raises:
        RefusedError: By every such verb.
    """

    def _around(self, verb: str, paths: Paths, call: Callable[[], T]) -> T:
        if verb in MUTATING_VERBS:
            what = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
            raise RefusedError(f"{spoken(verb)} {self.root}: {what}: opened for reading only; nothing was changed")
        return call()


class RecordingStorage(DelegatingStorage):
    """
    Records all calls, so that a test can assert what an operation costs.

    Attributes:
        calls: ``(verb, path)`` in order of the calls; a bulk deletion adds one entry per path.
        counts: Number of calls by verb; a bulk deletion counts as one.
    """

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.calls: Calls = []
        self.counts: Counter[str] = Counter()

    def _around(self, verb: str, paths: Paths, call: Callable[[], T]) -> T:
        with self._lock:
            self.counts[verb] += 1
            self.calls.extend((verb, path) for path in paths)
        return call()

    @property
    def mutations(self) -> Calls:
        """The calls that change something."""
        return [call for call in self.calls if call[0] in MUTATING_VERBS]

    def clear(self) -> None:
        """Forget everything recorded."""
        with self._lock:
            self.calls.clear()
            self.counts.clear()

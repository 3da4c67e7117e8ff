"""
The storage protocol: every byte of a table passes through here.

Paths are relative to the storage's root (the table's base path), ``/``-separated, without leading or trailing slash;
``""`` is the root itself. A path that would leave the root is refused with `ConfigError` before any effect.

What each backend promises, and `tests/contract/storage` proves for each:

==================  ===============================================================================================
verb                promise
==================  ===============================================================================================
``list``            fresh; an absent folder is empty; order unspecified; never shows our own temporary names
``read``            the whole content, or `NotFound`
``create_new``      the object appears complete or not at all; `AlreadyExists` if the name is taken; one winner
                    among racing writers; durable when it returns
``replace``         readers see the old or the new content, never a mixture; durable when it returns
``open_write``      streaming; the name may appear before it is complete (data files: guarded by markers)
``delete``          idempotent: False when there was nothing
``delete_many``     the same for many paths, in bulk where the backend can
``delete_folder``   recursive and idempotent
==================  ===============================================================================================

Backends raise `StorageError` and nothing else for the outside world's faults, with ``retryable`` set where the same
call may succeed later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import BinaryIO, NamedTuple, Protocol

from hudi_py.errors import ConfigError


class Entry(NamedTuple):
    """
    One name in a folder.

    ``size_bytes`` and ``modified_ms`` (epoch milliseconds) are None when the listing was asked without details and
    the backend does not get them for free.
    """

    name: str
    is_folder: bool
    size_bytes: int | None = None
    modified_ms: int | None = None


class Capabilities(NamedTuple):
    """Facts about a backend that callers may rely on."""

    atomic_create: bool  # create_new has one winner among racing processes
    atomic_replace: bool  # replace never shows a gap
    has_folders: bool  # empty folders exist and have to be removed


class Storage(Protocol):
    """A root folder on some storage. Implementations are picklable, so that Spark executors can use them."""

    @property
    def capabilities(self) -> Capabilities:
        """What this backend can do."""

    @property
    def root(self) -> str:
        """Absolute path or URL of the root, without trailing slash, as Hudi writes it into plans (no ``file:``)."""

    def list(self, folder: str, *, details: bool = False) -> list[Entry]:
        """Names directly inside *folder*; with *details* also size and modification time."""

    def read(self, path: str) -> bytes:
        """Whole content. Raises `NotFound`."""

    def size(self, path: str) -> int | None:
        """Size in bytes, or None when there is no such object."""

    def open_read(self, path: str) -> BinaryIO:
        """Seekable stream, for Parquet. Raises `NotFound`."""

    def create_new(self, path: str, data: bytes) -> None:
        """Create atomically and durably. Raises `AlreadyExists`."""

    def replace(self, path: str, data: bytes) -> None:
        """Create or replace atomically and durably."""

    def open_write(self, path: str) -> BinaryIO:
        """Stream a data file; it is complete and durable once closed. Leaving by an exception may leave a torn file."""

    def delete(self, path: str) -> bool:
        """Delete one object; False when it was not there."""

    def delete_many(self, paths: Iterable[str]) -> Mapping[str, bool | StorageFailure]:
        """Delete many; per path True (deleted), False (was not there), or why it could not be deleted."""

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with everything below it; nothing happens when it is absent."""


class StorageFailure(NamedTuple):
    """Why one path of a bulk call failed."""

    message: str
    retryable: bool


def check_path(path: str) -> str:
    """
    Return *path* unchanged if it is a clean relative path below the root.

    Raises:
        ConfigError: It is absolute, has an empty, ``.`` or ``..`` part, or a NUL.
    """
    if path and (path[0] == "/" or "\0" in path or any(part in ("", ".", "..") for part in path.split("/"))):
        raise ConfigError(f"{path!r} is not a path inside the table; nothing was touched")
    return path

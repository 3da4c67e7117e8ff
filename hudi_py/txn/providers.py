"""
Protocol of a lock; plug-ins that implement it; and the lock of one process.

Another package offers a provider as an entry point of the group ``hudi_py.lock_providers``: its name is the value of
``hoodie.write.lock.provider``, its object is called with storage, settings and clock, and returns a `LockProvider`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final, Protocol, TypeAlias

from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError
from hudi_py.runtime.clock import Clock
from hudi_py.storage.base import Storage
from hudi_py.txn.turns import place_of

PLUGINS: Final = "hudi_py.lock_providers"


class LockProvider(Protocol):
    """One lock, with one holder at a time."""

    def try_acquire(self, purpose: str) -> bool:
        """
        Take the lock if it is free, or may be taken over; False if another process has it.

        Raises:
            StorageError: The storage refused; the lock was not taken.
        """

    def release(self) -> None:
        """
        Release it; nothing happens if another process has taken it over.

        Raises:
            StorageError: The storage refused; to others the lock may still be held.
        """

    def is_ours(self) -> bool:
        """
        Whether it is still held by us.

        Raises:
            StorageError: The service did not answer, so nobody knows.
        """

    def holder(self) -> str:
        """Text for those who wait: which lock it is, its holder, and since when it is held."""


MakeProvider: TypeAlias = Callable[[Storage, Settings, Clock], LockProvider]


@cache
def _plugins() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=PLUGINS)}


def plugin_names() -> frozenset[str]:
    """Return the names of the installed lock providers of other packages."""
    return frozenset(_plugins())


def plugin(name: str) -> MakeProvider:
    """
    Return what makes the lock provider of another package.

    Raises:
        ConfigError: It cannot be imported.
    """
    try:
        made: MakeProvider = _plugins()[name].load()
    except Exception as error:  # whatever the import of foreign code raises
        raise ConfigError(
            f"the lock provider {name} cannot be imported ({_plugins()[name].value}): {error!r}; nothing was changed"
        ) from error
    return made


_LOCKS: dict[str, threading.Lock] = {}
_LOCKS_GUARD = threading.Lock()


class InProcessLock:
    """
    One lock per table for the threads of this process, as Hudi's ``InProcessLockProvider``.

    Args:
        root: Base path of the table.
        wait_ms: Duration of one try.
    """

    def __init__(self, root: str, wait_ms: int) -> None:
        with _LOCKS_GUARD:
            # Never removed: a thread that still waits for the lock must wait for the same one.
            self._lock = _LOCKS.setdefault(place_of(root), threading.Lock())
        self._root, self._wait_ms = root, wait_ms
        self._is_ours = False

    def try_acquire(self, purpose: str) -> bool:
        """See `LockProvider`."""
        self._is_ours = self._lock.acquire(timeout=self._wait_ms / 1000)
        return self._is_ours

    def release(self) -> None:
        """See `LockProvider`."""
        if self._is_ours:
            self._is_ours = False
            self._lock.release()

    def is_ours(self) -> bool:
        """See `LockProvider`. It cannot be taken over."""
        return self._is_ours

    def holder(self) -> str:
        """See `LockProvider`."""
        return f"another thread of this process holds the lock of {self._root}"

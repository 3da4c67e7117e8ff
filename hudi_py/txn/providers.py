"""Protocol of a lock, with an implementation for each of Hudi's lock providers that is served."""

from __future__ import annotations

import threading
from typing import Protocol


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
        """Whether it is still held by us."""

    def holder(self) -> str:
        """Text for those who wait: which lock it is, its holder, and since when it is held."""


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
            self._lock = _LOCKS.setdefault(root, threading.Lock())
        self._root, self._wait_ms = root, wait_ms

    def try_acquire(self, purpose: str) -> bool:
        """See `LockProvider`."""
        return self._lock.acquire(timeout=self._wait_ms / 1000)

    def release(self) -> None:
        """See `LockProvider`."""
        self._lock.release()

    def is_ours(self) -> bool:
        """Always: it cannot be taken over."""
        return True

    def holder(self) -> str:
        """See `LockProvider`."""
        return f"another thread of this process holds the lock of {self._root}"

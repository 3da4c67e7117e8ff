"""What takes and releases a lock, one implementation for each of Hudi's lock providers that is served."""

from __future__ import annotations

import threading
from typing import Protocol


class LockProvider(Protocol):
    """One lock, as one holder at a time sees it."""

    def try_acquire(self, purpose: str) -> bool:
        """
        Take the lock if it is free, or may be taken over; False when another has it.

        Raises:
            StorageError: The storage refused; the lock is not ours.
        """

    def release(self) -> None:
        """
        Give it back; nothing happens where another has taken it over.

        Raises:
            StorageError: The storage refused; the lock may still look held.
        """

    def is_ours(self) -> bool:
        """Whether it is still held by us."""

    def holder(self) -> str:
        """In words: which lock it is, who has it and since when; for whoever waits for it."""


_LOCKS: dict[str, threading.Lock] = {}
_LOCKS_GUARD = threading.Lock()


class InProcessLock:
    """
    One lock per table for the threads of this process, as Hudi's ``InProcessLockProvider``.

    Args:
        root: Of the table.
        wait_ms: How long one try takes.
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
        """Nobody can take it away."""
        return True

    def holder(self) -> str:
        """See `LockProvider`."""
        return f"another thread of this process holds the lock of {self._root}"

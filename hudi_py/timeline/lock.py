"""
What the services see of the table's lock: they hold it, and ask before a commit point whether they still do.

The providers are in `hudi_py.txn`. It travels with the `TimelineStore`, so that whoever can change the timeline has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Final, Protocol

from hudi_py.errors import ConflictError
from hudi_py.runtime.log import log


class Lock(Protocol):
    """One table's lock. Held again by the thread that holds it, it stays held until the outermost holding ends."""

    @property
    def is_used(self) -> bool:
        """Whether there is one at all: without it, one process at a time changes the table, and nothing is asked."""

    def held(self, purpose: str) -> AbstractContextManager[None]:
        """
        Hold the lock; the purpose is shown to those who wait for it.

        What was read of the table before is to be read again inside.

        Raises:
            ConfigError: The settings ask for a lock that is not supported; nothing was changed.
            ConflictError: Another writer holds it, for longer than the settings let us wait.
            StorageError: The storage refused; or, at the end, the lock could not be released.
        """

    def examine(self) -> None:
        """
        Check for a dry run that the settings name a supported lock, without taking it.

        Raises:
            ConfigError: They do not.
        """

    def check(self) -> None:
        """
        Make sure, right before a commit point, that the lock is still ours; nothing is asked while it is not held.

        Raises:
            ConflictError: It was taken over or removed.
        """


class _NoLock:
    is_used = False

    def held(self, purpose: str) -> AbstractContextManager[None]:
        return nullcontext()

    def examine(self) -> None:
        return

    def check(self) -> None:
        return


NO_LOCK: Final[Lock] = _NoLock()


@contextmanager
def held_if_free(lock: Lock, purpose: str) -> Iterator[bool]:
    """Hold the lock for what can as well be done another time; False where another writer goes on holding it."""
    with ExitStack() as stack:
        try:
            stack.enter_context(lock.held(purpose))
        except ConflictError as error:
            log.warning("lock.not_obtained", left_out=purpose, why=str(error))
            is_held = False
        else:
            is_held = True
        yield is_held

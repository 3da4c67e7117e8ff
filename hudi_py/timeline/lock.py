"""
The table's lock as the services use it: they hold it, and check before each commit point that they still do.

The providers are in `hudi_py.txn`. The lock is part of the `TimelineStore`, so all code that can change the timeline
has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import ClassVar, Final, Protocol

from hudi_py.errors import ConflictError
from hudi_py.runtime.log import log


class LockHeld(ConflictError):
    """
    Another writer did not release the lock in the time that the settings allow.

    A write is not begun again after it: it has waited as long as it was told to.
    """


class Lock(Protocol):
    """The lock of a table. It can be held again by the thread that holds it, and is released at the outermost end."""

    @property
    def is_used(self) -> bool:
        """Whether the table has a lock; without one, only one process at a time may change the table."""

    def held(self, purpose: str) -> AbstractContextManager[None]:
        """
        Hold the lock; the purpose is shown to those who wait for it.

        Whatever was read of the table before has to be read again inside.

        Raises:
            ConfigError: The settings ask for a lock that is not supported; nothing was changed.
            ConflictError: Another writer holds it, for longer than the settings let us wait.
            StorageError: The storage refused; or, at the end, the lock could not be released.
        """

    def examine(self) -> None:
        """
        Check for a dry run that the settings name a supported lock, without taking it.

        Raises:
            ConfigError: The lock is not supported.
        """

    def afterwards(self, action: Callable[[], None]) -> None:
        """Run *action*, which raises no error of its own, once the lock is released; at once if it is not held."""

    def look(self) -> None:
        """
        Look, before an action begins, whether another process holds a lock that is not this one.

        Raises:
            ConfigError: It does, and this process has none. With a lock this was asked when it was taken.
        """

    def check(self) -> None:
        """
        Check, right before a commit point, that the lock is still ours; does nothing while it is not held.

        Raises:
            ConflictError: It was taken over or removed.
            ConfigError: As `look`.
        """


class NoLock:
    """The lock of a table that has none: nobody is kept out."""

    is_used: ClassVar[bool] = False

    def held(self, purpose: str) -> AbstractContextManager[None]:
        """See `Lock`."""
        return nullcontext()

    def examine(self) -> None:
        """See `Lock`."""

    def afterwards(self, action: Callable[[], None]) -> None:
        """See `Lock`."""
        action()

    def look(self) -> None:
        """See `Lock`."""

    def check(self) -> None:
        """See `Lock`."""


NO_LOCK: Final[Lock] = NoLock()


class RehearsedLock(NoLock):
    """
    The lock of a table on which something is only rehearsed: as if it were free, and nobody is kept out.

    Taken for real, it would stop writers; many locks are not kept in the table, whose changes a rehearsal forgets.

    Args:
        lock: The lock of the table.
    """

    is_used: ClassVar[bool] = True

    def __init__(self, lock: Lock) -> None:
        self._lock = lock

    @contextmanager
    def held(self, purpose: str) -> Iterator[None]:
        """See `Lock`."""
        self._lock.examine()  # what the real run would be refused for is refused here
        yield

    def examine(self) -> None:
        """See `Lock`."""
        self._lock.examine()


class LockOfTable(NoLock):
    """
    The lock of a metadata table: that of its table, which whoever changes the metadata table holds already.

    A process that was stopped for longer than its lock lasts would record there what another one has undone since.

    Args:
        lock: The lock of the table.
    """

    def __init__(self, lock: Lock) -> None:
        self._lock = lock

    def check(self) -> None:
        """See `Lock`."""
        if self._lock.is_used:
            self._lock.check()


@contextmanager
def held_if_free(lock: Lock, purpose: str) -> Iterator[bool]:
    """Hold the lock for work that can be done another time; yields False if another writer keeps holding it."""
    with ExitStack() as stack:
        try:
            stack.enter_context(lock.held(purpose))
        except ConflictError as error:
            log.warning("lock.not_obtained", left_out=purpose, why=str(error))
            is_held = False
        else:
            is_held = True
        # Outside of the `try`: a conflict in the body is not one about the lock.
        yield is_held

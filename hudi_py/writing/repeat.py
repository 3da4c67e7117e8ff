"""Begins a write again when another writer was faster: on the current state, after a delay, a few times."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import attrs

from hudi_py.config.concurrency import Concurrency
from hudi_py.errors import (
    ConflictError,
    HudiError,
    NotFound,
    OutcomeUnknown,
    RefusedError,
    ServiceFailed,
    StorageError,
    TimelineStateError,
    WriteError,
)
from hudi_py.storage.retry import Retry
from hudi_py.timeline.heartbeat import ClocksApart
from hudi_py.timeline.lock import LockHeld
from hudi_py.txn.early import EarlyConflict
from hudi_py.writing.result import WriteResult
from hudi_py.writing.transaction import WriteTransaction

CHANGED_MEANWHILE: Final = (ConflictError, TimelineStateError, NotFound)
"""The state that a write is based on has changed; a missing file was deleted by a clean of another process."""
_GIVES_UP: Final = (*CHANGED_MEANWHILE, ClocksApart)
_REFUSED: Final = (RefusedError, WriteError)
DELAYS: Final = Retry(delay_s_first=0.1, delay_s_max=60.0)
"""As in Apache Iceberg (``commit.retry``); the number of attempts and the time limit are settings."""


def repeated(
    attempt: Callable[[], WriteResult],
    concurrency: Concurrency,
    *,
    what: str,
    retries_max: int | None = None,
    delays: Retry = DELAYS,
    wait: Callable[[EarlyConflict, float], None] = lambda *_: None,
) -> WriteResult:
    """
    Run a write, and begin it again as long as other writers are faster.

    Args:
        attempt: Runs it once; looks first whether its write key is committed.
        concurrency: How many times, and how long, if other writers are expected; otherwise it runs once.
        what: The write, for the log.
        retries_max: Replaces the number in the settings.
        delays: Between the attempts, with clock and randomness.
        wait: Waits until the running write that was in the way is over, at most for a number of seconds.

    Raises:
        ConflictError: All attempts lost; nothing of them is visible.
        As *attempt*; after an outcome that is unknown, nothing is repeated.
    """
    # With a single writer a conflict shows that there is another one after all, which the user has to know at once.
    if not concurrency.is_shared:
        return attempt()
    total_s = float("inf") if concurrency.patience is None else concurrency.patience.total_seconds()
    allowed = concurrency.retries_max if retries_max is None else retries_max
    attempts = delays._replace(attempts_max=allowed + 1, total_s=total_s).begin(what, "write.repeated")
    conflicts: list[str] = []
    # Ends by itself, because `Attempts` counts attempts and time.
    for retries in itertools.count():
        try:
            return attrs.evolve(attempt(), retries=retries, conflicts=tuple(conflicts))
        except LockHeld:  # it has waited as long as it was told to; each attempt would wait that long again
            raise
        except CHANGED_MEANWHILE as error:
            conflicts.append(str(error))
            if attempts.again(str(error)):
                if isinstance(error, EarlyConflict):
                    wait(error, attempts.left_s())
                continue
            if retries and isinstance(error, ConflictError):
                raise ConflictError(f"tried {retries + 1} times: {error}") from error
            raise
    raise AssertionError("the loop ends by itself")


@contextmanager
def given_up_if_lost(transaction: WriteTransaction, concurrency: Concurrency) -> Iterator[None]:
    """
    Roll the write back where its files would hinder others: other writers are expected and one was faster, or the table
    has no place for its rows, as an index of the metadata table for a key.

    Raises:
        ServiceFailed: The write is completed, and what had to be cleaned up after it was not: it must not be repeated.
        StorageError: In the place of `OutcomeUnknown` where that is about a step before the completed file.
    """
    try:
        yield
    except HudiError as error:
        time = transaction.instant_time
        if transaction.is_completed:
            raise ServiceFailed(
                f"commit {time} is completed and its rows are visible, so do not write them again; its markers, its "
                f"heartbeat or the table's lock could not be deleted: {error}",
                time,
            ) from error
        if isinstance(error, OutcomeUnknown) and not transaction.is_sent:
            raise StorageError(
                f"nothing of commit {time} is visible, it was not completed: {error}; the rows can be written again"
            ) from error
        # To roll it back would take the lock, too; when its last heartbeat has expired, a clean does.
        was_overtaken = concurrency.is_shared and isinstance(error, _GIVES_UP) and not isinstance(error, LockHeld)
        if was_overtaken or (isinstance(error, _REFUSED) and not transaction.is_sent):
            transaction.give_up()
        raise

"""
Writes of several threads of one process to one table take turns, where no lock and no look for conflicts is set.

A single writer rolls back every pending write before its own, because by agreement nobody else is at work. Threads of
one program do not know of that agreement: each with a `WriteClient` or a `Table` of its own, they rolled back each
other's running writes. Clustering, recovery, rollback and restore take no turns. Between processes the agreement stays:
only a lock that all of them share keeps them apart.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hudi_py.runtime.log import log

_turns: dict[str, threading.RLock] = {}
_guard = threading.Lock()


def _forget_turns() -> None:
    """In a new process: the threads that write have stayed in the other one, and would never end their turns here."""
    global _guard  # noqa: PLW0603 - it, too, may have been held at that moment
    _guard = threading.Lock()
    _turns.clear()


os.register_at_fork(after_in_child=_forget_turns)


@contextmanager
def taking_turns(root: str) -> Iterator[None]:
    """
    Wait until no other thread of this process writes to a table, however long that takes, and keep others waiting.

    A thread that has its turn can take it again.

    Args:
        root: Base path or URL of the table.
    """
    with _guard:
        # Never removed: a thread that still waits must wait for the same one. By the folder itself, because two threads
        # may come to it by different links.
        turn = _turns.setdefault(root if "://" in root else os.path.realpath(root), threading.RLock())
    if not turn.acquire(blocking=False):
        log.info("write.waiting", path=root, why="another thread of this process writes to the table")
        turn.acquire()
    try:
        yield
    finally:
        turn.release()

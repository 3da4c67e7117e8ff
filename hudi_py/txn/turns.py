"""
Threads of one process that write to one table, or rewrite, clean or repair it, take turns, where nobody looks for
conflicts.

A single writer rolls back every pending write before its own, because by agreement nobody else is at work. Threads of
one program do not know of that agreement: each with a `WriteClient` or a `Table` of its own, they rolled back each
other's running writes. Between processes the agreement stays: only a lock that all of them share keeps them apart.

A thread that has its turn takes it again for the services of its write. Only while a write takes its rows from the
caller it does not: what the caller's generator then did to the table would roll back that write.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from hudi_py.errors import RefusedError
from hudi_py.runtime.log import log


class _Mine(threading.local):
    """Tables whose turn this thread has, with what it has to call after it."""

    def __init__(self) -> None:
        self.later: dict[str, list[Callable[[], object]]] = {}


class _Taking:
    """A write that takes its rows, until it has them; code with a copy of its context may run later than that."""

    def __init__(self, table: str) -> None:
        self.table, self.is_over = table, False


_taken: ContextVar[tuple[_Taking, ...]] = ContextVar("hudi_py_taken", default=())
"""Writes that take their rows from this thread, or from one that has its context."""
_turns: dict[str, threading.RLock] = {}
_guard = threading.Lock()
_mine = _Mine()


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

    Raises:
        RefusedError: The caller makes the rows of a write to this table.
    """
    table = _table(root)
    if any(taking.table == table and not taking.is_over for taking in _taken.get()):
        raise RefusedError(
            f"{root} is being written with rows that come from the code that calls this (a generator or stream); it "
            "would undo that write, so nothing was done; change the table before or after that write, or make all of "
            "its rows first and write them then"
        )
    with _guard:
        # Never removed: a thread that still waits must wait for the same one.
        turn = _turns.setdefault(table, threading.RLock())
    if not turn.acquire(blocking=False):
        log.info("write.waiting", path=root, why="another thread of this process writes to the table")
        turn.acquire()
    is_outermost = table not in _mine.later
    _mine.later.setdefault(table, [])
    try:
        yield
    finally:
        calls = _mine.later.pop(table) if is_outermost else []
        turn.release()
        for call in calls:
            call()


def after_turn(root: str, call: Callable[[], object]) -> None:
    """Make a call that may take long, or wait for another thread: once this thread's turn, if it has it, is over."""
    calls = _mine.later.get(_table(root))
    if calls is None:
        call()
    else:
        calls.append(call)


@contextmanager
def taking_rows(root: str) -> Iterator[None]:
    """While a write that has its turn takes its rows from the caller: refuse whatever else this asks of the table."""
    taking = _Taking(_table(root))
    before = _taken.set((*_taken.get(), taking))
    try:
        yield
    finally:
        taking.is_over = True
        _taken.reset(before)


def _table(root: str) -> str:
    """By the folder itself, because two threads may come to it by different links, or names of one store."""
    scheme, separator, rest = root.partition("://")
    if not separator:
        return os.path.realpath(root)
    # As Hadoop calls it, in whose settings the same table may be named.
    scheme = "s3" if scheme.lower() == "s3a" else scheme.lower()
    return f"{scheme}://{rest.rstrip('/')}"

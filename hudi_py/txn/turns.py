"""
Threads of one process that write to one table, or rewrite, clean or repair it, take turns, where nobody looks for
conflicts.

A single writer rolls back every pending write before its own, because by agreement nobody else is at work. Threads of
one program do not know of that agreement: each with a `WriteClient` or a `Table` of its own, they rolled back each
other's running writes. Between processes the agreement stays: only a lock that all of them share keeps them apart.

A thread that has its turn takes it again for the services of its write. Only while a write takes its rows from the
caller it does not: what the caller's generator then did to the table would roll back that write.

A generator may write other tables, so threads may come to wait for each other in a circle: whoever would close it is
refused. What cannot be seen is a thread that waits for another one by other means, such as a pool.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

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
_PATIENCE_S: Final = 60
"""After that who waits says so once, in case that what it waits for waits for it."""


class _Turn:
    """The turn of one table, and the thread that has it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.owner: int | None = None


_turns: dict[str, _Turn] = {}
_waiting: dict[int, _Turn] = {}
"""What each thread waits for."""
_guard = threading.Lock()
_mine = _Mine()


def _forget_turns() -> None:
    """In a new process: the threads that write have stayed in the other one, and would never end their turns here."""
    global _guard, _mine
    _guard, _mine = threading.Lock(), _Mine()
    _turns.clear()
    _waiting.clear()


os.register_at_fork(after_in_child=_forget_turns)


@contextmanager
def taking_turns(root: str) -> Iterator[None]:
    """
    Wait until no other thread of this process writes to a table, however long that takes, and keep others waiting.

    A thread that has its turn can take it again.

    Args:
        root: Base path or URL of the table.

    Raises:
        RefusedError: The caller makes the rows of a write to this table; or the thread that has the turn waits for a
            table whose turn this one has.
    """
    table = place_of(root)
    if any(taking.table == table and not taking.is_over for taking in _taken.get()):
        raise RefusedError(
            f"{root} is being written with rows that come from the code that calls this (a generator or stream); it "
            "would undo that write, so nothing was done; change the table before or after that write, or make all of "
            "its rows first and write them then"
        )
    with _guard:
        # Never removed: a thread that still waits must wait for the same one.
        turn = _turns.setdefault(table, _Turn())
    if not turn.lock.acquire(blocking=False):
        _wait(turn, root)
    turn.owner = threading.get_ident()
    is_outermost = table not in _mine.later
    _mine.later.setdefault(table, [])
    try:
        yield
    finally:
        calls = []
        if is_outermost:
            calls, turn.owner = _mine.later.pop(table), None
        turn.lock.release()
        for call in calls:
            call()


def _wait(turn: _Turn, root: str) -> None:
    """Take a turn that another thread has."""
    log.info("write.waiting", path=root, why="another thread of this process writes to the table")
    ours = threading.get_ident()
    # Looked and entered in one step, so of those in a circle the last one sees all others.
    with _guard:
        if _closes_circle(turn, ours):
            raise RefusedError(
                f"{root} is being written by another thread of this process, which waits for a table that this thread "
                "is writing: both would wait for ever, so this was not done; write the two tables one after another, "
                "or make the rows of a write before it begins"
            )
        _waiting[ours] = turn
    try:
        if not turn.lock.acquire(timeout=_PATIENCE_S):
            why = "if what makes the rows of another thread's write waits for this call, neither will ever end"
            log.warning("write.waiting", path=root, why=why)
            turn.lock.acquire()
    finally:
        with _guard:
            _waiting.pop(ours, None)


def _closes_circle(turn: _Turn | None, ours: int) -> bool:
    while turn is not None and turn.owner is not None:
        if turn.owner == ours:
            return True
        turn = _waiting.get(turn.owner)
    return False


def after_turn(root: str, call: Callable[[], object]) -> None:
    """Make a call that may take long, or wait for another thread: once this thread's turn, if it has it, is over."""
    calls = _mine.later.get(place_of(root))
    if calls is None:
        call()
    else:
        calls.append(call)


@contextmanager
def taking_rows(root: str) -> Iterator[None]:
    """While a write that has its turn takes its rows from the caller: refuse whatever else this asks of the table."""
    taking = _Taking(place_of(root))
    before = _taken.set((*_taken.get(), taking))
    try:
        yield
    finally:
        taking.is_over = True
        _taken.reset(before)


def place_of(root: str) -> str:
    """Return one name for the place of a table: two threads may come to it by other links, or names of a store."""
    scheme, separator, rest = root.partition("://")
    if not separator or scheme.lower() == "file":
        return os.path.realpath(rest if separator else root.removeprefix("file:"))
    # As Hadoop calls it, in whose settings the same table may be named.
    scheme = "s3" if scheme.lower() == "s3a" else scheme.lower()
    return f"{scheme}://{rest.rstrip('/')}"

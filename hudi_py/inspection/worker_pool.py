"""
Processes that each run one table after the other, for commands over many tables.

No signal comes between while they are started: an executor that is interrupted then forgets them, and they and the
program wait for each other for ever. None outlives the program, not even one that is killed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait
from typing import Any, Final

from hudi_py.inspection.termination import EXIT_CODE as TERMINATED

Submit = Callable[..., "Future[Any]"]
"""Has a function called in one of the processes, with arguments; both are pickled."""

_HELD: Final = tuple(getattr(signal, name) for name in ("SIGALRM", "SIGTERM", "SIGINT") if hasattr(signal, name))
_is_left = threading.Event()
"""In such a process: whether the program that started it is gone."""


@contextmanager
def workers(size: int) -> Iterator[Submit]:
    """
    Processes for the time of the body, after which what was begun is finished and what was not is dropped.

    They must not run the program again that this process was started as, so for the time of their start it is hidden.
    A signal while the body ends stops what was begun, as SIGTERM does.

    Args:
        size: Number of processes.
    """
    names = sys.modules["__main__"].__dict__
    hidden = [(name, names.pop(name)) for name in ("__spec__", "__file__") if name in names]
    # Looked up by the start of a new process, which takes a missing one for an error.
    names["__spec__"] = None
    try:
        with ProcessPoolExecutor(size, get_context("spawn"), initializer=_begin) as pool:

            def submit(function: Callable[..., Any], *arguments: Any) -> Future[Any]:
                with signals_held():  # it starts processes as it needs them
                    return pool.submit(_work, function, *arguments)

            try:
                yield submit
            finally:
                try:
                    pool.shutdown(wait=True, cancel_futures=True)
                except KeyboardInterrupt:
                    for process in active_children():
                        process.terminate()
                    raise
    finally:
        names.update(hidden)


@contextmanager
def signals_held() -> Iterator[None]:
    """
    Have Ctrl-C, SIGTERM and the end of ``--timeout`` wait until the body is over.

    Ctrl-C also waits in processes that the body starts, which have it from the terminal, until `_begin` ignores it.
    """
    if threading.current_thread() is not threading.main_thread():  # only there do signals interrupt anything
        yield
        return
    former = {number: signal.getsignal(number) for number in _HELD}
    came: list[int] = []
    mask = _block()
    try:
        for number, handler in former.items():
            # One that is ignored, or ends the process at once, is left as it is.
            if callable(handler):
                signal.signal(number, lambda number, _frame: came.append(number))
        yield
    finally:
        _unblock(mask)
        for number, handler in former.items():
            if callable(handler):
                signal.signal(number, handler)
        for number in dict.fromkeys(came):
            signal.raise_signal(number)


def _block() -> set[int]:
    if not hasattr(signal, "pthread_sigmask"):
        return set()
    return {*signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})}


def _unblock(mask: set[int]) -> None:
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _begin() -> None:
    """Prepare a process: Ctrl-C is for the program, which has it finish what it began."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _unblock(set())
    threading.Thread(target=_end_with_parent, name="end-with-parent", daemon=True).start()


def _end_with_parent() -> None:
    """Wait until the program is gone, killed perhaps, and end: nobody would ever give more work to this process."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    _is_left.set()
    # A command ends as with Ctrl-C, and lets go of its locks; between two of them the process ends at once.
    os.kill(os.getpid(), signal.SIGTERM)


def _work(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    finally:
        if _is_left.is_set():
            os._exit(TERMINATED)

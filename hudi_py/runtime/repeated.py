"""Repeats a short piece of work from a thread until it is told to stop: renewals of locks and leases, heartbeats."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Final

_OF_MAIN: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class RepeatedWork:
    """
    Work that is done again after each pause, in a thread of its own.

    It can be started again after it was stopped. Between `stop` and the next `start` nothing is done.

    Args:
        work: Does it once; returns False if there is nothing left to repeat. Must not raise.
        pause_s: Seconds between two times.
    """

    def __init__(self, work: Callable[[], bool], pause_s: float) -> None:
        self._work, self._pause_s = work, pause_s
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether the thread is alive."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, name: str) -> None:
        """Begin, with a first pause; *name* is that of the thread."""
        # Each thread has an event of its own, known before it runs: wherever Ctrl-C interrupts this, `stop` ends it.
        self._stopped = threading.Event()
        # A daemon: it has to end with its process, however that ends, or what it keeps valid would be so for ever.
        self._thread = threading.Thread(target=self._repeat, args=(self._stopped,), name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it, and wait until work in progress is done."""
        # Waited for, because callers release or delete next what a late repetition would bring back.
        self._stopped.set()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join()

    def _repeat(self, stopped: threading.Event) -> None:
        # What asks a process to end is for its main thread. While that one waits in the system, as for a child, nothing
        # would wake it up if this thread took the signal.
        signal.pthread_sigmask(signal.SIG_BLOCK, _OF_MAIN)
        while not stopped.wait(self._pause_s) and self._work():
            pass

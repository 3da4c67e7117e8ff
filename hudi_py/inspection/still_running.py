"""A line a minute on standard error, so that a log shows that a long command without a terminal still runs."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from hudi_py.inspection.say import say

PERIOD_SECONDS: Final = 60.0


class Beat:
    """
    Says what a command is doing whenever a period has passed.

    Args:
        command: Name of the command.
        period: Seconds between two lines.
    """

    def __init__(self, command: str, period: float = PERIOD_SECONDS) -> None:
        self._command, self._period = command, period
        self._over = threading.Event()
        # A daemon, so that a command that fails without stopping it can end.
        self._thread = threading.Thread(target=self._tell, name="still-running", daemon=True)
        self.doing = ""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for a line that is being printed."""
        self._over.set()
        self._thread.join()

    def _tell(self) -> None:
        periods = 0
        while not self._over.wait(self._period):
            periods += 1
            minutes = round(periods * self._period / 60)
            said = self.doing
            say(f"hudi-py {self._command}: running for {minutes} min" + (f", {said}" if said else ""), file=sys.stderr)


_current: Beat | None = None
"""That of the command that runs in this process."""


def is_beat(line: str) -> bool:
    """Return whether a line on standard error says no more than that a command ran on."""
    return line.startswith("hudi-py ") and ": running for " in line


def can_redraw() -> bool:
    """Return whether standard error is a terminal that can redraw a line."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def still_running(command: str, *, is_wanted: bool) -> Iterator[None]:
    """Print a line a minute while the body runs, unless standard error is a terminal, where a person sees it."""
    if not is_wanted or can_redraw():
        yield
        return
    global _current  # noqa: PLW0603 - one command runs in a process, and what it calls has no way to hand it down
    outer, _current = _current, Beat(command)
    _current.start()
    try:
        yield
    finally:
        _current.stop()
        _current = outer


def doing(what: str) -> None:
    """Have the next line say what the command is doing, for instance ``deleting  1,000/5,000 files``."""
    if _current is not None:
        _current.doing = what

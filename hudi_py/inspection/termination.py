"""SIGTERM, by which schedulers and containers end a command: it ends as with Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

INTERRUPTED: Final = 128 + signal.SIGINT
"""Exit code after Ctrl-C."""
EXIT_CODE: Final = 128 + signal.SIGTERM
"""As shells report a command that the signal has ended."""


class Terminated(KeyboardInterrupt):
    """
    SIGTERM came.

    A kind of Ctrl-C: ended at once, the process would leave its lock, which nobody on another machine may take over.
    """


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Raise `Terminated` in the body when SIGTERM comes, unless who started this process has decided otherwise."""
    is_main = threading.current_thread() is threading.main_thread()  # only there can it be set
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def end(_number: int, _frame: Any) -> NoReturn:
        raise Terminated

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

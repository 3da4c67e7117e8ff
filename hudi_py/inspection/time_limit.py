"""``--timeout``: ends a command after a time, in the way in which Ctrl-C does."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

from hudi_py.errors import ConfigError

EXIT_CODE: Final = 124
"""That of the command ``timeout`` of GNU, which scripts know."""

_SECONDS_MAX: Final = 1e8  # about three years: the timer does not take every number


class TimedOut(KeyboardInterrupt):
    """
    The time of ``--timeout`` is over.

    A kind of Ctrl-C, because whatever tidies up after that (pools, locks, unfinished files) has to do so here, too.
    """


@contextmanager
def time_limit(text: str | None) -> Iterator[None]:
    """
    Raise `TimedOut` in the body when it takes longer than *text*, such as ``30s`` or ``15m``; None for no limit.

    Raises:
        ConfigError: *text* is not a span of time, or this system has no timer.
    """
    if text is None:
        yield
        return
    # Imported here: most commands have no limit, and should not wait for the module.
    from hudi_py.model.instant_time import parse_duration

    span = parse_duration(text)
    if not span:
        raise ConfigError(f"--timeout {text} is not a span of time; give one such as 30s, 15m or 2h")
    if not hasattr(signal, "setitimer"):
        raise ConfigError("--timeout is not available on this system; end the command from outside")

    def end(_number: int, _frame: Any) -> NoReturn:
        raise TimedOut(text)

    former = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, min(span.total_seconds(), _SECONDS_MAX))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)

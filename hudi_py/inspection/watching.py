"""``--watch``: runs something again and again until a signal ends it, between two runs and never within one."""

from __future__ import annotations

import signal
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from hudi_py.errors import ConfigError
from hudi_py.model.instant_time import parse_duration
from hudi_py.runtime.clock import SLEEP
from hudi_py.runtime.randomness import fraction

_SPREAD: Final = 0.2
_PAUSE_MAX: Final = timedelta(days=366)
"""Operating systems do not wait for any time."""
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class _Ended(BaseException):
    """A signal came while nothing was running."""


def watch_span(text: str) -> timedelta:
    """
    Return the time between two runs.

    Raises:
        ConfigError: It is not a span of time, or longer than a year.
    """
    span = parse_duration(text)
    if not span or span > _PAUSE_MAX:
        raise ConfigError(f"--watch {text} is not a span of time up to a year; give one such as 30s, 15m or 2h")
    return span


def watch(
    span: timedelta,
    run: Callable[[], int],
    *,
    wait: Callable[[float], None] = SLEEP,
    chance: Callable[[], float] = fraction,
) -> int:
    """
    Run until SIGTERM or Ctrl-C; one that comes during a run ends it when the run is done, a second one at once.

    Args:
        span: Time between two runs; it is up to a tenth longer or shorter by chance, so that many processes that were
            started together do not all work at the same time.
        run: One run; returns its exit code.
        wait: Waits for a number of seconds.
        chance: Returns a number of at least 0 and less than 1.

    Returns:
        The exit code of the last run.

    Raises:
        KeyboardInterrupt: A second signal came during a run.
    """
    state = {"asked": False, "waits": False}

    def end(_number: int, _frame: Any) -> None:
        if state["asked"] and not state["waits"]:
            raise KeyboardInterrupt
        state["asked"] = True
        if state["waits"]:
            raise _Ended

    former = {number: signal.signal(number, end) for number in _SIGNALS}
    code = 0
    try:
        while True:
            code = run()
            # First this, then the question: a signal in between is not overlooked.
            state["waits"] = True
            if state["asked"]:
                return code
            wait(span.total_seconds() * (1 - _SPREAD / 2 + _SPREAD * chance()))
            state["waits"] = False
    except _Ended:
        return code
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)

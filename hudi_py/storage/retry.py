"""
How often and how long failed calls to a store are repeated: one rule for all verbs.

A call that fails temporarily is worth another attempt; a store that never answers is not. So the number of attempts
and their total time are limited, and every repetition is logged, so that users see why they are waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import attrs

from hudi_py.runtime.clock import MONOTONIC, SLEEP, Seconds
from hudi_py.runtime.log import log
from hudi_py.runtime.randomness import fraction


class Retry(NamedTuple):
    """
    Exponential backoff with an upper limit, each delay randomly shortened by up to half.

    The random part keeps many clients that failed together from coming back together.

    Args:
        attempts_max: Attempts of one call, including the first one.
        delay_s_first: Delay before the second attempt, in seconds; doubles with every attempt.
        delay_s_max: Largest delay before any attempt, in seconds.
        total_s: No attempt begins later than this many seconds after the first one.
        sleep: Waits for a number of seconds.
        clock: Returns seconds of a monotonic clock.
        chance: Returns random numbers from 0 to 1.
    """

    attempts_max: int = 6
    delay_s_first: float = 0.2
    delay_s_max: float = 8.0
    total_s: float = 60.0
    sleep: Callable[[float], None] = SLEEP
    clock: Seconds = MONOTONIC
    chance: Callable[[], float] = fraction

    def begin(self, call: str, event: str = "storage.call.repeated") -> Attempts:
        """Start counting attempts and time of a call; *event* and *call* name it in the log."""
        return Attempts(self, call, event, self.clock())


@attrs.define
class Attempts:
    """The attempts of one call."""

    _retry: Retry
    _call: str
    _event: str
    _started_s: float
    _failed: int = 0

    def left_s(self) -> float:
        """Seconds in which another attempt may still begin; 0 if none is left."""
        return max(self._retry.total_s - (self._retry.clock() - self._started_s), 0.0)

    def again(self, reason: str) -> bool:
        """After a failed attempt: wait and return True if another one is allowed, otherwise return False at once."""
        retry, number = self._retry, self._failed
        self._failed += 1
        delay_s = (0.5 + retry.chance() / 2) * min(retry.delay_s_first * 2**number, retry.delay_s_max)
        waited_s = retry.clock() - self._started_s
        # The delay counts too: an attempt that could only begin after the limit is not waited for.
        if self._failed >= retry.attempts_max or waited_s + delay_s > retry.total_s:
            return False
        waited = round(waited_s, 1)
        log.warning(self._event, call=self._call, attempt=self._failed, waited_s=waited, why=reason)
        retry.sleep(delay_s)
        return True

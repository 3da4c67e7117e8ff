"""
How long calls to a store are repeated: one rule for all verbs, bounded in number and in time.

A call that fails for a moment is worth another try; a store that never answers is not. So the number of attempts and
the time for all of them together are bounded, and each repetition is logged: nobody waits in silence.
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
    Capped exponential delays, each randomly shortened by up to half.

    Args:
        attempts_max: Of one call, the first one included.
        delay_s_first: Before the second attempt.
        delay_s_max: Before any.
        total_s: No attempt begins later than this after the first one began.
        sleep: Takes seconds.
        clock: Gives seconds that only grow.
        chance: Gives random numbers from 0 to 1.
    """

    attempts_max: int = 6
    delay_s_first: float = 0.2
    delay_s_max: float = 8.0
    total_s: float = 60.0
    sleep: Callable[[float], None] = SLEEP
    clock: Seconds = MONOTONIC
    chance: Callable[[], float] = fraction

    def begin(self, call: str) -> Attempts:
        """Before the first attempt; *call* is named in the log."""
        return Attempts(self, call, self.clock())


@attrs.define
class Attempts:
    """The attempts of one call."""

    _retry: Retry
    _call: str
    _started_s: float
    _failed: int = 0

    def again(self, reason: str) -> bool:
        """After an attempt that failed: wait and return True when another one is due, else False at once."""
        retry, number = self._retry, self._failed
        self._failed += 1
        delay_s = (0.5 + retry.chance() / 2) * min(retry.delay_s_first * 2**number, retry.delay_s_max)
        waited_s = retry.clock() - self._started_s
        if self._failed >= retry.attempts_max or waited_s + delay_s > retry.total_s:
            return False
        waited = round(waited_s, 1)
        log.warning("storage.call.repeated", call=self._call, attempt=self._failed, waited_s=waited, why=reason)
        retry.sleep(delay_s)
        return True

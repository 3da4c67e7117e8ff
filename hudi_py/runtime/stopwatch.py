"""Measures how long the phases of an operation take."""

from __future__ import annotations

from hudi_py.runtime.clock import MONOTONIC, Seconds


class Stopwatch:
    """
    Started when it is created.

    Args:
        monotonic: Clock in seconds.

    Attributes:
        seconds: Duration of each finished phase, in order.
    """

    def __init__(self, monotonic: Seconds = MONOTONIC) -> None:
        self._monotonic = monotonic
        self._since = monotonic()
        self.seconds: dict[str, float] = {}

    def lap(self, phase: str) -> None:
        """End *phase*, which began when the phase before it ended; further laps of a phase add up."""
        now = self._monotonic()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._since
        self._since = now

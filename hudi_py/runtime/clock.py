"""
Clocks. Whatever needs the time takes a `Clock`, or seconds that only grow; only this module asks the machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Final, Protocol, TypeAlias

import attrs

Seconds: TypeAlias = Callable[[], float]
"""Gives seconds from some moment on."""

MONOTONIC: Final[Seconds] = time.monotonic
CPU: Final[Seconds] = time.thread_time
"""Those that the calling thread has worked."""
SLEEP: Final[Callable[[float], None]] = time.sleep


def epoch_ms() -> int:
    """Milliseconds since 1970 by the machine's clock."""
    return time.time_ns() // 1_000_000


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """The present moment, aware."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(timezone.utc)


@attrs.define
class FixedClock:
    """A clock that stands still until it is moved; for planning at a given time, and for tests."""

    moment: datetime

    def now(self) -> datetime:
        return self.moment

    def move(self, span: timedelta) -> None:
        """Let *span* pass; negative to go back."""
        self.moment += span


@attrs.frozen
class Deadline:
    """
    A moment after which nothing more is taken on.

    Args:
        clock: Tells whether it has come.
        moment: Aware; None for never.
    """

    clock: Clock
    moment: datetime | None = None

    @classmethod
    def after(cls, clock: Clock, span: timedelta | None) -> Deadline:
        """So long from now; never where *span* is None or longer than the calendar."""
        try:
            return cls(clock, None if span is None else clock.now() + span)
        except OverflowError:
            return cls(clock)

    @property
    def is_limited(self) -> bool:
        """Whether it may come at all."""
        return self.moment is not None

    @property
    def is_over(self) -> bool:
        """Whether it has come."""
        return self.moment is not None and self.clock.now() >= self.moment


def zone_of(timeline_timezone: str) -> tzinfo:
    """
    The zone in which a table's instant times are written.

    Args:
        timeline_timezone: ``UTC`` or ``LOCAL`` (the zone of the process, as Hudi takes that of the JVM).
    """
    if timeline_timezone == "UTC":
        return timezone.utc
    return _ProcessZone()


class _ProcessZone(tzinfo):
    """The process's zone, by the rules in force at each moment (summer time included)."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        if moment is None:
            return None
        return moment.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, moment: datetime | None) -> timedelta | None:
        return None

    def tzname(self, moment: datetime | None) -> str:
        return "LOCAL"

    def fromutc(self, moment: datetime) -> datetime:
        local = moment.replace(tzinfo=timezone.utc).astimezone()
        return local.replace(tzinfo=self)

    def __reduce__(self) -> tuple[type[_ProcessZone], tuple[()]]:
        return (_ProcessZone, ())

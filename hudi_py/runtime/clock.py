"""
Clocks. Code that needs the time takes a `Clock` or a source of monotonic seconds as an argument, so that tests can set
the time. Only this module reads the machine's clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Final, Protocol, TypeAlias, runtime_checkable

import attrs

from hudi_py.errors import ConfigError

Seconds: TypeAlias = Callable[[], float]
"""Returns seconds since an arbitrary moment; only differences have a meaning."""

# For durations, because the clock of the machine may be set back meanwhile.
MONOTONIC: Final[Seconds] = time.monotonic
CPU: Final[Seconds] = time.thread_time
"""CPU time of the calling thread."""
SLEEP: Final[Callable[[float], None]] = time.sleep


def epoch_ms() -> int:
    """Return the milliseconds since 1970 by the machine's clock."""
    return time.time_ns() // 1_000_000


@runtime_checkable
class Clock(Protocol):
    """A source of the current time."""

    def now(self) -> datetime:
        """Return the current time, timezone-aware."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(timezone.utc)


def clock_of(given: Clock | None) -> Clock:
    """
    Return the clock that a caller gives, or for None the machine's.

    Raises:
        ConfigError: It tells no time.
    """
    if given is not None and not isinstance(given, Clock):
        raise ConfigError(f"clock={given!r}: give an object whose now() returns a datetime with a time zone")
    return SystemClock() if given is None else given


@attrs.define
class FixedClock:
    """A clock that stands still until it is moved; for planning at a given time, and for tests."""

    moment: datetime

    def now(self) -> datetime:
        return self.moment

    def move(self, span: timedelta) -> None:
        """Advance the clock by *span*; a negative one turns it back."""
        self.moment += span


@attrs.frozen
class Deadline:
    """
    A time limit: after it no new work is started; work in progress is finished.

    Args:
        clock: Clock that decides whether the limit is reached.
        moment: Timezone-aware; None for no limit.
    """

    clock: Clock
    moment: datetime | None = None

    @classmethod
    def after(cls, clock: Clock, span: timedelta | None) -> Deadline:
        """Return the deadline *span* from now; no limit if *span* is None or exceeds the calendar."""
        try:
            return cls(clock, None if span is None else clock.now() + span)
        except OverflowError:
            # A limit beyond the calendar is never reached.
            return cls(clock)

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit at all."""
        return self.moment is not None

    @property
    def is_over(self) -> bool:
        """Whether the limit is reached."""
        return self.moment is not None and self.clock.now() >= self.moment


def zone_of(timeline_timezone: str) -> tzinfo:
    """
    Return the time zone of a table's instant times.

    Args:
        timeline_timezone: ``UTC`` or ``LOCAL`` (the zone of this process, as Hudi uses the zone of the JVM).
    """
    if timeline_timezone == "UTC":
        return timezone.utc
    return _ProcessZone()


class _ProcessZone(tzinfo):
    """The time zone of the process, with the offset valid at each moment (daylight saving time included)."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        if moment is None:
            return None
        # Asked for each moment, because the offset changes with daylight saving time.
        return moment.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, moment: datetime | None) -> timedelta | None:
        return None

    def tzname(self, moment: datetime | None) -> str:
        return "LOCAL"

    def fromutc(self, moment: datetime) -> datetime:
        local = moment.replace(tzinfo=timezone.utc).astimezone()
        return local.replace(tzinfo=self)

    def __reduce__(self) -> tuple[type[_ProcessZone], tuple[()]]:
        # Another process has its own zone, as another JVM has for Hudi.
        return (_ProcessZone, ())

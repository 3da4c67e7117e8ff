"""
The calendar ladder: which snapshots stay although they lie before every window. Pure.

A snapshot is a completed commit, and a slice belongs to it if a reader at that commit sees it. Per rung the newest
snapshot of each of the last N days, weeks or months *that have one* stays, so no clock is asked and a quiet spell
takes nothing away. Instant times are in the table's zone, so their digits are its calendar.

What a plan with a ladder records is made so that the next clean is right, whoever makes it. Its earliest instant to
retain is the oldest snapshot kept: an incremental plan begins there (rule A-30), and what a kept snapshot sees was
superseded after it, so the partition is looked at once the snapshot falls off the ladder; archival keeps the
replacecommits from there on (rule D-9), so no replaced group comes back to life. Between that snapshot and the window
there are holes, which Hudi cannot express: the snapshots and the window's start are recorded in the plan's extra
metadata, which every release carries along, and `hudi_py` answers no question about a time in a hole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from typing import Final

from hudi_py.config.clean import CleanConfig
from hudi_py.services.clean.retention.policy import Reason, Snapshot


def _week(time: str) -> str:
    try:
        year, week, _ = date(int(time[:4]), int(time[4:6]), int(time[6:8])).isocalendar()
    except ValueError:  # no date (times of metadata-table services): a week of its own
        return time
    return f"{year:04d}W{week:02d}"


_PERIODS: Final[tuple[tuple[Reason, Callable[[str], str]], ...]] = (
    (Reason.DAILY, lambda time: time[:8]),
    (Reason.WEEKLY, _week),
    (Reason.MONTHLY, lambda time: time[:6]),
)


def climb(times: Iterable[str], config: CleanConfig) -> tuple[Snapshot, ...]:
    """
    The snapshots that the ladder keeps, ascending; one may stand for several rungs.

    Args:
        times: Requested times of the completed commits whose snapshots are whole.
    """
    ascending = sorted(set(times))
    counts = (config.keep_daily, config.keep_weekly, config.keep_monthly)
    found = []
    for (reason, period), count in zip(_PERIODS, counts, strict=True):
        newest = {period(time): time for time in ascending}
        found += [Snapshot(time, reason) for time in sorted(newest.values(), reverse=True)[:count]]
    return tuple(sorted(found, key=lambda each: each.time))

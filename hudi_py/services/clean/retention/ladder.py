"""
The calendar ladder: which snapshots are kept although they lie before every window. Pure.

A snapshot is a completed commit, and a slice belongs to it if a reader at that commit sees it. Each rung keeps the
newest snapshot of each of the last N days, weeks or months *that have one*, so the clock does not matter, and nothing
is lost while a table is not written. Instant times are in the table's time zone, so their digits are its calendar.

A plan with a ladder records values with which the next clean is right, by Apache Hudi too. Its earliest instant to
retain is the oldest kept snapshot: an incremental plan begins there (rule A-30). The files of a kept snapshot were
superseded after it, so their partitions are examined once the snapshot drops off the ladder. Archival keeps the
replacecommits from there on (rule D-9), so replaced groups do not become live again. Between that snapshot and the
window there are holes, which Hudi cannot express: the snapshots and the start of the window are recorded in the plan's
extra metadata, which every release passes on, and hudi_py refuses to read at a time in a hole.
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
    except ValueError:  # not a date, as times of services of metadata tables: a week of its own
        return time
    return f"{year:04d}W{week:02d}"


_PERIODS: Final[tuple[tuple[Reason, Callable[[str], str]], ...]] = (
    (Reason.DAILY, lambda time: time[:8]),
    (Reason.WEEKLY, _week),
    (Reason.MONTHLY, lambda time: time[:6]),
)


def climb(times: Iterable[str], config: CleanConfig) -> tuple[Snapshot, ...]:
    """
    The snapshots that the ladder keeps, ascending; a snapshot may be there for several rungs.

    Args:
        times: Requested times of the completed commits whose snapshots are complete.
        config: The settings, with the number of days, weeks and months.
    """
    ascending = sorted(set(times))
    counts = (config.keep_daily, config.keep_weekly, config.keep_monthly)
    found = []
    for (reason, period), count in zip(_PERIODS, counts, strict=True):
        # Ascending, so the last one of a period stays in the dictionary.
        newest = {period(time): time for time in ascending}
        found += [Snapshot(time, reason) for time in sorted(newest.values(), reverse=True)[:count]]
    return tuple(sorted(found, key=lambda each: each.time))

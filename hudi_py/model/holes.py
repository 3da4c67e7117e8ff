"""
Which past states of a table a clean with a calendar ladder kept, as recorded in the extra metadata of the clean.

Such a clean keeps some snapshots before its window (daily, weekly, …) and deletes files in between: the table as of
a time in between is a hole, because it cannot be read completely.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

import attrs

WINDOW: Final = "hudi_py.window"
SNAPSHOTS: Final = "hudi_py.snapshots"
READ_FROM: Final = "hudi_py.read_from"
"""Requested time from which on a clean kept everything for a consumer; there only if nothing else asked for that."""


@attrs.frozen
class Holes:
    """
    What a clean recorded about times before its window.

    Args:
        window: Requested time since which all snapshots are complete; ``""`` if nothing was recorded.
        snapshots: Times before the window whose snapshots are complete, ascending.
    """

    window: str = ""
    snapshots: tuple[str, ...] = ()

    def holds(self, time: str) -> bool:
        """Return whether the snapshot of the commit at *time* may be incomplete."""
        return time < self.window and time not in self.snapshots

    def as_extra_metadata(self, earliest: str = "") -> dict[str, str]:
        """
        Return the entries that plans store.

        Args:
            earliest: Requested time of the instant that the plan names as the earliest to retain; ``""`` for none.

        Returns:
            Empty if there are no snapshots before the window, and *earliest* is not before it either. Where it is, for
            the sake of a lease, the window has to be named: else all since *earliest* would be taken for complete.
        """
        if self.snapshots:
            return {WINDOW: self.window, SNAPSHOTS: ",".join(self.snapshots)}
        return {WINDOW: self.window} if earliest < self.window and earliest else {}


class CleanRecord(Protocol):
    """The plan of a clean, or the metadata of a completed one."""

    @property
    def extra_metadata(self) -> Mapping[str, str]:
        """Further entries, among them those of this module."""

    @property
    def last_completed_commit_timestamp(self) -> str:
        """Requested time of the last commit that the planner saw; ``""`` if none."""


def holes_of(record: CleanRecord) -> Holes:
    """Return the holes that a stored plan or a completed clean recorded."""
    return recorded_holes(record.extra_metadata, record.last_completed_commit_timestamp)


def recorded_holes(extra_metadata: Mapping[str, str], last_completed_commit: str) -> Holes:
    """
    Return the holes recorded in extra metadata.

    A ladder combined with retention by file versions has no window: superseded files are deleted at any age. Then the
    window starts at the newest commit that the planner saw. Our first releases recorded no window in this case.
    """
    snapshots = tuple(time for time in extra_metadata.get(SNAPSHOTS, "").split(",") if time)
    window = extra_metadata.get(WINDOW, "")
    return Holes(window or (last_completed_commit if snapshots else ""), snapshots)


NO_HOLES: Final = Holes()

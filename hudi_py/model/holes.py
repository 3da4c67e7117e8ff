"""What a clean with a calendar ladder records about the times before its window, in its extra metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

import attrs

WINDOW: Final = "hudi_py.window"
SNAPSHOTS: Final = "hudi_py.snapshots"


@attrs.frozen
class Holes:
    """
    What a clean recorded about the times before its window.

    Args:
        window: Requested time from which everything is there; ``""`` when nothing was recorded.
        snapshots: Times before it that are whole, ascending.
    """

    window: str = ""
    snapshots: tuple[str, ...] = ()

    def holds(self, time: str) -> bool:
        """Whether the table as of the commit of that time may be a hole."""
        return time < self.window and time not in self.snapshots

    def as_extra_metadata(self) -> dict[str, str]:
        """As plans store it; nothing where there are no snapshots before the window."""
        return {WINDOW: self.window, SNAPSHOTS: ",".join(self.snapshots)} if self.snapshots else {}


class CleanRecord(Protocol):
    """A clean's plan, or what a completed one recorded."""

    @property
    def extra_metadata(self) -> Mapping[str, str]:
        """What our keeps have it record."""

    @property
    def last_completed_commit_timestamp(self) -> str:
        """Requested time of the last commit that the planner saw; ``""`` if none."""


def holes_of(record: CleanRecord) -> Holes:
    """The record in a stored plan or in a completed clean."""
    return recorded_holes(record.extra_metadata, record.last_completed_commit_timestamp)


def recorded_holes(extra_metadata: Mapping[str, str], last_completed_commit: str) -> Holes:
    """
    What a plan records, or has recorded.

    A ladder beside file versions has no window: what is superseded is deleted however young it is. Then everything
    before the newest commit that the planner saw is off the ladder, which our first releases recorded as no window.
    """
    snapshots = tuple(time for time in extra_metadata.get(SNAPSHOTS, "").split(",") if time)
    window = extra_metadata.get(WINDOW, "")
    return Holes(window or (last_completed_commit if snapshots else ""), snapshots)


NO_HOLES: Final = Holes()

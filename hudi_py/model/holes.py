"""What a clean with a calendar ladder records about the times before its window, in its extra metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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


def holes_of(extra_metadata: Mapping[str, str]) -> Holes:
    """The record in a plan or in a completed clean."""
    snapshots = extra_metadata.get(SNAPSHOTS, "").split(",")
    return Holes(extra_metadata.get(WINDOW, ""), tuple(time for time in snapshots if time))


NO_HOLES: Final = Holes()

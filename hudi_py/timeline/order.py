"""The times by which ranges of changes compare writes. Pure."""

from __future__ import annotations

from typing import Final

from hudi_py.model.instant import Action
from hudi_py.timeline.timeline import Timeline

COMPLETED_WRITES: Final = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
"""Actions of completed writes, as archives name them."""


def order_times(timeline: Timeline, *, by_completion: bool) -> dict[str, str]:
    """Requested time of each completed write to the time that ranges compare."""
    return {
        instant.requested_time: (instant.completion_time if by_completion else None) or instant.requested_time
        for instant in timeline.writes.completed()
    }

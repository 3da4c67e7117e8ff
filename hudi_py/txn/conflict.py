"""
Whether an action may still complete: what we did, held against what the table shows now. Pure.

Asked under the lock, before anything is told of the action anywhere (`hudi_py.txn.commit`). Today the answer depends on
the action itself alone, for rows have one writer (`hoodie.write.concurrency.mode`); what several writers would have
read and written meanwhile is judged here too, once they are allowed. What undoes or pins beside something pending is
asked when it begins, not here: `hudi_py.txn.pairs`.
"""

from __future__ import annotations

import enum

from hudi_py.model.instant import Instant, State
from hudi_py.timeline.timeline import Timeline


class Verdict(enum.Enum):
    """What became of an inflight action of ours meanwhile; values are what people read."""

    CLEAR = "may complete"
    COMPLETED = "was completed by another process"
    TAKEN_BACK = "was rolled back or withdrawn by another process; reload and start again"


def judge(ours: Instant, now: Timeline) -> Verdict:
    """
    Whether *ours* may complete.

    Args:
        ours: Inflight, as we left it.
        now: The timeline as it is at this moment.
    """
    found = now.find(ours.requested_time, ours.action)
    if found is None or found.state is State.REQUESTED:
        return Verdict.TAKEN_BACK
    return Verdict.COMPLETED if found.is_completed else Verdict.CLEAR

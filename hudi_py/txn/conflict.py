"""
Decides whether an action may still complete, by comparing it with the current timeline. Pure.

Called under the lock, before the action is recorded anywhere (`hudi_py.txn.commit`). Today the answer depends on the
action alone, because rows have one writer (`hoodie.write.concurrency.mode`). Conflicts between several writers will be
judged here, too, once they are allowed. Conflicts of rollbacks, restores, savepoints and archivals with pending actions
are judged when those begin: `hudi_py.txn.pairs`.
"""

from __future__ import annotations

import enum

from hudi_py.model.instant import Instant, State
from hudi_py.timeline.timeline import Timeline


class Verdict(enum.Enum):
    """State of an inflight action of this process; values are texts for people."""

    CLEAR = "may complete"
    COMPLETED = "was completed by another process"
    TAKEN_BACK = "was rolled back or withdrawn by another process; reload and start again"


def judge(ours: Instant, now: Timeline) -> Verdict:
    """
    Decide whether an action may complete.

    Args:
        ours: The inflight action of this process.
        now: The current timeline.
    """
    found = now.find(ours.requested_time, ours.action)
    # Requested again: another process took the action back to its plan, as rollbacks of compactions do (rule B-25).
    if found is None or found.state is State.REQUESTED:
        return Verdict.TAKEN_BACK
    return Verdict.COMPLETED if found.is_completed else Verdict.CLEAR

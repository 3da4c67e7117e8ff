"""Reads plans of pending rollbacks, and removes unreadable ones that were not begun."""

from __future__ import annotations

from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.model.instant import Instant, State
from hudi_py.model.records import RollbackPlan
from hudi_py.runtime.log import log
from hudi_py.timeline.contents import Contents


def stored_plan(contents: Contents, instant: Instant) -> RollbackPlan | None:
    """
    The plan of a pending rollback, or None if it cannot be read (rule B-7).

    An unreadable plan that was only requested is removed: it has done nothing, and a new one is made from what the
    write left. If the rollback is inflight, its files are kept for inspection, and a new rollback is planned as well:
    without one, nothing could ever be written to the table again.
    """
    try:
        return contents.rollback_plan(instant)
    except (CorruptMetadata, NotFound) as error:
        log.warning("rollback.plan.unreadable", instant=instant.requested_time, why=str(error))
        if instant.state is State.REQUESTED:
            contents.store.remove(instant)
        return None

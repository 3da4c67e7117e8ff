"""Plans of pending rollbacks as they are stored, unreadable ones included."""

from __future__ import annotations

from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.model.instant import Instant, State
from hudi_py.model.records import RollbackPlan
from hudi_py.runtime.log import log
from hudi_py.timeline.contents import Contents


def stored_plan(contents: Contents, instant: Instant) -> RollbackPlan | None:
    """
    The pending rollback's plan, or None when it cannot be read (rule B-7).

    An unreadable plan that was only requested is removed: nothing was done by it, and a new one is made of what the
    write left. Once inflight it stays as it is, for whoever looks into it, and a new one is made all the same; without
    a plan nothing else could ever be written to the table.
    """
    try:
        return contents.rollback_plan(instant)
    except (CorruptMetadata, NotFound) as error:
        log.warning("rollback.plan.unreadable", instant=instant.requested_time, why=str(error))
        if instant.state is State.REQUESTED:
            contents.store.remove(instant)
        return None

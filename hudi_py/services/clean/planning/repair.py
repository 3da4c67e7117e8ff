"""
Removes damaged cleans from the timeline, since they would block all later ones.

Only files of 0 bytes are removed: a writer that does not create its files atomically leaves those when it dies. A
damaged file with content is evidence and stays; the error then says what to do. Source: rules/table-services
A.8, A-69, A-71, K-11; Hudi ``CleanPlanActionExecutor``, ``CleanActionExecutor``.
"""

from __future__ import annotations

from hudi_py.model.instant import Action, Instant, State
from hudi_py.runtime.log import log
from hudi_py.timeline.store import TimelineStore
from hudi_py.timeline.timeline import Timeline


def repair_cleans(store: TimelineStore) -> Timeline:
    """
    Remove empty instant files that need content; returns the timeline afterwards.

    1. If the newest completed clean is empty, its file is removed, so that the clean is pending again and carried out
       from its plan.
    2. If a pending clean has no plan in either of its files, both are removed, the inflight file first: after a crash
       in between, the clean is still a pending one without a plan. The next clean makes a new plan.
    """
    timeline = store.load()
    for instant in reversed(timeline.completed(Action.CLEAN)):
        # Only the newest ones in a row, as Hudi 1.1.1 (rule A-69): behind a good clean an empty one decides nothing.
        if not is_empty(store, instant):
            break
        _remove(store, instant, "it is empty; the clean is carried out again")
        timeline = store.load()
    removed = False
    for instant in timeline.pending(Action.CLEAN):
        files = [Instant(instant.requested_time, Action.CLEAN, state) for state in (State.INFLIGHT, State.REQUESTED)]
        sizes = [store.storage.size(store.path(file)) for file in files]
        # One of the two has content, and with it perhaps the plan.
        if any(sizes):
            continue
        removed = True
        for each in files:
            _remove(store, each, "the clean has no plan; nothing was deleted by it")
    return store.load() if removed else timeline


def is_empty(store: TimelineStore, instant: Instant) -> bool:
    """Whether the instant's file is empty."""
    return not store.read(instant)


def _remove(store: TimelineStore, instant: Instant, why: str) -> None:
    if store.remove(instant):
        log.warning("clean.empty_instant.removed", file=store.path(instant), why=why)

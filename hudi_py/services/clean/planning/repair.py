"""
Getting damaged cleans out of the way, so that no table stays uncleaned for ever.

Only files of 0 bytes are removed: a writer that does not create its files atomically leaves those when it dies.
Whatever holds something is evidence and stays; then the error names the way out. Source: rules/table-services
A.8, A-69, A-71, K-11; Hudi ``CleanPlanActionExecutor``, ``CleanActionExecutor``.
"""

from __future__ import annotations

from hudi_py.model.instant import Action, Instant, State
from hudi_py.runtime.log import log
from hudi_py.timeline.store import TimelineStore
from hudi_py.timeline.timeline import Timeline


def repair_cleans(store: TimelineStore) -> Timeline:
    """
    Remove what is empty where something has to be; returns the timeline afterwards.

    1. The newest completed clean is empty: it goes, so that the clean is pending again and carried out from its plan.
    2. A pending clean has no plan in either of its files: both go, in an order in which a crash leaves this same case,
       and the next plan is made from what is there.
    """
    timeline = store.load()
    for instant in reversed(timeline.completed(Action.CLEAN)):
        if not is_empty(store, instant):
            break
        _remove(store, instant, "it is empty; the clean is carried out again")
        timeline = store.load()
    removed = False
    for instant in timeline.pending(Action.CLEAN):
        files = [Instant(instant.requested_time, Action.CLEAN, state) for state in (State.INFLIGHT, State.REQUESTED)]
        sizes = [store.storage.size(store.path(each)) for each in files]
        if any(sizes):
            continue
        removed = True
        for each in files:
            _remove(store, each, "the clean has no plan; nothing was deleted by it")
    return store.load() if removed else timeline


def is_empty(store: TimelineStore, instant: Instant) -> bool:
    """Whether the instant's file holds nothing."""
    return not store.read(instant)


def _remove(store: TimelineStore, instant: Instant, why: str) -> None:
    if store.remove(instant):
        log.warning("clean.empty_instant.removed", file=store.path(instant), why=why)

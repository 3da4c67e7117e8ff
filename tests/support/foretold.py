"""The law of dry runs of maintenance: what is shown is what the run then does, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_py.services.maintenance.service import Chore, ChoreReport, MaintenanceReport
from hudi_py.timeline.lock import LockHeld

REWRITING = frozenset({Chore.COMPACTION, Chore.LOG_COMPACTION, Chore.CLUSTERING})
"""They read and write rows, which a dry run does not; what comes after one that is due says so."""
_OPEN = "not rehearsed"


def differences(shown: MaintenanceReport, done: MaintenanceReport) -> list[str]:
    """
    What a dry run did not foretell.

    Args:
        shown: The dry run.
        done: The run, with nothing in between and by the same clock.
    """
    assert [each.step for each in shown.steps] == [each.step for each in done.steps]
    found, rewrites = [], False
    for before, after in zip(shown.steps, done.steps, strict=True):
        is_behind = rewrites and before.step in REWRITING | {Chore.ARCHIVAL}
        rewrites = rewrites or (before.step in REWRITING and before.found is not None and before.found.is_due)
        if isinstance(after.error, LockHeld):  # by somebody who has died, or who is at work: a dry run waits for nobody
            continue
        is_open = before.found is not None and _OPEN in before.found.why
        if before.found is not None and is_open != is_behind:
            found.append(f"{before.step.value}: it {'says' if is_open else 'does not say'} that it is not known")
        # A plan that is pending is carried out first: whether another one is refused then, only its files can tell.
        is_open = is_open or (before.step in REWRITING and before.found is not None and bool(before.found.files))
        if not is_open and _facts(before) != _facts(after):
            found.append(f"{before.step.value}: shown {_facts(before)}, done {_facts(after)}")
    return found


def _facts(report: ChoreReport) -> Mapping[str, Any]:
    found = report.found
    if found is None:
        return {"error": type(report.error).__name__}
    facts: dict[str, Any] = {"due": found.is_due, "left": found.is_left}
    if report.step in REWRITING:  # what it writes has the time at which it is written
        return facts
    return {**facts, "deleted": found.deleted, "files": sorted(found.files)}

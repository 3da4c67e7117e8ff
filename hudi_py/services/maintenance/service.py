"""
Runs what is due on a table, one step after the other, and reports each.

The order is that of `Chore`: what frees files comes before what deletes them, what commits comes after it. Archival,
which reads the timeline, comes after everything that adds to it. A step that fails does not stop the others, which do
not depend on it; each one alone leaves the table as consistent as it found it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence

import attrs

from hudi_py.errors import HudiError
from hudi_py.model.shown import Shown
from hudi_py.runtime.log import log
from hudi_py.services.maintenance.budget import RunBudget


class Chore(enum.Enum):
    """The steps, in the order in which they are taken; values are the words in the report."""

    FAILED_WRITES = "failed writes"
    TAGS = "expired tags"
    DUE_TAGS = "tags that are due"
    CLEAN = "dead leases, clean"
    PARTITIONS = "expired partitions"
    COMPACTION = "compaction"
    LOG_COMPACTION = "log compaction"
    CLUSTERING = "clustering"
    ARCHIVAL = "archival, metadata table"
    QUARANTINE = "quarantine"
    ORPHANS = "orphans"

    # By identity, which is what members are compared by; the hash of the enum module is computed in Python each time.
    __hash__ = object.__hash__


@attrs.frozen
class ChoreResult:
    """
    What a step found, or did.

    Args:
        why: A sentence: why it is due or not, or what was done.
        files: Path of each file or name of each thing concerned, to the reason.
        is_due: Whether there is or was something to do.
        is_left: Whether all of that is left for the next run.
        deleted: Number of files that it deleted; of failed writes *files* names the writes alone.
    """

    why: str
    files: Mapping[str, str] = attrs.field(factory=dict)
    is_due: bool = True
    is_left: bool = False
    deleted: int = 0


@attrs.frozen
class Work:
    """
    How a step is taken.

    Args:
        step: Which.
        act: Does what is due, and tells it.
        deletes: Whether it deletes files.
        reports: Whether it only reports.
    """

    step: Chore
    act: Callable[[], ChoreResult]
    deletes: bool = False
    reports: bool = False


@attrs.frozen(kw_only=True)
class ChoreReport:
    """
    One step of a run.

    Args:
        step: Which.
        found: What was found or done; None if the step failed.
        is_done: Whether it changed the table, or may have.
        error: Why it failed; None otherwise.
    """

    step: Chore
    found: ChoreResult | None = None
    is_done: bool = False
    error: HudiError | None = None


@attrs.frozen(kw_only=True, repr=False)
class MaintenanceReport(Shown):
    """
    One run.

    Args:
        steps: Every step, in order.
        is_dry_run: Whether nothing was written.
    """

    steps: tuple[ChoreReport, ...]
    is_dry_run: bool = False

    @property
    def failed(self) -> tuple[ChoreReport, ...]:
        """The steps that failed."""
        return tuple(step for step in self.steps if step.error is not None)

    def _facts(self) -> Mapping[str, object]:
        due = [step.step.value for step in self.steps if step.found is not None and step.found.is_due]
        return {"due": due, "failed": [each.step.value for each in self.failed], "is_dry_run": self.is_dry_run}


def run(works: Sequence[Work], *, dry_run: bool = False, budget: RunBudget | None = None) -> MaintenanceReport:
    """
    Take the steps.

    Args:
        works: In order.
        dry_run: They are those of a rehearsal, so nothing is done.
        budget: What they may delete, and how long they may take; None for no limit.
    """
    steps = tuple(_taken(work, budget, dry_run=dry_run) for work in works)
    return MaintenanceReport(steps=steps, is_dry_run=dry_run)


def _taken(work: Work, budget: RunBudget | None, *, dry_run: bool) -> ChoreReport:
    over = "" if budget is None else budget.why_over(deletes=work.deletes)
    if over:
        # Due as far as is known: whoever looks at the report has to see that the run is not done.
        return ChoreReport(step=work.step, found=ChoreResult(f"left for the next run: {over}", is_left=True))
    try:
        found = work.act()
    except HudiError as error:
        # Logged here as well as reported: whoever runs this from a schedule may keep the log only.
        log.warning("maintenance.step.failed", step=work.step.name, why=str(error))
        return ChoreReport(step=work.step, error=error)
    is_done = not dry_run and not work.reports and found.is_due and not found.is_left
    return ChoreReport(step=work.step, found=found, is_done=is_done)

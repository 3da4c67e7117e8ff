"""Says that a run goes by a time that was given to it and has not come yet, whoever gave it."""

from __future__ import annotations

from datetime import datetime

from hudi_py.model.lease import CLOCKS_DIFFER_BY
from hudi_py.runtime.clock import Clock
from hudi_py.runtime.log import log


def warn_of_time_to_come(now: datetime | None, clock: Clock, what: str) -> None:
    """
    Log a warning if a run that changes the table takes a later time for the present.

    What becomes old only by then counts as old already, and what is deleted cannot be brought back.

    Args:
        now: The time that the run was given, with a time zone; None if it goes by the clock.
        clock: The present.
        what: What is run, in words.
    """
    if now is not None and now > clock.now() + CLOCKS_DIFFER_BY:
        log.warning("run.time_to_come", what=what, now=now.isoformat(), clock=clock.now().isoformat())

"""A time that has not come yet, given to a run that changes the table: it is said, whoever gave it."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from support.tables import NOW, TableBuilder, at

RUNS = {
    "clean": lambda table, now: table.clean(commits_retained=1, now=now),
    "orphans": lambda table, now: table.orphans(now=now),
}
LOOKS = {
    "plan": lambda table, now: table.plan_clean(commits_retained=1, now=now),
    "orphans": lambda table, now: table.orphans(now=now, dry_run=True),
    "expiry": lambda table, now: table.expire_partitions(days=1, now=now, dry_run=True),
}


def told(caplog, call, now):
    """Whether a warning is logged."""
    builder = TableBuilder()
    for number in range(1, 4):
        builder.commit(at(number), {"r0": ["f"], "r1": ["g"]})
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="hudi_py"):
        call(builder.table(), now)
    return sum("run.time_to_come" in each.getMessage() for each in caplog.records)


@pytest.mark.parametrize("run", RUNS)
def test_a_time_to_come_is_told_by_runs_that_delete(run, caplog):
    """What becomes old only by then is deleted now, and cannot be brought back."""
    assert told(caplog, RUNS[run], NOW + timedelta(days=400)) == 1
    assert told(caplog, RUNS[run], NOW + timedelta(seconds=30)) == 0  # clocks differ
    assert told(caplog, RUNS[run], NOW - timedelta(days=1)) == 0
    assert told(caplog, RUNS[run], None) == 0


@pytest.mark.parametrize("look", LOOKS)
def test_to_look_at_a_time_to_come_is_what_it_is_for(look, caplog):
    """Plans and dry runs say nothing: they change nothing."""
    assert told(caplog, LOOKS[look], NOW + timedelta(days=400)) == 0

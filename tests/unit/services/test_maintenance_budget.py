"""What one maintenance run may delete, and how long it may take, over all its steps."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hudi_py.errors import ConfigError
from hudi_py.model.instant import State
from hudi_py.model.instant_time import parse_instant_time
from hudi_py.services.maintenance.service import Chore
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.table import Table
from hudi_py.timeline import quarantine
from hudi_py.timeline.heartbeat import FOLDER as HEARTBEATS
from support.tables import NOW, TableBuilder, at, data_files

SETTINGS = {"hoodie.clean.commits.retained": 1, "hoodie_py.clean.quarantine": True, "hoodie_py.quarantine.grace": "1h"}


def history(commits=6):
    """A table with files to clean, and a removal in quarantine whose time is over."""
    builder = TableBuilder()
    for number in range(1, 4):
        builder.commit(at(number), {"r0": ["f", "g"]})
    builder.clock.moment = parse_instant_time(at(4), NOW.tzinfo)
    opened(builder).clean()
    for number in range(5, 5 + commits):
        builder.commit(at(number), {"r0": ["f", "g"]})
    builder.clock.moment = parse_instant_time(at(20), NOW.tzinfo)
    return builder


def opened(builder, **more):
    settings = {**SETTINGS, **more}
    return Table(builder.storage, settings=settings, clock=builder.clock)


def lying(builder):
    """Data files in the table, and in quarantine."""
    there = [path for path in builder.storage.files() if path.startswith(quarantine.FOLDER) and ".parquet" in path]
    return len(data_files(builder.storage)), len(there)


def steps(report):
    return {each.step: each for each in report.steps}


@pytest.mark.parametrize("limit", [1, 3, 4])
def test_files_are_counted_over_all_steps(limit):
    """What the clean takes is not left for the quarantine; runs one after the other come to the same end."""
    builder = history()
    builder.clock.move(timedelta(seconds=1))
    before = lying(builder)
    assert before[1] == 2
    report = opened(builder, **{"hoodie_py.clean.quarantine": False}).maintain(max_deletes=limit)
    cleaned = before[0] - lying(builder)[0]
    assert 0 < cleaned <= limit
    assert lying(builder)[1] == 2
    assert ("as many files" in steps(report)[Chore.QUARANTINE].found.why) == (cleaned == limit)
    for _ in range(12):
        builder.clock.move(timedelta(seconds=1))
        opened(builder, **{"hoodie_py.clean.quarantine": False}).maintain(max_deletes=limit + 1)
    whole = history()
    whole.clock.move(timedelta(seconds=1))
    opened(whole, **{"hoodie_py.clean.quarantine": False}).maintain()
    assert lying(builder) == lying(whole)


def test_bytes_are_counted_over_all_steps():
    """Each file has four bytes."""
    builder = history()
    builder.clock.move(timedelta(seconds=1))
    before = lying(builder)
    opened(builder, **{"hoodie_py.clean.quarantine": False}).maintain(max_bytes=12)
    after = lying(builder)
    assert 0 < before[0] + before[1] - after[0] - after[1] <= 3


def test_a_removal_that_does_not_fit_stays_whole():
    """Half a removal could not be put back, and the next run with room takes it."""
    builder = history(commits=0)
    builder.clock.move(timedelta(seconds=1))
    (removal,) = quarantine.removals(builder.storage)
    for limits in ({"max_deletes": 1}, {"max_bytes": 7}):
        step = steps(opened(builder).maintain(**limits))[Chore.QUARANTINE]
        assert lying(builder)[1] == 2
        assert (step.found.is_due, step.is_done, removal in step.found.why) == (True, False, True)
    step = steps(opened(builder).maintain(max_deletes=2, max_bytes=8))[Chore.QUARANTINE]
    assert lying(builder)[1] == 0
    assert (step.is_done, dict(step.found.files).keys()) == (True, {removal})


def test_no_step_begins_when_the_time_is_over():
    """Each of them is reported as left; nothing is written by it."""
    builder = history()

    class Late(Table):
        def remove_expired_savepoints(self):
            builder.clock.move(timedelta(minutes=16))
            return super().remove_expired_savepoints()

    before = lying(builder)
    report = Late(builder.storage, settings=SETTINGS, clock=builder.clock).maintain(max_duration="15m")
    left = [each for each in report.steps if each.found is not None and "time of this run is over" in each.found.why]
    assert [each.step for each in left] == [Chore.CLEAN, Chore.ARCHIVAL, Chore.QUARANTINE, Chore.ORPHANS]
    assert not any(each.is_done for each in left)
    assert all(each.found.is_due for each in left)
    assert lying(builder) == before


def test_limits_of_the_settings_stay_in_force():
    """The smaller one counts, whichever of the two it is."""
    for asked, set_to in ((5, 2), (2, 5)):
        builder = history()
        builder.clock.move(timedelta(seconds=1))
        before = lying(builder)[0]
        settings = {"hoodie_py.clean.max.files": set_to, "hoodie_py.clean.quarantine": False}
        opened(builder, **settings).maintain(max_deletes=asked)
        assert before - lying(builder)[0] == 2


@pytest.mark.parametrize("limits", [{"max_deletes": 0}, {"max_bytes": 0}, {"max_duration": "soon"}])
def test_wrong_limits_are_refused(limits):
    """Before the first step."""
    with pytest.raises(ConfigError, match="max_"):
        opened(history()).maintain(**limits)


def test_what_rollbacks_of_failed_writes_delete_counts_too():
    """A limit is of the run: with three files gone by the rollback, a clean of as many is left for the next run."""
    builder = history()
    builder.commit(at(15), {"r0": ["h", "i", "j"]}, state=State.INFLIGHT)
    builder.clock.move(timedelta(seconds=1))
    settings = {"hoodie_py.clean.quarantine": False, "hoodie.clean.failed.writes.policy": "LAZY"}
    before = lying(builder)
    done = steps(opened(builder, **settings).maintain(max_deletes=3))
    failed, clean = done[Chore.FAILED_WRITES], done[Chore.CLEAN]
    assert failed.is_done
    assert (dict(failed.found.files), failed.found.deleted) == ({at(15): "a failed write, rolled back"}, 3)
    assert (clean.is_done, clean.found.is_due, "as many files" in clean.found.why) == (False, True, True)
    assert lying(builder) == (before[0] - 3, before[1])
    clean = steps(opened(builder, **settings).maintain(max_deletes=3))[Chore.CLEAN]
    assert clean.found.why.startswith("clean ")
    assert before[0] - 6 <= lying(builder)[0] < before[0] - 3


def test_a_run_looks_for_failed_writes_once():
    """Each look at the heartbeats of pending writes is a request; a clean by itself has its own."""
    looks = []

    class Heard(DelegatingStorage):
        def list(self, folder, *, details=False):
            looks.append(folder)
            return super().list(folder, details=details)

    builder = history()
    builder.commit(at(15), {"r0": ["h"]}, state=State.INFLIGHT)
    builder.storage.replace(f"{HEARTBEATS}/{at(15)}", b"")
    settings = {**SETTINGS, "hoodie.clean.failed.writes.policy": "LAZY"}
    for run in (Table.maintain, Table.clean):
        run(Table(Heard(builder.storage), settings=settings, clock=builder.clock))
        assert looks.count(HEARTBEATS) == 1
        looks.clear()

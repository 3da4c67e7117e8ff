"""What a maintenance run does about writes that did not complete."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from hudi_py.model.instant import State
from hudi_py.model.instant_time import parse_instant_time
from hudi_py.services.maintenance.service import Chore
from hudi_py.table import Table
from hudi_py.timeline.heartbeat import FOLDER as HEARTBEATS
from support.tables import NOW, TableBuilder, at, data_files

POLICY = "hoodie.clean.failed.writes.policy"
WRITE = at(3)


def died(layout=2, *, beat_ago=None):
    """A table with a pending write; its heart beat last so long ago, or never."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["f", "g"]})
    builder.commit(at(2), {"r0": ["f"]})
    builder.clock.moment = parse_instant_time(at(4), NOW.tzinfo)
    builder.commit(WRITE, {"r0": ["h", "i"]}, state=State.INFLIGHT)
    if beat_ago is not None:
        builder.storage.replace(f"{HEARTBEATS}/{WRITE}", b"")  # its age is by the clock of the machine
        builder.clock.moment = datetime.now(timezone.utc) + beat_ago
    return builder


def step(report):
    (found,) = (each for each in report.steps if each.step is Chore.FAILED_WRITES)
    return found


def both(builder, **settings):
    """The step in a dry run, which writes nothing, and in a run."""

    def opened():
        return Table(builder.storage, settings=settings, clock=builder.clock)

    before = builder.storage.files()
    shown = step(opened().maintain(dry_run=True))
    assert builder.storage.files() == before
    return shown.found, step(opened().maintain())


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize(
    ("policy", "beat_ago", "goes"),
    [
        ("EAGER", timedelta(hours=1), True),
        ("EAGER", timedelta(seconds=1), False),
        ("EAGER", None, False),
        ("LAZY", timedelta(hours=1), True),
        ("LAZY", timedelta(seconds=1), False),
        ("LAZY", None, True),
        ("NEVER", timedelta(hours=1), False),
        ("NEVER", None, False),
    ],
)
def test_what_is_dead_for_certain_is_rolled_back_and_nothing_else(layout, policy, beat_ago, goes):
    """A single writer need not have a heartbeat, so without one it may be running; the dry run says the same."""
    builder = died(layout, beat_ago=beat_ago)
    before = data_files(builder.storage)
    shown, done = both(builder, **{POLICY: policy})
    assert (shown.is_due, done.is_done) == (goes, goes)
    assert set(shown.files) == set(done.found.files)
    own = {path for path in before if path.rpartition("/")[2].startswith(("h", "i"))}
    assert set(before) - set(data_files(builder.storage)) == (own if goes else set())
    timeline = builder.table().timeline
    assert (timeline.find(WRITE) is None) == goes
    assert done.found.deleted == (len(own) if goes else 0)


@pytest.mark.parametrize(("policy", "advice"), [("EAGER", "hudi-py recover"), ("NEVER", "hudi-py rollback")])
def test_what_is_left_is_named_with_what_to_do(policy, advice):
    """Otherwise nobody would know why archival stops before it."""
    shown, done = both(died(), **{POLICY: policy})
    for found in (shown, done.found):
        assert "1 pending write left alone" in found.why
        assert advice in found.files[WRITE]


@pytest.mark.parametrize("policy", ["EAGER", "LAZY"])
def test_where_deletion_is_forbidden_failed_writes_go_all_the_same(policy):
    """No reader was shown their files; the clean is left out."""
    builder = died(beat_ago=timedelta(hours=1))
    committed = {path for path in data_files(builder.storage) if not path.rpartition("/")[2].startswith(("h", "i"))}
    builder.table().forbid_deletion()
    shown, done = both(builder, **{POLICY: policy, "hoodie.clean.commits.retained": 1})
    assert (shown.is_due, done.is_done) == (True, True)
    assert set(data_files(builder.storage)) == committed


def test_what_a_restore_makes_pending_is_left_to_it():
    """It deletes the files itself, in its own order."""
    builder = died(beat_ago=timedelta(hours=1))
    builder.storage.replace(f".hoodie/timeline/{at(5)}.restore.requested", b"")
    service = Table(builder.storage, clock=builder.clock).services.failed_writes()
    assert not service.due_with_maintenance().dead
    assert service.with_maintenance() == ([], {})

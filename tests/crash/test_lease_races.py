"""A lease beside a clean or a rollback, in every order of their calls that touch timeline, leases and files."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from hudi_py.errors import ConflictError, RefusedError
from hudi_py.model.lease import Lease, encode_lease
from hudi_py.runtime.clock import FixedClock
from hudi_py.table import Table
from support.crash_points import IS_SAMPLE, interruptions
from support.tables import NOW, TableBuilder, at, data_files
from support.turns import interleavings

TAKEN = "taken"


def fresh(layout):
    """Two groups, written by each of four commits."""
    builder = TableBuilder(layout)
    for number in (1, 2, 3, 4):
        builder.commit(at(number), {"r0": ["a", "b"]})
    return builder


def take(storage):
    """A lease on the second commit; notes that it was granted."""
    lease = Table(storage, clock=FixedClock(NOW)).take_lease(ttl="1h", at=at(2), holder="a test")
    storage.replace(TAKEN, lease.instant.encode())  # after a rollback, the commit before is the one of that time


def clean(storage):
    """By versions, which takes the second commit's files."""
    Table(storage, clock=FixedClock(NOW)).clean(file_versions_retained=1)


def undo(storage):
    """The newest commits, down to the leased one's."""
    for number in (4, 3, 2):
        Table(storage, clock=FixedClock(NOW)).rollback(at(number))


def counts(verb, path):
    """Calls by which the two can notice each other, and deletions."""
    if verb == "delete_many" or "/leases" in path:
        return True
    is_timeline = path.startswith(".hoodie/timeline") or (path.startswith(".hoodie") and path.count("/") < 2)
    return is_timeline and verb in ("list", "create_new", "delete", "replace")


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("other", [clean, pytest.param(undo, marks=pytest.mark.slow)])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_granted_lease_keeps_its_files_in_every_order(layout, other, is_first):
    """The lease is refused, or the other gives way, or both; whatever is deleted beside it is not the lease's."""
    order = (take, other) if is_first else (other, take)
    outcomes = set()
    for number, (what, storage, *runners) in enumerate(interleavings(fresh(layout).storage.copy, *order, counts)):
        if IS_SAMPLE and number > 150:
            break
        taker, deleter = runners if is_first else reversed(runners)
        is_granted = TAKEN in storage.files()
        assert is_granted is (taker.error is None)
        if is_granted:
            instant = storage.read(TAKEN).decode()
            assert {f"r0/{TableBuilder.base_name(group, instant)}" for group in ("a", "b")} <= set(
                data_files(storage)
            ), what
        for runner in (taker, deleter):
            assert runner.error is None or isinstance(runner.error, (RefusedError, ConflictError)), what
        has_lease = any("/leases/" in path for path in storage.files())
        assert has_lease is is_granted, what
        outcomes.add(is_granted)
    assert IS_SAMPLE or outcomes == {True, False}


@pytest.mark.parametrize("layout", [1, 2])
def test_a_clean_that_is_interrupted_beside_a_lease_goes_on_without_its_files(layout):
    """Each call of a clean fails or is its last; the next clean finishes, and the leased files are there throughout."""
    builder = fresh(layout)
    builder.commit(at(5), {"r0": ["a"]})
    builder.table().take_lease(ttl="1h", at=at(2), holder="a test")
    held = {f"r0/{TableBuilder.base_name(group, at(2))}" for group in ("a", "b")}
    for case in interruptions(builder.storage.copy):
        case.run(clean)
        assert held <= set(data_files(case.storage)), case
        clean(case.storage)
        assert held <= set(data_files(case.storage)), case


@pytest.mark.parametrize("layout", [1, 2])
def test_a_begun_clean_that_knew_no_lease_spares_its_files_and_they_go_later(layout):
    """As planned by Apache Hudi; the completed clean records it, so that incremental cleans look there again."""
    builder = fresh(layout)
    builder.commit(at(5), {"r1": ["c"]})
    table = builder.table()
    instant = table.services.clean(table.services.clean_config(commits_retained=1)).schedule()
    table.contents.store.transition(instant, table.contents.store.read_plan(instant))
    moment = datetime(2026, 6, 1, tzinfo=timezone.utc)
    lease = Lease(id="abc", holder="x", instant=at(2), created=moment, expires=moment + timedelta(hours=3))
    builder.put(".hoodie/.aux/hudi_py/leases/abc.json", encode_lease(lease))
    held = {f"r0/{TableBuilder.base_name(group, at(2))}" for group in ("a", "b")}
    (done,) = builder.table().clean(commits_retained=1)
    assert "lease abc of x needs it" in done.why_spared
    assert held == set(done.spared_files)
    assert held <= set(data_files(builder.storage))
    assert builder.table().as_of(at(2)).base_files()
    with pytest.raises(RefusedError):
        builder.table().as_of(at(3))
    builder.table().release_lease("abc")
    builder.commit(at(6), {"r1": ["c"]})
    builder.table().clean(commits_retained=1)
    assert not held & set(data_files(builder.storage))

"""A consumer whose progress has expired comes back at any moment of a clean, which deletes dead leases first."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hudi_py.errors import ConflictError, RefusedError
from hudi_py.table import Table
from support.history_world import LOCK
from support.meanwhile import Meanwhile
from support.tables import TableBuilder, at, data_files, done


def expired(layout: int) -> TableBuilder:
    """Four versions of a group, and a consumer that had read the first one and was taken for dead since."""
    builder = TableBuilder(layout)
    for number in (1, 2, 3, 4):
        builder.commit(at(number), {"r0": ["a"]})
    builder.table().consumer("job-7").at(at(1) if layout == 1 else done(at(1)), ttl="1h")
    builder.clock.move(timedelta(hours=2))
    return builder


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize(("settings", "ends"), [(LOCK, {"noted", "waits", "refused"}), ({}, {"noted", "refused"})])
def test_progress_that_is_noted_at_any_moment_of_a_clean_keeps_what_it_needs_or_is_refused(layout, settings, ends):
    """Before every call that the clean makes; while that has the lock, if there is one, the consumer has to wait."""
    number, outcomes = 0, set()
    while True:
        builder = expired(layout)
        noted = []

        def come_back(builder=builder, noted=noted):
            job = Table(builder.storage, settings=settings, clock=builder.clock).consumer("job-7")
            try:
                noted.append(job.at(at(2) if layout == 1 else done(at(2)), ttl="1h"))
            except (ConflictError, RefusedError) as error:
                outcomes.add("waits" if isinstance(error, ConflictError) else "refused")

        storage = Meanwhile(builder.storage, come_back, n=number, verbs=("list", "read", "delete"))
        Table(storage, settings=settings, clock=builder.clock).clean(commits_retained=1)
        if storage.fired is None:
            break
        number += 1
        there = data_files(builder.storage)
        if noted:
            outcomes.add("noted")
            assert builder.table().consumers() == tuple(noted), storage.fired
            assert builder.table().consumer("job-7").instant == noted[0].instant
            needed = {f"r0/{TableBuilder.base_name('a', at(each))}" for each in (2, 3, 4)}
            assert needed <= set(there), storage.fired
    assert outcomes == ends


def test_a_consumer_that_has_come_back_is_one():
    """Without a lock its progress has a file of its own; noted again, it stays there, and deleting it leaves none."""
    builder = expired(1)
    table = Table(builder.storage, clock=builder.clock)
    job = table.consumer("job-7")
    back = job.at(at(2), ttl="1h")
    again = job.at(at(3), ttl="1h")
    assert back.id == again.id != "consumer-job-7"
    assert table.consumers() == (again,)
    assert job.delete()
    assert (table.consumers(), job.instant, job.delete()) == ((), None, False)

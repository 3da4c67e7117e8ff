"""Leases, consumers, tags, expiry and maintenance, interrupted at every call that changes something."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hudi_py.model.instant import Action
from hudi_py.runtime.clock import FixedClock
from hudi_py.table import Table
from support.crash_points import interruptions
from support.writes import ALONE, NEW, OLD, START, create_table, merged_rows_of, upsert

SETTINGS = {
    **ALONE,
    "hoodie.metadata.enable": True,
    "hoodie.clean.commits.retained": 1,
    "hoodie.keep.min.commits": 2,
    "hoodie.keep.max.commits": 3,
    "hoodie_py.tags.daily": 3,
    "hoodie_py.clean.quarantine": True,
    "hoodie.partition.ttl.strategy.days.retain": 20,
}
FOREVER = "9000h"


def opened(storage, *, days=60):
    """A process some days after the first write."""
    return Table(storage, settings=SETTINGS, clock=FixedClock(START + timedelta(days=days)))


def history(version, kind):
    """Rows of three partitions, of which us is never written to again; a lease and a consumer on the second commit."""
    storage = create_table(version, **{"hoodie.datasource.write.table.type": kind})
    for day, rows in enumerate((OLD, NEW)):
        upsert(storage, rows, opened=opened(storage, days=day + 1))
    table = opened(storage, days=3)
    lease = table.take_lease(ttl=FOREVER, holder="a reader")
    table.consumer("job").at(table.changed_until(), ttl=FOREVER)
    for day in range(3, 8):
        changed = [{"id": "a", "region": "eu", "ts": day}, {"id": "c", "region": "ap", "ts": day}]
        upsert(storage, changed, opened=opened(storage, days=50 + day))
    return storage, lease


def left_by_expiry(rows):
    return [row for row in rows if row["region"] != "us"]


STEPS = {
    "lease": lambda table: table.take_lease(ttl="1h", holder="another"),
    "renew": lambda table: table.renew_lease(table.leases()[0].id, FOREVER),
    "consumer": lambda table: table.consumer("other").at(table.changed_until(), ttl=FOREVER),
    "tags": lambda table: table.create_due_tags(),
    "expire": lambda table: table.expire_partitions(),
    "maintain": lambda table: table.maintain(),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize(("version", "kind"), [(6, "COPY_ON_WRITE"), (9, "MERGE_ON_READ")])
def test_interrupted_anywhere_readers_keep_what_they_were_promised(record_property, version, kind, name):
    """
    Rows are those before or after, the leased snapshot and the consumer's changes are there, and the next run ends it.

    What the interrupted step itself was to keep, nobody was promised; a lease of it is whole or absent.
    """
    original, lease = history(version, kind)
    before = merged_rows_of(original)
    allowed = (before, left_by_expiry(before))
    held = opened(original).as_of(lease.instant)
    expected = sorted(held.rows().to_arrow().to_pylist(), key=str)
    count = 0
    for case in interruptions(original.copy):
        count += case.run(lambda storage: STEPS[name](opened(storage)))
        for turn in ("at once", "after the next run"):
            table = opened(case.storage)
            assert merged_rows_of(case.storage) in allowed, (case, turn)
            found = table.as_of(lease.instant).rows().to_arrow().to_pylist()
            assert sorted(found, key=str) == expected, (case, turn)
            progress = table.consumer("job").instant
            assert progress is not None and table.changes(progress).to_arrow().num_rows >= 2, (case, turn)
            assert "lease-damaged" not in {finding.code for finding in table.check()}, (case, turn)
            if turn == "at once":
                table.recover()
                report = opened(case.storage, days=61).maintain()
                assert not report.failed, (case, report)
        assert merged_rows_of(case.storage) == allowed[1], case
        table = opened(case.storage, days=61)
        assert not table.timeline.pending(), case
        assert not [each for each in table.check() if each.severity.value == "error"], case
        assert len(table.timeline.completed(Action.SAVEPOINT)) == len(
            {each.requested_time for each in table.timeline.completed(Action.SAVEPOINT)}
        ), case
    record_property("interruptions", count)
    assert count

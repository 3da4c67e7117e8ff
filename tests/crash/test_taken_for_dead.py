"""A writer at work that another process takes for dead: its rows are acknowledged only if they stay."""

from contextlib import suppress
from datetime import timedelta

import pyarrow as pa
import pytest

from hudi_py.errors import HudiError
from hudi_py.runtime.clock import FixedClock
from hudi_py.table import Table
from hudi_py.testing import Crash, StopBefore
from support.meanwhile import Meanwhile
from support.tables import NOW
from support.writes import OLD, SCHEMA, create_table, merged_rows_of

SETTINGS = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.automatic": False,
    "hoodie.archive.automatic": False,
    "hoodie.metadata.enable": True,
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.write.lock.wait_time_ms": 0,
    "hoodie.write.lock.client.num_retries": 0,
}
ROWS = [{"id": "d", "region": "eu", "ts": 9}]


def _table(storage, clock):
    return Table(storage, settings=SETTINGS, clock=clock)


def _data(rows):
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _is_fence(path, _data):
    """Created when the files are written, before the commit takes the lock."""
    return "/closed/" in path


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_acknowledged_rows_outlive_a_rollback_that_was_planned_before(record_property, version, kind):
    """
    Another clock is an hour ahead, or this process was stopped: our heartbeat is fresh, and still our files are going.

    The rollback is cut short anywhere, the write goes on, and then the rollback is finished.
    """
    original = create_table(version, **{"hoodie.table.type": kind})
    clock = FixedClock(NOW)
    _table(original, clock).upsert(_data(OLD))
    before = merged_rows_of(original)
    after = sorted([*before, *ROWS], key=lambda row: (row["region"], row["id"]))
    planned: list[bool] = []
    for n in range(80):
        clock.move(timedelta(minutes=1))
        storage = original.copy()
        faulty = StopBefore(storage, n)

        def take_for_dead(storage=storage, faulty=faulty):
            beats = [f".hoodie/.heartbeat/{each.name}" for each in storage.list(".hoodie/.heartbeat")]
            kept = {path: storage.read(path) for path in beats}
            for path in beats:
                storage.delete(path)
            with suppress(Crash):
                _table(faulty, clock).rollback_failed_writes()
            planned.append(bool(_table(storage, clock).timeline.pending("rollback")))
            for path, beat in kept.items():  # it beats on
                storage.replace(path, beat)

        ours = Meanwhile(storage, take_for_dead, before=_is_fence)
        try:
            _table(ours, clock).upsert(_data(ROWS), retries=0)
            expected = after
        except HudiError:
            expected = before
        assert ours.fired is not None
        for path in (f".hoodie/.heartbeat/{each.name}" for each in storage.list(".hoodie/.heartbeat")):
            storage.delete(path)
        _table(storage, clock).rollback_failed_writes()
        assert merged_rows_of(storage) == expected, (n, faulty.fired)
        if faulty.fired is None:
            break
    else:
        raise AssertionError("the rollback never ends")
    record_property("cut rollbacks", sum(planned))
    assert any(planned)

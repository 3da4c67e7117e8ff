"""
Ctrl-C at every call of what a person may run in a notebook: the process lives on, and so does whoever works beside it.

Nothing may look as if it were still at work: no lock that is held, no thread that renews one, no heartbeat.
"""

from __future__ import annotations

import threading
from datetime import timedelta

import pyarrow as pa
import pytest

from hudi_py.config.settings import Settings
from hudi_py.config.table import TableType
from hudi_py.errors import ConflictError, RefusedError
from hudi_py.model.instant import Action, State
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.base import MUTATING_VERBS, READING_VERBS
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from hudi_py.testing import Faulty
from hudi_py.txn.table_lock import TableLock
from support.crash_points import EVERY
from support.many_writers import SEVERAL
from support.writes import OLD, SCHEMA, START, create_table, upsert

PACKAGE = "org.apache.hudi.client.transaction.lock."
LOCKS = {
    "file": PACKAGE + "FileSystemBasedLockProvider",
    "lease": PACKAGE + "StorageBasedLockProvider",
    "in process": PACKAGE + "InProcessLockProvider",
}
CLEANING = {
    "hoodie.clean.commits.retained": 1,
    "hoodie.keep.min.commits": 2,
    "hoodie.keep.max.commits": 3,
    "hoodie.compact.inline.max.delta.commits": 1,
}
NEW = [{"id": "n", "region": "eu", "ts": 9}]


def arrow(rows):
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def read_twice(table):
    with table.lease(ttl="1h") as snapshot:
        snapshot.rows().to_arrow()


ACTIONS = {
    "upsert": lambda table: table.upsert(arrow(NEW)),
    "delete": lambda table: table.delete(where="id = 'a'"),
    "insert_overwrite": lambda table: table.insert_overwrite(arrow(NEW)),
    "clean": lambda table: table.clean(),
    "archive": lambda table: table.archive(keep_min_commits=1, keep_max_commits=2),
    "savepoint": lambda table: table.create_savepoint(),
    "rollback": lambda table: table.rollback(table.timeline.commits.completed()[-1].requested_time),
    "rewrite": lambda table: table.compact() if table.config.table_type is TableType.MERGE_ON_READ else table.cluster(),
    "lease": read_twice,
    "maintain": lambda table: table.maintain(),
}


class ByHand(Faulty):
    """Ctrl-C right before or right after call *n* of the main thread, which is where Python raises it."""

    def __init__(self, inner, n, *, is_after):
        super().__init__(inner, n, verbs=MUTATING_VERBS | READING_VERBS)
        self.is_after = is_after

    def _is_hit(self, position):
        return threading.current_thread() is threading.main_thread() and self.fired is None and position >= self.n

    def _hit(self, verb, paths, call, data):
        if self.is_after:
            call()
        raise KeyboardInterrupt


class World:
    """One table, and the clock of everybody and of its storage."""

    def __init__(self, version, kind, lock):
        self.clock = FixedClock(START + timedelta(days=1))
        self.settings = {**SEVERAL, **CLEANING, "hoodie.write.lock.provider": LOCKS[lock]}
        made = create_table(version, **{"hoodie.table.type": kind})
        for ts in range(4):
            upsert(made, [{**row, "ts": ts} for row in OLD])
        self.start = made.files()

    def fresh(self):
        storage = MemoryStorage(clock_ms=lambda: int(self.clock.moment.timestamp() * 1000))
        for path, data in self.start.items():
            storage.replace(path, data)
        return storage

    def open(self, storage):
        self.clock.move(timedelta(seconds=1))
        return Table(storage, settings=self.settings, clock=self.clock)

    def at_work(self):
        """Threads that show others that this process is at work."""
        return [each.name for each in threading.enumerate() if each.name.startswith(("heartbeat-", "lease-", "lock "))]

    def waited_for(self, storage):
        """Heartbeats of writes that have not begun to write, for which others wait, or that nobody knows."""
        others = {each.requested_time for each in self.open(storage).timeline if not _is_waited_for(each)}
        return {each.name for each in storage.list(".hoodie/.heartbeat")} - others

    def rows(self, storage):
        found = self.open(storage).rows().to_arrow().select(SCHEMA.names).to_pylist()
        return sorted(found, key=lambda row: row["id"])


def again_at_once(world, storage, told):
    """What the attempt noted shows that it has failed, unless it ended before its note."""
    try:
        ACTIONS["rewrite"](world.open(storage))
    except RefusedError as error:
        assert "at work, by its heartbeat" in str(error), told
        assert told[-1].endswith(".inflight") or "/attempts/" in told[-1], told


def _is_waited_for(instant):
    return instant.state is State.REQUESTED and instant.action in (Action.COMMIT, Action.DELTA_COMMIT)


@pytest.mark.slow
@pytest.mark.parametrize("name", ACTIONS)
@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize(("version", "kind"), [(6, "COPY_ON_WRITE"), (9, "MERGE_ON_READ")])
def test_nobody_waits_for_what_was_interrupted_by_hand(record_property, version, kind, lock, name):
    """Rows are as before or after; the lock is free at once, and who comes next writes when the heartbeat is over."""
    world = World(version, kind, lock)
    whole = world.fresh()
    ACTIONS[name](world.open(whole))
    possible = [world.rows(world.fresh()), world.rows(whole)]
    count = 0
    for is_after in (False, True):
        n = is_after * (EVERY // 2)
        while True:
            storage = world.fresh()
            case = ByHand(storage, n, is_after=is_after)
            try:
                ACTIONS[name](world.open(case))
            except KeyboardInterrupt:
                count += 1
            told = (name, n, is_after, case.fired)
            assert world.at_work() == [], told
            other = {**world.settings, "hoodie.write.lock.client.num_retries": 0, "hoodie.write.lock.wait_time_ms": 0}
            try:
                with TableLock(storage, Settings(other), world.clock, sleep=pytest.fail).held("another process"):
                    pass
            except ConflictError as error:
                pytest.fail(f"{told}: {error}")
            assert world.rows(storage) in possible, told
            assert world.waited_for(storage) == set(), told
            if name == "rewrite":
                again_at_once(world, storage, told)
            world.clock.move(timedelta(minutes=10))
            world.open(storage).insert(arrow([{"id": "z", "region": "us", "ts": 1}]))
            assert [row["id"] for row in world.rows(storage)].count("z") == 1, told
            if case.fired is None:
                break
            n += EVERY
    record_property("interruptions", count)

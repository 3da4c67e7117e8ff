"""The service of a lock goes away and comes back, while the lock is held, waited for, or about to be used."""

from __future__ import annotations

import os
import signal
import threading
import time
from datetime import datetime, timedelta, timezone
from uuid import uuid4

import pytest

from hudi_py.config.lock import LockKind
from hudi_py.config.settings import Settings
from hudi_py.errors import ConflictError, StorageError
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.remote import RemoteStorage
from hudi_py.timeline.lock import LockHeld
from hudi_py.txn.table_lock import TableLock
from support import writes
from support.gate import gate_to
from support.many_writers import contents, rows, service, table
from support.meanwhile import Meanwhile, ending
from support.zookeeper import SESSION_MS, running_zookeeper

LOCK = "hoodie.write.lock."
STOP, KILL = signal.SIGSTOP, signal.SIGKILL
pytestmark = pytest.mark.slow


@pytest.fixture
def zookeeper(tmp_path):
    """A ZooKeeper of this test alone."""
    with running_zookeeper(tmp_path) as server:
        yield server


def settings_of(server, **more):
    own = {
        "provider": LockKind.ZOOKEEPER.value,
        "zookeeper.url": server.address,
        "zookeeper.base_path": "/hudi",
        "zookeeper.lock_key": "t",
        "zookeeper.session_timeout_ms": SESSION_MS,
        "zookeeper.connection_timeout_ms": 3000,
        "wait_time_ms": 2000,
        "client.num_retries": 1,
        "client.wait_time_ms_between_retry": 0,
    }
    return {LOCK + name: value for name, value in {**own, **more}.items()}


def lock_of(server, **more):
    clock = FixedClock(datetime.now(timezone.utc))
    return TableLock(MemoryStorage("t"), Settings(settings_of(server, **more)), clock)


def go_away(server, how):
    """It is stopped, or killed."""
    os.kill(server.process.pid, how)


@pytest.mark.parametrize("how", [STOP, KILL])
def test_who_waits_when_zookeeper_goes_away_is_told_in_time(zookeeper, monkeypatch, how):
    """Requests of its client wait for ever; the writer ends after its patience and the time for an answer."""
    from kazoo.recipe.lock import Lock

    first, second = lock_of(zookeeper), lock_of(zookeeper)
    ask = Lock._get_predecessor

    def ask_and_lose(self, node):
        found = ask(self, node)
        if threading.current_thread() is waiting and second._provider._waits:
            go_away(zookeeper, how)
        return found

    told = []

    def wait():
        said = r"did not answer.*not taken; check .*zookeeper.url"
        with pytest.raises(StorageError, match=said) as error, second.held("second"):
            pytest.fail("two holders")
        told.append(error)

    with first.held("first"):
        monkeypatch.setattr(Lock, "_get_predecessor", ask_and_lose)
        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        waiting.join(60)
        assert told
        with pytest.raises(StorageError, match="nothing was completed; try again when it can be asked"):
            first.check()


def test_a_session_that_outlives_a_restart_keeps_its_lock(zookeeper):
    """Whoever is about to complete waits for ZooKeeper to come back, and goes on; nobody else got in between."""
    patient = {"zookeeper.session_timeout_ms": 4000, "zookeeper.connection_timeout_ms": 60_000}
    first, second = (lock_of(zookeeper, **patient, wait_time_ms=100) for _ in range(2))
    with first.held("first"):
        zookeeper.end()
        zookeeper.begin()
        first.check()
        with pytest.raises(LockHeld, match="first"), second.held("second"):
            pytest.fail("two holders")
        first.check()
    with second.held("second"):
        pass


def test_a_session_that_zookeeper_forgot_holds_nothing(zookeeper):
    """Another writer has the lock then, and the first one finds out before it completes."""
    patient = {"zookeeper.connection_timeout_ms": 60_000}
    first, second = lock_of(zookeeper, **patient), lock_of(zookeeper, **patient)
    with first.held("first"):
        zookeeper.end()
        zookeeper.forget()
        zookeeper.begin()
        zookeeper.wait()
        with second.held("second"):
            with pytest.raises(ConflictError, match="taken over or removed"):
                first.check()
            second.check()


def test_a_writer_whose_session_ended_completes_nothing_without_another_look(zookeeper):
    """Its write is done again behind that of the writer which got the lock; each row is there once."""
    patient = settings_of(zookeeper, **{"zookeeper.connection_timeout_ms": 60_000})
    storage = table(9)

    def another():
        zookeeper.end()
        zookeeper.forget()
        zookeeper.begin()
        zookeeper.wait()
        service(storage, **patient).write(rows(("n", "eu", 6)), "UPSERT")

    before = len(writes.open_table(storage).timeline.commits.completed())
    overtaken = Meanwhile(storage, another, before=ending(".commit"), verbs=["create_new"])
    result = service(overtaken, **patient).write(rows(("n", "eu", 7)), "UPSERT")
    assert result.retries == 1
    assert [row for row in contents(storage) if row[1] == "n"] == [("eu", "n", 7)]
    assert len(writes.open_table(storage).timeline.commits.completed()) == before + 2


@pytest.mark.parametrize("how", [STOP, KILL])
def test_a_writer_that_cannot_ask_for_its_lock_completes_nothing(zookeeper, how):
    """It says so; what it left is rolled back by the next writer once the lock can be had again."""
    storage = table(9)
    given = settings_of(zookeeper)
    losing = Meanwhile(storage, lambda: go_away(zookeeper, how), before=ending(".commit"), verbs=["create_new"])
    with pytest.raises(StorageError, match=r"did not answer.*nothing was completed; try again"):
        service(losing, **given).write(rows(("n", "eu", 7)), "UPSERT")
    assert not [row for row in contents(storage) if row[1] == "n"]
    zookeeper.end()
    zookeeper.begin()
    zookeeper.wait()
    later = settings_of(zookeeper, **{"zookeeper.connection_timeout_ms": 60_000})
    result = service(storage, **later).write(rows(("n", "eu", 8)), "UPSERT")
    assert result.retries == 0
    assert [row for row in contents(storage) if row[1] == "n"] == [("eu", "n", 8)]


@pytest.fixture
def way(s3_options):
    """A way to the server of S3 and DynamoDB that can be shut."""
    with gate_to(s3_options["endpoint_url"].rstrip("/")) as gate:
        yield gate


@pytest.mark.parametrize("kind", [LockKind.DYNAMODB, LockKind.LEASE])
def test_a_holder_that_is_cut_off_completes_nothing(s3_options, way, monkeypatch, kind):
    """While it cannot ask, and later, when another writer has taken its lock over; that one's stays."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_options["key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_options["secret"])
    place = str(uuid4())
    clocks = [FixedClock(datetime.now(timezone.utc)) for _ in range(2)]
    own = {
        "provider": kind.value,
        "storage.validity.timeout.secs": 10,
        "storage.renew.interval.secs": 1,
        "dynamodb.table": "locks",
        "dynamodb.partition_key": place,
        "wait_time_ms": 3000,
        "client.num_retries": 2,
        "client.wait_time_ms_between_retry": 0,
    }

    def lock(endpoint, clock, **more):
        storage = MemoryStorage(place)
        if kind is LockKind.LEASE:
            storage = RemoteStorage(f"s3://contract/{place}", {**s3_options, "endpoint_url": endpoint})
        given = {LOCK + name: value for name, value in {**own, "dynamodb.endpoint_url": endpoint}.items()}
        return TableLock(storage, Settings(given), clock, **more)

    def wait(seconds):
        """The time of the one who waits goes on; that of the other, too."""
        for clock in clocks:
            clock.move(timedelta(seconds=5))
        time.sleep(seconds)

    first, second = lock(f"http://{way.address}", clocks[0]), lock(s3_options["endpoint_url"], clocks[1], sleep=wait)
    with first.held("first"):
        first.check()
        way.shut()
        with pytest.raises(StorageError, match="nothing was completed; try again when it can be asked"):
            first.check()
        with second.held("second"):
            with pytest.raises((ConflictError, StorageError), match="nothing was completed"):
                first.check()
            way.open()
            with pytest.raises(ConflictError, match="taken over or removed"):
                first.check()
            second.check()
    with second.held("again"):
        second.check()

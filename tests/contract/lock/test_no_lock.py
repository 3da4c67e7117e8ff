"""What a table without a lock provider promises: it locks nothing, and sees those who do."""

from datetime import datetime, timedelta, timezone

import pytest

from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.wrappers import RecordingStorage
from hudi_py.txn.table_lock import TableLock, table_lock

PACKAGE = "org.apache.hudi.client.transaction.lock."
AT_ONCE = {"hoodie.write.lock.client.num_retries": 0, "hoodie.write.lock.wait_time_ms": 0}


@pytest.fixture
def clock():
    """Stands at the present, which is what the storages stamp files with."""
    return FixedClock(datetime.now(timezone.utc))


def test_without_a_provider_nothing_is_locked(make_storage, clock):
    """F-2: no provider, no lock, whatever else the settings say; two requests look for locks of others."""
    storage = RecordingStorage(make_storage("memory"))
    several = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    lock = table_lock(storage, Settings(several), clock)
    with lock.held("clean"):
        assert storage.calls == []
        lock.check()
    assert not lock.is_used
    assert [verb for verb, _ in storage.calls] == ["read", "size"]


@pytest.mark.parametrize(
    "mode", ["SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"]
)
def test_who_expects_other_writers_and_has_no_lock_is_warned(make_storage, clock, caplog, mode):
    """Once for each action, when it begins: the settings contradict each other."""
    lock = table_lock(make_storage("memory"), Settings({"hoodie.write.concurrency.mode": mode}), clock)
    lock.look()
    lock.check()
    warned = [each.getMessage() for each in caplog.records]
    assert len(warned) == (mode != "SINGLE_WRITER")
    assert all("lock.missing" in each and mode in each and "hoodie.write.lock.provider" in each for each in warned)


@pytest.mark.parametrize("held", ["FileSystemBasedLockProvider", "StorageBasedLockProvider"])
@pytest.mark.parametrize("asked", ["look", "check"])
def test_who_has_no_lock_is_refused_beside_one_that_is_held(make_storage, clock, held, asked):
    """Nothing keeps the two apart; once it is released or left behind, it is as if alone."""
    storage = make_storage("memory")
    other = TableLock(storage, Settings({"hoodie.write.lock.provider": PACKAGE + held, **AT_ONCE}), clock)
    lock = table_lock(storage, Settings({"hoodie.write.lock.filesystem.expire": 1}), clock)
    with (
        other.held("work"),
        pytest.raises(ConfigError, match=r"hoodie\.write\.lock\.provider is not set here"),
    ):
        getattr(lock, asked)()
    getattr(lock, asked)()
    storage.create_new(".hoodie/lock", b"")
    clock.move(timedelta(minutes=2))
    getattr(lock, asked)()

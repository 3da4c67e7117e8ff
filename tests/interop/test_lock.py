"""The lock that is a file in the table: real Hudi's keeps us out and ours keeps it out, and both go on in turns."""

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from real_hudi import RealHudiError

import hudi_py
from hudi_py.errors import ConflictError
from hudi_py.storage.factory import open_storage
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.table import Table
from hudi_py.txn.lease_lock import Lease, format_lease, parse_lease
from support.interop_model import PARTITIONED, Model, numbers
from support.interop_sample import releases

pytestmark = pytest.mark.oracle

PROVIDER = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
LOCKED = {"hoodie.write.lock.provider": PROVIDER, "hoodie.write.lock.filesystem.expire": 0}
IMPATIENT = LOCKED | {"hoodie.write.lock.client.num_retries": 0, "hoodie.write.lock.wait_time_ms": 1}
SEVERAL = LOCKED | {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
}
PLAIN = {"hoodie.metadata.enable": False, "hoodie.clean.automatic": False}


def written(peer, table, *, metadata=False):
    """A table with four commits by real Hudi."""
    model, options = Model(PARTITIONED), PLAIN | {"hoodie.metadata.enable": metadata}
    for version in range(1, 5):
        batch = PARTITIONED.batch(range(9), version)
        peer.write(table, model.upsert(batch), "upsert", PARTITIONED.create(peer.table_version) | options)
    return model


def test_a_lock_of_real_hudi_keeps_us_out(peer, tmp_path):
    """F.1: until it is released; it holds nothing, so its age is all that can be told."""
    table = tmp_path / "t"
    written(peer, table)
    opened = hudi_py.open_table(str(table), settings=IMPATIENT)
    lock = Path(table, ".hoodie", "lock")
    assert peer.lock(table)
    assert lock.read_bytes() == b""
    for act in (lambda: opened.clean(commits_retained=1), opened.create_savepoint, opened.rollback_failed_writes):
        with pytest.raises(ConflictError, match="try again") as refused:
            act()
        for told in (str(lock), "s old", "does not name its owner"):
            assert told in str(refused.value)
    assert not opened.refresh().timeline.of(("clean", "savepoint")).instants
    peer.unlock(table)
    assert len(opened.clean(commits_retained=1)) == 1


def test_our_lock_keeps_real_hudi_out(peer, tmp_path):
    """F.1: real Hudi's provider does not get it, its clean fails and writes nothing; afterwards it goes on."""
    table = tmp_path / "t"
    model = written(peer, table)
    opened = hudi_py.open_table(str(table), settings=IMPATIENT)
    with opened.contents.store.lock.held("test"):
        assert not peer.lock(table)
        opened.contents.store.lock.check()
    peer.unlock(table)
    with opened.contents.store.lock.held("test"):
        with pytest.raises(RealHudiError, match=r"(?i)lock"):
            peer.write(table, PARTITIONED.batch(numbers(1, 9, 3), 5), "upsert", PLAIN | SEVERAL | IMPATIENT)
        assert not opened.refresh().timeline.commits.completed()[4:]
    peer.write(table, model.upsert(PARTITIONED.batch(numbers(2, 9, 3), 6)), "upsert", PLAIN | SEVERAL)
    assert model.rows() == peer.read(table)
    assert not Path(table, ".hoodie", "lock").exists()


class Interrupted(DelegatingStorage):
    """Lets somebody else do something in the very call that makes the first write complete."""

    def __init__(self, inner, act):
        super().__init__(inner)
        self.act = act

    def create_new(self, path, data, before=None, *, lasts=True):
        act, is_completed = self.act, path.endswith((".commit", ".deltacommit"))
        if act is not None and is_completed and "/metadata/" not in path:
            self.act = None
            act()
        super().create_new(path, data, before, lasts=lasts)


def test_rows_of_real_hudi_stay_that_took_our_lock_away(peer, tmp_path):
    """F.1: it removes the lock of a running write and writes to the same files; ours begins again on top of that."""
    table = tmp_path / "t"
    model = written(peer, table)
    theirs, ours = PARTITIONED.batch(numbers(1, 9, 3), 6), PARTITIONED.batch(numbers(2, 9, 3), 7)

    def take_away():
        assert not peer.lock(table)
        peer.unlock(table)
        peer.write(table, theirs, "upsert", PLAIN | SEVERAL)

    storage = Interrupted(open_storage(str(table)), take_away)
    opened = Table(storage, settings=PLAIN | SEVERAL | {"hoodie.write.lock.client.num_retries": 100})
    model.upsert(theirs)
    result = opened.upsert(model.upsert(ours))
    assert result.retries == 1
    assert model.rows() == peer.read(table)


def test_an_expired_lock_changes_hands_both_ways(peer, tmp_path):
    """F.1: by the age of its file; who is late finds out before its commit point."""
    table = tmp_path / "t"
    written(peer, table)
    lock = Path(table, ".hoodie", "lock")
    old = datetime.now(timezone.utc) - timedelta(minutes=3)
    expire = {"hoodie.write.lock.filesystem.expire": 2}
    opened = hudi_py.open_table(str(table), settings=IMPATIENT | expire)
    assert peer.lock(table)
    with pytest.raises(ConflictError), opened.contents.store.lock.held("early"):
        pytest.fail("taken over too early")
    os.utime(lock, (old.timestamp(),) * 2)
    with opened.contents.store.lock.held("late"):
        opened.contents.store.lock.check()
    peer.unlock(table)
    with opened.contents.store.lock.held("ours"):
        os.utime(lock, (old.timestamp(),) * 2)
        assert peer.lock(table, expire)
        with pytest.raises(ConflictError, match="taken over"):
            opened.contents.store.lock.check()
    assert lock.exists()  # theirs: ours was not removed with it
    peer.unlock(table)


@pytest.mark.parametrize("metadata", [False, True], ids=["plain", "metadata table"])
def test_services_of_ours_and_writes_of_theirs_take_turns(peer, tmp_path, metadata):
    """Under real Hudi's settings for several writers: each goes on after the other, rows and files stay right."""
    table = tmp_path / "t"
    model = written(peer, table, metadata=metadata)
    several = PLAIN | SEVERAL | {"hoodie.metadata.enable": metadata}
    opened = hudi_py.open_table(str(table), settings=SEVERAL)
    for version in range(5, 8):
        assert opened.clean(commits_retained=2)
        savepoint = opened.create_savepoint()
        peer.write(table, model.upsert(PARTITIONED.batch(numbers(version, 9, 4), version)), "upsert", several)
        opened.delete_savepoint(savepoint.requested_time)
    failed = peer.fail_write(table, PARTITIONED.batch(numbers(1, 9, 4), 9), "upsert", several)
    heartbeat = Path(table, ".hoodie", ".heartbeat", failed)
    assert heartbeat.is_file()
    opened.refresh().clean(commits_retained=1)
    assert failed in [each.requested_time for each in opened.timeline.pending()]  # its heart may beat
    os.utime(heartbeat, (0, 0))
    opened.clean(commits_retained=1)
    assert not opened.timeline.pending()
    opened.archive(keep_min_commits=2, keep_max_commits=3)
    assert model.rows() == peer.read(table)
    peer.write(table, model.upsert(PARTITIONED.batch(numbers(3, 9, 4), 10)), "upsert", several)
    assert model.rows() == peer.read(table)
    assert not [each for each in hudi_py.open_table(str(table)).check() if each.severity.name != "INFO"]
    assert not Path(table, ".hoodie", "lock").exists()


@pytest.mark.parametrize("peer", releases(8, 9), indirect=True)
@pytest.mark.parametrize("is_released", [False, True])
def test_a_lease_is_the_same_for_both(peer, is_released):
    """F.1: byte for byte what real Hudi writes, and it reads ours."""
    lease = Lease(is_released, 1_790_000_000_123, "0a1b2c3d-0000-4000-8000-00000000beef")
    ours = format_lease(lease)
    assert ours.decode() == peer.format_lease(lease.is_released, lease.valid_until_ms, lease.owner)
    assert peer.parse_lease(ours.decode()) == [lease.is_released, lease.valid_until_ms, lease.owner]
    assert parse_lease(ours) == lease

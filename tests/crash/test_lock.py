"""The table's lock: raced for by real processes, and held by one that dies at any storage call."""

import contextlib
import os
import shutil
import subprocess
import sys
from datetime import datetime, timedelta, timezone

import pytest

from hudi_py.config.settings import Settings
from hudi_py.errors import ConflictError
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.local import LocalStorage
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from hudi_py.txn.process import this_process
from hudi_py.txn.table_lock import TableLock
from support.crash_points import EVERY, interruptions
from support.crash_states import data_files, real_table
from support.fixtures import unpack
from support.races import RACER, ROOT, race
from support.writes import LazyWorld

FILE = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
LEASE = "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"
LOCK = ".hoodie/lock"
PROCESSES, TURNS = 4, 20


@pytest.mark.slow
@pytest.mark.parametrize("left_behind", [False, True], ids=["free", "expired"])
def test_processes_that_race_for_the_lock_take_turns(tmp_path, left_behind):
    """F.1: never two holders, neither of a free lock nor of one that everybody may take over."""
    (tmp_path / "counter").write_text("0")
    if left_behind:
        lock = tmp_path / LOCK
        lock.parent.mkdir()
        lock.write_text("left behind")
        os.utime(lock, (0, 0))
    met = race(*(("turns", tmp_path, seed, TURNS) for seed in range(PROCESSES)))
    assert [int(each) for each in met] == [0] * PROCESSES
    assert int((tmp_path / "counter").read_text()) == PROCESSES * TURNS
    assert not (tmp_path / LOCK).exists()


@pytest.mark.skipif(not this_process(), reason="this system does not tell which processes are gone")
@pytest.mark.parametrize("is_killed", [False, True], ids=["lives", "killed"])
def test_the_lock_of_a_killed_process_is_taken_over_or_released_and_that_of_a_living_one_is_not(tmp_path, is_killed):
    """No age is set, so the proof that its process has ended decides, for whoever waits and for recovery."""
    path = unpack("cow_failed_write-1.1.1", tmp_path)
    command = [sys.executable, str(RACER), "hold", str(path)]
    holder = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    with holder:
        assert holder.stdout.readline() == "held\n"
        if is_killed:
            holder.kill()
            holder.wait()
        settings = {"hoodie.write.lock.provider": FILE, "hoodie.write.lock.client.num_retries": 0}
        table = Table(LocalStorage(path), settings=settings)
        if is_killed:
            shutil.copytree(path, tmp_path / "other")
            other = Table(LocalStorage(tmp_path / "other"), settings=settings)
            assert other.create_savepoint().is_completed
            assert not (tmp_path / "other" / LOCK).exists()
        else:
            with pytest.raises(ConflictError, match="hudi_py hold"):
                table.create_savepoint()
        if is_killed:
            (first, *_) = table.recover()
            assert (first.finding.paths, first.done) == ((LOCK,), True)
            assert not (path / LOCK).exists()
            assert not table.timeline.writes.pending()
        else:
            with pytest.raises(ConflictError):
                table.recover()
            assert (path / LOCK).exists()
            holder.kill()


def lock_of(storage, clock, *, expire):
    settings = {
        "hoodie.write.lock.provider": FILE,
        "hoodie.write.lock.filesystem.expire": expire,
        "hoodie.write.lock.client.num_retries": 0,
    }
    return TableLock(storage, Settings(settings), clock)


def work(storage, clock, *, expire=1):
    """What a service does under the lock: look, and complete."""
    lock = lock_of(storage, clock, expire=expire)
    with lock.held("work"):
        content = storage.read("done") if storage.size("done") else b""
        lock.check()
        storage.replace("done", content + b"x")


@pytest.mark.parametrize("left_behind", [False, True], ids=["free", "expired"])
def test_a_holder_that_dies_anywhere_is_succeeded_once_its_lock_is_expired(record_property, left_behind):
    """F.1: until then others are refused or the lock is free; afterwards it is as if nothing had happened."""
    world = LazyWorld()
    if left_behind:
        world.storage.create_new(LOCK, b"left behind")
        world.clock.move(timedelta(minutes=5))
    count = 0
    for case in interruptions(world.storage.copy):
        count += case.run(lambda faulty: work(faulty, world.clock))
        is_free = case.storage.size(LOCK) is None
        done = case.storage.size("done") or 0
        if not left_behind:
            try:
                work(case.storage, world.clock)
                assert is_free, case
            except ConflictError as error:
                assert not is_free, case
                assert LOCK in str(error)
                assert "hudi_py work" in str(error), case
        world.clock.move(timedelta(minutes=2))
        work(case.storage, world.clock)
        work(case.storage, world.clock)
        assert len(case.storage.read("done")) == done + 2 + (not left_behind and is_free), case
        left = set(case.storage.files()) - {"done"}
        assert all(path.startswith(".hoodie/.aux/hudi_py/lock/") for path in left), case
    assert count * EVERY > 10
    record_property("interruptions", count)


def test_a_lease_whose_holder_dies_anywhere_runs_out(record_property):
    """F.1: until it has, others are refused or it is free; afterwards it is as if nothing had happened."""
    world = LazyWorld()
    lease = {"hoodie.write.lock.provider": LEASE, "hoodie.write.lock.wait_time_ms": 0}

    def work(storage):
        lock = TableLock(storage, Settings(lease | {"hoodie.write.lock.client.num_retries": 0}), world.clock)
        with lock.held("work"):
            content = storage.read("done") if storage.size("done") else b""
            lock.check()
            storage.replace("done", content + b"x")

    count = 0
    for case in interruptions(world.storage.copy):
        count += case.run(work)
        done = case.storage.size("done") or 0
        is_free = True
        try:
            work(case.storage)
        except ConflictError as error:
            is_free = False
            assert ".locks/table_lock.json" in str(error)
        world.clock.move(timedelta(minutes=6))
        work(case.storage)
        work(case.storage)
        assert len(case.storage.read("done")) == done + 2 + is_free, case
        assert set(case.storage.files()) == {"done", ".hoodie/.locks/table_lock.json"}, case
    record_property("interruptions", count)


def test_without_an_age_a_dead_holder_is_told_and_never_overruled(record_property):
    """F.1: the message names the file, who left it and the way out; the lock stays until a person removes it."""
    world = LazyWorld()
    count = 0
    for case in interruptions(world.storage.copy):
        count += case.run(lambda faulty: work(faulty, world.clock, expire=0))
        world.clock.move(timedelta(days=100))
        if case.storage.size(LOCK) is not None:
            with pytest.raises(ConflictError) as refused:
                work(case.storage, world.clock, expire=0)
            for told in (LOCK, "8640000 s old", "hudi_py work", "try again", "hudi-py recover --dry-run"):
                assert told in str(refused.value), case
            case.storage.delete(LOCK)
        work(case.storage, world.clock, expire=0)
        assert set(case.storage.files()) == {"done"}, case
    record_property("interruptions", count)


LOCKED = {
    "hoodie.write.lock.provider": FILE,
    "hoodie.write.lock.filesystem.expire": 1,
    "hoodie.write.lock.client.num_retries": 0,
}
SERVICES = {
    "clean": ("cow_nomdt", lambda table: table.clean(commits_retained=1)),
    "rollback": ("cow_failed_write", lambda table: table.rollback_failed_writes()),
    "archive": ("cow_cleaned", lambda table: table.archive(keep_min_commits=1, keep_max_commits=2)),
}


@pytest.mark.slow
@pytest.mark.parametrize("release", ["0.15.0", "1.1.1"])
@pytest.mark.parametrize("service", SERVICES)
def test_a_service_that_dies_with_the_lock_is_finished_by_the_next(record_property, service, release):
    """F.1: while the lock may be alive others change nothing; once it is expired they end where no crash had been."""
    name, run = SERVICES[service]
    original = real_table(f"{name}-{release}")
    moment = FixedClock(datetime(2040, 1, 1, tzinfo=timezone.utc))

    def fresh():
        moment.moment = datetime(2040, 1, 1, tzinfo=timezone.utc)
        storage = MemoryStorage(original.root, clock_ms=lambda: int(moment.moment.timestamp() * 1000))
        for path, data in original.files().items():
            storage.replace(path, data)
        return storage

    def opened(storage):
        moment.move(timedelta(seconds=1))
        return Table(storage, settings=LOCKED, clock=moment)

    undisturbed = fresh()
    run(opened(undisturbed))
    count = left_behind = 0
    for case in interruptions(fresh):
        count += case.run(lambda faulty: run(opened(faulty)))
        if case.storage.size(LOCK) is not None:
            left_behind += 1
            before = case.storage.files()
            with contextlib.suppress(ConflictError):  # archival is left out instead, in layout 2
                run(opened(case.storage))
            assert case.storage.files() == before, case
        moment.move(timedelta(minutes=2))
        run(opened(case.storage))
        run(opened(case.storage))
        table = opened(case.storage)
        assert data_files(case.storage) == data_files(undisturbed), case
        assert table.timeline.pending() == opened(undisturbed).timeline.pending(), case
        left = opened(undisturbed).timeline.commits.completed()  # archival stops early where less is too much
        assert left == table.timeline.commits.completed()[-len(left) :], case
        assert case.storage.size(LOCK) is None, case
    assert left_behind
    record_property("interruptions", count)

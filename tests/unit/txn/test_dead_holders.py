"""Locks of processes that have ended, and of writers that do not let go."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone

import pytest

from hudi_py.config.settings import Settings
from hudi_py.errors import ConflictError, StorageError
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.txn import process
from hudi_py.txn.file_lock import FileLock, is_left_behind
from hudi_py.txn.table_lock import TableLock
from support import writes
from support.many_writers import FILE_LOCK, SEVERAL, contents, rows, service, table

NAMES_ITSELF = "from hudi_py.txn.process import this_process; print(this_process(), flush=True); input()"


@pytest.mark.skipif(not process.this_process(), reason="the system does not name processes")
def test_a_killed_process_is_gone_before_anybody_asks_how_it_ended():
    """Its number stays taken until its parent asks, which may be never; no other writer waits for that."""
    with subprocess.Popen([sys.executable, "-c", NAMES_ITSELF], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        name = other.stdout.readline().decode().strip()
        assert name
        assert not process.is_gone(name)
        other.kill()
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is still listed
        assert os.path.exists(f"/proc/{other.pid}")
        assert process.is_gone(name)


@pytest.mark.parametrize(("minutes", "waited"), [(9, 250), (11, 10)])
@pytest.mark.parametrize("content", [b"", b"of another machine"])
def test_a_file_that_is_older_than_anybody_waits_costs_seconds(content, minutes, waited):
    """Whether its holder lives cannot be asked; it is not taken over, and got as soon as it is released."""
    pauses, storage, clock = [], MemoryStorage(), FixedClock(datetime.now(timezone.utc))
    settings = Settings({"hoodie.write.lock.provider": FILE_LOCK})
    storage.create_new(".hoodie/lock", content)
    clock.move(timedelta(minutes=minutes))
    lock = TableLock(storage, settings, clock, sleep=pauses.append)
    with pytest.raises(ConflictError, match=rf"waited {waited} s.*recover"), lock.held("clean"):
        pytest.fail("two holders")
    assert (sum(pauses), storage.read(".hoodie/lock")) == (waited, content)

    released = TableLock(storage, settings, clock, sleep=lambda _: storage.delete(".hoodie/lock"))
    with released.held("clean"):
        pass


class Failing(DelegatingStorage):
    """So many deletions of a lock fail, before or after they are done."""

    def __init__(self, inner, failures, *, is_done):
        super().__init__(inner)
        self.failures, self.is_done = failures, is_done

    def delete(self, path):
        if not path.endswith("/lock") or not self.failures:
            return self.inner.delete(path)
        self.failures -= 1
        if self.is_done:
            self.inner.delete(path)
        raise StorageError("simulated failure", retryable=True)


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("failures", [1, 2])
def test_a_lock_is_released_although_the_storage_fails_a_moment(failures, is_done):
    """The next writer need not wait for it, nor for the end of this process."""
    storage = table(9)
    writes.open_table(Failing(storage, failures, is_done=is_done), **SEVERAL).create_savepoint()
    assert storage.size(".hoodie/lock") is None


def test_a_lock_that_could_not_be_deleted_is_free_for_its_own_process():
    """To others it is that of a process that lives; this one knows that nobody holds it."""
    storage = table(9)
    with pytest.raises(StorageError, match="simulated"):
        writes.open_table(Failing(storage, 100, is_done=False), **SEVERAL).create_savepoint()
    content = storage.read(".hoodie/lock")
    assert not is_left_behind(content)
    service(storage, **{"hoodie.write.lock.client.num_retries": 0}).write(rows(("n", "eu", 7)), "INSERT")
    assert storage.size(".hoodie/lock") is None


class Silent(DelegatingStorage):
    """Creates the lock, loses the answer, and then fails so many looks at it."""

    def __init__(self, inner, failures):
        super().__init__(inner)
        self.failures, self.is_created = failures, False

    def create_new(self, path, content):
        self.inner.create_new(path, content)
        if path.endswith("/lock") and not self.is_created:
            self.is_created = True
            raise StorageError("simulated failure", retryable=True)

    def read(self, path):
        if path.endswith("/lock") and self.is_created and self.failures:
            self.failures -= 1
            raise StorageError("simulated failure", retryable=True)
        return self.inner.read(path)


@pytest.mark.parametrize(("failures", "stays"), [(1, False), (100, True)])
def test_a_lock_whose_creation_ended_with_an_error_is_free_for_its_own_process(failures, stays):
    """The attempt failed, so nobody holds what it created; and the process lives on."""
    storage = table(9)
    with pytest.raises(StorageError, match="simulated"):
        writes.open_table(Silent(storage, failures), **SEVERAL).create_savepoint()
    assert (storage.size(".hoodie/lock") is not None) == stays
    service(storage, **{"hoodie.write.lock.client.num_retries": 0}).write(rows(("n", "eu", 7)), "INSERT")
    assert storage.size(".hoodie/lock") is None


def test_a_write_waits_for_the_lock_as_long_as_it_is_told_and_not_again(monkeypatch):
    """Other attempts would each wait as long; and it is not rolled back at once, which needs the lock, too."""
    storage, waits = table(9), []
    before = contents(storage)
    taken = {"now": False}

    class Slow:
        """Rows during whose write another process takes the lock for good."""

        def __init__(self):
            self.inner = rows(("n", "eu", 7))
            self.schema = self.inner.schema

        def shaped(self, *_, **__):
            return self

        def checked(self, *_, **__):
            return self

        def write(self, job):
            taken["now"] = True
            return self.inner.write(job)

    acquire = FileLock.try_acquire

    def refused(self, purpose):
        waits.append(purpose)
        return False if taken["now"] else acquire(self, purpose)

    monkeypatch.setattr(FileLock, "try_acquire", refused)
    with pytest.raises(ConflictError, match="try again"):
        service(storage, **{"hoodie.write.lock.client.num_retries": 3}).write(Slow(), "INSERT")
    monkeypatch.undo()
    assert len([purpose for purpose in waits if purpose.startswith("commit")]) == 4
    assert waits[-1].startswith("commit")
    assert contents(storage) == before
    assert len(writes.open_table(storage).timeline.pending()) == 1

"""Locks of processes that have ended, and of writers that do not let go."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hudi_py.errors import ConflictError
from hudi_py.txn import process
from hudi_py.txn.file_lock import FileLock
from support import writes
from support.many_writers import contents, rows, service, table

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

"""The lock file where any call of taking it, taking it over or releasing it fails, or is the last of its process."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timezone

import pytest

from hudi_py.config.settings import Settings
from hudi_py.errors import ConflictError
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.base import MUTATING_VERBS, READING_VERBS
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.testing import FailNth, InterruptionMode, ReportFailure, StopAfter, StopBefore, interruptions
from hudi_py.txn import file_lock
from hudi_py.txn.process import this_process
from hudi_py.txn.table_lock import TableLock
from support.many_writers import FILE_LOCK
from support.meanwhile import Meanwhile

VERBS = MUTATING_VERBS | READING_VERBS
CLOCK = FixedClock(datetime(2040, 1, 1, tzinfo=timezone.utc))
LOCK, CLAIMS = ".hoodie/lock", ".hoodie/.aux/hudi_py/lock"
GONE = f"{this_process()}0"  # this one's number, started at another time
FAILING = (
    InterruptionMode("fails once", lambda storage, n: FailNth(storage, n, retryable=True, verbs=VERBS)),
    InterruptionMode("loses the answer", lambda storage, n: ReportFailure(storage, n, verbs=VERBS)),
    InterruptionMode("fails from now on", lambda storage, n: FailNth(storage, n, None, retryable=True, verbs=VERBS)),
)
ENDING = (
    InterruptionMode("ends before", lambda storage, n: StopBefore(storage, n, verbs=VERBS)),
    InterruptionMode("ends after", lambda storage, n: StopAfter(storage, n, verbs=VERBS)),
)

pytestmark = pytest.mark.skipif(not this_process(), reason="this system does not tell which processes are gone")


@pytest.fixture(autouse=True)
def _remembers_nothing(monkeypatch):
    """Of the locks that this process could not delete."""
    monkeypatch.setattr(file_lock, "_given_up", set())


@pytest.fixture(params=["free", "left behind"])
def fresh(request, monkeypatch):
    """Make a table without a lock, or with that of a process that was killed while it held it."""

    def make():
        storage = MemoryStorage()
        if request.param == "left behind":
            with monkeypatch.context() as as_another:
                as_another.setattr(file_lock, "this_process", lambda: GONE)
                assert file_lock.FileLock(storage, ".hoodie", 0, CLOCK).try_acquire("write")
        return storage

    return make


def lock_of(storage):
    """The lock as a service takes it; it does not wait for it."""
    settings = Settings({"hoodie.write.lock.provider": FILE_LOCK, "hoodie.write.lock.client.num_retries": 0})
    return TableLock(storage, settings, CLOCK, sleep=pytest.fail)


def work(storage):
    """What a service does under the lock: look, and complete."""
    lock = lock_of(storage)
    with lock.held("work"):
        lock.check()
        storage.replace("done", (storage.read("done") if storage.size("done") else b"") + b"x")


def assert_all_get_it(case):
    """Two services in turn get the lock at once, and leave nothing."""
    done = case.storage.size("done") or 0
    work(case.storage)
    work(case.storage)
    assert case.storage.size("done") == done + 2, case
    assert case.storage.size(LOCK) is None, case


@pytest.mark.parametrize("mode", FAILING, ids=lambda mode: mode.name)
def test_a_call_that_fails_leaves_a_lock_that_all_get(mode, fresh):
    """F.1: nobody holds it after an error. Where not even its deletion succeeds, it is left to its own process."""
    count = 0
    for case in interruptions(fresh, [mode]):
        count += case.run(work)
        if mode is not FAILING[-1]:
            file_lock._given_up.clear()  # as any other process
        assert_all_get_it(case)
    assert count > 5


@pytest.mark.parametrize("mode", ENDING, ids=lambda mode: mode.name)
def test_a_process_that_ends_anywhere_keeps_nobody_out(monkeypatch, mode, fresh):
    """F.1: others on its machine see that it has ended, also between its claim and its lock; without an age."""
    count = 0
    for case in interruptions(fresh, [mode]):
        with monkeypatch.context() as as_another:
            as_another.setattr(file_lock, "this_process", lambda: GONE)
            count += case.run(work)
        file_lock._given_up.clear()
        assert_all_get_it(case)
    assert count > 5


def test_of_two_that_take_over_one_lock_only_one_holds_it(fresh):
    """F.1: whichever call of the first one the second comes before, and keeps it."""
    for n in range(100):
        storage, held = fresh(), []
        second = lock_of(storage)

        def enter(second=second, held=held):
            holding = second.held("second")
            with suppress(ConflictError):
                holding.__enter__()
                held.append(holding)

        between = Meanwhile(storage, enter, n=n, verbs=VERBS)
        try:
            with lock_of(between).held("first"):
                assert not held, n
        except ConflictError:
            assert held, n
        for holding in held:
            second.check()
            holding.__exit__(None, None, None)
        if between.fired is None:
            break
    else:
        pytest.fail("never ends")
    assert n > 3


@pytest.mark.parametrize("fresh", ["left behind"], indirect=True)
def test_a_claim_that_was_counted_differently_is_seen(fresh):
    """Where claims were deleted meanwhile, another process may have one under a later number."""
    storage = fresh()

    class Counted(DelegatingStorage):
        def create_new(self, path, content):
            if path.endswith("-0"):
                storage.create_new(f"{path.removesuffix('0')}1", b"of a process that may live")
            return self.inner.create_new(path, content)

    before = storage.read(LOCK)
    with pytest.raises(ConflictError), lock_of(Counted(storage)).held("first"):
        pytest.fail("two holders")
    assert storage.read(LOCK) == before
    (claim,) = storage.list(CLAIMS)
    assert claim.name.endswith("-1")

"""What every lock provider promises, run against each of them on each storage that it is served on."""

from __future__ import annotations

import json
import threading
import time
from datetime import datetime, timedelta, timezone

import pytest

from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError, ConflictError, CorruptMetadata, StorageError
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.wrappers import DelegatingStorage, RecordingStorage
from hudi_py.txn.table_lock import TableLock, table_lock
from support.lock_race import race

PACKAGE = "org.apache.hudi.client.transaction.lock."
FILE, IN_PROCESS = PACKAGE + "FileSystemBasedLockProvider", PACKAGE + "InProcessLockProvider"
LEASE = PACKAGE + "StorageBasedLockProvider"
S3_IS_ATOMIC = {"hoodie.fs.atomic_creation.support": "s3"}
AT_ONCE = {"hoodie.write.lock.client.num_retries": 0, "hoodie.write.lock.wait_time_ms": 0}
LOCK = ".hoodie/lock"
PROVIDERS = [
    pytest.param(FILE, "memory", id="file-memory"),
    pytest.param(FILE, "local", id="file-local"),
    pytest.param(FILE, "s3", id="file-s3", marks=pytest.mark.s3),
    pytest.param(LEASE, "memory", id="lease-memory"),
    pytest.param(LEASE, "s3", id="lease-s3", marks=pytest.mark.s3),
    pytest.param(IN_PROCESS, "memory", id="in process"),
]
FILE_ONLY = [each for each in PROVIDERS if each.values[0] == FILE]
LEASE_ONLY = [each for each in PROVIDERS if each.values[0] == LEASE]
LEASED = ".hoodie/.locks/table_lock.json"


@pytest.fixture
def clock():
    """Stands at the present, which is what the storages stamp files with."""
    return FixedClock(datetime.now(timezone.utc))


@pytest.fixture
def make_lock(make_storage, clock):
    """Build any number of holders of one table's lock; each call is another writer."""
    storages = {}

    def make(provider, backend, *, wrap=lambda storage: storage, sleep=pytest.fail, **settings):
        if backend not in storages:
            storages[backend] = make_storage(backend)
        given = {"hoodie.write.lock.provider": provider, **AT_ONCE, **S3_IS_ATOMIC, **settings}
        lock = TableLock(wrap(storages[backend]), Settings(given), clock, sleep=sleep)
        lock.storage = storages[backend]
        return lock

    return make


@pytest.mark.parametrize(("provider", "backend"), PROVIDERS)
def test_one_holder_at_a_time(make_lock, provider, backend):
    """F.1: held it is refused to everybody else, who are told who has it; given back it is free."""
    first, second = make_lock(provider, backend), make_lock(provider, backend)
    with first.held("archive"):
        with pytest.raises(ConflictError, match="try again") as refused, second.held("clean"):
            pytest.fail("two holders")
        for told in {FILE: (LOCK, "hudi_py archive"), LEASE: (LEASED, "owner")}.get(provider, ()):
            assert told in str(refused.value)
    with second.held("clean"), pytest.raises(ConflictError), first.held("archive"):
        pytest.fail("two holders")


@pytest.mark.parametrize(("provider", "backend"), PROVIDERS)
def test_holding_again_ends_with_the_outermost(make_lock, provider, backend):
    """A service that holds it may call another that does."""
    first, second = make_lock(provider, backend), make_lock(provider, backend)
    with first.held("outer"):
        with first.held("inner"):
            pass
        first.check()
        with pytest.raises(ConflictError), second.held("other"):
            pytest.fail("two holders")
    with second.held("other"):
        pass


@pytest.mark.parametrize(("provider", "backend"), PROVIDERS)
def test_an_error_inside_gives_it_back(make_lock, provider, backend):
    """Whatever ends a holding, the lock is free again and the error is the holder's own."""
    lock = make_lock(provider, backend)
    with pytest.raises(ZeroDivisionError), lock.held("work"):
        raise ZeroDivisionError
    with make_lock(provider, backend).held("other"):
        pass


class Undeletable(DelegatingStorage):
    """Everything but deletion."""

    def delete(self, path):
        raise StorageError(f"{path} cannot be deleted")


def test_who_cannot_give_it_back_is_told_unless_the_work_failed(make_lock):
    """A failure of the work is what counts; with none, that the lock still looks held."""
    for error, told in ((ZeroDivisionError, ZeroDivisionError), (None, StorageError)):
        lock = make_lock(FILE, "memory", wrap=Undeletable)
        with pytest.raises(told), lock.held("work"):
            if error is not None:
                raise error
        assert lock_files(lock.storage)
        lock.storage.delete(LOCK)


@pytest.mark.parametrize(("provider", "backend"), PROVIDERS)
def test_a_refusal_keeps_no_thread_out(make_lock, provider, backend):
    """Who did not get the lock has none of it: another thread with the same opened table gets it once it is free."""
    first, second = make_lock(provider, backend), make_lock(provider, backend)
    with first.held("archive"), pytest.raises(ConflictError), second.held("clean"):
        pytest.fail("two holders")
    got = []

    def work():
        with second.held("clean"):
            got.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert got == [True]


@pytest.mark.parametrize(("provider", "backend"), PROVIDERS)
def test_a_copy_for_another_process_does_not_hold_it(make_lock, provider, backend):
    """An opened table is sent to executors while the driver holds the lock: there it is not held."""
    lock = make_lock(provider, backend, sleep=time.sleep)
    make, arguments = lock.__reduce__()
    with lock.held("clean"), pytest.raises(ConflictError), make(*arguments).held("clean"):
        pytest.fail("two holders")


@pytest.mark.parametrize(("provider", "backend"), PROVIDERS)
def test_whoever_waits_gets_it_in_the_end(make_lock, provider, backend):
    """Tries as often as the settings say, and not once more than needed."""
    pauses = []
    first = make_lock(provider, backend)
    holding = first.held("work")
    holding.__enter__()

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 3:
            holding.__exit__(None, None, None)

    patient = {
        "hoodie.write.lock.client.num_retries": 5,
        "hoodie.write.lock.client.wait_time_ms_between_retry": 700,
    }
    second = make_lock(provider, backend, sleep=pause, **patient)
    with second.held("other"):
        assert pauses == [0.7] * 3


@pytest.mark.parametrize(("provider", "backend"), PROVIDERS)
def test_threads_with_one_opened_table_are_two_writers(make_lock, provider, backend):
    """Being held by one thread is not being held by another."""
    lock = make_lock(provider, backend)
    outcome = []

    def try_it():
        try:
            with lock.held("thread"):
                outcome.append("held")
        except ConflictError:
            outcome.append("refused")

    with lock.held("main"):
        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()
    assert outcome == ["refused"]


@pytest.mark.parametrize(
    ("held", "wanted"),
    [(FILE, LEASE), (FILE, IN_PROCESS), (LEASE, FILE), (LEASE, IN_PROCESS)],
    ids=lambda it: it.rpartition(".")[2][:7],
)
def test_a_lock_beside_another_one_that_is_held_is_refused(make_lock, held, wanted):
    """Two providers on one table keep nobody out; once the other is released or left behind, it is as if alone."""
    other = make_lock(held, "memory")
    with (
        other.held("work"),
        pytest.raises(ConfigError, match="Set the same lock provider for all writers"),
        make_lock(wanted, "memory").held("mixed"),
    ):
        pytest.fail("two holders")
    with make_lock(wanted, "memory").held("after"):
        pass
    with other.held("the refused one has released its own"):
        pass


@pytest.mark.parametrize(("path", "content"), [(LOCK, b""), (LEASED, b'{"expired":false,"validUntil":1,"owner":"a"}')])
def test_a_lock_of_another_provider_that_is_left_behind_is_in_nobodys_way(make_lock, clock, path, content):
    """By the age that is set, or the time until which it says that it is valid."""
    lock = make_lock(IN_PROCESS, "memory", **{"hoodie.write.lock.filesystem.expire": 1})
    lock.storage.create_new(path, content)
    clock.move(timedelta(minutes=2))
    with lock.held("work"):
        pass


def test_a_file_in_another_folder_is_another_lock(make_lock, tmp_path):
    """Those who use the table's own folder are not kept out by it."""
    lock = make_lock(FILE, "local", **{"hoodie.write.lock.filesystem.path": str(tmp_path / "elsewhere")})
    with (
        make_lock(FILE, "local").held("work"),
        pytest.raises(ConfigError, match="do not keep each other out"),
        lock.held("mixed"),
    ):
        pytest.fail("two holders")


@pytest.mark.parametrize("provider", [FILE, LEASE, IN_PROCESS])
def test_threads_that_race_take_turns(make_lock, provider):
    """Never two holders; each gets its turns."""
    patient = {
        "hoodie.write.lock.client.num_retries": 1_000_000,
        "hoodie.write.lock.client.wait_time_ms_between_retry": 0,
        "hoodie.write.lock.wait_time_ms": 999,
    }
    locks = [make_lock(provider, "memory", sleep=lambda _: None, **patient) for _ in range(3)]
    assert race(locks, 8) == (1, 24)


@pytest.mark.parametrize(("provider", "backend"), LEASE_ONLY)
def test_a_lease_says_until_when_and_stays_when_it_is_released(make_lock, clock, provider, backend):
    """F.1: ``validUntil`` five minutes ahead; released it is the same with ``expired`` set."""
    lock = make_lock(provider, backend)
    with lock.held("clean"):
        held = json.loads(lock.storage.read(LEASED))
        assert held["expired"] is False
        assert held["validUntil"] == int(clock.now().timestamp() * 1000) + 300_000
    assert json.loads(lock.storage.read(LEASED)) == held | {"expired": True}


@pytest.mark.parametrize(("provider", "backend"), LEASE_ONLY)
def test_a_lease_that_is_not_renewed_is_taken_over(make_lock, clock, provider, backend):
    """F.1: half a second after its time, and its holder finds out before its commit point and releases nothing."""
    first, second = make_lock(provider, backend), make_lock(provider, backend)
    with first.held("slow"):
        clock.move(timedelta(seconds=300, milliseconds=400))
        with pytest.raises(ConflictError, match="taken over or removed"):
            first.check()  # its time is over: somebody may have it
        with pytest.raises(ConflictError), second.held("early"):
            pytest.fail("taken over too early")
        clock.move(timedelta(milliseconds=200))
        taken = second.held("late")
        taken.__enter__()
    second.check()
    taken.__exit__(None, None, None)
    assert json.loads(first.storage.read(LEASED))["expired"]


@pytest.mark.parametrize(("provider", "backend"), LEASE_ONLY)
def test_a_renewed_lease_lasts_longer(make_lock, clock, provider, backend):
    """F.1: by the validity, counted from the renewal; nobody else gets it meanwhile."""
    first, second = make_lock(provider, backend), make_lock(provider, backend)
    with first.held("long"):
        for _ in range(3):
            clock.move(timedelta(seconds=200))
            assert first._provider.renew()
            first.check()
            with pytest.raises(ConflictError), second.held("other"):
                pytest.fail("two holders")
    with second.held("other"):
        assert not first._provider.renew()
        second.check()


@pytest.mark.parametrize(("provider", "backend"), LEASE_ONLY)
def test_a_lease_of_hudi_is_understood(make_lock, clock, provider, backend):
    """F.1: what it has besides is passed over; what does not parse is nobody's to take."""
    lock, now_ms = make_lock(provider, backend), int(clock.now().timestamp() * 1000)
    theirs = {"expired": False, "validUntil": now_ms + 1000, "owner": "theirs", "reason": "later release"}
    lock.storage.replace(LEASED, json.dumps(theirs).encode())
    with pytest.raises(ConflictError, match="owner theirs"), lock.held("clean"):
        pytest.fail("two holders")
    lock.storage.replace(LEASED, json.dumps(theirs | {"expired": True}).encode())
    with lock.held("clean"):
        pass
    lock.storage.replace(LEASED, b'{"expired": null}')
    with pytest.raises(CorruptMetadata, match="delete it"), lock.held("clean"):
        pytest.fail("taken")


def test_a_lease_needs_conditional_writes(make_lock):
    """F.1: a local disk has none, in Hudi neither."""
    lock = make_lock(LEASE, "local")
    with pytest.raises(ConfigError, match="conditional writes"), lock.held("clean"):
        pytest.fail("held")
    assert lock.storage.list("") == []


def test_a_lease_is_renewed_often_enough(make_lock):
    """F.1: validity is at least ten times the interval, under its old name too."""
    lock = make_lock(LEASE, "memory", **{"hoodie.write.lock.storage.heartbeat.poll.secs": 31})
    with pytest.raises(ConfigError, match=r"validity\.timeout\.secs=300"), lock.held("clean"):
        pytest.fail("held")


def test_a_lease_is_asked_for_every_second(make_lock):
    """F.1: within one try as long as ``wait_time_ms`` says, and again after the client's pause."""
    pauses, first = [], make_lock(LEASE, "memory")
    waits = {"hoodie.write.lock.wait_time_ms": 2000, "hoodie.write.lock.client.num_retries": 1}
    second = make_lock(LEASE, "memory", sleep=pauses.append, **waits)
    with first.held("work"), pytest.raises(ConflictError, match="waited 9 s"), second.held("other"):
        pytest.fail("two holders")
    assert pauses == [1, 1, 5, 1, 1]


@pytest.mark.parametrize(("provider", "backend"), FILE_ONLY)
def test_the_file_is_there_as_long_as_it_is_held(make_lock, provider, backend):
    """F.1: that is what Hudi goes by; its content has the fields of Hudi's, and nothing else stays behind."""
    lock = make_lock(provider, backend)
    with lock.held("clean"):
        content = json.loads(lock.storage.read(LOCK))
        assert list(content) == ["lockCreateTime", "lockThreadName", "lockStacksInfo"]
        datetime.strptime(content["lockCreateTime"], "%Y-%m-%d %H:%M:%S.%f")  # noqa: DTZ007 - as Hudi, without a zone
    assert lock.storage.size(LOCK) is None


@pytest.mark.parametrize(("provider", "backend"), FILE_ONLY)
def test_without_an_age_it_is_held_for_ever(make_lock, clock, provider, backend):
    """F.1: ``filesystem.expire`` is 0 by default, and then nobody takes a lock over."""
    lock = make_lock(provider, backend)
    lock.storage.create_new(LOCK, b"left behind")
    clock.move(timedelta(days=1000))
    with pytest.raises(ConflictError, match="left behind"), lock.held("clean"):
        pytest.fail("taken over")
    assert lock.storage.read(LOCK) == b"left behind"


@pytest.mark.parametrize(("provider", "backend"), FILE_ONLY)
def test_an_expired_lock_is_taken_over_and_its_holder_finds_out(make_lock, clock, provider, backend):
    """F.1: by modification time; who held it completes nothing any more, and does not remove the new holder's."""
    expire = {"hoodie.write.lock.filesystem.expire": 2}
    first, second = make_lock(provider, backend, **expire), make_lock(provider, backend, **expire)
    with first.held("slow"):
        clock.move(timedelta(seconds=110))
        with pytest.raises(ConflictError), second.held("early"):
            pytest.fail("taken over too early")
        clock.move(timedelta(seconds=20))
        with second.held("late"):
            second.check()
            with pytest.raises(ConflictError, match="taken over"):
                first.check()
    assert not lock_files(first.storage)
    with second.held("again"):
        pass


@pytest.mark.parametrize(("provider", "backend"), FILE_ONLY)
def test_the_lock_of_a_new_holder_outlives_the_old_one(make_lock, clock, provider, backend):
    """Hudi removes any lock when it lets go; we remove our own only."""
    expire = {"hoodie.write.lock.filesystem.expire": 1}
    first, second = make_lock(provider, backend, **expire), make_lock(provider, backend, **expire)
    old = first.held("old")
    old.__enter__()
    clock.move(timedelta(minutes=2))
    with second.held("new"):
        old.__exit__(None, None, None)
        second.check()
    assert lock_files(first.storage) == []


@pytest.mark.parametrize(("provider", "backend"), FILE_ONLY)
def test_a_removed_lock_is_noticed_before_a_commit_point(make_lock, provider, backend):
    """F.1: Hudi removes the file when it closes, whoever's it is."""
    lock = make_lock(provider, backend)
    with lock.held("clean"):
        lock.storage.delete(LOCK)
        with pytest.raises(ConflictError, match="nothing was completed"):
            lock.check()
    lock.check()  # not held: nothing to lose


def test_the_file_lies_where_the_settings_say(make_lock, tmp_path):
    """F.1: ``filesystem.path``, in the table or outside of it."""
    lock = make_lock(FILE, "local")
    inside = make_lock(FILE, "local", **{"hoodie.write.lock.filesystem.path": f"{lock.storage.root}/.hoodie/.aux/"})
    outside = make_lock(FILE, "local", **{"hoodie.write.lock.filesystem.path": f"file:{tmp_path}/elsewhere"})
    with inside.held("one"), outside.held("two"), lock.held("three"):
        assert lock.storage.size(".hoodie/.aux/lock") is not None
        assert (tmp_path / "elsewhere" / "lock").is_file()
        assert lock.storage.size(LOCK) is not None
    assert not (tmp_path / "elsewhere" / "lock").exists()


def test_a_lock_in_process_is_no_file(make_lock):
    """Nothing of it is in the storage, however long it is held."""
    lock = make_lock(IN_PROCESS, "memory")
    with lock.held("clean"):
        assert not lock_files(lock.storage)


class NotAtomic(DelegatingStorage):
    """Two processes can create one file."""

    @property
    def capabilities(self):
        return self.inner.capabilities._replace(atomic_create=False)


def test_a_file_that_two_can_create_is_no_lock(make_lock):
    """F.1: refused before anything is created."""
    lock = make_lock(FILE, "memory", wrap=NotAtomic)
    with pytest.raises(ConfigError, match="creates files atomically"), lock.held("clean"):
        pytest.fail("held")
    assert not lock_files(lock.storage)


@pytest.mark.s3
def test_hudi_refuses_the_file_on_an_object_store_and_so_do_we(make_lock):
    """F.1: only storages with atomic create."""
    lock = make_lock(FILE, "s3", **{"hoodie.fs.atomic_creation.support": ""})
    with pytest.raises(ConfigError, match=r"hoodie\.write\.lock\.provider"), lock.held("clean"):
        pytest.fail("held")
    assert lock.storage.list(".hoodie") == []


@pytest.mark.parametrize(
    "provider",
    [
        PACKAGE + "ZookeeperBasedImplicitBasePathLockProvider",
        "org.apache.hudi.aws.transaction.lock.DynamoDBBasedImplicitPartitionKeyLockProvider",
        "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider",
        "com.example.OurLock",
        "FileSystemBasedLockProvider",
    ],
)
def test_other_providers_are_refused_when_something_is_to_be_changed(make_storage, clock, provider):
    """F.1: named with the setting, what is served and what to do; before that nobody asks."""
    storage = RecordingStorage(make_storage("memory"))
    lock = table_lock(storage, Settings({"hoodie.write.lock.provider": provider}), clock)
    lock.check()
    with pytest.raises(ConfigError) as refused, lock.held("clean"):
        pytest.fail("held")
    for told in ("hoodie.write.lock.provider", provider, "InProcessLockProvider", "without the setting"):
        assert told in str(refused.value)
    assert storage.calls == []


def test_a_provider_that_nobody_knows_is_refused_in_a_dry_run_too(make_lock):
    """Misspelled it would be no lock; one that is known and not served is refused when something is to be changed."""
    make_lock("org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider", "memory").examine()
    make_lock(FILE, "memory").examine()
    with pytest.raises(ConfigError, match="FileSystemLock"):
        make_lock(PACKAGE + "FileSystemLock", "memory").examine()


def lock_files(storage):
    """Everything that a lock leaves."""
    left = [entry.name for entry in storage.list(".hoodie") if not entry.is_folder]
    return left + [entry.name for entry in storage.list(".hoodie/.aux/hudi_py/lock")]

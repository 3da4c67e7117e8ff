"""Locks that a service keeps: a real ZooKeeper, and a server that speaks DynamoDB."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import datetime, timezone

import pytest

from hudi_py.config.lock import LockKind
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError, ConflictError, StorageError
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.memory import MemoryStorage
from hudi_py.txn import providers
from hudi_py.txn.dynamodb_lock import DynamoDBLock
from hudi_py.txn.table_lock import TableLock
from hudi_py.txn.zookeeper_lock import ZookeeperLock
from support.lock_race import race
from support.zookeeper import SESSION_MS, zookeeper_server

ZOOKEEPER, DYNAMODB = LockKind.ZOOKEEPER.value, LockKind.DYNAMODB.value
PROVIDERS = [ZOOKEEPER, DYNAMODB]
LOCK = "hoodie.write.lock."
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory):
    """Address of a running ZooKeeper."""
    with zookeeper_server(tmp_path_factory.mktemp("zookeeper")) as address:
        yield address


@pytest.fixture
def settings(request, monkeypatch):
    """Settings of a lock of each provider, as an engineer would give them; the lock is another one in each test."""

    def make(provider, **more):
        name = request.node.name
        if provider == ZOOKEEPER:
            own = {
                "zookeeper.url": request.getfixturevalue("zookeeper"),
                "zookeeper.base_path": "/hudi",
                "zookeeper.lock_key": name,
                "zookeeper.session_timeout_ms": SESSION_MS,
                "wait_time_ms": 100,
            }
        else:
            options = request.getfixturevalue("s3_options")
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", options["key"])
            monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", options["secret"])
            own = {
                "dynamodb.endpoint_url": options["endpoint_url"],
                "dynamodb.table": "locks",
                "dynamodb.partition_key": name,
                "wait_time_ms": 3000,
            }
        given = {"provider": provider, "client.num_retries": 0, **own, **more}
        return Settings({LOCK + key: value for key, value in given.items()})

    return make


@pytest.fixture
def make_lock(settings):
    """Build any number of holders of one lock; each call is another writer."""

    def make(provider, *, sleep=lambda _: None, **more):
        clock = FixedClock(datetime.now(timezone.utc))
        return TableLock(MemoryStorage(), settings(provider, **more), clock, sleep=sleep)

    return make


@pytest.mark.parametrize("provider", PROVIDERS)
def test_one_holder_at_a_time(make_lock, provider):
    """F.1: held it is refused to everybody else, who are told who has it; released it is free, after an error, too."""
    first, second = make_lock(provider), make_lock(provider)
    with first.held("outer"):
        with first.held("inner"):
            pass
        first.check()
        with pytest.raises(ConflictError, match="hudi_py") as refused, second.held("clean"):
            pytest.fail("two holders")
        assert "try again" in str(refused.value)
    with pytest.raises(ZeroDivisionError), second.held("clean"):
        second.check()
        raise ZeroDivisionError
    with first.held("again"):
        first.check()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_threads_that_race_take_turns(make_lock, provider):
    """Never two holders; each gets its turns."""
    patient = {"client.num_retries": 1_000_000, "client.wait_time_ms_between_retry": 0}
    locks = [make_lock(provider, **patient) for _ in range(3)]
    assert race(locks, 4) == (1, 12)


HOLDER = """
import sys
from datetime import datetime, timezone
from hudi_py.config.settings import Settings
from hudi_py.errors import ConflictError
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.memory import MemoryStorage
from hudi_py.txn.table_lock import TableLock
from hudi_py.txn.zookeeper_lock import ZookeeperLock
lock = TableLock(MemoryStorage(), Settings(eval(sys.argv[1])), FixedClock(datetime.now(timezone.utc)))
with lock.held("work of another process"):
    print("held", flush=True)
    sys.stdin.readline()
    try:
        lock.check()
    except ConflictError as error:
        print(error, flush=True)
    else:
        print("still held", flush=True)
"""


@pytest.fixture
def holder(settings):
    """Start another process that takes the lock, and checks it once it gets a line."""
    started = []

    def start(provider):
        given = settings(provider).as_dict()
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, repr(given)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        with process:  # closes its pipes
            process.kill()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_lock_of_a_killed_process_comes_free(make_lock, holder, provider):
    """After the end of its session, or one lease."""
    holder(provider).kill()
    patient = {"client.num_retries": 10_000, "client.wait_time_ms_between_retry": 1}
    with make_lock(provider, sleep=time.sleep, **patient).held("after"):
        pass


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_process_that_was_stopped_completes_nothing(make_lock, holder, provider):
    """It wakes after another writer got the lock, and finds out before its commit point."""
    process = holder(provider)
    os.kill(process.pid, signal.SIGSTOP)
    patient = {"client.num_retries": 10_000, "client.wait_time_ms_between_retry": 1}
    with make_lock(provider, sleep=time.sleep, **patient).held("meanwhile"):
        os.kill(process.pid, signal.SIGCONT)
        told, _ = process.communicate("\n")
    assert "was taken over or removed" in told


def test_a_lease_is_renewed_and_taken_over_only_after_its_whole_time(settings):
    """By the stopwatch of the one who waits, from when it first saw the version; each renewal begins it anew."""
    from hudi_py.config.lock import lock_config

    config = lock_config(settings(DYNAMODB)).dynamodb
    now = [100.0]
    first = DynamoDBLock(config, seconds=lambda: now[0])
    second = DynamoDBLock(config, seconds=lambda: now[0])
    assert first.try_acquire("work")
    first._renewals.stop()  # from here on it is renewed by hand
    assert not second.try_acquire("other")
    now[0] += 2.9
    assert first.is_ours()
    assert first.renew()
    assert not second.try_acquire("other")
    now[0] += 2.9
    assert first.is_ours()
    assert not second.try_acquire("other")
    now[0] += 0.2
    assert not first.is_ours()  # whoever saw the last renewal may take it now
    assert second.try_acquire("other")
    assert not first.renew()
    assert second.is_ours()
    first.release()
    assert second.is_ours()
    second.release()


def test_a_session_that_ends_behind_the_answer_holds_no_lock(settings):
    """ZooKeeper has said that the node is there, and then the client has no session any more."""
    from hudi_py.config.lock import lock_config

    lock = ZookeeperLock(lock_config(settings(ZOOKEEPER)).zookeeper, wait_ms=100)
    assert lock.try_acquire("work")
    assert lock.is_ours()
    client = lock._client
    asked = client.exists_async

    class Answer:
        def __init__(self, path):
            self.of = asked(path)

        def get(self, **patience):
            stat = self.of.get(**patience)
            client.stop()
            return stat

    client.exists_async = Answer
    assert not lock.is_ours()
    lock.release()


@pytest.mark.parametrize("loses", ["request", "answer"])
@pytest.mark.parametrize("verb", ["put_item", "update_item"])
def test_a_lost_request_or_answer_leaves_no_doubt(settings, verb, loses):
    """The item tells whether it arrived: the lock is ours, or not taken and an error."""
    from botocore.exceptions import ConnectionClosedError

    from hudi_py.config.lock import lock_config

    lock = DynamoDBLock(lock_config(settings(DYNAMODB)).dynamodb)

    def lose(**arguments):
        if loses == "answer":
            call(**arguments)
        raise ConnectionClosedError(endpoint_url="http://locks")

    if verb == "update_item":
        assert lock.try_acquire("work")
        lock._renewals.stop()
    call = getattr(lock._client, verb)
    setattr(lock._client, verb, lose)
    if verb == "update_item":
        assert lock.renew()
        assert lock.is_ours()
    elif loses == "answer":
        assert lock.try_acquire("work")
        assert lock.is_ours()
    else:
        with pytest.raises(StorageError, match="the lock was not taken"):
            lock.try_acquire("work")
        assert not lock.is_ours()
    setattr(lock._client, verb, call)
    if lock._version:
        lock.release()
        assert lock._read() is None


@pytest.mark.parametrize("work", ["acquire", "renew", "release"])
def test_a_request_that_the_client_repeats_finds_what_the_first_one_left(settings, work):
    """The answer to the first was lost, and the second is refused: the lock is ours, and nobody waits for a lease."""
    from botocore.exceptions import ConnectionClosedError

    from hudi_py.config.lock import lock_config

    lock = DynamoDBLock(lock_config(settings(DYNAMODB)).dynamodb)
    assert lock._read() is None
    session = lock._client._endpoint.http_session
    send, lost = session.send, []

    def lose_an_answer(request):
        answer = send(request)
        if not lost and b"GetItem" not in request.headers.get("X-Amz-Target", b""):
            lost.append(request)
            raise ConnectionClosedError(endpoint_url=request.url)
        return answer

    if work != "acquire":
        assert lock.try_acquire("work")
        lock._renewals.stop()
    session.send = lose_an_answer
    if work == "acquire":
        assert lock.try_acquire("work")
        lock._renewals.stop()
    elif work == "renew":
        assert lock.renew()
    else:
        lock.release()
    assert len(lost) == 1
    if work != "release":
        assert lock.is_ours()
        lock.release()
    assert lock._read() is None


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_service_that_does_not_answer_is_an_error(make_lock, provider):
    """Nothing is done without the lock; it ends within the time-outs, and names what may be wrong."""
    away = "127.0.0.1:1"
    own = {"zookeeper.url": away, "zookeeper.connection_timeout_ms": 200, "dynamodb.endpoint_url": f"http://{away}"}
    where = "zookeeper.url" if provider == ZOOKEEPER else "dynamodb.endpoint_url"
    with pytest.raises(StorageError, match=f"not taken; check .*{where}"), make_lock(provider, **own).held("clean"):
        pytest.fail("held")


@pytest.mark.parametrize(
    ("provider", "missing"),
    [
        (ZOOKEEPER, "zookeeper.url"),
        (ZOOKEEPER, "zookeeper.base_path"),
        (ZOOKEEPER, "zookeeper.lock_key"),
        (DYNAMODB, "dynamodb.table"),
        (DYNAMODB, "dynamodb.partition_key"),
    ],
)
def test_a_missing_setting_is_named(make_lock, provider, missing):
    """Before anything is asked of the service."""
    named = "hoodie.table.name" if missing.endswith("_key") else LOCK + missing
    with pytest.raises(ConfigError, match=named), make_lock(provider, **{missing: ""}).held("clean"):
        pytest.fail("held")


def test_a_port_apart_from_the_address_is_refused(make_lock):
    """Apache Hudi ignores it, so the two would take locks of different servers."""
    own = {"zookeeper.url": "zk1,zk2", "zookeeper.port": 2182}
    with pytest.raises(ConfigError, match="zk1,zk2:2182"), make_lock(ZOOKEEPER, **own).held("clean"):
        pytest.fail("held")


def test_a_plug_in_serves_its_name(monkeypatch):
    """An entry point of another package; one that cannot be imported is an error that names it."""
    calls = []

    class Counting:
        def __init__(self, storage, settings, clock):
            calls.append(storage.root)

        def try_acquire(self, purpose):
            calls.append(purpose)
            return True

        def release(self):
            calls.append("released")

        def is_ours(self):
            return True

    class Entry:
        value = "elsewhere:Lock"

        def __init__(self, made):
            self.made = made

        def load(self):
            if self.made is None:
                raise ImportError("no module named elsewhere")
            return self.made

    monkeypatch.setattr(providers, "_plugins", lambda: {"ours": Entry(Counting), "broken": Entry(None)})
    clock = FixedClock(datetime.now(timezone.utc))
    with TableLock(MemoryStorage("t"), Settings({LOCK + "provider": "ours"}), clock).held("clean"):
        pass
    assert calls == ["t", "clean", "released"]
    broken = TableLock(MemoryStorage(), Settings({LOCK + "provider": "broken"}), clock)
    with pytest.raises(ConfigError, match="broken cannot be imported"), broken.held("clean"):
        pytest.fail("held")

"""Heartbeats, and what the three failed-writes policies do (rules/timeline 6.3, rules/table-services B-2 to B-8)."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError, ConflictError, OutcomeUnknown, StorageError
from hudi_py.model.instant import State
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.timeline.heartbeat import FOLDER, Heart, Rhythm, heartbeat_ages
from hudi_py.writing.transaction import begin_write
from support import many_writers, writes
from support.tables import NOW, TableBuilder, at, data_files

POLICY = "hoodie.clean.failed.writes.policy"


class Beaten(MemoryStorage):
    """Tells when a beat has arrived."""

    def __init__(self, **arguments):
        super().__init__(**arguments)
        self.arrived = threading.Semaphore(0)

    def replace(self, path, data):
        super().replace(path, data)
        self.arrived.release()


class Failing(DelegatingStorage):
    """Every second change but the first is done, and reported as not done."""

    def __init__(self, inner, error):
        super().__init__(inner)
        self.count, self.error = 0, error

    def replace(self, path, data):
        super().replace(path, data)
        self.count += 1
        if self.count % 2 == 0:
            raise self.error


def failed(layout: int, *, age_s: float | None) -> TableBuilder:
    """A table with a write that did not complete, and perhaps its heartbeat."""
    builder = TableBuilder(layout)
    builder.storage._clock_ms = lambda: int((NOW - timedelta(seconds=age_s or 0)).timestamp() * 1000)
    builder.commit(at(1), {"eu": ["a"]})
    builder.commit(at(2), {"eu": ["a"]}, state=State.INFLIGHT)
    if age_s is not None:
        builder.put(f"{FOLDER}/{at(2)}", b"")
    return builder


def begin(builder: TableBuilder, policy: str):
    table = builder.table()
    return begin_write(table.contents, table.config, Settings({POLICY: policy}), table.services.metadata_table)


def test_heartbeat_expires_after_interval_times_misses():
    """rules/timeline 6.3: a missing file counts as expired."""
    rhythm = Rhythm.of(Settings({}))
    assert (rhythm.interval_ms, rhythm.expiry_ms) == (60_000, 120_000)
    assert [rhythm.is_expired(age) for age in (-5, 0, 120_000, 120_001, None)] == [False, False, False, True, True]
    own = Settings({"hoodie.client.heartbeat.interval_in_ms": 2000, "hoodie.client.heartbeat.tolerable.misses": 5})
    assert Rhythm.of(own).expiry_ms == 10_000
    with pytest.raises(ConfigError):
        Rhythm.of(Settings({"hoodie.client.heartbeat.interval_in_ms": 999}))


def test_heart_beats_until_it_is_stopped():
    """The file is written anew every interval; stopping leaves it."""
    storage = Beaten()
    heart = Heart(storage, TableBuilder(2).clock, Rhythm(1, 10))
    heart.start(at(1))
    for _ in range(4):
        assert storage.arrived.acquire(timeout=30)
    heart.stop()
    while storage.arrived.acquire(blocking=False):
        pass
    assert not storage.arrived.acquire(timeout=0.05)
    assert storage.size(f"{FOLDER}/{at(1)}") == 0


@pytest.mark.parametrize("error", [StorageError("no connection"), OutcomeUnknown("no answer")], ids=repr)
def test_heart_beats_on_after_a_beat_that_failed(error):
    """Other writers judge by the age of the file, and a few beats may be missing."""
    storage = Beaten()
    heart = Heart(Failing(storage, error), TableBuilder(2).clock, Rhythm(1, 10))
    heart.start(at(1))
    for _ in range(4):
        assert storage.arrived.acquire(timeout=30)
    assert heart.is_beating
    heart.stop()


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("age_s", [None, 121])
def test_eager_rolls_back_at_the_next_write(layout, age_s):
    """B-2, B-8: with its heartbeat, if it has one that is expired."""
    builder = failed(layout, age_s=age_s)
    transaction = begin(builder, "EAGER")
    assert [each.commits_rollback for each in transaction.rolled_back] == [(at(2),)]
    assert transaction.heart is None
    assert data_files(builder.storage) == [f"eu/{builder.base_name('a', at(1))}"]
    assert builder.storage.list(FOLDER) == []


@pytest.mark.parametrize("layout", [1, 2])
def test_eager_gives_way_to_a_writer_at_work(layout):
    """Somebody else uses LAZY, and its write is alive: it is not undone, and ours does not begin."""
    builder = failed(layout, age_s=60)
    before = builder.storage.files()
    with pytest.raises(ConflictError, match=at(2)):
        begin(builder, "EAGER")
    assert builder.storage.files() == before


@pytest.mark.parametrize("policy", ["LAZY", "NEVER"])
@pytest.mark.parametrize("age_s", [None, 60, 121])
def test_lazy_and_never_leave_it_at_the_beginning_of_a_write(policy, age_s):
    """B-3, B-4: only the clean does, or nobody."""
    builder = failed(2, age_s=age_s)
    with begin(builder, policy) as transaction:
        assert transaction.rolled_back == ()
        times = [each.requested_time for each in builder.table().timeline.pending()]
        assert times == [at(2), transaction.instant_time]
        hearts = {each.name for each in builder.storage.list(FOLDER)}
        assert (transaction.instant_time in hearts) == (policy == "LAZY")
        assert len(data_files(builder.storage)) == 2


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize(
    ("policy", "age_s", "goes"),
    [("LAZY", 60, False), ("LAZY", 121, True), ("LAZY", None, True), ("NEVER", 121, False), ("EAGER", None, False)],
)
def test_clean_rolls_back_expired_writes_under_lazy(layout, policy, age_s, goes):
    """B-3: the clean step does, and only then."""
    builder = failed(layout, age_s=age_s)
    builder.table(clean_failed_writes_policy=policy).clean()
    assert (builder.table().timeline.pending() == ()) == goes
    assert len(data_files(builder.storage)) == (1 if goes else 2)
    assert (builder.storage.list(FOLDER) == []) == (goes or age_s is None)


def test_several_writers_imply_lazy():
    """A.1: the policy follows the concurrency mode unless it is set."""
    from hudi_py.config.concurrency import failed_writes_policy

    many = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    assert failed_writes_policy(Settings({})) == "EAGER"
    assert failed_writes_policy(Settings(many)) == "LAZY"
    assert failed_writes_policy(Settings({**many, POLICY: "NEVER"})) == "NEVER"


@pytest.mark.parametrize("mode", ["optimistic_concurrency_control", "NON_BLOCKING_CONCURRENCY_CONTROL"])
def test_several_writers_are_refused_before_anything_is_written(mode):
    """F: without a lock provider, or in a mode that is not supported; a clean goes on, LAZY included."""
    builder = failed(2, age_s=121)
    settings = {"write_concurrency_mode": mode}
    table, before = builder.table(**settings), builder.storage.files()
    with pytest.raises(ConfigError, match=r"hoodie\.write\.(lock\.provider|concurrency\.mode)"):
        begin_write(table.contents, table.config, table.settings, table.services.metadata_table)
    assert builder.storage.files() == before
    table.clean()
    assert not builder.table().timeline.pending()


@pytest.mark.parametrize("what", ["gone", "old"])
def test_commit_is_given_up_when_the_heart_stood_still(what):
    """B-6: others may have rolled the write back, so nothing of it may become visible."""
    builder = TableBuilder(2)
    moment = [NOW]
    builder.storage._clock_ms = lambda: int(moment[0].timestamp() * 1000)
    transaction = begin(builder, "LAZY")
    if what == "gone":
        builder.storage.delete(f"{FOLDER}/{transaction.instant_time}")
    else:
        builder.clock.move(timedelta(seconds=121))
    with transaction, pytest.raises(ConflictError, match="write again"):
        transaction.commit((), operation="UPSERT", extra_metadata={})
    assert builder.table().timeline.completed("commit") == ()


def test_heartbeat_goes_after_the_completed_instant():
    """B-5: before the requested file, until after the completed one; taken back it goes as well."""
    builder = TableBuilder(2)
    builder.storage._clock_ms = lambda: int(NOW.timestamp() * 1000)
    with begin(builder, "LAZY") as transaction:
        assert heartbeat_ages(builder.storage, builder.clock) == {transaction.instant_time: 0}
        transaction.commit((), operation="UPSERT", extra_metadata={})
    assert builder.storage.list(FOLDER) == []
    with begin(builder, "LAZY") as transaction:
        transaction.abandon()
    assert builder.storage.list(FOLDER) == []
    assert len(builder.table().timeline) == 1


def test_write_that_fails_leaves_its_heartbeat():
    """rules/timeline 6.3: also in a process that goes on; it beats no more."""
    builder = TableBuilder(2)
    with pytest.raises(RuntimeError), begin(builder, "LAZY") as transaction:
        raise RuntimeError
    assert [each.name for each in builder.storage.list(FOLDER)] == [transaction.instant_time]
    assert not transaction.heart.is_beating


@pytest.mark.parametrize(("ahead_s", "told"), [(0, None), (1.5, None), (3, 3.0), (-3, -3.0)])
def test_clocks_apart_are_told(caplog, ahead_s, told):
    """By our last beat, as the storage dates it: Apache Hudi hides rows where clocks of writers differ."""
    clock = FixedClock(NOW)
    storage = MemoryStorage(clock_ms=lambda: int((clock.moment - timedelta(seconds=ahead_s)).timestamp() * 1000))
    heart = Heart(storage, clock, Rhythm(60_000, 120_000))
    heart.start("20260101000000000")
    heart.stop()
    clock.move(timedelta(seconds=30))
    with caplog.at_level("WARNING", logger="hudi_py"):
        heart.check()
    said = [record.getMessage() for record in caplog.records if "clock.apart" in record.getMessage()]
    assert bool(said) == (told is not None)
    assert told is None or f"ahead_s={told}" in said[0]


def test_a_writer_whose_clock_is_ahead_is_told_so_at_once():
    """To it its own heartbeat is expired however often it beats: no attempt would end otherwise, so there is one."""
    behind_ms = int((writes.START - timedelta(hours=5)).timestamp() * 1000)
    storage = writes.create_table(9, MemoryStorage(clock_ms=lambda: behind_ms))
    writes.upsert(storage, writes.OLD)
    expected = many_writers.contents(storage)
    attempts = []
    rows = many_writers.DuringWhich([("n", "eu", 7)], lambda: attempts.append(1))
    with pytest.raises(ConfigError, match=r"is \d{5,} s ahead of the storage's") as raised:
        many_writers.service(storage).write(rows, "INSERT")
    assert raised.value.fix == "set the clock right, then write again"
    assert attempts == [1]
    assert many_writers.contents(storage) == expected
    writes.assert_tidy(storage, "clocks apart")

"""A write that touches the file groups of a running one gives way before it has written a file."""

import pickle
from datetime import timedelta

import pytest

from hudi_py.config.settings import Settings
from hudi_py.errors import ConflictError
from hudi_py.model.instant import Action
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import RecordingStorage
from hudi_py.timeline.heartbeat import Rhythm
from hudi_py.timeline.markers import Marker, MarkerType, create_marker, marker_folder
from hudi_py.timeline.store import TimelineStore
from hudi_py.txn.early import EarlyConflict, EarlyLook, groups_of, wait_for
from support import writes
from support.many_writers import DuringWhich, contents, rows, service, table, violations

EARLY = {"hoodie.write.concurrency.early.conflict.detection.enable": True}
AT_ONCE = {"hoodie.write.num.retries.on.conflict.failures": 0}


def data_files(storage):
    return sorted(path for path in storage.files() if path.endswith(".parquet") or ".log." in path)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_the_later_write_gives_way_before_it_writes(version, kind):
    """Nothing of it is left, its error names the running write, and that one completes."""
    storage = table(version, kind)
    caught = []

    def other():
        before = data_files(storage)
        with pytest.raises(EarlyConflict) as error:
            service(storage, **EARLY, **AT_ONCE).write(rows(("a", "eu", 6)), "UPSERT")
        assert data_files(storage) == before
        caught.append(error.value)

    result = service(storage, **EARLY).write(DuringWhich([("a", "eu", 5)], other), "UPSERT")
    assert caught[0].instant == result.instant
    assert caught[0].exit_code == 4
    assert ("eu", "a", 5) in contents(storage)
    writes.assert_tidy(storage, "gave way")


def test_the_later_write_is_begun_again_when_the_running_one_is_over():
    """It waits for that one's heartbeat, and does not use up its attempts meanwhile."""
    storage = table(9)
    clock = writes.open_table(storage).services.metadata_table.clock
    storage.replace(".hoodie/.heartbeat/20260101000000000", b"")
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 3:
            storage.delete(".hoodie/.heartbeat/20260101000000000")

    wait_for(storage, clock, Settings({}), "20260101000000000", 60, sleep)
    assert len(slept) == 3
    storage.replace(".hoodie/.heartbeat/20260101000000000", b"")
    slept[:] = [0, 0, 0]
    wait_for(storage, clock, Settings({}), "20260101000000000", 60, slept.append)
    assert sum(slept) == 60


def test_a_write_waits_for_the_running_one_as_long_as_for_any_conflict():
    """Then it has lost."""
    storage = table(9)
    settings = {**EARLY, "hoodie.write.num.retries.on.conflict.failures": 1, "hoodie_py.write.retry.timeout": "10s"}
    slept = []

    def other():
        writer = service(storage, **settings)
        writer._delays = writer._delays._replace(sleep=slept.append)
        with pytest.raises(ConflictError, match="tried 2 times"):
            writer.write(rows(("a", "eu", 6)), "UPSERT")

    service(storage, **EARLY).write(DuringWhich([("a", "eu", 5)], other), "UPSERT")
    assert slept.count(0.5) == 20


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 9])
def test_any_order_ends_like_some_serial_one(version):
    """Whatever a writer sees of the other one."""
    names = ("upsert", "update where")
    assert [each for each in violations(version, names, 1, **EARLY) if each is not None] == []


@pytest.mark.parametrize(
    ("operation", "given"), [("INSERT", ("n", "eu", 6)), ("UPSERT", ("b", "us", 6)), ("BULK_INSERT", ("a", "eu", 6))]
)
def test_writes_of_other_file_groups_are_not_hindered(operation, given):
    """They complete beside the running one."""
    storage = table(9)
    other = lambda: service(storage, **EARLY, **AT_ONCE).write(rows(given), operation)
    service(storage, **EARLY).write(DuringWhich([("a", "eu", 5)], other), "UPSERT")
    assert {("eu", "a", 5), (given[1], given[0], given[2])} <= set(contents(storage))


def test_without_the_setting_the_later_write_writes_and_loses_in_the_end():
    """As before: the one that completes first wins."""
    storage = table(9)
    other = lambda: service(storage, **AT_ONCE).write(rows(("a", "eu", 6)), "UPSERT")
    with pytest.raises(ConflictError, match="another writer was faster"):
        service(storage, **AT_ONCE).write(DuringWhich([("a", "eu", 5)], other), "UPSERT")
    assert ("eu", "a", 6) in contents(storage)


OURS = "20260102000000000"
GROUP = ("eu", "aaaa-0")


def look(time="20260101120000000", *, action=Action.COMMIT, age_s=0, name="aaaa-0_0-1-2_{}.parquet", text=None):
    """What ours sees of another write with one marker."""
    opened = writes.open_table(writes.create_table(9))
    clock = FixedClock(opened.services.metadata_table.clock.moment)
    storage = MemoryStorage(clock_ms=lambda: int((clock.moment - timedelta(seconds=age_s)).timestamp() * 1000))
    for path, data in opened.contents.store.storage.files().items():
        storage.replace(path, data)
    store = TimelineStore(storage, opened.contents.store.config, clock)
    if action is not None:
        store.request(action, time, b"")
    marker = Marker("eu", name.format(time), MarkerType.MERGE)
    if text is None:
        create_marker(storage, time, marker)
    else:
        storage.replace(f"{marker_folder(time)}/MARKERS.type", b"TIMELINE_SERVER_BASED")
        storage.replace(f"{marker_folder(time)}/MARKERS0", f"{marker.path}.marker.MERGE\n".encode())
    storage.replace(f".hoodie/.heartbeat/{time}", b"")
    return EarlyLook(store=store, rhythm=Rhythm(60_000, 120_000))


@pytest.mark.parametrize("text", [None, "in a text file, as the timeline server of Apache Hudi writes them"])
def test_markers_of_either_form_are_seen(text):
    """Also on an executor."""
    with pytest.raises(EarlyConflict, match="aaaa-0") as caught:
        pickle.loads(pickle.dumps(look(text=text))).check(OURS, GROUP)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.instant) == (str(caught.value), "20260101120000000")


@pytest.mark.parametrize(
    "other",
    [
        {"time": "20260103000000000"},
        {"age_s": 121},
        {"action": Action.COMPACTION},
        {"action": Action.REPLACE_COMMIT},
        {"action": None},
        {"name": "bbbb-0_0-1-2_{}.parquet"},
    ],
    ids=["began later", "is dead", "compacts", "replaces", "is over", "writes another group"],
)
def test_others_are_not_in_the_way(other):
    """The later one gives way to the earlier one, if that runs, writes rows, and touches the same group."""
    look(**other).check(OURS, GROUP)


def test_the_same_bucket_is_the_same_group():
    """Two writers give a new bucket two file ids."""
    name = "00000003-1111-0_0-1-2_{}.parquet"
    ours = ("eu", "00000003-2222-0")
    look(name=name).check(OURS, ours)
    alike = look(name=name)
    with pytest.raises(EarlyConflict):
        EarlyLook(store=alike.store, rhythm=alike.rhythm, by_bucket=True).check(OURS, ours)


def test_groups_are_those_of_base_and_log_files():
    """Whatever else is marked has none."""
    names = ["aaaa-0_0-1-2_20260101000000000.parquet", ".bbbb-0_20260101000000000.log.1_0-1-2", "x.txt"]
    assert groups_of(Marker("p", name, MarkerType.CREATE) for name in names) == {("p", "aaaa-0"), ("p", "bbbb-0")}


def test_alone_it_costs_one_request():
    """Before each file, the listing of the markers."""
    storage = writes.create_table(9)
    recorder = RecordingStorage(storage)
    store = TimelineStore(recorder, writes.open_table(storage).contents.store.config)
    EarlyLook(store=store, rhythm=Rhythm(60_000, 120_000)).check(OURS, GROUP)
    assert len(recorder.calls) == 1

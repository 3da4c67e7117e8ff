"""Attempts of compactions and clusterings that failed: what proves it, who takes them back, what late tasks leave."""

import os
import signal
from datetime import timedelta

import pyarrow as pa
import pytest

from hudi_py.errors import ConflictError, RefusedError, StorageError
from hudi_py.model.instant import Action, State
from hudi_py.runtime.clock import FixedClock
from hudi_py.services.clustering import execute as clustering
from hudi_py.services.compaction import service as compaction
from hudi_py.services.log_compaction import service as log_compaction
from hudi_py.services.recovery.finding import Problem, Step
from hudi_py.storage.local import LocalStorage
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from hudi_py.timeline.fence import put_up_fence
from support.meanwhile import Meanwhile
from support.writes import ALONE, SCHEMA, START, create_table, merged_rows_of, open_table, upsert

QUICK = {**ALONE, "hoodie.index.bloom.num_entries": 100, "hoodie.compact.inline.max.delta.commits": 1}
QUICK["hoodie.log.compaction.blocks.threshold"] = 1
ROWS = [{"id": f"k{number}", "region": "eu", "ts": number} for number in range(3)]
SERVICES = {
    "cluster": (clustering, "rewrite_group", lambda table: table.cluster(sort_by="ts")),
    "compact": (compaction, "compact_slice", lambda table: table.compact()),
    "compact logs": (log_compaction, "merge_slice", lambda table: table.compact_logs()),
}


def table_for(what, version, storage=None):
    """Small files, or a base file with a log file."""
    storage = create_table(
        version, storage, **({"hoodie.table.type": "MERGE_ON_READ"} if what.startswith("compact") else {})
    )
    if what.startswith("compact"):
        upsert(storage, [{**row, "ts": -1} for row in ROWS], **QUICK)
        upsert(storage, ROWS, **QUICK)
    else:
        for row in ROWS:
            open_table(storage, **QUICK).bulk_insert(pa.Table.from_pylist([row], schema=SCHEMA))
    return storage


def pending_of(storage):
    return [(each.action, each.state) for each in open_table(storage).timeline.pending()]


def planned_action(what, version):
    if what.startswith("compact"):
        return Action.LOG_COMPACTION if what.endswith("logs") else Action.COMPACTION
    return Action.REPLACE_COMMIT if version == 6 else Action.CLUSTERING


def base_files(storage):
    return {each.base_file.name for each in open_table(storage).file_slices("eu")}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("what", SERVICES)
def test_recovery_takes_back_what_a_killed_process_left(what, version, tmp_path, monkeypatch):
    """Its process is gone, so it has failed: the torn file goes at once, the plan stays, and the next run has it."""
    storage = table_for(what, version, LocalStorage(tmp_path / "t"))
    module, task, run = SERVICES[what]
    real = getattr(module, task)

    def torn(job, work):
        real(job, work)
        for path in (tmp_path / "t" / "eu").glob(f"*_{job.instant_time}.parquet"):
            path.write_bytes(path.read_bytes()[:100])
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        monkeypatch.setattr(module, task, torn)
        try:
            run(open_table(storage, **QUICK))
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert merged_rows_of(storage) == ROWS
    assert pending_of(storage) == [(planned_action(what, version), State.INFLIGHT)]
    before = base_files(storage)
    outcomes = open_table(storage).recover()
    taken = [each for each in outcomes if each.finding.problem is Problem.STARTED_SERVICE]
    assert [(each.finding.step, each.done) for each in taken] == [(Step.ROLL_BACK, True)]
    assert "has ended" in taken[0].finding.evidence[0]
    assert pending_of(storage) == [(planned_action(what, version), State.REQUESTED)]
    assert {path.name for path in (tmp_path / "t" / "eu").glob("*.parquet")} == before
    assert run(open_table(storage, **QUICK))
    assert merged_rows_of(storage) == ROWS
    assert not pending_of(storage)
    assert not open_table(storage).check()
    assert not list((tmp_path / "t/.hoodie/.heartbeat").iterdir())
    assert not list((tmp_path / "t/.hoodie/.aux/hudi_py/attempts").iterdir())


@pytest.mark.parametrize("what", SERVICES)
def test_an_attempt_that_its_process_gave_up_is_taken_back(what, monkeypatch):
    """The process lives, and its note says why it failed."""
    storage = table_for(what, 9)
    module, task, run = SERVICES[what]

    def fails(job, work):
        raise StorageError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(module, task, fails)
        with pytest.raises(StorageError):
            run(open_table(storage, **QUICK))
    (finding,) = (each for each in open_table(storage).services.recovery().plan() if each.step is Step.ROLL_BACK)
    assert "the disk is full" in finding.evidence[0]
    assert not [each for each in open_table(storage).recover() if each.error]
    assert [state for _, state in pending_of(storage)] == [State.REQUESTED]
    assert run(open_table(storage, **QUICK))
    assert merged_rows_of(storage) == ROWS


@pytest.mark.parametrize("what", SERVICES)
def test_an_attempt_that_may_be_running_stays(what, monkeypatch):
    """By its heartbeat it lives; when that has expired, it is dead. One without a heartbeat is never proven dead."""
    clock = FixedClock(START)
    storage = table_for(what, 9, MemoryStorage(clock_ms=lambda: int(clock.moment.timestamp() * 1000)))
    module, task, run = SERVICES[what]
    seen = []

    def at_work(job, work):
        clock.move(timedelta(seconds=60))
        seen.append([each.step for each in Table(storage, clock=clock).services.recovery().plan()])
        clock.move(timedelta(seconds=61))
        seen.append([each.step for each in Table(storage, clock=clock).services.recovery().plan()])
        storage.delete(f".hoodie/.heartbeat/{job.instant_time}")
        seen.append([each.step for each in Table(storage, clock=clock).services.recovery().plan()])
        raise KeyboardInterrupt

    clock.move(timedelta(hours=9))
    monkeypatch.setattr(module, task, at_work)
    with pytest.raises(KeyboardInterrupt):
        run(Table(storage, settings=QUICK, clock=clock))
    assert seen == [[Step.LEAVE], [Step.ROLL_BACK], [Step.LEAVE]]


@pytest.mark.parametrize("what", SERVICES)
def test_a_task_of_an_attempt_that_others_completed_leaves_no_file_and_says_of_what(what):
    """The fence is up before its file is there: it withdraws, and names the service that it was part of."""
    storage = table_for(what, 9)
    before = base_files(storage)
    words = {"cluster": "clustering", "compact": "the compaction", "compact logs": "the log compaction"}

    def complete():
        (pending,) = open_table(storage).timeline.pending()
        put_up_fence(storage, pending.requested_time)

    late = Meanwhile(storage, complete, before=lambda path, _data: "/.temp/" in path and ".marker." in path)
    with pytest.raises(ConflictError, match=rf"{words[what]} \d+"):
        SERVICES[what][2](open_table(late, **QUICK))
    assert late.fired is not None
    (pending,) = open_table(storage).timeline.pending()
    assert not [path for path in storage.files() if path.startswith("eu/") and pending.requested_time in path]
    assert base_files(storage) == before
    assert merged_rows_of(storage) == ROWS


@pytest.mark.parametrize("version", [6, 9])
def test_late_files_of_a_clustering_are_never_read_and_are_removed(version):
    """A stopped process goes on when others have completed its clustering: whole or torn, its file is none of it."""
    storage = table_for("cluster", version)
    (done,) = open_table(storage, **QUICK).cluster()
    (named,) = (path for path in storage.files() if path.endswith(f"_{done.instant}.parquet"))
    whole = storage.read(named)
    for late, data in (("late-0", whole), ("torn-0", whole[:50])):
        storage.replace(f"eu/{late}_0-0-0_{done.instant}.parquet", data)
    assert merged_rows_of(storage) == ROWS
    assert base_files(storage) == {named.rpartition("/")[2]}
    upsert(storage, [{**ROWS[0], "ts": 9}], **QUICK)
    assert merged_rows_of(storage) == [{**ROWS[0], "ts": 9}, *ROWS[1:]]
    assert [(each.finding.problem, each.done) for each in open_table(storage).recover()] == [(Problem.LATE_FILES, True)]
    assert not [path for path in storage.files() if "late-0" in path or "torn-0" in path]
    assert not open_table(storage).check()


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("token", ["0-0-0", "999999999999-9-9"])
def test_a_late_file_beside_that_of_a_compaction_is_never_read(version, token):
    """It has the slice's file id and time, and another token, which may sort before or behind the right one."""
    storage = table_for("compact", version)
    (done,) = open_table(storage, **QUICK).compact()
    (named,) = (
        path for path in storage.files() if path.startswith("eu/") and path.endswith(f"_{done.instant}.parquet")
    )
    file_id, _, rest = named.split("_")
    late = f"{file_id}_{token}_{rest}"
    assert late != named
    storage.replace(late, b"torn")
    assert merged_rows_of(storage) == ROWS
    upsert(storage, [{**ROWS[0], "ts": 9}], **QUICK)
    assert merged_rows_of(storage) == [{**ROWS[0], "ts": 9}, *ROWS[1:]]
    open_table(storage, **QUICK).compact()
    assert [(each.finding.problem, each.done) for each in open_table(storage).recover()] == [(Problem.LATE_FILES, True)]
    assert late not in storage.files()


def test_orphans_removes_late_files_of_a_clustering():
    """They are old enough after a while, and doubt there is none."""
    clock = FixedClock(START)
    storage = table_for("cluster", 9, MemoryStorage(clock_ms=lambda: int(clock.moment.timestamp() * 1000)))
    (done,) = open_table(storage, **QUICK).cluster()
    late = f"eu/late-0_0-0-0_{done.instant}.parquet"
    storage.replace(late, b"torn")
    clock.move(timedelta(days=90))
    assert Table(storage, clock=clock).orphans().done == (late,)


@pytest.mark.parametrize("version", [6, 9])
def test_a_cancelled_compaction_leaves_the_rows_as_they_are(version):
    """In layout 1 log files may rest on the plan: then it stays, and so it does beside a write that may add some."""
    storage = table_for("compact", version)
    time = open_table(storage, **QUICK).schedule_compaction()
    table = open_table(storage)
    store = table.contents.store
    begun = store.transition(store.request(Action.DELTA_COMMIT, store.new_time()))
    if version == 6:
        with pytest.raises(RefusedError, match="is pending"):
            open_table(storage).cancel_compaction(time)
        store.remove(begun)
        upsert(storage, [{**ROWS[0], "ts": 9}], **QUICK)
        with pytest.raises(RefusedError, match="carry the compaction out"):
            open_table(storage).cancel_compaction(time)
        assert merged_rows_of(storage)[0]["ts"] == 9
        return
    open_table(storage).cancel_compaction(time)
    store.remove(begun)
    assert merged_rows_of(storage) == ROWS
    assert open_table(storage, **QUICK).schedule_compaction() != time


def test_a_compaction_is_not_cancelled_under_a_write_that_begins_at_that_moment(monkeypatch):
    """Without a lock the write may have seen the plan, and its log files rest on it: the plan is put back."""
    storage = table_for("compact", 6)
    time = open_table(storage, **QUICK).schedule_compaction()
    plan = storage.files()

    class Racing:
        """Begins a write right before the plan is removed."""

        def __getattr__(self, name):
            return getattr(storage, name)

        def delete(self, path):
            if path.endswith(".compaction.requested"):
                other = open_table(storage).contents.store
                other.request(Action.DELTA_COMMIT, other.new_time())
            storage.delete(path)

    with pytest.raises(ConflictError, match="faster"):
        open_table(Racing()).cancel_compaction(time)
    path = f".hoodie/{time}.compaction.requested"
    assert storage.files()[path] == plan[path]

"""What recovery finds, what it proposes, what it never touches (rules/timeline 3.3, rules/table-services B, K)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.formats import records_codec as codec
from hudi_py.model.instant import Action, State
from hudi_py.model.records import InstantInfo, RestorePlan, RollbackMetadata, RollbackPlan, RollbackRequest
from hudi_py.services.recovery.finding import Problem, Step
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from hudi_py.timeline.markers import Marker, MarkerType, create_marker
from support.recoveries import LAYOUTS, healthy, recovered
from support.tables import NOW, SYNC, TableBuilder, at, data_files

LAZY = {"hoodie.clean.failed.writes.policy": "LAZY"}
QUARANTINE = ".hoodie/.aux/hudi_py/quarantine/"


def beat(builder: TableBuilder, time: str, *, age: timedelta) -> None:
    clock, builder.storage._clock_ms = builder.storage._clock_ms, lambda: int((NOW - age).timestamp() * 1000)
    builder.put(f".hoodie/.heartbeat/{time}", b"")
    builder.storage._clock_ms = clock


@LAYOUTS
def test_nothing_is_found_in_a_healthy_table(layout):
    """A table in good health stays as it is."""
    builder = healthy(layout)
    builder.savepoint(at(2), {"eu": [builder.base_name("a", at(2))]})
    builder.cleaned(at(4), earliest="", last_commit=at(3))
    assert recovered(builder) == []


@LAYOUTS
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_failed_write_goes_with_its_files(layout, state):
    """B-2: what did not complete is rolled back, whether or not its markers are still there (K-25)."""
    builder = healthy(layout)
    files = data_files(builder.storage)
    builder.commit(at(5), {"eu": ["a"]} if state is State.INFLIGHT else {}, state=state)
    assert recovered(builder) == [(Problem.FAILED_WRITE, Step.ROLL_BACK, True)]
    assert data_files(builder.storage) == files
    assert not builder.table().timeline.pending()


@LAYOUTS
def test_failed_write_goes_whatever_its_requested_file_holds(layout):
    """B-2: a commit has no plan; only a replacecommit may be a clustering, whose plan counts."""
    builder = healthy(layout)
    files = data_files(builder.storage)
    builder.commit(at(5), {"eu": ["a"]}, state=State.INFLIGHT)
    builder.instant(at(5), "commit", State.REQUESTED, b"noise")
    assert recovered(builder) == [(Problem.FAILED_WRITE, Step.ROLL_BACK, True)]
    assert data_files(builder.storage) == files


@LAYOUTS
@pytest.mark.parametrize("policy", ["EAGER", "LAZY"])
def test_write_whose_heart_beats_is_spared(layout, policy):
    """B-3, B-5: a heartbeat younger than interval x misses is a writer at work, whatever our own policy says."""
    builder = healthy(layout)
    builder.commit(at(5), {"eu": ["a"]}, state=State.INFLIGHT)
    beat(builder, at(5), age=timedelta(seconds=119))
    before = builder.storage.files()
    settings = {"hoodie.clean.failed.writes.policy": policy}
    assert recovered(builder, **settings) == [(Problem.LIVE_WRITE, Step.LEAVE, False)]
    assert builder.storage.files() == before


@LAYOUTS
def test_write_whose_heart_stopped_goes_with_its_heartbeat(layout):
    """B-8: after the rollback the heartbeat file goes too."""
    builder = healthy(layout)
    files = data_files(builder.storage)
    builder.commit(at(5), {"eu": ["a"]}, state=State.INFLIGHT)
    beat(builder, at(5), age=timedelta(seconds=121))
    assert recovered(builder, **LAZY) == [(Problem.FAILED_WRITE, Step.ROLL_BACK, True)]
    assert data_files(builder.storage) == files
    assert not [path for path in builder.storage.files() if ".heartbeat" in path]


@LAYOUTS
def test_policy_never_only_reports(layout):
    """B-4: NEVER rolls nothing back."""
    builder = healthy(layout)
    builder.commit(at(5), {"eu": ["a"]}, state=State.INFLIGHT)
    before = builder.storage.files()
    found = recovered(builder, **{"hoodie.clean.failed.writes.policy": "NEVER"})
    assert found == [(Problem.FAILED_WRITE, Step.LEAVE, False)]
    assert builder.storage.files() == before


def with_clean(layout: int, *, inflight: bytes | None = None) -> tuple[TableBuilder, str]:
    builder = healthy(layout)
    table = builder.table()
    instant = table.services.clean(table.services.clean_config(commits_retained=1)).schedule()
    if inflight is not None:
        builder.instant(instant.requested_time, "clean", State.INFLIGHT, inflight)
    return builder, instant.requested_time


@LAYOUTS
def test_pending_clean_is_finished_from_its_plan(layout):
    """A-8: the stored plan is carried out, not a new one."""
    builder, time = with_clean(layout)
    assert recovered(builder) == [(Problem.PENDING_CLEAN, Step.FINISH_CLEAN, True)]
    assert [i.requested_time for i in builder.table().timeline.completed("clean")] == [time]
    assert len(data_files(builder.storage)) == 2


@LAYOUTS
def test_torn_plan_of_a_clean_comes_back_from_its_copy(layout):
    """rules/timeline 9.7: the inflight file may hold the plan as well."""
    builder, time = with_clean(layout)
    path = f"{builder.folder}/{time}.clean.requested"
    plan = builder.storage.read(path)
    builder.instant(time, "clean", State.INFLIGHT, plan)
    builder.put(path, plan[: len(plan) // 2])
    found = recovered(builder)
    assert found == [
        (Problem.DAMAGED_INSTANT, Step.MEND_PLAN, True),
        (Problem.PENDING_CLEAN, Step.FINISH_CLEAN, True),
    ]
    assert builder.storage.read(path) == plan
    assert len(data_files(builder.storage)) == 2


@LAYOUTS
@pytest.mark.parametrize("inflight", [None, b"", b"noise"])
def test_clean_whose_plan_is_lost_is_planned_anew(layout, inflight):
    """K-11: garbage is put aside, never carried out, and no longer stands in the way of the next clean."""
    builder, time = with_clean(layout, inflight=inflight)
    builder.put(f"{builder.folder}/{time}.clean.requested", b"Obj\x01 torn")
    assert recovered(builder) == [(Problem.DAMAGED_INSTANT, Step.QUARANTINE, True)]
    assert builder.storage.read(f"{QUARANTINE}{time}.clean.requested") == b"Obj\x01 torn"
    assert len(data_files(builder.storage)) == 3
    assert len(builder.table().clean(commits_retained=1)) == 1
    assert len(data_files(builder.storage)) == 2


@LAYOUTS
@pytest.mark.parametrize("damage", [b"", b"Obj\x01 torn"])
def test_damaged_completed_clean_is_carried_out_again(layout, damage):
    """A-69: its plan is whole, so it ends as it would have."""
    builder, time = with_clean(layout)
    builder.table().clean(commits_retained=1)
    (done,) = builder.table().timeline.completed("clean")
    builder.put(f"{builder.folder}/{done.file_name}", damage)
    assert recovered(builder) == [(Problem.DAMAGED_INSTANT, Step.REDO, True)]
    (again,) = builder.table().timeline.completed("clean")
    assert again.requested_time == time
    assert builder.table().contents.clean(again).earliest_commit_to_retain == at(3)


@LAYOUTS
def test_damaged_commit_is_left_to_the_user(layout):
    """A completed commit is never taken back by recovery, whatever its file looks like."""
    builder = healthy(layout)
    (_, _, last) = builder.table().timeline.completed("commit")
    builder.put(f"{builder.folder}/{last.file_name}", b"{torn")
    before = builder.storage.files()
    assert recovered(builder) == [(Problem.DAMAGED_INSTANT, Step.DECIDE, False)]
    assert builder.storage.files() == before


@LAYOUTS
def test_interrupted_rollback_is_finished(layout):
    """B-7, B-11: from its plan, under its own time."""
    builder = healthy(layout)
    builder.commit(at(5), {"eu": ["a"]}, state=State.INFLIGHT)
    plan = builder.table().services.rollback().plan(at(5))
    builder.instant(at(6), "rollback", State.REQUESTED, codec.encode_rollback_plan(plan, SYNC))
    builder.instant(at(6), "rollback", State.INFLIGHT)
    found = recovered(builder)
    assert (Problem.PENDING_ROLLBACK, Step.FINISH_ROLLBACK, True) in found
    assert [i.requested_time for i in builder.table().timeline.completed("rollback")] == [at(6)]
    assert len(data_files(builder.storage)) == 3


@LAYOUTS
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_rollback_whose_plan_is_lost_gives_way_to_a_new_one(layout, state):
    """B-7: the failed write is rolled back all the same."""
    builder = healthy(layout)
    builder.commit(at(5), {"eu": ["a"]}, state=State.INFLIGHT)
    builder.instant(at(6), "rollback", State.REQUESTED, b"Obj\x01 torn")
    if state is State.INFLIGHT:
        builder.instant(at(6), "rollback", State.INFLIGHT)
    found = recovered(builder)
    assert (Problem.DAMAGED_INSTANT, Step.QUARANTINE, True) in found
    assert (Problem.FAILED_WRITE, Step.ROLL_BACK, True) in found
    assert not builder.table().timeline.pending()
    assert len(data_files(builder.storage)) == 3


@LAYOUTS
def test_interrupted_restore_is_finished_before_all_else(layout):
    """B-29, B-33: while it is pending no write can begin."""
    builder = healthy(layout)
    builder.savepoint(at(1), {"eu": [builder.base_name("a", at(1))]})
    plan = RestorePlan(
        instants_to_rollback=(InstantInfo(at(3), "commit"), InstantInfo(at(2), "commit")),
        savepoint_to_restore_timestamp=at(1),
    )
    builder.instant(at(5), "restore", State.REQUESTED, codec.encode_restore_plan(plan, SYNC))
    builder.commit(at(6), {"eu": ["b"]}, state=State.INFLIGHT)
    found = recovered(builder)
    assert found[0] == (Problem.PENDING_RESTORE, Step.FINISH_RESTORE, True)
    assert (Problem.FAILED_WRITE, Step.ROLL_BACK, True) in found
    assert data_files(builder.storage) == [f"eu/{builder.base_name('a', at(1))}"]
    assert not builder.table().timeline.pending()


@LAYOUTS
def test_inflight_savepoint_goes_and_completed_ones_stay(layout):
    """C-5, C-6: inflight it holds nothing, completed it is sacred."""
    builder = healthy(layout)
    builder.savepoint(at(1), {"eu": [builder.base_name("a", at(1))]})
    builder.instant(at(2), "savepoint", State.INFLIGHT)
    assert recovered(builder) == [(Problem.PENDING_SAVEPOINT, Step.REMOVE_SAVEPOINT, True)]
    assert [i.requested_time for i in builder.table().timeline.completed(Action.SAVEPOINT)] == [at(1)]


def rolled_back(builder: TableBuilder, time: str, undone: str, action: str = "commit") -> None:
    content = RollbackMetadata(
        start_rollback_time=time,
        time_taken_ms=1,
        total_files_deleted=0,
        commits_rollback=(undone,),
        partitions={},
        instants_rollback=(InstantInfo(undone, action),),
    )
    for state in (State.REQUESTED, State.INFLIGHT):
        builder.instant(time, "rollback", state)
    builder.instant(time, "rollback", State.COMPLETED, codec.encode_rollback_metadata(content, SYNC))


@LAYOUTS
def test_files_left_by_an_empty_rollback_go(layout):
    """K-25: a completed rollback names the write, no timeline has it, so its files are garbage."""
    builder = healthy(layout)
    files = data_files(builder.storage)
    builder.put(f"eu/{builder.base_name('x', at(5))}")
    rolled_back(builder, at(6), at(5))
    builder.commit(at(7), {"eu": ["b"]})
    assert recovered(builder) == [(Problem.ORPHANS, Step.REMOVE_FILES, True)]
    assert data_files(builder.storage) == sorted([*files, f"eu/{builder.base_name('b', at(7))}"])


@LAYOUTS
def test_files_that_nothing_explains_stay(layout):
    """Somebody may have lost the instant, not the rows: on doubt nothing is deleted."""
    builder = healthy(layout)
    builder.put(f"eu/{builder.base_name('x', at(2)[:-1] + '7')}")
    before = builder.storage.files()
    assert recovered(builder) == [(Problem.UNKNOWN_FILES, Step.DECIDE, False)]
    assert builder.storage.files() == before


@LAYOUTS
def test_files_of_an_undone_write_stay_where_a_write_of_that_time_completed(layout):
    """B-25: a compaction that was taken back is run again under the same time."""
    builder = healthy(layout)
    rolled_back(builder, at(6), at(3))
    before = builder.storage.files()
    assert recovered(builder) == []
    assert builder.storage.files() == before


@LAYOUTS
@pytest.mark.parametrize("action", ["compaction", "logcompaction", "clustering", "replacecommit"])
def test_files_of_a_service_that_was_taken_back_stay_where_it_may_be_archived(layout, action):
    """B-25: it was run again under the same time; that it completed only the archive knew, and that may be gone."""
    builder = healthy(layout)
    builder.put(f"eu/{builder.base_name('x', at(0))}")
    rolled_back(builder, at(6), at(0), action)
    before = builder.storage.files()
    assert recovered(builder) == [(Problem.UNKNOWN_FILES, Step.DECIDE, False)]
    assert builder.storage.files() == before


@LAYOUTS
def test_files_of_a_service_that_was_taken_back_go_where_it_cannot_be_archived(layout):
    """K-25: had it been completed since, the active timeline would have it."""
    builder = healthy(layout)
    path = f"eu/{builder.base_name('x', at(2)[:-1] + '7')}"
    builder.put(path)
    rolled_back(builder, at(6), at(2)[:-1] + "7", "compaction")
    assert recovered(builder) == [(Problem.ORPHANS, Step.REMOVE_FILES, True)]
    assert path not in builder.storage.files()


@LAYOUTS
def test_damaged_rollback_of_a_service_is_not_carried_out_again_where_that_may_be_archived(layout):
    """B-25: run again, a compaction may have written files of the very names that the plan deletes."""
    builder = healthy(layout)
    name = builder.base_name("x", at(0))
    builder.put(f"eu/{name}")
    plan = RollbackPlan(
        instant_to_rollback=InstantInfo(at(0), "compaction"),
        rollback_requests=(
            RollbackRequest(
                partition_path="eu",
                file_id="x",
                latest_base_instant=at(0),
                files_to_be_deleted=(f"{builder.storage.root}/eu/{name}",),
            ),
        ),
    )
    builder.instant(at(6), "rollback", State.REQUESTED, codec.encode_rollback_plan(plan, SYNC))
    builder.instant(at(6), "rollback", State.INFLIGHT)
    builder.instant(at(6), "rollback", State.COMPLETED, b"torn")
    before = builder.storage.files()
    assert (Problem.DAMAGED_INSTANT, Step.DECIDE, False) in recovered(builder)
    assert builder.storage.files() == before


def test_files_of_archived_commits_are_none_of_no_write():
    """D-12: in layout 1 an old rollback stays when the commits after it are archived."""
    builder = healthy(1)
    rolled_back(builder, at(0), "20200101000000000")
    for number in range(4, 12):
        builder.commit(at(number), {"eu": ["a"]})
    settings = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    archived = Table(builder.storage, settings=settings, clock=builder.clock).archive()
    assert at(1) in {each.requested_time for each in archived.instants}
    builder.put(f"eu/{builder.base_name('x', at(10)[:-1] + '7')}")  # makes recovery look into the archive
    builder.commit(at(12), {"eu": ["a"]})
    outcomes = Table(builder.storage, clock=builder.clock).recover()
    assert [each.finding.time for each in outcomes if each.finding.problem is Problem.UNKNOWN_FILES] == [
        at(10)[:-1] + "7"
    ]


@LAYOUTS
def test_markers_and_heartbeats_of_completed_writes_go(layout):
    """G-8, K-14: what a crash leaves behind a completed commit harms nobody and goes."""
    builder = healthy(layout)
    create_marker(builder.storage, at(3), Marker("eu", builder.base_name("a", at(3)), MarkerType.CREATE))
    beat(builder, at(2), age=timedelta(0))
    found = {(problem, step) for problem, step, done in recovered(builder) if done}
    assert found == {
        (Problem.STALE_MARKERS, Step.REMOVE_FILES),
        (Problem.STALE_HEARTBEAT, Step.REMOVE_FILES),
    }
    assert not [path for path in builder.storage.files() if "/.temp/" in path or ".heartbeat" in path]


@LAYOUTS
@pytest.mark.parametrize(("age", "done"), [(timedelta(seconds=60), False), (timedelta(seconds=130), True)])
def test_heartbeat_of_no_instant_goes_when_it_is_expired(layout, age, done):
    """B-5: it appears before the requested file, so a young one may be a write that is about to begin."""
    builder = healthy(layout)
    beat(builder, at(9), age=age)
    assert [each[2] for each in recovered(builder)] == [done]


@LAYOUTS
@pytest.mark.parametrize(("minutes", "done"), [("0", False), ("120", False), ("59", True)])
def test_lock_goes_only_when_it_has_expired(layout, minutes, done):
    """rules/timeline 6.4: nobody can tell who holds it, and by default it never expires."""
    builder = healthy(layout)
    builder.put(".hoodie/lock", b"")
    found = recovered(builder, **{"hoodie.write.lock.filesystem.expire": minutes})
    assert found == [(Problem.LOCK, Step.REMOVE_FILES if done else Step.DECIDE, done)]
    assert (builder.storage.size(".hoodie/lock") is None) == done


@LAYOUTS
def test_temporary_files_go_when_they_are_old(layout):
    """rules/timeline 3.3: ``<name>.<uuid>`` is ignored for ever, so nobody misses it."""
    builder = healthy(layout)
    name = f"{builder.folder}/{at(9)}.commit.0b0a3c5e-1111-4222-8333-444455556666"
    builder.put(name, b"half")
    assert recovered(builder) == []
    builder.clock.move(timedelta(minutes=2))
    assert recovered(builder) == [(Problem.TEMPORARY_FILES, Step.REMOVE_FILES, True)]
    assert name not in builder.storage.files()


@LAYOUTS
def test_properties_come_back_from_their_backup(layout):
    """rules/timeline 1.4: whichever of the two files is whole counts."""
    builder = healthy(layout)
    path = ".hoodie/hoodie.properties"
    content = builder.storage.read(path)
    builder.put(path + ".backup", content)
    builder.put(path, content[:20])
    assert recovered(builder) == [(Problem.PROPERTIES, Step.RESTORE_PROPERTIES, True)]
    assert builder.storage.read(path) == content
    assert builder.storage.size(path + ".backup") is None


def test_two_completed_files_of_one_clean_are_no_finding():
    """A-75: two executors may have finished it in layout 2."""
    builder, time = with_clean(2)
    builder.table().clean(commits_retained=1)
    (done,) = builder.table().timeline.completed("clean")
    twin = f"{time}_{int(done.completion_time) - 1:017d}.clean"
    builder.put(f"{builder.folder}/{twin}", builder.storage.read(f"{builder.folder}/{done.file_name}"))
    assert recovered(builder) == []


def test_storage_without_times_counts_hearts_as_alive():
    """On doubt a writer is at work."""

    class Timeless(MemoryStorage):
        def list(self, folder, *, details=False):
            return super().list(folder)

    builder = healthy(2)
    builder.commit(at(5), {"eu": ["a"]}, state=State.INFLIGHT)
    beat(builder, at(5), age=timedelta(days=9))
    storage = Timeless("/lake/trips")
    for path, data in builder.storage.files().items():
        storage.replace(path, data)
    (outcome,) = Table(storage, settings=LAZY, clock=builder.clock).recover()
    assert outcome.finding.problem is Problem.LIVE_WRITE


@pytest.mark.parametrize("damage", [b"", b"torn"])
@pytest.mark.parametrize(
    ("layout", "action"),
    [(1, "compaction"), (2, "compaction"), (1, "logcompaction"), (2, "logcompaction"), (2, "clustering")],
)
def test_a_service_without_a_readable_plan_goes_where_nothing_rests_on_it(layout, action, damage):
    """It stops every look at the files of the table; the error names the way out, which lets everything go on."""
    builder = healthy(layout)
    builder.instant(at(4), action, State.REQUESTED, damage)
    with pytest.raises(CorruptMetadata, match=rf"{at(4)}.*hudi-py recover shows whether"):
        builder.table().file_slices("eu")
    assert recovered(builder) == [(Problem.DAMAGED_INSTANT, Step.QUARANTINE, True)]
    assert [each.base_instant_time for each in builder.table().file_slices("eu")] == [at(3)]
    assert [data for path, data in builder.storage.files().items() if path.startswith(QUARANTINE)] == [damage]


def test_a_compaction_that_log_files_rest_on_stays_though_its_plan_is_gone():
    """In layout 1 they carry its time; without it they would be files of no instant, and their rows lost."""
    builder = healthy(1)
    builder.instant(at(4), "compaction", State.REQUESTED, b"")
    builder.log_files(at(5), [("eu", "a", at(4))])
    assert recovered(builder) == [(Problem.DAMAGED_INSTANT, Step.DECIDE, False)]

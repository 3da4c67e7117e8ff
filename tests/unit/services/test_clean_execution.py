"""Rules of rules/table-services A.1, A.2 and A.7 about settings and carrying out; the id stands in the name."""

import pytest

from hudi_py.config.clean import CleanPolicy, clean_config
from hudi_py.config.settings import Settings
from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import AlreadyExists, RefusedError
from hudi_py.formats.records_codec import encode_rollback_plan
from hudi_py.model.files import PARTITION_METAFILE
from hudi_py.model.instant import State
from hudi_py.storage.wrappers import DelegatingStorage, RecordingStorage
from hudi_py.table import Table
from support.tables import TableBuilder, at, data_files

LAYOUTS = pytest.mark.parametrize("layout", [1, 2])
COMMITS, HOURS, VERSIONS = (
    CleanPolicy.KEEP_LATEST_COMMITS,
    CleanPolicy.KEEP_LATEST_BY_HOURS,
    CleanPolicy.KEEP_LATEST_FILE_VERSIONS,
)


def story(layout=2, count=5, partitions=("r0", "r1")):
    builder = TableBuilder(layout)
    for number in range(1, count + 1):
        builder.commit(at(number), {path: ["f"] for path in partitions})
    return builder


@pytest.mark.parametrize("spelling", ["hoodie.clean.", "hoodie.cleaner."])
@pytest.mark.parametrize(
    ("given", "policy"),
    [
        (("commits",), COMMITS),
        (("hours",), HOURS),
        (("fileversions",), VERSIONS),
        (("hours", "fileversions"), COMMITS),
        ((), COMMITS),
    ],
)
def test_a1_policy_is_inferred_from_the_only_retention_given(spelling, given, policy):
    """Exactly one retention key, in either spelling, names the policy; none or several mean commits."""
    assert clean_config(Settings({f"{spelling}{word}.retained": 7 for word in given})).policy is policy
    named = {f"{spelling}{word}.retained": 7 for word in given} | {f"{spelling}policy": VERSIONS.value}
    assert clean_config(Settings(named)).policy is VERSIONS


@LAYOUTS
def test_a7_switched_off_services_do_nothing(layout):
    """Step 1: neither a plan nor a pending clean is touched."""
    builder = story(layout)
    before = builder.storage.files()
    assert builder.table(table_services_enabled=False).clean(commits_retained=1) == []
    assert builder.storage.files() == before


@LAYOUTS
def test_a7_a8_a_pending_clean_is_finished_and_nothing_new_planned(layout):
    """One call finishes it, the next one plans; with multiple cleans allowed one call does both."""
    for together in (False, True):
        builder = story(layout)
        table = builder.table()
        pending = table.services.clean(table.services.clean_config(commits_retained=3)).schedule()
        table = builder.table(clean_multiple_enabled=together)
        results = table.clean(commits_retained=1)
        assert results[0].instant == pending.requested_time
        assert len(results) == 1 + together
        if not together:
            builder.commit(at(6), {"r0": ["f"], "r1": ["f"]})
            assert len(builder.table().clean(commits_retained=1)) == 1
        assert len(data_files(builder.storage)) == 4


@LAYOUTS
def test_a9_nothing_pending_and_nothing_planned_changes_nothing(layout):
    """As 1.0 and later: the executor is not even entered."""
    builder = story(layout, 1)
    before = builder.storage.files()
    assert builder.table().clean(commits_retained=1) == []
    assert {path: data for path, data in builder.storage.files().items() if "/.aux/" not in path} == before


@LAYOUTS
@pytest.mark.parametrize("parallelism", [1, 2, 200])
def test_a58_each_partition_is_looked_at_once_whatever_the_parallelism(layout, parallelism):
    """The plan does not depend on how many partitions are judged together."""
    builder = story(layout, partitions=tuple(f"r{number}" for number in range(7)))
    recorded = RecordingStorage(builder.storage)
    settings = {"hoodie.clean.parallelism": parallelism}
    plan = Table(recorded, settings=settings, clock=builder.clock).plan_clean(commits_retained=1)
    assert plan.files == builder.table().plan_clean(commits_retained=1).files
    listed = [path for verb, path in recorded.calls if verb == "list" and path.startswith("r")]
    assert sorted(listed) == [f"r{number}" for number in range(7)]


@LAYOUTS
def test_a59_the_stored_plan_is_never_overwritten(layout):
    """Created exclusively: a second file of that name is refused by the storage."""
    builder = story(layout)
    table = builder.table()
    requested = table.services.clean(table.services.clean_config(commits_retained=1)).schedule()
    path = f"{builder.folder}/{requested.requested_time}.clean.requested"
    recorded = RecordingStorage(builder.storage)
    again = Table(recorded, clock=builder.clock)
    again.clean(commits_retained=1)
    assert not [each for verb, each in recorded.calls if each == path and verb in ("replace", "create_new", "delete")]
    with pytest.raises(AlreadyExists):
        builder.storage.create_new(path, b"another")


def two_pending(layout):
    """Two stored plans that share files: the later one was made while the earlier one was pending."""
    builder = story(layout)
    table = builder.table(clean_multiple_enabled=True)
    for retained in (3, 1):
        table.services.clean(table.services.clean_config(commits_retained=retained)).schedule()
    return builder, [i.requested_time for i in builder.table().timeline.pending("clean")]


@LAYOUTS
def test_a60_pending_cleans_are_carried_out_oldest_first_each_to_its_end(layout):
    """The first is completed before the second begins, and the timeline is read anew in between."""
    builder, times = two_pending(layout)
    recorded = RecordingStorage(builder.storage)
    table = Table(recorded, clock=builder.clock)
    results = table.services.clean(table.services.clean_config(commits_retained=1)).execute_pending()
    assert [result.instant for result in results] == times == sorted(times)
    calls = recorded.calls
    ends = [
        max(n for n, (verb, path) in enumerate(calls) if verb in ("create_new", "replace") and f"/{time}" in path)
        for time in times
    ]
    begins = min(n for n, (verb, path) in enumerate(calls) if verb == "create_new" and f"/{times[1]}" in path)
    assert ends[0] < begins < ends[1]
    assert [1 for n, (verb, path) in enumerate(calls) if verb == "list" and path == builder.folder and n > ends[0]]
    deleted = [list(result.deleted_files) for result in results]
    assert not set(deleted[0]) & set(deleted[1])
    assert set(deleted[0]) <= set(deleted[1]) | set(results[1].missing_files)


class Tasks(LocalEngine):
    """Remembers what it was given."""

    def __init__(self, threads):
        super().__init__(threads)
        self.maps = []

    def map(self, function, items, *, parallelism, description):
        self.maps.append((list(items), parallelism))
        return super().map(function, items, parallelism=parallelism, description=description)


@LAYOUTS
@pytest.mark.parametrize("parallelism", [1, 3, 200])
def test_a64_one_list_of_tasks_over_all_files_merged_by_partition(layout, parallelism):
    """Tasks ignore partitions, are about equal and no more than asked for; the record is by partition."""
    builder = story(layout, partitions=("r0", "r1", "r2"))
    plan = builder.table().plan_clean(commits_retained=1)
    engine = Tasks(4)
    [result] = builder.table(clean_parallelism=parallelism).clean(commits_retained=1, engine=engine)
    maps = [each for each in engine.maps if each[0]]
    assert all(width <= min(plan.file_count, parallelism) for _, width in maps)
    assert all(len(tasks) <= min(parallelism, engine.slots) for tasks, _ in maps)
    assert sorted(result.deleted_files) == sorted(file.path for files in plan.files.values() for file in files)
    recorded = {path: set(each.success_delete_files) for path, each in result.metadata.partitions.items()}
    planned = {path: {file.path.rpartition("/")[2] for file in files} for path, files in plan.files.items()}
    assert recorded == planned


@pytest.mark.parametrize("files_min", [1, 2, 3, 1000])
def test_a64_no_task_is_smaller_than_the_engine_wants_it(files_min):
    """Where a task costs more than the deletion of a few files, there are fewer of them."""
    engine = Tasks(4)
    engine.files_min = files_min
    [result] = story(partitions=("r0", "r1")).table().clean(commits_retained=1, engine=engine)
    assert result.deleted_count > 4
    [(tasks, _)] = engine.maps
    assert len(tasks) <= 4
    assert len(tasks) == 1 or min(len(task.paths) for task in tasks[:-1]) >= files_min


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("files_max", [1, 2, 3, 4, 5])
def test_rounds_are_about_equal(threads, files_max):
    """The last one is not what the others left over, which one worker would do alone."""
    engine = Tasks(threads)
    engine.files_max = files_max
    [result] = story(partitions=("r0", "r1", "r2")).table().clean(commits_retained=1, engine=engine)
    tasks = [[len(task.paths) for task in tasks] for tasks, _ in engine.maps]
    rounds = -(-result.deleted_count // (threads * files_max))
    assert sum(map(sum, tasks)) == result.deleted_count
    assert max(map(max, tasks)) <= files_max
    assert len(tasks) <= rounds
    assert max(map(sum, tasks)) - min(map(sum, tasks)) < threads * rounds


@LAYOUTS
def test_a72_the_inflight_file_holds_a_copy_of_the_plan(layout):
    """0.15 archives a table of version 6 only if the inflight clean is not empty."""
    builder = story(layout)
    table = builder.table()
    requested = table.services.clean(table.services.clean_config(commits_retained=1)).schedule()
    builder.table().clean(commits_retained=1)
    path = f"{builder.folder}/{requested.requested_time}.clean"
    assert builder.storage.read(f"{path}.inflight") == builder.storage.read(f"{path}.requested") != b""


@LAYOUTS
@pytest.mark.parametrize("size", [0, 1])
def test_a70_a71_only_an_empty_file_is_repaired_away(layout, size):
    """A file of any length is left alone, and an error names it; an empty plan goes, and a new one is made."""
    builder = story(layout)
    path = builder.instant(at(9), "clean", State.REQUESTED, b"x" * size)
    if size:
        with pytest.raises(Exception, match=at(9)):
            builder.table().clean(commits_retained=1)
        assert builder.storage.read(path) == b"x"
        assert len(data_files(builder.storage)) == 10
        return
    builder.table().clean(commits_retained=1)
    assert path not in builder.storage.files()
    assert len(data_files(builder.storage)) == 4


# --- section K: the nastiest cases -----------------------------------------------------------------------------------
@LAYOUTS
def test_k2_an_archived_window_means_looking_everywhere(layout):
    """The range since then would miss archived commits (A-29)."""
    builder = story(layout)
    builder.cleaned(at(6), earliest=at(0), last_commit=at(4))
    assert builder.table().plan_clean(commits_retained=1).scope.everything


@LAYOUTS
def test_k3_a_window_that_lags_behind_is_still_right(layout):
    """Cleans that found nothing recorded nothing; the next one looks at every partition since."""
    builder = TableBuilder(layout)
    for number, path in enumerate(("r0", "r1", "r2", "r0", "r1", "r2", "r3"), 1):
        builder.commit(at(number), {path: ["f"]})
    builder.cleaned(at(8), earliest=at(1), last_commit=at(1))
    found = builder.table().plan_clean(commits_retained=1)
    full = builder.table(clean_incremental_enabled=False).plan_clean(commits_retained=1)
    assert not found.scope.everything
    assert found.files == full.files
    assert found.file_count


@LAYOUTS
@pytest.mark.parametrize("action", ["commit", "replacecommit"])
def test_k4_k16_a_pending_instant_holds_the_window_and_is_named(layout, action):
    """Whatever completes later: its files are cleaned in time, and a stale one is not silent."""
    builder = TableBuilder(layout)
    for number in (1, 2, 4, 5, 6):
        builder.commit(at(number), {"r0": ["f"]})
    builder.instant(at(3), action, State.REQUESTED)
    assert builder.table().plan_clean(commits_retained=1).earliest_to_retain.requested_time == at(2)
    files = builder.table().explain("f", commits_retained=1).files
    held = next(file for file in files if file.base_instant_time == at(4))
    assert any(at(3) in fact and "the retention window does not pass it" in fact for fact in held.also)


@LAYOUTS
def test_k10_a_file_that_came_after_planning_keeps_its_folder(layout):
    """A dropped partition is listed again before it goes."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["f"], "r1": ["g"]})
    builder.commit(at(2), {}, replaced={"r0": ["f"]})
    for number in (3, 4, 5):
        builder.commit(at(number), {"r1": ["g"]})
    table = builder.table()
    service = table.services.clean(table.services.clean_config(commits_retained=1))
    service.schedule()
    late = f"r0/{TableBuilder.base_name('late', at(6))}"
    builder.put(late)
    [result] = service.execute_pending()
    assert late in builder.storage.files()
    assert not result.metadata.partitions["r0"].is_partition_deleted


class MetafileWatch(DelegatingStorage):
    """Something happens once the metafile of a partition is gone."""

    def __init__(self, inner, then):
        super().__init__(inner)
        self.then = then

    def _around(self, verb, paths, call):
        done = call()
        if verb == "delete" and any(path.endswith(PARTITION_METAFILE) for path in paths):
            self.then()
        return done


@LAYOUTS
@pytest.mark.parametrize("moment", ["before", "meanwhile"])
@pytest.mark.parametrize("what", ["a write begins", "a file is written"])
def test_k10_a_write_beside_the_end_of_a_partition_finds_its_metafile(layout, what, moment):
    """It has seen the metafile when it began, so it makes none; nor is its file deleted with the folder."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["f"], "r1": ["g"]})
    builder.commit(at(2), {}, replaced={"r0": ["f"]})
    for number in (3, 4, 5):
        builder.commit(at(number), {"r1": ["g"]})
    late, metafile = f"r0/{TableBuilder.base_name('late', at(6))}", f"r0/{PARTITION_METAFILE}"

    def other():
        if what == "a write begins":
            builder.instant(at(6), "commit", State.REQUESTED)
        else:
            builder.put(late)

    storage = MetafileWatch(builder.storage, other if moment == "meanwhile" else lambda: None)
    table = Table(storage, clock=builder.clock)
    service = table.services.clean(table.services.clean_config(commits_retained=1))
    service.schedule()
    if moment == "before":
        other()
    [result] = service.execute_pending()
    assert metafile in builder.storage.files()
    assert (late in builder.storage.files()) == (what == "a file is written")
    assert not result.metadata.partitions["r0"].is_partition_deleted


@LAYOUTS
def test_k11_an_empty_plan_does_not_stop_every_later_clean(layout):
    """1.1.1 fails on it for ever."""
    builder = story(layout)
    for state in (State.REQUESTED, State.INFLIGHT):
        builder.instant(at(9), "clean", state, b"")
    builder.table().clean(commits_retained=1)
    assert len(data_files(builder.storage)) == 4
    assert not builder.table().timeline.pending("clean")


@LAYOUTS
def test_k13_files_that_are_gone_already_are_no_failure(layout):
    """Two cleans share files: the second finds them missing and completes."""
    builder, _ = two_pending(layout)
    results = builder.table().clean(commits_retained=1)
    assert results[1].missing_files
    assert not builder.table().timeline.pending("clean")
    assert len(data_files(builder.storage)) == 4


@LAYOUTS
def test_k18_files_grow_old_in_partitions_not_written_since(layout):
    """The range is from the old window to the new one, not since the last clean (J.1)."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["f"]})
    builder.commit(at(2), {"r0": ["f"]})
    builder.commit(at(3), {"r1": ["g"]})
    builder.cleaned(at(3), earliest=at(2), last_commit=at(3))
    builder.commit(at(4), {"r1": ["g"]})
    plan = builder.table().plan_clean(commits_retained=1)
    assert not plan.scope.everything
    assert set(plan.files) == {"r0"}


@LAYOUTS
def test_k20_a_damaged_completed_clean_is_carried_out_once(layout):
    """Under its own time; no second clean with the same files."""
    builder = story(layout)
    [result] = builder.table().clean(commits_retained=1)
    [path] = [
        p
        for p in builder.storage.files()
        if p.startswith(f"{builder.folder}/{result.instant}") and (p.endswith(".clean"))
    ]
    builder.put(path, b"")
    builder.table().clean(commits_retained=1)
    assert [i.requested_time for i in builder.table().timeline.completed("clean")] == [result.instant]


@LAYOUTS
def test_k21_the_record_names_the_policy_of_the_run_not_of_the_plan(layout):
    """As every release does (A-66); what was kept is decided by the plan alone."""
    builder = story(layout)
    table = builder.table()
    table.services.clean(table.services.clean_config(commits_retained=2)).schedule()
    [result] = builder.table().clean(file_versions_retained=1)
    assert {each.policy for each in result.metadata.partitions.values()} == {VERSIONS.value}
    assert len(data_files(builder.storage)) == 6


@LAYOUTS
def test_k24_a_clean_older_than_what_was_completed_meanwhile_is_normal(layout):
    """Commits count by what the clean saw, not by its own time (A-10)."""
    builder = story(layout)
    builder.cleaned(at(3), earliest=at(2), last_commit=at(5))
    plan = builder.table().plan_clean(commits_retained=1)
    assert not plan.needs_cleaning


@LAYOUTS
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_e20_what_a_savepoint_holds_stays_though_it_was_made_after_the_plan(layout, state):
    """Other writers do not look at pending cleans before they make one; its file goes once it is deleted."""
    builder = story(layout, partitions=("r0",))
    table = builder.table()
    pending = table.services.clean(table.services.clean_config(file_versions_retained=1)).schedule()
    if state is State.INFLIGHT:
        builder.instant(pending.requested_time, "clean", state)
    held = builder.base_name("f", at(2))
    builder.savepoint(at(2), {"r0": [held]})
    first, *more = builder.table().clean(file_versions_retained=1)
    assert (first.withdrawn, len(more)) == (state is State.REQUESTED, 1 if state is State.REQUESTED else 0)
    assert first.why_spared == f"r0/{held} must stay: savepoint {at(2)} holds it"
    assert data_files(builder.storage) == [f"r0/{held}", f"r0/{builder.base_name('f', at(5))}"]
    builder.delete_savepoint(at(2))
    builder.commit(at(7000), {"r0": ["f"]})
    builder.table().clean(file_versions_retained=1)
    assert data_files(builder.storage) == [f"r0/{builder.base_name('f', at(7000))}"]


@LAYOUTS
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_no_clean_beside_the_rollback_of_a_completed_commit(layout, state):
    """The slice that goes would count, and the one below it, soon the newest, be taken."""
    builder = story(layout, partitions=("r0",))
    table = builder.table()
    plan = table.services.rollback().plan(at(5))
    builder.instant(at(6), "rollback", State.REQUESTED, encode_rollback_plan(plan, sync=bytes(16)))
    if state is State.INFLIGHT:
        builder.instant(at(6), "rollback", state)
    before = data_files(builder.storage)
    with pytest.raises(RefusedError, match=f"{at(6)}.*undoes .*{at(5)}.*hudi-py recover"):
        builder.table().clean(file_versions_retained=1)
    assert data_files(builder.storage) == before
    builder.table().recover()
    builder.table().clean(file_versions_retained=1)
    newest = builder.table().timeline.completed("commit")[-1].requested_time
    assert data_files(builder.storage) == [f"r0/{builder.base_name('f', newest)}"]


@LAYOUTS
def test_no_clean_beside_a_restore(layout):
    """Every commit after the savepoint is going."""
    builder = story(layout, partitions=("r0",))
    builder.instant(at(6), "restore", State.REQUESTED)
    before = data_files(builder.storage)
    with pytest.raises(RefusedError, match=f"{at(6)}.*is pending.*hudi-py recover"):
        builder.table().clean(file_versions_retained=1)
    assert data_files(builder.storage) == before

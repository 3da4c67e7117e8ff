"""Clean plans that are no longer right when they are carried out: what somebody needs stays, and cleaning goes on."""

import attrs
import pytest

from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import AlreadyExists, RefusedError
from hudi_py.formats import records_codec as codec
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.model.instant import Action, State
from hudi_py.model.records import (
    InstantInfo,
    RestorePlan,
    RollbackPlan,
)
from hudi_py.services.clean.executing import execute
from hudi_py.services.clean.executing.outlook import outlook
from hudi_py.services.clean.executing.recheck import stands_as_planned
from hudi_py.services.recovery.finding import Step
from hudi_py.table import Table
from hudi_py.timeline.cleaned import whole_from
from support.crash_points import IS_SAMPLE, interruptions
from support.stale_plans import (
    LATER,
    LAYOUTS,
    NAME,
    ONE_COMMIT,
    ONE_VERSION,
    RETENTIONS,
    five_versions,
    forget,
    schedule,
    shown,
)
from support.tables import SYNC, TableBuilder, at, data_files


@LAYOUTS
@RETENTIONS
def test_a_requested_plan_is_withdrawn_and_planned_anew_once_commits_are_rolled_back(layout, retention):
    """K-26: what is the latest again stays; what the new plan names goes."""
    builder = five_versions(layout)
    instant = schedule(builder, retention)
    forget(builder, 5, 4, 3)
    before = shown(builder)
    assert before == {f"r0/{NAME('a', at(2))}", f"r1/{NAME('b', at(2))}"}
    results = builder.table().clean(**retention)
    assert results[0].withdrawn
    assert results[0].instant == instant.requested_time
    assert "must stay: it holds the newest rows" in results[0].why_spared
    assert shown(builder) == before
    assert builder.table().timeline.pending("clean") == ()
    assert all(path in data_files(builder.storage) for path in before)
    if retention is ONE_VERSION:
        assert results[1].deleted_files == (f"r0/{NAME('a', at(1))}", f"r1/{NAME('b', at(1))}")


@LAYOUTS
@RETENTIONS
def test_an_inflight_plan_is_settled_once_commits_are_rolled_back(layout, retention):
    """Half deleted: the rest of the garbage goes, what is needed stays, the completed clean names what is gone only."""
    builder = five_versions(layout)
    instant = schedule(builder, retention, inflight=True)
    forget(builder, 5, 4, 3)
    before = shown(builder)
    (result,) = builder.table().clean(**retention)
    assert (result.withdrawn, result.is_finished) == (False, True)
    assert shown(builder) == before == set(result.spared_files)
    table = builder.table()
    done = table.timeline.find(instant.requested_time, Action.CLEAN)
    assert done.is_completed
    assert table.contents.clean(done).extra_metadata == {}  # no savepoint held anything back
    recorded = {
        f"{path}/{name}"
        for path, each in table.contents.clean(done).partitions.items()
        for name in each.delete_path_patterns
    }
    assert not recorded & before
    assert recorded >= {f"r1/{NAME('b', at(1))}"}
    assert set(data_files(builder.storage)) == before


@LAYOUTS
@pytest.mark.parametrize("inflight", [False, True])
def test_times_that_a_stale_plan_by_versions_took_are_not_promised(layout, inflight):
    """The commit it was made of is gone, and a later one superseded what it deletes: whole is only what came since."""
    builder = five_versions(layout, commits=3)
    schedule(builder, ONE_VERSION, inflight=inflight)
    forget(builder, 3)
    builder.commit(LATER, {"r0": ["a"], "r1": ["b"]})
    results = builder.table().clean(**ONE_VERSION)
    assert results[0].withdrawn is not inflight
    if not inflight:
        assert f"{at(3)}, the last commit that it is based on, was undone" in results[0].why_spared
    assert shown(builder) == set(data_files(builder.storage))
    table = builder.table()
    assert whole_from(table.contents.clean(table.timeline.completed("clean")[-1])) == LATER
    assert table.timeline.pending() == ()


def test_what_was_spared_goes_once_it_is_superseded_by_incremental_cleans():
    """No memory of its own is needed: the commit that supersedes it lies in the scope of the next cleans."""
    builder = five_versions()
    schedule(builder, ONE_COMMIT, inflight=True)
    forget(builder, 5, 4, 3)
    spared = shown(builder)
    builder.table().clean(**ONE_COMMIT)
    for number in (1000, 1001, 1002):
        builder.commit(at(number), {"r0": ["a"], "r1": ["b"]})
        builder.table().clean(**ONE_COMMIT)
    assert not spared & set(data_files(builder.storage))


@LAYOUTS
@pytest.mark.parametrize("inflight", [False, True])
def test_a_replaced_group_that_lives_again_stays(layout, inflight):
    """Its replacecommit was rolled back after the plan."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["a", "c"]})
    builder.commit(at(2), {"r0": ["b"]}, replaced={"r0": ["a"]})
    builder.commit(at(3), {"r0": ["b"]})
    instant = schedule(builder, ONE_VERSION)
    if inflight:
        store = builder.table().contents.store
        store.transition(instant, store.read_plan(instant))
    forget(builder, 3, 2)
    builder.table().clean(**ONE_VERSION)
    assert shown(builder) == {f"r0/{NAME('a', at(1))}", f"r0/{NAME('c', at(1))}"}


@LAYOUTS
@pytest.mark.parametrize("inflight", [False, True])
def test_a_savepoint_made_after_the_plan_holds_its_files(layout, inflight):
    """By a writer that did not look; a settled clean records it, so that once it is gone everything is looked at."""
    builder = five_versions(layout)
    instant = schedule(builder, ONE_COMMIT, inflight=inflight)
    held = NAME("b", at(3))
    builder.savepoint(at(3), {"r1": [held]})
    results = builder.table().clean(**ONE_COMMIT)
    assert results[0].withdrawn is not inflight
    assert f"r1/{held}" in results[0].spared_files
    assert f"savepoint {at(3)} holds it" in results[0].why_spared
    assert f"r1/{held}" in data_files(builder.storage)
    table = builder.table()
    last = table.timeline.completed("clean")[-1]
    assert table.contents.clean(last).extra_metadata["savepointed_timestamps"] == at(3)
    assert (last.requested_time == instant.requested_time) is inflight


@LAYOUTS
@pytest.mark.parametrize("inflight", [False, True])
def test_what_a_pending_compaction_reads_stays(layout, inflight):
    """Scheduled by Apache Hudi after the plan: it reads a slice that the plan took for superseded."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    for number in (1, 2, 3):
        builder.commit(at(number), {"r0": ["a"]}, action="deltacommit")
    schedule(builder, ONE_VERSION, inflight=False)
    if inflight:
        store = builder.table().contents.store
        (instant,) = store.load().pending(Action.CLEAN)
        store.transition(instant, store.read_plan(instant))
    builder.compaction(at(2000), [("r0", "a", at(2), [])])
    builder.table().clean(**ONE_VERSION)
    assert f"r0/{NAME('a', at(2))}" in data_files(builder.storage)


@pytest.mark.parametrize("undoing", ["rollback", "restore"])
def test_nothing_goes_while_a_completed_commit_is_being_taken_back(undoing):
    """What lies below is needed; the way out is named, and the plan stays pending."""
    builder = five_versions()
    instant = schedule(builder, ONE_COMMIT)
    before = data_files(builder.storage)
    plan = RollbackPlan(instant_to_rollback=InstantInfo(at(5), "commit"))
    content = codec.encode_rollback_plan(plan, SYNC)
    if undoing == "restore":
        restore = RestorePlan(
            instants_to_rollback=(InstantInfo(at(5), "commit"),), savepoint_to_restore_timestamp=at(4)
        )
        content = codec.encode_restore_plan(restore, SYNC)
    builder.instant(at(2000), undoing, State.REQUESTED, content)
    with pytest.raises(RefusedError, match="Finish it: hudi-py recover"):
        builder.table().clean(**ONE_COMMIT)
    assert data_files(builder.storage) == before
    assert [each.requested_time for each in builder.table().timeline.pending("clean")] == [instant.requested_time]


def test_a_plan_that_is_right_lists_nothing():
    """Judging costs one listing of the timeline: a million planned files are not listed once more."""
    builder = five_versions()
    schedule(builder, ONE_COMMIT)
    builder.commit(at(6), {"r0": ["a"]})
    listed = []
    inner = builder.storage.list
    builder.storage.list = lambda path, **options: listed.append(path) or inner(path, **options)
    (result,) = builder.table().clean(**ONE_COMMIT)
    assert result.deleted_count
    assert not {"r0", "r1"}.intersection(listed)


def test_a_rolled_back_write_that_never_completed_costs_no_listing():
    """It came after the plan, so the rollback took nothing back that the plan saw."""
    builder = five_versions()
    schedule(builder, ONE_COMMIT)
    builder.commit(LATER, {"r0": ["a"]}, state=State.INFLIGHT)
    assert [each.commits_rollback for each in builder.table().rollback_failed_writes()] == [(LATER,)]
    table = builder.table()
    (instant,) = table.timeline.pending("clean")
    plan = table.contents.clean_plan(instant)
    assert stands_as_planned(table.timeline, table.contents, plan)
    forget(builder, 5)
    assert stands_as_planned(builder.table().timeline, table.contents, plan) is False


@LAYOUTS
def test_what_is_rolled_back_between_two_rounds_of_deletions_stops_the_rest(layout):
    """The timeline is looked at again before each round: Apache Hudi takes commits back beside an inflight clean."""
    builder = five_versions(layout)
    schedule(builder, ONE_COMMIT)
    engine = RollsBackAfterTheFirstRound(builder)
    table = Table(builder.storage, settings={"hoodie_py.clean.max.duration": "1h"}, clock=builder.clock)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execute, "TASK_FILES_MAX_TIMED", 1)
        (result,) = table.clean(engine=engine, **ONE_COMMIT)
    assert engine.rounds > 1
    needed = {f"r0/{NAME('a', at(2))}", f"r1/{NAME('b', at(2))}"}
    assert set(result.spared_files) == needed == shown(builder)
    assert result.deleted_count == len(result.deleted_files)


class RollsBackAfterTheFirstRound(LocalEngine):
    """One file at a time; after the first, Apache Hudi takes back the three newest commits."""

    def __init__(self, builder):
        super().__init__(1)
        self.builder, self.rounds = builder, 0

    def map(self, function, items, **_):
        results = [function(item) for item in items]
        self.rounds += 1
        if self.rounds == 1:
            forget(self.builder, 5, 4, 3)
        return results


@LAYOUTS
@pytest.mark.parametrize("inflight", [False, True])
def test_recover_tells_what_it_does_about_a_stale_plan(layout, inflight):
    """Withdrawn or settled, with the file and the reason; afterwards nothing is pending and no row is lost."""
    builder = five_versions(layout)
    instant = schedule(builder, ONE_VERSION, inflight=inflight)
    forget(builder, 5, 4, 3)
    before = shown(builder)
    outcomes = builder.table().recover()
    (told,) = [each for each in outcomes if each.finding.time == instant.requested_time]
    assert told.done
    assert told.finding.step is (Step.SETTLE_CLEAN if inflight else Step.WITHDRAW_CLEAN)
    assert "must stay: it holds the newest rows" in told.finding.evidence[0]
    assert builder.table().timeline.pending() == ()
    assert shown(builder) == before
    assert before <= set(data_files(builder.storage))


@LAYOUTS
def test_recover_carries_out_a_plan_that_is_right(layout):
    """As before."""
    builder = five_versions(layout)
    schedule(builder, ONE_VERSION)
    assert [each.finding.step for each in builder.table().recover()] == [Step.FINISH_CLEAN]
    assert set(data_files(builder.storage)) == shown(builder)


@pytest.mark.parametrize("inflight", [False, True])
def test_a_dry_run_beside_a_pending_clean_tells_what_it_would_delete(inflight):
    """Exactly the files that the real run then deletes."""
    builder = five_versions()
    instant = schedule(builder, ONE_COMMIT, inflight=inflight)
    seen = outlook(builder.table().contents, instant if not inflight else attrs.evolve(instant, state=State.INFLIGHT))
    assert not seen.is_withdrawn
    (result,) = builder.table().clean(**ONE_COMMIT)
    assert tuple(sorted(seen.files)) == result.deleted_files
    assert seen.size_bytes == 4 * len(result.deleted_files)


def test_a_dry_run_tells_that_a_stale_plan_would_be_withdrawn():
    """With the file and the reason, and nothing to delete by it."""
    builder = five_versions()
    instant = schedule(builder, ONE_COMMIT)
    forget(builder, 5, 4, 3)
    seen = outlook(builder.table().contents, instant)
    assert (seen.is_withdrawn, seen.files) == (True, {})
    assert seen.why_spared


@pytest.mark.slow
@pytest.mark.parametrize("inflight", [False, True])
def test_interrupted_anywhere_no_needed_file_goes(inflight):
    """The way out of a stale plan, stopped at every call that changes something, twice: rows stay, nothing hangs."""
    before = five_versions(commits=4)
    schedule(before, ONE_VERSION, inflight=inflight)
    forget(before, 4, 3)
    needed = shown(before)
    count = 0
    for case in interruptions(before.storage.copy):
        count += case.run(lambda storage: Table(storage, clock=before.clock).clean(**ONE_VERSION))
        assert needed <= set(data_files(case.storage)), case
        for _ in range(2):
            Table(case.storage, clock=before.clock).clean(**ONE_VERSION)
        assert set(data_files(case.storage)) == needed, case
        assert Table(case.storage, clock=before.clock).timeline.pending() == (), case
    assert IS_SAMPLE or count > 10


class CompletesFirst(MetadataTableKeeper):
    """Another cleaner completes the clean while this one records it."""

    def record_clean(self, timeline, instant, metadata):
        store = Table(self.storage, clock=self.clock).contents.store
        store.complete(instant, codec.encode_clean_metadata(metadata, sync=SYNC))
        raise AlreadyExists("a log file of that name is there")


def test_the_slower_of_two_cleaners_is_superseded_also_where_they_meet_in_the_metadata_table():
    """Never a raw AlreadyExists."""
    builder = five_versions()
    table = builder.table()
    service = table.services.clean(table.services.clean_config(**ONE_COMMIT))
    keeper = service.metadata_table
    slower = CompletesFirst(keeper.storage, keeper.settings, keeper.clock)
    (result,) = attrs.evolve(service, metadata_table=slower).run()
    assert result.superseded
    assert result.deleted_count == 6


def test_a_limit_that_bites_is_told():
    """The clean is completed, and the result says that the next one plans the rest."""
    builder = five_versions()
    table = Table(builder.storage, settings={"hoodie_py.clean.max.files": "2"}, clock=builder.clock)
    first, *_ = table.clean(**ONE_COMMIT)
    assert first.is_partial
    assert first.is_finished
    rest = builder.table().clean(**ONE_COMMIT)
    assert [each.is_partial for each in rest] == [False]

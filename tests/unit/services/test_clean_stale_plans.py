"""Which clean plans are never made, and by what a stored one is judged when it is carried out."""

import attrs
import pytest

from hudi_py.formats import records_codec as codec
from hudi_py.model.instant import Action, State
from hudi_py.model.records import (
    CleanFileInfo,
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    InstantInfo,
    RequestedReplaceMetadata,
    RollbackMetadata,
    RollbackPlan,
)
from hudi_py.services.clean.executing.recheck import stands_as_planned
from hudi_py.table import Table
from support.stale_plans import (
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


def clustering_of(builder, time, names):
    """A pending clustering by Apache Hudi that reads these files of r0."""
    slices = tuple(
        ClusteringSlice(file_id="a", partition_path="r0", data_file_path=f"file:///lake/trips/r0/{name}")
        for name in names
    )
    plan = ClusteringPlan(input_groups=(ClusteringGroup(slices=slices),))
    requested = RequestedReplaceMetadata(operation_type="CLUSTER", clustering_plan=plan)
    word = "replacecommit" if builder.layout.version == 1 else "clustering"
    builder.instant(time, word, State.REQUESTED, codec.encode_requested_replace(requested, sync=SYNC))


@LAYOUTS
@pytest.mark.parametrize("verify", [False, True])
def test_what_a_pending_clustering_reads_is_not_even_planned(layout, verify):
    """Stricter than Apache Hudi's planner; so that no plan is withdrawn again and again, planner and judge agree."""
    builder = five_versions(layout)
    clustering_of(builder, at(6), [NAME("a", at(2))])
    table = Table(builder.storage, settings={"hoodie_py.clean.verify": verify}, clock=builder.clock)
    assert "when clustering" in str(table.explain(NAME("a", at(2)), **ONE_VERSION))
    (result,) = table.clean(**ONE_VERSION)
    assert not result.withdrawn
    assert set(data_files(builder.storage)) == shown(builder) | {f"r0/{NAME('a', at(2))}"}


@pytest.mark.parametrize("verify", [False, True])
def test_the_base_file_below_a_newest_slice_without_one_is_not_even_planned(verify):
    """The newest rows are what log files add to it; Apache Hudi counts the slice of log files alone as a version."""
    builder = TableBuilder(1, table_type="MERGE_ON_READ")
    for number in (1, 2):
        builder.commit(at(number), {"r0": ["a"]}, action="deltacommit")
    builder.log_files(at(3), [("r0", "a", at(3))])
    before = set(data_files(builder.storage))
    table = Table(builder.storage, settings={"hoodie_py.clean.verify": verify}, clock=builder.clock)
    (result,) = table.clean(**ONE_VERSION)
    assert result.deleted_files == (f"r0/{NAME('a', at(1))}",)
    assert set(data_files(builder.storage)) == before - set(result.deleted_files)


def rewrite(builder, instant, **changes):
    """Give a stored plan other content: one of a release that records less, or one that is wrong."""
    contents = builder.table().contents
    plan = attrs.evolve(contents.clean_plan(instant), **changes)
    contents.store.replace(instant, codec.encode_cleaner_plan(plan, SYNC))


@LAYOUTS
@RETENTIONS
@pytest.mark.parametrize("inflight", [False, True])
def test_a_plan_that_tells_no_last_commit_is_judged_file_by_file(layout, retention, inflight):
    """Where the timeline cannot tell whether something was taken back, the files do."""
    builder = five_versions(layout)
    instant = schedule(builder, retention)
    rewrite(builder, instant, last_completed_commit_timestamp="")
    if inflight:
        store = builder.table().contents.store
        store.transition(instant, store.read_plan(instant))
    forget(builder, 5, 4, 3)
    before = shown(builder)
    results = builder.table().clean(**retention)
    assert results[0].withdrawn is not inflight
    assert shown(builder) == before
    assert before <= set(data_files(builder.storage))


@LAYOUTS
def test_files_of_a_write_under_way_stay_whatever_a_plan_says(layout):
    """Nobody has superseded them, and a plan that names them is wrong."""
    builder = five_versions(layout, commits=3)
    builder.commit(at(4), {"r2": ["c"]}, state=State.INFLIGHT)
    builder.commit(at(5), {"r0": ["a"], "r1": ["b"]})
    instant = schedule(builder, ONE_VERSION)
    path = f"r2/{NAME('c', at(4))}"
    file = CleanFileInfo(f"{builder.storage.root}/{path}")
    rewrite(builder, instant, files_to_delete={"r2": (file,)})
    (result, *_) = builder.table().clean(**ONE_VERSION)
    assert result.withdrawn
    assert path in data_files(builder.storage)


@pytest.mark.parametrize("state", [State.REQUESTED, State.COMPLETED])
@pytest.mark.parametrize("undone", [3, 4, 5, 6])
def test_a_rollback_of_what_the_plan_was_made_of_is_never_passed_over(undone, state):
    """Pending or completed, also of the last commit itself, that ran again under its time: then the files are asked."""
    builder = five_versions()
    instant = schedule(builder, ONE_COMMIT)
    target = InstantInfo(at(undone), "commit")
    plan = RollbackPlan(instant_to_rollback=target)
    builder.instant(at(2000), "rollback", State.REQUESTED, codec.encode_rollback_plan(plan, SYNC))
    if state is State.COMPLETED:
        metadata = RollbackMetadata(
            start_rollback_time=at(2000),
            time_taken_ms=1,
            total_files_deleted=0,
            commits_rollback=(at(undone),),
            partitions={},
            instants_rollback=(target,),
        )
        builder.instant(at(2000), "rollback", state, codec.encode_rollback_metadata(metadata, SYNC))
    table = builder.table()
    stands = stands_as_planned(table.timeline, table.contents, table.contents.clean_plan(instant))
    assert stands is (True if undone > 5 else None)


def test_a_restore_after_the_plan_has_the_files_asked():
    """It may have gone back behind the last commit and written it again: its time alone proves nothing."""
    builder = five_versions()
    instant = schedule(builder, ONE_COMMIT)
    builder.instant(at(2000), "restore", State.REQUESTED, b"")
    table = builder.table()
    assert stands_as_planned(table.timeline, table.contents, table.contents.clean_plan(instant)) is None


@LAYOUTS
@RETENTIONS
def test_the_last_commit_that_counts_is_that_of_the_plan(layout, retention):
    """One that came later was not looked at; one that was taken back is no bound of a clean by versions any more."""
    for undone, last in (((), at(5)), ((5, 4, 3), at(2) if retention is ONE_VERSION else at(5))):
        builder = five_versions(layout)
        instant = schedule(builder, retention, inflight=True)
        if undone:
            forget(builder, *undone)
        else:
            builder.commit(at(6), {"r0": ["a"]})
        builder.table().clean(**retention)
        table = builder.table()
        done = table.contents.clean(table.timeline.find(instant.requested_time, Action.CLEAN))
        assert done.last_completed_commit_timestamp == last

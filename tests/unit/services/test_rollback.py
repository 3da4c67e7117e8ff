"""Rolling back one named write (format/table-services B)."""

from __future__ import annotations

import pytest

from hudi_py.errors import ConfigError, RefusedError, UnsupportedTable
from hudi_py.formats import records_codec as codec
from hudi_py.formats.commit_codec import encode_commit
from hudi_py.model.files import join_path
from hudi_py.model.instant import Action, State
from hudi_py.model.records import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    CommitMetadata,
    RequestedReplaceMetadata,
    WriteStat,
)
from tests.tables import SYNC, TableBuilder, at, data_files


def update(builder: TableBuilder, time: str, groups: dict[str, list[str]], prev: str, **more) -> None:
    """A commit whose stats name the commit before, as those of real writers do."""
    builder.commit(time, groups, **more)
    stats = {
        partition: tuple(
            WriteStat(
                file_id=file_id,
                path=join_path(partition, builder.base_name(file_id, time)),
                partition_path=partition,
                prev_commit=prev,
                num_writes=1,
            )
            for file_id in ids
        )
        for partition, ids in groups.items()
    }
    content = encode_commit(
        CommitMetadata(partition_to_write_stats=stats, operation_type="UPSERT"),
        as_json=builder.layout.version == 1,
        sync=SYNC,
    )
    builder.instant(time, "commit", State.COMPLETED, content)


@pytest.fixture(params=[1, 2])
def builder(request) -> TableBuilder:
    builder = TableBuilder(request.param)
    builder.commit(at(1), {"eu": ["a"]})
    update(builder, at(2), {"eu": ["a"]}, at(1))
    return builder


def times(builder: TableBuilder, *actions: str) -> list[str]:
    return [i.requested_time for i in builder.table().timeline.completed(*actions)]


def test_completed_commit_goes_with_its_files(builder):
    """The commit's files and instants are gone, those of before are read again, the rollback tells what it did."""
    metadata = builder.table().rollback(at(2))
    assert data_files(builder.storage) == [f"eu/{builder.base_name('a', at(1))}"]
    assert times(builder, "commit") == [at(1)]
    assert metadata.commits_rollback == (at(2),)
    assert metadata.total_files_deleted == 1
    assert [p for p in builder.storage.files() if f"/{at(2)}" in p and ".aux" not in p] == []
    assert builder.table().file_slices("eu")[0].base_instant_time == at(1)


def test_unpublished_before_any_file_goes(builder):
    """B-18: readers stop seeing the commit first."""
    from hudi_py.storage.wrappers import RecordingStorage
    from hudi_py.table import Table

    recording = RecordingStorage(builder.storage)
    Table(recording, clock=builder.clock).rollback(at(2))
    text = [str(call) for call in recording.calls]
    completed = next(n for n, c in enumerate(text) if "delete" in c and ".commit" in c and at(2) in c)
    data = next(n for n, c in enumerate(text) if "delete_many" in c)
    assert completed < data


def test_failed_write_is_undone_by_name(builder):
    """B-12 to B-22: a pending write goes, whatever is completed beside it."""
    builder.commit(at(3), {"eu": ["x"]}, state=State.INFLIGHT)
    update(builder, at(4), {"eu": ["a"]}, at(2))
    builder.table().rollback(at(3))
    assert f"eu/{builder.base_name('x', at(3))}" not in data_files(builder.storage)
    assert times(builder, "commit") == [at(1), at(2), at(4)]


def test_later_commit_stands_in_the_way(builder):
    """B-16: only the newest completed commit can be undone."""
    before = builder.storage.files()
    with pytest.raises(RefusedError, match="came after"):
        builder.table().rollback(at(1))
    assert before == builder.storage.files()


def test_write_under_way_stands_in_the_way(builder):
    """B-16: what is being written may build on the commit."""
    builder.commit(at(3), {"eu": ["a"]}, state=State.INFLIGHT)
    with pytest.raises(RefusedError, match="under way"):
        builder.table().rollback(at(2))


def test_savepointed_commit_is_refused(builder):
    """B-16, C-8."""
    builder.table().create_savepoint(at(2))
    with pytest.raises(RefusedError, match="savepoint"):
        builder.table().rollback(at(2))


def test_rows_that_a_clean_left_only_there_are_not_lost(builder):
    """After a clean by file versions the commit's files are the only ones: undoing it would lose every older row."""
    builder.table().clean(file_versions_retained=1)
    before = data_files(builder.storage)
    with pytest.raises(RefusedError, match="nothing older is left"):
        builder.table().rollback(at(2))
    assert before == data_files(builder.storage)


def test_replaced_groups_come_back(builder):
    """Rolling back a replacecommit makes what it replaced live again."""
    builder.commit(at(3), {"eu": ["n"]}, replaced={"eu": ["a"]})
    builder.table().rollback(at(3))
    assert [each.file_id for each in builder.table().file_slices("eu")] == ["a"]


def test_unknown_write_is_an_error(builder):
    """Nothing happens for a time that no commit has; a clean is no commit."""
    builder.cleaned(at(5), earliest=at(1), last_commit=at(2))
    for time in (at(9), at(5)):
        with pytest.raises(ConfigError):
            builder.table().rollback(time)


def test_rollback_that_was_only_requested_is_withdrawn_when_its_target_is_completed(builder):
    """The next write must not undo visible rows because somebody once began to ask for it."""
    table = builder.table()
    plan = codec.encode_rollback_plan(table.rollback_service().plan(at(2)), SYNC)
    builder.instant(at(7), "rollback", State.REQUESTED, plan)
    assert builder.table().rollback_failed_writes() == []
    assert times(builder, "commit") == [at(1), at(2)]
    assert not builder.table().timeline.pending()


def test_rollback_under_way_is_finished_by_the_next_write(builder):
    """Once inflight, files may be gone: the plan is carried out to its end."""
    plan = codec.encode_rollback_plan(builder.table().rollback_service().plan(at(2)), SYNC)
    builder.instant(at(7), "rollback", State.REQUESTED, plan)
    builder.instant(at(7), "rollback", State.INFLIGHT)
    assert len(builder.table().rollback_failed_writes()) == 1
    assert times(builder, "commit") == [at(1)]
    assert times(builder, "rollback") == [at(7)]


def clustering(builder: TableBuilder, time: str, state: State) -> None:
    """A clustering of group a into n, up to *state*."""
    name = "replacecommit" if builder.layout.version == 1 else "clustering"
    old = ClusteringSlice(file_id="a", partition_path="eu", data_file_path=builder.base_name("a", at(2)))
    plan = ClusteringPlan(input_groups=(ClusteringGroup(slices=(old,)),))
    request = RequestedReplaceMetadata(operation_type="CLUSTER", clustering_plan=plan)
    builder.instant(time, name, State.REQUESTED, codec.encode_requested_replace(request, sync=SYNC))
    if state >= State.INFLIGHT:
        builder.instant(time, name, State.INFLIGHT)
        builder.put(f"eu/{builder.base_name('n', time)}")
    if state is State.COMPLETED:
        stat = WriteStat(file_id="n", path=f"eu/{builder.base_name('n', time)}", partition_path="eu")
        metadata = CommitMetadata(
            partition_to_write_stats={"eu": (stat,)},
            operation_type="CLUSTER",
            partition_to_replace_file_ids={"eu": ("a",)},
        )
        content = encode_commit(metadata, as_json=builder.layout.version == 1, sync=SYNC)
        builder.instant(time, "replacecommit", State.COMPLETED, content)


@pytest.mark.parametrize("state", [State.INFLIGHT, State.COMPLETED])
def test_clustering_goes_back_to_its_plan(builder, state):
    """B-25: its new files go, its plan stays and can be carried out again; the next write leaves it alone."""
    clustering(builder, at(3), state)
    builder.table().rollback(at(3))
    (pending,) = builder.table().timeline.pending()
    assert (pending.requested_time, pending.state) == (at(3), State.REQUESTED)
    assert builder.table().contents.is_clustering(pending)
    assert data_files(builder.storage) == [f"eu/{builder.base_name('a', at(t))}" for t in (1, 2)]
    assert builder.table().rollback_failed_writes() == []
    with pytest.raises(RefusedError, match="only planned"):
        builder.table().rollback(at(3))


def test_commit_that_a_pending_clustering_reads_is_refused(builder):
    """The plan would rewrite files that are gone."""
    clustering(builder, at(3), State.REQUESTED)
    with pytest.raises(RefusedError, match="pending plan"):
        builder.table().rollback(at(2))


def test_delta_commit_of_layout_2_goes_with_its_log_files():
    """B.3: in layout 2 every log file belongs to one delta commit, so it is deleted."""
    builder = TableBuilder(2, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"eu": ["a"]}, action="deltacommit")
    builder.log_files(at(2), [("eu", "a", at(1))])
    builder.log_files(at(3), [("eu", "a", at(1))])
    builder.table().rollback(at(3))
    assert [at(2)] == [log.instant_time for log in builder.table().file_slices("eu")[0].log_files]
    builder.log_files(at(4), [("eu", "a", at(1))], state=State.INFLIGHT)
    assert len(builder.table().rollback_failed_writes()) == 1
    assert [p for p in data_files(builder.storage) if at(4) in p] == []


def test_delta_commit_of_layout_1_is_refused():
    """B-20: it needs rollback blocks, which are not written; nothing is changed."""
    builder = TableBuilder(1, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"eu": ["a"]}, action="deltacommit")
    builder.log_files(at(2), [("eu", "a", at(1))])
    before = builder.storage.files()
    with pytest.raises(UnsupportedTable):
        builder.table().rollback(at(2))
    assert before == builder.storage.files()


def test_inflight_compaction_goes_back_to_its_plan():
    """B-25: its base files go, the log files that came later stay."""
    for layout in (1, 2):
        builder = TableBuilder(layout, table_type="MERGE_ON_READ")
        builder.commit(at(1), {"eu": ["a"]}, action="deltacommit")
        builder.log_files(at(2), [("eu", "a", at(1))])
        builder.compaction(at(3), [("eu", "a", at(1), [])])
        builder.instant(at(3), "compaction", State.INFLIGHT)
        builder.put(f"eu/{builder.base_name('a', at(3))}")
        builder.log_files(at(4), [("eu", "a", at(3))])
        builder.table().rollback(at(3))
        found = builder.table().timeline.find(at(3), Action.COMPACTION)
        assert found.state is State.REQUESTED
        names = data_files(builder.storage)
        assert f"eu/{builder.base_name('a', at(3))}" not in names
        assert sum(".log." in name for name in names) == 2

"""Restoring to a savepoint (rules/table-services B.5, J.8)."""

from __future__ import annotations

import pytest

from hudi_py.errors import ConfigError, ConflictError, RefusedError
from hudi_py.formats import records_codec as codec
from hudi_py.formats.commit_codec import encode_commit
from hudi_py.formats.log_block import BlockType, HeaderKey, iterate_log_blocks
from hudi_py.model.files import parse_log_file
from hudi_py.model.instant import Action, State
from hudi_py.model.records import CommitMetadata, InstantInfo, RestorePlan, WriteStat
from hudi_py.storage.wrappers import RecordingStorage
from hudi_py.table import Table
from support.meanwhile import Meanwhile, ending
from support.tables import SYNC, TableBuilder, at, data_files, done
from support.undoing import clustering, merge_on_read_history


@pytest.fixture(params=[1, 2])
def builder(request) -> TableBuilder:
    """J.8: c1, c2 (savepoint), c3 in eu only, a failed write that c5 rolled back, c6 = insert_overwrite of us."""
    builder = TableBuilder(request.param)
    builder.commit(at(1), {"eu": ["a"], "us": ["b"]})
    builder.commit(at(2), {"eu": ["a"], "us": ["b"]})
    builder.table().create_savepoint(at(2))
    builder.commit(at(3), {"eu": ["a"]})
    builder.commit(at(4), {"eu": ["a"]}, state=State.INFLIGHT)
    builder.table().rollback_failed_writes()
    builder.commit(at(5), {"eu": ["a"], "us": ["b"]})
    builder.commit(at(6), {"us": ["n"]}, replaced={"us": ["b"]})
    return builder


def test_trace_of_real_hudi(builder):
    """B-30, B-31: newest first, each by a rollback; then the restore completes, then all rollbacks go (trace J.8)."""
    recording = RecordingStorage(builder.storage)
    Table(recording, clock=builder.clock).restore(at(2))
    prefix = builder.folder + "/"
    steps = []
    for verb, path in recording.mutations:
        name = path.removeprefix(prefix)
        if path.startswith(prefix) and "/" not in name:
            time, _, word = name.partition(".")
            number = next((n for n in range(1, 7) if time.startswith(at(n))), "new")
            steps.append(("-" if verb == "delete" else "+", number, word))
    kinds = [step for step in steps if "rollback" not in step[2]]
    undone = [(n, word) for sign, n, word in kinds if sign == "-"]
    assert [n for n, _ in undone] == [6, 6, 6, 5, 5, 5, 3, 3, 3]
    assert [word for n, word in undone if n == 5] == ["commit", "inflight", "commit.requested"]
    assert [word for sign, n, word in kinds if sign == "+"] == ["restore.requested", "restore.inflight", "restore"]
    after = steps[steps.index(("+", "new", "restore")) + 1 :]
    assert {(sign, word.partition(".")[0]) for sign, _, word in after} == {("-", "rollback")}
    assert len([s for s in steps if s[2] == "rollback.requested" and s[0] == "+"]) == 3


@pytest.mark.parametrize("state", [State.COMPLETED, State.INFLIGHT])
def test_markers_of_a_write_go_with_the_rollback_that_undid_it(builder, state):
    """A rollback died before it removed them; once the restore has taken it along, nobody could tell about them."""
    (rollback,) = builder.table().timeline.completed("rollback")
    if state is State.INFLIGHT:
        builder.table().contents.store.reopen(rollback)
    left, unknown = (f".hoodie/.temp/{time}/eu/a.parquet.marker.CREATE" for time in (at(4), at(7)))
    for path in (left, unknown):
        builder.put(path, b"")
    builder.table().restore(at(2))
    assert not builder.table().timeline.of([Action.ROLLBACK])
    assert left not in builder.storage.files()
    assert unknown in builder.storage.files(), "nothing tells that this write is over"


def test_afterwards_the_table_is_as_it_was(builder):
    """What is left: c1, c2, the savepoint, the restore; the files of c2; nothing pending."""
    metadata = builder.table().restore(at(2))
    timeline = builder.table().timeline
    assert [i.requested_time for i in timeline.completed("commit", "replacecommit")] == [at(1), at(2)]
    assert {i.action for i in timeline} == {Action.COMMIT, Action.SAVEPOINT, Action.RESTORE}
    assert not timeline.pending()
    assert data_files(builder.storage) == [
        f"{p}/{builder.base_name(g, at(t))}" for p, g in (("eu", "a"), ("us", "b")) for t in (1, 2)
    ]
    assert metadata.instants_to_rollback == (at(6), at(5), at(3))
    assert set(metadata.rollbacks) == {at(6), at(5), at(3)}
    builder.commit(at(9), {"eu": ["a"]})
    assert builder.table().file_slices("eu")[0].base_instant_time == at(9)


def test_second_restore_has_nothing_to_do(builder):
    """Asked again it answers with what was done, and adds no instant."""
    first = builder.table().restore(at(2))
    before = builder.storage.files()
    assert first == builder.table().restore(at(2))
    assert before == builder.storage.files()


def test_needs_a_savepoint(builder):
    """B-27: a commit alone is not enough."""
    with pytest.raises(ConfigError):
        builder.table().restore(at(3))


def test_refused_beyond_savepoints(builder):
    """B-27: with archival beyond savepoints it is unknown what came after."""
    with pytest.raises(ConfigError):
        builder.table(archive_beyond_savepoint=True).restore(at(2))


def test_refused_when_a_file_of_the_savepoint_is_gone(builder):
    """Somebody deleted it by hand: nothing is undone."""
    assert builder.storage.delete(f"eu/{builder.base_name('a', at(2))}")
    before = builder.storage.files()
    with pytest.raises(RefusedError, match="the savepoint has 1 missing file,"):
        builder.table().restore(at(2))
    assert before == builder.storage.files()


def test_pending_clustering_goes_with_its_plan(builder):
    """B-26, B-29: its plan was made of files that are undone."""
    clustering(builder, at(8), State.INFLIGHT)
    plan = builder.table().services.restore().plan(at(2))
    assert plan.instants_to_rollback[0].requested_time == at(8)
    builder.table().restore(at(2))
    assert not builder.table().timeline.pending()


@pytest.mark.parametrize("layout", [1, 2])
def test_savepoint_before_a_compaction(layout):
    """B-29, table B.3: compacted slices go with all that lies on them; older slices are as at the savepoint."""
    builder = merge_on_read_history(layout)
    at_savepoint = builder.table().contents.savepoint(builder.table().timeline.completed(Action.SAVEPOINT)[0]).files
    metadata = builder.table().restore(at(2))
    assert metadata.instants_to_rollback == (at(6), at(5), at(4), at(3))
    assert [i.requested_time for i in builder.table().timeline.writes] == [at(1), at(2)]
    files = data_files(builder.storage)
    assert {f"eu/{name}" for name in at_savepoint["eu"]} <= set(files)
    assert not [path for path in files if f"_{at(4)}." in path or f"n_{at(5)}." in path]
    undone = {log.name for log in map(parse_log_file, (path[3:] for path in files)) if log is not None}
    if layout == 2:
        assert undone == {name for name in at_savepoint["eu"] if ".log." in name}
    else:
        taken_back = {
            (log.file_id, block.header[HeaderKey.TARGET_INSTANT_TIME])
            for log in map(parse_log_file, undone)
            for block in iterate_log_blocks(builder.storage.read(f"eu/{log.name}"), log.name)
            if block.block_type is BlockType.COMMAND
        }
        assert taken_back == {("a", at(3)), ("b", at(3)), ("b", at(5))}


def test_log_files_on_base_files_that_are_undone_go_with_them():
    """Table B.3, layout 1: a later delta commit appended to a group that is undone; nothing of its slice stays."""
    builder = TableBuilder(1, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"eu": ["a"]}, action="deltacommit")
    builder.table().create_savepoint(at(1))
    builder.commit(at(2), {"eu": ["n"]}, action="deltacommit")
    builder.log_files(at(3), [("eu", "n", at(2))])
    builder.table().restore(at(1))
    assert data_files(builder.storage) == [f"eu/{builder.base_name('a', at(1))}"]


def test_compaction_that_was_planned_before_the_savepoint_stays():
    """B-29: on merge-on-read tables it is older than what lies on top of it, even if it completed later."""
    builder = TableBuilder(2, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"eu": ["a"]}, action="deltacommit")
    builder.log_files(at(3), [("eu", "a", at(1))])
    builder.compaction(at(2), [("eu", "a", at(1), [])])
    builder.instant(at(2), "compaction", State.INFLIGHT)
    builder.put(f"eu/{builder.base_name('a', at(2))}")
    stat = WriteStat(file_id="a", path=f"eu/{builder.base_name('a', at(2))}", partition_path="eu", prev_commit=at(1))
    metadata = CommitMetadata(partition_to_write_stats={"eu": (stat,)}, operation_type="COMPACT")
    content = encode_commit(metadata, as_json=False, sync=SYNC)
    builder.instant(at(2), "commit", State.COMPLETED, content, completed_at=done(at(4)))
    builder.table().create_savepoint(at(3))
    builder.log_files(at(5), [("eu", "a", at(1))])
    assert builder.table().restore(at(3)).instants_to_rollback == (at(5),)
    assert f"eu/{builder.base_name('a', at(2))}" in data_files(builder.storage)


def test_a_write_that_was_requested_after_the_savepointed_compaction_is_undone():
    """B-32: the savepoint does not show it, although it completed before the compaction; Apache Hudi fails there."""
    builder = TableBuilder(2, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"eu": ["a"]}, action="deltacommit")
    compacted = f"eu/{builder.base_name('a', at(2))}"
    builder.put(compacted)
    stat = WriteStat(file_id="a", path=compacted, partition_path="eu", prev_commit=at(1))
    metadata = CommitMetadata(partition_to_write_stats={"eu": (stat,)}, operation_type="COMPACT")
    builder.compaction(at(2), [("eu", "a", at(1), [])])
    builder.instant(at(2), "compaction", State.INFLIGHT)
    builder.commit(at(3), {"eu": ["n"]}, action="deltacommit")
    content = encode_commit(metadata, as_json=False, sync=SYNC)
    builder.instant(at(2), "commit", State.COMPLETED, content, completed_at=done(at(4)))
    builder.table().create_savepoint(at(2))
    assert builder.table().restore(at(2)).instants_to_rollback == (at(3),)
    assert data_files(builder.storage) == sorted([compacted, f"eu/{builder.base_name('a', at(1))}"])


def test_pending_restore_stops_another_one(builder):
    """One at a time; the pending one is named."""
    plan = builder.table().services.restore().plan(at(2))
    builder.table().create_savepoint(at(6))
    builder.instant(at(9), "restore", State.REQUESTED, codec.encode_restore_plan(plan, SYNC))
    with pytest.raises(RefusedError, match="pending"):
        builder.table().restore(at(6))


@pytest.mark.parametrize("is_pending", [False, True])
def test_newer_savepoints_stand_in_the_way_and_are_named(builder, is_pending):
    """
    They would stay listed and could not be read; nothing is changed, the dry run says so too, the way out works.

    Apache Hudi stops in the middle of such a restore: the one that it left goes on once the savepoints are deleted.
    """
    if is_pending:
        plan = builder.table().services.restore().plan(at(2))
        builder.instant(at(9), "restore", State.REQUESTED, codec.encode_restore_plan(plan, SYNC))
    for number in (3, 6):
        builder.savepoint(at(number), {})
    before = builder.storage.files()
    for call in (builder.table().restore, builder.table().services.restore().plan):
        with pytest.raises(RefusedError, match=f"{at(3)}, {at(6)}") as refusal:
            call(at(2))
    assert before == builder.storage.files()
    for number in (3, 6):
        assert f"hudi-py savepoint delete {builder.storage.root} {at(number)}" in str(refusal.value)
        assert builder.table().delete_savepoint(at(number))
    assert builder.table().restore(at(2)).instants_to_rollback == (at(6), at(5), at(3))


def test_savepoint_that_holds_older_files_than_its_own_is_refused(builder):
    """Releases of Hudi savepoint a commit whose file a clean has deleted; its rows cannot come back."""
    assert builder.table().delete_savepoint(at(2))
    builder.savepoint(at(2), {"eu": [builder.base_name("a", at(1))], "us": [builder.base_name("b", at(2))]})
    assert builder.storage.delete(f"eu/{builder.base_name('a', at(2))}")
    before = builder.storage.files()
    with pytest.raises(RefusedError, match=builder.base_name("a", at(2))) as refusal:
        builder.table().restore(at(2))
    assert "No earlier state can be reached" in str(refusal.value)
    assert before == builder.storage.files()


@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_unreadable_rollback_plan_of_a_half_done_restore(builder, state):
    """B-7: Hudi died while it wrote the plan of one of its rollbacks; a new plan is made, and the restore ends."""
    plan = builder.table().services.restore().plan(at(2))
    builder.instant(at(8), "restore", State.REQUESTED, codec.encode_restore_plan(plan, SYNC))
    builder.instant(at(8), "restore", State.INFLIGHT)
    builder.instant(at(9), "rollback", State.REQUESTED, b"")
    builder.instant(at(9), "rollback", state, b"")
    metadata = builder.table().restore(at(2))
    assert set(metadata.rollbacks) == {at(6), at(5), at(3)}
    assert {i.action for i in builder.table().timeline} == {Action.COMMIT, Action.SAVEPOINT, Action.RESTORE}
    assert not builder.table().timeline.pending()


def test_commit_of_another_writer_stops_the_restore(builder):
    """B-32: the savepointed commit has to be the newest one; the restore stays pending, and the error says why."""
    plan = builder.table().services.restore().plan(at(2))
    builder.instant(at(8), "restore", State.REQUESTED, codec.encode_restore_plan(plan, SYNC))
    builder.commit(at(9), {"eu": ["a"]})
    with pytest.raises(ConflictError, match="another writer"):
        builder.table().restore(at(2))
    assert builder.table().timeline.pending(Action.RESTORE)


@pytest.mark.parametrize("what", ["clean", "rollback"])
def test_what_rolls_failed_writes_back_leaves_those_of_a_pending_restore(builder, what):
    """What the restore has taken back to inflight is its own to undo: others are refused, and nothing has changed."""
    plan = RestorePlan(
        instants_to_rollback=(InstantInfo(at(6), "replacecommit"),), savepoint_to_restore_timestamp=at(2)
    )
    builder.instant(at(7), "restore", State.REQUESTED, codec.encode_restore_plan(plan, SYNC))
    builder.instant(at(7), "restore", State.INFLIGHT)
    store = builder.table().contents.store
    store.reopen(store.load().find(at(6)))
    before = builder.storage.files()
    lazy = builder.table(clean_failed_writes_policy="LAZY")
    with pytest.raises(RefusedError, match=r"restore .* is pending"):
        lazy.clean(file_versions_retained=1) if what == "clean" else lazy.rollback_failed_writes()
    assert before == builder.storage.files()


@pytest.mark.parametrize("meanwhile", ["commit", "lease"])
def test_what_comes_between_the_plan_and_its_first_file_withdraws_the_restore(builder, meanwhile):
    """It has looked already and has no lock: it looks again once its plan is on the timeline."""

    def comes() -> None:
        if meanwhile == "commit":
            builder.commit(at(7), {"eu": ["a"]})
        else:
            builder.table().take_lease(ttl="1h", at=at(5), holder="a test")

    storage = Meanwhile(builder.storage, comes, before=ending(".restore.requested"))
    before = set(data_files(builder.storage))
    with pytest.raises(ConflictError, match="nothing was changed"):
        Table(storage, clock=builder.clock).restore(at(2))
    assert storage.fired
    assert before <= set(data_files(builder.storage))
    table = builder.table()
    assert not table.timeline.of([Action.RESTORE]).instants
    assert table.timeline.commits.completed()[-1].requested_time == at(7 if meanwhile == "commit" else 6)

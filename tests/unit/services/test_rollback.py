"""Rolling back one named write (rules/table-services B)."""

from __future__ import annotations

import pytest

from hudi_py.errors import ConfigError, CorruptMetadata, RefusedError
from hudi_py.formats import records_codec as codec
from hudi_py.formats.commit_codec import encode_commit
from hudi_py.formats.log_block import (
    BlockType,
    HeaderKey,
    LogBlock,
    encode_log_block,
    encode_rollback_block,
    iterate_log_blocks,
)
from hudi_py.model.instant import Action, State
from hudi_py.model.records import (
    CommitMetadata,
    CompactionPlan,
    InstantInfo,
    RollbackPlan,
    RollbackRequest,
    WriteStat,
)
from hudi_py.timeline.leases import FOLDER as LEASES
from support.tables import SYNC, TableBuilder, at, data_files
from support.undoing import clustering, merge_on_read, times, update, updated


@pytest.fixture(params=[1, 2])
def builder(request) -> TableBuilder:
    return updated(request.param)


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
    with pytest.raises(RefusedError, match="may build on that commit"):
        builder.table().rollback(at(2))


def test_savepointed_commit_is_refused(builder):
    """B-16, C-8."""
    builder.table().create_savepoint(at(2))
    with pytest.raises(RefusedError, match="savepoint"):
        builder.table().rollback(at(2))


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
    plan = codec.encode_rollback_plan(table.services.rollback().plan(at(2)), SYNC)
    builder.instant(at(7), "rollback", State.REQUESTED, plan)
    assert builder.table().rollback_failed_writes() == []
    assert times(builder, "commit") == [at(1), at(2)]
    assert not builder.table().timeline.pending()


def test_rollback_under_way_is_finished_by_the_next_write(builder):
    """Once inflight, files may be gone: the plan is carried out to its end."""
    plan = codec.encode_rollback_plan(builder.table().services.rollback().plan(at(2)), SYNC)
    builder.instant(at(7), "rollback", State.REQUESTED, plan)
    builder.instant(at(7), "rollback", State.INFLIGHT)
    assert len(builder.table().rollback_failed_writes()) == 1
    assert times(builder, "commit") == [at(1)]
    assert times(builder, "rollback") == [at(7)]


def test_rollback_under_way_waits_while_a_lease_does_not_decode(builder):
    """Its target is still visible, and the lease may be of a reader of those rows."""
    plan = codec.encode_rollback_plan(builder.table().services.rollback().plan(at(2)), SYNC)
    builder.instant(at(7), "rollback", State.REQUESTED, plan)
    builder.instant(at(7), "rollback", State.INFLIGHT)
    builder.storage.replace(f"{LEASES}/damaged.json", b"{")
    before = data_files(builder.storage)
    with pytest.raises(CorruptMetadata, match="lease release TABLE damaged"):
        builder.table().rollback_failed_writes()
    assert before == data_files(builder.storage)
    assert times(builder, "commit") == [at(1), at(2)]
    builder.table().release_lease("damaged")
    assert len(builder.table().rollback_failed_writes()) == 1
    assert times(builder, "commit") == [at(1)]


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
    with pytest.raises(RefusedError, match=f"only planned.*hudi-py cluster .*--cancel {at(3)}"):
        builder.table().rollback(at(3))


def test_plan_that_reads_the_commit_goes_with_it(builder):
    """A clustering that nobody has begun would rewrite files that are gone; it is planned again when it is due."""
    clustering(builder, at(3), State.REQUESTED)
    builder.table().rollback(at(2))
    assert not builder.table().timeline.pending()
    assert times(builder, "commit") == [at(1)]


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


def blocks_in(builder: TableBuilder) -> dict[str, list[str]]:
    """Log file to the writes that its rollback blocks take back."""
    found = {}
    for path, data in builder.storage.files().items():
        if ".log." in path:
            blocks = [block for block in iterate_log_blocks(data, path) if block.block_type is BlockType.COMMAND]
            found[path] = [block.header[HeaderKey.TARGET_INSTANT_TIME] for block in blocks]
    return found


def log_name(file_id: str, base: str, version: int, token: str = "0-1-0") -> str:
    return f"eu/.{file_id}_{base}.log.{version}_{token}"


def test_delta_commit_of_layout_1_gets_a_rollback_block():
    """B-20, B-20a: its log file stays, the next version takes it back; both are recorded with their sizes."""
    builder = merge_on_read()
    builder.log_files(at(3), [("eu", "a", at(1)), ("eu", "b", at(1))])
    metadata = builder.table().rollback(at(3))
    assert blocks_in(builder) == {
        log_name("a", at(1), 1): [],
        log_name("a", at(1), 2): [],
        log_name("a", at(1), 3, "1-0-1"): [at(3)],
        log_name("b", at(1), 1): [],
        log_name("b", at(1), 2, "1-0-1"): [at(3)],
    }
    done = metadata.partitions["eu"]
    sizes = {path: len(data) for path, data in builder.storage.files().items()}
    root = builder.storage.root + "/"
    assert {path.removeprefix(root): size for path, size in done.rollback_log_files.items()} == {
        path: sizes[path] for path in (log_name("a", at(1), 3, "1-0-1"), log_name("b", at(1), 2, "1-0-1"))
    }
    assert {f"eu/{name}": size for name, size in done.log_files_from_failed_commit.items()} == {
        path: sizes[path] for path in (log_name("a", at(1), 2), log_name("b", at(1), 1))
    }
    assert metadata.total_files_deleted == 0
    assert times(builder, "deltacommit") == [at(1), at(2)]
    assert [p for p in builder.storage.files() if ".hoodie/.temp/" in p] == []


def test_new_files_of_a_delta_commit_of_layout_1_are_deleted():
    """B.3: base files of its own, and log files whose slice it opened; only log files on older slices stay."""
    builder = merge_on_read()
    builder.log_files(at(3), [("eu", "a", at(1)), ("eu", "n", at(3))])
    metadata = builder.table().rollback(at(3))
    assert log_name("n", at(3), 1) not in builder.storage.files()
    assert metadata.total_files_deleted == 1
    assert blocks_in(builder)[log_name("a", at(1), 3, "1-0-1")] == [at(3)]


def test_log_files_of_rolled_back_writes_go_with_the_base_files_below_them():
    """Table B.3, layout 1: otherwise they would lie there as a slice of their own once the base files are gone."""
    builder = merge_on_read()
    builder.commit(at(3), {"eu": ["n"]}, action="deltacommit")
    builder.log_files(at(4), [("eu", "n", at(3))])
    builder.table().rollback(at(4))
    builder.table().rollback(at(3))
    assert not [path for path in data_files(builder.storage) if "/.n_" in path or "/n_" in path]


@pytest.mark.parametrize("form", ["direct", "timeline server", "none", "legacy"])
def test_failed_delta_commit_of_layout_1_is_found_by_markers_or_by_looking(form):
    """B.3, B-14a, B-14b, K-25: markers of both forms, of old writers, or none at all lead to the same rollback."""
    builder = merge_on_read()
    builder.log_files(at(3), [("eu", "a", at(1))], state=State.INFLIGHT)
    builder.put(f"eu/{builder.base_name('n', at(3))}")
    folder = f".hoodie/.temp/{at(3)}"
    marked = [
        f"{log_name('a', at(1), 2)}.marker.APPEND",
        f"eu/{builder.base_name('n', at(3))}.marker.CREATE",
    ]
    if form == "legacy":
        marked[0] = f"eu/{builder.base_name('a', at(1))}.marker.APPEND"
    if form in ("direct", "legacy"):
        for name in marked:
            builder.put(f"{folder}/{name}", b"")
    if form == "timeline server":
        builder.put(f"{folder}/MARKERS.type", b"TIMELINE_SERVER_BASED")
        builder.put(f"{folder}/MARKERS0", "".join(f"{name}\n" for name in marked).encode())
    (metadata,) = builder.table().rollback_failed_writes()
    assert blocks_in(builder) == {
        log_name("a", at(1), 1): [],
        log_name("a", at(1), 2): [],
        log_name("a", at(1), 3, "1-0-1"): [at(3)],
    }
    assert f"eu/{builder.base_name('n', at(3))}" not in builder.storage.files()
    assert list(metadata.partitions["eu"].log_files_from_failed_commit) == [log_name("a", at(1), 2)[3:]]
    assert not builder.table().timeline.pending()


def test_marker_of_a_log_file_that_was_never_written_needs_no_block():
    """B.3: the writer died between the two; there is nothing to take back."""
    builder = merge_on_read()
    builder.log_files(at(3), [], state=State.INFLIGHT)
    builder.put(f".hoodie/.temp/{at(3)}/{log_name('a', at(1), 2)}.marker.APPEND", b"")
    before = data_files(builder.storage)
    builder.table().rollback_failed_writes()
    assert before == data_files(builder.storage)


@pytest.mark.parametrize("name", [".a_{base}.log.1_0-1-0.cdc", "junk.txt"])
def test_marker_of_what_cannot_be_a_file_of_the_write_stops_the_rollback(name):
    """On doubt nothing is deleted: a change log of another write, no data file at all."""
    builder = merge_on_read()
    builder.log_files(at(3), [("eu", "a", at(1))], state=State.INFLIGHT)
    text = name.format(base=at(1))
    builder.put(f".hoodie/.temp/{at(3)}/eu/{text}.marker.APPEND", b"")
    before = builder.storage.files()
    with pytest.raises(CorruptMetadata, match="not a file of that write"):
        builder.table().rollback_failed_writes()
    assert before == builder.storage.files()


def stored(builder: TableBuilder, target: str, *requests: RollbackRequest, action: str = "deltacommit") -> None:
    """A rollback that somebody requested at hour 7."""
    plan = RollbackPlan(instant_to_rollback=InstantInfo(target, action), rollback_requests=requests)
    builder.instant(at(7), "rollback", State.REQUESTED, codec.encode_rollback_plan(plan, SYNC))


@pytest.mark.parametrize("release", ["0.15 markers", "listing", "listing of a pending write"])
def test_plans_of_real_hudi_are_carried_out(release):
    """B.3: log files by name with length 1, by full path, or only their folder where the name was unknown."""
    builder = merge_on_read()
    builder.log_files(at(3), [("eu", "a", at(1))], state=State.INFLIGHT)
    named = {
        "0.15 markers": log_name("a", at(1), 2)[3:],
        "listing": f"{builder.storage.root}/{log_name('a', at(1), 2)}",
        "listing of a pending write": f"{builder.storage.root}/eu",
    }[release]
    request = RollbackRequest(
        partition_path="eu", file_id="a", latest_base_instant=at(1), log_blocks_to_be_deleted={named: 1}
    )
    stored(builder, at(3), request)
    (metadata,) = builder.table().rollback_failed_writes()
    assert blocks_in(builder)[log_name("a", at(1), 3, "1-0-1")] == [at(3)]
    failed = metadata.partitions["eu"].log_files_from_failed_commit
    size = len(builder.storage.read(log_name("a", at(1), 2)))
    assert failed == ({} if release == "listing of a pending write" else {log_name("a", at(1), 2)[3:]: size})


@pytest.mark.parametrize("layout", [1, 2])
def test_plan_with_blocks_in_strange_places_is_refused(layout):
    """Layout 2 has no rollback blocks; in layout 1 they belong into the slice that the request names."""
    builder = merge_on_read(layout)
    builder.log_files(at(3), [("eu", "a", at(1))], state=State.INFLIGHT)
    name = f".a_{at(3) if layout == 2 else at(1)}.log.1_0-1-0"
    file_id = "a" if layout == 2 else "b"
    stored(
        builder,
        at(3),
        RollbackRequest(
            partition_path="eu", file_id=file_id, latest_base_instant=at(1), log_blocks_to_be_deleted={name: 1}
        ),
    )
    before = data_files(builder.storage)
    with pytest.raises(RefusedError, match="rollback blocks"):
        builder.table().rollback_failed_writes()
    assert before == data_files(builder.storage)


def test_log_files_of_an_earlier_attempt_are_recorded_and_not_written_again():
    """B-21: found by the markers of the rollback; one that was cut short by Hudi is listed, and a whole one follows."""
    builder = merge_on_read()
    builder.log_files(at(3), [("eu", "a", at(1))], state=State.INFLIGHT)
    name = log_name("a", at(1), 2)[3:]
    stored(
        builder,
        at(3),
        RollbackRequest(
            partition_path="eu", file_id="a", latest_base_instant=at(1), log_blocks_to_be_deleted={name: 1}
        ),
    )
    torn = encode_rollback_block(at(7), at(3))[:-9]
    for version, data in ((3, torn), (4, encode_rollback_block(at(7), at(3)))):
        builder.put(log_name("a", at(1), version, "1-0-1"), data)
        builder.put(f".hoodie/.temp/{at(7)}/{log_name('a', at(1), version, '1-0-1')}.marker.APPEND", b"")
    (metadata,) = builder.table().rollback_failed_writes()
    logs = metadata.partitions["eu"].rollback_log_files
    assert sorted(path.rpartition("/")[2] for path in logs) == [
        log_name("a", at(1), version, "1-0-1")[3:] for version in (3, 4)
    ]
    assert [time for times in blocks_in(builder).values() for time in times] == [at(3)]


def compacted(layout: int) -> TableBuilder:
    """A completed compaction of group a."""
    builder = merge_on_read(layout)
    builder.compaction(at(3), [("eu", "a", at(1), [])])
    builder.instant(at(3), "compaction", State.INFLIGHT)
    builder.put(f"eu/{builder.base_name('a', at(3))}")
    stat = WriteStat(
        file_id="a", path=f"eu/{builder.base_name('a', at(3))}", partition_path="eu", prev_commit=at(1), num_writes=1
    )
    metadata = CommitMetadata(partition_to_write_stats={"eu": (stat,)}, operation_type="COMPACT")
    content = encode_commit(metadata, as_json=layout == 1, sync=SYNC)
    builder.instant(at(3), "commit", State.COMPLETED, content)
    return builder


@pytest.mark.parametrize("layout", [1, 2])
def test_completed_compaction_goes_with_its_plan(layout):
    """B-18, B-22: its base files and all its instants go, as in Hudi; the slice below is the newest again."""
    builder = compacted(layout)
    builder.table().rollback(at(3))
    assert [i for i in builder.table().timeline if i.requested_time == at(3)] == []
    (newest, *_) = builder.table().partition("eu").groups[0].slices
    assert (newest.base_instant_time, len(newest.log_files)) == (at(1), 1)


@pytest.mark.parametrize("layout", [1, 2])
def test_rollback_of_a_completed_compaction_is_finished_by_whoever_comes_next(layout):
    """B-7: once inflight it is no rollback of a pending compaction, which would be left alone."""
    builder = compacted(layout)
    plan = codec.encode_rollback_plan(builder.table().services.rollback().plan(at(3)), SYNC)
    builder.instant(at(7), "rollback", State.REQUESTED, plan)
    builder.instant(at(7), "rollback", State.INFLIGHT)
    builder.table().contents.store.reopen(builder.table().timeline.find(at(3), Action.COMMIT))
    assert len(builder.table().rollback_failed_writes()) == 1
    assert [i for i in builder.table().timeline if i.requested_time == at(3)] == []


def test_compaction_under_log_files_is_refused():
    """Layout 1: they carry its time and would hide the slice below once it is gone."""
    builder = compacted(1)
    builder.log_files(at(4), [("eu", "a", at(3))])
    builder.table().rollback(at(4))
    before = builder.storage.files()
    with pytest.raises(RefusedError, match="restore to a savepoint"):
        builder.table().rollback(at(3))
    assert before == builder.storage.files()


@pytest.mark.parametrize("layout", [1, 2])
def test_inflight_log_compaction_goes_back_to_its_plan(layout):
    """B-25: what it wrote is taken back as that of a delta commit; the plan stays."""
    builder = merge_on_read(layout)
    builder.instant(at(3), "logcompaction", State.REQUESTED, codec.encode_compaction_plan(CompactionPlan(), sync=SYNC))
    builder.instant(at(3), "logcompaction", State.INFLIGHT)
    stamp = at(1) if layout == 1 else at(3)
    name = log_name("a", stamp, 2)
    header = {int(HeaderKey.INSTANT_TIME): at(3)}
    builder.put(name, encode_log_block(LogBlock(BlockType.AVRO_DATA, header, b"rows")))
    builder.table().rollback(at(3))
    found = builder.table().timeline.find(at(3), Action.LOG_COMPACTION)
    assert found.state is State.REQUESTED
    if layout == 1:
        assert blocks_in(builder)[log_name("a", at(1), 3, "1-0-1")] == [at(3)]
    else:
        assert name not in builder.storage.files()


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

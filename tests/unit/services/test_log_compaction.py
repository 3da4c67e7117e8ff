"""Log compactions planned and carried out on tables of ours; beside writers, compactions and rollbacks."""

import attrs
import pyarrow as pa
import pytest

from hudi_py.errors import ConfigError, RefusedError
from hudi_py.formats.log_block import HeaderKey, encode_log_block, iterate_log_blocks
from hudi_py.model.instant import Action
from support.writes import SCHEMA, create_table, merged_rows_of, open_table, upsert

SETTINGS = {
    "hoodie.index.bloom.num_entries": 100,
    "hoodie.metadata.enable": True,
    "hoodie.log.compaction.blocks.threshold": 3,
    "hoodie.clean.automatic": False,
    "hoodie.archive.automatic": False,
}
VERSIONS = pytest.mark.parametrize("version", [6, 9])
DELETED = {"id": "y", "region": "eu", "ts": 0}


def row(key, ts, region="eu"):
    return {"id": key, "region": region, "ts": ts}


def table_with_logs(version, **settings):
    """One file group with three log files: updates, a deletion, an update of what came before; one group with one."""
    storage = create_table(version, **{"hoodie.table.type": "MERGE_ON_READ"})
    used = SETTINGS | settings
    upsert(storage, [row("a", 1), row("b", 1), DELETED, row("c", 1, "us")], **used)
    upsert(storage, [row("a", 3), row("c", 2, "us")], **used)
    upsert(storage, [DELETED], operation="DELETE", **used)
    upsert(storage, [row("b", 2)], **used)
    return storage


def rows_by_id(storage, **how):
    return sorted(merged_rows_of(storage, **how), key=lambda each: each["id"])


def opened(storage, **more):
    return open_table(storage, **SETTINGS, **more)


def sound(storage):
    return not [str(each) for each in open_table(storage).check() if each.severity.name != "INFO"]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_log_files_that_delete_are_left_out_where_hudi_could_not_read_them_again(version):
    """Hudi 1.0.2 fails on a slice in which a key is deleted twice, as it is beside a merged block."""
    storage = table_with_logs(version)
    outlook = opened(storage).services.log_compaction().plan()
    assert outlook.would_schedule is (version != 8)
    if version == 8:
        assert any("delete keys" in each.reason for each in outlook.left)
        for ts in (4, 5, 6):
            upsert(storage, [row("c", ts, "us")], **SETTINGS)
        (done,) = opened(storage).compact_logs()
        assert set(done.metadata.partition_to_write_stats) == {"us"}
        assert [each["ts"] for each in rows_by_id(storage)] == [3, 2, 6]
        assert sound(storage)


@VERSIONS
@pytest.mark.parametrize("block", ["avro", "parquet"])
def test_rows_are_the_same_and_one_file_stands_for_all(version, block):
    """Only the group with enough blocks; as of earlier times, too; the merged file names what it stands for."""
    more = {"hoodie.logfile.data.block.format": block}
    storage = table_with_logs(version, **more)
    table = opened(storage, **more)
    before = rows_by_id(storage)
    times = [each.requested_time for each in table.timeline.completed(Action.DELTA_COMMIT)]
    earlier = {time: rows_by_id(storage, as_of=time) for time in times}
    (done,) = table.compact_logs()
    assert (done.file_groups, done.rows) == (1, 2)
    assert rows_by_id(storage) == before
    assert {time: rows_by_id(storage, as_of=time) for time in times} == earlier
    found = table.timeline.find(done.instant, Action.DELTA_COMMIT)
    commit = table.contents.commit(found)
    assert commit.operation_type == "LOG_COMPACT"
    (stat,) = commit.partition_to_write_stats["eu"]
    headers = [each.header for each in iterate_log_blocks(storage.read(stat.path), stat.path)]
    assert {header[HeaderKey.COMPACTED_BLOCK_TIMES] for header in headers} == {",".join(times[1:])}
    assert (stat.num_deletes, stat.total_log_files_compacted) == (1, 3)
    assert sound(storage)
    assert not opened(storage).compact_logs()


@VERSIONS
def test_many_blocks_that_one_log_compaction_wrote_are_not_merged_again(version):
    """Of many rows it writes several; counted, they would be due for ever."""
    storage = table_with_logs(version)
    before = rows_by_id(storage)
    little = {"hoodie.memory.compaction.max.size": 4}
    (done,) = opened(storage, **little).compact_logs()
    (path,) = (stat.path for stat in done.metadata.partition_to_write_stats["eu"])
    assert len(list(iterate_log_blocks(storage.read(path), path))) >= 3
    left = opened(storage).services.log_compaction().plan().left
    assert [each.reason for each in left if each.partition_path == "eu"] == (
        ["a log compaction has merged all of its log blocks"] if version == 6 else []  # in version 9 nothing is due
    )
    assert not opened(storage, **little).compact_logs()
    upsert(storage, [row("a", 9)], **SETTINGS)
    opened(storage, **little).compact_logs()
    assert rows_by_id(storage)[1:] == before[1:]
    assert sound(storage)


@VERSIONS
def test_later_writes_and_compactions_go_on_from_it(version):
    """Updates behind the merged block win, a second log compaction takes it up, a compaction merges all of it."""
    storage = table_with_logs(version)
    opened(storage).compact_logs()
    for ts in (5, 6, 7):
        upsert(storage, [row("a", ts), row("b", ts)], **SETTINGS)
    upsert(storage, [row("b", 8)], operation="DELETE", **SETTINGS)
    after = rows_by_id(storage)
    assert [(each["id"], each["ts"]) for each in after] == [("a", 7), ("c", 2)]
    (second,) = opened(storage).compact_logs()
    assert rows_by_id(storage) == after
    assert second.file_groups == 1
    opened(storage, **{"hoodie.compact.inline.max.delta.commits": 1}).compact()
    assert rows_by_id(storage) == after
    opened(storage).clean(commits_retained=1)
    assert rows_by_id(storage) == after
    assert sound(storage)


@VERSIONS
def test_a_rollback_of_it_shows_the_blocks_before(version):
    """Nothing but the merged block goes, and the commits that it stood for can be rolled back after it."""
    storage = table_with_logs(version)
    before = rows_by_id(storage)
    (done,) = opened(storage).compact_logs()
    table = opened(storage)
    table.rollback(done.instant)
    assert rows_by_id(storage) == before
    last = table.timeline.completed(Action.DELTA_COMMIT)[-1]
    table.rollback(last.requested_time)
    assert [each["ts"] for each in rows_by_id(storage) if each["id"] == "b"] == [1]
    assert sound(storage)


@VERSIONS
def test_a_plan_is_stored_carried_out_or_withdrawn(version):
    """Stored alone it changes nothing; writes may go on beside it; cancelled it is gone."""
    storage = table_with_logs(version)
    before = rows_by_id(storage)
    time = opened(storage).schedule_log_compaction()
    assert opened(storage).timeline.pending(Action.LOG_COMPACTION)[0].requested_time == time
    assert rows_by_id(storage) == before
    assert opened(storage).schedule_log_compaction() is None
    opened(storage).cancel_log_compaction(time)
    assert not opened(storage).timeline.pending()
    with pytest.raises(ConfigError, match="no pending log compaction"):
        opened(storage).compact_logs(instant=time)


@VERSIONS
def test_writes_after_the_plan_stay_behind_the_merged_block(version):
    """In layout 2 the plan is carried out; in layout 1, where files are numbered as they come, it is made anew."""
    storage = table_with_logs(version)
    time = opened(storage).schedule_log_compaction()
    upsert(storage, [row("a", 9), row("b", 9)], **SETTINGS)
    if version == 6:
        with pytest.raises(RefusedError, match="since"):
            opened(storage).compact_logs(instant=time)
    done = opened(storage).compact_logs()[0]
    assert (done.instant == time) is (version != 6)
    assert [(each["id"], each["ts"]) for each in rows_by_id(storage)] == [("a", 9), ("b", 9), ("c", 2)]
    assert not opened(storage).timeline.pending()
    assert sound(storage)


@VERSIONS
def test_a_later_compaction_takes_its_place(version):
    """It merges the same files (E-6), and the pending log compaction is refused by name, then withdrawn (E-25)."""
    storage = table_with_logs(version)
    before = rows_by_id(storage)
    time = opened(storage).schedule_log_compaction()
    plan = {"hoodie.compact.inline.max.delta.commits": 1}
    assert opened(storage, **plan).schedule_compaction()
    with pytest.raises(RefusedError, match="merges its log files itself"):
        opened(storage).compact_logs(instant=time)
    assert opened(storage).compact_logs() == []
    (done,) = opened(storage, **plan).compact()
    assert done.file_groups == 2
    assert rows_by_id(storage) == before
    assert not opened(storage).timeline.pending()
    assert sound(storage)


@pytest.mark.parametrize("copies", [1, 2])
def test_copies_of_a_key_that_positions_change_are_left_to_compactions(copies):
    """A merged block has no positions, and would change the first row of the key only: old rows would be shown."""
    used = SETTINGS | {"hoodie.metadata.enable": False, "hoodie.log.compaction.blocks.threshold": 2}
    storage = create_table(9, **{"hoodie.table.type": "MERGE_ON_READ"})
    rows = pa.Table.from_pylist([row("a", 1)] * copies + [row("b", 1)], schema=SCHEMA)
    open_table(storage, **used).bulk_insert(rows)
    for ts in (2, 3):
        upsert(storage, [row("a", ts)], **used)
    (file_slice,) = open_table(storage).file_slices("eu")
    known = {HeaderKey.RECORD_POSITIONS: "x"}
    known[HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS] = file_slice.base_instant_time
    # Over copies our log files tell positions themselves; over unique keys only those of Apache Hudi do.
    for log in file_slice.log_files if copies == 1 else ():
        blocks = iterate_log_blocks(storage.read(f"eu/{log.name}"), log.name)
        told = [attrs.evolve(each, header={**each.header, **{int(k): v for k, v in known.items()}}) for each in blocks]
        storage.delete_many([f"eu/{log.name}"])
        storage.create_new(f"eu/{log.name}", b"".join(map(encode_log_block, told)))
    before = rows_by_id(storage)
    assert [each["ts"] for each in before] == [3] * copies + [1]
    outlook = open_table(storage, **used).services.log_compaction().plan()
    assert outlook.would_schedule is (copies == 1)
    assert all("several times" in each.reason for each in outlook.left)
    open_table(storage, **used).compact_logs()
    assert rows_by_id(storage) == before

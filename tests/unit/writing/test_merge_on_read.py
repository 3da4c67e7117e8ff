"""Merge-on-read tables written without Spark: rows against a dictionary, and what stands in their files and commits."""

from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.config.settings import Settings
from hudi_py.engine.inline import LocalEngine
from hudi_py.formats.delete_block import decode_delete_block
from hudi_py.formats.log_block import BlockType, HeaderKey, iterate_log_blocks
from hudi_py.local.rows import ArrowRows
from hudi_py.model.files import parse_log_file
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.local import LocalStorage
from hudi_py.write_service import WriteService
from support import writes
from support.fixtures import unpack_rows
from support.laws import examples

MOR = {"hoodie.table.type": "MERGE_ON_READ"}
SMALL = {"hoodie.index.bloom.num_entries": 100}
IDS = "abcdefgh"
KEYS = st.lists(st.sampled_from([(name, region) for name in IDS for region in ("eu", "us")]), unique=True, max_size=6)
STEPS = st.lists(st.tuples(st.sampled_from(["UPSERT", "UPSERT", "DELETE", "INSERT"]), KEYS), min_size=2, max_size=6)


def create(version, storage=None, **more):
    return writes.create_table(version, storage, **MOR, **more)


def rows_for(keys, ts):
    return [{"id": name, "region": region, "ts": ts} for name, region in keys]


def ordered(model):
    return sorted(model.values(), key=lambda row: (row["region"], row["id"]))


@examples(16)
@given(
    STEPS,
    st.sampled_from([6, 8, 9]),
    st.booleans(),
    st.sampled_from([0, 104_857_600]),
    st.sampled_from(["avro", "parquet"]),
)
def test_any_sequence_of_writes_gives_the_rows_of_a_dictionary(steps, version, has_metadata, small_file_limit, form):
    """Now, at the time of each commit, and as the sum of what changed since each; the check finds nothing."""
    settings = {"hoodie.metadata.enable": has_metadata, "hoodie.parquet.small.file.limit": small_file_limit, **SMALL}
    settings["hoodie.logfile.data.block.format"] = form
    storage, model, states = create(version), {}, []
    for ts, (operation, keys) in enumerate(steps, 1):
        rows = rows_for(keys, ts)
        if operation == "INSERT":
            rows = [row for row in rows if (row["id"], row["region"]) not in model]
        if operation == "DELETE" and not states:
            continue
        writes.upsert(storage, rows, operation=operation, **settings)
        for row in rows:
            if operation == "DELETE":
                model.pop((row["id"], row["region"]), None)
            else:
                model[row["id"], row["region"]] = row
        newest = writes.open_table(storage).timeline.completed("deltacommit")[-1]
        states.append((newest.completion_time or newest.requested_time, newest.requested_time, dict(model)))
    for completed, requested, state in states:
        assert writes.merged_rows_of(storage, as_of=requested, **settings) == ordered(state)
        later = writes.open_table(storage).changes(completed, with_deletes=True).to_arrow().to_pylist()
        for row in later:
            key = (row["id"], row["region"])
            if row["_hoodie_is_deleted"]:
                del state[key]
        for row in later:
            if not row["_hoodie_is_deleted"]:
                state[row["id"], row["region"]] = {name: row[name] for name in writes.SCHEMA.names}
        assert state == model
    writes.assert_tidy(storage, steps)
    assert not [str(each) for each in writes.open_table(storage, **settings).check()]


def log_files(storage):
    return {
        path: (parse_log_file(path.rpartition("/")[2]), list(iterate_log_blocks(data, path)))
        for path, data in storage.files().items()
        if ".log." in path and not path.startswith(".hoodie/")
    }


@pytest.mark.parametrize("version", [6, 8, 9])
def test_log_files_and_stats_are_those_of_the_release(version):
    """
    Names, versions and base instants of log files, their blocks, and what the delta commits say of them.

    Compared with tables of Hudi 0.15.0, 1.0.2 and 1.1.1 (fixtures ``mor_logs``): rules/data-files 8, 9.1, 9.2.
    """
    storage, in_layout_1 = create(version), version == 6
    writes.upsert(storage, rows_for([("a", "eu"), ("b", "eu")], 1))
    writes.upsert(storage, rows_for([("a", "eu")], 2))
    writes.upsert(storage, rows_for([("b", "eu")], 1), operation="DELETE")
    first, second, third = (i.requested_time for i in writes.open_table(storage).timeline.completed("deltacommit"))

    files = sorted(log_files(storage).items(), key=lambda item: item[1][0].order)
    assert [log.instant_time for _, (log, _) in files] == ([first, first] if in_layout_1 else [second, third])
    assert [log.version for _, (log, _) in files] == ([1, 2] if in_layout_1 else [1, 1])
    (data,), (gone,) = (blocks for _, (_, blocks) in files)
    assert (data.block_type, gone.block_type) == (BlockType.AVRO_DATA, BlockType.DELETE)
    assert [block.header[HeaderKey.INSTANT_TIME] for block in (data, gone)] == [second, third]
    assert [(each.record_key, each.ordering) for each in decode_delete_block(gone.content, "x")] == [("b", ())]

    table = writes.open_table(storage)
    stats = [
        stat
        for instant in table.timeline.completed("deltacommit")[1:]
        for of_partition in table.contents.commit(instant).partition_to_write_stats.values()
        for stat in of_partition
    ]
    names = [path.rpartition("/")[2] for path, _ in files]
    assert [stat.log_files for stat in stats] == ([(names[0],), tuple(names)] if in_layout_1 else [*zip(names)])
    assert [stat.prev_commit for stat in stats] == ([first, first] if in_layout_1 else [second, third])
    assert [bool(stat.base_file) for stat in stats] == [in_layout_1, in_layout_1]
    assert [(stat.num_writes, stat.num_update_writes, stat.num_deletes) for stat in stats] == [(1, 1, 0), (0, 0, 1)]
    assert all(stat.file_size_in_bytes == storage.size(stat.path) for stat in stats)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_inserts_fill_the_smallest_group_without_log_files(version):
    """It gets a new base file with the updates of that write in it; a group with log files gets none (E-51)."""
    storage = create(version)
    writes.upsert(storage, rows_for([("a", "eu")], 1))
    writes.upsert(storage, rows_for([("a", "eu"), ("b", "eu")], 2))
    assert not log_files(storage)
    writes.upsert(storage, rows_for([("a", "eu")], 3))
    writes.upsert(storage, rows_for([("c", "eu")], 4))
    groups = {path.rpartition("/")[2].partition("_")[0] for path in storage.files() if path.endswith(".parquet")}
    assert len(groups) == 2
    assert [row["ts"] for row in writes.merged_rows_of(storage)] == [3, 2, 4]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_key_that_was_deleted_and_inserted_again_is_one_row(version):
    """Its base file still holds it, and an insert puts it into another one: updates and deletes find the row there."""
    storage, settings = create(version), {"hoodie.parquet.small.file.limit": 0, **SMALL}
    row = [("a", "eu")]
    writes.upsert(storage, rows_for([*row, ("b", "eu")], 1), **settings)
    writes.upsert(storage, rows_for(row, 1), operation="DELETE", **settings)
    writes.upsert(storage, rows_for(row, 2), operation="INSERT", **settings)
    writes.upsert(storage, rows_for(row, 3), **settings)
    assert [row["ts"] for row in writes.merged_rows_of(storage)] == [3, 1]
    writes.upsert(storage, rows_for(row, 4), operation="DELETE", **settings)
    assert [row["id"] for row in writes.merged_rows_of(storage)] == ["b"]
    writes.upsert(storage, rows_for(row, 5), **settings)
    assert [row["ts"] for row in writes.merged_rows_of(storage)] == [5, 1]


FLAGGED = pa.schema([*writes.SCHEMA, ("_hoodie_is_deleted", pa.bool_())])


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_flagged_delete_carries_its_ordering_value(version):
    """An older one is passed over where the table orders rows by event time, as by Hudi; a newer one deletes."""
    payload = {"hoodie.datasource.write.payload.class": "DefaultHoodieRecordPayload"} if version == 6 else {}
    storage = create(version, **payload)

    def write(*rows):
        table = pa.Table.from_pylist([dict(zip(FLAGGED.names, row, strict=True)) for row in rows], schema=FLAGGED)
        writes.write(storage, ArrowRows(table), writes.open_table(storage), "UPSERT")

    write(("a", "eu", 5, False), ("b", "eu", 5, False))
    write(("a", "eu", 6, True), ("b", "eu", 4, True), ("z", "eu", 9, True))
    ((_, blocks),) = log_files(storage).values()
    (gone,) = blocks
    deleted = {each.record_key: each.ordering for each in decode_delete_block(gone.content, "x")}
    assert deleted == {"a": (("long", 6),), "b": (("long", 4),)}
    left = [row["id"] for row in writes.merged_rows_of(storage)]
    assert left == ([] if version == 6 else ["b"])  # in version 6 a delete always wins over the base file


@pytest.mark.parametrize("release", ["0.15.0", "1.1.1"])
def test_keys_that_other_writers_put_into_log_files_are_found(release, tmp_path):
    """
    An index that knows log files sends new rows there: updates of them replace them, and are no second rows.

    So it is in the fixture, of Hudi's in-memory index; a compaction in the middle, and file groups without base file.
    """
    storage = LocalStorage(str(unpack_rows(f"mor_event_time-{release}", tmp_path)))
    before = writes.open_table(storage).rows().to_arrow()
    newer = before.set_column(
        before.schema.get_field_index("ts"), "ts", pc.add(before.column("ts"), pa.scalar(10_000, pa.int64()))
    )
    clock = FixedClock(datetime(2026, 6, 1, tzinfo=timezone.utc))
    WriteService(storage, Settings(writes.ALONE), clock, LocalEngine).write(ArrowRows(newer), "UPSERT")
    after = writes.open_table(storage).rows().to_arrow()
    assert sorted(after.column("id").to_pylist()) == sorted(before.column("id").to_pylist())
    assert after.sort_by("id").column("ts").to_pylist() == newer.sort_by("id").column("ts").to_pylist()


@pytest.mark.parametrize("version", [6, 9])
def test_log_files_are_compacted_among_themselves_after_commits(version):
    """``hoodie.log.compaction.inline``: once a slice has enough log blocks, and not before; the rows stay."""
    settings = SMALL | {"hoodie.log.compaction.inline": True, "hoodie.log.compaction.blocks.threshold": 3}
    storage = create(version)
    done = []
    for ts in range(1, 6):
        writes.upsert(storage, rows_for([("a", "eu"), ("b", "eu")], ts), **settings)
        assert [row["ts"] for row in writes.merged_rows_of(storage)] == [ts, ts]
        table = writes.open_table(storage)
        commits = map(table.contents.commit, table.timeline.completed("deltacommit"))
        done.append([each for each in commits if each.operation_type == "LOG_COMPACT"])
    assert [len(each) for each in done] == [0, 0, 0, 1, 1]
    assert [stat.total_log_files_compacted for stat in done[-1][0].partition_to_write_stats["eu"]] == [3]


@pytest.mark.parametrize("version", [6, 9])
def test_many_changes_of_a_file_group_are_several_blocks_of_one_file(version, monkeypatch):
    """In little memory; every row once, with a sequence number of its own."""
    storage = writes.create_table(version, **{"hoodie.table.type": "MERGE_ON_READ"})
    old = [{"id": f"k{number}", "region": "eu", "ts": 1} for number in range(50)]
    writes.upsert(storage, old)
    monkeypatch.setattr("hudi_py.rows.log_file._PIECE_BYTES_MAX", 100)
    new = [{**row, "ts": 2} for row in old[10:]]
    writes.upsert(storage, new)
    (path,) = (path for path in storage.files() if ".log." in path and not path.startswith(".hoodie/"))
    assert len(list(iterate_log_blocks(storage.read(path), path))) > 2
    assert writes.merged_rows_of(storage) == sorted(old[:10] + new, key=lambda row: row["id"])
    stored = writes.open_table(storage).rows(with_meta=True).to_arrow()
    assert len(stored.column("_hoodie_commit_seqno").unique()) == len(old)

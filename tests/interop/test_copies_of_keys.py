"""Keys that bulk inserts wrote several times: no old row is shown, or stays, where Hudi shows or leaves another."""

import shutil

import pyarrow as pa
import pytest
from real_hudi import canonical_rows

import hudi_py
from hudi_py.storage.local import LocalStorage
from support.indexes import places

pytestmark = pytest.mark.oracle

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.parquet.small.file.limit": 0,
    "hoodie.clean.automatic": False,
    "hoodie.compact.inline": False,
}
INDEXES = ("GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX")
FORGETS_PLACES = ("1.1.1", "1.2.0")
"""Where rows stay in their partition, they insert an update that names another one, and leave the row as it was."""


def rows(*values):
    keys, regions, times = zip(*(each.split("/") for each in values), strict=True)
    return pa.table({"id": keys, "region": regions, "ts": pa.array(map(int, times), pa.int64())})


def shown(peer, path):
    """Rows without repetitions: of a key that moves, Hudi makes as many rows as it found, we make one."""
    return {(row["_hoodie_record_key"], row["_hoodie_partition_path"], row["ts"]) for row in peer.read(path, meta=True)}


@pytest.mark.parametrize("moves", [False, True], ids=["staying", "moving"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_each_index_meets_the_rows_that_hudi_meets(kind, moves, peer, tmp_path):
    """Of two tables that Hudi made, each side changes one in the same way: the same rows are left."""
    for index in INDEXES:
        theirs, ours = tmp_path / f"{index}-theirs", tmp_path / f"{index}-ours"
        settings = SETTINGS | {"hoodie.index.type": index, "hoodie.datasource.write.table.type": kind}
        settings |= {"hoodie.write.table.version": peer.table_version}
        settings |= {f"hoodie.{each}.index.update.partition.path": moves for each in ("simple", "bloom", "record")}
        kept = index == "RECORD_INDEX"
        settings |= {"hoodie.metadata.enable": kept, "hoodie.metadata.record.index.enable": kept}
        for each in (["a/eu/1", "m/eu/1", "d/eu/1", "z/eu/1"], ["a/eu/2", "d/eu/2"], ["a/us/3", "m/us/3", "d/us/3"]):
            peer.write(theirs, rows(*each), "bulk_insert", settings)
        shutil.copytree(theirs, ours)
        for operation, given in (("upsert", ["a/eu/9", "n/ap/9"]), ("delete", ["d/eu/9"]), ("upsert", ["m/ap/9"])):
            peer.write(theirs, rows(*given), operation, settings)
            hudi_py.write(str(ours), rows(*given), operation=operation, settings=settings)
            found, keys = shown(peer, ours), {each.partition("/")[0] for each in given}
            others = shown(peer, theirs)
            if index != "RECORD_INDEX" and peer.version in FORGETS_PLACES and kind == "MERGE_ON_READ" and not moves:
                # the rows that it leaves beside the new ones of these keys
                others -= {row for row in others if row[0] in keys and row[2] < 9}
            if index == "RECORD_INDEX" or not moves:
                assert found == others, (index, operation, given)
            else:  # 1.1.1 leaves an old row of a key that moves to a partition where it has one
                assert found <= others, (index, operation, given)
                assert {ts for key, _, ts in found if key in keys} <= {9}, (index, operation, given)


@pytest.mark.parametrize("index", INDEXES[:2])
def test_an_update_that_names_another_partition_leaves_one_row(peer, tmp_path, index):
    """Of a key given once. 1.1.1 and 1.2.0 leave the old row, too: they forget in which file group they found it."""
    settings = SETTINGS | {"hoodie.index.type": index, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    settings |= {"hoodie.write.table.version": peer.table_version, "hoodie.metadata.enable": False}
    settings |= {f"hoodie.{each}.index.update.partition.path": False for each in ("simple", "bloom")}
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    peer.write(theirs, rows("a/eu/1", "b/eu/1"), "bulk_insert", settings)
    shutil.copytree(theirs, ours)
    peer.write(theirs, rows("a/us/4"), "upsert", settings)
    hudi_py.write(str(ours), rows("a/us/4"), operation="upsert", settings=settings)
    expected = {("a", "eu", 4), ("b", "eu", 1)}
    assert shown(peer, ours) == expected
    left = {("a", "eu", 1)} if peer.version in FORGETS_PLACES else set()
    assert shown(peer, theirs) == expected | left


INCREMENTAL = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": "0"}
IN_ONE_FILE = SETTINGS | {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "SIMPLE",
    "hoodie.metadata.enable": False,
    "hoodie.bulkinsert.shuffle.parallelism": 1,
    "hoodie.compact.inline.max.delta.commits": 1,
}


def ours(table, **asked):
    read = table.changes("0") if asked else table.rows()
    return canonical_rows(row for batch in read for row in batch.to_pylist())


@pytest.mark.parametrize("positions", [(True, True), (False, False), (True, False)], ids=["with", "without", "mixed"])
@pytest.mark.parametrize("mode", ["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"])
def test_log_files_over_copies_in_one_base_file_are_merged_as_hudi_does(peer, tmp_path, mode, positions):
    """
    1.0.2, 1.1.1 and 1.2.0 change each row of a key if the log files give positions, else the first one.

    0.15.0 reads the first one changed and the others old; its compaction changes them all. So do we, on its tables.
    """
    path = tmp_path / "t"
    settings = IN_ONE_FILE | {"hoodie.write.table.version": peer.table_version}
    if peer.table_version == 6:
        payload = "DefaultHoodieRecordPayload" if mode.startswith("EVENT") else "OverwriteWithLatestAvroPayload"
        settings["hoodie.datasource.write.payload.class"] = f"org.apache.hudi.common.model.{payload}"
    else:
        settings["hoodie.record.merge.mode"] = mode
        if mode.startswith("COMMIT"):  # else 1.1.1 refuses an ordering field
            settings["hoodie.datasource.write.payload.class"] = (
                "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
            )
    peer.write(path, rows("a/eu/1", "k/eu/1", "k/eu/5", "k/eu/3", "z/eu/1"), "bulk_insert", settings)
    assert len(list((path / "eu").glob("*.parquet"))) == 1
    steps = [("upsert", "k/eu/4", positions[0]), ("upsert", "a/eu/9", positions[1])]
    if peer.version != "1.1.1":  # which fails to delete a key that it finds several times
        steps.append(("delete", "k/eu/9", positions[1]))
    for operation, given, has_positions in steps:
        peer.write(path, rows(given), operation, settings | {"hoodie.write.record.positions": has_positions})
        assert ours(hudi_py.open_table(path)) == peer.read(path), given
        assert ours(hudi_py.open_table(path), start="0") == peer.read(path, options=INCREMENTAL), given
        theirs, compacted = (shutil.copytree(path, tmp_path / f"{given[0]}-{operation}-{n}") for n in "to")
        peer.carry_out(theirs, "COMPACT", peer.schedule(theirs, "COMPACT", settings), settings)
        hudi_py.open_table(compacted, settings={"hoodie.compact.inline.max.delta.commits": 1}).compact()
        assert ours(hudi_py.open_table(compacted)) == peer.read(compacted) == peer.read(theirs), given


@pytest.mark.parametrize("last", [("delete", "a/us/9"), ("insert_overwrite", "x/us/9"), ("delete", "a/eu/9")])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_record_index_loses_a_key_with_one_of_its_rows(peer, tmp_path, kind, last):
    """Of a key in two partitions, the second one written last. The index of Hudi has no more keys than ours."""
    settings = SETTINGS | {"hoodie.datasource.write.table.type": kind, "hoodie.index.type": "SIMPLE"}
    settings |= {"hoodie.write.table.version": peer.table_version, "hoodie.metadata.enable": True}
    settings |= {f"hoodie.metadata.{each}.enable": True for each in ("record.index", "global.record.level.index")}
    theirs, ours_path = tmp_path / "theirs", tmp_path / "ours"
    peer.write(theirs, rows("a/eu/1", "b/eu/1"), "bulk_insert", settings)
    peer.write(theirs, rows("a/us/4", "c/us/1"), "upsert", settings)
    shutil.copytree(theirs, ours_path)
    operation, given = last
    peer.write(theirs, rows(given), operation, settings)
    hudi_py.write(str(ours_path), rows(given), operation=operation, settings=settings)
    assert shown(peer, ours_path) == shown(peer, theirs)
    known = [places(LocalStorage(str(each))).keys() for each in (theirs, ours_path)]
    assert "a" not in known[0]
    assert known[1] - known[0] == ({"a"} if given == "a/eu/9" else set())
    assert known[0] <= known[1]

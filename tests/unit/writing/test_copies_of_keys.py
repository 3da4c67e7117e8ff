"""
Keys that several rows have, because a bulk insert looks up none: a later write meets each of them.

So does real Hudi with the indexes SIMPLE and BLOOM: 1.1.1 left no row after the delete and two changed ones after the
upsert, on tables with a record index too. GLOBAL_SIMPLE and GLOBAL_BLOOM meet those of all partitions; where rows move,
1.1.1 makes several of them, hudi_py one. RECORD_INDEX knows the last one only, for both.
"""

import itertools

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.errors import RefusedError
from hudi_py.storage.local import LocalStorage
from support.indexes import places

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.metadata.record.index.enable": True,
}
LARGE = {"hoodie.memory.merge.max.size": 4}
"""Nothing fits into memory, so the rows go through a temporary file."""
CASES = list(itertools.product(["COPY_ON_WRITE", "MERGE_ON_READ"], ["SIMPLE", "BLOOM"], [{}, LARGE]))


def rows(keys, ts):
    return pa.table({"id": keys, "region": ["eu"] * len(keys), "ts": pa.array([ts] * len(keys), pa.int64())})


def told(path):
    return sorted((row["id"], row["ts"]) for row in hudi_py.open_table(path).rows().to_arrow().to_pylist())


@pytest.mark.parametrize(("kind", "index", "more"), CASES)
def test_each_row_with_a_key_is_updated_and_deleted(kind, index, more, tmp_path):
    """Three file groups have the key; other keys keep their rows, and the record index knows what is left."""
    path = str(tmp_path / "t")
    settings = SETTINGS | {"hoodie.datasource.write.table.type": kind, "hoodie.index.type": index}
    for ts, keys in enumerate((["a", "b"], ["a", "c"], ["a", "d"]), 1):
        hudi_py.write(path, rows(keys, ts), operation="bulk_insert", settings=settings)
    done = hudi_py.write(path, rows(["a", "e"], 7), operation="upsert", settings=settings | more)
    others = [("b", 1), ("c", 2), ("d", 3), ("e", 7)]
    assert told(path) == [("a", 7)] * 3 + others
    assert (done.rows_updated, done.rows_inserted) == (3, 1)
    assert set(places(LocalStorage(path))) == set("abcde")
    done = hudi_py.write(path, rows(["a", "z"], 8), operation="delete", settings=settings | more)
    assert told(path) == others
    assert done.rows_deleted == 3
    assert set(places(LocalStorage(path))) == set("bcde")
    # Nothing of the deleted rows is met again.
    hudi_py.write(path, rows(["a"], 9), operation="upsert", settings=settings | more)
    assert told(path) == [("a", 9), *others]


GLOBAL = list(itertools.product(["COPY_ON_WRITE", "MERGE_ON_READ"], ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"], [{}, LARGE]))


def placed(values):
    """Rows from texts as `a/eu/1`."""
    keys, regions, times = zip(*(each.split("/") for each in values), strict=True)
    return pa.table({"id": keys, "region": regions, "ts": pa.array(map(int, times), pa.int64())})


def told_with_place(path):
    found = hudi_py.open_table(path).rows(with_meta=True).to_arrow().to_pylist()
    return sorted(f"{row['_hoodie_record_key']}/{row['_hoodie_partition_path']}/{row['ts']}" for row in found)


def table_with_copies(path, kind, index, *, moves):
    """Keys with rows in several file groups of one partition (a, d), and in two partitions (a, m, d)."""
    settings = SETTINGS | {"hoodie.datasource.write.table.type": kind, "hoodie.index.type": index}
    settings["hoodie.metadata.record.index.enable"] = False
    for name in ("simple", "bloom"):
        settings[f"hoodie.{name}.index.update.partition.path"] = moves
    for each in (["a/eu/1", "m/eu/1", "d/eu/1", "z/eu/1"], ["a/eu/2", "d/eu/2"], ["a/us/3", "m/us/3", "d/us/3"]):
        hudi_py.write(path, placed(each), operation="bulk_insert", settings=settings)
    return settings


@pytest.mark.parametrize(("kind", "index", "more"), GLOBAL)
def test_a_global_index_meets_each_row_with_a_key(kind, index, more, tmp_path):
    """Rows that stay where they are: each of them is updated, or deleted, in every partition."""
    path = str(tmp_path / "t")
    settings = table_with_copies(path, kind, index, moves=False) | more
    done = hudi_py.write(path, placed(["a/eu/9", "m/ap/9", "n/ap/9"]), operation="upsert", settings=settings)
    assert (done.rows_updated, done.rows_inserted) == (5, 1)
    others = ["m/eu/9", "m/us/9", "n/ap/9", "z/eu/1"]
    assert told_with_place(path) == sorted([*others, "a/eu/9", "a/eu/9", "a/us/9", "d/eu/1", "d/eu/2", "d/us/3"])
    done = hudi_py.write(path, placed(["a/ap/9", "d/eu/9"]), operation="delete", settings=settings)
    assert done.rows_deleted == 6
    assert told_with_place(path) == others


@pytest.mark.parametrize(("kind", "index", "more"), GLOBAL)
def test_a_row_that_moves_leaves_none_of_its_earlier_ones_behind(kind, index, more, tmp_path):
    """One row comes where the key has none yet; what is in the new partition already is updated there."""
    path = str(tmp_path / "t")
    settings = table_with_copies(path, kind, index, moves=True) | more
    hudi_py.write(path, placed(["a/eu/9", "m/ap/9", "d/us/9"]), operation="upsert", settings=settings)
    assert told_with_place(path) == ["a/eu/9", "a/eu/9", "d/us/9", "m/ap/9", "z/eu/1"]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_row_moves_past_the_rows_that_it_beats(kind, tmp_path):
    """Each stored row is compared for itself, as by Apache Hudi: newer ones stay."""
    path = str(tmp_path / "t")
    settings = table_with_copies(path, kind, "GLOBAL_SIMPLE", moves=True)
    hudi_py.write(path, placed(["a/ap/2", "m/ap/0"]), operation="upsert", settings=settings)
    kept = ["d/eu/1", "d/eu/2", "d/us/3", "m/eu/1", "m/us/3", "z/eu/1"]
    assert told_with_place(path) == sorted([*kept, "a/ap/2", "a/us/3"])


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("operation", ["bulk_insert", "upsert"])
def test_one_commit_does_not_write_a_key_to_two_places_beside_a_record_index(kind, operation, tmp_path):
    """It could name one of them; 1.0.2 and 1.1.1 fail, too. Nothing is committed, and the next write goes through."""
    path = str(tmp_path / "t")
    settings = SETTINGS | {"hoodie.datasource.write.table.type": kind}
    hudi_py.write(path, placed(["z/eu/1"]), settings=settings)
    with pytest.raises(RefusedError, match="'a' several times"):
        hudi_py.write(path, placed(["a/eu/2", "a/us/2", "b/us/2"]), operation=operation, settings=settings)
    assert told_with_place(path) == ["z/eu/1"]
    hudi_py.write(path, placed(["a/eu/3"]), settings=settings)
    assert told_with_place(path) == ["a/eu/3", "z/eu/1"]
    assert set(places(LocalStorage(path))) == {"a", "z"}


IN_LOGS = SETTINGS | {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.index.type": "SIMPLE"}
IN_LOGS |= {"hoodie.metadata.record.index.enable": False}


@pytest.mark.parametrize("more", [{}, LARGE, {"hoodie.logfile.data.block.format": "parquet"}])
@pytest.mark.parametrize("version", [8, 9])
def test_copies_in_one_base_file_are_changed_by_their_positions(version, more, tmp_path):
    """Every log file says where its records are, that of another key and that of a deletion, too."""
    path, settings = str(tmp_path / "t"), IN_LOGS | {"hoodie.write.table.version": version}
    hudi_py.write(path, rows(["k", "a", "k", "b", "k"], 1), operation="bulk_insert", settings=settings)
    assert hudi_py.write(path, rows(["k"], 2), operation="upsert", settings=settings | more).rows_updated == 3
    hudi_py.write(path, rows(["a"], 3), operation="upsert", settings=settings | more)
    assert told(path) == [("a", 3), ("b", 1), ("k", 2), ("k", 2), ("k", 2)]
    hudi_py.write(path, rows(["b"], 4), operation="delete", settings=settings | more)
    hudi_py.open_table(path, settings=settings).update({"ts": 5}, where="id = 'a'")
    assert told(path) == [("a", 5), ("k", 2), ("k", 2), ("k", 2)]
    assert hudi_py.write(path, rows(["k"], 6), operation="delete", settings=settings | more).rows_deleted == 3
    assert told(path) == [("a", 5)]
    hudi_py.open_table(path, settings=settings | {"hoodie.compact.inline.max.delta.commits": 1}).compact()
    assert told(path) == [("a", 5)]


@pytest.mark.parametrize(
    "more",
    [
        {"hoodie.write.table.version": 6},
        {"hoodie.write.record.positions": False},
        {"hoodie.index.type": "GLOBAL_SIMPLE"},
        {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 1},
    ],
)
def test_without_positions_the_first_copy_is_changed(more, tmp_path):
    """In tables of Hudi 0.15, where they are not wanted, and with indexes that know none in Apache Hudi."""
    path, settings = str(tmp_path / "t"), IN_LOGS | more
    hudi_py.write(path, rows(["k", "a", "k"], 1), operation="bulk_insert", settings=settings)
    hudi_py.write(path, rows(["k"], 2), operation="upsert", settings=settings)
    assert told(path) == [("a", 1), ("k", 1), ("k", 2)]

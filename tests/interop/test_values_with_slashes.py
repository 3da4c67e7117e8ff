"""A partition column whose values have slashes, as Hudi's dates: its folders, and both sides' rows in them."""

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.errors import UnsupportedTable, WriteError
from support.interop_sample import releases

pytestmark = pytest.mark.oracle

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.clean.automatic": False,
}
DAYS = ("2024/01/05", "2024/01/06", "2024/02/01", "2025/01/05")


def rows(ids, ts, days=DAYS):
    return pa.Table.from_pylist([{"id": f"k{i}", "day": days[i % len(days)], "ts": ts} for i in ids])


def told(listed):
    return {(row["id"], row["day"]): row["ts"] for row in listed}


def folders(path):
    found = path.rglob(".hoodie_partition_metadata")
    return sorted(str(each.parent.relative_to(path)) for each in found if ".hoodie" not in each.parts)


@pytest.mark.parametrize("hive", [False, True])
@pytest.mark.parametrize("metadata", [False, True])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_both_sides_use_the_same_folders(peer, ours, tmp_path, kind, metadata, hive):
    """Upserts and deletes of each find the rows of the other, on Spark and without, and new days appear for both."""
    path = tmp_path / "t"
    settings = SETTINGS | {
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": peer.table_version,
        "hoodie.metadata.enable": metadata,
        "hoodie.datasource.write.hive_style_partitioning": hive,
    }
    peer.write(path, rows(range(8), 1), "upsert", settings)
    prefix = "day=" if hive else ""
    assert folders(path) == [prefix + day for day in DAYS]
    model = told(rows(range(8), 1).to_pylist())
    later = (*DAYS[:2], "2024/02/02", "2026/12/31")  # the last two are new
    steps = [
        lambda ts: hudi_py.write(path, rows(range(2, 8), ts, later), operation="upsert", settings=settings),
        lambda ts: ours(path, settings).write(rows(range(1, 6), ts)),
        lambda ts: peer.write(path, rows(range(4), ts, later), "upsert", settings),
    ]
    written = [rows(range(2, 8), 2, later), rows(range(1, 6), 3), rows(range(4), 4, later)]
    for ts, (step, changed) in enumerate(zip(steps, written, strict=True), start=2):
        step(ts)
        model |= told(changed.to_pylist())
        assert told(peer.read(path)) == told(peer.read(path, metadata=metadata)) == model
        assert told(hudi_py.open_table(path).rows().to_arrow().to_pylist()) == model
    hudi_py.open_table(path).delete(where="day = '2024/01/06' or day > '2026'")
    model = {key: ts for key, ts in model.items() if key[1] != "2024/01/06" and key[1] < "2026"}
    assert told(peer.read(path)) == told(ours(path, settings).read()) == model
    assert folders(path) == sorted({prefix + day for day in (*DAYS, *later)})
    with pytest.raises(WriteError, match="would lie inside of partition"):
        hudi_py.write(path, rows([0], 9, ("2024/01",)), operation="upsert", settings=settings)
    assert not [each for each in hudi_py.open_table(path).check() if each.severity.value == "error"]


def test_real_hudi_does_not_see_what_we_refuse_to_write(peer, tmp_path):
    """It lets values of two depths nest, and where it lists folders the inner rows are gone; the check says so."""
    path = tmp_path / "t"
    settings = SETTINGS | {"hoodie.write.table.version": peer.table_version, "hoodie.metadata.enable": False}
    peer.write(path, rows([0], 1, ("2024",)), "insert", settings)
    peer.write(path, rows([1], 1, ("2024", "2024/01")), "insert", settings)
    assert folders(path) == ["2024", "2024/01"]
    assert told(peer.read(path)) == {("k0", "2024"): 1}
    found = {each.code: each.where for each in hudi_py.open_table(path).check()}
    assert found["partition-hidden"] == "2024/01"


HIVE = "hoodie.datasource.write.hive_style_partitioning"
ENCODED = "hoodie.datasource.write.partitionpath.urlencode"


@pytest.mark.parametrize("peer", releases(9), indirect=True)
def test_columns_that_only_the_paths_have(peer, tmp_path):
    """Files lack them: slashes, spaces and escapes of one column and of two are shown as Hudi shows them."""
    dropped = SETTINGS | {"hoodie.datasource.write.drop.partition.columns": True}
    two = {"hoodie.datasource.write.partitionpath.field": "day,p"}
    for number, more in enumerate(
        ({}, {HIVE: True, ENCODED: True}, {ENCODED: True}, two | {HIVE: True, ENCODED: True})
    ):
        path = tmp_path / str(number)
        days = ("2024/01/05", "a b") if not more else ("2024/01/05", "z=1 %") if HIVE in more else ("x/y", "z w")
        given = rows(range(4), 1, days)
        given = given.append_column("p", pa.array(["1", "2/3"] * 2 if more else ["1", "2"] * 2))
        peer.write(path, given, "upsert", dropped | more)
        theirs = [{name: row[name] for name in given.column_names} for row in peer.read(path)]
        table = hudi_py.open_table(path)
        assert sorted(theirs, key=str) == sorted(table.rows(columns=given.column_names).to_arrow().to_pylist(), key=str)
        assert sorted(theirs, key=str) == sorted(given.to_pylist(), key=str)
        with pytest.raises(UnsupportedTable, match=r"drop\.partition\.columns"):
            table.upsert(given)

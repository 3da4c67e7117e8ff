"""Rows that lie in another partition than their column says: shown and found as Apache Hudi does."""

import json

import pyarrow as pa
import pytest

import hudi_py
from support.interop_sample import releases

pytestmark = pytest.mark.oracle

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.type": "GLOBAL_SIMPLE",
    "hoodie.simple.index.update.partition.path": "false",
}
WHERE = ["region = 'eu'", "region = 'us'", "region in ('eu', 'us')", "region = 'us' or ts = 7"]
QUESTIONS = {"snapshot": {}, "read_optimized": {"read_optimized": True}, "incremental": {"start": "0"}}
SIDES = ("before", "after")


def arrow(*rows):
    return pa.Table.from_pylist([{"id": key, "region": region, "ts": ts} for key, region, ts in rows])


def in_order(rows):
    return sorted((row["id"], str(row["region"]), row["ts"]) for row in rows)


def values(row):
    """Those of a side of a change; Apache Hudi shows its own columns, too."""
    return str(
        sorted((name, value) for name, value in row.items() if name in ("id", "region", "ts") and value is not None)
    )


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("peer", releases(6, 8, 9), indirect=True)
def test_a_row_that_stayed_where_it_was(peer, tmp_path, kind):
    """A global index that keeps rows in their partitions; rows without a value, or with an empty one."""
    path, settings = tmp_path / "t", SETTINGS | {"hoodie.datasource.write.table.type": kind}
    rows = arrow(("a", "eu", 1), ("b", "us", 1), ("e", "", 1), ("n", None, 1))
    peer.write(path, rows, "upsert", settings)
    peer.write(path, arrow(("a", "us", 2)), "upsert", settings)
    table = hudi_py.open_table(path)
    for question, asked in QUESTIONS.items():
        options = {"hoodie.datasource.query.type": question, "hoodie.datasource.read.begin.instanttime": "0"}
        expected = peer.read(path, options={} if question == "snapshot" else options)
        rows = table.changes(**asked) if "start" in asked else table.rows(**asked)
        assert in_order(expected) == in_order(rows.to_arrow().to_pylist()), question
    for where in WHERE:
        expected = peer.find(path, where)["rows"]
        assert in_order(expected) == in_order(table.rows(where=where).to_arrow().to_pylist()), where


@pytest.mark.parametrize(
    ("kind", "mode"), [("COPY_ON_WRITE", "op_key_only"), ("MERGE_ON_READ", "data_before_after")], ids=str
)
@pytest.mark.parametrize("peer", releases(9), indirect=True)
def test_change_logs_show_what_is_stored(peer, tmp_path, kind, mode):
    """Of rows that stayed where they were; the same ones in base files and in logs."""
    settings = SETTINGS | {
        "hoodie.datasource.write.table.type": kind,
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": mode,
    }
    peer.write(tmp_path / "t", arrow(("a", "eu", 1), ("n", None, 1)), "upsert", settings)
    peer.write(tmp_path / "t", arrow(("a", "us", 2), ("n", "us", 2)), "upsert", settings)
    asked = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.read.begin.instanttime": "0",
    }
    theirs = peer.read(tmp_path / "t", options=asked)
    changes = hudi_py.open_table(tmp_path / "t").change_log("0").to_arrow().to_pylist()
    expected = [[each["op"], *(values(json.loads(each[side] or "{}")) for side in SIDES)] for each in theirs]
    assert sorted(expected) == sorted([each["op"], *(values(each[side] or {}) for side in SIDES)] for each in changes)
    assert ("us", 2) in {(each["after"]["region"], each["after"]["ts"]) for each in changes}

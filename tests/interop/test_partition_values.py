"""Rows that lie in another partition than their column says: shown and found as Apache Hudi does."""

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


def arrow(*rows):
    return pa.Table.from_pylist([{"id": key, "region": region, "ts": ts} for key, region, ts in rows])


def in_order(rows):
    return sorted((row["id"], str(row["region"]), row["ts"]) for row in rows)


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

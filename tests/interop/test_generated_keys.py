"""Tables without key columns, written by real Hudi and by us in turn, on Spark and without."""

import pyarrow as pa
import pytest

import hudi_py

pytestmark = pytest.mark.oracle

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
}
NAMES = ("id", "region", "ts")


def rows(ts):
    listed = [(f"k{number % 3}", ("eu", "us")[number % 2], ts) for number in range(8)]
    return pa.Table.from_pylist([dict(zip(NAMES, each, strict=True)) for each in listed])


def told(listed):
    return sorted(tuple(row[name] for name in NAMES) for row in listed)


@pytest.mark.parametrize("first", ["theirs", "ours"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_both_sides_add_rows_with_keys_of_one_form(peer, ours, tmp_path, first, kind):
    """Each row is there once under a key ``<instant>_<task>_<number>``, whoever wrote it; then Hudi compares keys."""
    path = tmp_path / "t"
    settings = SETTINGS | {
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": peer.table_version,
        "hoodie.clean.automatic": False,
    }
    sides = [
        lambda ts: peer.write(path, rows(ts), "insert", settings),
        lambda ts: hudi_py.write(path, rows(ts), operation="insert", settings=settings),
        lambda ts: ours(path, settings).write(rows(ts), "insert"),
        lambda ts: ours(path, settings).write(rows(ts), "bulk_insert", **{"hoodie_py.write.single.pass.max.bytes": 0}),
        lambda ts: peer.write(path, rows(ts), "bulk_insert", settings),
    ]
    expected = []
    for ts, write in enumerate(sides if first == "theirs" else [sides[1], sides[0], *sides[2:]]):
        write(ts)
        expected += rows(ts).to_pylist()
        found = peer.read(path, meta=True)
        assert told(found) == told(expected)
        keys = [row["_hoodie_record_key"] for row in found]
        assert len(set(keys)) == len(keys)
        assert all(len(key.split("_")) == 3 and key.startswith("20") for key in keys)
    hudi_py.open_table(path).delete(where="ts = 0 and id = 'k0'")
    expected = [row for row in expected if (row["ts"], row["id"]) != (0, "k0")]
    assert told(peer.read(path)) == told(expected)

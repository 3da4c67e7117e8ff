"""Rows with doubles for ordering values that older files have as floats: both sides keep the same ones."""

import pyarrow as pa
import pytest

import hudi_py

pytestmark = pytest.mark.oracle

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.clean.automatic": False,
    "hoodie.metadata.enable": False,
}
EVENT_TIME = (
    {"hoodie.record.merge.mode": "EVENT_TIME_ORDERING"},
    {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"},
)
# the same text, the same value, a smaller and a greater one, between value and text
PAIRS = [(0.1, 0.1), (0.1, 0.10000000149011612), (0.1, 0.09), (0.1, 0.11), (0.1, 0.1000000001), (0.3, 0.3000000001)]


def rows(version, times, arrow):
    table = [{"id": str(n), "p": "x", "ts": ts, "v": version} for n, ts in enumerate(times)]
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", arrow), ("v", pa.int32())])
    return pa.Table.from_pylist(table, schema)


@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
def test_the_same_rows_win_against_floats(peer, tmp_path, index):
    """A float is compared as the double with its shortest text, wherever its row is looked up."""
    settings = SETTINGS | EVENT_TIME[peer.table_version == 6] | {"hoodie.index.type": index}
    ours = settings | {"hoodie.write.table.version": peer.table_version}
    for data in (rows(1, [old for old, _ in PAIRS], pa.float32()), rows(2, [new for _, new in PAIRS], pa.float64())):
        peer.write(tmp_path / "theirs", data, "upsert", settings)
        hudi_py.write(tmp_path / "ours", data, settings=ours)
    found = {
        name: {row["id"]: (row["v"], row["ts"]) for row in peer.read(tmp_path / name)} for name in ("theirs", "ours")
    }
    assert found["ours"] == found["theirs"]
    assert found["theirs"]["0"][0] == 2

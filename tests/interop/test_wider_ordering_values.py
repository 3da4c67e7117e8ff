"""Rows with doubles for ordering values that older files have as floats: both sides keep the same ones."""

import pyarrow as pa
import pytest

import hudi_py
from support.ordering_values import rows, settings_of

pytestmark = pytest.mark.oracle

# the same text, the same value, a smaller and a greater one, between value and text
PAIRS = [(0.1, 0.1), (0.1, 0.10000000149011612), (0.1, 0.09), (0.1, 0.11), (0.1, 0.1000000001), (0.3, 0.3000000001)]


@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
def test_the_same_rows_win_against_floats(peer, tmp_path, index):
    """A float is compared as the double with its shortest text, wherever its row is looked up."""
    settings = settings_of(peer.table_version) | {"hoodie.index.type": index}
    ours = settings | {"hoodie.write.table.version": peer.table_version}
    for data in (rows(1, [old for old, _ in PAIRS], pa.float32()), rows(2, [new for _, new in PAIRS], pa.float64())):
        peer.write(tmp_path / "theirs", data, "upsert", settings)
        hudi_py.write(tmp_path / "ours", data, settings=ours)
    found = {
        name: {row["id"]: (row["v"], row["ts"]) for row in peer.read(tmp_path / name)} for name in ("theirs", "ours")
    }
    assert found["ours"] == found["theirs"]
    assert found["theirs"]["0"][0] == 2

"""Rows with zeros of both signs and NaN for ordering values: both sides keep the same ones."""

import math

import pyarrow as pa
import pytest

import hudi_py
from support.ordering_values import rows, settings_of

pytestmark = pytest.mark.oracle

VALUES = (0.0, -0.0, math.nan, math.inf, -1.0)
PAIRS = [(old, new) for old in VALUES for new in VALUES]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("arrow", [pa.float64(), pa.float32()], ids=str)
def test_the_same_rows_win(peer, tmp_path, arrow, kind):
    """In Java's order: -0.0 is less than 0.0, NaN is the greatest. Within a batch and against stored rows."""
    settings = settings_of(peer.table_version) | {"hoodie.datasource.write.table.type": kind}
    ours = settings | {"hoodie.write.table.version": peer.table_version}
    old, new = (rows(number, [pair[number] for pair in PAIRS], arrow) for number in (0, 1))
    batch = pa.concat_tables([old, new])
    for name, writes in {"stored": [old, new], "batch": [batch]}.items():
        for data in writes:
            peer.write(tmp_path / f"{name} theirs", data, "upsert", settings)
            hudi_py.write(tmp_path / f"{name} ours", data, settings=ours)
        found = {who: peer.read(tmp_path / f"{name} {who}") for who in ("theirs", "ours")}
        found["shown"] = hudi_py.open_table(tmp_path / f"{name} ours").rows().to_arrow().to_pylist()
        # As texts: of two zeros each is equal to the other one.
        wins = {who: {str(PAIRS[int(row["id"])]): row["v"] for row in rows} for who, rows in found.items()}
        assert wins["ours"] == wins["theirs"] == wins["shown"], name
        assert (wins["ours"]["(0.0, -0.0)"], wins["ours"]["(-0.0, 0.0)"]) == (0, 1), name

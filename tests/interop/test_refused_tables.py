"""Tables of real Hudi whose bucket index hudi_py must know before it writes: refused without, written in turns with."""

import pytest

import hudi_py
from support.interop_model import PARTITIONED, Model

pytestmark = pytest.mark.oracle

BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 4}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_table_of_buckets_is_written_in_turns(kind, peer, ours, tmp_path):
    """With the settings of its other writers: no key is stored twice, whoever wrote it first, updates or deletes it."""
    table, model = tmp_path / "t", Model(PARTITIONED)
    settings = {"hoodie.metadata.enable": False, "hoodie.clean.automatic": False, **BUCKETS}
    settings["hoodie.datasource.write.table.type"] = kind
    peer.write(
        table, model.upsert(PARTITIONED.batch(range(8), 1)), "upsert", PARTITIONED.create(peer.table_version) | settings
    )
    with pytest.raises(hudi_py.UnsupportedTable, match="bucket index"):
        ours(table, {"hoodie.clean.automatic": False}).write(PARTITIONED.batch(range(8), 2))
    we = ours(table, settings)
    we.write(model.upsert(PARTITIONED.batch(range(4, 20), 2)))
    assert model.rows() == peer.read(table)
    peer.write(table, model.upsert(PARTITIONED.batch(range(24), 3)), "upsert", settings)
    we.write(model.upsert(PARTITIONED.batch(range(0, 30, 3), 4)))
    assert model.rows() == peer.read(table) == we.read()
    model = Model(PARTITIONED)
    we.write(model.upsert(PARTITIONED.batch(range(0, 30, 2), 5)), "insert_overwrite_table")
    assert model.rows() == peer.read(table) == we.read()
    peer.write(table, model.upsert(PARTITIONED.batch(range(30), 6)), "upsert", settings)
    assert model.rows() == peer.read(table) == we.read()
    opened = hudi_py.open_table(str(table))
    buckets = [(path, each.file_id[:8]) for path in opened.partitions() for each in opened.file_slices(path)]
    assert len(set(buckets)) == len(buckets)

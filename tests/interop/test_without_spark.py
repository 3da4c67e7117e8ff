"""Tables written without Spark: real Hudi reads the same rows after each operation, and goes on upserting."""

import pyarrow as pa
import pytest

import hudi_py

pytestmark = pytest.mark.oracle

ROWS = {("a", "eu"): 1, ("b", "eu"): 2, ("c", "us"): 3, ("d", "us"): 4, ("e", "ap"): 5}
SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.metadata.enable": True,
}


def flat(rows, ts):
    return [{"id": key, "region": region, "ts": ts, "v": value} for (key, region), value in rows.items()]


def arrow(rows, ts):
    return pa.Table.from_pylist(flat(rows, ts))


def read(peer, table, **options):
    return {(row["id"], row["region"]): row["v"] for row in peer.read(table, **options)}


def test_real_hudi_reads_every_operation_and_goes_on(peer, tmp_path):
    """Overwrites, a dropped partition, statements by conditions; then an upsert of Hudi, and a clean of ours."""
    path = tmp_path / "t"
    hudi_py.write(path, arrow(ROWS, 1), settings=SETTINGS | {"hoodie.write.table.version": peer.table_version})
    table = hudi_py.open_table(path, settings={"hoodie.clean.automatic": False})
    model = dict(ROWS)

    table.insert_overwrite(arrow({("b", "eu"): 20, ("f", "eu"): 6}, 2))
    model = {key: value for key, value in model.items() if key[1] != "eu"} | {("b", "eu"): 20, ("f", "eu"): 6}
    assert read(peer, path) == model

    table.drop_partitions(["ap"])
    table.delete(where="v = 3")
    del model["e", "ap"], model["c", "us"]
    table.update({"v": "v * 10", "ts": 3}, where="region = 'us'")
    model["d", "us"] = 40
    merge = table.merge(arrow({("d", "us"): 41, ("g", "ap"): 7}, 4), on=["id", "region"])
    merge.when_matched_update().when_not_matched_insert().execute(write_key=("loader", 1))
    model |= {("d", "us"): 41, ("g", "ap"): 7}
    assert read(peer, path) == read(peer, path, metadata=True) == model

    changes = {("b", "eu"): 21, ("d", "us"): 42, ("h", "us"): 8}
    peer.write(path, arrow(changes, 5), "upsert", {"hoodie.clean.automatic": False, "hoodie.metadata.enable": True})
    model |= changes
    assert read(peer, path) == model
    assert {(r["id"], r["region"]): r["v"] for r in table.refresh().rows().to_arrow().to_pylist()} == model

    table.insert_overwrite_table(arrow({("z", "eu"): 1}, 6))
    table.clean(commits_retained=1)
    assert read(peer, path) == read(peer, path, metadata=True) == {("z", "eu"): 1}
    assert not table.check()

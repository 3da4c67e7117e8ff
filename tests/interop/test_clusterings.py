"""Clusterings that real Apache Hudi planned, carried out by us; it reads, updates and cleans afterwards."""

import pytest

import hudi_py
from support.interop_model import PARTITIONED, Model
from support.interop_ours import hudi_py_json

pytestmark = pytest.mark.oracle

OPTIONS = {
    "hoodie.clean.automatic": "false",
    "hoodie.metadata.enable": "true",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.clustering.async.max.commits": "1",
    "hoodie.clustering.inline.max.commits": "1",
}
ONE_COMMIT = {"hoodie.clean.commits.retained": "1", "hoodie.cleaner.commits.retained": "1"}


def small_files(peer, path, model, table_type):
    """A table of real Hudi in which each of three inserts wrote files of its own; one of them was updated."""
    create = PARTITIONED.create(peer.table_version) | {"hoodie.datasource.write.table.type": table_type}
    for number in range(3):
        batch = PARTITIONED.batch(range(4 * number, 4 * number + 4), 1)
        model.upsert(batch)
        peer.write(path, batch, "insert", (create if not number else {}) | OPTIONS)
    update(peer, path, model, range(2), 2)


def update(peer, path, model, numbers, version):
    batch = PARTITIONED.batch(numbers, version)
    model.upsert(batch)
    peer.write(path, batch, "upsert", OPTIONS)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_plans_of_apache_hudi_are_carried_out(peer, tmp_path, table_type):
    """No row changes, none is there twice after it updates all keys, and its clean deletes the old files."""
    path, model = tmp_path / "t", Model(PARTITIONED)
    small_files(peer, path, model, table_type)
    rows = model.rows()
    instant = peer.schedule(path, "CLUSTER", OPTIONS)
    (done,) = hudi_py_json("cluster", str(path), "--execute", instant)["clusterings"]
    assert done["rows"] == len(rows)
    assert peer.read(path) == peer.read(path, metadata=True) == rows
    assert peer.file_slices(path) == peer.file_slices(path, use_metadata=True)
    table = hudi_py.open_table(str(path))
    assert table.rows().to_arrow().num_rows == len(rows)
    assert not [each for each in table.check() if each.severity.value != "info"]
    update(peer, path, model, range(12), 3)
    assert peer.read(path) == peer.read(path, metadata=True) == model.rows()
    hudi_py_json(
        "cluster",
        str(path),
        "--layout",
        "z-order",
        "--sort-by",
        "ts,amount" if "amount" in table.schema.names else "ts",
    )
    assert peer.read(path) == peer.read(path, metadata=True) == model.rows()
    update(peer, path, model, range(12), 4)
    peer.clean(path, ONE_COMMIT | OPTIONS)
    assert peer.read(path) == peer.read(path, metadata=True) == model.rows()
    assert not [each for each in hudi_py_json("check", str(path)) if each["severity"] != "info"]

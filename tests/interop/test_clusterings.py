"""Clusterings that one side plans and the other carries out; each reads, updates, cleans and rolls back afterwards."""

import pytest
from real_hudi import canonical_rows

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
    hudi_py_json("cluster", str(path), "--cancel", peer.schedule(path, "CLUSTER", OPTIONS))
    assert peer.read(path) == peer.read(path, metadata=True) == rows
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


@pytest.mark.parametrize(
    ("table_type", "layout"), [("COPY_ON_WRITE", "linear"), ("COPY_ON_WRITE", "hilbert"), ("MERGE_ON_READ", "z-order")]
)
def test_apache_hudi_carries_out_our_plans(peer, tmp_path, table_type, layout):
    """It writes the same rows with the same meta columns; either side undoes it, and carries out the plan again."""
    path, model = tmp_path / "t", Model(PARTITIONED)
    small_files(peer, path, model, table_type)
    before = peer.read(path, meta=True)
    order = ("--sort-by", "amount,ts", "--layout", layout)
    instant = hudi_py_json("cluster", str(path), "--schedule-only", *order)["instant"]
    peer.carry_out(path, "CLUSTER", instant, OPTIONS)
    assert_rewritten(peer, path, model, before, instant)

    hudi_py_json("rollback", str(path), instant)  # we undo what it carried out
    assert peer.read(path, meta=True) == before
    assert in_files(path) == before
    (done,) = hudi_py_json("cluster", str(path), "--execute", plan_again(peer, path, order))["clusterings"]
    assert_rewritten(peer, path, model, before, done["instant"])

    peer.rollback(path, done["instant"], OPTIONS)  # and it undoes what we carried out
    assert peer.read(path, meta=True) == before
    assert in_files(path) == before
    again = plan_again(peer, path, order)
    peer.carry_out(path, "CLUSTER", again, OPTIONS)
    assert_rewritten(peer, path, model, before, again)

    update(peer, path, model, range(0, 12, 2), 3)
    hudi_py.open_table(str(path)).upsert(model.upsert(PARTITIONED.batch(range(1, 12, 2), 4)))
    hudi_py_json("clean", str(path), "--commits-retained", "1")
    peer.clean(path, ONE_COMMIT | OPTIONS)
    assert peer.read(path) == peer.read(path, metadata=True) == model.rows()
    assert peer.file_slices(path) == peer.file_slices(path, use_metadata=True)
    assert not [each for each in hudi_py_json("check", str(path)) if each["severity"] != "info"]


def plan_again(peer, path, order):
    """The pending plan, if the rollback kept it as ours does; else a new one."""
    pending = hudi_py_json("cluster", str(path), "--dry-run", *order)["pending"]
    return pending[0] if pending else hudi_py_json("cluster", str(path), "--schedule-only", *order)["instant"]


def assert_rewritten(peer, path, model, before, instant):
    assert peer.read(path) == peer.read(path, metadata=True) == model.rows()
    assert without_files(peer.read(path, meta=True)) == without_files(before) == without_files(in_files(path))
    table = hudi_py.open_table(str(path))
    stats = table.contents.commit(table.timeline.find(instant)).partition_to_write_stats
    assert {len(of_partition) for of_partition in stats.values()} == {1}
    assert not [each for each in table.check() if each.severity.value != "info"]


def in_files(path):
    return canonical_rows(hudi_py.open_table(str(path)).rows(with_meta=True).to_arrow().to_pylist(), meta=True)


def without_files(rows):
    """A clustering moves rows to other files; all else stays."""
    return [{name: value for name, value in row.items() if name != "_hoodie_file_name"} for row in rows]

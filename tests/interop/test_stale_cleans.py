"""Clean plans that real Hudi's rollback made wrong: its own clean loses the rows, after our way out it goes on."""

import shutil

import pytest
from interop_model import PARTITIONED, Model
from interop_ours import hudi_py_json

import hudi_py
from hudi_py.model.instant import State

pytestmark = pytest.mark.oracle

OPTIONS = {"hoodie.clean.automatic": "false", "hoodie.metadata.enable": "true"}
ONE_COMMIT = {"hoodie.clean.commits.retained": "1", "hoodie.cleaner.commits.retained": "1"}


def write(peer, path, model, version):
    """One upsert by real Hudi that rewrites every file group; returns its instant."""
    batch = PARTITIONED.batch(range(9), version)
    create = PARTITIONED.create(peer.table_version) if version == 1 else {}
    model.upsert(batch)
    return peer.write(path, batch, "upsert", create | OPTIONS)["requested_time"]


@pytest.mark.parametrize("inflight", [False, True], ids=["requested", "inflight"])
def test_real_hudi_goes_on_after_a_stale_plan(peer, tmp_path, inflight):
    """Rows, both listings, its next upserts and its next clean are right, where its own clean leaves no row."""
    path, model = tmp_path / "theirs" / "t", Model(PARTITIONED)
    write(peer, path, model, 1)
    rows = model.rows()
    undone = [write(peer, path, Model(PARTITIONED), version) for version in (2, 3)]
    table = hudi_py.open_table(str(path))
    pending = table.clean_service(table.clean_config(commits_retained=1)).schedule()
    assert pending.state is State.REQUESTED
    if inflight:
        table.contents.store.transition(pending, table.contents.store.read_plan(pending))
    for time in reversed(undone):
        peer.rollback(path, time)
    assert peer.read(path) == rows
    theirs, path = path, shutil.copytree(path, tmp_path / "ours" / "t")  # the plan of theirs names paths of theirs
    peer.clean(theirs, ONE_COMMIT)
    assert peer.read(theirs, metadata=False) != rows

    (result, *_) = hudi_py.open_table(str(path)).clean(commits_retained=1)
    assert (result.withdrawn, bool(result.spared_files)) == (not inflight, True)
    assert peer.read(path) == peer.read(path, metadata=True) == rows
    assert peer.file_slices(path) == peer.file_slices(path, use_metadata=True)
    for version in (4, 5, 6):
        write(peer, path, model, version)
    peer.clean(path, ONE_COMMIT)
    assert peer.read(path) == peer.read(path, metadata=True) == model.rows()
    assert peer.file_slices(path) == peer.file_slices(path, use_metadata=True)
    left = {name.rpartition("/")[2] for name in result.spared_files}
    assert not left.intersection(each.name for each in path.rglob("*.parquet"))
    assert [each for each in hudi_py_json("check", str(path)) if each["severity"] != "info"] == []

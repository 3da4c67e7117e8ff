"""Clean plans that real Hudi's rollback made wrong: its own clean loses the rows, after our way out it goes on."""

import contextlib
import shutil

import pytest
from real_hudi import RealHudiError

import hudi_py
from hudi_py.model.instant import State
from hudi_py.services.check.findings import Severity
from support.interop_model import PARTITIONED, Model
from support.interop_ours import hudi_py_json

pytestmark = pytest.mark.oracle

OPTIONS = {"hoodie.clean.automatic": "false", "hoodie.metadata.enable": "true"}
ONE_COMMIT = {"hoodie.clean.commits.retained": "1", "hoodie.cleaner.commits.retained": "1"}


ONE_VERSION = {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "1"}
AT_ONCE = {
    "hoodie.compact.inline": "false",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.clustering.async.max.commits": "1",
    "hoodie.clustering.inline.max.commits": "1",
}
SERVICES = {"compaction": "COMPACT", "clustering": "CLUSTER"}


def write(peer, path, model, version, table_type="COPY_ON_WRITE"):
    """One upsert by real Hudi that rewrites every file group; returns its instant."""
    batch = PARTITIONED.batch(range(9), version)
    create = PARTITIONED.create(peer.table_version) if version == 1 else {}
    create |= {"hoodie.datasource.write.table.type": table_type}
    model.upsert(batch)
    return peer.write(path, batch, "upsert", create | OPTIONS | AT_ONCE)["requested_time"]


@pytest.mark.parametrize("inflight", [False, True], ids=["requested", "inflight"])
def test_real_hudi_goes_on_after_a_stale_plan(peer, tmp_path, inflight):
    """Rows, both listings, its next upserts and its next clean are right, where its own clean leaves no row."""
    path, model = tmp_path / "theirs" / "t", Model(PARTITIONED)
    write(peer, path, model, 1)
    rows = model.rows()
    undone = [write(peer, path, Model(PARTITIONED), version) for version in (2, 3)]
    table = hudi_py.open_table(str(path))
    pending = table.services.clean(table.services.clean_config(commits_retained=1)).schedule()
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


def stale_beside(peer, path, pending):
    """A clean of real Hudi that is planned, and stale since; what needs its files is planned too: rows, instant."""
    model = Model(PARTITIONED)
    if pending != "compaction":
        write(peer, path, model, 1)
        rows, newest = model.rows(), write(peer, path, model, 2)
        peer.schedule(path, "CLEAN", ONE_VERSION)
        if pending == "rollback":
            peer.schedule_undo(path, newest)
            return rows, newest
        peer.rollback(path, newest)
        return rows, peer.schedule(path, "CLUSTER", AT_ONCE)
    for version in (1, 2):
        write(peer, path, model, version, "MERGE_ON_READ")
    done = peer.schedule(path, "COMPACT", AT_ONCE)
    peer.carry_out(path, "COMPACT", done, AT_ONCE)
    rows, newest = model.rows(), write(peer, path, Model(PARTITIONED), 3, "MERGE_ON_READ")
    peer.schedule(path, "CLEAN", ONE_VERSION)
    for time in (newest, done):
        peer.rollback(path, time)
    return rows, peer.schedule(path, "COMPACT", AT_ONCE)


def finish(peer, path, pending, instant):
    """Real Hudi carries out what is pending."""
    if pending == "rollback":
        peer.rollback(path, instant)
        return
    schema = hudi_py.open_table(str(path)).schema_text()
    peer.carry_out(path, SERVICES[pending], instant, AT_ONCE | {"hoodie.avro.schema": schema})


@pytest.mark.parametrize("pending", ["compaction", "clustering", "rollback"])
def test_what_is_pending_beside_a_stale_plan_finds_its_files(peer, tmp_path, pending):
    """Real Hudi's clean deletes what its own pending work needs; after ours that is carried out, and no row is lost."""
    path = tmp_path / "t"
    rows, instant = stale_beside(peer, path, pending)
    before = shutil.copytree(path, tmp_path / "before")
    peer.clean(path, ONE_VERSION)
    with contextlib.suppress(RealHudiError):
        finish(peer, path, pending, instant)
    with contextlib.suppress(RealHudiError):
        assert peer.read(path) != rows
    shutil.rmtree(path)
    before.rename(path)  # where it was, for plans name whole paths

    if pending == "rollback":
        with pytest.raises(hudi_py.RefusedError, match="hudi-py recover"):
            hudi_py.open_table(str(path)).clean(file_versions_retained=1)
    else:
        (result, *_) = hudi_py.open_table(str(path)).clean(file_versions_retained=1)
        assert result.withdrawn
    finish(peer, path, pending, instant)
    assert peer.read(path) == peer.read(path, metadata=True) == rows
    hudi_py.open_table(str(path)).clean(file_versions_retained=1)
    assert peer.read(path) == peer.read(path, metadata=True) == rows
    # the rollback of a compaction by 0.15.0 leaves the log files that were written on its slice
    left = {"file-orphaned"} if (peer.version, pending) == ("0.15.0", "compaction") else set()
    found = hudi_py.open_table(str(path)).check()
    assert {each.code for each in found if each.severity is not Severity.INFO} == left

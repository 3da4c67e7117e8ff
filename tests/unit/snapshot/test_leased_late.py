"""A lease or snapshot whose rows are read late: commits that they are asked of are archived by then."""

import pyarrow as pa
import pytest

import hudi_py


def rows(value, *keys):
    return pa.table({"id": list(keys), "v": [value] * len(keys)})


def settings_of(version, kind="COPY_ON_WRITE", *, metadata=False):
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": version,
        "hoodie.metadata.enable": metadata,
        "hoodie.clean.automatic": False,
        "hoodie.archive.automatic": False,
    }


def sorted_rows(found, **how):
    return sorted(found.rows(**how).to_arrow().to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("metadata", [False, True], ids=["listed", "metadata"])
def test_rows_of_a_lease_are_read_when_its_commits_are_archived(tmp_path, version, kind, metadata):
    """Its files are kept, and what the commits said of them was read when the lease was taken."""
    path = str(tmp_path / "t")
    settings = settings_of(version, kind, metadata=metadata)
    for number in range(4):
        hudi_py.write(path, rows(number, "a", "b"), settings=settings)
    # The lease depends on nothing earlier, so that its predecessors may be archived.
    hudi_py.write(path, rows(5, "b", "c"), "insert_overwrite_table", settings=settings)
    hudi_py.write(path, rows(6, "c", "d"), settings=settings)
    shown = sorted_rows(hudi_py.open_table(path))
    changed = sorted_rows(hudi_py.open_table(path), where="v = 6")
    table = hudi_py.open_table(path)
    with table.lease(ttl="1h") as snapshot:
        before = {each.requested_time for each in table.timeline.writes.completed()}
        for number in range(3):
            hudi_py.write(path, rows(7 + number, "d"), settings=settings)
            hudi_py.open_table(path).clean(commits_retained=1)
        hudi_py.open_table(path).archive(keep_min_commits=2, keep_max_commits=3)
        left = {each.requested_time for each in hudi_py.open_table(path).timeline.writes.completed()}
        assert before - left, "none was archived"
        assert sorted_rows(snapshot) == shown
        assert sorted_rows(snapshot, where="v = 6") == changed


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_snapshot_is_read_again_when_later_commits_are_archived(tmp_path, version):
    """What came after it is in the archive by then, and is none of its business."""
    path = str(tmp_path / "t")
    settings = settings_of(version)
    for number in range(2):
        hudi_py.write(path, rows(number, "a", "b"), settings=settings)
    snapshot = hudi_py.open_table(path).snapshot()
    shown = sorted_rows(snapshot)
    for number in range(5):
        hudi_py.write(path, rows(7 + number, "b", f"c{number}"), settings=settings)
    hudi_py.open_table(path).clean(file_versions_retained=20)
    table = hudi_py.open_table(path)
    table.archive(keep_min_commits=2, keep_max_commits=3)
    left = {each.requested_time for each in hudi_py.open_table(path).timeline.writes.completed()}
    assert len(left) == 2, "none was archived"
    assert sorted_rows(snapshot) == shown

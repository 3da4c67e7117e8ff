"""``hudi-py clean --quarantine`` and ``hudi-py undo`` on tables of Apache Hudi, with metadata tables and without."""

from __future__ import annotations

import pytest

import hudi_py

NAMES = ["cow_nonpartitioned-1.1.1", "cow_multilevel_hive-0.15.0", "cow_nomdt-1.1.1", "cow_partition_dropped-1.1.1"]


def data_files(path):
    found = {each.relative_to(path).as_posix() for each in path.rglob("*") if each.is_file()}
    return {each for each in found if not each.startswith(".hoodie/") and not each.endswith(".crc")}


@pytest.mark.parametrize("name", NAMES)
def test_an_undone_clean_leaves_files_rows_and_metadata_table_as_they_were(run, table, name):
    """Partition metafiles too; check, which compares both listings, reports nothing after either step."""
    path = table(name)
    before, rows = data_files(path), hudi_py.open_table(path).rows().to_arrow()
    done = run("clean", path, "--quarantine", "--commits-retained", "1", "--json").json["cleans"][-1]
    assert run("check", path).code == 0
    cleaned = data_files(path)
    shown = run("undo", path, done["instant"], "--dry-run", "--json").json
    assert {each["path"] for each in shown["files"]} >= before - cleaned - {p for p in before if "/.hoodie_part" in p}
    assert data_files(path) == cleaned
    assert done["instant"] in run("undo", path, done["instant"]).out
    assert data_files(path) == before
    assert run("check", path).code == 0
    assert hudi_py.open_table(path).rows().to_arrow().equals(rows)
    assert run("undo", path, done["instant"]).code == 2

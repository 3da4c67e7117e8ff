"""A log file beside the base file of a write that died: whose slice it belongs to decides whether its rows are seen."""

import shutil

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.model.files import parse_base_file
from hudi_py.storage.local import LocalStorage
from hudi_py.table import Table
from hudi_py.testing import Crash, StopBefore

pytestmark = pytest.mark.oracle

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.metadata.enable": False,
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.clean.automatic": False,
}


def rows(ids, ts):
    return pa.Table.from_pylist([{"id": each, "region": "eu", "ts": ts} for each in ids])


def ids(found):
    return sorted(row["id"] for row in found)


def test_delete_beside_the_base_file_of_a_dead_write(peer, tmp_path):
    """
    rules/table-services Z-4: Apache Hudi 1.x counts the log file to the base file that it shows to nobody, so the
    deleted row is back until the dead write is rolled back. Here it stays deleted all the time.
    """
    if peer.table_version < 8:
        pytest.skip("names of log files tell their slice")
    settings = SETTINGS | {"hoodie.write.table.version": peer.table_version}
    path = _with_a_dead_base_file(tmp_path, settings)
    Table(LocalStorage(path), settings=settings).delete(rows("a", 3))

    def ours():
        return ids(hudi_py.open_table(path).rows().to_arrow().to_pylist())

    assert ours() == ["b"]
    assert ids(peer.read(path)) == ["a", "b"]
    for heartbeat in (path / ".hoodie" / ".heartbeat").iterdir():
        heartbeat.unlink()  # as if it had expired
    hudi_py.open_table(path, settings=settings).rollback_failed_writes()
    assert ours() == ids(peer.read(path)) == ["b"]


def _with_a_dead_base_file(tmp_path, settings):
    whole = tmp_path / "whole"
    hudi_py.write(whole, rows("ab", 1), settings=settings)
    for n in range(60):
        path = tmp_path / f"cut-{n}"
        shutil.copytree(whole, path)
        with pytest.raises(Crash):  # an insert fills the small file
            Table(StopBefore(LocalStorage(path), n), settings=settings).upsert(rows("c", 2))
        if sum(parse_base_file(each.name) is not None for each in (path / "eu").iterdir()) == 2:
            return path
    raise AssertionError("no interruption left a base file")

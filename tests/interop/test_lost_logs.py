"""A fault of Apache Hudi 0.15.0 alone, which loses deletes; we show it."""

import pyarrow as pa
import pytest

import hudi_py
from support.interop_sample import releases

pytestmark = pytest.mark.oracle

SEVERAL = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "n",
    "hoodie.compact.inline": "false",
    "hoodie.metadata.enable": "false",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
}


def rows(*keys):
    return pa.Table.from_pylist([{"id": key, "region": "eu", "n": 1} for key in keys])


@pytest.mark.parametrize("is_failed", [True, False])
@pytest.mark.parametrize("peer", releases(6), indirect=True)
def test_deletes_that_are_lost_beside_a_failed_write_are_found(peer, tmp_path, is_failed):
    """All writes are Apache Hudi's; without the failed one it keeps the delete, and there is nothing to find."""
    path = tmp_path / "t"
    peer.write(path, rows("a", "b"), "insert", SEVERAL)
    if is_failed:
        peer.fail_write(path, rows("x"), "insert", SEVERAL)
    peer.write(path, rows("a"), "delete", SEVERAL)
    peer.write(path, rows("c"), "insert", SEVERAL)
    left = sorted(row["id"] for row in peer.read(path))
    table = hudi_py.open_table(path)
    assert left == sorted(table.rows().to_arrow()["id"].to_pylist())
    found = {each.code for each in table.check() if each.severity.name == "ERROR"}
    assert (left, found) == ((["a", "b", "c"], {"log-overlooked"}) if is_failed else (["b", "c"], set()))

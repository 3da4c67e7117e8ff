"""Global indexes on Spark: as without it."""

from __future__ import annotations

import pytest

import hudi_py
from hudi_py.storage.local import LocalStorage
from support.indexes import assert_true

pytestmark = pytest.mark.spark

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.metadata.record.index.enable": True,
    "hoodie.metadata.record.index.min.filegroup.count": 2,
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.record.index.update.partition.path": True,
}


def test_a_row_moves_and_the_record_index_knows(spark, tmp_path):
    """Rows come from a data frame; the losing row stays where it is, a delete finds its key in any partition."""
    path = str(tmp_path / "t")
    client = hudi_py.WriteClient(spark, path, SETTINGS)

    def rows(*values):
        return spark.createDataFrame(list(values), "id string, region string, ts long")

    client.upsert(rows(("a", "eu", 1), ("b", "us", 1), ("c", "eu", 1)))
    client.upsert(rows(("a", "us", 2), ("d", "ap", 2), ("b", "eu", 0)))
    client.delete(rows(("c", "zz", 3)))
    found = hudi_py.open_table(path).rows(with_meta=True).to_arrow().to_pylist()
    shown = {(each["id"], each["_hoodie_partition_path"], each["ts"]) for each in found}
    assert shown == {("a", "us", 2), ("b", "us", 1), ("d", "ap", 2)}
    assert_true(LocalStorage(path))


@pytest.mark.parametrize("by_driver", [True, False], ids=["driver", "tasks"])
def test_every_row_with_a_key_is_met(by_driver, spark, tmp_path):
    """Bulk inserts wrote a key three times, in two partitions: an upsert and a delete leave no old row beside."""
    path = str(tmp_path / "t")
    settings = SETTINGS | {"hoodie.metadata.record.index.enable": False, "hoodie.index.type": "GLOBAL_BLOOM"}
    settings |= {"hoodie.bloom.index.update.partition.path": False}
    client = hudi_py.WriteClient(spark, path, settings | {"hoodie_py.write.driver.max.rows": 1000 * by_driver})

    def rows(*values):
        return spark.createDataFrame(list(values), "id string, region string, ts long")

    for region, ts in (("eu", 1), ("eu", 2), ("us", 3)):
        client.bulk_insert(rows(("a", region, ts), ("d", region, ts)))
    client.upsert(rows(("a", "ap", 9)))
    client.delete(rows(("d", "ap", 9)))
    found = hudi_py.open_table(path).rows(with_meta=True).to_arrow().to_pylist()
    assert sorted((row["id"], row["_hoodie_partition_path"], row["ts"]) for row in found) == [
        ("a", "eu", 9),
        ("a", "eu", 9),
        ("a", "us", 9),
    ]

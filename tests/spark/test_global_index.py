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

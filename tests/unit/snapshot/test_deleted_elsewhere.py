"""Deleted rows of a range that lay in another partition than their column said."""

import pyarrow as pa
import pytest

import hudi_py

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.index.type": "GLOBAL_SIMPLE",
    "hoodie.simple.index.update.partition.path": "false",
}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_deleted_row_is_shown_as_the_snapshot_before_it(tmp_path, kind):
    """With the value of its path, as Apache Hudi showed it while it was there."""

    def rows(*given):
        return pa.Table.from_pylist([{"id": key, "region": region, "ts": ts} for key, region, ts in given])

    settings = SETTINGS | {"hoodie.datasource.write.table.type": kind}
    hudi_py.write(tmp_path, rows(("a", "eu", 1), ("b", "us", 1)), settings=settings)
    hudi_py.write(tmp_path, rows(("a", "us", 2)), settings=settings)
    table = hudi_py.open_table(tmp_path, settings=settings)
    before = table.rows(columns=["id", "region", "ts"]).to_arrow().to_pylist()
    assert {"id": "a", "region": "eu", "ts": 2} in before
    last = table.changed_until()
    table.delete(rows(("a", "us", 2)))
    found = table.refresh().changes(last, with_deletes=True).to_arrow().to_pylist()
    assert found == [{"id": "a", "region": "eu", "ts": 2, "_hoodie_is_deleted": True}]

"""A DataFrame whose files are deleted under it fails, and says by what."""

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.errors import NotFound

pytestmark = pytest.mark.spark

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.clean.automatic": "false",
}


def rows(ts):
    return pa.table({"id": ["a", "b"], "region": ["a b", "us"], "ts": [ts, ts]})


def test_a_clean_is_named(spark, tmp_path):
    """By every action, also where the query does not begin with the table."""
    path = tmp_path / "my table"
    hudi_py.write(path, rows(1), settings=SETTINGS)
    table = hudi_py.open_table(path, settings=SETTINGS)
    frame = hudi_py.read(spark, path)
    other = spark.range(3).withColumnRenamed("id", "n")
    table.upsert(rows(2))
    assert table.refresh().clean(file_versions_retained=1)
    (clean,) = table.refresh().timeline.completed("clean")
    for act in (frame.collect, frame.groupBy("region").sum("ts").collect, other.crossJoin(frame).toLocalIterator,
                lambda: frame.write.parquet(str(tmp_path / "out"))):  # fmt: skip
        with pytest.raises(NotFound, match=rf"clean {clean.requested_time} .* deleted it while rows were read"):
            list(act() or ())
    assert {row.ts for row in hudi_py.read(spark, path).collect()} == {2}
    with pytest.raises(Exception, match=r"(?i)divi"):
        spark.sql("select raise_error('division')").collect()


def test_a_rollback_is_named(spark, tmp_path):
    """It takes back what a DataFrame shows."""
    path = tmp_path / "t"
    hudi_py.write(path, rows(1), settings=SETTINGS)
    table = hudi_py.open_table(path, settings=SETTINGS)
    table.upsert(rows(2))
    frame = hudi_py.read(spark, path)
    table.refresh().rollback(table.timeline.completed("commit")[-1].requested_time)
    (rollback,) = table.refresh().timeline.completed("rollback")
    with pytest.raises(NotFound, match=rf"rollback {rollback.requested_time} .* undid the write"):
        frame.collect()


def test_a_clean_is_named_that_comes_before_spark_has_looked(spark, tmp_path, monkeypatch):
    """Between the listing of the table and that of Spark."""
    path = tmp_path / "t"
    hudi_py.write(path, rows(1), settings=SETTINGS)
    table = hudi_py.open_table(path, settings=SETTINGS)

    def clean(_):
        table.upsert(rows(2))
        table.refresh().clean(file_versions_retained=1)

    monkeypatch.setattr("hudi_py.spark.read.explain_lost_files", clean)
    with pytest.raises(NotFound, match=r"clean .* deleted it while rows were read"):
        hudi_py.read(spark, path)

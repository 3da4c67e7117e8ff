"""Few rows are written by the driver: the table is the one that tasks would have written."""

import datetime as dt
from decimal import Decimal

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

import hudi_py
from hudi_py.errors import HudiError
from support.trips import DRIVER_ROWS, PARTITIONED

pytestmark = pytest.mark.spark

BY_DRIVER, BY_TASKS = {DRIVER_ROWS: "1000"}, {DRIVER_ROWS: "0"}
TYPES = (
    "id string, region string, ts bigint, at timestamp, local timestamp_ntz, day date, price decimal(12,3), "
    "raw binary, tags array<string>, sizes map<string, int>, inner struct<a: int, b: array<struct<c: double>>>, "
    "flag boolean"
)


def full_row(number):
    at = dt.datetime(2026, 3, 29, 1, 30, number % 60)  # noqa: DTZ001 - in the session's zone
    row = (f"k{number}", f"r{number % 3}", number, at, at, at.date(), Decimal(number) / 8, bytes([number % 256]))
    return (*row, ["x", str(number)], {"a": number, "b": None}, (number, [(0.5,)]), None if number % 7 == 0 else True)


def settings_of(way, version, kind="COPY_ON_WRITE"):
    return {**PARTITIONED, **way, "hoodie.write.table.version": str(version), "hoodie.table.type": kind}


def files_of(path):
    """Partition, footer's schema and rows without what is by chance, of each base file; log files by number."""
    found = []
    for file in sorted(path.rglob("*.parquet")):
        if ".hoodie" not in file.parts:
            table = pq.read_table(file, partitioning=None)
            kept = [name for name in table.column_names if not name.startswith("_hoodie")]
            rows = sorted(map(repr, table.select(kept).to_pylist()))
            found.append((file.parent.name, str(pq.read_schema(file)), rows))
    logs = [file for file in path.rglob(".*.log.*") if ".hoodie" not in file.parts]
    return sorted(found), len(logs)


def driver_wrote(path):
    """Whether a base or log file was written by no task of Spark: its token says ``0-0-0``."""
    return any(".hoodie" not in each.parts for each in path.rglob("*_0-0-0*"))


@pytest.mark.parametrize(("version", "kind"), [(6, "COPY_ON_WRITE"), (9, "COPY_ON_WRITE"), (9, "MERGE_ON_READ")])
def test_driver_writes_the_same_table_as_tasks(spark, tmp_path, version, kind):
    """Of all types, by each operation: partitions, schemas and rows of files."""
    spark.createDataFrame([full_row(number) for number in range(40)], TYPES).write.parquet(str(tmp_path / "rows"))
    frame = spark.read.parquet(str(tmp_path / "rows"))  # of a size that Spark knows; the others are counted first
    for name, way in {"driver": BY_DRIVER, "tasks": BY_TASKS}.items():
        client = hudi_py.WriteClient(spark, str(tmp_path / name), settings_of(way, version, kind))
        client.bulk_insert(frame)
        client.upsert(frame.where("ts % 2 = 0").withColumn("ts", F.col("ts") + 100))
        client.insert(spark.createDataFrame([full_row(number) for number in range(50, 60)], TYPES))
        client.delete(frame.where("ts < 5").select("id", "region"))
        client.insert_overwrite(spark.createDataFrame([full_row(3)], TYPES))
    assert files_of(tmp_path / "driver") == files_of(tmp_path / "tasks")
    assert driver_wrote(tmp_path / "driver")
    assert not driver_wrote(tmp_path / "tasks")


def test_rows_that_spark_takes_for_few_are_written_by_tasks_if_they_are_many(spark, tmp_path):
    """Spark estimates one row where a function makes 1,500 of it."""
    client = hudi_py.WriteClient(spark, str(tmp_path), settings_of(BY_DRIVER, 9))
    one = spark.createDataFrame([(1,)], "ts bigint")
    many = one.select(F.explode(F.sequence(F.lit(1), F.lit(1500))).alias("n"), "ts")
    written = client.upsert(many.selectExpr("concat('k', n) id", "'eu' region", "ts"))
    assert written.rows_inserted == 1500
    assert not driver_wrote(tmp_path)


def test_few_rows_that_touch_much_of_the_table_are_written_by_tasks(spark, tmp_path):
    """Seventy files to look into are more than one process should take."""
    client = hudi_py.WriteClient(
        spark, str(tmp_path), {**settings_of(BY_DRIVER, 9), "hoodie.parquet.small.file.limit": "0"}
    )
    rows = [(f"k{number}", "eu", 1) for number in range(70)]
    for number in range(0, 70, 10):
        frame = spark.createDataFrame(rows[number : number + 10], "id string, region string, ts bigint")
        spread = frame.repartitionByRange(10, "id")
        tasks = hudi_py.WriteClient(
            spark, str(tmp_path), {**settings_of(BY_TASKS, 9), "hoodie.bulkinsert.sort.mode": "NONE"}
        )
        tasks.bulk_insert(spread)
    assert len(files_of(tmp_path)[0]) == 70
    again = spark.createDataFrame([(key, region, 2) for key, region, _ in rows], "id string, region string, ts bigint")
    assert client.upsert(again).rows_updated == 70
    assert not driver_wrote(tmp_path)
    assert {row["ts"] for row in hudi_py.open_table(tmp_path).rows().to_arrow().to_pylist()} == {2}


def test_rows_that_cannot_be_computed_are_an_error_of_their_query(spark, tmp_path):
    """Nothing is committed, whoever was to write."""
    client = hudi_py.WriteClient(spark, str(tmp_path), settings_of(BY_DRIVER, 9))
    rows = spark.createDataFrame([("a", "eu", 1)], "id string, region string, ts bigint")
    client.insert(rows)
    with pytest.raises(HudiError, match="nothing of the write is visible") as raised:
        client.upsert(rows.withColumn("region", F.expr("raise_error('no such row')").cast("string")))
    assert "no such row" in str(raised.value.__cause__)
    assert len(hudi_py.open_table(tmp_path).timeline.commits.completed()) == 1

"""A query's conditions on partition columns: only files of those partitions are opened, and the rows are the same."""

from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_py

pytestmark = pytest.mark.spark

REGIONS = ["eu", "us", "a b%c", "x/y", "=q", "2024-01-02", "", None]


def make(path, rows, columns, **more):
    settings = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": columns,
        **more,
    }
    hudi_py.write(path, rows, settings=settings)
    return hudi_py.open_table(path)


def damage_others(table, kept):
    """From now on no reader can open the files of other partitions."""
    for path, base in table.base_files():
        if path != kept:
            file = Path(table.storage.root, path, base.name)
            file.write_bytes(b"\0" * file.stat().st_size)


def rows_of(batches):
    return sorted(map(repr, (row for batch in batches for row in batch.to_pylist())))


@pytest.mark.parametrize("style", ["false", "true"], ids=["plain", "hive"])
@pytest.mark.parametrize("encoded", ["false", "true"], ids=["as it is", "encoded"])
def test_rows_stay_as_they_are(spark, tmp_path, style, encoded):
    """For every value, and for every kind of path."""
    regions = REGIONS if encoded == "true" else [each for each in REGIONS if each not in ("x/y", "a b%c")]
    ids = [str(at) for at in range(len(regions))]
    table = make(
        tmp_path / "t",
        pa.table({"id": ids, "region": regions, "ts": range(len(ids))}),
        "region",
        **{
            "hoodie.datasource.write.hive_style_partitioning": style,
            "hoodie.datasource.write.partitionpath.urlencode": encoded,
        },
    )
    frame = hudi_py.read(spark, tmp_path / "t")
    assert rows_of(frame._collect_as_arrow()) == rows_of(table.rows(with_meta=True))
    shown = {row["id"]: row["region"] for row in table.rows().to_arrow().to_pylist()}
    for value in {*shown.values(), "other"}:
        found = frame.where("region is null" if value is None else frame.region == value)
        assert {row.id for row in found.collect()} == {key for key, each in shown.items() if each == value}
    counts = {row.region: row[1] for row in frame.groupBy("region").count().collect()}
    assert counts == {value: list(shown.values()).count(value) for value in shown.values()}


def test_files_of_other_partitions_are_not_opened(spark, tmp_path):
    """Of two columns in their own types, whichever the condition is about, through views and joins."""
    days = [date(2024, 1, 1 + at % 3) for at in range(12)]
    rows = pa.table({"id": [str(at) for at in range(12)], "day": days, "n": pa.array([at // 3 for at in range(12)])})
    table = make(tmp_path / "t", rows, "day,n", **{"hoodie.table.keygenerator.type": "COMPLEX"})
    frame = hudi_py.read(spark, tmp_path / "t")
    assert frame.schema["n"].dataType.simpleString() == "bigint"
    table.rows(columns=["id"]).to_arrow()
    damage_others(table, "2024-01-02/2")
    frame.createOrReplaceTempView("pruned")
    for asked in ("day = date'2024-01-02' and n = 2", "day between '2024-01-02' and '2024-01-02' and n in (2)"):
        assert [row.id for row in spark.sql(f"select id from pruned where {asked}").collect()] == ["7"]
    wanted = spark.createDataFrame([(date(2024, 1, 2), 2)], "day date, n bigint").hint("broadcast")
    assert [row.id for row in frame.where("n = 2").join(wanted, ["day", "n"]).collect()] == ["7"]
    with pytest.raises(Exception, match=r"(?s)arquet"):
        frame.where("n = 1").collect()


def test_a_query_that_reads_partition_columns_alone_counts_all_rows(spark, tmp_path):
    """No column of the files is left then."""
    make(tmp_path / "t", pa.table({"id": list("abc"), "region": ["eu", "eu", "us"]}), "region")
    frame = hudi_py.read(spark, tmp_path / "t", columns=["region"])
    assert sorted(row.region for row in frame.collect()) == ["eu", "eu", "us"]
    assert frame.where("region = 'eu'").count() == 2


def test_a_spark_without_the_index_reads_the_same(spark, tmp_path, monkeypatch):
    """Its own classes are no promise of Spark."""
    rows = pa.table({"id": list("abc"), "region": ["eu", None, "us"], "ts": [1, 2, 3]})
    table = make(tmp_path / "t", rows, "region")
    monkeypatch.setattr("hudi_py.spark.read.has_index", lambda _: False)
    frame = hudi_py.read(spark, tmp_path / "t")
    assert rows_of(frame._collect_as_arrow()) == rows_of(table.rows(with_meta=True))
    assert [row.id for row in frame.where("region is null").collect()] == ["b"]


def test_file_slices_with_log_files_are_chosen_too(spark, tmp_path, monkeypatch):
    """Each partition is read apart then, unless that takes many more tasks than they are worth."""
    days = ["2024-01-01", "2024-01-02", None]
    path = tmp_path / "t"
    rows = pa.table({"id": list("abc"), "day": days, "ts": [1, 2, 3]})
    kind = {"hoodie.table.type": "MERGE_ON_READ"}
    table = make(path, rows, "day", **kind)
    table.upsert(rows.set_column(2, "ts", pa.array([4, 5, 6])))
    assert len(list(path.glob("*/.*.log.*"))) == 3
    monkeypatch.setattr("hudi_py.spark.pieces.PIECES_PER_TASK_MAX", 1)
    apart = hudi_py.read(spark, path)
    monkeypatch.setattr("hudi_py.spark.read._TASKS_MORE", 0)
    together = hudi_py.read(spark, path)
    for frame in (together, apart):
        assert rows_of(frame._collect_as_arrow()) == rows_of(table.refresh().rows(with_meta=True))
        assert [row.ts for row in frame.where("day is null").collect()] == [6]
    for file in path.glob("*/*"):
        if file.is_file() and file.parent.name != days[1]:
            file.write_bytes(b"\0" * file.stat().st_size)
    assert [row.ts for row in apart.where(f"day = '{days[1]}'").collect()] == [5]
    with pytest.raises(Exception, match="on the Spark executor"):
        together.where(f"day = '{days[1]}'").collect()


@pytest.fixture
def in_chatham(spark):
    """A session in a zone that is not that of the process."""
    name = "spark.sql.session.timeZone"
    before = spark.conf.get(name)
    spark.conf.set(name, "Pacific/Chatham")
    yield spark
    spark.conf.set(name, before)


@pytest.mark.parametrize("where", [(), "id < 'z'"], ids=["indexed", "in tasks"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("days", [False, True], ids=["times", "days"])
def test_values_are_the_same_in_every_zone_and_year(in_chatham, tmp_path, kind, days, where):
    """Times without a zone, and days before the year 1000, however their files are read."""
    times = [datetime.fromisoformat(text) for text in ("2024-01-01 05:00:00", "2024-03-10 02:30:00")] + [None]
    column = pa.array([date(1, 1, 1), date(2024, 1, 1), None]) if days else pa.array(times, pa.timestamp("us"))
    rows = pa.table({"id": list("abc"), "p": column, "ts": pa.array([1, 2, 3], pa.int64())})
    keys = {
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMICROSECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd HH:mm:ss",
        "hoodie.keygen.timebased.output.timezone": "UTC",
        "hoodie.keygen.timebased.timezone": "UTC",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
        "hoodie.write.table.version": "6",
    }
    settings = {"hoodie.datasource.write.table.type": kind, "hoodie.datasource.write.precombine.field": "ts"}
    table = make(tmp_path / "t", rows, "p", **settings, **({} if days else keys))
    if kind == "MERGE_ON_READ":
        table.upsert(rows)
    found = hudi_py.read(in_chatham, tmp_path / "t", where=where)
    texts = {row.id: row.p for row in found.selectExpr("id", "cast(p as string) p").collect()}
    shown = hudi_py.open_table(tmp_path / "t").rows(where=where).to_arrow().to_pylist()
    assert texts == {row["id"]: None if row["p"] is None else str(row["p"]) for row in shown}

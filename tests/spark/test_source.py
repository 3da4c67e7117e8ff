"""The data source of Spark 4, by Spark: batches, and a stream that is stopped and started again."""

import pyspark
import pytest

import hudi_py
from hudi_py.errors import ConfigError
from hudi_py.storage.local import LocalStorage
from support import fixtures
from support.streams import with_a_started_source
from support.writes import create_table, open_table, upsert

pytestmark = pytest.mark.spark
needs_sources = pytest.mark.skipif(
    pyspark.__version__.startswith("3."), reason="Spark 3.5 has no data sources in Python"
)


def test_spark_without_sources_in_python_is_told(spark):
    """What it cannot do, and what it can."""
    if not pyspark.__version__.startswith("3."):
        pytest.skip("this Spark has them")
    with pytest.raises(ConfigError, match=r"hudi_py\.read\(spark"):
        hudi_py.register(spark)


@needs_sources
def test_a_format_of_spark_gives_the_rows(spark, tmp_path):
    """Merged on executors, in all types; options ask, and a wrong one is told."""
    table = hudi_py.open_table(fixtures.unpack_rows("mor_types-1.1.1", tmp_path))
    hudi_py.spark.register(spark)
    reader = spark.read.format("hudi_py")
    found = [row.asDict(recursive=True) for row in reader.load(table.storage.root).collect()]
    expected = [row.asDict(recursive=True) for row in hudi_py.read(spark, table.storage.root).collect()]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert found
    with pytest.raises(Exception, match="the option wher is not known"):
        reader.option("wher", "id = 1").load(table.storage.root)


@needs_sources
def test_an_earlier_time_in_sql_is_an_option_of_the_view(spark, tmp_path):
    """SQL's own words for it are refused by Spark, tables by us: nobody is shown the rows of today in their place."""
    storage = create_table(9, LocalStorage(str(tmp_path / "t")))
    hudi_py.register(spark)
    upsert(storage, [{"id": "a", "region": "eu", "ts": 1}])
    first = hudi_py.open_table(storage.root).timeline.writes.completed()[0].requested_time
    upsert(storage, [{"id": "a", "region": "eu", "ts": 2}])
    options = f"path '{storage.root}', as_of '{first}'"
    spark.sql(f"create or replace temporary view earlier using hudi_py options ({options})")
    assert [row.ts for row in spark.sql("select ts from earlier").collect()] == [1]
    for words in ("timestamp as of '2024-01-01'", f"version as of '{first}'"):
        with pytest.raises(Exception, match=r"TIME_TRAVEL"):
            spark.sql(f"select ts from earlier {words}")
    for words in (f"options (path '{storage.root}')", f"location '{storage.root}'", ""):
        with pytest.raises(Exception, match="CREATE TEMPORARY VIEW"):
            spark.sql(f"create table trips using hudi_py {words}")
    assert not spark.catalog.tableExists("trips")


@needs_sources
def test_a_stream_goes_on_from_its_checkpoint(spark, tmp_path):
    """A batch that failed comes again as it was; each commit is in one batch, whenever the query ran."""
    storage = create_table(9, LocalStorage(str(tmp_path / "t")))
    hudi_py.register(spark)
    batches, fails = {}, [1]

    def take(frame, number):
        batches.setdefault(number, []).append(sorted((row.id, row.ts) for row in frame.collect()))
        if number in fails:
            fails.remove(number)
            raise ConnectionError

    def run():
        with_a_started_source(once)

    def once():
        frame = spark.readStream.format("hudi_py").load(storage.root)
        writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.foreachBatch(take).trigger(availableNow=True).start()
        query.awaitTermination()

    upsert(storage, [{"id": "a", "region": "eu", "ts": 1}])
    run()
    upsert(storage, [{"id": "b", "region": "eu", "ts": 2}])
    upsert(storage, [{"id": "a", "region": "eu", "ts": 3}])
    with pytest.raises(Exception, match="ConnectionError"):
        run()
    run()
    upsert(storage, [{"id": "c", "region": "us", "ts": 4}])
    run()
    again = [("a", 3), ("b", 2)]
    assert {0: [[("a", 1)]], 1: [again, again], 2: [[("c", 4)]]} == batches


@needs_sources
def test_a_stream_ends_where_what_it_told_was_undone(spark, tmp_path):
    """Also behind a newer commit, when it is started again from its checkpoint; archived commits do not end it."""
    storage = create_table(9, LocalStorage(str(tmp_path / "t")))
    hudi_py.register(spark)
    told = []

    def once():
        frame = spark.readStream.format("hudi_py").load(storage.root)
        writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        take = writer.foreachBatch(lambda rows, _: told.extend(row.ts for row in rows.collect()))
        take.trigger(availableNow=True).start().awaitTermination()

    for ts in range(1, 5):
        upsert(storage, [{"id": "a", "region": "eu", "ts": ts}])
    with_a_started_source(once)
    open_table(storage).archive(keep_min_commits=1, keep_max_commits=2)
    upsert(storage, [{"id": "a", "region": "eu", "ts": 5}])
    with_a_started_source(once)
    assert told == [4, 5]
    undone = open_table(storage).timeline.writes.completed()[-1].requested_time
    open_table(storage).rollback(undone)
    upsert(storage, [{"id": "a", "region": "eu", "ts": 6}])
    with pytest.raises(Exception, match=rf"commit {undone}, which rollback .* undone since"):
        with_a_started_source(once)
    assert told == [4, 5]

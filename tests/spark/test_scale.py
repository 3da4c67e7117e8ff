"""Much data, uneven data, and tasks that run twice."""

import resource
import threading
from pathlib import Path

import pytest

import hudi_py
from hudi_py.errors import ConflictError
from hudi_py.spark import two_passes
from hudi_py.spark.columns import estimated_bytes, int_hashing_to
from hudi_py.timeline.fence import is_fenced, put_up_fence
from hudi_py.timeline.markers import Marker, MarkerType, create_marker
from hudi_py.writing import bulk, tasks
from support.trips import COMMON, DRIVER_ROWS, PARTITIONED, TWO_PASSES, hudi_rs_rows, trip

pytestmark = pytest.mark.spark
BY_TASKS = {DRIVER_ROWS: "0"}
SMALL_FILES = {"hoodie.parquet.max.file.size": "60000", "hoodie.copyonwrite.record.size.estimate": "40"}


def wide(spark, count, *, version=1, partitions=1, first=0):
    """Rows that do not compress well."""
    return spark.range(first, first + count, 1, 4).selectExpr(
        "concat('k', id) AS id",
        f"concat('r', id % {partitions}) AS region",
        f"{version}L AS ts",
        "double(id) AS amount",
        "md5(string(id)) AS name",
    )


def tokens(result) -> set[str]:
    """Task partitions that wrote the files of a commit."""
    stats = [stat for each in result.metadata.partition_to_write_stats.values() for stat in each]
    return {stat.path.split("_")[1].split("-")[0] for stat in stats}


def sizes(result) -> list[int]:
    return [stat.file_size_in_bytes for each in result.metadata.partition_to_write_stats.values() for stat in each]


@pytest.mark.parametrize("settings", [COMMON, PARTITIONED], ids=["no partitions", "one partition"])
def test_a_single_large_partition_is_written_by_several_tasks(settings, trips):
    """Neither a table without partitions nor one with a skewed partition leaves cores idle; no file is too large."""
    table = trips(settings | TWO_PASSES | SMALL_FILES)
    first = table.client.upsert(wide(table.spark, 6000))
    assert 2 <= len(tokens(first))
    assert max(sizes(first)) < 2 * 60_000
    second = table.client.upsert(wide(table.spark, 3000, version=2, first=1500))
    assert 2 <= len(tokens(second))
    rows = {row.id: row.ts for row in hudi_py.read(table.spark, table.path).collect()}
    assert {f"k{number}": 2 if 1500 <= number < 4500 else 1 for number in range(6000)} == rows
    assert 6000 == len(hudi_rs_rows(table.path)) == hudi_py.read(table.spark, table.path).count()


def test_large_bulk_insert_is_spread_without_tiny_files(trips):
    """Rebalancing cuts the large partition and joins the small ones; a file ends at its maximum size."""
    table = trips(PARTITIONED | TWO_PASSES | {"hoodie.parquet.max.file.size": "400000"})
    name = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
    before = table.spark.conf.get(name)
    skewed = wide(table.spark, 40_000).unionByName(wide(table.spark, 300, partitions=7, first=40_000))
    try:
        table.spark.conf.set(name, "500k")
        result = table.client.bulk_insert(skewed)
    finally:
        table.spark.conf.set(name, before)
    by_partition = {path: len(each) for path, each in result.metadata.partition_to_write_stats.items()}
    assert 7 == len(by_partition)
    assert 2 <= by_partition.pop("r0") <= 12
    assert {1} == set(by_partition.values())
    assert 2 <= len(tokens(result))
    assert max(sizes(result)) < 2 * 400_000
    assert 40_300 == len(hudi_rs_rows(table.path))


def test_sequence_numbers_are_unique(trips):
    """Also among the files of one task."""
    table = trips()
    table.insert([trip(number) for number in range(30)])
    table.upsert([trip(number, 2) for number in range(10, 40)])
    numbers = [row[0] for row in hudi_py.read(table.spark, table.path).select("_hoodie_commit_seqno").collect()]
    assert len(numbers) == len(set(numbers)) == 40


def test_small_writes_that_meet_much_of_the_table_take_the_large_way(trips, monkeypatch):
    """A single task turns back before it has written anything."""
    table = trips(PARTITIONED | BY_TASKS)
    table.insert([trip(number, region=f"r{number}") for number in range(8)])
    calls = []

    def refuse(job, batches, task):
        raise tasks.TooMuchForOneTask

    monkeypatch.setattr(two_passes, "write_in_two_passes", _recording(two_passes.write_in_two_passes, calls))
    monkeypatch.setattr("hudi_py.spark.rows.write_in_two_passes", two_passes.write_in_two_passes)
    monkeypatch.setattr("hudi_py.spark.rows.run_task", refuse)
    table.upsert([trip(number, 2, region=f"r{number}") for number in range(8)])
    assert [True] == calls
    table.check()


def _recording(function, calls):
    def recorded(*arguments, **named):
        calls.append(True)
        return function(*arguments, **named)

    return recorded


def test_leftovers_of_retried_tasks_never_become_visible(trips):
    """A file that a marker names and no result does is gone before the commit completes."""
    table = trips(PARTITIONED | BY_TASKS)
    table.insert([trip(1)])
    storage = table.client.table.storage
    seen = {}

    def leave(job, batches, task):
        marker = Marker("r1", f"{'0' * 8}-0_9-9-9_{job.instant_time}.parquet", MarkerType.CREATE)
        create_marker(job.storage, job.instant_time, marker)
        with job.storage.open_write(marker.path) as stream:
            stream.write(b"torn")
        return tasks.run_task(job, batches, task)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hudi_py.spark.rows.run_task", leave)
        seen["result"] = table.upsert([trip(1, 2)])
    assert [] == [entry.name for entry in storage.list("r1") if "_9-9-9_" in entry.name]
    assert is_fenced(storage, seen["result"].instant)
    table.check()


def test_a_straggler_removes_its_own_files(trips):
    """A task that goes on after the write was closed leaves nothing that carries the completed instant."""
    table = trips(PARTITIONED | BY_TASKS)
    table.insert([trip(1)])

    def closed_meanwhile(job, batches, task):
        def rest():
            yield from batches
            put_up_fence(job.storage, job.instant_time)  # what the driver does when it waits no longer

        return bulk.run_bulk_task(job, rest(), task)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hudi_py.spark.bulk.run_bulk_task", closed_meanwhile)
        with pytest.raises(ConflictError, match="was closed while a task was still writing"):
            table.client.bulk_insert(table.frame([trip(4, 2)]))
    names = [path.name for path in Path(table.path).rglob("*.parquet") if ".hoodie" not in path.parts]
    assert 1 == len(names)
    table.upsert([trip(1, 3)])
    table.check()


def test_clean_on_executors_equals_clean_on_threads(trips):
    """The same files go; each is a task's, up to the configured parallelism."""
    left = []
    for engine in ("spark", "local"):
        table = trips(PARTITIONED | {"hoodie.clean.automatic": "false", "hoodie.clean.commits.retained": "1"})
        for version in range(4):
            table.upsert([trip(number, version) for number in range(6)])
        results = (
            table.client.clean() if engine == "spark" else hudi_py.open_table(table.path).clean(commits_retained=1)
        )
        assert [6] == [len(each.deleted_files) for each in results]
        table.check()
        left.append(len(list(Path(table.path).rglob("r*/*.parquet"))))
    assert left[0] == left[1]


def test_keys_that_hash_to_every_partition(spark):
    """The numbers that route file groups to tasks do so in this release of Spark."""
    from pyspark.sql.functions import spark_partition_id

    rows = [(int_hashing_to(task, 5), task) for task in range(5)]
    routed = spark.createDataFrame(rows, "code int, task int").repartition(5, "code")
    assert all(row[0] == row[1] for row in routed.select("task", spark_partition_id()).collect())
    assert (
        estimated_bytes(spark.range(100))
        <= 1000
        < 1 << 60
        <= estimated_bytes(spark.createDataFrame(rows, "a int, b int"))
    )


def test_two_writers_in_one_session_use_different_names(trips):
    """Threads with clients of different tables do not disturb each other."""
    tables = [trips(), trips(PARTITIONED | TWO_PASSES)]
    threads = [
        threading.Thread(target=lambda each=each: each.upsert([trip(number) for number in range(9)])) for each in tables
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for table in tables:
        table.check()


@pytest.mark.slow
def test_memory_of_the_driver_stays_flat(trips):
    """The driver sees counts and file names: ten times the rows take no more of its memory."""
    table = trips(PARTITIONED | TWO_PASSES)
    table.client.bulk_insert(wide(table.spark, 20_000, partitions=4))
    table.client.upsert(wide(table.spark, 20_000, partitions=4, version=2))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    table.client.upsert(wide(table.spark, 200_000, partitions=4, version=3, first=10_000))
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown_kib < 16 * 1024
    assert 210_000 == hudi_py.read(table.spark, table.path).count()

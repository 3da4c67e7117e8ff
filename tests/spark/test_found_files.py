"""How many tasks Spark takes to find the files of a table that it is given."""

import pyarrow as pa
import pytest

import hudi_py

pytestmark = pytest.mark.spark

PARALLELISM = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
FILES = 40
"""More than `spark.sql.sources.parallelPartitionDiscovery.threshold`."""


def tasks_of(spark, group):
    tracker = spark.sparkContext.statusTracker()
    stages = [stage for job in tracker.getJobIdsForGroup(group) for stage in tracker.getJobInfo(job).stageIds]
    return max((tracker.getStageInfo(stage).numTasks for stage in stages), default=0)


@pytest.mark.parametrize("columns", ["", "region"], ids=["by name", "by partition"])
@pytest.mark.parametrize("asked", [None, "25"])
def test_files_are_found_in_few_tasks(spark, tmp_path, columns, asked):
    """In a few for each core, or as many as the session asks for; the session is as before."""
    regions = [f"r{number % FILES}" for number in range(FILES)]
    rows = pa.table({"id": [str(number) for number in range(FILES)], "region": regions})
    settings = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": columns,
        "hoodie.parquet.small.file.limit": 0,
    }
    for number in range(1 if columns else FILES):
        part = rows if columns else rows.slice(number, 1)
        hudi_py.write(tmp_path / "t", part, "insert", settings={**settings, "hoodie.clean.automatic": False})
    if asked is not None:
        spark.conf.set(PARALLELISM, asked)
    group = str(tmp_path)
    spark.sparkContext.setJobGroup(group, "finding files")
    try:
        frame = hudi_py.read(spark, tmp_path / "t")
        found = tasks_of(spark, group)
        assert spark.conf.get(PARALLELISM, None) == asked
    finally:
        spark.conf.unset(PARALLELISM)
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    limit = spark.sparkContext.defaultParallelism * 4 if asked is None else int(asked)
    assert limit < FILES
    assert found == limit
    assert frame.count() == FILES

"""Compactions and clusterings whose files Spark executors write."""

import pytest

import hudi_py
from hudi_py.config.clustering import clustering_config
from hudi_py.spark.engine import SparkEngine
from support.trips import PARTITIONED, trip

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("version", [6, 9])
def test_executors_compact_logs_and_files_and_cluster(trips, version):
    """Rows are those of the model before and after each; a group of the plan is a task, and a rewrite replaces it."""
    mor = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline.max.delta.commits": "1"}
    mor["hoodie.log.compaction.blocks.threshold"] = "2"
    table = trips(PARTITIONED | mor | {"hoodie.parquet.small.file.limit": "0"}, version)
    for number in range(3):
        table.insert([trip(10 * number + each) for each in range(10)])
    table.upsert([trip(number, 2) for number in range(0, 30, 2)])
    table.upsert([trip(number, 3) for number in range(0, 30, 3)])
    (merged,) = table.client.compact_logs()
    assert merged.file_groups > 1
    assert table.expected() == table.stored()
    before = hudi_py.open_table(table.path)
    with_logs = sum(bool(each.log_files) for path in before.partitions() for each in before.file_slices(path))
    (compacted,) = table.client.compact()
    assert compacted.file_groups == with_logs > 1
    assert table.expected() == table.stored()
    (clustered,) = table.client.cluster(sort_by=["ts", "id"], layout="z-order")
    after = hudi_py.open_table(table.path)
    assert [len(after.file_slices(path)) for path in after.partitions()] == [1] * len(after.partitions())
    assert clustered.rows == len(table.expected())
    assert table.expected() == table.stored()
    assert not [each for each in after.check() if each.severity.value != "info"]


def test_a_plan_is_carried_out_on_executors_by_another_process(trips):
    """Stored without Spark; what the first attempt left is taken back first."""
    table = trips(PARTITIONED | {"hoodie.parquet.small.file.limit": "0"})
    for number in range(3):
        table.insert([trip(10 * number + each) for each in range(10)])
    opened = hudi_py.open_table(table.path)
    instant = opened.services.clustering().schedule()
    opened.contents.store.transition(instant)
    opened = hudi_py.open_table(table.path)
    service = opened.services.clustering(clustering_config(opened.settings), engine=SparkEngine(table.spark))
    (done,) = opened.run_clustering(service, instant.requested_time)
    assert (done.instant, done.rows) == (instant.requested_time, 30)
    assert table.expected() == table.stored()

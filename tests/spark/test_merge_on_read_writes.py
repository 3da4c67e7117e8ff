"""Merge-on-read tables written on Spark: updates go to log files, in one pass and in two."""

import pytest

from support.trips import PARTITIONED, TWO_PASSES, Trips, trip

pytestmark = pytest.mark.spark
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}


def log_files(result):
    """Number of log files among the files of a commit."""
    stats = [stat for each in result.metadata.partition_to_write_stats.values() for stat in each]
    return sum(stat.log_version is not None for stat in stats)


@pytest.mark.parametrize("version", [6])
def test_small_and_large_writes_in_turn(trips, version):
    """Rows are those of the model; updates and deletes rewrite no base file, inserts fill the smallest one."""
    table = trips(PARTITIONED | MOR, version)
    large = Trips(table.spark, table.path, table.settings | TWO_PASSES)
    large.model = table.model
    table.insert([trip(number) for number in range(30)], "bulk_insert")
    assert log_files(table.upsert([trip(number, 2) for number in range(10)])) == 3
    assert log_files(large.upsert([trip(number, 3) for number in range(5, 20)])) == 3
    assert log_files(large.delete([trip(number) for number in range(0, 9, 3)])) == 1
    large.upsert([trip(number, 4) for number in range(25, 40)])
    assert log_files(table.upsert([trip(39, 5), trip(38, 5), trip(1, 5, _hoodie_is_deleted=True)])) == 3
    assert table.expected() == table.stored()

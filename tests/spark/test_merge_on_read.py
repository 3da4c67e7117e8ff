"""Merge-on-read tables of real Hudi as DataFrames: the rows that are read without Spark."""

import pytest

import hudi_py
from support import fixtures

pytestmark = pytest.mark.spark


def by_key(rows):
    return sorted(rows, key=lambda row: (row["_hoodie_record_key"], row["_hoodie_commit_time"]))


@pytest.mark.parametrize("name", ["mor_event_time-0.15.0", "mor_evolved-1.0.2", "mor_partial_update-1.1.1"])
def test_frames_hold_the_rows_that_are_read_without_spark(spark, name, tmp_path):
    """Slices with log files are merged on executors, others are left to Spark's own reader; base files alone too."""
    table = hudi_py.open_table(fixtures.unpack_rows(name, tmp_path))
    first = table.timeline.commits.completed()[0].requested_time
    for how in ({}, {"read_optimized": True}, {"as_of": first}):
        frame = hudi_py.read(spark, table.storage.root, **how)
        found = [row.asDict() for row in frame.collect()]
        assert by_key(found) == by_key(table.rows(with_meta=True, **how).to_arrow().to_pylist()), how
    assert hudi_py.read(spark, table.storage.root).filter("_hoodie_record_key is null").count() == 0

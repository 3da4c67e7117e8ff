"""Ranges of commits as DataFrames."""

import pytest

import hudi_py
from hudi_py.errors import ConfigError
from support import fixtures

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", ["cow_small_files-1.1.1", "mor_event_time-1.1.1", "mor_event_time-0.15.0"])
def test_a_range_is_the_same_on_spark(spark, tmp_path, name):
    """As without it, which is what Hudi reads; base files alone and merged slices side by side."""
    path = str(fixtures.unpack_rows(name, tmp_path))
    table = hudi_py.open_table(path)
    for each in fixtures.expected_rows(name)["incremental"]:
        ours = (
            table.changes(each["begin"], each["end"], columns=["_hoodie_commit_time", "id", "ts"])
            .to_arrow()
            .to_pylist()
        )
        found = hudi_py.read(spark, path, start=each["begin"], end=each["end"])
        theirs = [row.asDict() for row in found.select("_hoodie_commit_time", "id", "ts").collect()]
        assert sorted(theirs, key=str) == sorted(ours, key=str)
        assert len(theirs) == each["rows"]


def test_a_range_is_one_question(spark, tmp_path):
    """Snapshots and base files alone are others."""
    path = str(fixtures.unpack_rows("cow_small_files-1.1.1", tmp_path))
    for other in ({"as_of": "1d"}, {"read_optimized": True}):
        with pytest.raises(ConfigError):
            hudi_py.read(spark, path, start="0", **other)

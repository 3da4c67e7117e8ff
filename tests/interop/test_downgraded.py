"""Merge-on-read tables that Apache Hudi downgraded to table version 6: their earlier rows."""

from itertools import combinations

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.errors import RefusedError
from support.interop_sample import releases

pytestmark = pytest.mark.oracle

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline": "false",
}
ARCHIVED = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1"}
WRITES = (range(8), range(3), range(2, 5), (7, 8), (0, 4))


def versions(batches):
    return {row["id"]: row["ts"] for batch in batches for row in batch.to_pylist()}


@pytest.mark.parametrize("peer", releases(8, 9), indirect=True)
def test_earlier_times_and_ranges_stay_right(peer, tmp_path):
    """Log files from before it are named after their write, so each seems to be a slice of its own."""
    path, times, states = tmp_path / "t", [], [{}]
    for version, numbers in enumerate(WRITES, start=1):
        batch = pa.table({"id": [str(n) for n in numbers], "p": ["x"] * len(numbers), "ts": [version] * len(numbers)})
        if version == len(WRITES):
            peer.savepoint(path, times[-1])
            peer.sql(f"create table downgraded using hudi location '{path}'")
            peer.sql("call downgrade_table(table => 'downgraded', to_version => 'SIX')")
            peer.sql("drop table downgraded")
        times.append(peer.write(path, batch, "upsert", SETTINGS)["requested_time"])
        states.append(states[-1] | {str(n): version for n in numbers})
    check(hudi_py.open_table(path), times, states)
    with pytest.raises(RefusedError, match="before the table was downgraded"):
        hudi_py.open_table(path).restore(times[-2])
    hudi_py.open_table(path).delete_savepoint(times[-2])
    peer.archive(path, ARCHIVED)
    table = hudi_py.open_table(path)
    assert table.timeline.is_before_start(times[1])
    check(table, times, states)


def check(table, times, states):
    assert table.config.format.version == 6
    for time, state in zip(times, states[1:], strict=True):
        assert versions(table.as_of(time).rows()) == state
    assert versions(table.rows()) == states[-1]
    for first, last in combinations(range(len(times)), 2):
        changed = {key: version for key, version in states[last + 1].items() if version > first + 1}
        assert versions(table.changes(times[first], times[last])) == changed

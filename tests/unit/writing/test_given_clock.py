"""All times that a write stores are those of the clock it was given, also where its tasks store them."""

from datetime import datetime, timezone

import pyarrow as pa

import hudi_py
from hudi_py.runtime.clock import FixedClock

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
}


def test_new_partition_is_dated_by_the_given_clock(tmp_path):
    """Its metafile is written by a task, which may run on another machine."""
    clock = FixedClock(datetime(2024, 2, 29, 23, 59, 58, tzinfo=timezone.utc))
    rows = pa.table({"id": ["a"], "city": ["Rome"]})
    written = hudi_py.write(tmp_path / "t", rows, settings=SETTINGS, clock=clock)
    [metafile] = (tmp_path / "t" / "Rome").glob(".hoodie_partition_metadata*")
    lines = metafile.read_text().splitlines()
    assert "#Thu Feb 29 23:59:58 UTC 2024" in lines
    assert f"commitTime={written.instant}" in lines

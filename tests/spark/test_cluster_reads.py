"""Reading on a standalone cluster of two workers, each in processes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.spark.session import ensure_java
from support.event_logs import jobs_of, spark_home

pytestmark = pytest.mark.spark

PROJECT = Path(hudi_py.__file__).parents[1]
QUESTIONS = {
    "snapshot": {},
    "some": {"where": "n >= 30", "columns": ["id", "n"]},
    "changes": {"start": "FIRST", "with_deletes": True},
    "change log": {"start": "0", "change_log": True},
    "read optimized": {"read_optimized": True},
}
PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
import hudi_py

path, questions = sys.argv[1], json.loads(sys.argv[2])
settings = {
    "spark.cores.max": 2, "spark.scheduler.minRegisteredResourcesRatio": 1.0,
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
}
builder = SparkSession.builder.master("local-cluster[2,1,1024]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
for name, asked in questions.items():
    spark.sparkContext.setJobDescription(name)
    rows = hudi_py.read(spark, path, **asked)._collect_as_arrow()
    print("ROWS", json.dumps([name, sorted(repr(row) for batch in rows for row in batch.to_pylist())]))
spark.stop()
"""


def rows(numbers, version):
    """One of each partition; a task reads 16 file slices at most, so that there are tasks for both workers."""
    return pa.table(
        {
            "id": [f"k{number}" for number in numbers],
            "region": [f"r{number % 40}" for number in numbers],
            "n": list(numbers),
            "ts": [version] * len(numbers),
        }
    )


def written(path):
    settings = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.table.cdc.enabled": "true",
    }
    first = hudi_py.write(path, rows(range(80), 1), operation="insert", settings=settings)
    table = hudi_py.open_table(path)
    table.upsert(rows(range(0, 80, 2), 2))
    table.refresh().delete(where="n < 9")
    commits = table.refresh().timeline.writes.completed()
    assert commits[0].requested_time == first.instant
    return table, commits[0].completion_time


@pytest.mark.slow  # starts a cluster: a master, two workers and two executors with Python of their own
def test_both_workers_read_what_is_read_without_spark(tmp_path):
    """Merged slices, conditions, deletes and single changes, by tasks that know the table from the driver alone."""
    table, first = written(tmp_path / "t")
    questions = {
        name: {key: first if value == "FIRST" else value for key, value in asked.items()}
        for name, asked in QUESTIONS.items()
    }
    ensure_java()
    home = tmp_path / "home"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, table.storage.root, json.dumps(questions)],
        env={**os.environ, "PYTHONPATH": str(PROJECT), "PYSPARK_PYTHON": sys.executable, **spark_home(home)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = (line.removeprefix("ROWS ") for line in done.stdout.splitlines() if line.startswith("ROWS "))
    found = dict(map(json.loads, told))
    assert found.keys() == questions.keys()
    for name, asked in questions.items():
        local = table.change_log() if "change_log" in asked else None
        if local is None:
            read = table.changes if "start" in asked else table.rows
            local = read(**asked, with_meta="columns" not in asked)
        assert found[name] == sorted(repr(row) for batch in local for row in batch.to_pylist()), name
    assert {executor for executors in jobs_of(home / "events").values() for executor in executors} == {"0", "1"}

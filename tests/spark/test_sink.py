"""Streams of Spark into a table: `foreachBatch` with a write key commits each micro-batch once."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import hudi_py

pytestmark = pytest.mark.spark
ROOT = Path(__file__).resolve().parents[2]
BATCHES = 6


def run(folder, table_type, when):
    """One life of the query; returns its end and what it said of its batches."""
    command = [sys.executable, str(ROOT / "tests/support/sink_victim.py")]
    places = [str(folder / name) for name in ("table", "source", "checkpoint")]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    done = subprocess.run(
        [*command, *places, table_type, when],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=300,
        start_new_session=True,
        check=False,
    )
    return done.returncode, [tuple(line.split()) for line in done.stdout.splitlines()]


@pytest.mark.slow  # each life of the query starts a JVM
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_each_micro_batch_is_committed_once_whenever_the_query_is_killed(table_type, tmp_path):
    """Before the commit, between metadata table and commit, and before the checkpoint; inserts would show a second."""
    (tmp_path / "source").mkdir()
    expected = []
    for number in range(BATCHES):
        rows = [{"id": f"{number}-{each}", "region": f"r{each % 3}", "ts": number} for each in range(10)]
        expected += [(row["id"], row["ts"]) for row in rows]
        (tmp_path / "source" / f"{number}.json").write_text("\n".join(map(json.dumps, rows)))
    said = []
    for when in ("writing", "recording", "committed"):
        ended, lines = run(tmp_path, table_type, when)
        assert ended == -signal.SIGKILL, when
        said += lines
    ended, lines = run(tmp_path, table_type, "never")
    assert ended == 0
    said += lines
    table = hudi_py.open_table(tmp_path / "table")
    rows = table.rows().to_arrow().to_pylist()
    assert sorted((row["id"], row["ts"]) for row in rows) == sorted(expected)
    assert [number for number, how in said if how == "written"] == [str(number) for number in range(BATCHES)]
    assert [how for _, how in said].count("repeated") == 1  # the batch whose checkpoint was lost
    assert not [str(each) for each in table.check() if each.severity.name != "INFO"]

"""
Writes on a standalone cluster of two workers, processes of their own with their own Pythons, one of which is killed.

``HUDI_PY_CLUSTER`` says how many partitions with how many files each the table has (``24x6`` unless told; orders of
real tables are ``200x50``).
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hudi_py
from support.cluster import Cluster
from support.cluster_driver import ROWS_PER_FILE

pytestmark = pytest.mark.spark
ROOT = Path(__file__).resolve().parents[2]
PARTITIONS, FILES = map(int, os.environ.get("HUDI_PY_CLUSTER", "24x6").split("x"))


def marked(table):
    """Number of files that tasks of a write under way have announced."""
    return sum(len(names) for _, _, names in os.walk(table / ".hoodie/.temp"))


@pytest.mark.slow  # five JVMs
@pytest.mark.parametrize(
    ("table_type", "during"), [("COPY_ON_WRITE", "upsert"), ("MERGE_ON_READ", "upsert"), ("COPY_ON_WRITE", "insert")]
)
def test_rows_are_right_when_a_worker_is_killed_in_the_middle(table_type, during, tmp_path):
    """The other worker does its tasks again; each row is there once, as it was written last, no file is left over."""
    path, script = tmp_path / "t", ROOT / "tests/support/cluster_driver.py"
    command = [sys.executable, str(script), str(path), table_type, str(PARTITIONS), str(FILES)]
    with Cluster(tmp_path) as cluster, (tmp_path / "driver.log").open("w") as log:
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=dict(cluster.driver_environment())
        ) as driver:
            try:
                for line in driver.stdout:
                    if line.strip() != f"begin {during}":
                        continue
                    while marked(path) < PARTITIONS * FILES // 4 and driver.poll() is None:
                        time.sleep(0.02)
                    assert driver.poll() is None, (tmp_path / "driver.log").read_text()[-3000:]
                    cluster.kill_worker(0)
            finally:
                if driver.poll() is None and sys.exc_info()[0] is not None:
                    driver.kill()
        assert driver.returncode == 0, (tmp_path / "driver.log").read_text()[-3000:]
    table = hudi_py.open_table(path)
    rows = table.rows(columns=["id", "region", "ts"]).to_arrow().to_pylist()
    found = sorted((row["id"], row["region"], row["ts"]) for row in rows)
    count = PARTITIONS * FILES * ROWS_PER_FILE
    assert found == [(f"k{each:08d}", f"r{each % PARTITIONS:04d}", 1 + (each % 2 == 0)) for each in range(count)]
    assert len(table.timeline.completed()) == 2
    assert not [str(each) for each in table.check() if each.severity.name != "INFO"]

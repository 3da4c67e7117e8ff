"""
Spark writers killed with SIGKILL at random moments, driver, JVM and workers at once.

``HUDI_PY_SPARK_KILLS`` says how often per layout (1 unless told: each starts a JVM).
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.kills import assert_nothing_leaks, expected, visible
from support.victim import opened

pytestmark = pytest.mark.spark
ROOT = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get("HUDI_PY_SPARK_KILLS", "1"))
VERSIONS = [6, 9] if KILLS > 1 else [9]  # a Spark takes its time to start; tests/crash/test_kill.py has both layouts


def killed_writer(path, version, number, chance):
    """Let a writer do one batch, kill it during the second; returns the last batches begun and done."""
    command = [sys.executable, str(ROOT / "tests/support/spark_victim.py"), str(path), str(version), str(number)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment, start_new_session=True
    ) as process:
        first, span_s, lines = time.monotonic(), 0.0, []
        for line in process.stdout:
            lines.append(line.split())
            if line.startswith("done"):
                span_s = time.monotonic() - first
            if len(lines) == 3:
                break
            first = time.monotonic()
        assert len(lines) == 3, "the writer ended by itself"
        time.sleep(chance.uniform(0, span_s))  # the moment of the kill is what is tried here
        os.killpg(process.pid, signal.SIGKILL)  # not reaped yet: the group is still its own
        lines += [line.split() for line in process.stdout]
    return [max(int(number) for word, number in lines if word == wanted) for wanted in ("begin", "done")]


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_spark_writers_killed_at_random_moments_lose_and_leak_nothing(tmp_path, record_property, version):
    """No committed row is lost, no uncommitted one visible, and after recovery no file is left over."""
    chance = random.Random(version)
    path, last = tmp_path / "t", -1
    for _ in range(KILLS):
        begun, done = killed_writer(path, version, last + 1, chance)
        rows, count = visible(path)
        last = max(rows.values())
        assert done <= last <= begun
        assert rows == expected(last)
        assert count == len(rows)
        assert not [each.error for each in opened(path).recover() if each.error]
        assert not [each for each in opened(path).recover() if each.done]
        assert visible(path)[0] == rows
        assert_nothing_leaks(path)
    record_property("interruptions", KILLS)

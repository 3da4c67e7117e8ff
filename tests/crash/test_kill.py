"""
Real processes, killed with SIGKILL at random moments: writers, cleaners, recoveries.

``HUDI_PY_KILLS`` says how often per layout (10 unless told), ``HUDI_PY_KILL_SEED`` which moments.
"""

import os
import random
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from hudi_py.runtime.clock import FixedClock, SystemClock
from hudi_py.storage.local import LocalStorage
from hudi_py.table import Table
from support.kills import assert_nothing_leaks, expected, visible
from support.victim import opened
from support.writes import create_table

ROOT = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get("HUDI_PY_KILLS", "10"))


class Zygote:
    """The process that forks the victims."""

    def __init__(self, table, journal):
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "tests/support/victim.py"), str(table), str(journal)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )

    def measure(self, number):
        """Seconds that two writes take, from batch *number* on, nobody killing them: machines differ."""
        start = time.monotonic()
        self.process.stdin.write(f"calm {number}\nreap\n")
        self.process.stdin.flush()
        self.process.stdout.readline()
        assert int(self.process.stdout.readline()) == 0
        return time.monotonic() - start

    def kill_one(self, what, number, after_s):
        """Start a victim, kill it after so long; True when it was still at work."""
        self.process.stdin.write(f"{what} {number}\n")
        self.process.stdin.flush()
        child = int(self.process.stdout.readline())
        time.sleep(after_s)  # the moment of the kill is what is tried here
        os.kill(child, signal.SIGKILL)
        self.process.stdin.write("reap\n")
        self.process.stdin.flush()
        status = int(self.process.stdout.readline())
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, what
        return os.WIFSIGNALED(status)

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 9])
def test_processes_killed_at_random_moments_lose_and_leak_nothing(tmp_path, record_property, version):
    """No committed row is lost, no uncommitted one visible, no file left over, whoever was killed whenever."""
    chance = random.Random(int(os.environ.get("HUDI_PY_KILL_SEED", "1")) + version)
    path, journal = tmp_path / "t", tmp_path / "journal"
    create_table(version, LocalStorage(path), SystemClock(), **{"hoodie.table.timeline.timezone": "UTC"})
    journal.write_text("")
    zygote = Zygote(path, journal)
    killed = {"write": 0, "clean": 0, "recover": 0}
    try:
        zygote.measure(0)  # the first has much to load
        span_s = zygote.measure(2)
        last = 3
        for _ in range(KILLS * 20):
            if sum(killed.values()) >= KILLS:
                break
            killed["write"] += zygote.kill_one("write", last + 1, chance.uniform(0, span_s * 1.3))
            lines = [line.split() for line in journal.read_text().splitlines()]
            done = max((int(number) for word, number in lines if word == "done"), default=-1)
            begun = max((int(number) for word, number in lines if word == "begin"), default=-1)
            rows, count = visible(path)
            last = max(rows.values(), default=-1)
            assert done <= last <= begun
            assert rows == expected(last)
            assert count == len(rows)
            what = chance.choice(["clean", "recover", "recover", "none"])
            if what != "none":
                killed[what] += zygote.kill_one(what, 0, chance.uniform(0, span_s / 4))
                assert visible(path)[0] == rows
            if chance.random() < 0.7:  # else the next write recovers by itself
                assert not [each.error for each in opened(path).recover() if each.error]
                assert visible(path)[0] == rows
                assert_nothing_leaks(path)
    finally:
        zygote.close()
    assert sum(killed.values()) >= KILLS
    record_property("kills", sum(killed.values()))
    record_property("interruptions", sum(killed.values()))
    sys.stdout.write(f"killed: {killed}, {last + 1} writes committed\n")
    later = Table(LocalStorage(path), clock=FixedClock(datetime.now(timezone.utc) + timedelta(hours=2)))
    for _ in range(2):
        later.recover()
    assert not [each for each in later.recover() if each.done]
    assert_nothing_leaks(path)
    assert not [each for each in path.rglob("*") if each.is_file() and each.name[-37:-36] == "."]

"""Processes that race for one table, see `racer`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


RACER = Path(__file__).with_name("racer.py")


def race(*commands):
    """Start one process per command, let them go together, return what each printed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TZ": "UTC"}
    processes = [
        subprocess.Popen(
            [sys.executable, str(RACER), *map(str, command)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for command in commands
    ]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), outputs
    return [output for output, _ in outputs]

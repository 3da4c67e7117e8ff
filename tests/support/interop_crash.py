"""
A writer of ours to be killed: ``python interop_crash.py TABLE ROWS.parquet SETTINGS_JSON``.

`kill_between_inflight_and_completion` starts it and kills it, with everything it started, as soon as a data file of
its commit is visible: markers and files are there, the completed instant is not.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SECONDS_MAX = 90


def main(table: str, rows: str, settings: str) -> None:
    """One upsert."""
    from pyspark.sql import SparkSession

    import hudi_py

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    hudi_py.WriteClient(spark, table, json.loads(settings)).upsert(spark.read.parquet(rows))


def kill_between_inflight_and_completion(table: Path, rows: Path, settings: dict[str, str]) -> str:
    """Returns the instant that stays behind. Raises `AssertionError` when the writer was faster or failed."""
    before, done = _files(table), _completed(table)
    log = rows.with_suffix(".log")
    root = str(Path(__file__).resolve().parents[2])
    with log.open("wb") as output:
        writer = subprocess.Popen(
            [sys.executable, __file__, str(table), str(rows), json.dumps(settings)],
            stdout=output,
            stderr=output,
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))},
        )
    deadline = time.monotonic() + SECONDS_MAX
    try:
        while not _files(table) - before:
            assert writer.poll() is None, f"the writer ended by itself: {log.read_text(errors='replace')[-2000:]}"
            assert time.monotonic() < deadline, f"no data file within {SECONDS_MAX} s"
            time.sleep(0.002)
    finally:
        _kill_session(writer.pid)
        writer.wait()
    _wait_until_quiet(table)
    new = _files(table) - before
    assert done == _completed(table), "the writer completed before it could be killed"
    return min(name.rsplit("_", 1)[1].removesuffix(".parquet") for name in new)


def _kill_session(leader: int) -> None:
    """Kill the writer, its JVM and its Python workers (which form process groups of their own)."""
    for pid in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        try:
            if os.getsid(pid) == leader:
                os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _wait_until_quiet(table: Path) -> None:
    seen = None
    while seen != (now := _files(table)):
        seen = now
        time.sleep(0.3)


def _files(table: Path) -> set[str]:
    return {p.name for p in table.rglob("*.parquet") if ".hoodie" not in p.parts and not p.name.startswith(".")}


def _completed(table: Path) -> set[str]:
    return {p.name for p in (table / ".hoodie").rglob("*") if p.suffix == ".commit" and "metadata" not in p.parts}


if __name__ == "__main__":
    main(*sys.argv[1:])

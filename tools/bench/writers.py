"""
Commits a minute of several writers on one table, to partitions of their own and to the same one.

    python tools/bench/writers.py FOLDER [--seconds 20] [--writers 1,2,4,8] [--rows 100]

Each writer is a process that upserts rows until the time is over, without cleans and archivals. Prints a line of JSON
for each number of writers: commits a minute, the number of attempts that lost, and the CPU milliseconds of one commit.
The first two lines have one writer without and with the lock: their difference is what lock and conflict check cost.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

ALONE = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
SEVERAL = {
    **ALONE,
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.wait_time_ms": "0",
    "hoodie.write.lock.client.wait_time_ms_between_retry": "50",
    "hoodie.write.lock.client.num_retries": "10000",
    "hoodie.write.num.retries.on.conflict.failures": "1000",
}
TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
}


def main() -> None:
    """Run every number of writers on a new table, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--writers", default="1,2,4,8")
    parser.add_argument("--rows", type=int, default=100)
    given = parser.parse_args()
    counts = [int(each) for each in given.writers.split(",")]
    runs = [(1, True, ALONE), *((count, apart, SEVERAL) for apart in (True, False) for count in counts)]
    for count, are_apart, settings in runs:
        table = given.folder / "writers"
        shutil.rmtree(table, ignore_errors=True)
        figures = _run(str(table), count, settings, given.seconds, given.rows, are_apart=are_apart)
        where = "own partitions" if are_apart else "one partition"
        shown = {"writers": count, "to": where, "lock": settings is SEVERAL, **figures}
        print(json.dumps(shown), flush=True)
    shutil.rmtree(given.folder / "writers", ignore_errors=True)


def _run(
    location: str, count: int, settings: dict[str, str], seconds: float, rows: int, *, are_apart: bool
) -> dict[str, Any]:
    import hudi_py

    regions = [f"r{number}" if are_apart else "r0" for number in range(count)]
    for number, region in enumerate(regions):
        hudi_py.write(location, _rows(number, region, rows), settings={**TABLE, **settings})
    with ProcessPoolExecutor(count) as pool:
        running = [
            pool.submit(_write, location, number, region, settings, seconds, rows)
            for number, region in enumerate(regions)
        ]
        done = [each.result() for each in running]
    commits, lost = sum(each[0] for each in done), sum(each[1] for each in done)
    cpu_ms = 1000 * sum(each[2] for each in done) / max(commits, 1)
    return {
        "commits_a_minute": round(commits * 60 / seconds, 1),
        "attempts_lost": round(lost / max(commits + lost, 1), 3),
        "cpu_ms_a_commit": round(cpu_ms, 1),
    }


def _write(
    location: str, number: int, region: str, settings: dict[str, str], seconds: float, rows: int
) -> tuple[int, int, float]:
    """Number of commits, of lost attempts, and CPU seconds of one writer."""
    import hudi_py

    batch = _rows(number, region, rows)
    hudi_py.open_table(location).rows().to_arrow()  # what is imported once is not measured
    commits = lost = 0
    began, before = time.monotonic(), sum(os.times()[:2])
    while time.monotonic() < began + seconds:
        result = hudi_py.write(location, batch, settings=settings)
        commits, lost = commits + 1, lost + result.retries
    return commits, lost, sum(os.times()[:2]) - before


def _rows(number: int, region: str, count: int) -> Any:
    import pyarrow as pa

    return pa.table({"id": [f"{number}-{i}" for i in range(count)], "region": [region] * count, "n": range(count)})


if __name__ == "__main__":
    main()

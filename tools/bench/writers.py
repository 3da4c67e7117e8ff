"""
Commits a minute of several writers on one table, to partitions of their own and to the same one.

    python tools/bench/writers.py FOLDER [--seconds 20] [--writers 1,2,4,8] [--rows 100] [--hudi 1.1.1]

Each writer is a process that upserts rows until the time is over, without cleans and archivals. Prints a line of JSON
for each number of writers: commits a minute, the share of attempts that lost, the CPU milliseconds of one commit, the
milliseconds of one commit in which the lock is taken, checked and released (without the pauses between two tries), and
the load of the machine. The first two lines have one writer without and with the lock: their difference is what lock
and conflict check cost. With ``--hudi``, threads of one JVM with that release of Apache Hudi write instead, after a
warm-up, with the same lock provider and the same rows; a lost attempt is begun again at once.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[level]) for level in (1, 2)]

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
_POLICIES = ("hoodie.cleaner.policy.failed.writes", "hoodie.clean.failed.writes.policy")
_THEIRS = {"hoodie.datasource.write.precombine.field": "n"}


def main() -> None:
    """Run every number of writers on a new table, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--writers", default="1,2,4,8")
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--hudi", default="", help="release of Apache Hudi that writes instead")
    given = parser.parse_args()
    counts = [int(each) for each in given.writers.split(",")]
    runs = [(1, True, ALONE), *((count, apart, SEVERAL) for apart in (True, False) for count in counts)]
    run = _beside(given.hudi) if given.hudi else _run
    for count, are_apart, settings in runs:
        table = given.folder / "writers"
        shutil.rmtree(table, ignore_errors=True)
        figures = run(str(table), count, settings, given.seconds, given.rows, are_apart=are_apart)
        where = "own partitions" if are_apart else "one partition"
        shown = {
            "writers": count,
            "to": where,
            "lock": settings is SEVERAL,
            **figures,
            "load": round(os.getloadavg()[0]),
        }
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
    commits, lost, cpu_s, lock_s = (sum(each) for each in zip(*done, strict=True))
    figures = _figures(int(commits), int(lost), cpu_s, seconds)
    return figures | {"lock_ms_a_commit": round(1000 * lock_s / max(commits, 1), 2)}


def _figures(commits: int, lost: int, cpu_s: float, seconds: float) -> dict[str, Any]:
    return {
        "commits_a_minute": round(commits * 60 / seconds, 1),
        "attempts_lost": round(lost / max(commits + lost, 1), 3),
        "cpu_ms_a_commit": round(1000 * cpu_s / max(commits, 1), 1),
    }


def _beside(release: str) -> Callable[..., dict[str, Any]]:
    """As `_run`, by a release of Apache Hudi."""
    from real_hudi import RealHudi

    peer = RealHudi(release, call_seconds_max=1200)

    def run(
        location: str, count: int, settings: dict[str, str], seconds: float, rows: int, *, are_apart: bool
    ) -> dict[str, Any]:
        regions = [f"r{number}" if are_apart else "r0" for number in range(count)]
        batches = [_rows(number, region, rows) for number, region in enumerate(regions)]
        given = {**_THEIRS, **settings}
        if settings is SEVERAL:  # a lost attempt is counted, and begun again here
            given |= {"hoodie.write.num.retries.on.conflict.failures": "0", **dict.fromkeys(_POLICIES, "LAZY")}
        for batch in batches:
            peer.write(location, batch, "upsert", {**TABLE, **given})
        peer.write_for(location, batches, "upsert", given, seconds / 4)  # warm-up
        found = peer.write_for(location, batches, "upsert", given, seconds)
        return _figures(found["commits"], found["lost"], found["cpu_s"], seconds)

    return run


def _write(
    location: str, number: int, region: str, settings: dict[str, str], seconds: float, rows: int
) -> tuple[int, int, float, float]:
    """Number of commits, of lost attempts, CPU seconds of one writer, and seconds that its lock took."""
    import hudi_py

    spent = _timed_lock()
    batch = _rows(number, region, rows)
    hudi_py.open_table(location).rows().to_arrow()  # what is imported once is not measured
    commits = lost = 0
    began, before = time.monotonic(), sum(os.times()[:2])
    while time.monotonic() < began + seconds:
        result = hudi_py.write(location, batch, settings=settings)
        commits, lost = commits + 1, lost + result.retries
    return commits, lost, sum(os.times()[:2]) - before, sum(spent)


def _timed_lock() -> list[float]:
    """Seconds of each call of the lock file from now on, in this process."""
    from hudi_py.txn.file_lock import FileLock

    spent: list[float] = []

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            began = time.perf_counter()
            try:
                return method(*given)
            finally:
                spent.append(time.perf_counter() - began)

        return call

    for name in ("try_acquire", "is_ours", "release"):
        setattr(FileLock, name, timed(getattr(FileLock, name)))
    return spent


def _rows(number: int, region: str, count: int) -> Any:
    import pyarrow as pa

    return pa.table({"id": [f"{number}-{i}" for i in range(count)], "region": [region] * count, "n": range(count)})


if __name__ == "__main__":
    main()

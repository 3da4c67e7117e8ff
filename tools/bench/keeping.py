"""
What it costs to keep things for readers: leases and tags beside a plan, the search for orphans, quarantine.

    python tools/bench/keeping.py plan FOLDER [--partitions 1000] [--repeat 15]
    python tools/bench/keeping.py orphans FOLDER [--partitions 10000] [--repeat 2]
    python tools/bench/keeping.py quarantine FOLDER [--partitions 1000] [--repeat 5]

Makes tables below FOLDER (tiny files, most of them links) and removes them afterwards; prints one JSON document.

plan        medians of CPU seconds, in one process, of plans without anything kept, with 10 and 100 leases and a tag on
            each of the last three commits, and with 100 leases on commits before the window, whose files the plan
            keeps; the repetitions alternate, and each opens the table anew
orphans     a search in a table of partitions x 100 files, 0 and 1,000 of which no instant knows, beside `os.scandir` of
            the same folders (names alone, and with sizes and times); each in a process of its own, with its peak memory
quarantine  a clean of partitions x 10 groups x 10 slices that deletes, and one that moves; each on a fresh table
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import resource
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

from bench_common import scan  # noqa: E402
from make_table import base_file, instant_time, make_table, partition_name  # noqa: E402

Figures = dict[str, Any]
SETTINGS = {"hoodie.metadata.enable": "false", "hoodie.clean.commits.retained": "3"}
STRANGER = instant_time(2, 500)  # a time between two commits
ORPHANS = 1000


def main() -> None:
    """Run one measurement and print it."""
    parser = argparse.ArgumentParser(description=" ".join((__doc__ or "").split("\n\n")[0].split()))
    parser.add_argument("what", choices=["plan", "orphans", "quarantine"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--partitions", type=int)
    parser.add_argument("--repeat", type=int)
    given = parser.parse_args()
    run, partitions, repeat = {
        "plan": (plan, 1000, 15),
        "orphans": (orphans, 10_000, 2),
        "quarantine": (quarantine, 1000, 5),
    }[given.what]
    folder = given.folder.resolve() / f"keeping-{given.what}"
    folder.mkdir(parents=True)
    try:
        found = run(folder, given.partitions or partitions, given.repeat or repeat)
    finally:
        shutil.rmtree(folder)
    print(json.dumps({"what": given.what, "load1": round(os.getloadavg()[0], 1), **found}, indent=1))


def plan(folder: Path, partitions: int, repeat: int) -> Figures:
    """Plans with 0, 10 and 100 leases and tags, in turns."""
    from hudi_py.table import open_table

    tables = {}
    for name, count, commits in (
        ("0", 0, slice(0)),
        ("10", 10, slice(-3, None)),
        ("100", 100, slice(-3, None)),
        ("100 before the window", 100, slice(0, -3)),
    ):
        path = folder / f"t{len(tables)}"
        made = make_table(path, version=9, partitions=partitions, groups=5, slices=8, links=True)
        table = open_table(str(path), settings=SETTINGS)
        times = [instant.requested_time for instant in table.timeline.completed("commit")][commits]
        for number in range(count):
            table.take_lease(ttl="1d", at=times[number % len(times)], holder=f"job-{number}")
        if commits.start == -3:  # a commit has one savepoint
            for commit in times:
                table.create_savepoint(commit)
        tables[name] = str(path)
    seconds: dict[str, list[float]] = {name: [] for name in tables}
    files = {}
    for number in range(repeat + 1):
        order = list(tables)[number % len(tables) :] + list(tables)[: number % len(tables)]
        for name in order:
            gc.collect()
            start = time.process_time()
            files[name] = open_table(tables[name], settings=SETTINGS).plan_clean().file_count
            if number:  # the first round warms up
                seconds[name].append(time.process_time() - start)
    # All but the newest of the commits before the window are kept by leases; that one is kept by every plan.
    assert files.pop("100 before the window") == 0, files
    assert set(files.values()) == {made["expect_deleted"]}, files
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    return {
        "files": made["files"],
        "repetitions": repeat,
        "cpu_s_median": {name: round(each, 4) for name, each in medians.items()},
        "cpu_s_min": {name: round(min(each), 4) for name, each in seconds.items()},
        "over_none": {name: round(each / medians["0"], 3) for name, each in medians.items()},
    }


def orphans(folder: Path, partitions: int, repeat: int) -> Figures:
    """Searches and bare listings of the same table, in turns."""
    path = folder / "t"
    made = make_table(path, version=9, partitions=partitions, groups=10, slices=10, links=True)
    found: dict[str, list[Figures]] = {}
    for strangers in (0, ORPHANS):
        for number in range(strangers):
            place = path / partition_name(number % partitions)
            (place / base_file(partitions + number, 0, STRANGER)).write_bytes(b"PAR1")
        for _ in range(repeat):
            for name, run in (("names", scan), ("names, sizes and times", _details), ("search", _search)):
                figures = _in_new_process(run, path)
                assert figures["answer"] == (strangers if run is _search else made["files"] + strangers), figures
                found.setdefault(f"{name}, {strangers} orphans", []).append(figures)
                print(name, figures, file=sys.stderr, flush=True)
    return {"files": made["files"], "partitions": partitions, "runs": found}


def _details(path: Path) -> int:
    return scan(path, lambda entry: entry.stat(follow_symlinks=False))


def _search(path: Path) -> int:
    from hudi_py.table import open_table

    # The files were made just now: of these tables nothing is older.
    report = open_table(str(path), settings=SETTINGS).orphans(dry_run=True, older_than="0m")
    return len(report.verdicts)


def quarantine(folder: Path, partitions: int, repeat: int) -> Figures:
    """Cleans that delete and cleans that move, in turns."""
    found: dict[str, list[Figures]] = {"deletion": [], "quarantine": []}
    for _ in range(repeat):
        for name, settings in (("deletion", {}), ("quarantine", {"hoodie_py.clean.quarantine": "true"})):
            path = folder / name
            made = make_table(path, version=9, partitions=partitions, groups=10, slices=10)
            figures = _in_new_process(_clean, path, SETTINGS | settings)
            assert figures["answer"] == made["expect_deleted"], figures
            found[name].append(figures)
            shutil.rmtree(path)
            print(name, figures, file=sys.stderr, flush=True)
    ratios = {
        unit: round(min(run[unit] for run in found["quarantine"]) / min(run[unit] for run in found["deletion"]), 2)
        for unit in ("s", "cpu_s")
    }
    return {"deleted": made["expect_deleted"], "ratio_of_least": ratios, "runs": found}


def _clean(path: Path, settings: dict[str, str]) -> int:
    from hudi_py.table import open_table

    (result,) = open_table(str(path), settings=settings).clean()
    return result.deleted_count


def _in_new_process(run: Callable[..., int], *arguments: Any) -> Figures:
    """Seconds, CPU seconds and peak megabytes of a call in a process that has its modules loaded."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_measured, (run, *arguments))


def _measured(run: Callable[..., int], *arguments: Any) -> Figures:
    import hudi_py.services.clean.service
    import hudi_py.services.orphans.service
    import hudi_py.table  # noqa: F401

    start, cpu_start = time.perf_counter(), time.process_time()
    answer = run(*arguments)
    return {
        "answer": answer,
        "s": round(time.perf_counter() - start, 2),
        "cpu_s": round(time.process_time() - cpu_start, 2),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


if __name__ == "__main__":
    main()

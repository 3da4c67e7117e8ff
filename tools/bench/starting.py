#!/usr/bin/env python3
"""
Seconds from the start of a process to the end of a command, for tables of many instants.

    starting.py [--repetitions 7] [--hudi 1.1.1] [--scratch DIR] [--tables N]

Each command is a process of its own, as at a shell; ``python`` is one that does nothing. Commands take turns, and the
least of each is printed: elapsed, CPU, and CPU as a multiple of bare Python. With ``--hudi`` also the procedure
``show_commits``: with the start of its JVM, and again in the running one. With ``--tables`` the commands that look at
many tables, at so many tables of 1,000 files.

Modules are compiled before, as an installer does: where Python may not store its bytecode, each start compiles anew.
"""

from __future__ import annotations

import argparse
import compileall
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from make_table import make_table

ROOT: Final = Path(__file__).resolve().parents[2]
ENVIRONMENT: Final = {**os.environ, "PYTHONPATH": str(ROOT)}


def run(*command: str) -> tuple[float, float]:
    """Elapsed and CPU seconds of a process and its children."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    code = subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, check=False).returncode
    if code not in (0, 3):  # 3: these tables have something that doctor and check tell of
        raise SystemExit(f"{' '.join(command)} ended with {code}")
    elapsed, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return elapsed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands(scratch: Path) -> dict[str, tuple[str, ...]]:
    """Commands by what they are called in the output, on tables that are made for them."""
    ours = (sys.executable, "-m", "hudi_py")
    found: dict[str, tuple[str, ...]] = {"python": (sys.executable, "-c", "0")}
    for count in (1000, 10_000):
        instants, files = scratch / f"instants-{count}", scratch / f"files-{count}"
        make_table(instants, version=9, mode="timeline", instants=count)
        make_table(files, version=9, mode="full", partitions=2, groups=1, slices=count)
        found[f"timeline of {count:,} instants"] = (*ours, "timeline", str(instants))
        found[f"overview of {count:,} commits"] = (*ours, "overview", str(files))
    found["doctor of 10,000 commits"] = (*ours, "doctor", "--json", str(scratch / "files-10000"))
    return found


def look_at_many(scratch: Path, count: int) -> None:
    """Commands that look at many tables, once."""
    folder = scratch / "many"
    for number in range(count):
        make_table(folder / f"t{number:04}", version=9, mode="full", partitions=10, groups=10, slices=10)
    for name in ("fleet", "overview", "timeline", "check"):
        where = [str(folder)] if name == "fleet" else ["--tables", str(folder)]
        elapsed, cpu = run(sys.executable, "-m", "hudi_py", name, *where, "--parallel", "2")
        print(f"{name:8} of {count} tables of 1,000 files: {elapsed:.1f} s, {cpu:.1f} s of CPU")


def show_commits(version: str, table: Path) -> None:
    """The same question to Apache Hudi."""
    sys.path.insert(0, str(ROOT / "tools"))
    from real_hudi import RealHudi

    started = time.monotonic()
    peer = RealHudi(version)
    peer.start()
    try:
        peer.sql(f"CREATE TABLE instants USING hudi LOCATION '{table}'")  # 1.1.1 takes no path
        for words in ("with its start", "again"):
            rows = peer.sql("CALL show_commits(table => 'instants', limit => 1000)")
            print(
                f"show_commits of Apache Hudi {version}, {len(rows)} rows, {words}: {time.monotonic() - started:.2f} s"
            )
            started = time.monotonic()
    finally:
        peer.close()


def main() -> None:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--hudi", default="")
    parser.add_argument("--tables", type=int, default=0)
    parser.add_argument("--scratch", type=Path)
    given = parser.parse_args()
    compileall.compile_dir(ROOT / "hudi_py", quiet=2)
    with tempfile.TemporaryDirectory(dir=given.scratch) as name:
        scratch = Path(name)
        if given.tables:
            look_at_many(scratch, given.tables)
            return
        asked = commands(scratch)
        found: dict[str, list[tuple[float, float]]] = {each: [] for each in asked}
        for _ in range(given.repetitions):
            for each, command in asked.items():
                found[each].append(run(*command))
        bare = min(cpu for _, cpu in found["python"])
        for each, times in found.items():
            elapsed, cpu = (min(values) for values in zip(*times, strict=True))
            print(f"{each:28} {elapsed:.3f} s, {cpu:.3f} s of CPU, {cpu / bare:.0f} times bare Python")
        if given.hudi:
            show_commits(given.hudi, scratch / "instants-1000")


if __name__ == "__main__":
    main()

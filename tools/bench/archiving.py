"""
What archiving a long timeline takes, in seconds and memory, beside Apache Hudi.

    python tools/bench/archiving.py FOLDER [--instants 10000] [--hudi 0.15.0,1.1.1]

Makes a timeline of so many instants (every fifth a clean) in each layout below FOLDER, lets each side archive a copy
down to 20 commits in a process of its own, and prints a line of JSON for each: seconds, how many instants went, and by
how many bytes the peak of the process's resident memory lies above that of the same process right before. For Hudi that
is the JVM, whose heap grows as it likes.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import sys
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parents[1])]

SETTINGS = {
    "hoodie.keep.min.commits": "20",
    "hoodie.keep.max.commits": "30",
    "hoodie.clean.commits.retained": "1",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.metadata.enable": "false",
}


def main() -> None:
    """Make the timelines, archive them, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--instants", type=int, default=10_000)
    parser.add_argument("--hudi", default="", help="releases to compare with, by commas: 0.15 archives layout 1")
    given = parser.parse_args()
    releases = [each for each in given.hudi.split(",") if each]
    for version in (9, 6):
        table = given.folder / f"archiving-{version}-{given.instants}"
        if not table.exists():
            from make_table import make_table

            make_table(table, version=version, mode="timeline", instants=given.instants)
        _print("hudi_py", version, _in_a_process(_ours, table, ""))
        for release in releases:
            if release.startswith("0.") == (version == 6):
                _print(f"Hudi {release}", version, _in_a_process(_hudi, table, release))


def _print(name: str, version: int, figures: dict[str, Any]) -> None:
    print(json.dumps({"who": name, "table_version": version, **figures}), flush=True)


def _in_a_process(run: Any, table: Path, release: str) -> dict[str, Any]:
    copy = table.with_name(f"{table.name}-copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(table, copy)
    before = _instants(copy)
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        figures: dict[str, Any] = pool.apply(run, (str(copy), release))
    figures["instants"] = before - _instants(copy)
    shutil.rmtree(copy)
    return figures


def _ours(path: str, _: str) -> dict[str, Any]:
    from hudi_py.table import open_table

    table = open_table(path, settings=SETTINGS)
    table.services.archive()  # so that nothing is left to be imported
    memory, start = _peak_bytes("self"), time.perf_counter()
    table.archive()
    return {"seconds": round(time.perf_counter() - start, 2), "memory_bytes": _peak_bytes("self") - memory}


def _hudi(path: str, release: str) -> dict[str, Any]:
    from real_hudi import RealHudi

    peer = RealHudi(release)
    peer.timeline(path)
    process = str(peer.jvm_pid())
    memory, start = _peak_bytes(process), time.perf_counter()
    peer.archive(path, SETTINGS)
    figures = {"seconds": round(time.perf_counter() - start, 2), "memory_bytes": _peak_bytes(process) - memory}
    peer.close()
    return figures


def _peak_bytes(process: str) -> int:
    """Largest resident memory that the process has had (Linux)."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return 0


def _instants(path: Path) -> int:
    from hudi_py.table import open_table

    return len(open_table(str(path)).timeline.completed())


if __name__ == "__main__":
    main()

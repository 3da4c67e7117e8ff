"""
Long runs of the random tests: ``python tools/long_run.py histories --sequences 2000 --seed 1 [--jobs 2]``.

Plays that many random histories of all services against a model of the rows (``tests/property``), prints each that
breaks a law, as short as it can be made, and in the end the seeds and how often each step was done or refused. The exit
code is 1 when a law was broken. Needs neither Spark nor Java.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]


def main() -> int:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["histories"])
    parser.add_argument("--sequences", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1, help="of the first; the others count up")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    from support.history_runner import Failure

    started, counts, laws = time.monotonic(), Counter[str](), Counter[str]()
    seeds = range(given.seed, given.seed + given.sequences)
    with ProcessPoolExecutor(given.jobs) as pool:
        for number, (failure, counted) in enumerate(pool.map(_one, seeds, chunksize=5), 1):
            counts += counted
            if isinstance(failure, Failure):
                laws[failure.law] += 1
                print(f"\n{'=' * 100}\n{failure}", flush=True)
            if number % 100 == 0:
                elapsed_s = time.monotonic() - started
                print(f"{number} histories, {laws.total()} broke a law, {elapsed_s:.0f} s", flush=True)
    print(f"\nseeds {seeds.start} to {seeds.stop - 1}: {given.sequences} histories, {laws.total()} broke a law")
    for law, count in laws.most_common():
        print(f"  {count:6} {law}")
    for what, count in sorted(counts.items()):
        print(f"  {count:6} {what}")
    return 1 if laws else 0


def _one(seed: int) -> tuple[object, Counter[str]]:
    logging.getLogger("hudi_py").setLevel(logging.CRITICAL + 1)
    from support.history_runner import find_failure

    return find_failure(seed)


if __name__ == "__main__":
    sys.exit(main())

"""
Run the test suite lane by lane, fastest first, and add up what happened.

    python lanes.py [--fast PYTHON] [--spark35 PYTHON] [--spark40 PYTHON] -- [pytest arguments]

Each lane is a pytest of its own, so that a JVM that dies takes one lane with it. Neighbours that fit on the machine
together run side by side; their output is shown when they end. The last lines tell what each lane took, and count all
tests. The exit code is that of the first lane that failed; 5 when no lane had a test.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
QUICK = (("HUDI_LAW_SHARE", "8"), ("HUDI_CASES_MAX", "1"))  # every test takes part, in about a minute on two cores
WITH_SPARK = ("tests/spark", "tests/interop")  # to collect all others takes longer than many of these tests
NO_TESTS = 5  # pytest's exit code when nothing was collected or selected


class Lane(NamedTuple):
    """Tests with a common need."""

    name: str
    python: str
    marks: str | None  # pytest's -m; None leaves the choice to the arguments
    spark: str = "3.5"  # tests/spark checks that it is the one at hand
    workers: str | None = None  # pytest-xdist's -n; None for this one process
    paths: tuple[str, ...] = ()  # where the arguments name no place
    cores: int | None = None  # that it keeps busy; None for all
    shares: tuple[tuple[str, str], ...] = ()  # how much of each test runs, see CONTRIBUTING.md


class Count(NamedTuple):
    """Tests by outcome."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0


class Outcome(NamedTuple):
    """What became of a lane."""

    code: int  # pytest's
    count: Count
    seconds: float


def main(arguments: Sequence[str]) -> int:
    """Run all lanes, whatever becomes of the earlier ones."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fast")
    parser.add_argument("--spark35")
    parser.add_argument("--spark40")
    parser.add_argument("pytest", nargs="*")
    options = parser.parse_args(arguments)
    chosen = list(lanes(options.spark35, options.spark40, options.pytest, options.fast))
    with tempfile.TemporaryDirectory(prefix="hudi_py-lanes-") as folder:
        done = [
            outcome
            for neighbours in side_by_side(chosen, os.cpu_count() or 1)
            for outcome in run_all(neighbours, Path(folder), options.pytest)
        ]
    for lane, outcome in zip(chosen, done, strict=True):
        print(f"{lane.name}: {outcome.seconds:.0f} s")
    total = Count(*map(sum, zip(*(outcome.count for outcome in done), strict=True)))
    print(f"total: {total.passed} passed, {total.failed} failed, {total.skipped} skipped", flush=True)
    return verdict([outcome.code for outcome in done])


def lanes(
    spark35: str | None, spark40: str | None, arguments: Sequence[str], fast: str | None = None
) -> Iterator[Lane]:
    """List the lanes in the order in which they run."""
    own_marks = any(argument.startswith("-m") for argument in arguments)
    if fast is not None:
        marks = None if own_marks else "not (spark or oracle or slow or s3 or browser)"
        yield Lane("unit and tidy tests", fast, marks, workers="auto", paths=("tests/unit", "tests/tidy"), shares=QUICK)
    if spark35 is not None:
        if own_marks:
            yield Lane("tests as chosen", spark35, None)
        else:
            heavy = "slow or s3 or browser"
            yield Lane("fast tests", spark35, f"not (spark or oracle or {heavy})", workers="auto")
            yield Lane("slow tests, S3, browser", spark35, f"({heavy}) and not (spark or oracle)", workers="auto")
            # each worker has a Spark and up to four releases of real Hudi, of about a gigabyte each
            yield Lane("against Apache Hudi", spark35, "oracle", workers="2", paths=("tests/interop",))
            # twice as long as the lane beside it: a second worker, so that no core idles at the end
            yield Lane("Spark 3.5", spark35, "spark and not oracle", workers="2", paths=WITH_SPARK, cores=1)
    if spark40 is not None:
        if own_marks:
            yield Lane("Spark 4.0", spark40, None, "4.0", cores=1)
        else:
            yield Lane("Spark 4.0", spark40, "spark and not (oracle or slow)", "4.0", paths=WITH_SPARK, cores=1)


def side_by_side(chosen: Iterable[Lane], cores: int) -> Iterator[list[Lane]]:
    """Group neighbours that fit on so many cores together."""
    group: list[Lane] = []
    for lane in chosen:
        if sum(each.cores or cores for each in [*group, lane]) > cores and group:
            yield group
            group = []
        group.append(lane)
    if group:
        yield group


def run_all(group: Sequence[Lane], folder: Path, arguments: Sequence[str]) -> Iterator[Outcome]:
    """Run the lanes of a group at once, and show the output of one after the other."""
    print(f"== {', '.join(lane.name for lane in group)}", flush=True)
    with ThreadPoolExecutor(len(group)) as pool:
        logs = [None if len(group) == 1 else folder / f"{lane.name}.log" for lane in group]
        waiting = [
            pool.submit(run, lane, folder / f"{lane.name}.xml", arguments, log)
            for lane, log in zip(group, logs, strict=True)
        ]
        for lane, log, result in zip(group, logs, waiting, strict=True):
            outcome = result.result()
            if log is not None:
                print(f"== {lane.name}")
                print(log.read_text(errors="replace"), end="")
            print(f"== {lane.name}: {outcome.seconds:.0f} s", flush=True)
            yield outcome


def run(lane: Lane, report: Path, arguments: Sequence[str], log: Path | None) -> Outcome:
    """Run one lane; what it prints goes to *log* where there is one."""
    marks = ["-m", lane.marks] if lane.marks is not None else []
    parallel = ["-n", lane.workers, "--dist", "worksteal"] if lane.workers else []
    command = [
        lane.python,
        "-m",
        "pytest",
        *parallel,
        *marks,
        f"--junit-xml={report}",
        *arguments,
        *places(lane, arguments),
    ]
    environment = {**os.environ, "HUDI_PY_TEST_SPARK": lane.spark, **dict(lane.shares)}
    # Tests start thousands of processes; each would compile the package anew, and each worker all tests.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    started = time.monotonic()
    with open(log or os.devnull, "wb") as output:
        code = subprocess.run(
            command,
            cwd=ROOT,
            check=False,
            env=environment,
            stdout=None if log is None else output,
            stderr=None if log is None else subprocess.STDOUT,
        ).returncode
    return Outcome(code, count(report), time.monotonic() - started)


def places(lane: Lane, arguments: Sequence[str]) -> Sequence[str]:
    """The lane's own folders, unless the arguments name a file or folder."""
    return () if any((ROOT / argument.partition("::")[0]).exists() for argument in arguments) else lane.paths


def count(report: Path) -> Count:
    """Read the outcomes from a lane's report; a lane that left none counts as one failure."""
    try:
        suites = list(ET.parse(report).getroot().iter("testsuite"))  # noqa: S314  # pytest wrote it a moment ago
    except (OSError, ET.ParseError):
        return Count(failed=1)
    tests, failures, errors, skipped = (
        sum(int(suite.get(key, "0")) for suite in suites) for key in ("tests", "failures", "errors", "skipped")
    )
    return Count(max(tests - failures - errors - skipped, 0), failures + errors, skipped)


def verdict(codes: Sequence[int]) -> int:
    """Return the exit code of the whole: a lane without tests is not a failure as long as another one had some."""
    if all(code == NO_TESTS for code in codes):
        return NO_TESTS
    return next((code for code in codes if code not in (0, NO_TESTS)), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""
What it costs to hold the view of a table against what its completed commits say they wrote, as a share of the work.

    view_check.py FOLDER [--partitions 1000] [--repeat 7] [--only mor] [--work plan,files]

Makes tables below FOLDER, copy-on-write and merge-on-read, with commits in JSON (version 6) and in Avro (version 9),
never cleaned (`full`) and cleaned before (`incremental`), and does each piece of work on them: plan a clean, name the
files of the latest rows, open the rows (their sizes too), read the rows; by folders and through the metadata table.
Each run is a process of its own, with the checks and with nothing in their places, in turn. Prints the least CPU
seconds (user and system) of each and their ratio. Tables that are there already are used again.

The tables to plan have data files of a few bytes; those to read have files of a hundred rows.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

sys.path.append(str(Path(__file__).resolve().parents[2]))

from make_table import TableMaker, instant_time, make_table
from memory import base_content, log_content

import hudi_py
import hudi_py.mdt.lost_writes
import hudi_py.rows.log_reading
import hudi_py.snapshot.moments
import hudi_py.snapshot.rows
import hudi_py.snapshot.snapshot
from hudi_py.fsview.checked import CheckedListing
from hudi_py.fsview.planned import ListingForPlan
from hudi_py.mdt import listing as mdt_listing
from hudi_py.table import Table

GROUPS: Final = 10
SLICES: Final = 10
ROWS: Final = 100  # of each file of the tables to read


def main() -> None:
    """Make the tables, measure, print."""
    parser = argparse.ArgumentParser(description=" ".join((__doc__ or "").split("\n\n")[0].split()))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--partitions", type=int, default=1000, help="of ten groups of ten files; a twentieth to read")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--only", default="", help="part of the table's name")
    parser.add_argument("--work", default=",".join(WORK))
    given = parser.parse_args()
    print("| table | work | with | without | ratio |\n|---|---|---|---|---|")
    for name, path in _tables(given.folder.resolve(), given.partitions, given.only):
        for work in given.work.split(","):
            is_read = name.startswith("rows")
            if is_read != (work == "rows"):
                continue
            for listed, settings in (("", False), (", metadata table", True)):
                runs: tuple[list[float], list[float]] = ([], [])
                for _ in range(given.repeat):
                    for seconds, is_checked in zip(runs, (True, False), strict=True):
                        seconds.append(_in_a_fork(WORK[work], str(path), settings, is_checked=is_checked))
                checked, plain = map(min, runs)
                print(f"| {name}{listed} | {work} | {checked:.4f} | {plain:.4f} | {checked / plain:.3f} |", flush=True)


def _tables(folder: Path, partitions: int, only: str) -> Iterator[tuple[str, Path]]:
    kinds: dict[str, Callable[[Path, int], Any]] = {
        "cow-full": lambda out, version: make_table(
            out, version=version, partitions=partitions, groups=GROUPS, slices=SLICES, links=True
        ),
        "cow-incremental": lambda out, version: make_table(
            out, version=version, mode="incremental", partitions=2 * partitions, groups=GROUPS, links=True
        ),
        "mor-full": lambda out, version: _merge_on_read(out, version, partitions, GROUPS, SLICES // 2, b"", b"log"),
        "rows-cow": lambda out, version: _to_read(out, version, partitions // 20),
        "rows-mor": lambda out, version: _merge_on_read(
            out, version, partitions // 20, GROUPS, 1, base_content(ROWS), log_content(instant_time(1), ROWS, 10)
        ),
    }
    for kind, make in kinds.items():
        for version in (6, 9):
            name = f"{kind}-v{version}"
            if only not in name:
                continue
            path = folder / f"{name}-{partitions}"
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                make(path, version)
                table = hudi_py.open_table(str(path), settings={"hoodie.metadata.enable": True})
                table.services.metadata_table.prepare(writes_data=True)
            yield name, path


def _to_read(out: Path, version: int, partitions: int) -> None:
    maker = TableMaker(out, version, GROUPS, content=base_content(ROWS))
    for partition in range(partitions):
        maker.partition(partition, [instant_time(number) for number in range(3)])
    for number in range(3):
        maker.commit(number, range(partitions))


def _merge_on_read(out: Path, version: int, partitions: int, groups: int, slices: int, base: bytes, log: bytes) -> None:
    """Each slice has a base file, written by compactions but the first, and a log file."""
    maker = TableMaker(out, version, groups, links=not base, content=base or None)
    bases = [instant_time(2 * number) for number in range(slices)]
    for partition in range(partitions):
        maker.partition(partition, bases)
    for number in range(slices):
        maker.commit(2 * number, range(partitions), "commit" if number else "deltacommit")
        maker.log(2 * number + 1, range(partitions), log)


# --- work ---------------------------------------------------------------------------------------------------------
def _open(path: str, *, use_metadata: bool) -> Table:
    return hudi_py.open_table(path, settings={"hoodie.metadata.enable": use_metadata})


def _plan(table: Table) -> int:
    return table.plan_clean(commits_retained=3).file_count


def _files(table: Table) -> int:
    return len(table.snapshot().slices_with_rows())


def _opened(table: Table) -> int:
    return len(table.snapshot().sized_slices())


def _rows(table: Table) -> int:
    return sum(batch.num_rows for batch in table.rows())


WORK: Final[dict[str, Callable[[Table], int]]] = {"plan": _plan, "files": _files, "open": _opened, "rows": _rows}


def _in_a_fork(work: Callable[[Table], int], path: str, use_metadata: bool, *, is_checked: bool) -> float:
    """CPU seconds of one run in a child process, which starts with all modules loaded."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            if not is_checked:
                _take_checks_out()
            gc.collect()
            start = _cpu_s()
            count = work(_open(path, use_metadata=use_metadata))
            seconds = _cpu_s() - start
            assert count, "nothing was found"
            os.write(writer, str(seconds).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return float(text)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _take_checks_out() -> None:
    """Put nothing in the places of all that is compared with commits, on the way to files and rows."""
    nothing: Any = lambda *_args, **_named: None  # noqa: E731 - of any arguments
    slices: Any = lambda found, _sizes: tuple(found)  # noqa: E731 - files keep unknown sizes
    CheckedListing.check = CheckedListing.check_hidden = nothing  # type: ignore[method-assign]
    ListingForPlan.walk = lambda self, details=False: self._listing.folders.walk(details=details)  # type: ignore[assignment, method-assign]
    ListingForPlan.check = nothing  # type: ignore[method-assign]
    hudi_py.snapshot.moments.views = _views  # type: ignore[attr-defined]
    mdt_listing._check_in_step = mdt_listing.refuse_lost_writes = nothing  # type: ignore[attr-defined]  # noqa: SLF001
    hudi_py.snapshot.snapshot.with_recorded_sizes = slices  # type: ignore[attr-defined]
    hudi_py.snapshot.moments.refuse_what_is_missing = nothing  # type: ignore[attr-defined]


def _views(listing: Any, build: Callable[..., Any]) -> Iterator[Any]:
    walked = listing.folders.walk() if isinstance(listing, CheckedListing) else listing.walk()
    return (build(path, entries) for path, entries in walked)


if __name__ == "__main__":
    main()

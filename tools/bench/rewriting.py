#!/usr/bin/env python3
"""
Clustering and compaction beside Apache Hudi and bare PyArrow: CPU seconds, files opened afterwards, peak memory.

    rewriting.py [--hudi 1.1.1] [--rows 500000] [--repetitions 3] [--scratch DIR] [--memory [--limit-mb N]]

hudi_py writes the tables; every contestant gets copies of the same files, and plans and carries out in one measured
block. ``small files``: 200 files in 10 partitions become 10. ``compaction``: a fifth of the rows is in log files.
``z-order``: the same rows ordered by two columns into 160 files; then conditions on the columns count the files opened.
The first repetition of every contestant is a warm-up and does not count. With ``--memory`` no JVM is started, and the
peak of a process that clusters and compacts is measured for a table and for one of ten times its rows, with a limit of
N MiB for rows and log records and row groups of a MiB; one more workload is ``log compaction``, of the same log files.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench_common import Meter

import hudi_py

PARTITIONS: Final = 10
COMMITS: Final = 20
BATCH_ROWS: Final = 65_536
SCHEMA: Final = pa.schema([
    ("id", pa.string()), ("ts", pa.int64()), ("region", pa.string()), ("x", pa.int64()), ("y", pa.int64()),
    ("amount", pa.float64()), ("note", pa.string()),
])  # fmt: skip
TABLE: Final = {
    "hoodie.table.name": "rewriting",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.metadata.enable": "false",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
QUIET: Final = {key: value for key, value in TABLE.items() if key.startswith(("hoodie.metadata", "hoodie.clean"))}
DUE: Final = {
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.compact.inline.trigger.strategy": "NUM_COMMITS",
    "hoodie.log.compaction.blocks.threshold": "1",
}
LIMITS: Final = ("hoodie.memory.compaction.max.size", "hoodie_py.clustering.memory.bytes")
COLUMNS: Final = "x,y"
ASKED: Final = {"x": "x < 20000", "y": "y < 20000", "x and y": "x between 300000 and 400000 and y < 100000"}
"""Values of x and y are drawn from 0 to a million."""


def batches(first: int, rows: int, version: int) -> Iterator[pa.RecordBatch]:
    """Rows in all partitions in turn; x and y have nothing to do with the keys or with each other."""
    regions = pa.array([f"r{number:02d}" for number in range(PARTITIONS)])
    for start in range(first, first + rows, BATCH_ROWS):
        numbers = np.arange(start, min(start + BATCH_ROWS, first + rows))
        chance = np.random.default_rng(start)
        columns: Any = [
            pa.array(np.char.mod("key-%010d", numbers)), pa.array(np.full(len(numbers), version)),
            regions.take(pa.array(numbers % PARTITIONS)), pa.array(chance.integers(0, 1_000_000, len(numbers))),
            pa.array(chance.integers(0, 1_000_000, len(numbers))), pa.array(np.sqrt(numbers)),
            pa.array(np.char.mod("note %d of some length", numbers * 7919 % 100_003)),
        ]  # fmt: skip
        yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def reader(first: int, rows: int, version: int = 1) -> pa.RecordBatchReader:
    """The same, as a stream."""
    return pa.RecordBatchReader.from_batches(SCHEMA, batches(first, rows, version))


def small_files(path: str, rows: int, given: dict[str, str] = TABLE) -> None:
    """Twenty commits, each with a file in every partition."""
    for number in range(COMMITS):
        share = rows // COMMITS
        settings = {**given, "hoodie.datasource.write.operation": "bulk_insert"}
        table = hudi_py.write(path, reader(number * share, share), operation="bulk_insert", settings=settings)
        assert table.instant


def with_logs(path: str, rows: int, given: dict[str, str] = TABLE, commits: int = 1) -> None:
    """A fifth of the rows in log files, of that many commits."""
    settings = {**given, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    hudi_py.write(path, reader(0, rows), operation="bulk_insert", settings=settings)
    share = rows // 5 // commits
    for number in range(commits):
        hudi_py.write(path, reader(number * share, share, 2), operation="upsert", settings=settings)


def clustering_settings(path: str, workload: str) -> dict[str, str]:
    """All small files of a partition become one, or sixteen in z-order."""
    if workload == "small files":
        return {}
    # Sixteen files in each partition; those of some partitions are a little larger than the average.
    size = sum(file.stat().st_size for file in Path(path).glob("r*/*.parquet")) // PARTITIONS
    return {
        "hoodie.clustering.plan.strategy.sort.columns": COLUMNS,
        "hoodie.layout.optimize.strategy": "z-order",
        "hoodie.clustering.plan.strategy.target.file.max.bytes": str(size // 16 * 51 // 50),
        "hoodie.clustering.plan.strategy.small.file.limit": str(size),
    }


def ours(path: str, workload: str, settings: dict[str, str]) -> dict[str, Any]:
    """Plan and carry out in this process."""
    with Meter() as meter:
        table = hudi_py.open_table(path, settings={**QUIET, **DUE, **hudi_names(settings)})
        verbs = {"compaction": table.compact, "log compaction": table.compact_logs}
        done = verbs.get(workload, table.cluster)()
    return meter.dict(rows=done[0].rows)


def hudi_names(settings: dict[str, str]) -> dict[str, str]:
    """The layout as hudi_py and Apache Hudi both spell it."""
    return {key: "ZORDER" if value == "z-order" else value for key, value in settings.items()}


class Hudi:
    """Apache Hudi with the JVM's own defaults."""

    def __init__(self, version: str, scratch: Path) -> None:
        from real_hudi.bundle import find_bundle
        from real_hudi.operations import Operations
        from real_hudi.session import HudiJvm, start_spark

        spark = start_spark(find_bundle(version), scratch, memory="3g", java_options="", log_level="error")
        self._jvm = HudiJvm(version, spark)
        self._operations = Operations(self._jvm, None)

    def run(self, path: str, workload: str, settings: dict[str, str]) -> dict[str, Any]:
        """Plan and carry out."""
        service = "COMPACT" if workload == "compaction" else "CLUSTER"
        options = {**QUIET, **DUE, "hoodie.clustering.async.max.commits": "1", **hudi_names(settings)}
        with Meter([self._jvm.pid]) as meter:
            instant = self._operations.schedule(path, service, options)
            assert instant is not None
            self._operations.carry_out(path, service, instant, options)
        return meter.dict()


def bare(path: str, workload: str, settings: dict[str, str]) -> dict[str, Any]:
    """What PyArrow takes to read the files of a partition and to write one, compressed as tables are."""
    del workload, settings
    with Meter() as meter:
        for folder in sorted(Path(path).glob("r*")):
            files = sorted(folder.glob("*.parquet"))
            with pq.ParquetWriter(
                folder / "all.out", pq.read_schema(files[0]), compression="gzip", compression_level=3
            ) as writer:
                for file in files:
                    for batch in pq.ParquetFile(file).iter_batches():
                        writer.write_batch(batch)
    return meter.dict()


def opened(path: str) -> dict[str, str]:
    """Files that conditions on the two columns open, of all."""
    table = hudi_py.open_table(path)
    total = sum(len(table.file_slices(each)) for each in table.partitions())
    found = {}
    for name, where in ASKED.items():
        rows = table.rows(where=where, columns=["id"])
        count = rows.to_arrow().num_rows
        skipped = rows.skipped
        left = total - sum(skipped.values())
        found[name] = f"{left} of {total} files ({left / total:.0%}) for {count} rows"
    shares = []
    chance = random.Random(1)  # noqa: S311
    for _ in range(50):
        x, y = (chance.randrange(900_000) for _ in "xy")
        rows = table.rows(where=f"x between {x} and {x + 100_000} and y between {y} and {y + 100_000}", columns=["id"])
        rows.to_arrow()
        shares.append(1 - sum(rows.skipped.values()) / total)
    found["a tenth of x and of y, mean of 50"] = f"{statistics.mean(shares):.1%}"
    return found


def measure(given: argparse.Namespace, scratch: Path) -> None:
    """All workloads; a line of JSON for each contestant."""
    contestants: dict[str, Callable[..., dict[str, Any]]] = {"hudi_py": ours}
    if given.hudi:
        contestants[f"hudi {given.hudi}"] = Hudi(given.hudi, scratch).run
    for workload in given.workloads.split(","):
        source = scratch / workload.replace(" ", "-")
        (with_logs if workload == "compaction" else small_files)(str(source), given.rows)
        settings = {} if workload == "compaction" else clustering_settings(str(source), workload)
        taking_part = {**contestants, **({"PyArrow": bare} if workload == "small files" else {})}
        figures: dict[str, list[dict[str, Any]]] = {name: [] for name in taking_part}
        for repetition in range(given.repetitions + 1):
            for name, run in taking_part.items():
                copy = scratch / "copy"
                shutil.rmtree(copy, ignore_errors=True)
                shutil.copytree(source, copy)
                found = run(str(copy), workload, settings)
                if repetition:
                    figures[name].append(found)
                elif name != "PyArrow":
                    files = sum(1 for _ in copy.glob("r*/*.parquet"))
                    rows = hudi_py.open_table(str(copy)).rows(columns=["id"]).to_arrow().num_rows
                    seen = opened(str(copy)) if workload == "z-order" else {}
                    print(
                        json.dumps({"workload": workload, "by": name, "files": files, "rows": rows, **seen}), flush=True
                    )
        for name, of_contestant in figures.items():
            shown = {key: round(statistics.median(each[key] for each in of_contestant), 3) for key in ("cpu", "s")}
            print(json.dumps({"workload": workload, "by": name, **shown}), flush=True)
        shutil.rmtree(source)


def memory(given: argparse.Namespace, scratch: Path) -> None:
    """Peaks of processes of their own; row groups are small, so that those of the small table are as large."""
    small_groups = {"hoodie.parquet.block.size": str(1 << 20)}
    table = {**TABLE, **small_groups}
    for workload in given.workloads.split(","):
        for factor in (1, 10):
            path = scratch / f"{workload.replace(' ', '-')}-{factor}"
            rows = given.rows * factor
            settings: dict[str, str] = {}
            if workload.endswith("compaction"):
                # One block is read at a time, so those of the small table are as large, too.
                with_logs(str(path), rows, table, factor if workload == "log compaction" else 1)
            else:
                small_files(str(path), rows, table)
                settings = clustering_settings(str(path), workload)
            settings |= {each: str(given.limit_mb << 20) for each in LIMITS} | small_groups
            command = [sys.executable, __file__, "--alone", str(path), workload, json.dumps(settings)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            shown = {"workload": workload, "rows": rows, "peak_mb": found["peak_mb"], "cpu": round(found["cpu"], 2)}
            print(json.dumps(shown), flush=True)
            shutil.rmtree(path)


def main() -> None:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hudi", default="1.1.1", help="release to compare with; empty for none")
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--workloads", default="small files,compaction,z-order")
    parser.add_argument("--scratch", type=Path)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--limit-mb", type=int, default=4)
    parser.add_argument("--alone", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.alone:
        path, workload, settings = given.alone
        print(json.dumps(ours(path, workload, json.loads(settings))))
        return
    scratch = Path(tempfile.mkdtemp(prefix="bench-rewriting-", dir=given.scratch))
    try:
        (memory if given.memory else measure)(given, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()

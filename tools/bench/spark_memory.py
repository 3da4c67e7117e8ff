#!/usr/bin/env python3
"""
Peak memory of writes on Spark as tables grow: driver, JVM and the Python workers of the executor.

    spark_memory.py [--millions 1 4] [--heap 1g] [--kinds MERGE_ON_READ] [--operations insert upsert] [--scratch DIR]

The same rows and operations as `write_memory`. Each write has a session of its own with two cores, in which executor
and driver share one JVM; its heap is bounded, so of the JVM the figure says whether that heap is enough. Memory is
looked at twenty times a second: of the workers, the largest one and all together. A million rows take 80 MB in the
scratch folder, and as much for a shuffle while a write runs.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench_common import Meter, command_of, resident_mb, tree
from inputs import KEY
from write_memory import OPERATIONS, PARTITIONS, arguments, measured

import hudi_py

EVERY_S: Final = 0.05
COLUMNS: Final = (
    f"format_string('{KEY}', number) AS id", "{version} AS ts",
    f"format_string('r%02d', number % {PARTITIONS}) AS region", "number AS a", "sqrt(number) AS b",
)  # fmt: skip


class Peaks(threading.Thread):
    """Largest resident memory of this process, its JVM and its Python workers, in MB, while a block runs."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._is_over = threading.Event()
        self.found = {"driver": 0, "jvm": 0, "worker": 0, "workers": 0}

    def __enter__(self) -> Peaks:  # noqa: PYI034  (Self needs Python 3.11)
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self.join()

    def run(self) -> None:
        """Look until the block is over."""
        while not self._is_over.wait(EVERY_S):
            own = os.getpid()
            others = [pid for pid in tree(own) if pid != own]
            jvms = [resident_mb(pid) for pid in others if "java" in command_of(pid)]
            workers = [resident_mb(pid) for pid in others if "java" not in command_of(pid)]
            now = {
                "driver": resident_mb(own),
                "jvm": sum(jvms),
                "worker": max(workers, default=0),
                "workers": sum(workers),
            }
            self.found = {name: max(now[name], peak) for name, peak in self.found.items()}


def write(path: str, operation: str, rows: int, settings: Mapping[str, Any], heap: str, scratch: str) -> dict[str, Any]:
    """One write to a table of *rows* rows, in a session of this process."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("bench").config("spark.driver.memory", heap)
    for key, value in {"ui.enabled": "false", "ui.showConsoleProgress": "false", "local.dir": scratch}.items():
        builder = builder.config(f"spark.{key}", value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    share, step = OPERATIONS[operation]
    version = 1 if share == 1 else 2
    numbers = spark.range(rows // share).selectExpr(f"id * {step} AS number")
    frame = numbers.selectExpr(*(each.format(version=f"CAST({version} AS BIGINT)") for each in COLUMNS))
    texts = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in settings.items()}
    with Meter() as meter, Peaks() as peaks:
        getattr(hudi_py.WriteClient(spark, path, texts), operation)(frame)
    return meter.dict(rows=rows // share, **peaks.found)


def main() -> None:
    """Command line."""
    parser = arguments(str(__doc__))
    parser.add_argument("--heap", default="1g", help="spark.driver.memory")
    options = parser.parse_args()
    if options.write:
        print(json.dumps(write(**json.loads(options.write))))
        return
    with tempfile.TemporaryDirectory(prefix="bench-spark-memory-", dir=options.scratch) as folder:
        print("| table | operation | rows of it | rows written | driver MB | JVM MB | worker MB | workers MB | s |")
        print("|---|---|---|---|---|---|---|---|---|", flush=True)
        session = {"heap": options.heap, "scratch": f"{folder}/spark"}
        for begun, found in measured(__file__, options, Path(folder), session, {}):
            figures = " | ".join(str(found[name]) for name in ("driver", "jvm", "worker", "workers", "s"))
            print(f"{begun} {figures} |", flush=True)


if __name__ == "__main__":
    main()

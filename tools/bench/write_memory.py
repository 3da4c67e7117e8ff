#!/usr/bin/env python3
"""
Peak memory of writes without Spark as tables grow: each operation, copy-on-write and merge-on-read.

    write_memory.py [--millions 1 4] [--limit-mb 64] [--index SIMPLE] [--kinds MERGE_ON_READ]
                    [--operations insert upsert] [--scratch DIR]

Each write has a process of its own, which makes its rows batch by batch and prints the peak of resident memory and CPU
seconds. An upsert changes a sixth of the rows and adds a third; a delete takes an eighth. The limit is
``hoodie.memory.merge.max.size``: with a small one few rows show what many do. A million rows take 80 MB in the scratch
folder, which is removed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench_common import Meter
from inputs import KEY, SETTINGS

import hudi_py

PARTITIONS: Final = 4
BATCH_ROWS: Final = 65_536
SCHEMA: Final = pa.schema([
    ("id", pa.string()), ("ts", pa.int64()), ("region", pa.string()), ("a", pa.int64()), ("b", pa.float64()),
])  # fmt: skip
OPERATIONS: Final = {"bulk_insert": (1, 1), "insert": (1, 1), "upsert": (2, 3), "delete": (8, 2)}
"""To the share of the table's rows that it writes (one of so many), and the distance of their numbers."""
KINDS: Final = ("COPY_ON_WRITE", "MERGE_ON_READ")
SERVICES_OFF: Final = {"hoodie.clean.automatic": False, "hoodie.archive.automatic": False}


def batches(rows: int, step: int, version: int) -> Iterator[pa.RecordBatch]:
    """Rows with every *step*-th number, keys in order and partitions in turn."""
    regions = pa.array([f"r{number:02d}" for number in range(PARTITIONS)])
    for start in range(0, rows, BATCH_ROWS):
        numbers = np.arange(start, min(start + BATCH_ROWS, rows)) * step
        columns: Any = [
            pa.array(np.char.mod(KEY, numbers)), pa.array(np.full(len(numbers), version)),
            regions.take(pa.array(numbers % PARTITIONS)), pa.array(numbers), pa.array(np.sqrt(numbers)),
        ]  # fmt: skip
        yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def write(path: str, operation: str, rows: int, settings: dict[str, Any]) -> dict[str, Any]:
    """One write to a table of *rows* rows, in this process."""
    share, step = OPERATIONS[operation]
    given = pa.RecordBatchReader.from_batches(SCHEMA, batches(rows // share, step, 1 if share == 1 else 2))
    with Meter() as meter:
        hudi_py.write(path, given, operation, settings=settings)
    return meter.dict(rows=rows // share)


def arguments(about: str) -> argparse.ArgumentParser:
    """Arguments that say which tables are made, and which operations are measured."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", type=float, nargs="+", default=[1, 4], help="rows of the tables")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="types of the tables")
    parser.add_argument(
        "--operations",
        nargs="+",
        choices=OPERATIONS,
        default=list(OPERATIONS),
        help="in this order; an upsert or delete needs an insert before",
    )
    parser.add_argument("--scratch", help="where to put the scratch folder")
    parser.add_argument("--write", metavar="JSON", help=argparse.SUPPRESS)
    return parser


def measured(
    script: str, options: argparse.Namespace, scratch: Path, more: Mapping[str, Any], settings: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """
    Carry each write out in a process of its own; yields the first cells of its line, and its figures.

    Args:
        script: Carries one out when it is called with ``--write``, and prints its figures in the last line.
        options: Of `arguments`.
        scratch: Folder of the tables, which are removed when those of the next size are due.
        more: Arguments of the script's ``write`` besides those of each write.
        settings: Of all tables.
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(hudi_py.__file__).resolve().parents[1])}  # for Spark's workers
    for kind in options.kinds:
        of_kind = {**SETTINGS, **SERVICES_OFF, **settings, "hoodie.datasource.write.table.type": kind}
        for rows in (int(millions * 1_000_000) for millions in options.millions):
            for operation in options.operations:
                table = scratch / ("bulk" if operation == "bulk_insert" else "table")
                asked = {"path": str(table), "operation": operation, "rows": rows, "settings": of_kind, **more}
                command = [sys.executable, script, "--write", json.dumps(asked)]
                done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
                found = json.loads(done.stdout.splitlines()[-1])
                yield f"| {kind} | {operation} | {rows:,} | {found['rows']:,} |", found
            for each in scratch.iterdir():
                shutil.rmtree(each)


def main() -> None:
    """Command line."""
    parser = arguments(str(__doc__))
    parser.add_argument("--limit-mb", type=int, default=64, help="hoodie.memory.merge.max.size")
    parser.add_argument("--index", help="hoodie.index.type; the default of hudi_py where left out")
    options = parser.parse_args()
    if options.write:
        print(json.dumps(write(**json.loads(options.write))))
        return
    settings = {"hoodie.memory.merge.max.size": options.limit_mb << 20}
    if options.index:
        settings["hoodie.index.type"] = options.index
    with tempfile.TemporaryDirectory(prefix="bench-write-memory-", dir=options.scratch) as scratch:
        print(
            "| table | operation | rows of it | rows written | peak MB | CPU s |\n|---|---|---|---|---|---|", flush=True
        )
        for begun, found in measured(__file__, options, Path(scratch), {}, settings):
            print(f"{begun} {found['peak_mb']} | {found['cpu']} |", flush=True)


if __name__ == "__main__":
    main()

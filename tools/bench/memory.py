#!/usr/bin/env python3
"""
Peak memory of streamed reads as tables grow: copy-on-write, and merge-on-read with a small log under each base file.

    memory.py [--millions 5 50] [--scratch DIR]

Makes tables of version 9 of files with a million rows each, reads each in a process of its own, batch by batch, and
prints the peak of resident memory, seconds and CPU seconds. 50 million rows take about
1 GB in the scratch folder, which is removed.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench_common import Meter
from inputs import key_of
from make_table import RECORD_SCHEMA, TableMaker, instant_time, partition_name

import hudi_py
from hudi_py.formats.avro_file import encode_record
from hudi_py.formats.log_block import BlockType, HeaderKey, LogBlock, encode_log_block, join_data_block

ROWS: Final = 1_000_000  # of each file
EACH: Final = 1000  # one row of so many has a newer version in the log
META: Final = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path")
META_SCHEMA: Final = [
    {"name": name, "type": ["null", "string"], "default": None} for name in (*META, "_hoodie_file_name")
]


def base_content(rows: int = ROWS) -> bytes:
    """A base file in ten row groups."""
    keys = pa.array([key_of(number) for number in range(rows)])
    same = {
        name: pa.array([text]).take(pa.array([0] * rows))
        for name, text in zip(META, (instant_time(0), "0", "", partition_name(0)), strict=True)
    }
    table = pa.table({
        **same, "_hoodie_record_key": keys, "_hoodie_file_name": same["_hoodie_commit_seqno"],
        "id": keys, "ts": pa.array(range(rows), pa.int64()), "region": same["_hoodie_partition_path"],
    })  # fmt: skip
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=rows // 10, compression="zstd", store_schema=False)
    return out.getvalue()


def log_content(time_: str, rows: int = ROWS, each: int = EACH) -> bytes:
    """A log file that updates one row of *each* in a base file."""
    record = json.loads(RECORD_SCHEMA)
    schema = json.dumps({**record, "fields": [*META_SCHEMA, *record["fields"]]})
    meta = {each["name"]: None for each in META_SCHEMA}
    bodies = [
        encode_record(schema, {**meta, "_hoodie_record_key": key_of(number), "_hoodie_commit_time": time_,
                               "id": key_of(number), "ts": number + rows, "region": partition_name(0)})
        for number in range(0, rows, each)
    ]  # fmt: skip
    header = {int(HeaderKey.INSTANT_TIME): time_, int(HeaderKey.SCHEMA): schema}
    return encode_log_block(LogBlock(BlockType.AVRO_DATA, header, join_data_block(bodies)))


def measure(path: str) -> dict[str, Any]:
    """Read a table in a process of its own."""
    command = [sys.executable, __file__, "--read", path]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def read(path: str) -> dict[str, Any]:
    """Stream all rows of a table."""
    with Meter() as meter:
        rows = sum(batch.num_rows for batch in hudi_py.open_table(path).rows())
    return meter.dict(rows=rows)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", type=int, nargs="+", default=[5, 50], help="rows of the tables")
    parser.add_argument("--scratch", help="where to put the scratch folder")
    parser.add_argument("--read", metavar="TABLE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        print(json.dumps(read(options.read)))
        return
    scratch = Path(tempfile.mkdtemp(prefix="bench-memory-", dir=options.scratch))
    base, log = base_content(), log_content(instant_time(1))
    print("| table | rows | peak MB | s | CPU s |\n|---|---|---|---|---|")
    try:
        for millions in options.millions:
            for kind in ("copy-on-write", "merge-on-read"):
                table = scratch / "table"
                maker = TableMaker(table, 9, millions, content=base)
                maker.partition(0, [instant_time(0)])
                maker.commit(0, [0])
                if kind == "merge-on-read":
                    maker.log(1, [0], log)
                found = measure(str(table))
                if found["rows"] != millions * ROWS:
                    raise SystemExit(f"{kind}: {found['rows']} rows, expected {millions * ROWS}")
                print(
                    f"| {kind} | {found['rows']:,} | {found['peak_mb']} | {found['s']} | {found['cpu']} |", flush=True
                )
                shutil.rmtree(table)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()

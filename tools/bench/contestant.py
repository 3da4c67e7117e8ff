#!/usr/bin/env python3
"""
Contestant ``hudi_py``, driven through its public API.

    contestant.py [--variant local|spark] [--heap 4g] [--cores 2]

``local`` cleans with threads and writes without Spark; ``spark`` cleans and writes on executors. No state is kept
between two calls that a fresh process would not have. Timeline and base files are written durably (fsync), which real
Hudi does not do: say so beside the figures of small commits.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # works from a checkout, prefers an installed hudi_py

try:
    from common import Meter, serve  # of a runner that brings its own
except ImportError:
    from bench_common import Meter, serve

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from inputs import SETTINGS, small_batch

import hudi_py

PARSER = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
PARSER.add_argument("--variant", default="local", choices=("local", "spark"))
PARSER.add_argument("--heap", default="4g")
PARSER.add_argument("--cores", default="2")
PARSER.add_argument("--table-version", type=int, default=6, choices=(6, 8, 9))
ARGUMENTS = PARSER.parse_args()
SCRATCH = Path(tempfile.mkdtemp(prefix="bench-hudi-py-"))
SMALL_FILE_PARTITIONS = 4
QUIET = {"hoodie.clean.automatic": False, "hoodie.archive.automatic": False}
CLUSTERING = {
    "hoodie.clustering.plan.strategy.small.file.limit": 300 << 20,
    "hoodie.clustering.plan.strategy.target.file.max.bytes": 1 << 30,
    "hoodie.clustering.plan.strategy.max.num.groups": 30,
}
_sessions: list[Any] = []


def session() -> Any:
    """Spark without any Hudi; started at first use, never inside a measured block."""
    if not _sessions:
        from pyspark.sql import SparkSession

        root = str(Path(hudi_py.__file__).resolve().parents[1])  # for the workers that Spark starts
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), root)))
        builder = SparkSession.builder.master(f"local[{ARGUMENTS.cores}]").appName("bench")
        for key, value in {
            "spark.driver.memory": ARGUMENTS.heap,
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": ARGUMENTS.cores,
            "spark.default.parallelism": ARGUMENTS.cores,
            "spark.sql.warehouse.dir": str(SCRATCH / "warehouse"),
        }.items():
            builder = builder.config(key, value)
        _sessions.append(builder.getOrCreate())
        _sessions[0].sparkContext.setLogLevel("ERROR")
    return _sessions[0]


def pids() -> list[int]:
    """This process; the JVM is one of its children and counted with it."""
    return [os.getpid()]


def client(path: str, mdt: bool = False, **settings: Any) -> Any:
    """A fresh write client."""
    texts = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in settings.items()}
    metadata = {"hoodie.metadata.enable": str(mdt).lower()}
    return hudi_py.WriteClient(session(), path, {**metadata, **texts})


# ------------------------------------------------------------------ operations
def warm() -> dict[str, Any]:
    """Start what later operations need."""
    if ARGUMENTS.variant == "spark":
        session().range(1000).count()
    return {"pid": os.getpid()}


def table_version() -> int:
    """The table version to measure with."""
    return int(ARGUMENTS.table_version)


def mdt_init(path: str, retained: int = 3) -> dict[str, Any]:  # noqa: ARG001 - the protocol names it
    """Give a table that has no metadata table one, as the first write with ``hoodie.metadata.enable`` does."""
    with Meter(pids()) as meter:
        table = hudi_py.open_table(path, settings={"hoodie.metadata.enable": True})
        table.services.metadata_table.prepare(writes_data=True)
    return meter.dict(ready=hudi_py.open_table(path).config.has_metadata_table)


def clean(
    path: str, mdt: bool = False, retained: int = 3, execute: bool = True, tuned: bool = False, incremental: bool = True
) -> dict[str, Any]:
    """``plan`` ends with ``.clean.requested`` on disk, ``exec`` with the completed instant; both open the table."""
    settings = {"hoodie.clean.incremental.enabled": incremental, "hoodie.metadata.enable": mdt or None}
    if tuned:  # parallelism is the one thing to tune, as for real Hudi
        settings["hoodie.clean.parallelism"] = 10 * int(ARGUMENTS.cores)
    before = _base_files(path)
    with Meter(pids()) as planning:
        instant = _cleaner(path, settings, retained).schedule()
    answer = {"plan": planning.dict(instant=None if instant is None else str(instant))}
    if execute and instant is not None:
        with Meter(pids()) as running:
            _cleaner(path, settings, retained).execute_pending()
        answer["exec"] = running.dict(deleted=before - _base_files(path))
    return answer


def _cleaner(path: str, settings: dict[str, Any], retained: int) -> Any:
    """A freshly opened table's clean, with the engine of the measured variant."""
    table = hudi_py.open_table(path, settings=settings)
    engine = None
    if ARGUMENTS.variant == "spark":
        from hudi_py.spark.engine import SparkEngine

        engine = SparkEngine(session())
    return table.services.clean(table.services.clean_config(commits_retained=retained), engine=engine)


def timeline(path: str, decode: bool = True) -> dict[str, Any]:
    """``load``: first sight; ``reload``: the same again; ``decode``: metadata of all completed instants."""
    with Meter() as loading:
        count = len(hudi_py.open_table(path).timeline)
    with Meter() as again:
        table = hudi_py.open_table(path)
        len(table.timeline)
    answer = {"load": loading.dict(n=count), "reload": again.dict()}
    if decode:
        with Meter() as decoding:
            decoded = [table.contents.plain(instant) for instant in table.timeline.completed()]
        answer["decode"] = decoding.dict(n=len(decoded))
    return answer


def write_base(inputs: str, path: str, mdt: bool, table_type: str = "COPY_ON_WRITE") -> dict[str, Any]:
    """Create a table with the base rows."""
    shutil.rmtree(path, ignore_errors=True)
    creating = {
        **SETTINGS,
        "hoodie.write.table.version": ARGUMENTS.table_version,
        "hoodie.datasource.write.table.type": table_type,
    }
    return _commit(path, "bulk_insert", f"{inputs}/base", {**creating, "hoodie.metadata.enable": mdt})


def write(inputs: str, path: str, op: str, batch: str, mdt: bool) -> dict[str, Any]:
    """One commit on a prepared table."""
    return _commit(path, op, f"{inputs}/{batch}", {"hoodie.metadata.enable": mdt})


def _commit(path: str, operation: str, files: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Write the rows of Parquet files; of ``local`` without Spark, and their reading is measured, too."""
    if ARGUMENTS.variant == "local":
        with Meter(pids()) as meter:
            hudi_py.write(path, parquet_files(files), operation, settings=settings)
        return meter.dict()
    frame = session().read.parquet(files)
    with Meter(pids()) as meter:
        getattr(client(path, **settings), operation)(frame)
    return meter.dict()


def parquet_files(folder: str) -> list[str]:
    """The Parquet files of a folder."""
    return sorted(str(path) for path in Path(folder).glob("*.parquet"))


def count(path: str) -> int:
    """Rows of the latest snapshot."""
    return sum(batch.num_rows for batch in hudi_py.open_table(path).rows(columns=["id"]))


def read(path: str, columns: list[str] | None, after: str | None = None, where: str | None = None) -> dict[str, Any]:
    """
    Open the table and read rows as Arrow batches, each dropped once it is there.

    Returns:
        Figures, with ``rows`` and the files ``opened`` for them.
    """
    with Meter() as meter:
        table = hudi_py.open_table(path)
        found = table.changes(after, columns=columns) if after else table.rows(columns=columns, where=where or ())
        count = sum(batch.num_rows for batch in found)
    return meter.dict(rows=count, opened=found.count.read)


def small_commits(path: str, mdt: bool, commits: int = 20, rows: int = 100, retained: int = 5) -> dict[str, Any]:
    """Upserts of few rows, each cleaning up behind itself; of ``local`` without Spark."""
    shutil.rmtree(path, ignore_errors=True)
    settings = {**SETTINGS, "hoodie.clean.commits.retained": retained, "hoodie.clean.automatic": True}
    batches = [str(small_batch(SCRATCH, number, rows)) for number in range(commits)]
    is_local = ARGUMENTS.variant == "local"
    given: list[Any] = [pq.read_table(each) if is_local else session().read.parquet(each) for each in batches]
    each = []
    with Meter(pids()) as meter:
        for batch in given:
            start = time.perf_counter()
            if is_local:
                hudi_py.write(path, batch, "upsert", settings={**settings, "hoodie.metadata.enable": mdt})
            else:
                client(path, mdt, **settings).upsert(batch)
            each.append(round(time.perf_counter() - start, 3))
    return meter.dict(each=each)


def inspect(path: str) -> dict[str, Any]:
    """``python -m hudi_py timeline PATH``, from process start to exit."""
    with Meter() as meter:
        done = subprocess.run(
            [sys.executable, "-m", "hudi_py", "timeline", path], capture_output=True, text=True, check=True
        )
    return meter.dict(lines=done.stdout.count("\n"))


def small_files(inputs: str, path: str, mdt: bool, files: int) -> int:
    """The base rows as small files in four partitions; returns the number of base files."""
    shutil.rmtree(path, ignore_errors=True)
    rows = pa.concat_tables(pq.read_table(path) for path in parquet_files(f"{inputs}/base"))
    last_digits = pc.cast(pc.utf8_slice_codeunits(rows["id"], -1), pa.int64())
    regions = pc.binary_join_element_wise("r", pc.cast(pc.bit_wise_and(last_digits, 3), pa.string()), "")
    rows = rows.set_column(rows.column_names.index("region"), "region", regions)
    settings = {
        **SETTINGS,
        "hoodie.write.table.version": ARGUMENTS.table_version,
        "hoodie.metadata.enable": mdt,
        **QUIET,
    }
    share = -(-rows.num_rows // (files // SMALL_FILE_PARTITIONS))
    for start in range(0, rows.num_rows, share):
        hudi_py.write(path, rows.slice(start, share), "bulk_insert", settings=settings)
    return _base_files(path)


def cluster(path: str, mdt: bool) -> dict[str, Any]:
    """``plan`` ends with the requested clustering on disk, ``exec`` with the completed one."""
    settings = {**CLUSTERING, **QUIET, "hoodie.metadata.enable": mdt}
    engine = None
    if ARGUMENTS.variant == "spark":
        from hudi_py.spark.engine import SparkEngine

        engine = SparkEngine(session())
    with Meter(pids()) as planning:
        instant = hudi_py.open_table(path, settings=settings).services.clustering(engine=engine).schedule()
    if instant is None:
        return {"plan": planning.dict(instant=None)}
    before = _base_files(path)
    with Meter(pids()) as running:
        service = hudi_py.open_table(path, settings=settings).services.clustering(engine=engine)
        service.execute(instant.requested_time)
    answer = running.dict(new_files=_base_files(path) - before)
    return {"plan": planning.dict(instant=str(instant)), "exec": answer}


def _base_files(path: str) -> int:
    return sum(1 for file in Path(path).rglob("*.parquet") if ".hoodie" not in file.parts)


OPERATIONS = {
    function.__name__: function
    for function in (
        warm, table_version, mdt_init, clean, timeline, write_base, write, count, read, small_commits, inspect,
        small_files, cluster,
    )
}  # fmt: skip

if __name__ == "__main__":
    try:
        serve(OPERATIONS)
    finally:
        if _sessions:
            _sessions[0].stop()
        shutil.rmtree(SCRATCH, ignore_errors=True)

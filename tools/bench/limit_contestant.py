#!/usr/bin/env python3
"""
Contestant ``limit``: the least work that any implementation has to do, with no table format around it.

Listing, parsing and unlinking in plain Python, PyArrow for rows, one bare Spark write. It knows no savepoints, no
replaced groups and no pending work, so it bounds from below.
"""

# The limit must not pay for the comfort of pathlib.

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from bench_common import Meter, serve
from inputs import READ_COLUMNS, small_batch

PARSER = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
PARSER.add_argument("--heap", default="2g")
PARSER.add_argument("--cores", default="2")
ARGUMENTS = PARSER.parse_args()
SCRATCH = Path(tempfile.mkdtemp(prefix="bench-limit-"))
_sessions: list[Any] = []


def session() -> Any:
    """Bare Spark; started at first use, never inside a measured block."""
    if not _sessions:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(f"local[{ARGUMENTS.cores}]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.driver.memory", ARGUMENTS.heap)
        builder = builder.config("spark.ui.showConsoleProgress", "false")
        builder = builder.config("spark.sql.shuffle.partitions", ARGUMENTS.cores)
        _sessions.append(builder.getOrCreate())
        _sessions[0].sparkContext.setLogLevel("ERROR")
    return _sessions[0]


def _timeline_folder(path: str) -> str:
    folder = os.path.join(path, ".hoodie", "timeline")
    return folder if os.path.isdir(folder) else os.path.join(path, ".hoodie")


def _decoded(path: str) -> dict[str, Any]:
    with open(path, "rb") as file:
        if file.read(3) == b"Obj":
            file.seek(0)
            return dict(next(fastavro.reader(file)))  # type: ignore[arg-type]
        file.seek(0)
        return dict(json.load(file))


# ------------------------------------------------------------------ operations
def clean(path: str, retained: int = 3, last_earliest: str | None = None) -> dict[str, Any]:
    """
    ``scan``: names of the whole tree. ``plan``: keep-latest-commits over names. ``exec``: unlink, one thread.

    With *last_earliest* only partitions named by commits since then are looked at, as an incremental clean does.
    """
    with Meter() as scanning:
        files = sum(len(names) for _, _, names in os.walk(path))
    folder = _timeline_folder(path)
    with Meter() as planning:
        commits = sorted(name for name in os.listdir(folder) if name.endswith(".commit"))
        earliest = commits[-retained][:17]
        if last_earliest is None:
            partitions = [entry.name for entry in os.scandir(path) if entry.is_dir() and entry.name[0] != "."]
        else:
            recent = [name for name in commits if last_earliest <= name[:17] < earliest]
            partitions = sorted({p for n in recent for p in _decoded(f"{folder}/{n}")["partitionToWriteStats"]})
        stale = [file for partition in partitions for file in _stale(os.path.join(path, partition), earliest)]
    with Meter() as deleting:
        for file in stale:
            os.unlink(file)
    return {
        "scan": scanning.dict(files=files),
        "plan": planning.dict(),
        "exec": deleting.dict(deleted=len(stale)),
    }


def _stale(folder: str, earliest: str) -> list[str]:
    groups: dict[str, list[tuple[str, str]]] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".parquet"):
                group, _, time_ = entry.name.removesuffix(".parquet").split("_")
                groups.setdefault(group, []).append((time_, entry.path))
    stale = []
    for slices in groups.values():
        slices.sort()
        older = [file for time_, file in slices if time_ < earliest]
        stale += older[:-1]
    return stale


def timeline(path: str) -> dict[str, Any]:
    """``load``: list and parse names; ``decode``: json or fastavro for every completed commit and clean."""
    folder = _timeline_folder(path)
    with Meter() as loading:
        names = [entry.name for entry in os.scandir(folder) if entry.name[0] == "2"]
        count = len({name[:17] for name in names})
    completed = [name for name in names if name.endswith((".commit", ".clean"))]
    with Meter() as decoding:
        for name in completed:
            _decoded(f"{folder}/{name}")
    return {"load": loading.dict(n=count), "decode": decoding.dict(n=len(completed))}


def base(inputs: str, path: str) -> dict[str, Any]:
    """``pyarrow``: the base rows as one file per partition; ``spark``: the same by a bare Spark job."""
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    with Meter() as arrow:
        table = ds.dataset(f"{inputs}/base").to_table()
        for region in pc.unique(table["region"]):
            one = table.filter(pc.equal(table["region"], region))
            pq.write_table(one, f"{path}/{region}.parquet", compression="gzip")
    return {"pyarrow": arrow.dict(), "spark": _spark_write(f"{inputs}/base")}


def upsert(inputs: str, path: str, batch: str) -> dict[str, Any]:
    """``pyarrow``: rewrite exactly the touched files; ``spark``: a bare write of the batch, not a lower limit."""
    with Meter() as arrow:
        new = ds.dataset(f"{inputs}/{batch}").to_table()
        for region in pc.unique(new["region"]):
            mine = new.filter(pc.equal(new["region"], region))
            old = pq.read_table(f"{path}/{region}.parquet")
            old = old.filter(pc.invert(pc.is_in(old["id"], mine["id"].combine_chunks())))
            merged = pa.concat_tables([old, mine])
            pq.write_table(merged, f"{path}/{region}.parquet.new", compression="gzip")
    for file in Path(path).glob("*.new"):
        file.unlink()
    return {"pyarrow": arrow.dict(), "spark": _spark_write(f"{inputs}/{batch}")}


def read(
    path: str,
    columns: list[str] | None,
    after: str | None = None,
    where: str | None = None,
    files: list[str] | None = None,
) -> dict[str, Any]:
    """
    ``dataset``: the bare rows of Parquet files, `pyarrow.dataset` with all cores.

    Args:
        files: Those to read; None for all of a table that has one slice of each file.
    """
    if where is not None:
        raise NotImplementedError("it has no index")
    names = [str(each) for each in Path(path).rglob("*.parquet") if ".hoodie" not in each.parts]
    filters = None if after is None else pc.field("_hoodie_commit_time") > after
    with Meter() as meter:
        dataset = ds.dataset(names if files is None else files, format="parquet")
        scanned = dataset.to_batches(columns=columns or list(READ_COLUMNS), filter=filters)
        rows = sum(batch.num_rows for batch in scanned)
    return meter.dict(rows=rows)


def _spark_write(source: str) -> dict[str, Any]:
    out = SCRATCH / "written"
    shutil.rmtree(out, ignore_errors=True)
    frame = session().read.parquet(source)
    with Meter() as meter:
        frame.repartition("region").write.option("compression", "gzip").partitionBy("region").parquet(str(out))
    return meter.dict()


def small_commits(commits: int = 20, rows: int = 100) -> dict[str, Any]:
    """``pyarrow``: a file and a durable commit file each; ``spark``: one Spark write each."""
    frames = [session().read.parquet(str(small_batch(SCRATCH, n, rows))) for n in range(commits)]
    table = pq.read_table(SCRATCH / "small-0.parquet")
    out = SCRATCH / "small"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    each: dict[str, list[float]] = {"pyarrow": [], "spark": []}
    with Meter() as arrow:
        for number in range(commits):
            start = time.perf_counter()
            pq.write_table(table, out / f"{number}.parquet", compression="gzip")
            with (out / f"{number}.commit").open("wb") as file:
                file.write(b"{}" * 500)
                file.flush()
                os.fsync(file.fileno())
            each["pyarrow"].append(round(time.perf_counter() - start, 4))
    with Meter() as spark:
        for frame in frames:
            start = time.perf_counter()
            frame.write.mode("append").parquet(str(out / "spark"))
            each["spark"].append(round(time.perf_counter() - start, 3))
    return {"pyarrow": arrow.dict(each=each["pyarrow"]), "spark": spark.dict(each=each["spark"])}


OPERATIONS = {function.__name__: function for function in (clean, timeline, base, upsert, small_commits, read)}

if __name__ == "__main__":
    try:
        serve(OPERATIONS)
    finally:
        if _sessions:
            _sessions[0].stop()
        shutil.rmtree(SCRATCH, ignore_errors=True)

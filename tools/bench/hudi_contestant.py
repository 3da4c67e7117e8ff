#!/usr/bin/env python3
"""
Contestant ``hudi:VERSION``: real Apache Hudi through PySpark and py4j.

    hudi_contestant.py --hudi 1.1.1 [--heap 4g] [--cores 2]

The session is that of ``tools/real_hudi``, with the JVM's own defaults instead of the options that make tests start
fast. Settings are Hudi's defaults unless ``tuned``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from bench_common import Meter, serve
from inputs import READ_COLUMNS, SETTINGS, small_batch
from real_hudi.bundle import TABLE_VERSION, find_bundle
from real_hudi.session import HudiJvm, start_spark, unwrap
from real_hudi.settings import read_properties

PARSER = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
PARSER.add_argument("--hudi", default="1.1.1")
PARSER.add_argument("--heap", default="4g")
PARSER.add_argument("--cores", default="2")
ARGUMENTS = PARSER.parse_args()
SCRATCH = Path(tempfile.mkdtemp(prefix="bench-hudi-"))
JAR = find_bundle(ARGUMENTS.hudi)
_started: list[HudiJvm] = []


def hudi() -> HudiJvm:
    """The session; started at first use, never inside a measured block."""
    if not _started:
        spark = start_spark(
            JAR, SCRATCH, cores=ARGUMENTS.cores, memory=ARGUMENTS.heap, java_options="", log_level="error"
        )
        _started.append(HudiJvm(ARGUMENTS.hudi, spark))
    return _started[0]


def _config(path: str, retained: int, mdt: bool, tuned: bool, incremental: bool) -> Any:
    properties = read_properties(path)
    settings = {
        "hoodie.base.path": path,
        "hoodie.table.name": properties["hoodie.table.name"],
        "hoodie.metadata.enable": str(mdt).lower(),
        "hoodie.cleaner.policy": "KEEP_LATEST_COMMITS",
        "hoodie.cleaner.commits.retained": str(retained),
        "hoodie.cleaner.incremental.mode": str(incremental).lower(),
        "hoodie.keep.min.commits": str(retained + 20),
        "hoodie.keep.max.commits": str(retained + 30),
    }
    if hudi().is_v1:
        settings |= {
            "hoodie.write.table.version": properties["hoodie.table.version"],
            "hoodie.write.auto.upgrade": "false",
        }
    if tuned:  # what a careful user of a small machine may choose
        parallelism = str(10 * int(ARGUMENTS.cores))
        settings |= {"hoodie.cleaner.parallelism": parallelism, "hoodie.embed.timeline.server": "false"}
    return hudi().write_config(settings)


# ------------------------------------------------------------------ operations
def warm() -> dict[str, Any]:
    """Start Spark and run one job."""
    hudi().spark.range(1000).selectExpr("sum(id)").collect()
    return {"pid": hudi().pid}


def table_version() -> int:
    """What this release writes by default."""
    return TABLE_VERSION.get(ARGUMENTS.hudi, 8)


def clean(
    path: str, mdt: bool = False, retained: int = 3, execute: bool = True, tuned: bool = False, incremental: bool = True
) -> dict[str, Any]:
    """``plan`` is `scheduleTableService(CLEAN)`, ``exec`` is `clean` of what is pending."""
    jvm = hudi()
    jvm.jvm.java.lang.System.gc()
    client = jvm.write_client(_config(path, retained, mdt, tuned, incremental))
    try:
        kind = jvm.jvm.org.apache.hudi.common.model.TableServiceType.CLEAN
        with Meter([jvm.pid]) as planning:
            instant = unwrap(client.scheduleTableService(jvm.option(), kind))
        answer = {"plan": planning.dict(instant=instant)}
        if execute and instant is not None:
            with Meter([jvm.pid]) as running:
                metadata = client.clean(False) if jvm.is_v1 else client.clean(instant, False, False)
            answer["exec"] = running.dict(deleted=None if metadata is None else metadata.getTotalFilesDeleted())
        return answer
    finally:
        client.close()


def timeline(path: str, decode: bool = True) -> dict[str, Any]:
    """``load``: a new meta client with its active timeline; ``decode``: all completed metadata, inside the JVM."""
    jvm = hudi()
    with Meter([jvm.pid]) as loading:
        client = jvm.meta_client(path)
        count = client.getActiveTimeline().countInstants()
    with Meter([jvm.pid]) as again:
        client.reloadActiveTimeline().countInstants()
    answer = {"load": loading.dict(n=count), "reload": again.dict()}
    if decode:
        completed = client.getActiveTimeline().filterCompletedInstants()
        utilities = jvm.jvm.org.apache.hudi.common.table.timeline.TimelineUtils
        with Meter([jvm.pid]) as decoding:
            utilities.getAffectedPartitions(completed)
        answer["decode"] = decoding.dict(n=completed.countInstants())
    return answer


def write_base(inputs: str, path: str, mdt: bool, table_type: str = "COPY_ON_WRITE") -> dict[str, Any]:
    """Create a table with the base rows."""
    shutil.rmtree(path, ignore_errors=True)
    frame = hudi().spark.read.parquet(f"{inputs}/base")
    with Meter([hudi().pid]) as meter:
        _save(frame, path, "bulk_insert", mdt, "overwrite", {"hoodie.datasource.write.table.type": table_type})
    return meter.dict()


def write(inputs: str, path: str, op: str, batch: str, mdt: bool) -> dict[str, Any]:
    """One commit on a prepared table."""
    frame = hudi().spark.read.parquet(f"{inputs}/{batch}")
    table_type = str(hudi().meta_client(path).getTableType().name())
    with Meter([hudi().pid]) as meter:
        _save(frame, path, op, mdt, "append", {"hoodie.datasource.write.table.type": table_type})
    return meter.dict()


def count(path: str) -> int:
    """Rows of the latest snapshot."""
    return int(hudi().spark.read.format("hudi").load(path).count())


def small_commits(path: str, mdt: bool, commits: int = 20, rows: int = 100, retained: int = 5) -> dict[str, Any]:
    """Upserts of few rows, each cleaning up behind itself."""
    shutil.rmtree(path, ignore_errors=True)
    frames = [hudi().spark.read.parquet(str(small_batch(SCRATCH, n, rows))) for n in range(commits)]
    settings = {
        "hoodie.cleaner.commits.retained": str(retained),
        "hoodie.keep.min.commits": "30",
        "hoodie.keep.max.commits": "40",
    }
    each = []
    with Meter([hudi().pid]) as meter:
        for number, frame in enumerate(frames):
            start = time.perf_counter()
            _save(frame, path, "upsert", mdt, "append" if number else "overwrite", settings)
            each.append(round(time.perf_counter() - start, 3))
    return meter.dict(each=each)


def write_table(
    inputs: str, path: str, table_type: str, batches: list[str], index: bool = False, tasks: int | None = None
) -> dict[str, Any]:
    """
    Make a table for the reading workload: a `bulk_insert`, then an upsert for each further batch.

    Args:
        index: With a metadata table and its record index.
        tasks: Write by so many, each of which makes a file in each partition.

    Returns:
        ``commits``: requested time of each, and its completion time where the release has them.
    """
    shutil.rmtree(path, ignore_errors=True)
    settings = {
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.compact.inline": "false",
        "hoodie.clean.automatic": "false",
    }
    if index:
        names = ("record.index", "global.record.level.index")  # before and since 1.1
        settings |= {f"hoodie.metadata.{name}.enable": "true" for name in names}
    for number, batch in enumerate(batches):
        frame = hudi().spark.read.parquet(f"{inputs}/{batch}")
        frame = frame if tasks is None else frame.repartition(tasks)
        op, mode = ("upsert", "append") if number else ("bulk_insert", "overwrite")
        _save(frame, path, op, index, mode, settings)
    completed = hudi().meta_client(path).getActiveTimeline().getCommitsTimeline().filterCompletedInstants()
    instants = [completed.nthInstant(number).get() for number in range(completed.countInstants())]
    if not hudi().is_v1:
        return {"commits": [[each.getTimestamp()] for each in instants]}
    return {"commits": [[each.requestedTime(), each.getCompletionTime()] for each in instants]}


def read(path: str, columns: list[str] | None, after: str | None = None, where: str | None = None) -> dict[str, Any]:
    """Read rows into Spark's sink that drops them."""
    reader = hudi().spark.read.format("hudi")
    if after is not None:
        reader = reader.option("hoodie.datasource.query.type", "incremental")
        reader = reader.option("hoodie.datasource.read.begin.instanttime", after)
    if where is not None:
        reader = reader.options(**{"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"})
    with Meter([hudi().pid]) as meter:
        frame = reader.load(path)
        frame = frame if where is None else frame.where(where)
        frame.select(*(columns or READ_COLUMNS)).write.format("noop").mode("overwrite").save()
    return meter.dict(rows=int(frame.count()))


def _save(frame: Any, path: str, op: str, mdt: bool, mode: str, settings: dict[str, str] | None = None) -> None:
    options = {**SETTINGS, "hoodie.datasource.write.operation": op, "hoodie.metadata.enable": str(mdt).lower()}
    if op == "delete":
        # Without it, 1.1.1 has no schema for the log files of a merge-on-read table: a NullPointerException.
        convert = hudi().spark._jvm.org.apache.hudi.AvroConversionUtils.convertStructTypeToAvroSchema  # noqa: SLF001
        options["hoodie.avro.schema"] = convert(frame._jdf.schema(), "bench", "bench").toString()  # noqa: SLF001
    for kind in ("upsert", "insert", "bulkinsert", "delete"):
        options[f"hoodie.{kind}.shuffle.parallelism"] = ARGUMENTS.cores
    frame.write.format("hudi").options(**options | (settings or {})).mode(mode).save(path)


OPERATIONS = {
    function.__name__: function
    for function in (
        warm, table_version, clean, timeline, write_base, write, count, small_commits, write_table, read,
    )
}  # fmt: skip

if __name__ == "__main__":
    try:
        serve(OPERATIONS)
    finally:
        shutil.rmtree(SCRATCH, ignore_errors=True)
        os._exit(0)  # the JVM follows when its pipe closes

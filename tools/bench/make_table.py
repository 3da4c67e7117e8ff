#!/usr/bin/env python3
"""
Make a synthetic copy-on-write table fast, without Hudi: a hand-written timeline and one tiny base file, repeated.

    make_table.py OUT --version 6 --mode full --partitions 100 --groups 10 --slices 10
    make_table.py OUT --version 9 --mode incremental --partitions 1000
    make_table.py OUT --version 8 --mode timeline --instants 10000

full         every commit rewrote every file group; never cleaned: the next clean looks at every partition
incremental  cleaned once; since then each commit touched a small share of the partitions
timeline     instants only, every fifth a clean; no data files

Prints, as JSON, what a correct clean has to delete. Good for planning, cleaning and loading; every base file holds the
same single row, so not for reading.
"""

from __future__ import annotations

import argparse
import datetime as dt
import io
import json
import os
import random
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

SCHEMAS: Final = Path(__file__).resolve().parents[2] / "avro_schemas"
FIRST: Final = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
SECONDS_BETWEEN: Final = 20
RECORD_SCHEMA: Final = json.dumps(
    {
        "type": "record",
        "name": "synth_record",
        "namespace": "hoodie.synth",
        "fields": [
            {"name": "id", "type": "string"},
            {"name": "ts", "type": "long"},
            {"name": "region", "type": ["null", "string"], "default": None},
        ],
    }
)

Slices = dict[int, list[str]]  # partition number -> instants of its slices on disk, oldest first


def instant_time(number: int, milliseconds: int = 0) -> str:
    """Time of instant *number*."""
    moment = FIRST + dt.timedelta(seconds=SECONDS_BETWEEN * number, milliseconds=milliseconds)
    return moment.strftime("%Y%m%d%H%M%S") + f"{moment.microsecond // 1000:03d}"


def partition_name(partition: int) -> str:
    """Path of a partition."""
    return f"p{partition:06d}"


def file_id(partition: int, group: int) -> str:
    """Id of a file group: a UUID in shape."""
    return f"{partition:08x}-{group:04x}-4000-8000-{partition * 65537 + group:012x}-0"


def base_file(partition: int, group: int, instant: str) -> str:
    """Name of a base file."""
    return f"{file_id(partition, group)}_0-1-2_{instant}.parquet"


def kept(instants: list[str], earliest: str | None) -> list[str]:
    """KEEP_LATEST_COMMITS for one file group: all from *earliest* on, and the one before it."""
    if earliest is None:
        return instants
    return [t for t in instants if t < earliest][-1:] + [t for t in instants if t >= earliest]


class TableMaker:
    """
    Args:
        out: The table's folder; must be absent or empty.
        version: Table version 6, 8 or 9.
        groups: File groups in each partition.
        empty_files: Zero-length base files (planning reads names only).
        links: Base files of four bytes, links to the first of their folder: as cheap, and a metadata table takes them.
        content: Of each base file; None for a single row.
    """

    def __init__(
        self,
        out: Path,
        version: int,
        groups: int,
        *,
        empty_files: bool = False,
        links: bool = False,
        content: bytes | None = None,
    ) -> None:
        self._out = out
        self._version = version
        self._groups = groups
        self._is_v6 = version < 8
        self._timeline = out / ".hoodie" if self._is_v6 else out / ".hoodie" / "timeline"
        (self._timeline / ("archived" if self._is_v6 else "history")).mkdir(parents=True)
        (out / ".hoodie" / "hoodie.properties").write_text(_properties(version))
        content = b"PAR1" if links else content
        self._content = b"" if empty_files else _one_row() if content is None else content
        self._links = links
        self._newest: dict[int, str] = {}
        self._schemas: dict[str, Any] = {}

    # ------------------------------------------------------------------ files
    def partition(self, partition: int, instants: list[str]) -> int:
        """Write a partition's base files and its metadata file; returns how many base files."""
        folder = self._out / partition_name(partition)
        folder.mkdir()
        (folder / ".hoodie_partition_metadata").write_text(
            f"#partition metadata\n#Mon Jan 01 00:00:00 UTC 2024\ncommitTime={instants[0]}\npartitionDepth=1\n"
        )
        files = [folder / base_file(partition, group, instant) for instant in instants for group in range(self._groups)]
        for file in files:
            if self._links and file is not files[0]:
                os.link(files[0], file)
            else:
                file.write_bytes(self._content)
        return len(files)

    # ------------------------------------------------------------------ instants
    def commit(self, number: int, partitions: Iterable[int], action: str = "commit") -> None:
        """A completed upsert that rewrote every file group of *partitions*."""
        time = instant_time(number)
        stats = {partition_name(p): [self._stat(p, g, time) for g in range(self._groups)] for p in partitions}
        self._newest.update(dict.fromkeys(partitions, time))
        metadata = {
            "partitionToWriteStats": stats,
            "compacted": False,
            "extraMetadata": {"schema": RECORD_SCHEMA},
            "operationType": "UPSERT",
        }
        self._instant(f"{time}.{action}.requested", b"")
        inflight = "inflight" if action == "commit" else f"{action}.inflight"
        self._instant(f"{time}.{inflight}", self._commit_bytes(metadata | {"partitionToWriteStats": {}}))
        self._completed(number, 900, action, self._commit_bytes(metadata))

    def log(self, number: int, partitions: Iterable[int], data: bytes) -> None:
        """A completed delta commit with a log file on each base file of *partitions*; makes the table merge-on-read."""
        properties = self._out / ".hoodie" / "hoodie.properties"
        properties.write_text(properties.read_text().replace("COPY_ON_WRITE", "MERGE_ON_READ"))
        time = instant_time(number)
        stats: dict[str, list[dict[str, Any]]] = {}
        for partition in partitions:
            path = partition_name(partition)
            for group in range(self._groups):
                base = self._newest[partition]
                # In layout 1 a log file bears the time of its slice, in layout 2 that of its delta commit.
                name = f".{file_id(partition, group)}_{base if self._is_v6 else time}.log.1_0-1-2"
                (self._out / path / name).write_bytes(data)
                stat = {**self._stat(partition, group, base), "path": f"{path}/{name}", "fileSizeInBytes": len(data)}
                below = {"baseFile": base_file(partition, group, base)} if self._is_v6 else {}
                stat |= {"logVersion": 1, "logOffset": 0, **below, "logFiles": [name]}
                stats.setdefault(path, []).append(stat)
        metadata = {
            "partitionToWriteStats": stats,
            "compacted": False,
            "extraMetadata": {"schema": RECORD_SCHEMA},
            "operationType": "UPSERT",
        }
        self._instant(f"{time}.deltacommit.requested", b"")
        self._instant(f"{time}.deltacommit.inflight", b"")
        self._completed(number, 900, "deltacommit", self._commit_bytes(metadata))

    def clean(self, number: int, earliest: str, last: str, deleted: dict[int, list[str]]) -> None:
        """A completed clean; *deleted* names files per partition."""
        time = instant_time(number, 950)
        named = {partition_name(p): names for p, names in deleted.items()}
        folder = f"file:{self._out.absolute()}"
        plan = self._avro(
            "HoodieCleanerPlan",
            {
                "earliestInstantToRetain": {"timestamp": earliest, "action": "commit", "state": "COMPLETED"},
                "lastCompletedCommitTimestamp": last,
                "policy": "KEEP_LATEST_COMMITS",
                "filesToBeDeletedPerPartition": {},
                "version": 2,
                "filePathsToBeDeletedPerPartition": {
                    path: [{"filePath": f"{folder}/{path}/{name}", "isBootstrapBaseFile": False} for name in names]
                    for path, names in named.items()
                },
                "partitionsToBeDeleted": [],
                "extraMetadata": {},
            },
        )
        metadata = self._avro(
            "HoodieCleanMetadata",
            {
                "startCleanTime": time,
                "timeTakenInMillis": 40,
                "totalFilesDeleted": sum(map(len, named.values())),
                "earliestCommitToRetain": earliest,
                "lastCompletedCommitTimestamp": last,
                "partitionMetadata": {path: _clean_stat(path, names) for path, names in named.items()},
                "version": 2,
                "bootstrapPartitionMetadata": {},
                "extraMetadata": {},
            },
        )
        self._instant(f"{time}.clean.requested", plan)
        self._instant(f"{time}.clean.inflight", plan if self._version < 9 else b"")
        self._completed(number, 990, "clean", metadata, requested_ms=950)

    def _completed(self, number: int, done_ms: int, action: str, data: bytes, requested_ms: int = 0) -> None:
        time = instant_time(number, requested_ms)
        suffix = "" if self._is_v6 else f"_{instant_time(number, done_ms)}"
        self._instant(f"{time}{suffix}.{action}", data)

    def _instant(self, name: str, data: bytes) -> None:
        (self._timeline / name).write_bytes(data)

    def _stat(self, partition: int, group: int, time: str) -> dict[str, Any]:
        path = partition_name(partition)
        zero = "numDeletes numInserts totalWriteErrors totalLogRecords totalUpdatedRecordsCompacted totalLogBlocks"
        return {
            "fileId": file_id(partition, group),
            "path": f"{path}/{base_file(partition, group, time)}",
            "cdcStats": None,
            "prevCommit": self._newest.get(partition, "null"),
            "partitionPath": path,
            "numWrites": 1,
            "numUpdateWrites": 1,
            "totalWriteBytes": len(self._content),
            "fileSizeInBytes": len(self._content),
            **dict.fromkeys(zero.split(), 0),
            "runtimeStats": {"totalScanTime": 0, "totalUpsertTime": 10, "totalCreateTime": 0},
        }

    def _commit_bytes(self, metadata: dict[str, Any]) -> bytes:
        if self._is_v6:
            return json.dumps(metadata, indent=2, separators=(",", " : ")).encode()
        return self._avro("HoodieCommitMetadata", metadata)

    def _avro(self, name: str, record: dict[str, Any]) -> bytes:
        if name not in self._schemas:
            self._schemas[name] = fastavro.parse_schema(json.loads((SCHEMAS / f"{name}.avsc").read_text()))
        out = io.BytesIO()
        fastavro.writer(out, self._schemas[name], [record], codec="null")
        return out.getvalue()


def make_table(
    out: str | Path, *, version: int = 6, mode: str = "full", partitions: int = 100, groups: int = 10, slices: int = 10,
    retained: int = 3, share: float = 0.05, instants: int = 1000, empty_files: bool = False, links: bool = False,
    seed: int = 7,
) -> dict[str, Any]:  # fmt: skip
    """
    Make a table; the modes are explained above.

    Returns:
        ``files`` (base files on disk) and ``expect_deleted`` (of a clean that retains *retained* commits), plus the
        earliest commits to retain of that clean and of the one before it.
    """
    maker = TableMaker(Path(out), version, 1 if mode == "timeline" else groups, empty_files=empty_files, links=links)
    if mode == "timeline":
        return _timeline_only(maker, instants)
    touched, cleaned_after = _story(mode, partitions, slices, retained, share, seed)
    times = [instant_time(number) for number in range(len(touched))]
    earliest = times[-retained] if len(times) > retained else None
    last_earliest = times[cleaned_after - retained] if cleaned_after else None
    written: Slices = {p: [t for t, some in zip(times, touched, strict=True) if p in some] for p in range(partitions)}
    on_disk = {p: _after_clean(mine, times, cleaned_after, last_earliest) for p, mine in written.items()}
    files = sum(maker.partition(p, mine) for p, mine in on_disk.items())
    for number, some in enumerate(touched):
        maker.commit(number, sorted(some))
        if number + 1 == cleaned_after and last_earliest:
            gone = {p: sorted(set(written[p]) - set(on_disk[p])) for p in written}
            names = {p: [base_file(p, g, t) for t in old for g in range(groups)] for p, old in gone.items() if old}
            maker.clean(number, last_earliest, times[number], names)
    staying = sum(len(kept(mine, earliest)) for mine in on_disk.values()) * groups
    return {
        "files": files,
        "expect_deleted": files - staying,
        "earliest": earliest,
        "last_earliest": last_earliest,
        "commits": len(times),
    }


def _story(
    mode: str, partitions: int, slices: int, retained: int, share: float, seed: int
) -> tuple[list[set[int]], int]:
    """Partitions touched by each commit, and after how many commits a clean ran (0: never)."""
    everything = set(range(partitions))
    if mode == "full":
        return [everything] * slices, 0
    chance = random.Random(seed)  # noqa: S311  (reproducible tables)
    few = max(1, int(partitions * share))
    small = [set(chance.sample(range(partitions), few)) for _ in range(3 * retained)]
    touched = [everything] * 3 + small
    return touched, len(touched) - retained


def _after_clean(mine: list[str], times: list[str], cleaned_after: int, earliest: str | None) -> list[str]:
    if not cleaned_after:
        return mine
    border = times[cleaned_after]
    return kept([t for t in mine if t < border], earliest) + [t for t in mine if t >= border]


def _timeline_only(maker: TableMaker, instants: int) -> dict[str, Any]:
    touched = range(10)
    for number in range(instants):
        if number % 5 == 4:
            old = instant_time(max(0, number - 20))
            deleted = {p: [base_file(p, 0, old)] for p in touched}
            maker.clean(number, instant_time(max(0, number - 5)), instant_time(number - 1), deleted)
        else:
            maker.commit(number, touched)
    return {"instants": instants, "files": 0, "expect_deleted": 0}


def _clean_stat(path: str, names: list[str]) -> dict[str, Any]:
    return {
        "partitionPath": path,
        "policy": "KEEP_LATEST_COMMITS",
        "deletePathPatterns": names,
        "successDeleteFiles": names,
        "failedDeleteFiles": [],
        "isPartitionDeleted": False,
    }


def _properties(version: int) -> str:
    """Enough of ``hoodie.properties`` for every release."""
    properties = {
        "hoodie.table.name": "synth",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": version,
        "hoodie.table.checksum": zlib.crc32(b".synth"),
        "hoodie.table.recordkey.fields": "id",
        "hoodie.table.partition.fields": "region",
        "hoodie.table.base.file.format": "PARQUET",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.table.cdc.enabled": "false",
        "hoodie.populate.meta.fields": "true",
        "hoodie.datasource.write.hive_style_partitioning": "false",
        "hoodie.datasource.write.partitionpath.urlencode": "false",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.partition.metafile.use.base.format": "false",
        "hoodie.timeline.layout.version": 1 if version < 8 else 2,
        "hoodie.archivelog.folder": "archived" if version < 8 else "history",
        "hoodie.table.ordering.fields" if version == 9 else "hoodie.table.precombine.field": "ts",
    }
    if version < 8:
        properties |= {
            "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
            "hoodie.database.name": "",
        }
    else:
        properties |= {
            "hoodie.table.keygenerator.type": "SIMPLE",
            "hoodie.timeline.path": "timeline",
            "hoodie.timeline.history.path": "history",
            "hoodie.table.initial.version": version,
            "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
        }
    if version == 8:
        properties |= {
            "hoodie.record.merge.strategy.id": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
            "hoodie.compaction.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
        }
    if version == 9:
        properties["hoodie.table.format"] = "native"
    lines = [f"{key}={value}" for key, value in sorted(properties.items())]
    return "\n".join(["#Mon Jan 01 00:00:00 UTC 2024", *lines, ""])


def _one_row() -> bytes:
    columns: dict[str, list[Any]] = {
        "_hoodie_commit_time": [instant_time(0)],
        "_hoodie_commit_seqno": [f"{instant_time(0)}_0_0"],
        "_hoodie_record_key": ["k"],
        "_hoodie_partition_path": ["p"],
        "_hoodie_file_name": ["f"],
        "id": ["k"],
        "ts": [0],
        "region": ["p"],
    }
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, compression="none", use_dictionary=False, store_schema=False)
    return out.getvalue()


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--version", type=int, default=6, choices=(6, 8, 9))
    parser.add_argument("--mode", default="full", choices=("full", "incremental", "timeline"))
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--groups", type=int, default=10, help="file groups in each partition")
    parser.add_argument("--slices", type=int, default=10, help="slices of each file group (full)")
    parser.add_argument("--retained", type=int, default=3, help="commits retained, for what is printed")
    parser.add_argument("--share", type=float, default=0.05, help="of partitions, per small commit (incremental)")
    parser.add_argument("--instants", type=int, default=1000, help="number of instants (timeline)")
    parser.add_argument("--empty-files", action="store_true", help="zero-length base files")
    parser.add_argument("--seed", type=int, default=7)
    arguments = vars(parser.parse_args())
    if arguments["out"].exists() and any(arguments["out"].iterdir()):
        parser.error("OUT exists and is not empty")
    print(json.dumps(make_table(**arguments)))


if __name__ == "__main__":
    main()

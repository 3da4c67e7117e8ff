#!/usr/bin/env python3
"""
Measure hudi_py against real Apache Hudi and the physical limit, in one run on one machine, and report ratios.

    run.py --out results.jsonl                          # everything, small: about five minutes
    run.py --workloads clean,timeline --repetitions 5 --out results.jsonl
    run.py --report results.jsonl

See README.md beside this file for what is measured and how to read it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from bench_common import Contestant
from bench_report import report
from make_table import make_table
from reading import CASES, Reading
from writing import TABLES, Writing, title, turns

HERE: Final = Path(__file__).resolve().parent
LIMIT: Final = "limit"
RUST: Final = "hudi-rs"
WORKLOADS: Final = ("timeline", "clean", "small", "write", "read")
DEFAULT_CONTESTANTS: Final = "hudi:0.15.0,hudi:1.1.1,hudi:1.2.0,hudi_py:local,hudi_py:spark,hudi-rs,limit"
UNMEASURED_COMMITS: Final = 2  # of the small ones: they pay for class loading


class Run:
    """
    One run: contestants that stay alive, workloads, records.

    Args:
        options: The parsed command line.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._scratch = Path(tempfile.mkdtemp(prefix="bench-", dir=options.scratch))
        self._records = options.out.open("a", buffering=1)
        self._contestants: dict[str, Contestant] = {}
        self._versions: dict[str, int] = {}
        self._record(kind="machine", **_machine())

    def start(self) -> None:
        """Start and warm every contestant."""
        size = ["--heap", self._options.heap, "--cores", self._options.cores]
        for name in self._options.contestants.split(","):
            kind, _, variant = name.partition(":")
            command = [sys.executable, str(HERE / "limit_contestant.py"), *size]
            if kind == "hudi":
                command = [sys.executable, str(HERE / "hudi_contestant.py"), "--hudi", variant, *size]
            elif kind == RUST:
                command = [sys.executable, str(HERE / "hudi_rs_contestant.py"), *size]
            elif kind == "hudi_py":
                version = str(self._options.table_version)
                command = [self._options.hudi_py_python, str(HERE / "contestant.py"), *size]
                command += ["--table-version", version, "--variant", variant or "local"]
            try:
                self._contestants[name] = Contestant(name, command, self._scratch)
            except RuntimeError as error:
                print(f"{name} does not take part: {error}", file=sys.stderr)
                log = (self._scratch / f"{name.replace(':', '_')}.log").read_text(errors="replace")
                print("\n".join(log.splitlines()[-5:]), file=sys.stderr)
        for name in self._peers:
            self._versions[name] = self._contestants[name].call("table_version")["ok"]
            self._contestants[name].call("warm")
            for _ in range(2):  # class loading and the first rounds of the compiler
                table = self._folder("warm")
                make_table(table, version=self._versions[name], partitions=20, groups=2, slices=6)
                self._contestants[name].call("clean", path=str(table))

    @property
    def _peers(self) -> list[str]:
        return self._who("table_version")

    def _who(self, op: str) -> list[str]:
        """Those who take part in an operation."""
        return [name for name, each in self._contestants.items() if op in each.operations]

    # ------------------------------------------------------------------ workloads
    def timeline(self) -> None:
        """Load a timeline, load it again, decode every completed instant."""
        for instants in self._options.instants:
            tables = {}
            for version in sorted({6, 9, *self._versions.values()}):
                tables[version] = self._folder(f"timeline-{version}")
                make_table(tables[version], version=version, mode="timeline", instants=instants)
            for repetition in range(self._options.repetitions):
                for name in self._who("timeline"):
                    for version in [self._versions[name]] if name in self._versions else [6, 9]:
                        answer = self._call(name, "timeline", path=str(tables[version]))
                        who = name if name in self._versions else f"{name} v{version}"
                        self._put("timeline", f"{instants} instants", who, repetition, answer)

    def clean(self) -> None:
        """Plan and execute a clean, on a never cleaned table and on one with few changes since the last clean."""
        for size in self._options.clean_sizes:
            partitions, groups, slices = map(int, size.split("x"))
            for mode in ("full", "incremental"):
                for repetition in range(self._options.repetitions):
                    for name in self._who("clean"):
                        self._clean_once(name, mode, partitions, groups, slices, repetition)

    def _clean_once(self, name: str, mode: str, partitions: int, groups: int, slices: int, repetition: int) -> None:
        table = self._folder("table")
        made = make_table(
            table, version=self._versions.get(name, 6), mode=mode, partitions=partitions, groups=groups, slices=slices
        )
        extra = {"last_earliest": made["last_earliest"]} if name == LIMIT else {}
        answer = self._call(name, "clean", path=str(table), **extra)
        deleted = answer.get("exec", {}).get("deleted")
        if "plan" in answer and deleted != made["expect_deleted"]:
            answer = {"err": f"deleted {deleted}, expected {made['expect_deleted']}"}
        self._put("clean", f"{mode} {partitions}x{groups}x{slices}", name, repetition, answer)

    def small(self) -> None:
        """Twenty upserts of a hundred rows, each cleaning up behind itself."""
        for repetition in range(self._options.repetitions):
            for name in self._who("small_commits"):
                extra = {} if name == LIMIT else {"path": str(self._folder("small")), "mdt": False}
                answer = self._call(name, "small_commits", **extra)
                for label, part in _parts(name, answer):
                    self._put("small", "20 commits of 100 rows", label, repetition, _per_commit(part))

    def write(self) -> None:
        """Create tables, then upsert, insert and delete on fresh copies of them."""
        rows = self._options.rows
        writing = Writing(self._scratch, rows, self._call, self._count)
        writing.prepare()
        for table in self._options.write_tables.split(","):
            case = title(table, rows)
            for name in self._who("write_base"):
                self._put("write", case, name, 0, {"bulk_insert": writing.make(name, table)})
            limits = self._who("base") if TABLES[table] == TABLES["cow"] else []
            for name in limits:
                for label, part in _parts(name, writing.limit_base(name)):
                    self._put("write", case, label, 0, {"bulk_insert": part})
            for repetition, commit, name in turns(self._options.repetitions, [*self._who("write"), *limits]):
                if name not in limits:
                    answer = writing.commit(name, table, commit, counted=repetition == 0)
                    self._put("write", case, name, repetition, {commit.name: answer})
                elif commit.limit:
                    for label, part in _parts(name, writing.limit_commit(name, commit)):
                        self._put("write", case, label, repetition, {commit.name: part})
        writing.close()

    def _count(self, name: str, path: str) -> int | None:
        found: int | None = self._contestants[name].call("count", path=path).get("ok")
        return found

    def read(self) -> None:
        """Read tables that Apache Hudi wrote, and what their last commits changed."""
        reading = Reading(self._scratch, self._options.read_rows, self._options.read_files, self._call)
        reading.prepare(self._who("write_table")[0])
        for repetition in range(self._options.repetitions):
            for case in CASES:
                for name in self._who("read"):
                    if name != LIMIT or case.limit:
                        self._put("read", case.name, name, repetition, reading.ask(name, case))
        if not self._options.keep:
            reading.close()

    # ------------------------------------------------------------------ bookkeeping
    def close(self) -> None:
        """End the contestants and remove the scratch folder."""
        for contestant in self._contestants.values():
            contestant.close()
        if self._options.keep:
            print(f"kept {self._scratch}", file=sys.stderr)
        else:
            shutil.rmtree(self._scratch, ignore_errors=True)
        self._records.close()

    def _folder(self, name: str) -> Path:
        folder = self._scratch / name
        shutil.rmtree(folder, ignore_errors=True)
        return folder

    def _call(self, name: str, op: str, /, **arguments: Any) -> dict[str, Any]:
        answer = self._contestants[name].call(op, **arguments)
        return dict(answer["ok"]) if "ok" in answer else answer

    def _put(self, workload: str, case: str, who: str, repetition: int, answer: dict[str, Any]) -> None:
        """One record per metric in *answer*; a missing or failed answer is a record too."""
        figures = {metric: figure for metric, figure in answer.items() if isinstance(figure, dict)} or {"-": answer}
        for metric, figure in figures.items():
            self._record(kind="figure", workload=workload, case=case, metric=metric, who=who, rep=repetition, **figure)
            value = figure.get("s", figure.get("na", figure.get("err")))
            print(f"{workload} {case} {metric} {who} #{repetition}: {value}", file=sys.stderr)

    def _record(self, **fields: Any) -> None:
        self._records.write(json.dumps(fields) + "\n")


def _parts(name: str, answer: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The limit answers for PyArrow and for bare Spark at once."""
    if name != LIMIT or "na" in answer or "err" in answer:
        return [(name, answer)]
    return [(f"{name} {tool}", figures) for tool, figures in answer.items()]


def _per_commit(answer: dict[str, Any]) -> dict[str, Any]:
    """Median of the later commits as ``per commit``, and the whole as ``total``."""
    each = answer.get("each")
    if not each:
        return answer
    later = sorted(each[UNMEASURED_COMMITS:])
    total = {key: value for key, value in answer.items() if key != "each"}
    return {"per commit": {**total, "s": later[len(later) // 2], "cpu": answer["cpu"] / len(each)}, "total": total}


def _machine() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "at": time.strftime("%Y-%m-%d %H:%M"),
        "cpus": os.cpu_count(),
        "memory_gb": round(memory / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load1": round(os.getloadavg()[0], 2),
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", nargs="+", type=Path, metavar="JSONL", help="print the tables of earlier runs")
    parser.add_argument("--out", type=Path, default=Path("bench.jsonl"), help="records are appended here")
    parser.add_argument("--contestants", default=DEFAULT_CONTESTANTS)
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--instants", type=int, nargs="+", default=[1000], help="timeline")
    parser.add_argument(
        "--clean-sizes", nargs="+", default=["100x10x10"], metavar="PxGxS", help="partitions x file groups x slices"
    )
    parser.add_argument("--rows", type=int, default=200_000, help="write: rows of the base tables")
    parser.add_argument("--write-tables", default=",".join(TABLES), help="write: kinds of tables")
    parser.add_argument("--read-rows", type=int, default=500_000, help="read: rows of each table")
    parser.add_argument("--read-files", type=int, default=1000, help="read: files of the table for key look-ups")
    parser.add_argument("--table-version", type=int, default=6, choices=(6, 8, 9), help="of hudi_py's tables")
    parser.add_argument("--hudi-py-python", default=sys.executable, metavar="PYTHON", help="interpreter for hudi_py")
    parser.add_argument("--heap", default="2g")
    parser.add_argument("--cores", default="2")
    parser.add_argument("--scratch", help="where to put the scratch folder")
    parser.add_argument("--keep", action="store_true", help="keep the scratch folder with tables and logs")
    options = parser.parse_args()
    if options.report:
        report(options.report)
        return
    unknown = set(options.workloads.split(",")) - set(WORKLOADS)
    if unknown:
        parser.error(f"unknown workloads {sorted(unknown)}; there are {', '.join(WORKLOADS)}")
    run = Run(options)
    try:
        run.start()
        for workload in options.workloads.split(","):
            getattr(run, workload)()
    finally:
        run.close()
    report([options.out])


if __name__ == "__main__":
    main()

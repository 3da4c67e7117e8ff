"""
Processes that change one table at the same time and are killed and stopped, and what must be true of it afterwards.

Each worker does random things and notes in a file of its own what it is about to do and how it ended. From all notes
together follows what the table may look like: rows that were acknowledged are there exactly once, what failed is not
there at all, and what was cut off is there as a whole or not at all. Each increment of the counter counts once, so a
lost update is seen.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa

import hudi_py
from hudi_py.errors import HudiError, OutcomeUnknown, ServiceFailed
from hudi_py.runtime.clock import SystemClock
from support.repository import ROOT

FILE_LOCK = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
BATCH = 3
COUNTER = "counter"
REGIONS = ("eu", "us")
SETTINGS = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": FILE_LOCK,
    "hoodie.write.lock.client.wait_time_ms_between_retry": 50,
    "hoodie.write.lock.wait_time_ms": 0,
    "hoodie.write.lock.client.num_retries": 2000,
    "hoodie.client.heartbeat.interval_in_ms": 1000,
    "hoodie.client.heartbeat.tolerable.misses": 3,
    "hoodie.clean.commits.retained": 4,
    "hoodie.keep.min.commits": 6,
    "hoodie.keep.max.commits": 9,
}
WEIGHTS = {"insert": 5, "increment": 4, "upsert": 3, "delete": 2, "read": 3, "clean": 1, "failed": 1, "savepoint": 1,
           "archive": 1}  # fmt: skip


class ShiftedClock(SystemClock):
    """The machine's clock, so many seconds ahead."""

    def __init__(self, ahead_s: float) -> None:
        self._ahead = timedelta(seconds=ahead_s)

    def now(self) -> datetime:
        return datetime.now(timezone.utc) + self._ahead


def create(location: str, version: int) -> None:
    """A table with the counter."""
    hudi_py.write(
        location,
        _rows([(COUNTER, "eu", "", 0)]),
        settings={
            **SETTINGS,
            "hoodie.table.name": "t",
            "hoodie.write.table.version": version,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "region",
        },
    )


def _rows(given: list[tuple[str, str, str, int]]) -> pa.Table:
    names = ("id", "region", "batch", "n")
    schema = pa.schema([(name, pa.int64() if name == "n" else pa.string()) for name in names])
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in given], schema=schema)


class Worker:
    """One process: random operations, each noted before and after."""

    def __init__(self, location: str, seed: int, notes: Path) -> None:
        self.location, self.notes, self.name = location, notes, f"w{seed}"
        self.chance = random.Random(seed)
        self.clock = ShiftedClock(self.chance.choice((0, 0, 0, -2, 2)))
        self.batches: list[str] = []
        self.last_counted = 0

    def table(self) -> Any:
        return hudi_py.open_table(self.location, settings=SETTINGS, clock=self.clock)

    def run(self, count: int) -> None:
        for number in range(count):
            what = self.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            batch = f"{self.name}-{number}"
            if what == "delete":
                batch = self.chance.choice(self.batches) if self.batches else ""
            self.note({"what": what, "batch": batch})
            try:
                getattr(self, "_" + what)(batch)
                self.note({"end": "done"})
            except ServiceFailed as error:
                self.note({"end": "done", "error": str(error)})
            except OutcomeUnknown as error:
                self.note({"end": "unknown", "error": str(error)})
            except HudiError as error:
                self.note({"end": "failed", "kind": type(error).__name__, "error": str(error)})

    def note(self, said: dict[str, Any]) -> None:
        with self.notes.open("a", encoding="utf-8") as file:
            file.write(json.dumps(said) + "\n")

    def _given(self, batch: str) -> pa.Table:
        return _rows([(f"{batch}-{i}", REGIONS[i % 2], batch, i) for i in range(BATCH)])

    def _insert(self, batch: str) -> None:
        self.table().insert(self._given(batch))
        self.batches.append(batch)

    def _upsert(self, batch: str) -> None:
        self.table().upsert(self._given(batch))
        self.batches.append(batch)

    def _increment(self, _: str) -> None:
        self.table().update({"n": "n + 1"}, where=f"id = '{COUNTER}'")

    def _delete(self, batch: str) -> None:
        if batch:
            self.batches.remove(batch)
            self.table().delete(where=f"batch = '{batch}'")

    def _read(self, _: str) -> None:
        found = self.table().rows().to_arrow().to_pylist()
        counts = Counter(row["batch"] for row in found if row["batch"])
        torn = {batch: count for batch, count in counts.items() if count != BATCH}
        counted = [row["n"] for row in found if row["id"] == COUNTER]
        if torn or len(counted) != 1 or counted[0] < self.last_counted:
            self.note({"violation": f"a read saw {torn} and {counted} after {self.last_counted}"})
        self.last_counted = max([self.last_counted, *counted])

    def _clean(self, _: str) -> None:
        self.table().clean()

    def _failed(self, _: str) -> None:
        self.table().rollback_failed_writes()

    def _savepoint(self, _: str) -> None:
        table = self.table()
        newest = table.timeline.commits.completed()[-1].requested_time
        table.create_savepoint(newest)
        self.table().delete_savepoint(newest)

    def _archive(self, _: str) -> None:
        self.table().archive()


def play(folder: Path, seed: int, *, version: int, workers: int, count: int, faults: int) -> tuple[list[str], Counter]:
    """
    Let workers change a table at once; some are killed, some stopped for longer than their heartbeats last.

    Returns:
        What is wrong, and how often each thing was done.
    """
    location = str(folder / "table")
    create(location, version)
    chance = random.Random(seed)
    notes = [folder / f"notes-{number}" for number in range(workers)]
    command = [sys.executable, "-m", "support.rival_processes", location]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "HUDI_PY_LOG_LEVEL": "error"}
    running = [
        subprocess.Popen([*command, str(seed * 100 + number), str(path), str(count)], env=environment)
        for number, path in enumerate(notes)
    ]
    try:
        for _ in range(faults):
            time.sleep(chance.uniform(0.5, 3))
            alive = [each for each in running if each.poll() is None]
            if len(alive) < 2:
                break
            victim = chance.choice(alive)
            if chance.random() < 0.5:
                victim.send_signal(signal.SIGKILL)
            else:
                victim.send_signal(signal.SIGSTOP)
                time.sleep(4)
                victim.send_signal(signal.SIGCONT)
        for each in running:
            each.wait(600)
    finally:
        for each in running:
            if each.poll() is None:
                each.kill()
                each.wait()
    return judge(location, [list(_read_notes(path)) for path in notes])


def _read_notes(path: Path) -> Iterator[dict[str, Any]]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for number, line in enumerate(lines):
        try:
            yield json.loads(line)
        except ValueError:
            assert number == len(lines) - 1, "only the last note of a killed process may be torn"


def judge(location: str, all_notes: list[list[dict[str, Any]]]) -> tuple[list[str], Counter]:
    """Compare the table with what the workers noted."""
    wrong: list[str] = []
    counts: Counter[str] = Counter()
    written: dict[str, str] = {}
    deleted: dict[str, str] = {}
    increments: Counter[str] = Counter()
    for notes in all_notes:
        wrong += [note["violation"] for note in notes if "violation" in note]
        steps = [note for note in notes if "violation" not in note]
        for begun, ended in zip(steps[::2], [*steps[1::2], {"end": "unknown"}], strict=False):
            what, end = begun["what"], ended["end"]
            detail = ended.get("kind", "without its services" if "error" in ended else "")
            counts[f"{what} {end} {detail}".strip()] += 1
            if what in ("insert", "upsert"):
                written[begun["batch"]] = end
            elif what == "delete":
                deleted[begun["batch"]] = end
            elif what == "increment":
                increments[end] += 1
    time.sleep(3.5)  # heartbeats of killed writers expire
    hudi_py.open_table(location, settings=SETTINGS).rollback_failed_writes()
    table = hudi_py.open_table(location, settings=SETTINGS)
    rows = table.rows().to_arrow().to_pylist()
    twice = [key for key, count in Counter(row["id"] for row in rows).items() if count > 1]
    if twice:
        wrong.append(f"keys are there twice: {twice}")
    found = Counter(row["batch"] for row in rows)
    for batch, end in written.items():
        gone = deleted.get(batch, "failed")
        allowed = {"done": {BATCH}, "failed": {0}, "unknown": {0, BATCH}}[end]
        allowed = {"done": {0}, "failed": allowed, "unknown": allowed | {0}}[gone]
        if found[batch] not in allowed:
            wrong.append(f"{batch}: written {end}, deleted {gone}, but {found[batch]} rows")
    counted = next(row["n"] for row in rows if row["id"] == COUNTER)
    if not increments["done"] <= counted <= increments["done"] + increments["unknown"]:
        wrong.append(f"the counter is {counted} after {dict(increments)}")
    wrong += [str(each) for each in table.check() if each.severity.name == "ERROR"]
    return wrong, counts


if __name__ == "__main__":
    Worker(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])).run(int(sys.argv[4]))

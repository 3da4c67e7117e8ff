"""Processes that change one table at the same time (`support.rival_worker`), and are killed and stopped."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import attrs

import hudi_py
from support.repository import ROOT
from support.rival_judge import judge, read_notes
from support.rival_places import FILE_LOCK, Place
from support.rival_worker import COUNTER, Arena, Worker, as_rows

SETTINGS = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.client.heartbeat.interval_in_ms": 1000,
    "hoodie.client.heartbeat.tolerable.misses": 3,
    "hoodie.clean.commits.retained": 4,
    "hoodie.keep.min.commits": 6,
    "hoodie.keep.max.commits": 9,
    "hoodie.compact.inline.max.delta.commits": 2,
}
METADATA = {
    "hoodie.metadata.enable": True,
    "hoodie.metadata.record.index.enable": True,
    "hoodie.metadata.index.column.stats.enable": True,
    "hoodie.metadata.compact.max.delta.commits": 3,
}
HERE = Place(FILE_LOCK, {})
NOTHING: Mapping[str, Any] = {}
MakeWorker: TypeAlias = Callable[[Arena, int, Path], Worker]
_PATIENCE_S = 1200
JUMPS = (0, 0, -2, 2, -10, 10, 3600)
"""By how many seconds clocks are set in some histories."""


@attrs.frozen(kw_only=True)
class Play:
    """
    What is played.

    Args:
        version: Table version.
        kind: Type of the table.
        workers: Number of our processes.
        count: How many things each of them does.
        faults: How many of them are killed or stopped.
        is_troubled: Whether storage calls fail now and then.
        clock_jumps: By how many seconds clocks are set; None for hardly.
        keeps_removed: Whether cleans move files into quarantine.
        grace: How long they stay there; None for a week.
        pins, follows, restores: As for `Arena`.
        has_metadata_table: Whether our processes keep one, with an index of keys and statistics of columns.
    """

    version: int
    kind: str = "COPY_ON_WRITE"
    workers: int
    count: int
    faults: int
    is_troubled: bool = False
    clock_jumps: tuple[float, ...] | None = None
    keeps_removed: bool = False
    grace: str | None = None
    pins: bool = False
    follows: bool = False
    restores: bool = False
    has_metadata_table: bool = False


def drawn(seed: int, count: int, workers: int | None = None) -> Play:
    """A play: 4 to 8 workers, each version, both types, with and without trouble, some with clocks that jump."""
    workers = workers or 4 + seed // 7 % 5
    return Play(
        version=(6, 8, 9)[seed % 3],
        kind=("COPY_ON_WRITE", "MERGE_ON_READ")[seed % 2],
        workers=workers,
        count=count,
        faults=workers // 2,
        is_troubled=seed % 4 >= 2,
        clock_jumps=JUMPS if seed % 5 == 0 else None,
        keeps_removed=seed % 7 < 3,
        grace="5s" if seed % 2 else None,
        # Not in all of them: what a reader keeps is not archived. Nor does a consumer stop a restore.
        pins=seed % 8 in (1, 2, 6),
        follows=seed % 8 in (1, 3, 4),
        restores=seed % 8 in (0, 6),
        has_metadata_table=seed % 11 < 6,
    )


def play(
    folder: Path,
    seed: int,
    wanted: Play,
    place: Place = HERE,
    *,
    more: Mapping[str, Any] = NOTHING,
    lease_savepoints: bool = False,
    other: MakeWorker | None = None,
) -> tuple[list[str], Counter[str]]:
    """
    Let workers change a table at once; some are killed, some stopped for longer than their heartbeats last.

    Args:
        folder: Of the table, unless the place says otherwise, and of all notes.
        seed: What each worker does follows from it, though not in which order.
        wanted: What is played.
        place: Storage and lock.
        more: Further settings of our processes.
        lease_savepoints: Whether their leases keep savepoints.
        other: Makes a further worker, which works in this process.

    Returns:
        What is wrong, and how often each thing was done.
    """
    metadata = METADATA if wanted.has_metadata_table else NOTHING
    settings = {**SETTINGS, **place.lock, "hoodie_py.clean.quarantine": wanted.keeps_removed, **metadata, **more}
    if wanted.grace is not None:
        settings["hoodie_py.quarantine.grace"] = wanted.grace
    if wanted.follows:  # so that its progress matters: cleans that keep little, and, with log files, slices to clean
        settings |= {"hoodie.clean.commits.retained": 1, "hoodie.compact.inline": True}
    given = {"location": str(folder / "table"), "settings": settings, **place.where}
    if wanted.clock_jumps is not None:
        given["clock_jumps"] = wanted.clock_jumps
    reading = {"pins": wanted.pins, "follows": wanted.follows, "restores": wanted.restores}
    reading["lease_savepoints"] = lease_savepoints
    arena = Arena(**given, is_troubled=wanted.is_troubled, **reading)
    create(arena, wanted)
    stored = str(arena.store(folder / "arena.json"))
    chance = random.Random(seed)
    notes = [folder / f"notes-{number}" for number in range(wanted.workers + 1)]
    worker = (sys.executable, "-m", "support.rival_worker")
    path = os.pathsep.join(map(str, (ROOT, ROOT / "tests")))
    environment = {**os.environ, "PYTHONPATH": path, "HUDI_PY_LOG_LEVEL": "error"}
    running = [
        subprocess.Popen(
            [*worker, stored, str(seed * 100 + number), str(notes[number]), str(wanted.count)], env=environment
        )
        for number in range(wanted.workers)
    ]
    try:
        if other is not None:
            thread = threading.Thread(target=other(arena, seed, notes[-1]).run, args=(wanted.count,))
            thread.start()
        # One that follows is stopped only: killed early, it would have followed nothing.
        spared = running[1:2] if wanted.follows else []
        _disturb(running, spared, chance, wanted.faults, place.stopped_s)
        late = [number for number, each in enumerate(running) if not _has_ended(each)]
        if other is not None:
            thread.join(_PATIENCE_S)
    finally:
        for each in running:
            if each.poll() is None:
                each.kill()
                each.wait()
    # Told with what it was doing: where the machine is busy it may be slow, otherwise it hangs.
    slow = [f"worker {number} was still at {read_notes(notes[number])[-1:]} after {_PATIENCE_S} s" for number in late]
    if slow:
        return slow, Counter()
    wrong, counts = judge(arena, [read_notes(path) for path in notes])
    failed = [each.returncode for each in running if each.returncode not in (0, -signal.SIGKILL)]
    return [*wrong, *(f"a worker ended with {code}" for code in failed)], counts


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def create(arena: Arena, wanted: Play) -> None:
    """A table with the counter."""
    hudi_py.write(
        arena.location,
        as_rows([(COUNTER, "eu", "", 0)]),
        storage_options=arena.storage_options,
        settings={
            **arena.settings,
            "hoodie.table.name": "t",
            "hoodie.table.type": wanted.kind,
            "hoodie.write.table.version": wanted.version,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "region",
            "hoodie.table.ordering.fields": "n",  # Apache Hudi 0.15 does not write without one
        },
    )


def _disturb(
    running: list[subprocess.Popen[bytes]],
    spared: list[subprocess.Popen[bytes]],
    chance: random.Random,
    faults: int,
    stopped_s: float,
) -> None:
    for _ in range(faults):
        time.sleep(chance.uniform(0.5, 3))
        alive = [each for each in running if each.poll() is None]
        if len(alive) < 2:
            break
        victim = chance.choice(alive)
        if chance.random() < 0.5 and victim not in spared:
            victim.send_signal(signal.SIGKILL)
        else:
            victim.send_signal(signal.SIGSTOP)
            time.sleep(stopped_s)
            victim.send_signal(signal.SIGCONT)

"""Copies of a table from the middle of real Hudi's work: its process is stopped whenever the timeline changes."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def moments(peer: Any, table: Path, target: Path) -> Iterator[list[Path]]:
    """
    While the block runs, copy the table after each change that is seen in the folder of its timeline.

    Which moments are caught depends on luck; each copy is a state that a killed process leaves. The list is filled when
    the block ends.
    """
    folder = next(path for path in (table / ".hoodie/timeline", table / ".hoodie") if path.is_dir())
    jvm, copies, ends = peer.jvm_pid(), [], threading.Event()

    def names() -> frozenset[str]:
        return frozenset(name for name in os.listdir(folder) if not name.endswith(".crc"))

    def watch() -> None:
        seen = names()
        while not ends.is_set():
            if names() == seen:
                continue
            os.kill(jvm, signal.SIGSTOP)
            try:
                _wait_until_stopped(jvm)
                seen = names()
                copy = target / str(len(copies)) / "t"
                shutil.copytree(table, copy)
                copies.append(copy)
            finally:
                os.kill(jvm, signal.SIGCONT)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield copies
    finally:
        ends.set()
        watching.join()


def _wait_until_stopped(process: int) -> None:
    """The signal returns before each thread has come to its end."""
    while any(b") T" not in stat.read_bytes() for stat in Path(f"/proc/{process}/task").glob("*/stat")):
        pass


def some(items: list[Any], count: int) -> list[Any]:
    """At most that many, spread evenly, the first and the last among them."""
    if len(items) <= count:
        return items
    return [items[round(number * (len(items) - 1) / (count - 1))] for number in range(count)]

"""How far a compaction or clustering is, for whoever waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias, TypeVar

from hudi_py.engine.base import Engine

T = TypeVar("T")
R = TypeVar("R")

OnGroup: TypeAlias = Callable[[int, int], None]
"""Called after each file group, or group of them, with the number of those that are written and of all."""


def reported(function: Callable[[T], R], total: int, on_group: OnGroup | None, engine: Engine) -> Callable[[T], R]:
    """Return *function*, which reports each call that returned; on executors nobody would hear it."""
    if on_group is None or engine.name == "spark":
        return function
    lock, done = threading.Lock(), [0]

    def run(item: T) -> R:
        result = function(item)
        # One call at a time, with rising numbers.
        with lock:
            done[0] += 1
            on_group(done[0], total)
        return result

    return run

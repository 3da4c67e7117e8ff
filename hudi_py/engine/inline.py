"""Runs tasks on local threads, without a JVM. Storage calls release the interpreter lock, so they can overlap."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from hudi_py.engine.base import R, T
from hudi_py.runtime.clock import CPU, MONOTONIC
from hudi_py.storage.base import Storage

Moment = tuple[float, float]  # elapsed and CPU seconds, both since an arbitrary moment
# A task that took longer than this many times its CPU time was waiting, for the disk or for a busy machine.
_WAITING: Final = 2


def _now() -> Moment:
    return MONOTONIC(), CPU()


class LocalEngine:
    """
    Runs tasks on threads of this process.

    On a local disk, tasks run one after the other until one of them had to wait for the disk. Deleting from a fast disk
    needs only CPU time, and threads then just compete for the interpreter lock: four took twice as long as one.

    Args:
        threads: Largest number of threads; two per core by default.
        moment: Returns elapsed and CPU seconds of the calling thread.
    """

    name = "local"
    files_min = 1
    files_max = 10_000

    def __init__(self, threads: int | None = None, *, moment: Callable[[], Moment] = _now) -> None:
        # More threads than cores, because most of the time of a task in an object store is waiting for an answer.
        self.slots = threads or 2 * (os.cpu_count() or 1)
        self._moment = moment
        self._is_on_disk = False

    def prepared(self, storage: Storage, files: int) -> LocalEngine:
        """Return this engine, see `Engine.prepared`."""
        self._is_on_disk = "://" not in storage.root
        return self

    def for_listing(self, storage: Storage, folders: int) -> None:
        """See `Engine.for_listing`: threads of this process list without an engine."""

    def map(self, function: Callable[[T], R], items: Sequence[T], *, parallelism: int, description: str) -> Iterable[R]:
        workers = min(parallelism, self.slots, len(items))
        # Without a pool: its threads would cost more than a single task.
        if workers <= 1:
            return [function(item) for item in items]
        results = self._until_one_waits(function, items) if self._is_on_disk else []
        left = items[len(results) :]
        if not left:
            return results
        with ThreadPoolExecutor(min(workers, len(left)), thread_name_prefix="hudi-py") as pool:
            return [*results, *pool.map(function, left)]

    def _until_one_waits(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Run items one by one up to and including the first that waited longer than it worked; return the results."""
        results = []
        for item in items:
            begin, begin_cpu = self._moment()
            results.append(function(item))
            end, end_cpu = self._moment()
            if end - begin > _WAITING * (end_cpu - begin_cpu):
                break
        return results

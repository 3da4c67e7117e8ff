"""Local threads: no JVM. Storage calls release the interpreter lock, so threads overlap them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from hudi_py.engine.base import R, T
from hudi_py.storage.base import Storage


class LocalEngine:
    """
    Threads of this process.

    Args:
        threads: At most this many at once; two per core by default.
    """

    name = "local"
    files_min = 1
    files_max = 10_000

    def __init__(self, threads: int | None = None) -> None:
        self.slots = threads or 2 * (os.cpu_count() or 1)

    def prepared(self, storage: Storage, files: int) -> LocalEngine:
        """See `Engine.prepared`: this one."""
        return self

    def map(self, function: Callable[[T], R], items: Sequence[T], *, parallelism: int, description: str) -> Iterable[R]:
        workers = min(parallelism, self.slots, len(items))
        if workers <= 1:
            return [function(item) for item in items]
        with ThreadPoolExecutor(workers, thread_name_prefix="hudi-py") as pool:
            return list(pool.map(function, items))

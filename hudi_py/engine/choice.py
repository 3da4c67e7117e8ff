"""
Which engine carries out a deletion, where that is left to us (``auto``).

Measured by ``tools/bench/executors.py`` on two cores: one thread deletes some 60,000 files of a local disk or more per
CPU second and begins at once. A Python worker deletes as many, but a Spark job takes 0.25 to 0.35 seconds beside, and
the first job of a session 2.5 more, for its workers have to start. Two workers take 0.92 times as long as the driver
alone at 100,000 files and 0.75 times at 200,000. From there on a second machine is a gain, and the driver is free. An
object store deletes 1,000 files per request of some tenths of a second, and what a driver's threads can have under way
is bounded by its cores, so there the border lies at half as many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from hudi_py.engine.base import Engine, R, T
from hudi_py.engine.inline import LocalEngine
from hudi_py.storage.base import Storage

SPARK_FILES_MIN: Final = 100_000
SPARK_FILES_MIN_REMOTE: Final = 50_000


def is_for_spark(files: int, *, is_remote: bool, has_session: bool) -> bool:
    """
    Whether so many files are better deleted on Spark executors than by threads. Pure.

    Args:
        files: To delete.
        is_remote: The table lies in an object store.
        has_session: There is a Spark session; none is ever started for this.
    """
    return has_session and files >= (SPARK_FILES_MIN_REMOTE if is_remote else SPARK_FILES_MIN)


class AutoEngine:
    """
    Threads for few files, Spark for many.

    Args:
        spark: Makes the engine of the session there is; None without one.
    """

    name = "auto"

    def __init__(self, spark: Callable[[], Engine] | None = None) -> None:
        self._spark = spark
        self._local = LocalEngine()
        self.slots, self.files_min, self.files_max = self._local.slots, self._local.files_min, self._local.files_max

    def prepared(self, storage: Storage, files: int) -> Engine:
        """See `Engine.prepared`."""
        is_remote = "://" in storage.root
        if self._spark is None or not is_for_spark(files, is_remote=is_remote, has_session=True):
            return self._local.prepared(storage, files)
        return self._spark().prepared(storage, files)

    def map(self, function: Callable[[T], R], items: Sequence[T], *, parallelism: int, description: str) -> Iterable[R]:
        """On threads: that so few files are not worth a job is all that can be told without `prepared`."""
        return self._local.map(function, items, parallelism=parallelism, description=description)

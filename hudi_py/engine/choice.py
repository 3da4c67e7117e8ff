"""
Chooses between threads and Spark for deletions, when the executor setting is ``auto``, and for listings.

Measured by ``tools/bench/executors.py`` on two cores: one thread starts at once and deletes 60,000 or more files of a
local disk per CPU second. A Python worker of Spark is as fast, but a Spark job costs another 0.25 to 0.35 seconds, and
the first job of a session 2.5 seconds more, because its workers have to start. Two workers take 0.92 times as long as
the driver alone for 100,000 files and 0.75 times for 200,000. From there on a second machine helps, and the driver is
free for other work. An object store deletes 1,000 files per request of some tenths of a second, and the number of
requests that a driver can have open is limited by its cores, so the limit for object stores is half as high.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from hudi_py.engine.base import Engine, R, T
from hudi_py.engine.inline import LocalEngine
from hudi_py.storage.base import Storage

SPARK_FILES_MIN: Final = 100_000
SPARK_FILES_MIN_REMOTE: Final = 50_000
SPARK_FOLDERS_MIN: Final = 500


def is_for_spark(files: int, *, is_remote: bool, has_session: bool) -> bool:
    """
    Return whether deleting that number of files is faster on Spark executors than on threads. Pure.

    Args:
        files: Number of files to delete.
        is_remote: Whether the table lies in an object store.
        has_session: Whether there is a Spark session already; none is ever started for a deletion.
    """
    return has_session and files >= (SPARK_FILES_MIN_REMOTE if is_remote else SPARK_FILES_MIN)


def is_listing_for_spark(folders: int, *, is_remote: bool) -> bool:
    """
    Return whether listing that number of folders is faster on Spark executors than on threads of the driver. Pure.

    A driver spends 15 to 25 ms of CPU on a folder of an object store, so 500 take it about 10 seconds, and two
    executors half of that and 0.3 seconds for the job. On a disk it reads the names of a million files in 0.7
    seconds, which is less than unpacking what executors send.

    Args:
        folders: Number of folders of one level, or of partitions in scope.
        is_remote: Whether the table lies in an object store.
    """
    return is_remote and folders >= SPARK_FOLDERS_MIN


class AutoEngine:
    """
    Threads for few files, Spark for many.

    Args:
        spark: Returns the engine of the existing Spark session; None if there is no session.
    """

    name = "auto"

    def __init__(self, spark: Callable[[], Engine] | None = None) -> None:
        self._spark = spark
        self._local = LocalEngine()
        self.slots, self.files_min, self.files_max = self._local.slots, self._local.files_min, self._local.files_max

    def prepared(self, storage: Storage, files: int) -> Engine:
        """See `Engine.prepared`."""
        # As `open_storage` tells them apart: only remote roots are URLs.
        is_remote = "://" in storage.root
        # The local engine has to be asked too: it finds out whether the table is on a disk.
        if self._spark is None or not is_for_spark(files, is_remote=is_remote, has_session=True):
            return self._local.prepared(storage, files)
        return self._spark().prepared(storage, files)

    def for_listing(self, storage: Storage, folders: int) -> Engine | None:
        """See `Engine.for_listing`."""
        return None if self._spark is None else self._spark().for_listing(storage, folders)

    def map(self, function: Callable[[T], R], items: Sequence[T], *, parallelism: int, description: str) -> Iterable[R]:
        """Run on threads: without `prepared` the number of files is unknown, so Spark may not be worth it."""
        return self._local.map(function, items, parallelism=parallelism, description=description)

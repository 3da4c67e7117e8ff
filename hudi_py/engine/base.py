"""The protocol of engines, which run tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from hudi_py.storage.base import Storage

T = TypeVar("T")
R = TypeVar("R")


@runtime_checkable
class Engine(Protocol):
    """Runs tasks. The function and the items may be sent to other machines: both must be picklable and small."""

    @property
    def name(self) -> str:
        """``local`` or ``spark``."""

    @property
    def slots(self) -> int:
        """Number of tasks that can run at the same time. Work is split into at most that many tasks."""

    @property
    def files_min(self) -> int:
        """Smallest number of files for a task; a smaller task costs more than it saves."""

    @property
    def files_max(self) -> int:
        """Largest number of files for a task; a larger one uses too much memory."""

    def prepared(self, storage: Storage, files: int) -> Engine:
        """
        Return the engine to use for deleting that number of *files* from *storage*; usually this one.

        Raises:
            ConfigError: The machines of the engine cannot do this work; nothing was deleted.
        """

    def for_listing(self, storage: Storage, folders: int) -> Engine | None:
        """
        Return the engine to use for listing that number of *folders* of *storage*; None to list them in this process.

        Raises:
            ConfigError: The machines of the engine cannot do this work.
        """

    def map(self, function: Callable[[T], R], items: Sequence[T], *, parallelism: int, description: str) -> Iterable[R]:
        """
        Call *function* for each item and return the results in the order of *items*.

        The first error ends the run and is raised.

        Args:
            function: The work of one task.
            items: One argument per task.
            parallelism: Largest number of tasks at the same time.
            description: Shown by engines that show progress (the Spark UI).
        """

"""The engine protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from hudi_py.storage.base import Storage

T = TypeVar("T")
R = TypeVar("R")


class Engine(Protocol):
    """Runs tasks. The function and the items may be sent to other machines: both must be picklable and small."""

    @property
    def name(self) -> str:
        """``local`` or ``spark``."""

    @property
    def slots(self) -> int:
        """More tasks than this only cost: work is cut into at most so many."""

    @property
    def files_min(self) -> int:
        """A task of fewer files than this costs more than it saves."""

    @property
    def files_max(self) -> int:
        """A task of more files than this holds too much at once."""

    def prepared(self, storage: Storage, files: int) -> Engine:
        """
        The engine that deletes so many *files* of *storage*: as a rule this one.

        Raises:
            ConfigError: The machines that would do it cannot; nothing was deleted.
        """

    def map(self, function: Callable[[T], R], items: Sequence[T], *, parallelism: int, description: str) -> Iterable[R]:
        """
        Results in the order of *items*; the first error ends the run and is raised.

        Args:
            parallelism: Upper bound of tasks at once.
            description: Shown where the engine shows its work.
        """

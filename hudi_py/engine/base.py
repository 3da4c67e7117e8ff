"""The engine protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

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

    def map(self, function: Callable[[T], R], items: Sequence[T], *, parallelism: int, description: str) -> Iterable[R]:
        """
        Results in the order of *items*; the first error ends the run and is raised.

        Args:
            parallelism: Upper bound of tasks at once.
            description: Shown where the engine shows its work.
        """

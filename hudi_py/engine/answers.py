"""
Bringing errors home from other machines.

Nothing but our errors is imported here: every new worker of an executor loads this module before its first task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from hudi_py.errors import HudiError


class Answering:
    """
    Our own errors travel back as values, so that the driver raises them as they are and no task is retried.

    Args:
        function: What a task does with its item.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, item: Any) -> tuple[bool, Any]:
        """Whether it succeeded, and the result or the error."""
        try:
            return True, self._function(item)
        except HudiError as error:
            return False, error


def raise_first(answers: Iterable[tuple[bool, Any]]) -> list[Any]:
    """The results, or the first of our errors among them, raised."""
    results = []
    for succeeded, value in answers:
        if not succeeded:
            raise value
        results.append(value)
    return results

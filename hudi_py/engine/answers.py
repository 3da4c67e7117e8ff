"""
Sending work to other machines and bringing errors home.

Nothing but our errors is imported here: every new worker of an executor loads this module before its first task.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterable
from typing import Any, Final

from hudi_py.errors import ConfigError, HudiError

_FASTEST: Final = 1


def packed(item: Any, dumps: Callable[[Any], bytes] = pickle.dumps) -> bytes:
    """
    An item on its way to `Answering`: names of files share most of their letters, so they travel small.

    Args:
        item: What a task gets.
        dumps: Makes bytes of it that `pickle` reads; for items of classes that the other machine cannot import.
    """
    return zlib.compress(dumps(item), _FASTEST)


class Answering:
    """
    Our own errors travel back as values, so that the driver raises them as they are and no task is retried.

    Args:
        function: What a task does with its item, which comes `packed`.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, item: bytes) -> tuple[bool, Any]:
        """Whether it succeeded, and the result or the error."""
        try:
            return True, self._function(pickle.loads(zlib.decompress(item)))  # noqa: S301 - our own bytes
        except HudiError as error:
            return False, error
        except ImportError as error:
            return False, ConfigError(f"a package is missing: {error}")


def raise_first(answers: Iterable[tuple[bool, Any]]) -> list[Any]:
    """The results, or the first of our errors among them, raised."""
    results = []
    for succeeded, value in answers:
        if not succeeded:
            raise value
        results.append(value)
    return results

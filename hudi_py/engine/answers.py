"""
Sends work to other machines and brings results and errors back.

This module imports only `hudi_py.errors`, because every new worker of an executor loads it before its first task.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterable
from typing import Any, Final

from hudi_py.errors import ConfigError, HudiError

# The lowest of zlib's nine levels: the driver packs all items alone, and paths shrink well with any.
_FASTEST: Final = 1


def packed(item: Any, dumps: Callable[[Any], bytes] = pickle.dumps) -> bytes:
    """
    Pickle and compress an item for `Answering`. File names resemble each other, so compression pays.

    Args:
        item: The argument of a task.
        dumps: Returns bytes that `pickle` can load; set it for items whose class the other machine cannot import.
    """
    return zlib.compress(dumps(item), _FASTEST)


class Answering:
    """
    A function to run on another machine that returns our own errors instead of raising them.

    So the driver raises them unchanged, and Spark does not repeat a task that would fail again.

    Args:
        function: The work of a task; gets the item that was passed to `packed`.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, item: bytes) -> tuple[bool, Any]:
        """Return whether the function succeeded, and its result or the error."""
        try:
            return True, self._function(pickle.loads(zlib.decompress(item)))  # noqa: S301 - our own bytes
        except HudiError as error:
            return False, error
        # Raised while unpickling, when the executor lacks hudi_py or a package of the storage: the same on every
        # retry.
        except ImportError as error:
            return False, ConfigError(f"a package is missing: {error}")


def raise_first(answers: Iterable[tuple[bool, Any]]) -> list[Any]:
    """Return the results of `Answering` calls, or raise the first error among them."""
    results = []
    for succeeded, value in answers:
        if not succeeded:
            raise value
        results.append(value)
    return results

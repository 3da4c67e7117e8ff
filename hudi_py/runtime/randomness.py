"""Randomness. Code that needs it takes a `Randomness` as an argument; only this module asks the machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, TypeAlias
from uuid import UUID

Randomness: TypeAlias = Callable[[int], bytes]
"""Returns the given number of random bytes."""


def machine(count: int) -> bytes:
    """Return random bytes from the operating system."""
    return os.urandom(count)


MACHINE: Final[Randomness] = machine


def new_uuid(randomness: Randomness = MACHINE) -> str:
    """Return a random UUID (version 4) as text."""
    return str(UUID(bytes=randomness(16), version=4))


def fraction(randomness: Randomness = MACHINE) -> float:
    """Return a random number of at least 0 and less than 1."""
    return int.from_bytes(randomness(6), "big") / 2**48

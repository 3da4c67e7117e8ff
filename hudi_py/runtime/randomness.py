"""Chance. Whatever needs it takes a `Randomness`; only this module asks the machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, TypeAlias
from uuid import UUID

Randomness: TypeAlias = Callable[[int], bytes]
"""Gives so many random bytes."""


def machine(count: int) -> bytes:
    """The operating system's own."""
    return os.urandom(count)


MACHINE: Final[Randomness] = machine


def new_uuid(randomness: Randomness = MACHINE) -> str:
    """A random UUID (version 4) as text."""
    return str(UUID(bytes=randomness(16), version=4))


def fraction(randomness: Randomness = MACHINE) -> float:
    """A number from 0 up to 1, without 1."""
    return int.from_bytes(randomness(6), "big") / 2**48

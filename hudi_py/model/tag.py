"""A label on an object of a store, which rules of the store look for."""

from __future__ import annotations

from typing import NamedTuple


class Tag(NamedTuple):
    """A key and a value."""

    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}"

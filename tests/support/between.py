"""Another process at a chosen moment: right before a call of a storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hudi_py.storage.base import Storage
from hudi_py.storage.wrappers import DelegatingStorage, Paths

T = TypeVar("T")


class Before(DelegatingStorage):
    """Something happens right before the first call of *verb* on a path that ends so."""

    def __init__(self, inner: Storage, verb: str, ending: str, does: Callable[[], None]) -> None:
        super().__init__(inner)
        self.verb, self.ending = verb, ending
        self.does: Callable[[], None] | None = does

    def _around(self, verb: str, paths: Paths, call: Callable[[], T]) -> T:
        if verb == self.verb and paths[0].endswith(self.ending) and self.does is not None:
            does, self.does = self.does, None
            does()
        return call()

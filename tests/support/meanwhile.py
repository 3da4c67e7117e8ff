"""Another process at a chosen moment of this one: right before a call of its storage."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hudi_py.storage.base import MUTATING_VERBS, Storage
from hudi_py.storage.wrappers import Paths
from hudi_py.testing import Faulty, T


class Meanwhile(Faulty):
    """
    Another process acts once, right before a call of this one.

    Args:
        inner: The storage that does the work; the other process uses it directly.
        action: What the other process does.
        n: Before which call, from 0.
        before: Before the first call for which this returns true, instead of *n*; gets its path, and the data of a new
            file.
        verbs: Which calls count.

    Attributes:
        fired: The call, None as long as the other process has not acted.
    """

    def __init__(
        self,
        inner: Storage,
        action: Callable[[], None],
        *,
        n: int = -1,
        before: Callable[[str, bytes], bool] | None = None,
        verbs: Iterable[str] = MUTATING_VERBS,
    ) -> None:
        super().__init__(inner, n, verbs=verbs)
        self.action, self.before = action, before

    def _around(self, verb: str, paths: Paths, call: Callable[[], T], data: bytes = b"") -> T:
        if self.before is not None and self.fired is None and verb in self.verbs and self.before(paths[0], data):
            self.n = self.count
        return super()._around(verb, paths, call, data)

    def _hit(self, verb: str, paths: Paths, call: Callable[[], T], data: bytes) -> T:
        self.action()
        return call()


def ending(*suffixes: str) -> Callable[[str, bytes], bool]:
    """For *before*: a path that ends so."""
    return lambda path, _data: path.endswith(suffixes)

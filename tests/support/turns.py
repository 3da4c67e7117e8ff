"""Two services on one storage, each stopped before every call to it, so that a test decides who goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from hudi_py.errors import HudiError
from hudi_py.storage.base import Storage
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import DelegatingStorage

WAIT_S = 60
WAITS = ("wait", "")
"""In the place of a call: the service waits until another one has gone on."""
_OF_THREAD = threading.local()


class Runner:
    """
    One service in a thread of its own; it goes as far as it is told.

    Args:
        storage: The shared one.
        work: What the service does, given its view of the storage.
        counts: Whether a call is one to stop before; its verb and paths are given.

    Attributes:
        pending: The call that it has stopped before: verb and first path.
    """

    def __init__(self, storage: Storage, work: Callable[[Storage], Any], counts: Callable[[str, str], bool]) -> None:
        self.error: HudiError | None = None
        self.unexpected: BaseException | None = None
        self.is_done = False
        self.pending = ("", "")
        self._arrived, self._go = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, args=(work, _Stopping(storage, self._stop, counts)))
        self._thread.start()
        self._wait()

    def step(self) -> None:
        """One call, and on to the next one or to the end."""
        if not self.is_done:
            self._go.release()
            self._wait()

    def finish(self) -> None:
        """On to the end."""
        while not self.is_done:
            self.step()
        self._thread.join(WAIT_S)
        if self.unexpected is not None:
            raise self.unexpected

    def _wait(self) -> None:
        assert self._arrived.acquire(timeout=WAIT_S)

    def _stop(self, verb: str, path: str) -> None:
        self.pending = verb, path
        self._arrived.release()
        assert self._go.acquire(timeout=WAIT_S)

    def _run(self, work: Callable[[Storage], Any], storage: Storage) -> None:
        _OF_THREAD.stop = self._stop
        try:
            work(storage)
        except HudiError as error:
            self.error = error
        except BaseException as error:
            self.unexpected = error
        self.is_done = True
        self._arrived.release()


def wait_for_others(_seconds: float) -> None:
    """Sleep, for a service that a `Runner` runs: it goes on when it is told to."""
    _OF_THREAD.stop(*WAITS)


class _Stopping(DelegatingStorage):
    def __init__(self, inner: Storage, stop: Callable[[str, str], None], counts: Callable[[str, str], bool]) -> None:
        super().__init__(inner)
        self._stop, self._counts = stop, counts

    def _around(self, verb: str, paths: Any, call: Callable[[], Any]) -> Any:
        each = [paths] if isinstance(paths, str) else list(paths)
        if any(self._counts(verb, path) for path in each):
            self._stop(verb, each[0])
        return call()

    @property
    def root(self) -> str:
        """Another name in each thread: they stand for processes, and threads that write to one table take turns."""
        return f"{self.inner.root}-of-{threading.get_ident()}"


def interleavings(
    fresh: Callable[[], MemoryStorage],
    one: Callable[[Storage], Any],
    other: Callable[[Storage], Any],
    counts: Callable[[str, str], bool],
) -> Iterator[tuple[str, MemoryStorage, Runner, Runner]]:
    """
    Every run in which *one* stops after some calls, *other* does some or all of its own, *one* ends, then *other*.

    Yields:
        What was done, the storage afterwards, both runners.
    """
    first = 0
    while True:
        second = 0
        while True:
            storage = fresh()
            runners = Runner(storage, one, counts), Runner(storage, other, counts)
            for runner, steps in zip(runners, (first, second), strict=True):
                for _ in range(steps):
                    runner.step()
            is_last_first, is_last_second = (runner.is_done for runner in runners)
            for runner in runners:
                runner.finish()
            yield f"{first} calls, then {second} of the other", storage, *runners
            if is_last_second:
                break
            second += 1
        if is_last_first:
            return
        first += 1

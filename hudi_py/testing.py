"""
Supported doubles for tests against hudi_py.

Storages that die, fail, lie or dawdle at the n-th call that changes something, counted from 0, and `interruptions`,
which runs through all of them until an operation survives::

    for case in interruptions(table_with_two_expired_slices):
        case.run(run_clean)  # interrupted at some point, or not at all in the last round of each mode
        for _ in range(2):  # recovery through the same entry point, then nothing to do
            run_clean(case.storage)
            assert case.storage.files() == EXPECTED, case

A stream from `open_write` counts as one mutation, at its `close`: until then nothing reaches the inner storage.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import BinaryIO, Generic, NamedTuple, TypeVar, cast

from hudi_py.errors import HudiError, StorageError
from hudi_py.runtime.clock import SLEEP
from hudi_py.storage.base import MUTATING_VERBS, READING_VERBS, Storage
from hudi_py.storage.wrappers import DelegatingStorage, Paths

__all__ = [
    "FAILING_READS",
    "INTERRUPTION_MODES",
    "Crash",
    "FailNth",
    "Interruption",
    "InterruptionMode",
    "ReportFailure",
    "SlowStorage",
    "StopAfter",
    "StopBefore",
    "TornCreate",
    "TornWrite",
    "interruptions",
]

T = TypeVar("T")
S = TypeVar("S", bound=Storage)
_ROUNDS_MAX = 100_000  # an operation that changes more than this never ends


class Crash(BaseException):
    """The simulated end of the process. No ``except Exception`` may swallow it, hence the base."""


class Faulty(DelegatingStorage):
    """
    Base of the doubles: counts the verbs that change something, and lets a subclass handle the n-th.

    Args:
        inner: The storage that does the work.
        n: Which one, from 0.
        verbs: Which verbs count.

    Attributes:
        fired: What was hit, like ``create_new .hoodie/001.clean``; None as long as nothing was.
        is_dead: After a `Crash`; then every further call crashes too: a dead process cleans up nothing.
    """

    def __init__(self, inner: Storage, n: int, *, verbs: Iterable[str] = MUTATING_VERBS) -> None:
        super().__init__(inner)
        self.n, self.verbs, self.count = n, frozenset(verbs), 0
        self.fired: str | None = None
        self.is_dead = False

    def open_write(self, path: str) -> BinaryIO:
        def commit(data: bytes) -> None:
            self._around("open_write", (path,), lambda: _write(self.inner, path, data), data)

        if self.is_dead:
            raise Crash("the process has ended before")
        return cast("BinaryIO", _Deferred(commit))

    def create_new(
        self, path: str, data: bytes, before: Callable[[], None] | None = None, *, lasts: bool = True
    ) -> None:
        self._around("create_new", (path,), lambda: self.inner.create_new(path, data, before, lasts=lasts), data)

    def _around(self, verb: str, paths: Paths, call: Callable[[], T], data: bytes = b"") -> T:
        with self._lock:
            # A dead process executes nothing more, not even its own cleaning up.
            if self.is_dead:
                raise Crash(f"the process has ended before; {verb} was not executed")
            position = self.count
            is_counted = verb in self.verbs
            self.count += is_counted
        if not is_counted or not self._is_hit(position):
            return call()
        with self._lock:
            self.fired = self.fired or f"{verb} {' '.join(paths[:3])}"
        return self._hit(verb, paths, call, data)

    def _is_hit(self, position: int) -> bool:
        return position == self.n

    def _hit(self, verb: str, paths: Paths, call: Callable[[], T], data: bytes) -> T:
        raise NotImplementedError

    def _die(self, when: str) -> Crash:
        self.is_dead = True
        return Crash(f"{when} {self.fired}")


class StopBefore(Faulty):
    """The process ends right before mutation *n*."""

    def _hit(self, verb: str, paths: Paths, call: Callable[[], T], data: bytes) -> T:
        raise self._die("before")


class StopAfter(Faulty):
    """The process ends right after mutation *n*."""

    def _hit(self, verb: str, paths: Paths, call: Callable[[], T], data: bytes) -> T:
        call()
        raise self._die("after")


class FailNth(Faulty):
    """
    Mutation *n* and those after it fail without effect.

    Args:
        times: How many fail; None for ever.
        retryable: Whether the error is retryable.
    """

    def __init__(
        self,
        inner: Storage,
        n: int,
        times: int | None = 1,
        *,
        retryable: bool = False,
        verbs: Iterable[str] = MUTATING_VERBS,
    ) -> None:
        super().__init__(inner, n, verbs=verbs)
        self.times, self.retryable = times, retryable

    def _is_hit(self, position: int) -> bool:
        return position >= self.n and (self.times is None or position < self.n + self.times)

    def _hit(self, verb: str, paths: Paths, call: Callable[[], T], data: bytes) -> T:
        raise StorageError(f"{verb} {' '.join(paths[:3])}: simulated failure, nothing was done", self.retryable)


class ReportFailure(Faulty):
    """
    Mutation *n* is executed, and then reported as failed: a lost answer.

    Args:
        error: What to raise; by default a `StorageError` that may be retried.
    """

    def __init__(
        self, inner: Storage, n: int, *, error: HudiError | None = None, verbs: Iterable[str] = MUTATING_VERBS
    ) -> None:
        super().__init__(inner, n, verbs=verbs)
        self.error = error

    def _hit(self, verb: str, paths: Paths, call: Callable[[], T], data: bytes) -> T:
        call()
        raise self.error or StorageError(f"{verb} {' '.join(paths[:3])}: simulated loss of the answer", True)


class TornWrite(Faulty):
    """
    The process ends in the middle of mutation *n*, where that is possible.

    A streamed file keeps the first half of its bytes; of a bulk or folder deletion the first half is done, by sorted
    name. The other verbs are atomic by the protocol; at those the process ends before them.
    """

    def _hit(self, verb: str, paths: Paths, call: Callable[[], T], data: bytes) -> T:
        if verb == "open_write":
            _write(self.inner, paths[0], data[: len(data) // 2])
        elif verb == "delete_many":
            self.inner.delete_many(_first_half(paths))
        elif verb == "delete_folder":
            self.inner.delete_many(_first_half(_files_below(self.inner, paths[0])))
        raise self._die("in the middle of")


class TornCreate(TornWrite):
    """Like `TornWrite`, for backends that tear: a created file too keeps only the first half of its bytes."""

    def _hit(self, verb: str, paths: Paths, call: Callable[[], T], data: bytes) -> T:
        if verb == "create_new":
            self.inner.create_new(paths[0], data[: len(data) // 2])
        return super()._hit(verb, paths, call, data)


class SlowStorage(DelegatingStorage):
    """
    Takes its time before each call.

    Args:
        delay_s: Seconds per call.
        sleep: Does the waiting; a test passes a counter instead.
    """

    def __init__(self, inner: Storage, delay_s: float, *, sleep: Callable[[float], None] = SLEEP) -> None:
        super().__init__(inner)
        self.delay_s, self.sleep = delay_s, sleep

    def _around(self, verb: str, paths: Paths, call: Callable[[], T]) -> T:
        self.sleep(self.delay_s)
        return call()


class InterruptionMode(NamedTuple):
    """One way to interrupt: *wrap* takes the storage and n."""

    name: str
    wrap: Callable[[Storage, int], Faulty]


INTERRUPTION_MODES = (
    InterruptionMode("stop before", StopBefore),
    InterruptionMode("stop after", StopAfter),
    InterruptionMode("fail once", FailNth),
    InterruptionMode("fail from now on", lambda storage, n: FailNth(storage, n, None)),
    InterruptionMode("succeed but report failure", ReportFailure),
    InterruptionMode("tear", TornWrite),
)

FAILING_READS = (
    InterruptionMode("fail to read once", lambda storage, n: FailNth(storage, n, verbs=READING_VERBS)),
    InterruptionMode("fail to read from now on", lambda storage, n: FailNth(storage, n, None, verbs=READING_VERBS)),
)
"""Errors where nothing is being changed; *n* counts listings, reads and sizes."""


class Interruption(Generic[S]):
    """
    One round: a fresh storage and the way it will be interrupted.

    Attributes:
        storage: The storage itself, undisturbed: for recovery and assertions.
        faulty: The double around it.
    """

    def __init__(self, mode: InterruptionMode, n: int, storage: S) -> None:
        self.mode, self.n, self.storage = mode, n, storage
        self.faulty = mode.wrap(storage, n)
        self.was_run = False

    def run(self, operation: Callable[[Storage], object]) -> bool:
        """
        Run *operation* on the double; True when it was interrupted, which may end it by an error of ours.

        Raises:
            HudiError: The operation failed although nothing had interrupted it.
        """
        self.was_run = True
        try:
            operation(cast("Storage", self.faulty))
        except Crash:
            # A crash that was not ours is one of the test.
            if not self.faulty.is_dead:
                raise
        except HudiError:
            if self.faulty.fired is None:
                raise
        return self.faulty.fired is not None

    def __repr__(self) -> str:
        return f"<{self.mode.name}, mutation {self.n}: {self.faulty.fired or 'not reached'}>"


def interruptions(
    fresh: Callable[[], S], modes: Iterable[InterruptionMode] = INTERRUPTION_MODES, *, every: int = 1
) -> Iterator[Interruption[S]]:
    """
    Yield a case for each mode and each mutation of an operation, until a run of it survives untouched.

    Nobody counts the mutations: a mode ends with the round in which none was hit, and that round is yielded too.

    Args:
        fresh: Builds the state before the operation; called once per case, must always build the same.
        modes: Which interruptions.
        every: Each mode hits only one of this number of mutations, neighbouring modes different ones.

    Raises:
        RuntimeError: A case was not run, or the operation never ends.
    """
    for number, mode in enumerate(modes):
        # Neighbouring modes hit different mutations, so that together they leave none out.
        for n in range(number % every, _ROUNDS_MAX, every):
            case = Interruption(mode, n, fresh())
            yield case
            if not case.was_run:
                raise RuntimeError(f"{case!r} was not run; call its run() in the loop")
            if case.faulty.fired is None:
                break
        else:
            raise RuntimeError(f"{mode.name}: still interrupted after {_ROUNDS_MAX} mutations")


class _Deferred(io.BytesIO):
    """Collects what is written and hands it over at `close`; an exception leaves nothing."""

    def __init__(self, commit: Callable[[bytes], None]) -> None:
        super().__init__()
        self._commit: Callable[[bytes], None] | None = commit

    def close(self) -> None:
        commit, self._commit = self._commit, None  # once, also when it raises
        data = b"" if self.closed else self.getvalue()
        super().close()
        if commit is not None:
            commit(data)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._commit = None
        self.close()

    def __del__(self) -> None:
        self._commit = None  # dropped without closing: the process was interrupted


def _write(storage: Storage, path: str, data: bytes) -> None:
    with storage.open_write(path) as stream:
        stream.write(data)


def _first_half(paths: Iterable[str]) -> list[str]:
    # Sorted, so that each run of a test leaves the same files.
    ordered = sorted(paths)
    return ordered[: (len(ordered) + 1) // 2]


def _files_below(storage: Storage, folder: str) -> Iterator[str]:
    for entry in storage.list(folder):
        path = f"{folder}/{entry.name}"
        if entry.is_folder:
            yield from _files_below(storage, path)
        else:
            yield path

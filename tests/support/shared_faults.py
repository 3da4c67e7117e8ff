"""
The doubles of `hudi_py.testing` for writes in several processes: the driver and its tasks count their calls together.

A process that has died is dead for all: tasks on Spark are part of the write that is interrupted.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

from hudi_py import testing


class _AcrossProcesses:
    """Keeps what a double remembers in files beside the table, which must be on this machine."""

    def __init__(self, inner: Any, *given: Any, **named: Any) -> None:
        self._state = Path(f"{inner.root}.calls")
        self._state.mkdir()
        super().__init__(inner, *given, **named)

    @property
    def _lock(self) -> AbstractContextManager[None]:
        return _held(self._state / "lock")

    @_lock.setter
    def _lock(self, lock: object) -> None:
        """Files are locked in place of it."""

    @property
    def count(self) -> int:
        return int(_text(self._state / "count") or 0)

    @count.setter
    def count(self, count: int) -> None:
        (self._state / "count").write_text(str(count))
        (self._state / f"by {os.getpid()}").touch()

    @property
    def processes(self) -> int:
        """How many processes have called it."""
        return len([*self._state.glob("by *")])

    @property
    def fired(self) -> str | None:
        return _text(self._state / "fired") or None

    @fired.setter
    def fired(self, what: str | None) -> None:
        (self._state / "fired").write_text(what or "")

    @property
    def is_dead(self) -> bool:
        return (self._state / "dead").exists()

    @is_dead.setter
    def is_dead(self, is_dead: bool) -> None:
        if is_dead:
            (self._state / "dead").touch()


class StopBefore(_AcrossProcesses, testing.StopBefore):
    """See `hudi_py.testing.StopBefore`."""


class StopAfter(_AcrossProcesses, testing.StopAfter):
    """See `hudi_py.testing.StopAfter`."""


class FailNth(_AcrossProcesses, testing.FailNth):
    """See `hudi_py.testing.FailNth`."""


class ReportFailure(_AcrossProcesses, testing.ReportFailure):
    """See `hudi_py.testing.ReportFailure`."""


class TornWrite(_AcrossProcesses, testing.TornWrite):
    """See `hudi_py.testing.TornWrite`."""


MODES = (
    testing.InterruptionMode("stop before", StopBefore),
    testing.InterruptionMode("stop after", StopAfter),
    testing.InterruptionMode("fail once", FailNth),
    testing.InterruptionMode("fail from now on", lambda storage, n: FailNth(storage, n, None)),
    testing.InterruptionMode("succeed but report failure", ReportFailure),
    testing.InterruptionMode("tear", TornWrite),
)


def sample(calls: int, every: int, name: str) -> list[tuple[testing.InterruptionMode, int]]:
    """Every so many of the interruptions of an operation that changes something *calls* times, at least one of them."""
    cases = [(mode, n) for n in range(calls) for mode in MODES]
    return cases[crc32(name.encode()) % min(every, len(cases)) :: every]


@contextmanager
def _held(path: Path) -> Iterator[None]:
    with path.open("w") as file:  # of its own, so that threads of one process exclude each other, too
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""

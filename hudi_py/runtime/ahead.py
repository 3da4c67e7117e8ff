"""
Streams read ahead in threads, in bounded memory, and given back in their order.

The first stream is waited for, so no item overtakes another. Threads end with the iterator
that they work for: when it is exhausted, closed or dropped, and before the interpreter ends.
"""

from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any, Final, Generic, TypeVar
from weakref import WeakSet

import attrs

Item = TypeVar("Item")

_HELD: Final = 2  # items of one stream that wait to be taken
_BEHIND: Final = 2  # streams that are begun beyond those being read, so that no thread waits for the caller


@attrs.frozen
class Source(Generic[Item]):
    """
    One stream.

    Args:
        open: Begins it, in the thread that reads it.
        weight: Its share of the limit on all that are read at one time.
    """

    open: Callable[[], Generator[Item, None, None]]
    weight: int = 0


def in_turn(sources: Sequence[Source[Item]], *, threads: int, weight_max: int) -> Generator[Item, None, None]:
    """
    The items of all *sources*, in their order.

    Args:
        sources: Opened one after the other, the first ones at once.
        threads: Number of streams that are read at one time, and two more that were read and not yet taken; with one,
            or with one source, everything stays in the caller's thread.
        weight_max: Limit on the total weight of these streams; one is always read.

    Raises:
        What the sources raise, in place of their next item.
    """
    if threads < 2 or len(sources) < 2:
        # No thread where nothing could be read at the same time, so that a stack trace leads to the caller.
        yield from _chained(sources)
        return
    team = _Team(sources, threads, weight_max)
    try:
        yield from team.items()
    finally:
        team.stop()
        team.join()


def joined(sources: Iterable[Source[Item]], weight: int) -> Iterator[Source[Item]]:
    """
    Join neighbours into one stream each, as long as it stays below *weight*.

    For many small streams: to begin a thread and to hand each item over takes longer than to read a small file.
    """
    group: list[Source[Item]] = []
    total = 0
    for source in sources:
        if group and total + source.weight > weight:
            yield Source(partial(_chained, group), total)
            group, total = [], 0
        group.append(source)
        total += source.weight
    if group:
        yield Source(partial(_chained, group), total)


def _chained(sources: Iterable[Source[Item]]) -> Generator[Item, None, None]:
    for source in sources:
        with closing(source.open()) as stream:
            yield from stream


class _Channel(Generic[Item]):
    """One stream that may be read."""

    def __init__(self, source: Source[Item], lock: threading.Lock) -> None:
        self.source = source
        self.items: deque[Item] = deque()
        self.taken = threading.Condition(lock)
        self.is_ended = False
        self.error: BaseException | None = None


class _Team(Generic[Item]):
    """
    Threads that read streams, at most `_HELD` items of each ahead.

    Each goes on with the next stream, because to begin a thread costs as much as to read a small file.
    """

    def __init__(self, sources: Sequence[Source[Item]], threads_max: int, weight_max: int) -> None:
        self._rest, self._open, self._weight = deque(sources), deque[_Channel[Item]](), 0
        self._threads_max, self._weight_max = threads_max, weight_max
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._filled, self._allowed = threading.Condition(self._lock), threading.Condition(self._lock)
        self._waiting: deque[_Channel[Item]] = deque()  # allowed, and not begun
        self._idle = 0
        self._is_stopped = False
        _RUNNING.add(self)

    def items(self) -> Iterator[Item]:
        """Those of all streams; for one caller."""
        while self._rest or self._open:
            self._allow()
            channel = self._open[0]
            while True:
                with self._lock:
                    while not channel.items and not channel.is_ended:
                        self._filled.wait()
                    if not channel.items:
                        break
                    item = channel.items.popleft()
                    channel.taken.notify()
                yield item
            if channel.error is not None:
                raise channel.error
            self._open.popleft()
            self._weight -= channel.source.weight

    def _allow(self) -> None:
        """Have the next streams begun, as far as they are within the limits."""
        # One stream is always read, however heavy it is: otherwise a single large file could never be read.
        while (
            self._rest
            and len(self._open) < self._threads_max + _BEHIND
            and (not self._open or self._weight + self._rest[0].weight <= self._weight_max)
        ):
            channel = _Channel(self._rest.popleft(), self._lock)
            self._open.append(channel)
            self._weight += channel.source.weight
            with self._lock:
                self._waiting.append(channel)
                self._allowed.notify()
                is_missed = len(self._waiting) > self._idle
            if is_missed and len(self._threads) < self._threads_max:
                # A daemon, so that an iterator left half-way does not keep the process alive; `_stop_all` ends it in
                # time.
                self._threads.append(threading.Thread(target=self._work, name="read ahead", daemon=True))
                self._threads[-1].start()

    def stop(self) -> None:
        """Have the threads end where they stand."""
        with self._lock:
            self._is_stopped = True
            self._allowed.notify_all()
            for channel in self._open:
                # Given back at once: a thread may take long to notice, and each item may be a batch of many megabytes.
                channel.items.clear()
                channel.taken.notify()

    def join(self) -> None:
        """Wait until they have."""
        for thread in self._threads:
            thread.join()
        _RUNNING.discard(self)

    def _work(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
                self._allowed.wait_for(lambda: self._waiting or self._is_stopped)
                self._idle -= 1
                if self._is_stopped:
                    return
                channel = self._waiting.popleft()
            self._fill(channel)

    def _fill(self, channel: _Channel[Item]) -> None:
        try:
            with closing(channel.source.open()) as stream:
                for item in stream:
                    if not self._put(channel, item):
                        break
        except BaseException as error:  # noqa: BLE001  (raised where the items are taken)
            channel.error = error
        with self._lock:
            channel.is_ended = True
            self._filled.notify()

    def _put(self, channel: _Channel[Item], item: Item) -> bool:
        with self._lock:
            channel.taken.wait_for(lambda: self._is_stopped or len(channel.items) < _HELD)
            if not self._is_stopped:
                channel.items.append(item)
                self._filled.notify()
            return not self._is_stopped


_RUNNING: Final[WeakSet[_Team[Any]]] = WeakSet()


@atexit.register
def _stop_all() -> None:
    """Before the interpreter ends: a thread must not be inside of a library then."""
    for team in list(_RUNNING):
        team.stop()
    for team in list(_RUNNING):
        team.join()

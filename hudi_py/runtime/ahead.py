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
        threads: Number of streams that are read at one time; with one, or with one source, everything stays in the
            caller's thread.
        weight_max: Limit on the total weight of the streams read at one time; one is always read.

    Raises:
        What the sources raise, in place of their next item.
    """
    if threads < 2 or len(sources) < 2:
        # No thread where nothing could be read at the same time, so that a stack trace leads to the caller.
        yield from _chained(sources)
        return
    rest, running, weight = deque(sources), deque[tuple[_Channel[Item], int]](), 0
    try:
        while rest or running:
            # One stream is always read, however heavy it is: otherwise a single large file could never be read.
            while rest and len(running) < threads and (not running or weight + rest[0].weight <= weight_max):
                source = rest.popleft()
                running.append((_Channel(source.open), source.weight))
                weight += source.weight
            channel, its_weight = running[0]
            yield from channel
            running.popleft()
            weight -= its_weight
    finally:
        for channel, _ in running:
            channel.stop()
        for channel, _ in running:
            channel.join()


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
    """One stream and the thread that reads it, at most `_HELD` items ahead."""

    def __init__(self, begin: Callable[[], Generator[Item, None, None]]) -> None:
        self._begin = begin
        self._items: deque[Item] = deque()
        self._changed = threading.Condition()
        self._is_stopped = self._is_ended = False
        self._error: BaseException | None = None
        # A daemon, so that an iterator left half-way does not keep the process alive; `_stop_all` ends it in time.
        self._thread = threading.Thread(target=self._fill, name="read ahead", daemon=True)
        _RUNNING.add(self)
        self._thread.start()

    def __iter__(self) -> Iterator[Item]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._items or self._is_ended)
                if not self._items:
                    break
                item = self._items.popleft()
                self._changed.notify()
            yield item
        self.join()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Have the thread end where it stands."""
        with self._changed:
            self._is_stopped = True
            # Given back at once: the thread may take long to notice, and each item may be a batch of many megabytes.
            self._items.clear()
            self._changed.notify()

    def join(self) -> None:
        """Wait until it has."""
        self._thread.join()
        _RUNNING.discard(self)

    def _fill(self) -> None:
        try:
            with closing(self._begin()) as stream:
                for item in stream:
                    if not self._put(item):
                        break
        except BaseException as error:  # noqa: BLE001  (raised where the items are taken)
            self._error = error
        with self._changed:
            self._is_ended = True
            self._changed.notify()

    def _put(self, item: Item) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopped or len(self._items) < _HELD)
            if not self._is_stopped:
                self._items.append(item)
                self._changed.notify()
            return not self._is_stopped


_RUNNING: Final[WeakSet[_Channel[Any]]] = WeakSet()


@atexit.register
def _stop_all() -> None:
    """Before the interpreter ends: a thread must not be inside of a library then."""
    for channel in list(_RUNNING):
        channel.stop()
    for channel in list(_RUNNING):
        channel.join()

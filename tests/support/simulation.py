"""
Deterministic simulation of several processes on one table: every order of their storage calls, up to a bound.

Each actor runs in a thread of its own and stops before each call that others can see; one actor at a time goes on. A
schedule says after which calls another actor goes on although the present one could (a preemption). All schedules with
at most so many preemptions are run, each on a fresh copy of the table. An actor that waits for the lock is not run
while the lock is held, nor one that waits for another writer before that one has gone on: nothing waits in real time.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from unittest import mock

import attrs

from hudi_py.errors import HudiError
from hudi_py.storage.base import Storage
from hudi_py.storage.memory import MemoryStorage
from hudi_py.txn.beginners import Beginners
from hudi_py.txn.commit import Begun, Ready
from support.turns import WAITS, Runner, wait_for_others

LOCK = ".hoodie/lock"
_BEGINNERS_READY = Beginners.ready
_UNLOCKED: set[str] = set()
"""Names of the modules whose cached properties lock nothing any more."""
Work = Callable[[Storage], Any]


class Outcome(NamedTuple):
    """
    What a schedule led to.

    Args:
        preemptions: Number of the call to the actor that goes on then.
        storage: The table afterwards.
        errors: What each actor raised; None if it succeeded.
        steps: For each call the actor that made it, and the actors that could have gone on.
    """

    preemptions: Mapping[int, int]
    storage: MemoryStorage
    errors: tuple[HudiError | None, ...]
    steps: tuple[tuple[int, tuple[int, ...]], ...]

    def __str__(self) -> str:
        return f"preemptions {dict(self.preemptions)}, errors {[str(each) for each in self.errors]}"


def is_shared(verb: str, path: str) -> bool:
    """Calls by which one process can see or hinder another: listing and changing the timeline, taking the lock."""
    if verb == "list":
        return path in (".hoodie", ".hoodie/timeline")
    if path == LOCK:
        return verb in ("create_new", "delete")
    name = path.rpartition("/")[2]
    return path.startswith((".hoodie/2", ".hoodie/timeline/2")) and name[:1].isdigit() and verb != "read"


def is_shared_or_file(verb: str, path: str) -> bool:
    """These, and the creation of data files and of the markers that announce them."""
    is_file = path.startswith(".hoodie/.temp/") or (not path.startswith(".hoodie") and not path.endswith("metadata"))
    return is_shared(verb, path) or (is_file and verb in ("create_new", "open_write", "replace"))


def unlock_cached_properties() -> None:
    """
    Before Python 3.12, a cached property locks all objects of its class while it is computed.

    In one process an actor that has stopped there would block the others; in processes of their own it does not.
    """
    # Each module once: to look at all of them took a third of every schedule.
    for name, module in list(sys.modules.items()):
        if name.startswith("hudi_py") and name not in _UNLOCKED:
            _UNLOCKED.add(name)
            for each in list(vars(module).values()):
                for attribute in list(vars(each).values()) if isinstance(each, type) else ():
                    if isinstance(attribute, functools.cached_property) and hasattr(attribute, "lock"):
                        attribute.lock = contextlib.nullcontext()


def run(
    fresh: Callable[[], MemoryStorage],
    actors: Sequence[Work],
    preemptions: Mapping[int, int],
    counts: Callable[[str, str], bool] = is_shared,
) -> Outcome:
    """Run all actors to their ends; without preemptions one after another."""
    unlock_cached_properties()
    with mock.patch.object(Beginners, "ready", _ready):
        return _run(fresh, actors, preemptions, counts)


def _ready(beginners: Beginners, begun: Begun) -> contextlib.AbstractContextManager[Ready]:
    return _BEGINNERS_READY(attrs.evolve(beginners, sleep=wait_for_others), begun)


def _run(
    fresh: Callable[[], MemoryStorage],
    actors: Sequence[Work],
    preemptions: Mapping[int, int],
    counts: Callable[[str, str], bool],
) -> Outcome:
    storage = fresh()
    runners = [Runner(storage, actor, counts) for actor in actors]
    steps: list[tuple[int, tuple[int, ...]]] = []
    current = 0
    while True:
        alive = [number for number, runner in enumerate(runners) if not runner.is_done]
        if not alive:
            break
        stopped = [WAITS, ("create_new", LOCK)] if storage.size(LOCK) is not None else [WAITS]
        ready = tuple(n for n in alive if runners[n].pending not in stopped)
        ready = ready or tuple(alive)  # the holder has ended: the others find out
        wanted = preemptions.get(len(steps), current)
        current = wanted if wanted in ready else ready[0]
        steps.append((current, ready))
        runners[current].step()
    for runner in runners:
        runner.finish()
    return Outcome(dict(preemptions), storage, tuple(runner.error for runner in runners), tuple(steps))


def schedules(
    fresh: Callable[[], MemoryStorage],
    actors: Sequence[Work],
    bound: int,
    counts: Callable[[str, str], bool] = is_shared,
) -> Iterator[Outcome]:
    """Run every schedule with at most *bound* preemptions, those with few of them first."""
    first = run(fresh, actors, {}, counts)
    yield first
    level = [first]
    for _ in range(bound):
        deeper = []
        for outcome in level:
            begin = max(outcome.preemptions, default=-1) + 1
            for number in range(begin, len(outcome.steps)):
                actor, ready = outcome.steps[number]
                for other in ready:
                    if other != actor:
                        found = run(fresh, actors, {**outcome.preemptions, number: other}, counts)
                        yield found
                        deeper.append(found)
        level = deeper


def drawn_schedule(
    fresh: Callable[[], MemoryStorage],
    actors: Sequence[Work],
    chance: random.Random,
    counts: Callable[[str, str], bool] = is_shared,
) -> Outcome:
    """Run a schedule with two preemptions, each at a random call at which another actor could go on."""
    found = run(fresh, actors, {}, counts)
    for _ in range(2):
        begin = max(found.preemptions, default=-1) + 1
        options = [
            (number, other)
            for number, (actor, ready) in enumerate(found.steps[begin:], begin)
            for other in ready
            if other != actor
        ]
        if options:
            number, other = chance.choice(options)
            found = run(fresh, actors, {**found.preemptions, number: other}, counts)
    return found


class SerialOrders:
    """
    What the table may look like after some actors have succeeded: as if they had run one after another, in any order.

    Args:
        fresh: Makes a copy of the table.
        actors: All actors.
        state: Reads what is compared.
    """

    def __init__(
        self, fresh: Callable[[], MemoryStorage], actors: Sequence[Work], state: Callable[[Storage], Any]
    ) -> None:
        self._fresh, self._actors, self._state = fresh, actors, state
        self._known: dict[tuple[int, ...], Any] = {}

    def of(self, succeeded: Sequence[int]) -> list[Any]:
        """Return the states after each order of these actors."""
        return [self._after(order) for order in itertools.permutations(succeeded)]

    def _after(self, order: tuple[int, ...]) -> Any:
        if order not in self._known:
            storage = self._fresh()
            for number in order:
                try:
                    self._actors[number](storage)
                except HudiError as error:
                    self._known[order] = f"{type(error).__name__} alone"
                    break
            else:
                self._known[order] = self._state(storage)
        return self._known[order]

"""
Random histories: made from a seed, played, and made shorter where one breaks a law.

As a program: ``python tools/long_run.py histories --sequences 2000 --seed 1``.
"""

from __future__ import annotations

import os
import random
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Generic
from unittest import mock

import attrs

from hudi_py.formats.log_block import HeaderKey
from hudi_py.mdt import blocks
from hudi_py.runtime import ahead
from hudi_py.runtime.ahead import Item, Source
from hudi_py.storage.memory import MemoryStorage
from hudi_py.write_service import WriteService
from support.fixtures import FOLDER
from support.history_draw import ROWS_SHARE, STEPS_MAX, kinds, make_steps
from support.history_exhaustion import exhaust
from support.history_keeping import adopt_tags
from support.history_laws import Kind, Violation
from support.history_rows import RowsWorld
from support.history_steps import Step, take
from support.history_windows import Window
from support.history_world import STEP, World
from support.many_writers import AT_ONCE


@attrs.frozen
class Failure:
    """A sequence that breaks a law, as short as it could be made."""

    seed: int
    kind: Kind
    steps: tuple[Step, ...]
    law: str
    message: str
    told: tuple[str, ...]

    def __str__(self) -> str:
        steps = "\n".join(f"    {step!r}," for step in self.steps)
        told = "\n".join(self.told)
        return f"seed {self.seed}, {self.kind}\nlaw: {self.law}\n{self.message}\nsteps:\n{steps}\nstory:\n{told}"


# ------------------------------------------------------------------ playing
_fixtures: dict[str, dict[str, bytes]] = {}


def _fixture_files(name: str) -> dict[str, bytes]:
    import tarfile

    if name not in _fixtures:
        prefix = name.rpartition("/")[2].rpartition("-")[0] + "/"
        with tarfile.open(FOLDER / f"{name}.tar.gz") as archive:
            _fixtures[name] = {
                member.name.removeprefix(prefix): archive.extractfile(member).read()  # type: ignore[union-attr]
                for member in archive
                if member.isfile()
            }
    return _fixtures[name]


def new_world(kind: Kind) -> World:
    """A table to play on."""
    world = RowsWorld if kind.rows else World
    return world.empty(kind) if kind.fixture is None else world.of_fixture(kind, _fixture_files(kind.fixture))


@contextmanager
def _no_chance(seed: int) -> Iterator[None]:
    """
    Names of files and times are the same in every run of a seed.

    And bytes of the metadata table that were decoded once are not decoded again: that is most of what a look costs.
    """
    chance = random.Random(f"names {seed}")
    decoded: dict[tuple[bytes, Any], list[Any]] = {}
    real = blocks.decode_block

    def decode_block(block: Any, source: str) -> list[Any]:
        key = (block.content, block.header.get(HeaderKey.SCHEMA))
        if key not in decoded:
            decoded[key] = list(real(block, source))
        return decoded[key]

    with (
        mock.patch.object(os, "urandom", chance.randbytes),
        mock.patch.object(blocks, "decode_block", decode_block),
        mock.patch.object(ahead, "_Team", _InTheCallersThread),
        mock.patch.dict(WriteService.__init__.__kwdefaults__ or {}, delays=AT_ONCE),
    ):
        yield


class _InTheCallersThread(Generic[Item]):
    """In the place of streams that are read ahead: for tables of a few rows threads are most of what a read costs."""

    def __init__(self, sources: Sequence[Source[Item]], *_limits: int) -> None:
        self._sources = sources

    def items(self) -> Iterator[Item]:
        """Those of all streams."""
        for source in self._sources:
            with closing(source.open()) as stream:
                yield from stream

    def stop(self) -> None:
        """Nothing runs."""

    join = stop


def _some_times(world: World, number: int) -> list[str]:
    """The newest few and some others; at the end of a sequence all are asked for."""
    times = sorted(world.rows)
    return [*times[-2:], *random.Random(number).sample(times[:-2], min(3, max(len(times) - 2, 0)))]


def play(seed: int, kind: Kind, steps: Sequence[Step], *, every_time: bool = False) -> World:
    """
    Play a sequence; every law is checked after every step.

    Args:
        every_time: Ask for every time after every step, not for some.

    Raises:
        Violation: A law is broken; the world's story is in its notes.
    """
    with _no_chance(seed):
        world, window = new_world(kind), Window()
        try:
            for number, step in enumerate(steps):
                world.told.append(f"{number}. {step!r}")
                world.intent = None
                world.clock.move(STEP)
                _take(world, step)
                world.settle()
                adopt_tags(world)  # commits make them by themselves under a policy
                _check(world, times=None if every_time else _some_times(world, number))
                with _errors_as_violations("policy"):
                    window.check(world, world.open())
            _end(world)
            world.told.append("end: everything expires")
            with _errors_as_violations("exhaustion"):
                exhaust(world)
        except Violation as violation:
            violation.told = tuple(world.told)  # type: ignore[attr-defined]
            raise
    return world


def _take(world: World, step: Step) -> None:
    with _errors_as_violations(step[0]):
        take(world, step)


def _check(world: World, times: Sequence[str] | None = None) -> None:
    with _errors_as_violations("check"):
        world.check(times=times)


@contextmanager
def _errors_as_violations(what: str) -> Iterator[None]:
    try:
        yield
    except Violation:
        raise
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        raise Violation(
            f"error: {type(error).__name__} in {where.name} of {what}",
            "".join(traceback.format_exception(error))[-1800:],
        ) from error


def _end(world: World) -> None:
    """A recovered table is in good health, and work goes on."""
    for step in (
        ("allow", {}),
        ("recover", {}),
        ("write", {"operation": "UPSERT", "seed": 1}),
        ("clean", {"options": {"commits_retained": 1}}),
    ):
        world.told.append(f"end: {step!r}")
        world.intent = None
        world.clock.move(STEP)
        _take(world, step)
        world.settle()
        _check(world)


def outcome_of(seed: int, kind: Kind, steps: Sequence[Step]) -> tuple[Violation | None, Counter[str]]:
    """The law that a sequence breaks, if any, and what happened in it."""
    try:
        return None, play(seed, kind, steps).counts
    except Violation as violation:
        return violation, Counter()


# ------------------------------------------------------------------ making it shorter
def shrink(
    seed: int, kind: Kind, steps: Sequence[Step], law: str, *, rounds: int = 90
) -> tuple[Kind, tuple[Step, ...]]:
    """Leave out whatever the violation does not need."""
    left = rounds

    def breaks(kind: Kind, steps: Sequence[Step]) -> bool:
        nonlocal left
        left -= 1
        violation, _ = outcome_of(seed, kind, steps)
        return violation is not None and violation.law == law

    current = tuple(steps)
    changed = True
    while changed and left > 0:
        changed = False
        for shorter in _shorter(current):
            if left <= 0:
                break
            if breaks(kind, shorter):
                current, changed = shorter, True
                break
        if changed:
            continue
        for simpler in _simpler(kind):
            if breaks(simpler, current):
                kind, changed = simpler, True
                break
    return kind, current


def _shorter(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    for size in (4, 2, 1):
        for start in range(len(steps) - size, -1, -1):
            yield (*steps[:start], *steps[start + size :])
    for number, step in enumerate(steps):
        for inner in step[2:]:
            yield (*steps[:number], inner, *steps[number + 1 :])
        arguments = step[1]
        if arguments.get("settings"):
            yield (*steps[:number], (step[0], {**arguments, "settings": {}}), *steps[number + 1 :])
        for name in ("services", "metadata", "stale", "key"):
            if name in arguments:
                less = {each: value for each, value in arguments.items() if each != name}
                yield (*steps[:number], (step[0], less, *step[2:]), *steps[number + 1 :])


def _simpler(kind: Kind) -> Iterator[Kind]:
    if kind.several:
        yield attrs.evolve(kind, several=False)
    if kind.global_index:
        yield attrs.evolve(kind, global_index="")
    if kind.indexes:
        yield attrs.evolve(kind, indexes=False)
    if kind.lock and not kind.several:
        yield attrs.evolve(kind, lock=False)
    if kind.metadata is not False and not kind.indexes:
        yield attrs.evolve(kind, metadata=False)
    if kind.lazy and not kind.several:
        yield attrs.evolve(kind, lazy=False)
    if kind.statistics:
        yield attrs.evolve(kind, statistics=False)
    if kind.changes:
        yield attrs.evolve(kind, changes=False)
    if kind.buckets:
        yield attrs.evolve(kind, buckets=False)
    if kind.fixture is not None and not kind.indexes:
        yield attrs.evolve(kind, fixture=None)


def find_failure(
    seed: int, *, steps_max: int = STEPS_MAX, rows_share: float = ROWS_SHARE
) -> tuple[Failure | None, Counter[str]]:
    """Play the history of a seed, and shorten it where it breaks a law; arguments as of `make_steps` and `kinds`."""
    kind = kinds(seed, rows_share=rows_share)
    steps = make_steps(seed, kind, steps_max=steps_max)
    violation, counts = outcome_of(seed, kind, steps)
    if violation is None:
        return None, counts
    kind, short = shrink(seed, kind, steps, violation.law)
    final, _ = outcome_of(seed, kind, short)
    assert final is not None
    return Failure(seed, kind, short, final.law, final.message, getattr(final, "told", ())), counts


__all__ = ["Failure", "MemoryStorage", "find_failure", "kinds", "make_steps", "outcome_of", "play", "shrink"]

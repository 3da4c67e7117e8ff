"""
What a policy promises in a random history, and what a quarantine does: for how long what was there stays.

A promise counts from the end of the step after which it could be kept: what a clean took before the policy was applied
does not come back.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta, timezone
from typing import Any, Final

from hudi_py.config.parse import duration
from hudi_py.errors import HudiError, RefusedError, UnsupportedTable
from hudi_py.model.instant import Action
from hudi_py.model.instant_time import parse_instant_time
from hudi_py.storage.base import Storage
from hudi_py.table import Table
from hudi_py.timeline import quarantine
from support.history_laws import Violation
from support.history_world import Do, World

TAG: Final = "hudi-py=removed"
_NEWEST: Final = 3
"""Commits of which each is asked for, after each step under a policy."""
_DOCUMENTS: Final = (
    '[keep]\neverything = "2h"\nfloor = "1h"\n',
    "[keep]\ncommits = 3\n",
    '[keep]\neverything = "3h"\nmax_bytes = "2KB"\nfloor = "30m"\n',
    '[keep]\neverything = "1h"\nchanges = "2h"\n',
    '[keep]\nfloor = "2h"\nversions = 2\n[clean]\nquarantine = true\ngrace = "5h"\n',
    '[keep]\ncommits = 2\nfloor = "30m"\n[archive]\nmin_commits = 4\nmax_commits = 5\n',
    "[keep]\nversions = 2\n[tags]\nhourly = 3\ndaily = 2\nweekly = 2\nmonthly = 1\n",
)
POLICIES: Final = range(-2, len(_DOCUMENTS))
"""What the argument of a step may be; below zero for none."""


# ------------------------------------------------------------------ steps
def _policy(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    if args["number"] < 0:
        world.open(storage).remove_policy()
    else:
        world.open(storage).apply_policy(_DOCUMENTS[args["number"]])


def _store(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    """The store deletes some of the files that are tagged: in any order, by a rule of its own."""
    chance = random.Random(args["seed"])
    key = TAG.partition("=")[0]
    for path in sorted(path for path in world.storage.files() if key in world.storage.tags(path)):
        if not path.startswith(quarantine.FOLDER):
            raise Violation("store: a file of the table is tagged", f"{path} would be deleted by the store")
        if chance.random() < args["share"]:
            world.storage.delete(path)
            world.counts["store: files"] += 1


WINDOWS: Final[Mapping[str, Do]] = {"policy": _policy, "store": _store}


# ------------------------------------------------------------------ laws
class Window:
    """What could be read at the end of the last step, and has to stay readable for as long as the policy says."""

    def __init__(self) -> None:
        self._mark = ""
        self._answered: frozenset[tuple[str, str]] = frozenset()

    def check(self, world: World, table: Table) -> None:
        """
        Times within the policy can be read, if they could be read before; so can changes.

        Raises:
            Violation: One cannot.
        """
        policy = None if world.is_mor else table.policy
        if policy is None or table.timeline.pending(Action.RESTORE, Action.ROLLBACK):
            self._mark = ""
            return
        now = {each: why for each in self._promised(world, policy.settings) if (why := _refusal(world, table, each))}
        promised = frozenset(self._promised(world, policy.settings))
        if policy.mark == self._mark:
            for what, time in sorted(self._answered & now.keys()):
                raise Violation(f"policy: {what} is gone", f"{what} {time}, under {policy.text!r}: {now[what, time]}")
            world.counts["policy: kept"] += len(self._answered & promised)
        is_cleaning = bool(table.timeline.pending(Action.CLEAN))  # planned before, it may still take what it planned
        self._mark = "" if is_cleaning else policy.mark
        self._answered = promised - now.keys()

    @staticmethod
    def _promised(world: World, settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        commits = int(settings.get("hoodie_py.clean.min.commits", 0))
        floor, changes = (_span(settings.get(f"hoodie_py.clean.{name}")) for name in ("floor", "changes.retained"))
        for number, time in enumerate(reversed(world.chain[-_NEWEST:])):
            age = world.clock.now() - parse_instant_time(time, timezone.utc)
            if age < floor or number < commits:
                yield ("the table as of", time)
            if age < changes and world.has_ranges:
                yield ("changes since", time)


def _span(text: str | None) -> timedelta:
    return timedelta(0) if text is None else duration(text)


def _refusal(world: World, table: Table, asked: tuple[str, str]) -> str:
    what, time = asked
    try:
        if what == "changes since":
            table.changes(time, with_deletes=True).to_arrow()
        else:
            world.rows_at(table, as_of=time)
    except UnsupportedTable:
        return ""
    except RefusedError as error:
        return "" if "may still complete" in str(error) else str(error)
    except HudiError as error:
        return str(error)
    return ""


def guard_quarantine(world: World, names: frozenset[str]) -> Callable[[], None]:
    """
    Begin a step; what is returned, called after it, refuses that it took from quarantine what may be put back.

    Args:
        names: Names of the step and of all steps within it.
    """
    held = {} if {"undo", "store", "recover"} & names else dict(_held(world))

    def check() -> None:
        now_ms = int(world.clock.now().timestamp() * 1000)
        lost = sorted(path for path, until in held.items() if now_ms < until and world.storage.size(path) is None)
        if lost:
            raise Violation("quarantine: files lost", f"{lost[:3]}, which may still be put back")

    return check


def _held(world: World) -> Iterator[tuple[str, int]]:
    for name in quarantine.removals(world.storage):
        manifest = quarantine.load_manifest(world.storage, name)
        if manifest is not None:
            for path in quarantine.paths_of(quarantine.sizes_held(world.storage, manifest)):
                yield f"{manifest.files_folder}/{path}", manifest.until_ms

"""
The steps of a history: each is a name with arguments, so that a sequence can be printed, shortened and played again.

Arguments point at things by their distance from the newest, so a step keeps its sense when others are left out. Steps
that hold steps: ``crash`` ends the process within one, ``meanwhile`` lets another process do one in the middle of it,
``hudi`` lets Apache Hudi do it, which sees no pending cleans, ``damaged lease`` does it while the file of a lease
cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, cast

from hudi_py.errors import (
    CorruptMetadata,
    HudiError,
    RefusedError,
)
from hudi_py.model.instant import Action, State
from hudi_py.storage.base import Storage
from hudi_py.testing import FAILING_READS, INTERRUPTION_MODES, Crash
from support.history_keeping import DAMAGED_LEASE, KEEPING
from support.history_laws import REFUSALS, Violation, refused_without_change
from support.history_retention import RETENTION, files_with_rows, guard
from support.history_services import SERVICES
from support.history_windows import WINDOWS, guard_quarantine
from support.history_world import Do, World
from support.history_writes import WRITES
from support.meanwhile import Meanwhile
from support.tables import data_files

Step = tuple[Any, ...]
"""(name, arguments, inner steps...)."""

MODES: Final = {mode.name: mode for mode in (*INTERRUPTION_MODES, *FAILING_READS)}


DO: Final[Mapping[str, Do]] = {**WRITES, **SERVICES, **KEEPING, **RETENTION, **WINDOWS}
MAY_LEAVE_A_FAILED_WRITE: Final = frozenset({*WRITES, "expire"}) - {
    "plan_clustering",
    "plan_log_compaction",
}  # no writes


# ------------------------------------------------------------------ steps that hold steps
def take(world: World, step: Step) -> None:
    """
    Take a step of the history.

    Raises:
        As `perform`; and a `Violation` if it deleted rows although that was forbidden, or files that may be put back.
    """
    names = frozenset(_names(step))
    checks = [begin(world, names) for begin in (guard, guard_quarantine)]
    perform(world, step)
    for check in checks:
        check()


def _names(step: Step) -> Iterator[str]:
    name, _, *inner = step
    yield name
    for each in inner:
        yield from _names(each)


def perform(world: World, step: Step, storage: Storage | None = None) -> None:
    """
    Take one step, or one within another.

    Raises:
        Violation: A refusal has changed the table.
        Exception: What is no refusal.
    """
    storage = cast("Storage", world.storage) if storage is None else storage
    name, args, *inner = step
    if name == "crash":
        _crash(world, args, inner[0], storage)
    elif name == "meanwhile":
        _meanwhile(world, args, inner[0], inner[1])
    elif name == "hudi":
        _beside_hidden_cleans(world, inner[0], storage)
    elif name == "damaged lease":
        _beside_a_damaged_lease(world, inner[0], storage)
    else:
        _plain(world, name, args, storage)


def _plain(world: World, name: str, args: Mapping[str, Any], storage: Storage) -> None:
    if name == "clean" and world.kind.lazy and storage is world.storage:  # documented to come before, refused or not
        try:
            world.open().services.failed_writes().with_clean()
        except REFUSALS as error:  # another holds the lock: not for the write that is at work meanwhile to hear
            world.told.append(f"    failed writes before a clean: {type(error).__name__}: {str(error)[:300]}")
            world.counts["failed writes before a clean: refused"] += 1
            return
    before = world.storage.files() if storage is world.storage else None
    try:
        with _refused_halfway_of_a_restore(world):
            DO[name](world, storage, args)
        world.told.append(f"    {name}: done")
        world.counts[f"{name}: done"] += 1
    except REFUSALS as error:
        world.told.append(f"    {name}: {type(error).__name__}: {str(error)[:300]}")
        world.counts[f"{name}: refused"] += 1
        if before is None:
            raise
        if name in MAY_LEAVE_A_FAILED_WRITE:
            world.is_dirty = True
        else:
            refused_without_change(before, world.storage.files(), error)


@contextmanager
def _refused_halfway_of_a_restore(world: World) -> Iterator[None]:
    """What a clean took from behind a savepoint is missing until the restore is finished, and the message says so."""
    try:
        yield
    except CorruptMetadata as error:
        if "finish it first" not in str(error) or not world.open().timeline.pending(Action.RESTORE):
            raise
        raise RefusedError(str(error)) from error


def _crash(world: World, args: Mapping[str, Any], inner: Step, storage: Storage) -> None:
    faulty = MODES[args["mode"]].wrap(storage, args["n"])
    try:
        perform(world, inner, cast("Storage", faulty))
    except Crash:
        pass
    except HudiError as error:
        if faulty.fired is None and not isinstance(error, REFUSALS):
            raise
    if faulty.fired is not None:
        world.is_dirty = True
        world.told.append(f"    {args['mode']}: {faulty.fired}")


def _meanwhile(world: World, args: Mapping[str, Any], first: Step, second: Step) -> None:
    def other() -> None:
        world.told.append("    meanwhile:")
        world.settle()  # the first may have completed already
        world.is_beside = True
        try:
            with world.others_turn():
                perform(world, second)
        finally:
            world.is_beside = False
            world.settle()

    faulty = Meanwhile(cast("Storage", world.storage), other, n=args["n"])
    with suppress(*REFUSALS):
        perform(world, first, cast("Storage", faulty))
    if faulty.fired is not None:
        world.is_dirty = True
    else:
        world.settle()
        perform(world, second)


def _beside_hidden_cleans(world: World, inner: Step, storage: Storage) -> None:
    """Apache Hudi plans and undoes beside pending cleans; so the way that it leaves is taken by hiding those."""
    table = world.open()
    store = table.contents.store
    hidden: dict[str, bytes] = {}
    for instant in table.timeline.all_states:
        if instant.action is Action.CLEAN and instant.state is not State.COMPLETED:
            done = table.timeline.find(instant.requested_time, Action.CLEAN)
            if done is not None and done.is_pending:
                hidden[store.path(instant)] = store.read(instant)
    for path in hidden:
        world.storage.delete(path)
    try:
        perform(world, inner, storage)
    except CorruptMetadata as error:  # hudi_py misses what the hidden clean has deleted already; Hudi does not look
        if not hidden or "is missing" not in str(error):
            raise
        world.counts["hudi: not played beside a clean that is half done"] += 1
    finally:
        for path, data in hidden.items():
            world.storage.replace(path, data)


def _beside_a_damaged_lease(world: World, inner: Step, storage: Storage) -> None:
    """It is unknown what its reader needs: nothing that a completed write wrote is deleted until it is released."""
    world.storage.replace(DAMAGED_LEASE, b'{"version": 1')
    before = files_with_rows(world)
    try:
        perform(world, inner, storage)
    except CorruptMetadata as error:
        if DAMAGED_LEASE not in str(error):
            raise
        world.counts[f"{inner[0]}: refused beside a damaged lease"] += 1
    finally:
        lost = sorted(before.difference(data_files(world.storage)))
        world.open().release_lease("damaged")
    if lost:
        raise Violation("damaged lease: files lost", f"{inner[0]} deleted {lost[:3]}")

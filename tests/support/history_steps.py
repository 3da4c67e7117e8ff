"""
The steps of a history: each is a name with arguments, so that a sequence can be printed, shortened and played again.

Arguments point at things by their distance from the newest, so a step keeps its sense when others are left out. Steps
that hold steps: ``crash`` ends the process within one, ``meanwhile`` lets another process do one in the middle of it,
``hudi`` lets Apache Hudi do it, which sees no pending cleans.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, cast

from hudi_py.config.table import TableType
from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import (
    ConfigError,
    ConflictError,
    CorruptMetadata,
    HudiError,
    RefusedError,
    UnsupportedTable,
    WriteError,
)
from hudi_py.model.instant import Action, State
from hudi_py.services.savepoint.service import SavepointWords
from hudi_py.storage.base import Storage
from hudi_py.storage.wrappers import Paths
from hudi_py.table import Table
from hudi_py.testing import INTERRUPTION_MODES, Crash, Faulty, T
from support import history_deltas, history_statements
from support import history_writer as writer
from support.history_rows import RowsWorld
from support.history_statements import some_rows
from support.history_world import World, refused_without_change

Step = tuple[Any, ...]
"""(name, arguments, inner steps...)."""

Do = Callable[[World, Storage, Mapping[str, Any]], None]
ONE_THREAD: Final = LocalEngine(1)
MODES: Final = {mode.name: mode for mode in INTERRUPTION_MODES}
REFUSALS: Final = (RefusedError, ConfigError, ConflictError, UnsupportedTable, WriteError)


# ------------------------------------------------------------------ writing
def _write(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    if isinstance(world, RowsWorld):
        history_statements.write(world, storage, args)
        return
    table = world.open(storage, metadata=args.get("metadata", "kind"))
    if world.is_mor:
        history_deltas.write_delta(table, args["seed"], world.announce_files)
        return
    operation, chance = args["operation"], random.Random(args["seed"])
    rows = some_rows(world, operation, chance)
    if not rows:
        return

    def announce(time: str) -> None:
        world.settle()
        changed = {world.key(row): row for row in rows}
        if operation == "DELETE":
            world.rows[time] = {key: row for key, row in world.latest.items() if key not in changed}
        else:
            world.rows[time] = {**world.latest, **changed}

    table.schema_text()
    writer.write(table, rows, operation, announce, small_files=args.get("small_files", True))
    if args.get("services"):
        table.refresh().clean(engine=ONE_THREAD, **args["services"])
        table.services.archive().run()
        table.services.run_upkeep()


def _replace(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    if isinstance(world, RowsWorld):
        history_statements.replace(world, storage, args)
        return
    table = world.open(storage)
    if world.is_mor:
        return
    kind, chance = args["kind"], random.Random(args["seed"])
    files = table.base_files()
    partitions = sorted({partition for partition, _ in files})
    busy = {group for each in writer.pending_clusterings(table) for group in _groups(table, each)}
    if not partitions or busy:  # nothing that a pending clustering rewrites is replaced
        return
    chosen = set(partitions if kind == "INSERT_OVERWRITE_TABLE" else [chance.choice(partitions)])
    world.next_ts += 1
    rows: list[writer.Row] = []
    if kind != "DELETE_PARTITION":
        for partition in sorted(chosen):
            world.next_id += 1
            rows.append({**world.templates[partition], "id": f"n{world.next_id:05d}", "ts": world.next_ts})

    def announce(time: str) -> None:
        world.settle()
        kept = {key: row for key, row in world.latest.items() if key[0] not in chosen}
        world.rows[time] = {**kept, **{world.key(row): row for row in rows}}

    def replaced() -> list[tuple[str, str]]:  # asked once failed writes are rolled back
        return [(partition, base.file_id) for partition, base in table.base_files() if partition in chosen]

    writer.replace(table, rows, replaced, kind, announce)


def _statement(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    if isinstance(world, RowsWorld):
        history_statements.statement(world, storage, args)


def _plan_clustering(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    if isinstance(world, RowsWorld) and "own" in args:
        history_statements.cluster(world, storage, args, schedule_only=True)
        return
    table = world.open(storage)
    if not _is_of_base_files(world, table):
        return
    busy = {group for each in writer.pending_clusterings(table) for group in _groups(table, each)}
    files = [(path, base) for path, base in table.base_files() if (path, base.file_id) not in busy]
    partitions = sorted({path for path, _ in files})
    if not partitions:
        return
    chosen = random.Random(args["seed"]).choice(partitions)

    def announce(time: str) -> None:
        world.settle()
        world.rows[time] = {}
        world.clusterings.add(time)

    groups = {chosen: [(base.file_id, base.name) for path, base in files if path == chosen]}
    writer.schedule_clustering(table, groups, announce)


def _cluster(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    if isinstance(world, RowsWorld) and "own" in args:
        history_statements.cluster(world, storage, args, schedule_only=False)
        return
    table = world.open(storage)
    if not _is_of_base_files(world, table):
        return
    pending = writer.pending_clusterings(table)
    if not pending:
        return

    def rows_of(groups: Any) -> list[writer.Row]:
        wanted = set(groups)
        files = [(path, base) for path, base in table.base_files() if (path, base.file_id) in wanted]
        found = world.rows_in(files)
        return [found[key] for key in sorted(found)]

    writer.execute_clustering(table, pending[0], rows_of)


def _plan_compaction(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    if isinstance(world, RowsWorld):
        history_statements.compact(world, storage, schedule_only=True)
    elif world.is_mor:
        history_deltas.schedule_compaction(world.open(storage), args["seed"], world.announce_files)


def _compact(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    if isinstance(world, RowsWorld):
        history_statements.compact(world, storage, schedule_only=False)
    elif world.is_mor:
        history_deltas.execute_compaction(world.open(storage))


def _is_of_base_files(world: World, table: Table) -> bool:
    """Whether the clusterings of the tests may rewrite it."""
    return not world.is_mor and not world.kind.buckets and table.config.table_type is TableType.COPY_ON_WRITE


def _groups(table: Table, instant: Any) -> Any:
    plan = table.contents.requested_replace(instant).clustering_plan
    return () if plan is None else plan.file_groups


# ------------------------------------------------------------------ services
def _clean(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    table = world.open(storage, metadata=args.get("metadata", "kind"), **args.get("settings", {}))
    table.clean(engine=ONE_THREAD, **args.get("options", {}))


def _plan_clean(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    table = world.open(storage, **args.get("settings", {}))
    table.services.clean(table.services.clean_config(**args.get("options", {})), engine=ONE_THREAD).schedule()


def _rollback(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    table = world.open(storage)
    writes = table.timeline.writes.instants
    if not writes:
        return
    target = writes[-1 - args["back"] % len(writes)].requested_time
    table.services.rollback().plan(target)  # a refusal condemns nothing
    world.condemned.add(target)
    table.rollback(target)


def _rollback_failed(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    world.open(storage).rollback_failed_writes()


def _savepoint(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    table = world.open(storage)
    commits = table.timeline.completed(Action.COMMIT, Action.REPLACE_COMMIT, Action.DELTA_COMMIT)
    if not commits:
        return
    time = commits[-1 - args["back"] % len(commits)].requested_time
    ttl, name = args.get("ttl"), args.get("name")
    held = world.savepoints.get(time)
    end = None if ttl is None else world.clock.now() + timedelta(hours=ttl)
    try:
        words: SavepointWords = {} if name is None else {"name": name}
        table.create_savepoint(time, ttl=None if ttl is None else f"{ttl}h", **words)
    finally:
        there = world.open().timeline.find(time, Action.SAVEPOINT)
        if there is not None and there.is_completed and time not in world.savepoints:
            world.savepoints[time] = end if held is None else held
            world.names |= {} if name is None else {time: name}
            if world.is_mor or world.is_known(time):
                world.saved[time] = {} if world.is_mor else world.expected_at(time)
            else:  # of a table of Apache Hudi, which could not be asked for that time as we began
                world.saved[time] = world.rows_at(world.open(), savepoint=time)
            if world.is_mor:
                world.saved_files[time] = world.files.needed(each for each in world.chain if each <= time)


def _release(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    times = sorted(world.savepoints)
    if not times:
        return
    time = times[-1 - args["back"] % len(times)]
    try:
        name = world.names.get(time, time)
        world.open(storage).delete_savepoint(name, archive_commit=args.get("archive_commit", False))
    finally:
        there = world.open().timeline.find(time, Action.SAVEPOINT)
        if there is None or not there.is_completed:
            world.forget_savepoint(time)


def _restore(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    times = sorted(world.savepoints)
    if not times:
        return
    table = world.open(storage)
    time = times[-1 - args["back"] % len(times)]
    plan = table.services.restore().plan(time)
    world.condemned.update(each.requested_time for each in plan.instants_to_rollback)
    table.restore(world.names.get(time, time))
    world.settle()
    if world.chain and world.chain[-1] != time:
        raise AssertionError(f"restore to {time} left {world.chain[-1]} as the newest commit")


def _archive(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    world.open(storage, **args.get("settings", {})).archive(
        keep_min_commits=args["keep"], keep_max_commits=args["keep"] + 1, archive_beyond_savepoint=args["beyond"]
    )


def _upkeep(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    world.open(storage, **{"hoodie.metadata.compact.max.delta.commits": args["delta_commits"]}).services.run_upkeep()


def _recover(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    table = world.open(storage)
    outcomes = table.recover()
    world.counts["recover: errors"] += sum(each.error is not None for each in outcomes)
    for each in outcomes:
        if each.error is not None:
            world.told.append(f"    recover: {each.finding.step.name} failed: {each.error}")
    if not world.open().timeline.pending():
        world.is_dirty = False


def _clock(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    world.clock.move(timedelta(hours=args["hours"]))


DO: Final[Mapping[str, Do]] = {
    "write": _write,
    "replace": _replace,
    "statement": _statement,
    "plan_clustering": _plan_clustering,
    "cluster": _cluster,
    "plan_compaction": _plan_compaction,
    "compact": _compact,
    "clean": _clean,
    "plan_clean": _plan_clean,
    "rollback": _rollback,
    "rollback_failed": _rollback_failed,
    "savepoint": _savepoint,
    "release": _release,
    "restore": _restore,
    "archive": _archive,
    "upkeep": _upkeep,
    "recover": _recover,
    "clock": _clock,
}
MAY_LEAVE_A_FAILED_WRITE: Final = frozenset(
    {"write", "replace", "statement", "cluster", "plan_clustering", "plan_compaction", "compact"}
)


# ------------------------------------------------------------------ steps that hold steps
class Meanwhile(Faulty):
    """Right before mutation *n* another process does something."""

    def __init__(self, inner: Storage, n: int, action: Callable[[], None]) -> None:
        super().__init__(inner, n)
        self.action = action

    def _hit(self, verb: str, paths: Paths, call: Callable[[], T], data: bytes) -> T:
        self.action()
        return call()


def perform(world: World, step: Step, storage: Storage | None = None) -> None:
    """
    Take one step.

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
    else:
        _plain(world, name, args, storage)


def _plain(world: World, name: str, args: Mapping[str, Any], storage: Storage) -> None:
    if name == "clean" and world.kind.lazy and storage is world.storage:  # documented to come before, refused or not
        world.open().services.failed_writes().with_clean()
    before = world.storage.files() if storage is world.storage else None
    try:
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
        try:
            with world.others_turn():
                perform(world, second)
        finally:
            world.settle()

    faulty = Meanwhile(cast("Storage", world.storage), args["n"], other)
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

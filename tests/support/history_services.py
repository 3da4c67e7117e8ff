"""Steps of table services: cleans, rollbacks, savepoints, restores, archival, upkeep and recovery."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from hudi_py.config.keys import CLEAN_QUARANTINE
from hudi_py.model.instant import Action
from hudi_py.services.savepoint.words import SavepointWords
from hudi_py.storage.base import Storage
from hudi_py.timeline import quarantine
from support.history_promises import OF_LEASES, answered_times
from support.history_world import ONE_THREAD, Do, World
from support.history_writer import pending_clusterings


def _clean(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    table = world.open(storage, metadata=args.get("metadata", "kind"), **args.get("settings", {}))
    is_kept = table.settings[CLEAN_QUARANTINE]
    before, known = answered_times(world) if is_kept else frozenset(), quarantine.removals(world.storage)
    try:
        table.clean(engine=ONE_THREAD, **args.get("options", {}))
    finally:
        new = [each for each in quarantine.removals(world.storage) if each not in known] if is_kept else []
        if len(new) == 1:  # several at once finish what was pending, and which of them took what is not told apart
            world.promises.answered[new[0]] = before


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
        is_new = there is not None and there.is_completed and time not in world.savepoints
        if is_new and not table.refresh().contents.savepoint(there).name.startswith(OF_LEASES):
            world.add_savepoint(time, end=end if held is None else held, name=name)


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


def _cancel(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    table = world.open(storage)
    plans = [*table.timeline.pending(Action.COMPACTION, Action.LOG_COMPACTION), *pending_clusterings(table)]
    if plans:
        instant = plans[args["back"] % len(plans)]
        cancels = {
            Action.COMPACTION: table.cancel_compaction,
            Action.LOG_COMPACTION: table.cancel_log_compaction,
        }
        cancels.get(instant.action, table.cancel_clustering)(instant.requested_time)


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


SERVICES: Final[Mapping[str, Do]] = {
    "clean": _clean,
    "plan_clean": _plan_clean,
    "rollback": _rollback,
    "rollback_failed": _rollback_failed,
    "savepoint": _savepoint,
    "release": _release,
    "restore": _restore,
    "archive": _archive,
    "upkeep": _upkeep,
    "cancel": _cancel,
    "recover": _recover,
    "clock": _clock,
}

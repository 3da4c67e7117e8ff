"""
Steps of those who keep what others would delete, and of those who look for what nobody needs.

Leases, the progress of a consumer, tags on a schedule, what comes back from quarantine, lists that a person approves,
orphans, and maintenance.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta, timezone
from tempfile import NamedTemporaryFile
from typing import Any, Final

import attrs

from hudi_py.config.keys import CLEAN_QUARANTINE
from hudi_py.model.files import format_base_file, join_path, parse_base_file, parse_data_file
from hudi_py.model.instant import Action
from hudi_py.model.removal_list import RemovalList
from hudi_py.storage.base import Storage
from hudi_py.storage.wrappers import ReadOnlyStorage
from hudi_py.timeline import quarantine
from hudi_py.timeline.leases import FOLDER as LEASES
from support.foretold import differences
from support.history_laws import REFUSALS, Violation
from support.history_promises import OF_LEASES, answered_times
from support.history_rows import RowsWorld
from support.history_world import Do, World

CONSUMER: Final = "job-7"
_REWRITES: Final = {
    "hoodie.compact.inline": True,
    "hoodie.compact.inline.max.delta.commits": 1,
    "hoodie.log.compaction.inline": True,
    "hoodie.clustering.inline": True,
    "hoodie.clustering.inline.max.commits": 1,
}
LEASES_MAX: Final = 2
"""At once; each of them is read after every step."""


# ------------------------------------------------------------------ readers
def _lease(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    table = world.open(storage)
    commits = table.timeline.commits.completed()
    if not commits or len(world.promises.leases) >= LEASES_MAX:
        return
    at = commits[-1 - args["back"] % len(commits)].requested_time if args["back"] else None
    try:
        lease = table.take_lease(
            ttl=f"{args['ttl']}h", at=at, holder="a reader", savepoint=args.get("savepoint", False)
        )
    finally:
        adopt_tags(world)
    world.promises.make(world, lease)


def _renew(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    for id_, promise in list(world.promises.leases.items())[-1:]:
        promise.lease = world.open(storage).renew_lease(id_, f"{args['ttl']}h")


def _let_go(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    for id_ in list(world.promises.leases)[:1]:
        del world.promises.leases[id_]  # also if the storage fails: its reader has gone
        if not world.open(storage).release_lease(id_):
            raise Violation("lease: gone", f"lease {id_} was there, and nobody released it")


def _consume(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    table = world.open(storage)
    until = table.changed_until()
    if until is None:
        return
    if args["back"]:  # it has read less: refused, or everything from there on stays
        ends = sorted(each.completion_time or each.requested_time for each in table.timeline.writes.completed())
        until = ends[-1 - args["back"] % len(ends)] if ends else until
    progress = table.consumer(CONSUMER).at(until, ttl=f"{args['ttl']}h")
    world.promises.read_until, world.promises.read_until_expires = progress.instant, progress.expires


def _tags(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    schedule = {f"hoodie_py.tags.{period}": args.get(period, 0) for period in ("hourly", "daily", "weekly", "monthly")}
    try:
        world.open(storage, **schedule).create_due_tags()
    finally:
        adopt_tags(world)


def adopt_tags(world: World) -> None:
    """The model learns which savepoints were made on schedule; what they must hold, it knows."""
    table = world.open()
    for instant in table.timeline.completed(Action.SAVEPOINT):
        time = instant.requested_time
        end = world.savepoints.get(time)
        if time in world.savepoints and (end is None or world.clock.now() < end):
            continue
        metadata = table.contents.savepoint(instant)
        # Its life is over, and one run may have deleted it and tagged its commit again, for a longer period.
        if time in world.savepoints and metadata.name == world.names.get(time, ""):
            continue
        if metadata.name.startswith(OF_LEASES):
            continue  # it goes with the lease, whose promise is kept track of
        end = metadata.expires_at_ms
        world.add_savepoint(
            time,
            end=None if end is None else datetime.fromtimestamp(end / 1000, timezone.utc),
            name=metadata.name or None,
        )


# ------------------------------------------------------------------ quarantine
def _undo(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    removals = quarantine.removals(world.storage)
    if not removals:
        return
    name = removals[-1 - args["back"] % len(removals)]
    with _no_strays_left(world):
        world.open(storage).undo(name)
    world.promises.check_back(world, name)


# ------------------------------------------------------------------ what a person decides
def _ask(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    """Nothing is written; much may happen until somebody answers."""
    before = world.storage.files()
    asked = world.open(storage, **args["settings"]).list_for_approval(**args["options"])
    if before != world.storage.files():
        raise Violation("approval: asking wrote", "a list was made, and the table is another one")
    world.promises.asked = RemovalList.parse(asked.text(), "list")


def _approve(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    """Exactly the approved files go, as far as they may."""
    asked, world.promises.asked = world.promises.asked, None
    if asked is None:
        return
    chance = random.Random(args["seed"])
    chosen = tuple(each for each in asked.files if chance.random() < args["share"])
    asked = attrs.evolve(asked, files=chosen, approved_by="ann")
    is_kept = CLEAN_QUARANTINE.name in asked.settings
    before, there = answered_times(world) if is_kept else frozenset(), world.storage.files().keys()
    known = quarantine.removals(world.storage)
    try:
        report = world.open(storage).remove_approved(asked)
    finally:
        for name in set(quarantine.removals(world.storage)).difference(known):
            world.promises.answered[name] = before
        gone = {path for path in there - world.storage.files().keys() if parse_data_file(path.rpartition("/")[2])}
        more = sorted(path for path in gone - asked.sizes.keys() if not path.startswith(".hoodie"))
        if more:
            raise Violation("approval: more than approved", f"{more[:3]} went, and nobody had approved that")
    untold = asked.sizes.keys() - {*report.removed, *report.kept, *report.failed}
    if untold or not gone <= {*report.removed, *report.failed}:
        raise Violation("approval: untold", f"{sorted(untold)[:3]} were not told, {sorted(gone)[:3]} went")
    world.counts["approve: files"] += len(report.removed)


# ------------------------------------------------------------------ files of no instant
def _orphans(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    with _no_strays_left(world):
        _put_strays(world, random.Random(args["seed"]))
        world.clock.move(timedelta(seconds=2))  # a file of this moment is too young
        before = world.storage.files().keys()
        table = world.open(storage)
        if args.get("asks"):
            asked = attrs.evolve(table.list_for_approval("orphans", older_than="0m"), approved_by="ann")
            found = table.remove_approved(asked, delete=args["delete"]).orphans
            assert found is not None
            report = found
        else:
            with _inventory(world) if args.get("inventory") else nullcontext(None) as listed:
                report = table.orphans(older_than="0m", delete=args["delete"], inventory=listed)
        gone = {path for path in before - world.storage.files().keys() if parse_base_file(path.rpartition("/")[2])}
        if not gone <= {*report.done, *report.failed}:
            raise Violation("orphans: more than told", f"{sorted(gone - set(report.done))[:3]} went, untold")
        world.counts["orphans: strays taken"] += len(world.strays.intersection(report.done))


@contextmanager
def _inventory(world: World) -> Iterator[str]:
    """Path of an inventory of the store, with the bucket's other files."""
    now_s = int(world.clock.now().timestamp())
    with NamedTemporaryFile("w", suffix=".csv") as file:
        rows = csv.writer(file)
        rows.writerow(("path", "size", "mtime"))
        rows.writerow(("/lake/elsewhere/a.parquet", 1, now_s))
        rows.writerows(
            (f"{world.storage.root}/{path}", len(data), now_s) for path, data in world.storage.files().items()
        )
        file.flush()
        yield file.name


def _put_strays(world: World, chance: random.Random) -> None:
    """Files of writes that nobody knows, between the times of writes; and a second file of a task that succeeded."""
    table = world.open()
    instants = [each.requested_time for each in table.timeline.writes]
    files = [] if world.is_mor else [
        (path, each.base_file)
        for path in table.partitions()
        for each in table.file_slices(path)
        if each.base_file is not None and each.base_file.extension == "parquet"
    ]  # fmt: skip
    if len(instants) < 2 or not files:
        return
    for number in range(chance.randint(1, 3)):
        path, base = chance.choice(files)
        time = chance.choice(instants[:-1])
        between = str(int(time) + 1 + number).zfill(len(time))
        if between in instants:
            continue
        content = world.storage.read(join_path(path, base.name))
        file_id = chance.choice((base.file_id, f"{chance.randbytes(16).hex()}-0"))
        stray = join_path(path, format_base_file(file_id, f"7-7-{number}", between))
        if chance.random() < 0.3:  # of two attempts of a task the commit names one
            stray = join_path(path, base.name.replace(f"_{base.write_token}_", f"_9-9-{number}_"))
        if world.storage.size(stray) is None:
            world.storage.replace(stray, content)
            world.strays.add(stray)


@contextmanager
def _no_strays_left(world: World) -> Iterator[None]:
    """
    After archival readers of every release would take them for rows, so none outlives a step but in quarantine.

    Those of a step that this one is done within stay until that ends.
    """
    outer = {path for path in world.strays if world.storage.size(path) is not None}
    try:
        yield
    finally:
        for path in world.strays - outer:
            world.storage.delete(path)


# ------------------------------------------------------------------ all that is due
def _maintain(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    settings = {
        "hoodie.clean.commits.retained": args["retained"],
        "hoodie.keep.min.commits": args["retained"] + 1,
        "hoodie.keep.max.commits": args["retained"] + 2,
        "hoodie_py.clean.quarantine": args["quarantine"],
        "hoodie_py.tags.hourly": args.get("hourly", 0),
    }
    if args.get("rewrites") and isinstance(world, RowsWorld):
        settings |= _REWRITES
    # On a storage that refuses to be written to, also by the threads of another process that stands still.
    shown = world.open(ReadOnlyStorage(world.storage), **settings).maintain(dry_run=True, max_deletes=args["max"])
    try:
        report = world.open(storage, **settings).maintain(max_deletes=args["max"])
    finally:
        adopt_tags(world)
    is_alone = storage is world.storage and not world.is_beside  # and nothing fails on the way
    unforeseen = differences(shown, report) if is_alone else []
    if unforeseen:
        raise Violation("dry run: another effect", "; ".join(unforeseen))
    for each in report.failed:
        world.told.append(f"    maintain: {each.step.value} failed: {each.error}")
        if each.error is not None and not isinstance(each.error, REFUSALS):
            raise each.error


KEEPING: Final[Mapping[str, Do]] = {
    "lease": _lease,
    "renew": _renew,
    "let_go": _let_go,
    "consume": _consume,
    "tags": _tags,
    "undo": _undo,
    "ask": _ask,
    "approve": _approve,
    "orphans": _orphans,
    "maintain": _maintain,
}
DAMAGED_LEASE: Final = f"{LEASES}/damaged.json"

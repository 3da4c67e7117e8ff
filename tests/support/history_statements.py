"""Writes of a history through `Table`: rows, statements, overwrites, drops of partitions, and write keys."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final

from hudi_py.config.table import TableType
from hudi_py.storage.base import Storage
from hudi_py.table import Table
from support.history_laws import Rows, Violation
from support.history_rows import APPLICATION, RowsWorld
from support.history_world import World
from support.history_writer import Row, pending_clusterings
from support.writes import ALONE


def some_rows(world: World, operation: str, chance: random.Random) -> list[Row]:
    """Some of the rows there are, some new ones, in some of the partitions."""
    partitions = sorted(world.templates)
    chosen = set(chance.sample(partitions, chance.randint(1, len(partitions)))) if partitions else set()
    latest = world.latest
    old = [latest[key] for key in sorted(latest) if key[0] in chosen and chance.random() < 0.5]
    world.new_ordering_value()
    if operation == "DELETE":
        return [{**row, "ts": world.next_ts} for row in old[:3]]
    new = []
    for partition in sorted(chosen):
        for _ in range(chance.randint(0 if old else 1, 2)):
            world.next_id += 1
            new.append({**world.templates[partition], "id": f"n{world.next_id:05d}", "ts": world.next_ts})
    changed = [{**row, "ts": world.next_ts} for row in old] if operation == "UPSERT" else []
    return sorted([*changed, *new], key=world.key)


def write(world: RowsWorld, storage: Storage, args: Mapping[str, Any]) -> None:
    """
    Rows by their keys.

    Args:
        world: The world.
        storage: That the writer has.
        args: ``operation``, ``seed``; ``stale`` for rows with an ordering value of the past; ``key`` for the version of
            a write key; ``small_files``, ``services``, ``metadata`` as for other tables; ``beside`` for the commits
            that a clean beside the write retains.
    """
    operation, chance = args["operation"], random.Random(args["seed"])
    rows = world.projected(some_rows(world, operation, chance))
    if not rows:
        return
    # In version 6 the latest row wins over a base file, and the larger ordering value over a row of a log file
    # (rules/data-files 9.3): then it depends on where the older row is, which the model does not know.
    is_told = world.is_ordered or world.open().config.table_type is TableType.COPY_ON_WRITE
    is_told = is_told and not world.is_mixed
    if args.get("stale") and operation == "UPSERT" and is_told:
        rows = [{**row, "ts": 1} for row in rows]
    if world.kind.global_index and operation == "UPSERT":
        rows = [
            world.moved(row, chance.choice(sorted(world.templates))) if chance.random() < 0.3 else row for row in rows
        ]
    given = {world.key(row): row for row in rows}

    def after(latest: Rows) -> Rows:
        if operation == "DELETE":
            return {key: row for key, row in latest.items() if key not in given}
        stored = {each[1]: each for each in latest} if world.kind.global_index else {}
        at = {key: stored.get(key[1], key) for key in given}  # a global index finds the row in any partition
        older = {
            k for k, row in given.items() if world.is_ordered and at[k] in latest and row["ts"] < latest[at[k]]["ts"]
        }
        kept = {key: row for key, row in latest.items() if key not in {at[k] for k in given if k not in older}}
        return {**kept, **{key: row for key, row in given.items() if key not in older}}

    limits = {} if args.get("small_files", True) else {"hoodie.parquet.small.file.limit": 0}
    # A thread of its own: only where neither calls are counted nor a lock is taken that nobody waits for.
    if args.get("beside") and storage is world.storage and not world.kind.lock:
        limits |= {
            "hoodie.clean.automatic": True, "hoodie.clean.async.enabled": True,
            "hoodie.clean.commits.retained": args["beside"],
        }  # fmt: skip
    table = _opened(world, storage, args, **limits)
    words, key = {}, args.get("key")
    if key is not None:
        words = {"write_key": (APPLICATION, key)}
        if key <= world.newest_key:
            done = getattr(table, operation.lower())(world.arrow(rows), **words)
            if not done.is_repeated:
                raise Violation("write key: written twice", f"version {key} of {world.newest_key} was written again")
            return
    world.means(after, key)
    getattr(table, operation.lower())(world.arrow(rows), **words)
    if args.get("services"):
        world.settle()
        serving = world.open(storage)
        serving.clean(**args["services"])
        serving.services.archive().run()
        serving.services.run_upkeep()


def statement(world: RowsWorld, storage: Storage, args: Mapping[str, Any]) -> None:
    """An update, delete or merge by a condition; *args*: ``what``, ``seed``."""
    chance, latest = random.Random(args["seed"]), world.latest
    if not latest:
        return
    bound = chance.choice(sorted(row["ts"] for row in latest.values()))
    table = _opened(world, storage, args)
    if args["what"] == "delete":
        world.means(lambda rows: {key: row for key, row in rows.items() if row["ts"] < bound})
        table.delete(where=("ts", ">=", bound))
    elif args["what"] == "update":
        more = 1 if world.is_mixed else chance.choice((1, -1))
        world.means(lambda rows: {k: {**r, "ts": r["ts"] + more} if r["ts"] <= bound else r for k, r in rows.items()})
        table.update({"ts": f"ts + {more}"}, where=("ts", "<=", bound))
    else:
        _merge(world, table, chance)


def _merge(world: RowsWorld, table: Table, chance: random.Random) -> None:
    rows = world.projected(some_rows(world, "UPSERT", chance))
    given = {world.key(row): row for row in rows}
    deletes, inserts = chance.random() < 0.3, chance.random() < 0.7

    def after(latest: Rows) -> Rows:
        met = given.keys() & latest.keys()
        new = {key: row for key, row in given.items() if inserts and key not in met}
        changed = {} if deletes else {key: given[key] for key in met}
        return {**{k: row for k, row in latest.items() if not (deletes and k in met)}, **changed, **new}

    world.means(after)
    merge = table.merge(world.arrow(rows), on=["id", *table.config.partition_fields])
    merge = merge.when_matched_delete() if deletes else merge.when_matched_update()
    (merge.when_not_matched_insert() if inserts else merge).execute()


def replace(world: RowsWorld, storage: Storage, args: Mapping[str, Any]) -> None:
    """An overwrite, or a drop of a partition; *args*: ``kind``, ``seed``."""
    kind, chance = args["kind"], random.Random(args["seed"])
    table = _opened(world, storage, args)
    partitions = sorted({partition for partition, _ in world.latest})
    if not partitions or pending_clusterings(table):
        return
    chosen = set(partitions if kind == "INSERT_OVERWRITE_TABLE" else [chance.choice(partitions)])
    world.new_ordering_value()
    rows: list[Row] = []
    for partition in sorted(chosen):
        world.next_id += 1
        rows += world.projected([{**world.templates[partition], "id": f"n{world.next_id:05d}", "ts": world.next_ts}])

    def after(latest: Rows) -> Rows:
        kept = {key: row for key, row in latest.items() if key[0] not in chosen and kind != "INSERT_OVERWRITE_TABLE"}
        return {**kept, **({} if kind == "DELETE_PARTITION" else {world.key(row): row for row in rows})}

    world.means(after)
    if kind == "DELETE_PARTITION":
        table.drop_partitions(sorted(chosen))
    else:
        getattr(table, kind.lower())(world.arrow(rows))


def compact(world: RowsWorld, storage: Storage, *, schedule_only: bool) -> None:
    """Plan a compaction, or plan one where none is pending and carry all out."""
    table = _opened(world, storage, {}, **{"hoodie.compact.inline.max.delta.commits": 1})
    if table.config.table_type is TableType.MERGE_ON_READ:
        if schedule_only:
            table.schedule_compaction()
        else:
            table.compact()


def compact_logs(world: RowsWorld, storage: Storage, args: Mapping[str, Any], *, schedule_only: bool) -> None:
    """Plan a log compaction, or carry out what is pending and plan one; *args*: ``blocks`` that a slice must have."""
    table = _opened(world, storage, {}, **{"hoodie.log.compaction.blocks.threshold": args["blocks"]})
    if table.config.table_type is TableType.MERGE_ON_READ:
        done = table.schedule_log_compaction() if schedule_only else table.compact_logs()
        world.counts["log compactions: some" if done else "log compactions: none"] += 1


def cluster(world: RowsWorld, storage: Storage, args: Mapping[str, Any], *, schedule_only: bool) -> None:
    """Plan a clustering, or carry out what is pending and plan one; *args*: ``own``, the way to sort."""
    table = _opened(world, storage, args)
    options = _SORTED[args["own"] % len(_SORTED)]
    if schedule_only:
        config = table.services.clustering_config(**options)
        table.services.clustering(config).schedule()
    else:
        table.cluster(**options)


_SORTED: Final[tuple[dict[str, Any], ...]] = (
    {"sort_by": (), "layout": None},
    {"sort_by": ("ts",), "layout": "linear"},
    {"sort_by": ("ts", "id"), "layout": "z-order"},
    {"sort_by": ("id", "ts"), "layout": "hilbert"},
)


def _opened(world: RowsWorld, storage: Storage, args: Mapping[str, Any], **settings: Any) -> Table:
    metadata = args.get("metadata", "kind")
    return world.open(storage, metadata=metadata, **{**ALONE, **world.write_settings, **settings})

"""Steps of writers: rows, replacements, statements, clusterings and compactions."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final

from hudi_py.config.table import TableType
from hudi_py.storage.base import Storage
from hudi_py.table import Table
from support import history_deltas, history_statements
from support import history_writer as writer
from support.history_rows import RowsWorld
from support.history_statements import some_rows
from support.history_world import ONE_THREAD, Do, World


def _write(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    if isinstance(world, RowsWorld):
        history_statements.write(world, storage, args)
        return
    table = world.open(storage, metadata=args.get("metadata", "kind"), **args.get("settings", {}))
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


def _plan_log_compaction(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    if isinstance(world, RowsWorld):
        history_statements.compact_logs(world, storage, args, schedule_only=True)


def _compact_logs(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    if isinstance(world, RowsWorld):
        history_statements.compact_logs(world, storage, args, schedule_only=False)


def _is_of_base_files(world: World, table: Table) -> bool:
    """Whether the clusterings of the tests may rewrite it."""
    return not world.is_mor and not world.kind.buckets and table.config.table_type is TableType.COPY_ON_WRITE


def _groups(table: Table, instant: Any) -> Any:
    plan = table.contents.requested_replace(instant).clustering_plan
    return () if plan is None else plan.file_groups


WRITES: Final[Mapping[str, Do]] = {
    "write": _write,
    "replace": _replace,
    "statement": _statement,
    "plan_clustering": _plan_clustering,
    "cluster": _cluster,
    "plan_compaction": _plan_compaction,
    "compact": _compact,
    "plan_log_compaction": _plan_log_compaction,
    "compact_logs": _compact_logs,
}

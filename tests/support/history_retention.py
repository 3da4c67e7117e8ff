"""Steps of those who decide how long rows stay: expiry of partitions, and the switch against all deletion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta, timezone
from typing import Any, Final

from hudi_py.model.files import parse_base_file, parse_log_file
from hudi_py.model.instant_time import parse_instant_time
from hudi_py.storage.base import Storage
from support.history_laws import Rows, Violation
from support.history_rows import RowsWorld
from support.history_world import Do, World
from support.history_writer import pending_clusterings
from support.tables import data_files
from support.writes import ALONE


# ------------------------------------------------------------------ expiry
def _expire(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    if not isinstance(world, RowsWorld):
        return
    table = world.open(storage, **{**ALONE, **world.write_settings})
    if not table.config.is_partitioned or pending_clusterings(table):
        return
    options = {"days": args["days"], "by": args["by"], "max_partitions": args["max"]}
    expired = set(table.expire_partitions(dry_run=True, **options).plan.expired)
    if args["by"] == "last-change":
        for partition in sorted(expired):
            _refuse_young(world, partition, timedelta(days=args["days"]))

    def after(latest: Rows) -> Rows:
        return {key: row for key, row in latest.items() if key[0] not in expired}

    if expired:
        world.means(after)
    report = table.expire_partitions(**options)
    if not set(report.plan.expired) <= expired:
        raise Violation("expiry: more than told", f"{report.plan.expired} expired, the dry run said {sorted(expired)}")
    expired.intersection_update(report.plan.expired)  # others may have written to some since
    if not expired:
        world.intent = None


def _refuse_young(world: World, partition: str, age: timedelta) -> None:
    """By the model: when rows of the partition last became others."""
    known = [time for time in world.chain if time not in world.clusterings | world.unknown | world.cut]
    for earlier, time in zip([None, *known], known, strict=False):
        before = {} if earlier is None else _of(world.rows[earlier], partition)
        changed = parse_instant_time(time, timezone.utc)
        if _of(world.rows[time], partition) != before and changed + age >= world.clock.now():
            raise Violation("expiry: too young", f"partition {partition!r} changed at {time}, and expires")


def _of(rows: Rows, partition: str) -> Rows:
    """Without nulls: a column that another partition's write added changes no row of this one."""
    return {key: _without_nulls(row) for key, row in rows.items() if key[0] == partition}


def _without_nulls(row: Any) -> Any:
    return {name: value for name, value in row.items() if value is not None} if isinstance(row, dict) else row


# ------------------------------------------------------------------ the switch
def _forbid(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    world.open(storage).forbid_deletion()


def _allow(world: World, storage: Storage, args: Mapping[str, Any]) -> None:
    world.open(storage).allow_deletion()


def guard(world: World, names: frozenset[str]) -> Callable[[], None]:
    """
    Begin a step; what is returned, called after it, refuses that it deleted rows although deletion was forbidden.

    Args:
        names: Names of the step and of all steps within it.
    """
    if "allow" in names or world.open().deletion_forbidden is None:
        return lambda: None
    before = files_with_rows(world)

    def check() -> None:
        lost = sorted(before.difference(data_files(world.storage)))
        if lost:
            raise Violation(
                "switch: files deleted", f"{len(lost)} files with rows, although it is forbidden: {lost[:3]}"
            )

    return check


def files_with_rows(world: World) -> set[str]:
    """Paths of the data files that completed writes wrote."""
    return {path for path in data_files(world.storage) if _time_of(path) in world.chain}


def _time_of(path: str) -> str | None:
    name = path.rpartition("/")[2]
    parsed = parse_base_file(name) or parse_log_file(name)
    return None if parsed is None else parsed.instant_time


RETENTION: Final[Mapping[str, Do]] = {"expire": _expire, "forbid": _forbid, "allow": _allow}

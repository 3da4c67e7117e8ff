"""Writers of one table, for the simulation: what each does, the table they meet on, and what may come of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import ConflictError, HudiError, ServiceFailed
from hudi_py.local.rows import ArrowRows
from hudi_py.model.instant import Action
from hudi_py.services.rollback.plan import RUN_AGAIN
from hudi_py.storage.base import Storage
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.retry import Retry
from hudi_py.table_merge import Clause, Merge, Rows
from hudi_py.table_statements import rows_to_delete, rows_to_update
from hudi_py.timeline import quarantine
from hudi_py.timeline.archive import load_archived
from hudi_py.write_service import WriteService
from support import writes
from support.simulation import Outcome, SerialOrders, Work, drawn_schedule, is_shared_or_file, schedules
from support.upgrading import upgrade

FILE_LOCK = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
SEVERAL = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": FILE_LOCK,
    "hoodie.write.lock.client.wait_time_ms_between_retry": 0,
    "hoodie.write.lock.wait_time_ms": 0,
    "hoodie.write.lock.client.num_retries": 1000,
    "hoodie.parquet.small.file.limit": 0,
}
METADATA = {
    "hoodie.metadata.enable": True,
    "hoodie.metadata.record.index.enable": True,
    "hoodie.metadata.compact.max.delta.commits": 2,
}
"""A metadata table that is compacted often, with an index of keys."""
AT_ONCE = Retry(sleep=lambda _: None, clock=lambda: 0.0, chance=lambda: 0.0)


def service(storage: Storage, **settings: Any) -> WriteService:
    """A writer that does not wait between its attempts, nor clean or archive."""
    opened = writes.open_table(storage, **{**SEVERAL, **settings})
    values = opened.settings.merged(writes.ALONE)
    return WriteService(storage, values, opened.services.metadata_table.clock, LocalEngine, delays=AT_ONCE)


def rows(*given: tuple[str, str, int]) -> ArrowRows:
    """Rows of the key, the partition and the ordering value."""
    listed = [{"id": key, "region": region, "ts": ts} for key, region, ts in given]
    return ArrowRows(pa.Table.from_pylist(listed, schema=writes.SCHEMA))


class DuringWhich:
    """Rows that have been written to their files, though not committed, when another process does something."""

    def __init__(self, given: list[tuple[str, str, int]], then: Callable[[], object]) -> None:
        self.rows, self.then = rows(*given), then
        self.schema = self.rows.schema

    def shaped(self, *_: Any, **__: Any) -> DuringWhich:
        return self

    def checked(self, *_: Any, **__: Any) -> DuringWhich:
        return self

    def write(self, job: Any) -> Any:
        results = self.rows.write(job)
        self.then()
        return results


SOURCE = pa.table({"id": ["a", "n"], "region": ["eu", "eu"], "ts": [50, 50]})
WIDER = ArrowRows(pa.table({"id": ["a"], "region": ["eu"], "ts": [11], "more": ["x"]}))


def _written(operation: str, *given: tuple[str, str, int]) -> Callable[..., Any]:
    return lambda storage, **settings: service(storage, **settings).write(rows(*given), operation)


ACTORS: dict[str, Callable[..., Any]] = {
    "upsert": _written("UPSERT", ("a", "eu", 5)),
    "upsert new": _written("UPSERT", ("n", "eu", 6), ("b", "us", 6)),
    "delete": _written("DELETE", ("a", "eu", 0), ("n", "eu", 0)),
    "insert": _written("INSERT", ("n", "eu", 7)),
    "bulk_insert": _written("BULK_INSERT", ("c", "eu", 8)),
    "insert_overwrite": _written("INSERT_OVERWRITE", ("n", "eu", 9)),
    "insert_overwrite_table": _written("INSERT_OVERWRITE_TABLE", ("n", "us", 10)),
    "drop": lambda storage, **settings: service(storage, **settings).drop_partitions(["eu"]),
    "update where": lambda storage, **settings: service(storage, **settings).change(
        rows_to_update({"ts": "ts + 100"}, "ts > 4"), "UPSERT"
    ),
    "delete where": lambda storage, **settings: service(storage, **settings).change(rows_to_delete("ts > 5"), "DELETE"),
}
ACTORS["merge"] = lambda storage, **settings: service(storage, **settings).change(
    Merge(source=SOURCE, on=("id", "region"), clauses=(Clause(rows=Rows.MATCHED), Clause(rows=Rows.NEW))), "UPSERT"
)
ACTORS["insert unknown"] = lambda storage, **settings: service(
    storage, **{"hoodie.datasource.write.insert.drop.duplicates": True, **settings}
).write(rows(("a", "eu", 12), ("n", "eu", 12)), "INSERT")
ACTORS["impatient upsert"] = lambda storage, **settings: service(
    storage, **{"hoodie.write.num.retries.on.conflict.failures": 0, **settings}
).write(rows(("a", "eu", 3)), "UPSERT")
SERVICES: dict[str, Callable[..., Any]] = {
    "clean": lambda storage, **settings: writes.open_table(storage, **{**SEVERAL, **settings}).clean(
        file_versions_retained=1
    ),
    "savepoint": lambda storage, **settings: _open(storage, settings).create_savepoint(_newest(storage)),
    "rollback": lambda storage, **settings: _open(storage, settings).rollback(_newest(storage)),
    "compact": lambda storage, **settings: _open(
        storage, {**settings, "hoodie.compact.inline.max.delta.commits": 1}
    ).compact(),
    "cluster": lambda storage, **settings: _open(storage, settings).cluster(),
    "archive": lambda storage, **settings: _open(storage, settings).archive(keep_min_commits=1, keep_max_commits=2),
    "rollback pending": lambda storage, **_: _roll_back_pending(storage),
    "compact logs": lambda storage, **settings: _open(
        storage, {**settings, "hoodie.log.compaction.blocks.threshold": 2}
    ).compact_logs(),
    "restore": lambda storage, **settings: _open(storage, settings).restore(_savepoint(storage)),
    "unpin": lambda storage, **settings: _open(storage, settings).delete_savepoint(_savepoint(storage)),
    "new column": lambda storage, **settings: service(storage, **settings).write(WIDER, "UPSERT"),
    "lease": lambda storage, **settings: _read_twice(_open(storage, settings)),
    "tag": lambda storage, **settings: _open(storage, {**settings, "hoodie_py.tags.hourly": 2}).create_due_tags(),
    "orphans": lambda storage, **settings: _open(storage, settings).orphans(older_than="0m", delete=True),
    "undo": lambda storage, **settings: _undo(_open(storage, settings)),
    "maintain": lambda storage, **settings: _all_done(_open(storage, settings).maintain()),
    "forbid": lambda storage, **settings: _open(storage, settings).forbid_deletion(),
    "policy": lambda storage, **settings: _open(storage, settings).apply_policy("[keep]\nversions = 1\n"),
    "empty": lambda storage, **settings: _open(storage, settings).empty_quarantine(),
    "expire": lambda storage, **settings: _open(storage, settings).expire_partitions(
        days=1, now=writes.START + timedelta(days=400)
    ),
    "recover": lambda storage, **settings: _open(storage, settings).recover(),
    "plan compaction": lambda storage, **settings: _open(
        storage, {**settings, "hoodie.compact.inline.max.delta.commits": 1}
    ).schedule_compaction(),
    "plan clustering": lambda storage, **settings: _open(storage, settings).services.clustering().schedule(),
    "upgrade": lambda storage, **settings: upgrade(
        _open(storage, {**settings, "hoodie.compact.inline.max.delta.commits": 1})
    ),
}
_PINNED = frozenset({"restore", "unpin"})
"""They need a savepoint, which the others then find."""
_OF_QUARANTINE = frozenset({"undo", "empty"})
"""They need files in quarantine; beside the second their time is over."""


def _open(storage: Storage, settings: dict[str, Any]) -> Any:
    return writes.open_table(storage, **{**SEVERAL, **settings})


def _roll_back_pending(storage: Storage) -> None:
    """Another process takes running writes for failed: to it their heartbeats are gone."""
    for each in writes.open_table(storage).timeline.writes.pending():
        storage.delete(f".hoodie/.heartbeat/{each.requested_time}")
    _open(storage, {}).rollback_failed_writes()


def _savepoint(storage: Storage) -> str:
    """Requested time of the commit that was pinned, whoever has unpinned it since."""
    return writes.open_table(storage).timeline.commits.completed()[0].requested_time


def _read_twice(table: Any) -> None:
    """What a lease keeps is there as often as it is read, whatever others do meanwhile."""
    with table.lease(ttl="1h") as snapshot:
        first = _sorted(snapshot.rows())
        _newest(table.storage)  # looks at the timeline, so others go on here
        assert _sorted(snapshot.rows()) == first


def _undo(table: Any) -> None:
    for name in quarantine.removals(table.storage):
        table.undo(name)


def _all_done(report: Any) -> None:
    """A step that failed fails the whole, as a process tells by its exit code."""
    for each in report.failed:
        raise ServiceFailed(f"{each.step.value}: {each.error}")


def _newest(storage: Storage) -> str:
    return writes.open_table(storage).timeline.commits.completed()[-1].requested_time


def table(
    version: int,
    kind: str = "COPY_ON_WRITE",
    names: tuple[str, ...] = (),
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> MemoryStorage:
    """
    A table with two commits and three rows, written with *settings*; of a merge-on-read table one lies in a log file.

    What some of *names* need is there, too: a savepoint of the first commit, a second log file, or files in quarantine.
    """
    storage = writes.create_table(version, **{"hoodie.table.type": kind})
    writes.upsert(storage, [*writes.OLD, {"id": "d", "region": "eu", "ts": 3}], **settings)
    if _PINNED & set(names):
        writes.open_table(storage, **settings).create_savepoint(_newest(storage))
    if "compact logs" in names:
        writes.upsert(storage, [{"id": "d", "region": "eu", "ts": 3}], **settings)
    writes.upsert(storage, [{"id": "d", "region": "eu", "ts": 4}], **settings)
    if _OF_QUARANTINE & set(names):
        grace = {"hoodie_py.quarantine.grace": "1m"} if "empty" in names else {}
        quarantining = {**settings, **grace, "hoodie_py.clean.quarantine": True}
        writes.open_table(storage, **quarantining).clean(file_versions_retained=1)
    return storage


def contents(storage: Storage) -> list[tuple[str, str, int]]:
    """All rows, sorted: a key that is there twice is seen."""
    return _sorted(writes.open_table(storage).rows())


def _sorted(rows: Any) -> list[tuple[str, str, int]]:
    found = rows.to_arrow()
    if not found.num_rows:  # without any commit there are no columns either
        return []
    return sorted((row["region"], row["id"], row["ts"]) for row in found.select(writes.SCHEMA.names).to_pylist())


def violations(
    version: int,
    names: tuple[str, ...],
    bound: int,
    kind: str = "COPY_ON_WRITE",
    counts: Callable[[str, str], bool] = is_shared_or_file,
    **settings: Any,
) -> Iterator[str | None]:
    """
    Run actors in every schedule with at most *bound* preemptions, on a table of that version and type.

    Yields:
        For each schedule what is wrong with its outcome; None if nothing is.
    """
    start = table(version, kind, names, settings)
    actors = _works(names, settings)
    serial = SerialOrders(start.copy, actors, contents)
    for outcome in schedules(start.copy, actors, bound, counts):
        yield _violation(names, outcome, serial)


def drawn_violations(
    version: int,
    names: tuple[str, ...],
    chance: random.Random,
    count: int,
    kind: str = "COPY_ON_WRITE",
    **settings: Any,
) -> Iterator[str | None]:
    """As `violations`, for so many schedules with one preemption, or two, each at a random call."""
    start = table(version, kind, names, settings)
    actors = _works(names, settings)
    serial = SerialOrders(start.copy, actors, contents)
    for _ in range(count):
        yield _violation(names, drawn_schedule(start.copy, actors, chance, is_shared_or_file), serial)


def _works(names: tuple[str, ...], settings: dict[str, Any]) -> list[Work]:
    known = {**ACTORS, **SERVICES}
    return [lambda storage, work=known[name]: work(storage, **settings) for name in names]


def _after_it(storage: MemoryStorage) -> None:
    for each in writes.open_table(storage).timeline.pending(*RUN_AGAIN):
        SERVICES["compact" if each.action is Action.COMPACTION else "cluster"](storage)
    SERVICES["expire"](storage)


def _stray_files(opened: Any, storage: MemoryStorage) -> list[str]:
    """Data files that a write left which is neither completed nor pending: later they could be taken for rows."""
    store = opened.contents.store
    known = {each.requested_time for each in (*store.load(), *load_archived(store.storage, store.config))}
    return [path for path in storage.files() if writes.is_data(path) and not any(time in path for time in known)]


def _violation(names: tuple[str, ...], outcome: Outcome, serial: SerialOrders) -> str | None:
    succeeded = [number for number, error in enumerate(outcome.errors) if error is None]
    expected = serial.of(succeeded)
    # Two that chose the same commit are one: the second finishes what the first began, and both have succeeded.
    first = next((number for number in succeeded if names[number] == "rollback"), None)
    joined = [number for number in succeeded if names[number] != "rollback" or number == first]
    if joined != succeeded:
        expected += serial.of(joined)
    # What a recovery has finished is done, though whoever began it is told that another process was faster.
    overtaken = [number for number, error in enumerate(outcome.errors) if isinstance(error, ConflictError)]
    finished = [number for number in overtaken if names[number] in SERVICES]
    if finished and {"recover", "upgrade"} & set(names):
        expected += serial.of(sorted([*succeeded, *finished]))
    if any(names[number] == "expire" for number in succeeded):
        # Partitions with a pending compaction or clustering wait for it, as the report says, and for the next run.
        _after_it(outcome.storage)
    try:
        found = contents(outcome.storage)
    except HudiError as error:
        return f"{names}: {outcome}: the rows cannot be read: {error}"
    if found not in expected:
        return f"{names}: {outcome}: {found} is none of {expected}"
    opened = writes.open_table(outcome.storage)
    # A rewrite that was taken back is a plan again, which the next run carries out.
    left = [
        each
        for each in opened.timeline.pending()
        if each.action not in (Action.ROLLBACK, *RUN_AGAIN)
        and not opened.contents.is_clustering(each)
        # Where deletion is forbidden, a clean stays planned until it is allowed again; an upgrade moves it on as it is.
        and not (each.action is Action.CLEAN and {"forbid", "upgrade"} & set(names))
    ]
    if left:
        return f"{names}: {outcome}: {left} left pending"
    stray = _stray_files(opened, outcome.storage)
    if stray:
        return f"{names}: {outcome}: {stray} belong to nothing"
    wrong = [each for each in opened.check() if each.severity.name == "ERROR"]
    return f"{names}: {outcome}: {wrong}" if wrong else None

"""Looking at a table as a whole: the facts that recovery judges by. Nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from hudi_py.config import keys
from hudi_py.config.concurrency import failed_writes_policy
from hudi_py.config.keys import Settings
from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.formats.archive_log import archive_file_number, decode_archive_log
from hudi_py.formats.instant_content import decode_content
from hudi_py.formats.lsm_history import read_history
from hudi_py.formats.records_codec import decode_restore_metadata, decode_rollback_metadata
from hudi_py.fsview.listing import walk_partitions
from hudi_py.model.files import join_path, parse_base_file, parse_log_file
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import InstantInfo, RollbackMetadata
from hudi_py.services.recovery.facts import Aged, Facts, FilesOfNoInstant, Health, Undone, may_run_again
from hudi_py.services.recovery.look_metadata import look_at_metadata_table
from hudi_py.storage.base import Storage
from hudi_py.timeline.archive import load_archived, newest_snapshot
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.heartbeat import Rhythm, heartbeat_ages
from hudi_py.timeline.markers import instants_with_markers
from hudi_py.timeline.properties_file import unfinished_rewrite
from hudi_py.timeline.timeline import Timeline

T = TypeVar("T")
R = TypeVar("R")

_REMOTE_THREADS: Final = 16
_FIRST_TIME: Final = "00000000000100"
"""Times below stand for the initial load of a table, not for a write."""


def look(contents: Contents, table: TableConfig, settings: Settings) -> Facts:
    """
    Read everything.

    Raises:
        StorageError: The storage refused or is away.
    """
    store = contents.store
    timeline = store.load()
    health, damage = _health(contents, timeline)
    undone = _undone(contents, timeline)
    clusterings = frozenset(
        each.requested_time
        for each in timeline.pending(Action.REPLACE_COMMIT)
        if health.get(_key(each, State.REQUESTED)) is Health.GOOD and contents.is_clustering(each)
    )
    strangers = _strangers(store.storage, store.load, timeline, frozenset(undone), layout=table.layout_version)
    markers = instants_with_markers(store.storage)
    known = {each.requested_time for each in timeline}
    archived = None
    if strangers or any(time not in known for time in markers):
        archived, more = _archive(store.storage, table)
        undone = {**more, **undone}
    ages = heartbeat_ages(store.storage, store.clock)
    rhythm = Rhythm.of(settings)
    out_of_step = look_at_metadata_table(contents, table, settings, timeline, clusterings)
    lock = _lock(store.storage, settings, now_ms=_now_ms(contents))
    return Facts(
        timeline=timeline,
        health=health,
        plan_damage=damage,
        clusterings=clusterings,
        rollback_targets=_rollback_targets(contents, timeline, health),
        policy=failed_writes_policy(settings),
        heartbeats=ages,
        expiry_ms=rhythm.expiry_ms,
        markers=markers,
        undone=undone,
        archived=archived,
        strangers=strangers,
        properties_problem=unfinished_rewrite(store.storage),
        metadata_problem=out_of_step.problem,
        lost=out_of_step.lost,
        temporary=tuple(_temporary(store.storage, now_ms=_now_ms(contents))),
        lock=lock,
        lock_expiry_ms=settings[keys.LOCK_FILE_EXPIRE_MINUTES] * 60_000,
    )


def _key(instant: Instant, state: State) -> tuple[str, Action, State]:
    return (instant.requested_time, instant.action, state)


def _now_ms(contents: Contents) -> int:
    return int(contents.store.clock.now().timestamp() * 1000)


def _health(
    contents: Contents, timeline: Timeline
) -> tuple[dict[tuple[str, Action, State], Health], dict[tuple[str, Action, State], str]]:
    """Of all files of pending instants, and of each completed file and the plan behind it."""
    store = contents.store
    pending = {(each.requested_time, each.comparable_action) for each in timeline if each.is_pending}
    wanted = [
        each
        for each in timeline.all_states
        if each.is_completed
        or (each.requested_time, each.comparable_action) in pending
        or (each.action in (Action.CLEAN, Action.ROLLBACK) and each.state is State.REQUESTED)
    ]

    def judged(instant: Instant) -> tuple[Instant, Health, str]:
        try:
            data = store.storage.read(store.path(instant))
        except NotFound:
            return instant, Health.ABSENT, ""
        if not data:
            return instant, Health.EMPTY, ""
        try:
            decode_content(data, instant.file_name or store.path(instant))
        except CorruptMetadata as error:
            return instant, Health.DAMAGED, str(error)
        return instant, Health.GOOD, ""

    results = list(_mapped(store.storage, judged, wanted))
    return (
        {_key(each, each.state): health for each, health, _ in results},
        {_key(each, each.state): why for each, health, why in results if health is Health.DAMAGED},
    )


def _mapped(storage: Storage, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """On object stores many at once: each is a round trip."""
    if "://" not in storage.root:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(_REMOTE_THREADS) as pool:
        yield from pool.map(function, items)


def _rollback_targets(
    contents: Contents, timeline: Timeline, health: dict[tuple[str, Action, State], Health]
) -> dict[str, InstantInfo]:
    targets = {}
    for each in timeline.of((Action.ROLLBACK,)):
        if each.is_completed and health.get(_key(each, State.COMPLETED)) is Health.GOOD:
            continue
        if health.get(_key(each, State.REQUESTED)) is not Health.GOOD:
            continue
        plan = _readable(lambda each=each: contents.rollback_plan(each))  # type: ignore[misc]
        if plan is not None and plan.instant_to_rollback is not None:
            targets[each.requested_time] = plan.instant_to_rollback
    return targets


def _undone(contents: Contents, timeline: Timeline) -> dict[str, Undone]:
    found = {}
    for each in timeline.completed(Action.ROLLBACK):
        rollback = _readable(lambda each=each: contents.rollback(each))  # type: ignore[misc]
        for undone in () if rollback is None else _taken_back(rollback, str(each)):
            found[undone.requested_time] = undone
    store = contents.store
    for each in timeline.completed(Action.RESTORE):
        restore = _readable(lambda each=each: decode_restore_metadata(store.read(each), store.path(each)))  # type: ignore[misc]
        for time in () if restore is None else restore.instants_to_rollback:
            found[time] = Undone(time, str(each))
    return found


def _taken_back(rollback: RollbackMetadata, by: str) -> Iterator[Undone]:
    actions = {each.requested_time: each.action for each in rollback.instants_rollback}
    for time in rollback.commits_rollback:
        yield Undone(time, by, may_run_again(actions.get(time, "")))


def _readable(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except (CorruptMetadata, NotFound):
        return None


def _archive(storage: Storage, table: TableConfig) -> tuple[frozenset[str] | None, dict[str, Undone]]:
    """Times of all archived instants but rollbacks and cleans, and what archived rollbacks took back."""
    try:
        instants = load_archived(storage, table).instants
        undone = dict(_archived_rollbacks(storage, table))
    except (CorruptMetadata, NotFound):
        return None, {}
    completed = {each for each in instants if each.is_completed}
    times = {each.requested_time for each in completed if each.action not in (Action.ROLLBACK, Action.CLEAN)}
    return frozenset(times), undone


def _archived_rollbacks(storage: Storage, table: TableConfig) -> Iterator[tuple[str, Undone]]:
    folder = table.history_folder
    names = [entry.name for entry in storage.list(folder) if not entry.is_folder]
    if table.layout_version == 1:
        for name in names:
            if archive_file_number(name) is None:
                continue
            for entry in decode_archive_log(storage.read(f"{folder}/{name}"), name):
                if entry.action == "rollback" and entry.payload is not None:
                    named = entry.payload.get("instantsRollback") or ()
                    actions = {each["commitTime"]: each["action"] for each in named}
                    for time in entry.payload.get("commitsRollback") or ():
                        again = may_run_again(actions.get(time, ""))
                        yield time, Undone(time, f"the archived rollback {entry.requested_time}", again)
        return
    for file in newest_snapshot(storage, folder, names).files:
        with storage.open_read(f"{folder}/{file.name}") as stream:
            for row in read_history(stream, file.name, with_contents=True):
                if row.action == "rollback" and row.metadata is not None:
                    rollback = decode_rollback_metadata(row.metadata, file.name)
                    for undone in _taken_back(rollback, f"the archived rollback {row.requested_time}"):
                        yield undone.requested_time, undone


def _strangers(
    storage: Storage, load: Callable[[], Timeline], timeline: Timeline, undone: frozenset[str], *, layout: int
) -> dict[str, FilesOfNoInstant]:
    """
    Data files of times on no active timeline.

    Files from before the first completed commit are archived ones, and only looked at where a rollback names their
    time. The timeline is loaded again after the listing: an instant is always there before its first file.
    """
    if not timeline.instants:
        return {}
    start = timeline.committed.start or ""
    known = {each.requested_time for each in timeline}
    found: dict[str, list[str]] = {}
    with_logs = set()
    threads = _REMOTE_THREADS if "://" in storage.root else 1
    for partition, entries in walk_partitions(storage, threads=threads):
        for entry in entries:
            base = parse_base_file(entry.name)
            parsed = base or parse_log_file(entry.name)
            if parsed is None or parsed.instant_time in known or parsed.instant_time < _FIRST_TIME:
                continue
            if parsed.instant_time < start and parsed.instant_time not in undone:
                continue
            found.setdefault(parsed.instant_time, []).append(join_path(partition, entry.name))
            if base is None and layout == 1:
                with_logs.add(parsed.instant_time)
    if not found:
        return {}
    known = {each.requested_time for each in load()}
    return {
        time: FilesOfNoInstant(tuple(sorted(paths)), time in with_logs)
        for time, paths in found.items()
        if time not in known
    }


def _temporary(storage: Storage, *, now_ms: int) -> Iterator[Aged]:
    folders = [".hoodie"]
    while folders:
        folder = folders.pop()
        for entry in storage.list_temporary(folder):
            yield Aged(f"{folder}/{entry.name}", 0 if entry.modified_ms is None else now_ms - entry.modified_ms)
        folders += [f"{folder}/{entry.name}" for entry in storage.list(folder) if entry.is_folder]
    if not storage.capabilities.has_folders:
        return  # object stores create in one request
    for path, _ in walk_partitions(storage):
        for entry in storage.list_temporary(path):
            yield Aged(join_path(path, entry.name), 0 if entry.modified_ms is None else now_ms - entry.modified_ms)


def _lock(storage: Storage, settings: Settings, *, now_ms: int) -> Aged | None:
    """Only where it lies inside the table: elsewhere it may stand for other tables as well."""
    given = settings[keys.LOCK_FILE_FOLDER].rstrip("/")
    folder = ".hoodie"
    if given:
        if not given.startswith(storage.root + "/"):
            return None
        folder = given.removeprefix(storage.root + "/")
    for entry in storage.list(folder, details=True):
        if entry.name == "lock" and not entry.is_folder:
            return Aged(f"{folder}/lock", 0 if entry.modified_ms is None else now_ms - entry.modified_ms)
    return None

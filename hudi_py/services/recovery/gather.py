"""Reads the facts about a whole table by which recovery judges it. Nothing is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Final, TypeVar

from hudi_py.config.concurrency import failed_writes_policy
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata, NotFound, RefusedError
from hudi_py.formats.partition_metafile import format_partition_metadata
from hudi_py.fsview.foreign import foreign_base_files
from hudi_py.fsview.listing import listing_threads, walk_partitions
from hudi_py.model.files import LogFile, join_path, parse_data_file
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import CommitMetadata, InstantInfo
from hudi_py.model.words import counted
from hudi_py.services.check.facts import FileKey, Health
from hudi_py.services.check.service import CheckService, Seen
from hudi_py.services.clean.executing.recheck import recheck_of
from hudi_py.services.recovery.compare_metadata import compare_metadata_table
from hudi_py.services.recovery.facts import Aged, FilesOfNoInstant, RecoveryFacts
from hudi_py.services.recovery.gather_locks import gather_locks
from hudi_py.storage.base import Storage, is_temporary
from hudi_py.timeline.archive import load_archived_rollbacks
from hudi_py.timeline.completions import Undone, may_run_again, undone_writes
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.heartbeat import Rhythm, heartbeat_ages
from hudi_py.timeline.markers import instants_with_markers
from hudi_py.timeline.properties_file import unfinished_rewrite
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.attempt import proof_of_failure
from hudi_py.txn.pairs import REWRITES

T = TypeVar("T")
Undoings = dict[str, Undone]

_COMMIT_TIME: Final = re.compile(rb"^commitTime=(\d{14,17})\r?$", re.MULTILINE)
_FIRST_TIME: Final = "00000000000100"
"""Smaller times stand for the creation of a table, not for a write."""


def gather_recovery_facts(contents: Contents, table: TableConfig, settings: Settings) -> RecoveryFacts:
    """
    Read the facts about a table.

    Raises:
        StorageError: The storage refused or cannot be reached.
    """
    store = contents.store
    seen = CheckService(store=store, table=table, settings=settings).examine()
    # One reading of the table for check and recovery, so that their findings agree.
    timeline, health = seen.facts.timeline, seen.facts.health
    undone = undone_writes(contents, timeline)
    clusterings = frozenset(
        instant.requested_time
        for instant in timeline.pending(Action.REPLACE_COMMIT)
        if health.get(_key(instant, State.REQUESTED)) is Health.GOOD and contents.is_clustering(instant)
    )
    strangers = _strangers(store.storage, store.load, timeline, frozenset(undone), table)
    markers = instants_with_markers(store.storage)
    known = {each.requested_time for each in timeline}
    archived = None  # reading the archive costs most of all, so only where something depends on it
    if strangers or any(time not in known for time in markers):
        archived, more = _archive(store.storage, table, seen.facts.archived)
        # What the active timeline says counts: it is the later undoing.
        undone = {**more, **undone}
    ages = heartbeat_ages(store.storage, store.clock)
    rhythm = Rhythm.of(settings)
    out_of_step = compare_metadata_table(contents, table, settings, seen.facts, clusterings)
    return RecoveryFacts(
        timeline=timeline,
        health=health,
        plan_damage=seen.facts.damage,
        clusterings=clusterings,
        rollback_targets=_rollback_targets(contents, timeline, health),
        policy=failed_writes_policy(settings),
        heartbeats=ages,
        expiry_ms=rhythm.expiry_ms,
        markers=markers,
        failed=_failed(contents, settings, timeline, clusterings),
        rewrites=seen.facts.rewrites,
        carried=_carried(store.storage, _unplanned(timeline, health)),
        undone=undone,
        archived=archived,
        strangers=strangers,
        properties_problem=unfinished_rewrite(store.storage),
        metadata_problem=out_of_step.problem,
        lost=out_of_step.lost,
        temporary=tuple(_temporary(store.storage, now_ms=_now_ms(contents))),
        locks=gather_locks(store.storage, settings, now_ms=_now_ms(contents)),
        # Of a table that changed meanwhile, findings may be of two states at once.
        found=() if seen.has_moved else seen.findings,
        stale_cleans=_stale_cleans(contents, timeline),
        metafiles={} if seen.has_moved else _metafiles(store.storage, seen, store.clock.now()),
    )


def _failed(contents: Contents, settings: Settings, timeline: Timeline, clusterings: frozenset[str]) -> dict[str, str]:
    """Inflight compactions and clusterings whose attempt is proven to have failed, to why."""
    begun = (
        each.requested_time
        for each in timeline.pending(*REWRITES, Action.REPLACE_COMMIT)
        if each.state is State.INFLIGHT
        and (each.action is not Action.REPLACE_COMMIT or each.requested_time in clusterings)
    )
    whys = {time: proof_of_failure(contents.store, settings, time) for time in begun}
    return {time: why for time, why in whys.items() if why is not None}


def _stale_cleans(contents: Contents, timeline: Timeline) -> dict[str, str]:
    """Pending cleans that would delete needed files; where that cannot be judged, the step of the clean reports why."""
    found = {}
    for instant in timeline.pending(Action.CLEAN):
        try:
            recheck = recheck_of(contents, instant)
            recheck.run()
        except (CorruptMetadata, NotFound, RefusedError):
            continue
        if not recheck.is_right:
            found[instant.requested_time] = (
                f"{counted(recheck.spared_count, 'planned file')} still needed; {recheck.why}"
            )
    return found


def _metafiles(storage: Storage, seen: Seen, now: datetime) -> dict[str, bytes]:
    """Proper contents of damaged partition metafiles, where a completed commit names the folder as a partition."""
    found = {}
    for path in (finding.where for finding in seen.findings if finding.code == "partition-metafile-damaged"):
        partition = path.rpartition("/")[0]
        times = [
            fact.instant.requested_time
            for fact in seen.facts.instants
            if isinstance(fact.content, CommitMetadata) and partition in fact.content.partition_to_write_stats
        ]
        if times:
            # The time of creation, if that line is readable; else the oldest commit that names the folder.
            kept = _readable(lambda path=path: _COMMIT_TIME.search(storage.read(path)))  # type: ignore[misc]
            found[path] = format_partition_metadata(
                partition, instant_time=kept[1].decode() if kept else min(times), written_at=now
            )
    return found


def _key(instant: Instant, state: State) -> FileKey:
    return (instant.requested_time, instant.action, state)


def _now_ms(contents: Contents) -> int:
    return int(contents.store.clock.now().timestamp() * 1000)


def _rollback_targets(
    contents: Contents, timeline: Timeline, health: Mapping[FileKey, Health]
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


def _readable(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except (CorruptMetadata, NotFound):
        return None


def _archive(storage: Storage, table: TableConfig, archived: Timeline | None) -> tuple[frozenset[str] | None, Undoings]:
    """Times of all archived instants except rollbacks and cleans, and what archived rollbacks undid."""
    if archived is None:
        return None, {}
    try:
        rollbacks = load_archived_rollbacks(storage, table)
    except (CorruptMetadata, NotFound):
        return None, {}
    undone = {
        time: Undone(f"the archived rollback {rollback}", may_run_again(action))
        for rollback, actions in rollbacks.items()
        for time, action in actions.items()
    }
    completed = (each for each in archived if each.is_completed)
    return frozenset(i.requested_time for i in completed if i.action not in (Action.ROLLBACK, Action.CLEAN)), undone


def _strangers(
    storage: Storage, load: Callable[[], Timeline], timeline: Timeline, undone: frozenset[str], table: TableConfig
) -> dict[str, FilesOfNoInstant]:
    """
    Data files of times that are not on the active timeline.

    Files from before its first commit belong to archived commits, and count only where a rollback names their time.
    The timeline is loaded again after the listing: a write that began meanwhile has its instant before its first file.
    """
    if not timeline.instants:
        return {}
    start = timeline.committed.start or ""
    extensions = table.base_file_extensions
    known = {instant.requested_time for instant in timeline}
    found: dict[str, list[str]] = {}
    with_logs = set()
    for partition, entries in walk_partitions(storage, threads=listing_threads(storage)):
        for entry in entries:
            parsed = parse_data_file(entry.name)
            if parsed is None or parsed.instant_time in known or parsed.instant_time < _FIRST_TIME:
                continue
            if foreign_base_files((entry.name,), extensions):
                continue  # of another format, so perhaps not Hudi's; the check reports it
            # Older than the timeline, files count as committed, and only a rollback proves the opposite.
            if parsed.instant_time < start and parsed.instant_time not in undone:
                continue
            found.setdefault(parsed.instant_time, []).append(join_path(partition, entry.name))
            if isinstance(parsed, LogFile) and table.format.log_naming.tells_slice:
                with_logs.add(parsed.instant_time)
    if not found:
        return {}
    known = {each.requested_time for each in load()}
    return {
        time: FilesOfNoInstant(tuple(sorted(paths)), time in with_logs)
        for time, paths in found.items()
        if time not in known
    }


def _unplanned(timeline: Timeline, health: Mapping[FileKey, Health]) -> frozenset[str]:
    """Times of compactions that were only requested and whose plan does not decode."""
    requested = (instant for instant in timeline.pending(Action.COMPACTION) if instant.state is State.REQUESTED)
    damaged = (Health.EMPTY, Health.DAMAGED)
    return frozenset(i.requested_time for i in requested if health.get(_key(i, State.REQUESTED)) in damaged)


def _carried(storage: Storage, times: frozenset[str]) -> frozenset[str]:
    """Which of the times occur in the name of a base or log file."""
    found: set[str] = set()
    for _, entries in walk_partitions(storage, threads=listing_threads(storage)) if times else ():
        parsed = (parse_data_file(entry.name) for entry in entries)
        found.update(each.instant_time for each in parsed if each is not None)
    return times & found


def _temporary(storage: Storage, *, now_ms: int) -> Iterator[Aged]:
    folders = [".hoodie"]
    while folders:
        folder = folders.pop()
        yield from _temporary_in(storage, folder, now_ms)
        folders += [f"{folder}/{entry.name}" for entry in storage.list(folder) if entry.is_folder]
    if not storage.capabilities.has_folders:
        return  # object stores create in one request
    for path, _ in walk_partitions(storage):
        yield from _temporary_in(storage, path, now_ms)


def _temporary_in(storage: Storage, folder: str, now_ms: int) -> Iterator[Aged]:
    for entry in storage.list_hidden(folder):
        if is_temporary(entry.name):
            # Of unknown age is as good as new: it stays.
            yield Aged(join_path(folder, entry.name), 0 if entry.modified_ms is None else now_ms - entry.modified_ms)

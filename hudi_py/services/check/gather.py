"""
Reads the facts about a table, for checks and recovery. Nothing is changed, and damage is a fact, not an error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeVar

from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata, HudiError, NotFound, UnsupportedTable
from hudi_py.formats import records_codec as codec
from hudi_py.formats.instant_content import decode_content
from hudi_py.fsview.listing import listing_threads
from hudi_py.fsview.named import may_name
from hudi_py.mdt.lost_writes import proofs, unmarked_writes
from hudi_py.mdt.table import FILES_PARTITION, MetadataTable
from hudi_py.model.files import METADATA_TABLE_FOLDER
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.instant_time import time_before
from hudi_py.model.records import CommitMetadata
from hudi_py.services.check.facts import FewFiles, FileKey, Health, InstantFacts, MetadataFacts, TableFacts
from hudi_py.storage.base import Storage
from hudi_py.timeline.archive import ArchivedFiles, load_archived, load_archived_files, load_archived_rollbacks
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.markers import instants_with_markers
from hudi_py.timeline.properties_file import BACKUP_FILE, properties_problem
from hudi_py.timeline.store import TimelineStore
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.file_lock import NAME as LOCK_NAME

T = TypeVar("T")

STALE_AFTER: Final = timedelta(hours=1)
"""Age at which a pending action is reported as stale. Its process may still be running, so nothing else follows."""

# Another process can finish these only with their plan.
_PLANNED: Final = frozenset(
    {Action.CLEAN, Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING, Action.ROLLBACK, Action.RESTORE}
)

_NOTHING: Final = CommitMetadata()

_PLAN_DECODERS: Final[Mapping[Action, Callable[[bytes, str], object]]] = {
    Action.CLEAN: codec.decode_cleaner_plan,
    Action.COMPACTION: codec.decode_compaction_plan,
    Action.LOG_COMPACTION: codec.decode_compaction_plan,
    Action.CLUSTERING: codec.decode_requested_replace,
    Action.REPLACE_COMMIT: codec.decode_requested_replace,
    Action.ROLLBACK: codec.decode_rollback_plan,
    Action.RESTORE: codec.decode_restore_plan,
}


def gather(
    contents: Contents,
    table: TableConfig,
    *,
    metadata: bool = True,
    few: FewFiles | None = None,
    known: Sequence[InstantFacts] = (),
) -> TableFacts:
    """
    Read the facts of a table.

    The metadata table's timeline is read before the table's. An action is recorded there before it completes, so one
    that completes in between is not missed in the metadata table.

    Args:
        contents: The table's timeline.
        table: Its properties.
        metadata: Whether to read the metadata table's timeline.
        few: The files in question; None for all.
        known: Of an earlier look, about the same files or more: completed writes that are still there as they were are
            not decoded again, because they do not change.

    Raises:
        StorageError: The storage refused or cannot be reached.
    """
    store = contents.store
    has_metadata = metadata and FILES_PARTITION in table.metadata_partitions
    metadata_facts = _metadata_facts(store) if has_metadata else None
    timeline = store.load()
    _read_ahead(store, timeline)
    instants = tuple(instant_facts(contents, timeline, few, known))
    # These were read as what they should be; of the others it is only looked whether they decode at all. Commits are
    # large, so none is decoded twice.
    whole = {
        (each.instant.requested_time, each.instant.action, State.COMPLETED)
        for each in instants
        if each.instant.is_completed and each.content is not None
    }
    health, damage = _health(contents, timeline, whole)
    for instant in instants:
        key = (instant.instant.requested_time, instant.instant.action, State.COMPLETED)
        if instant.problem is not None and health.get(key) is Health.GOOD:
            health[key], damage[key] = Health.DAMAGED, instant.problem
    archived, problem = _archived(store.storage, table)
    archived_files, files_problem = _archived_files(store.storage, table, timeline, archived)
    marker_times = instants_with_markers(store.storage)
    completed_once = proofs(timeline, contents, table)
    return TableFacts(
        timeline=timeline,
        log_naming=store.config.format.log_naming,
        base_file_extensions=store.config.base_file_extensions,
        instants=instants,
        health=health,
        damage=damage,
        archived=archived,
        archive_problem=problem or files_problem,
        archived_cleans=archived_files.cleaned,
        archived_replaced=archived_files.replaced,
        archived_bases=archived_files.bases,
        archived_undone=_archived_undone(store.storage, table, archived),
        marker_times=marker_times,
        completed_once=completed_once,
        unmarked_times=unmarked_writes(timeline, contents, table),
        unknown_names=_unknown_names(store),
        stale_before=time_before(store.clock.now(), STALE_AFTER, store.zone),
        has_properties_backup=store.storage.size(BACKUP_FILE) is not None,
        properties_problem=properties_problem(store.storage),
        metadata=metadata_facts,
        has_metadata_folder=bool(store.storage.list(METADATA_TABLE_FOLDER)),
    )


def _health(
    contents: Contents, timeline: Timeline, whole: Collection[FileKey]
) -> tuple[dict[FileKey, Health], dict[FileKey, str]]:
    """
    Health of the files. Of completed ones, which are many, only whether they decode: `instant_facts` does the rest.

    Args:
        contents, timeline: As for `gather`.
        whole: Files that are known to decode.
    """
    store = contents.store

    def judged(instant: Instant) -> tuple[Health, str]:
        if (instant.requested_time, instant.action, instant.state) in whole:
            return Health.GOOD, ""
        try:
            data = store.read(instant)
        except NotFound:
            return Health.ABSENT, ""
        if not data:
            return Health.EMPTY, ""
        try:
            _decoder(instant)(data, instant.file_name or store.path(instant))
        except CorruptMetadata as error:
            return Health.DAMAGED, str(error)
        return Health.GOOD, ""

    results = [((each.requested_time, each.action, each.state), *judged(each)) for each in _wanted(timeline)]
    return (
        {key: health for key, health, _ in results},
        {key: why for key, health, why in results if health is Health.DAMAGED},
    )


def _wanted(timeline: Timeline) -> list[Instant]:
    """The files that are read: all of pending instants, the completed ones of others, and some plans of those."""
    pending = {(each.requested_time, each.comparable_action) for each in timeline if each.is_pending}
    return [
        state
        for state in timeline.all_states
        if state.is_completed
        or (state.requested_time, state.comparable_action) in pending
        # Plans of completed ones too: recovery carries them out again if the completed file is damaged.
        or (state.action in (Action.CLEAN, Action.ROLLBACK) and state.state is State.REQUESTED)
    ]


def _read_ahead(store: TimelineStore, timeline: Timeline) -> None:
    """On object stores many files are read at once, because each costs a round trip."""
    threads = listing_threads(store.storage)
    if threads <= 1:
        return

    def read(instant: Instant) -> None:
        with suppress(NotFound):  # whoever needs it finds out
            store.read(instant)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(read, _wanted(timeline)))


def _decoder(instant: Instant) -> Callable[[bytes, str], object]:
    """The decoder of a plan is that of its record: another record in its place is damage, too."""
    if instant.state is State.REQUESTED or (instant.action is Action.CLEAN and instant.is_pending):
        return _PLAN_DECODERS.get(instant.action, decode_content)
    return decode_content


def instant_facts(
    contents: Contents, timeline: Timeline, few: FewFiles | None = None, known: Sequence[InstantFacts] = ()
) -> list[InstantFacts]:
    """
    Contents of the instants of a timeline, in its order.

    Args:
        contents, timeline, few, known: As for `gather`.
    """
    # Commits are the large ones. Not savepoints, say: of one time there may be another one a moment later.
    earlier = {_names_of(each.files): each for each in known if isinstance(each.content, CommitMetadata)}
    # Whoever asks about a few files does not want the contents of large commits in memory either.
    read = contents.store.read if few is None else contents.store.look_through
    files: dict[tuple[str, Action], list[Instant]] = {}
    for state in timeline.all_states:
        files.setdefault((state.requested_time, state.comparable_action), []).append(state)
    found = []
    for instant in timeline:
        own = tuple(files[instant.requested_time, instant.comparable_action])
        same = earlier.get(_names_of(own)) if earlier else None
        if same is not None:
            found.append(same)
            continue
        try:
            if _lacks_plan(contents, instant):
                found.append(InstantFacts(instant=instant, files=own, lacks_plan=True))
                continue
            # Empty is another finding than damaged: Hudi repairs empty cleans, and reads an empty commit as one without
            # files.
            is_empty = not read(instant)
            content = None if is_empty and instant.is_completed else _content(contents, instant, few)
            found.append(InstantFacts(instant=instant, files=own, is_empty=is_empty, content=content))
        except (CorruptMetadata, NotFound, UnsupportedTable) as error:
            found.append(InstantFacts(instant=instant, files=own, problem=str(error)))
    return found


def _names_of(files: Sequence[Instant]) -> tuple[str | None, ...]:
    return tuple(each.file_name for each in files)


def _lacks_plan(contents: Contents, instant: Instant) -> bool:
    """The plan of a clean may be in either file; a replacecommit needs a plan only if it is a clustering."""
    if instant.is_completed or instant.action not in _PLANNED or not contents.is_request_empty(instant):
        return False
    inflight = Instant(instant.requested_time, instant.action, State.INFLIGHT)
    return instant.action is not Action.CLEAN or not contents.store.storage.size(contents.store.path(inflight))


def _content(contents: Contents, instant: Instant, few: FewFiles | None) -> Any:
    source = f"{contents.store.storage.root}/{contents.store.path(instant)}"
    if instant.is_completed:
        decode = _completed(contents, source, few).get(instant.action)
        return None if decode is None else decode(instant)
    # An overwrite of partitions, which needs no plan.
    if instant.action is Action.REPLACE_COMMIT and contents.is_request_empty(instant):
        return None
    decode = _planned(contents, source).get(instant.action)
    return None if decode is None else decode(instant)


def _completed(contents: Contents, source: str, few: FewFiles | None) -> Mapping[Action, Callable[[Instant], Any]]:
    commit = contents.commit if few is None else partial(_commit_in, contents, few)
    return {
        Action.COMMIT: commit,
        Action.DELTA_COMMIT: commit,
        Action.REPLACE_COMMIT: commit,
        Action.CLEAN: contents.clean,
        Action.SAVEPOINT: contents.savepoint,
        Action.ROLLBACK: contents.rollback,
        Action.RESTORE: lambda instant: codec.decode_restore_metadata(contents.store.read(instant), source),
    }


def _commit_in(contents: Contents, few: FewFiles, instant: Instant) -> CommitMetadata:
    is_other = few.times is not None and instant.requested_time not in few.times
    if is_other and not may_name(contents.store.look_through(instant), few.times or ()):
        return _NOTHING
    return contents.commit_in(instant, few.partitions)


def _planned(contents: Contents, source: str) -> Mapping[Action, Callable[[Instant], Any]]:
    return {
        Action.CLEAN: contents.clean_plan,
        Action.COMPACTION: contents.compaction_plan,
        Action.LOG_COMPACTION: contents.compaction_plan,
        Action.CLUSTERING: contents.requested_replace,
        Action.REPLACE_COMMIT: contents.requested_replace,
        Action.ROLLBACK: contents.rollback_plan,
        Action.RESTORE: lambda instant: codec.decode_restore_plan(contents.store.read_plan(instant), source),
    }


def _unless_damaged(load: Callable[[], T], otherwise: T) -> tuple[T, str | None]:
    """The loaded value; or the given one, and why it could not be loaded."""
    try:
        return load(), None
    except (CorruptMetadata, NotFound) as error:
        return otherwise, str(error)


def _archived(storage: Storage, table: TableConfig) -> tuple[Timeline | None, str | None]:
    return _unless_damaged(lambda: load_archived(storage, table), None)


def _archived_files(
    storage: Storage, table: TableConfig, timeline: Timeline, archived: Timeline | None
) -> tuple[ArchivedFiles, str | None]:
    """
    What the archive says about files; if it is damaged, the kinds of facts that can still be read.

    Only cleans that ran since the oldest active commit can have deleted files that an active commit names.
    """
    if archived is None or not archived.instants:
        return ArchivedFiles(), None
    commits = timeline.commits.completed()
    first = commits[0].requested_time if commits else None
    # Decoding archived cleans costs most of a check, and usually none of them matters.
    has_cleans = first is not None and any(c.requested_time > first for c in archived.completed(Action.CLEAN))
    since = first if has_cleans else None
    load = partial(load_archived_files, storage, table)
    files, problem = _unless_damaged(lambda: load(cleaned_since=since, replaced=True, bases=True), ArchivedFiles())
    if problem is None:
        return files, None
    # One damaged record must not hide the other kinds.
    cleaned, replaced, bases = (
        _unless_damaged(partial(load, **{kind: wanted}), ArchivedFiles())[0]
        for kind, wanted in (("cleaned_since", since), ("replaced", True), ("bases", True))
    )
    return ArchivedFiles(cleaned.cleaned, replaced.replaced, bases.bases), problem


def _archived_undone(storage: Storage, table: TableConfig, archived: Timeline | None) -> frozenset[str]:
    """Writes that archived rollbacks undid; none if those cannot be read, which `_archived_files` reports."""
    if archived is None or not archived.completed(Action.ROLLBACK):
        return frozenset()
    none: Mapping[str, Mapping[str, str]] = {}
    rollbacks, _ = _unless_damaged(lambda: load_archived_rollbacks(storage, table), none)
    return frozenset(time for undone in rollbacks.values() for time in undone)


def _unknown_names(store: TimelineStore) -> tuple[str, ...]:
    # In layout 1 this folder holds the properties and the lock, too.
    names = [entry.name for entry in store.storage.list(store.folder) if not entry.is_folder]
    return tuple(
        sorted(
            name
            for name in names
            if store.layout.parse(name) is None
            and not name.endswith(".crc")
            and not name.startswith("hoodie.properties")
            and name != LOCK_NAME
        )
    )


def _metadata_facts(store: TimelineStore) -> MetadataFacts:
    """Active and archived timeline of the metadata table; if it is damaged or missing, the problem."""
    empty = Timeline(())
    try:
        table = MetadataTable(store.storage, store.clock)
        timeline = table.store.load()
    except HudiError as error:
        # Whatever it is: the check of the table itself goes on without it.
        return MetadataFacts(timeline=empty, archived=empty, problem=str(error))
    archived, problem = _archived(table.storage, table.config)
    damaged = {
        fact.instant: fact.problem or "it is empty"
        for fact in instant_facts(Contents(table.store), timeline)
        if fact.problem is not None or (fact.is_empty and fact.instant.state is State.COMPLETED)
    }
    return MetadataFacts(timeline=timeline, archived=archived or empty, problem=problem, damaged=damaged)

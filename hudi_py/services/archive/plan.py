"""
Decides which instants leave the active timeline. Pure.

Commits are archived from the oldest on, up to the first one that is still needed on the active timeline. Each reason to
stop has a name, a `Bound`. Source: rules/table-services D.2, D.3; Hudi ``TimelineArchiverV1/V2``, ``ArchivalUtils``.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from itertools import pairwise

import attrs

from hudi_py.config.archive import ArchiveConfig
from hudi_py.config.table import TableType
from hudi_py.model.files import parse_log_file
from hudi_py.model.instant import Action, Instant
from hudi_py.model.records import CommitMetadata
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.pairs import Answer, Service, judge
from hudi_py.versions.format import ArchiveForm


class Bound(enum.Enum):
    """Why archival stops; values are texts for people."""

    COUNT = "the number of active commits is within the settings"
    PENDING_WRITE = "a write is pending"
    COMPACTION = "the next compaction counts these delta commits"
    REPLACEMENT = "a replacecommit is not cleaned yet: readers would see its replaced files again"
    REMOVED_SAVEPOINT = "a savepoint was removed, and no clean has examined its replaced files since"
    REPLACED_FILES = "files that a replacecommit replaced still exist, and readers would see them again"
    SAVEPOINT = "savepointed"
    COLUMNS = "it has the ids of the columns, and the commit after it does not"
    LEASE = "a reader holds a lease on it, or on an earlier commit"
    BEHIND_SAVEPOINT = "its rows are the newest, and Apache Hudi does not show what is archived behind a savepoint"
    METADATA_TABLE = "the metadata table has not compacted it yet"
    RESTORE = "a restore is pending"
    UNDO = "the undo of a clean is pending, by which replaced files come back; hudi-py recover finishes it"
    DAMAGED = "it does not decode"
    LOST_ARCHIVE = (
        "the archive of earlier commits is missing, and with a new one nobody would notice: bring its folder back from "
        "a copy of the table, or give those times up with --conf hoodie_py.archive.anew=true"
    )
    LOCK = "another writer holds the table's lock"
    DATA_TIMELINE = "the table whose metadata this is has later instants only on its active timeline"

    __hash__ = object.__hash__


@attrs.frozen(kw_only=True)
class NewestClean:
    """
    What the last completed clean recorded about its plan.

    Args:
        requested_time: Requested time of the clean.
        earliest_to_retain: Earliest commit to retain; None for a clean by file versions.
        savepoints: Times of the savepoints whose files it kept.
    """

    requested_time: str
    earliest_to_retain: str | None = None
    savepoints: frozenset[str] = frozenset()


@attrs.frozen(kw_only=True)
class ArchiveFacts:
    """
    What the decision needs in addition to the timeline.

    Args:
        table_type: Type of the table.
        form: How the archive is stored; it determines which other instants are archived with the commits.
        earliest_to_retain: Requested time of the first commit since which cleaning keeps everything; None if unknown.
        last_clean: The last completed clean; None if there is none.
        has_metadata_table: Whether the table has a metadata table.
        metadata_compaction: Requested time of its last compaction; None if there was none.
        replaced_files_of: Requested time of the first replacecommit to be archived whose replaced files still exist;
            None if there is none, or the folders were not listed.
        newest_behind_savepoint: If archival continues after savepoints: `newest_writes_since` of the first savepoint.
        data_timeline_start: For a metadata table: instants of the data table from this time on are active or pending,
            so the corresponding instants here stay active.
        leased_from: The earliest time that a lease depends on; None without leases.
        columns_in: Requested times of the writes with the ids of the columns (schema on read); empty without.
        undoable_from: Requested time of the oldest clean whose files are in quarantine until a time to come; None
            without.
    """

    table_type: TableType
    form: ArchiveForm
    earliest_to_retain: str | None = None
    last_clean: NewestClean | None = None
    has_metadata_table: bool = False
    metadata_compaction: str | None = None
    replaced_files_of: str | None = None
    newest_behind_savepoint: str | None = None
    data_timeline_start: str | None = None
    leased_from: str | None = None
    columns_in: frozenset[str] = frozenset()
    undoable_from: str | None = None


@attrs.frozen(kw_only=True)
class ArchivePlan:
    """
    The plan of an archival; nothing has been written yet.

    Args:
        instants: Completed instants, in the order in which they are archived and deleted (D-16).
        keep_min, keep_max: Effective limits, which `ArchiveFacts.earliest_to_retain` can raise (D-3).
        bound: Why no more is archived; None if everything is archived that the settings ask for.
    """

    instants: tuple[Instant, ...] = ()
    keep_min: int
    keep_max: int
    bound: Bound | None = None


def plan_archive(timeline: Timeline, facts: ArchiveFacts, config: ArchiveConfig) -> ArchivePlan:
    """
    Decide what leaves the active timeline.

    Args:
        timeline: The active timeline.
        facts: What the decision needs in addition.
        config: Settings.
    """
    completed = timeline.table_commits(facts.table_type).completed()
    keep_min, keep_max = _kept(completed, facts, config)
    if _is_refused(timeline):
        return ArchivePlan(keep_min=keep_min, keep_max=keep_max, bound=Bound.RESTORE)
    commits, bound = _commits(timeline, completed, facts, config, keep_min, keep_max)
    if facts.form is ArchiveForm.LOGS:
        # First cleans, then rollbacks, then commits: layout 1 is not in order of time as a whole (rule D-16).
        services = _services_by_count(timeline, facts, keep_min, keep_max)
        instants = (*_without_undoable(services, facts), *commits)
    else:
        services = _without_undoable(_services_before(timeline, commits), facts)
        instants = tuple(sorted((*services, *commits), key=_order))
    return ArchivePlan(instants=instants, keep_min=keep_min, keep_max=keep_max, bound=bound)


def bound_of_one(timeline: Timeline, facts: ArchiveFacts, instant: Instant) -> Bound | None:
    """
    What keeps a savepointed commit active that archival has passed; None if nothing does.

    The number of commits does not matter here: the commits after it are archived already.
    """
    if _is_refused(timeline):
        return Bound.RESTORE
    if facts.has_metadata_table and facts.metadata_compaction is None:
        return Bound.METADATA_TABLE
    completed = timeline.table_commits(facts.table_type).completed()
    bounds = (
        (_pending_bound(timeline, completed), Bound.PENDING_WRITE),
        (_metadata_bound(completed, facts), Bound.METADATA_TABLE),
        (facts.replaced_files_of, Bound.REPLACED_FILES),
    )
    time = instant.requested_time
    first = timeline.completed(Action.SAVEPOINT)[0].requested_time
    if first < time:  # to Hudi, the timeline begins there
        return Bound.BEHIND_SAVEPOINT
    if not _leaving_columns((instant,), completed, facts.columns_in):
        return Bound.COLUMNS
    return next((bound for limit, bound in bounds if limit is not None and time >= limit), None)


def _is_refused(timeline: Timeline) -> bool:
    """Whether a pending instant forbids all archival."""
    return any(judge(Service.ARCHIVE, i).answer is Answer.REFUSED for i in timeline.pending())


def data_timeline_start(timeline: Timeline) -> str | None:
    """
    Rule D-8: the first commit, or the first pending instant of any action, of a table that has a metadata table.

    A rollback of such an instant has to find what the metadata table recorded of it.
    """
    return min((i.requested_time for i in (*timeline.commits.instants[:1], *timeline.pending()[:1])), default=None)


def newest_writes_since(commits: Iterable[tuple[str, CommitMetadata | None]]) -> str | None:
    """
    The oldest of these commits that wrote the newest base file of some file group, or log files on top of it.

    To Hudi's file listing the timeline starts at the savepointed commit, whatever is archived after it. So the rows of
    such a commit would disappear once it is archived, and the next upsert would build on older rows.

    Args:
        commits: Requested time and content of the completed commits behind a savepoint, ascending; None for one that
            does not decode, which counts as needed.

    Returns:
        Its requested time; None when there are no commits.
    """
    newest: dict[tuple[str, str], str] = {}
    for time, metadata in commits:
        if metadata is None:
            return min((*newest.values(), time))
        for partition, file_ids in (metadata.partition_to_replace_file_ids or {}).items():
            for file_id in file_ids:
                # Replaced: readers do not open the group, whoever wrote it last.
                newest.pop((partition, file_id), None)
        for partition, stats in metadata.partition_to_write_stats.items():
            for stat in stats:
                name = (stat.path or "").rpartition("/")[2]
                if parse_log_file(name) is None:
                    newest[partition, stat.file_id or name] = time
                else:
                    # Log files lie on the base file below, so the commit of that is needed as well, and it is older.
                    newest.setdefault((partition, stat.file_id or name), time)
    return min(newest.values(), default=None)


def _order(instant: Instant) -> tuple[str, str]:
    return (instant.requested_time, instant.comparable_action.value)


def _kept(completed: tuple[Instant, ...], facts: ArchiveFacts, config: ArchiveConfig) -> tuple[int, int]:
    """Rule D-3: commits that a clean has not reached stay active."""
    if facts.earliest_to_retain is None:
        return config.keep_min, config.keep_max
    # The two more are Hudi's (rule D-3): with fewer, archival could pass what the next clean still has to look at.
    needed = sum(1 for i in completed if i.requested_time > facts.earliest_to_retain) + 2
    if config.keep_min >= needed:
        return config.keep_min, config.keep_max
    return needed, needed + config.keep_max - config.keep_min


def _commits(
    timeline: Timeline,
    completed: tuple[Instant, ...],
    facts: ArchiveFacts,
    config: ArchiveConfig,
    keep_min: int,
    keep_max: int,
) -> tuple[tuple[Instant, ...], Bound | None]:
    """Rules D-2 and D-4 to D-10: the oldest completed commits before every bound."""
    if len(completed) <= keep_max:
        return (), Bound.COUNT
    # Without a compaction all that the metadata table knows lies in log files, and Hudi reads only those log blocks
    # whose commits are on the active timeline of the table.
    if facts.has_metadata_table and facts.metadata_compaction is None:
        return (), Bound.METADATA_TABLE
    bounds = _bounds(timeline, completed, facts, config)
    # The savepointed commits stay and go on counting; the number to archive is chosen among the others (rule D-7).
    savepointed = {i.requested_time for i in timeline.completed(Action.SAVEPOINT)}
    first = min(bounds, key=lambda each: each[0], default=None)
    allowed = [
        i
        for i in completed
        if (first is None or i.requested_time < first[0])
        and not (config.beyond_savepoint and i.requested_time in savepointed)
    ]
    # Down to the minimum, although only the maximum was exceeded: so archival is rare (rule D-2).
    wanted = len(completed) - keep_min
    taken = _leaving_columns(tuple(allowed[:wanted]), completed, facts.columns_in)
    if len(taken) < min(wanted, len(allowed)):
        return taken, Bound.COLUMNS
    return taken, None if first is None or len(allowed) >= wanted else first[1]


def _leaving_columns(
    taken: tuple[Instant, ...], completed: tuple[Instant, ...], columns_in: frozenset[str]
) -> tuple[Instant, ...]:
    """
    Of the commits to archive, those without which every commit that stays has one with the columns of its time.

    Compactions and clusterings leave no history of the columns. Were one of them the oldest commit, a rollback or
    restore that reaches it would leave nobody who knows the columns' ids, and renamed columns would be null.
    """
    while True:
        gone = {each.requested_time for each in taken}
        limits = [
            last
            for before, after in pairwise(each.requested_time for each in completed)
            if before in gone
            and after not in gone
            and after not in columns_in
            and (last := max((time for time in columns_in if time < after), default="")) in gone
        ]
        if not limits:
            return taken
        taken = tuple(each for each in taken if each.requested_time < min(limits))


def _bounds(
    timeline: Timeline, completed: tuple[Instant, ...], facts: ArchiveFacts, config: ArchiveConfig
) -> list[tuple[str, Bound]]:
    """Times from which on commits stay, with the reason."""
    # Archival leaves no gaps: to Hudi, every file that is older than the active timeline is committed, so a commit that
    # stays active keeps all later ones active as well.
    found = [
        (_pending_bound(timeline, completed), Bound.PENDING_WRITE),
        (_replacement_bound(timeline, facts), Bound.REPLACEMENT),
        (_removed_savepoint_bound(timeline, facts), Bound.REMOVED_SAVEPOINT),
        (facts.replaced_files_of, Bound.REPLACED_FILES),
        (_metadata_bound(completed, facts), Bound.METADATA_TABLE),
        (facts.data_timeline_start, Bound.DATA_TIMELINE),
        (facts.leased_from, Bound.LEASE),
    ]
    if facts.table_type is TableType.MERGE_ON_READ and config.delta_commits_kept is not None:
        found.append((_compaction_bound(timeline, config.delta_commits_kept), Bound.COMPACTION))
    savepoints = timeline.of(
        (Action.SAVEPOINT,)
    ).instants  # pending ones too: the commit that it is created for has to stay
    if savepoints and not config.beyond_savepoint:
        found.append((savepoints[0].requested_time, Bound.SAVEPOINT))
    found.append((facts.newest_behind_savepoint, Bound.BEHIND_SAVEPOINT))
    return [(time, bound) for time, bound in found if time is not None]


def _pending_bound(timeline: Timeline, completed: tuple[Instant, ...]) -> str | None:
    """Rule D-4: the last completed commit before the first pending write, or that write itself."""
    pending = [i for i in timeline.writes.pending() if judge(Service.ARCHIVE, i).answer is Answer.ENDS_THERE]
    if not pending:
        return None
    first = pending[0].requested_time
    return max((i.requested_time for i in completed if i.requested_time < first), default=first)


def _compaction_bound(timeline: Timeline, delta_commits_kept: int) -> str | None:
    """Rule D-5: the delta commit from which the next compaction counts."""
    deltas = timeline.completed(Action.DELTA_COMMIT)
    compactions = timeline.completed(Action.COMMIT)
    if compactions:
        last = compactions[-1].requested_time
        deltas = tuple(i for i in deltas if i.requested_time > last)
    elif deltas:
        last = deltas[0].requested_time
    else:
        return None
    # So that exactly as many delta commits stay as the trigger counts (rule D-5).
    return last if len(deltas) < delta_commits_kept else deltas[len(deltas) - delta_commits_kept].requested_time


def _replacement_bound(timeline: Timeline, facts: ArchiveFacts) -> str | None:
    """Rule D-9: the first replacecommit whose replaced files a clean has not dealt with."""
    replacing = timeline.of((Action.REPLACE_COMMIT, Action.CLUSTERING)).instants
    if facts.last_clean is None:
        return replacing[0].requested_time if replacing else None
    # A clean by file versions names none: it has dealt with everything before itself.
    start = facts.last_clean.earliest_to_retain or facts.last_clean.requested_time
    return next((i.requested_time for i in replacing if i.requested_time >= start), None)


def _removed_savepoint_bound(timeline: Timeline, facts: ArchiveFacts) -> str | None:
    """Rule D-10, in layout 1 too (K-6): a clean that spared files for savepoints has not dealt with those."""
    clean = facts.last_clean
    if clean is None or not clean.savepoints or not clean.earliest_to_retain:
        return None
    first = min(clean.savepoints)
    if clean.earliest_to_retain <= first:
        return None
    replacing = [i.requested_time for i in timeline.completed(Action.REPLACE_COMMIT) if i.requested_time >= first]
    return replacing[0] if replacing and replacing[0] <= clean.earliest_to_retain else None


def _metadata_bound(completed: tuple[Instant, ...], facts: ArchiveFacts) -> str | None:
    """Rule D-6: commits stay whose records the metadata table has only in log files."""
    time = facts.metadata_compaction
    if not facts.has_metadata_table or time is None:
        return None
    if facts.form is ArchiveForm.LOGS:
        return time
    return next((i.requested_time for i in completed if (i.completion_time or "") > time), None)


def _services_by_count(timeline: Timeline, facts: ArchiveFacts, keep_min: int, keep_max: int) -> tuple[Instant, ...]:
    """Rule D-12: cleans and rollbacks of layout 1, each action counted by itself."""
    if facts.has_metadata_table and facts.metadata_compaction is None:
        return ()
    found: list[Instant] = []
    for action in (Action.CLEAN, Action.ROLLBACK):
        completed = timeline.completed(action)
        if len(completed) > keep_max:
            found += completed[: len(completed) - keep_min]
    if not facts.has_metadata_table or facts.metadata_compaction is None:
        return tuple(found)
    return tuple(i for i in found if i.requested_time < facts.metadata_compaction)


def _services_before(timeline: Timeline, commits: tuple[Instant, ...]) -> tuple[Instant, ...]:
    """Rule D-13: cleans and rollbacks of layout 2 go along with the commits that come after them."""
    if not commits:
        return ()
    last = commits[-1].requested_time
    return tuple(i for i in timeline.completed(Action.CLEAN, Action.ROLLBACK) if i.requested_time < last)


def _without_undoable(services: tuple[Instant, ...], facts: ArchiveFacts) -> tuple[Instant, ...]:
    """
    Leave out the cleans that can still be undone, for which they have to be active.

    The later ones stay, too: whoever looks for what cleans deleted relies on the oldest being archived first.
    """
    first = facts.undoable_from
    if first is None:
        return services
    return tuple(i for i in services if i.action is not Action.CLEAN or i.requested_time < first)

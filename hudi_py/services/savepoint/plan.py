"""
Which commit a savepoint is for, whether it may still be made, and which files it pins. Pure.

Source: rules/table-services C; Hudi ``SavepointActionExecutor``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Final

from hudi_py.config.table import TableType
from hudi_py.errors import ConfigError, CorruptMetadata, RefusedError
from hudi_py.fsview.build import PartitionView, ViewContext
from hudi_py.fsview.fate import Pending
from hudi_py.model.files import FileGroup, FileSlice, join_path
from hudi_py.model.holes import Holes
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.instant_time import EPOCH, parse_duration, resolve_time
from hudi_py.model.records import SavepointMetadata
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.pairs import Relation, Service, judge

NAME_LENGTH_MAX: Final = 128


def check_name(name: str, taken: Mapping[str, str], now: datetime) -> None:
    """
    Refuse a name that would not tell which savepoint is meant.

    Args:
        name: As asked for.
        taken: Names there are to the times of their savepoints.
        now: Aware; any moment will do, a name must be no time at any.

    Raises:
        ConfigError: It is too long, has characters that do not show, or reads as a time.
        RefusedError: Another savepoint has it.
    """
    if name != name.strip() or not name.isprintable() or not 0 < len(name) <= NAME_LENGTH_MAX:
        raise ConfigError(
            f"{name!r} cannot be the name of a savepoint: up to {NAME_LENGTH_MAX} characters that can be printed, and "
            "no space at its ends"
        )
    if name.isdigit() or _is_time(name, now):
        raise ConfigError(f"{name!r} cannot be the name of a savepoint: it reads as a time")
    if name in taken:
        raise RefusedError(
            f"savepoint {taken[name]} is called {name!r} already; choose another name, or delete that savepoint first"
        )


def expiry_ms(ttl: str | timedelta, now: datetime) -> int:
    """
    When a savepoint that is made now expires, in epoch milliseconds.

    Args:
        ttl: A span, or text as ``"90m"``, ``"36h"``, ``"30d"``.
        now: Aware.

    Raises:
        ConfigError: It is no span, or none that ends.
    """
    span = parse_duration(ttl) if isinstance(ttl, str) else ttl
    if span is None or span <= timedelta(0):
        raise ConfigError(f"time to live {ttl!r} of a savepoint is no span of time; give for instance 36h or 30d")
    try:
        return (now + span - EPOCH) // timedelta(milliseconds=1)
    except OverflowError as error:
        raise ConfigError(f"time to live {ttl!r} of a savepoint ends never; leave it out for that") from error


def time_of_name(name: str, savepoints: Iterable[tuple[Instant, SavepointMetadata]]) -> str | None:
    """
    Requested time of the savepoint of that name, None when there is none.

    Raises:
        RefusedError: Two have it, made by two processes at the same moment.
    """
    times = [instant.requested_time for instant, content in savepoints if name and content.name == name]
    if len(times) > 1:
        raise RefusedError(f"{' and '.join(times)} are both called {name!r}; say which by its instant")
    return times[0] if times else None


def _is_time(text: str, now: datetime) -> bool:
    try:
        resolve_time(text, now=now, zone=timezone.utc)
    except ConfigError:
        return False
    return True


def savepoint_target(timeline: Timeline, table_type: TableType, requested_time: str | None) -> Instant:
    """
    The completed commit to pin: the one of that time, or the last one (rule C-1).

    Raises:
        ConfigError: There is no such completed commit on the active timeline.
    """
    completed = timeline.table_commits(table_type).completed()
    if requested_time is None:
        if not completed:
            raise ConfigError("the table has no completed commit, so there is nothing to savepoint")
        return completed[-1]
    for instant in completed:
        if instant.requested_time == requested_time:
            return instant
    raise ConfigError(
        f"{requested_time} is no completed commit of the active timeline; only such a commit can be savepointed"
    )


def check_bound(target: Instant, earliest_retained: str, holes: Holes) -> None:
    """
    Refuse a commit whose files a clean may have taken already (rules C-2, C-3).

    Args:
        target: The commit to pin.
        earliest_retained: What the last clean keeps everything from; ``""`` when it names no commit, which lets any
            pass, as in Hudi.
        holes: What the last clean left before its window.
    """
    if target.requested_time < earliest_retained:
        raise RefusedError(
            f"{target} cannot be savepointed: the last clean keeps files from {earliest_retained} on, so some of its "
            "files may be gone; savepoint that commit or a later one"
        )
    if holes.holds(target.requested_time):
        raise RefusedError(
            f"{target} cannot be savepointed: the last clean kept single snapshots before {holes.window} only, so some "
            f"of its files may be gone; savepoint {', '.join(holes.snapshots)}, or a commit from {holes.window} on"
        )


def held_files(
    context: ViewContext, partitions: Iterable[PartitionView], requested_time: str
) -> dict[str, tuple[str, ...]]:
    """
    The files of the latest slices at or before a time (rule C-4).

    Args:
        context: The planners' view, with pending compactions.
        partitions: Every partition of the table, built with *context*.
        requested_time: Of the savepoint.

    Returns:
        Partition path to file names, base file first; partitions without such a slice are left out.
    """
    held: dict[str, tuple[str, ...]] = {}
    for partition in partitions:
        names: list[str] = []
        for group in _live_groups(context, partition, requested_time):
            for each in _slices_before(group, requested_time):
                base = () if each.base_file is None else (each.base_file.name,)
                names += base
                names += [log.name for log in each.log_files if _is_committed_log(context, log.instant_time)]
        if names:
            held[partition.partition_path] = tuple(names)
    return held


def check_all_there(held: Mapping[str, tuple[str, ...]], there: Mapping[str, frozenset[str]], root: str) -> None:
    """
    Refuse to pin files that the metadata table lists and the folders lack: a restore would end without their rows.

    Args:
        held: Partition path to names.
        there: The same of what lies in the folders.
        root: Of the table, for messages.

    Raises:
        CorruptMetadata: One is missing.
    """
    for partition, names in held.items():
        for name in names:
            if name not in there.get(partition, frozenset()):
                raise CorruptMetadata(
                    f"{root}/{join_path(partition, name)} is missing, and the savepoint would need it: nothing was "
                    "changed; hudi-py check shows everything that is lost; savepoint another commit (hudi-py savepoint "
                    "create), or put the file back"
                )


def check_pending_cleans(held: Mapping[str, tuple[str, ...]], planned: Mapping[str, frozenset[str]]) -> None:
    """
    Refuse to pin what a pending clean is about to delete: its plan was made without this savepoint.

    Args:
        held: Partition path to names the savepoint would pin.
        planned: Requested time of each pending clean to the relative paths it deletes.
    """
    for time, paths in planned.items():
        for partition, names in held.items():
            gone = [name for name in names if join_path(partition, name) in paths]
            if gone:
                clean = Instant(time, Action.CLEAN, State.REQUESTED)
                pair = judge(Service.SAVEPOINT_CREATE, clean, {Relation.NEEDED})
                raise RefusedError(
                    f"the pending clean {time} deletes {join_path(partition, gone[0])}, which the savepoint needs: "
                    f"{pair.reason}"
                )


def check_not_undone(timeline: Timeline, target: Instant, undoing: Mapping[str, Pending]) -> None:
    """
    Refuse a commit that a rollback or restore takes back, or that is not completed any more.

    Args:
        timeline: As it is now.
        target: The commit to pin.
        undoing: Requested times of commits to the pending rollback or restore that takes each back.

    Raises:
        RefusedError: It is undone; nothing was changed.
    """
    time = target.requested_time
    if time in undoing:
        by = undoing[time]
        pair = judge(Service.SAVEPOINT_CREATE, Instant(by.time, by.action, State.INFLIGHT), {Relation.SAME})
        raise RefusedError(f"{target} cannot be savepointed: {by.action.value} {by.time} is pending: {pair.reason}")
    found = timeline.find(time, target.action)
    if found is None or not found.is_completed:
        raise RefusedError(f"{target} cannot be savepointed: it was rolled back or archived meanwhile")


def check_nothing_is_gone(time: str, gone: str | None) -> None:
    """
    Refuse to pin a part of a commit's files: a restore to it would lose the rows of the others. Hudi does not ask.

    Args:
        time: Of the savepoint.
        gone: Relative path of a file that held rows then and that a clean deleted, or is about to.
    """
    if gone is not None:
        raise RefusedError(
            f"{time} cannot be savepointed: a clean deleted {gone}, which held rows at that time; savepoint a later "
            "commit"
        )


def _live_groups(context: ViewContext, partition: PartitionView, requested_time: str) -> list[FileGroup]:
    """Groups that were not replaced at that time; a replacement that came later does not matter."""
    path = partition.partition_path
    later = [g for g in partition.replaced_groups if context.replaced[path, g.file_id] > requested_time]
    return sorted((*partition.groups, *later), key=lambda group: group.file_id)


def _slices_before(group: FileGroup, requested_time: str) -> list[FileSlice]:
    """The newest slice, and the one below it as long as a pending compaction has opened it without a base file."""
    found = []
    for each in group.slices:
        if each.base_instant_time > requested_time:
            continue
        found.append(each)
        if each.base_file is not None:
            break
    return found


def _is_committed_log(context: ViewContext, instant_time: str) -> bool:
    """In layout 1 a log's name does not tell who wrote it, so all of them stay."""
    return context.log_naming.tells_slice or context.is_completed(instant_time)


def begins_timeline(timeline: Timeline, savepoint_time: str) -> bool:
    """Whether every commit before the savepoint is archived or savepointed: only then others behind it may be too."""
    savepointed = {i.requested_time for i in timeline.of((Action.SAVEPOINT,)).instants}
    others = [i.requested_time for i in timeline.commits.completed() if i.requested_time not in savepointed]
    return not others or savepoint_time < others[0]


def check_no_hole(timeline: Timeline, archived: Timeline, savepoint_time: str) -> None:
    """
    Refuse to let go of a savepoint that archival has gone beyond (rule D-7).

    The savepointed commit would become the start of the active timeline, and what was archived behind it would look as
    if it had never been completed: its files would be neither shown nor kept.

    Args:
        timeline: The active timeline.
        archived: The archived one.
        savepoint_time: Of the savepoint.

    Raises:
        RefusedError: Commits after the savepoint are archived; nothing was changed.
    """
    active = {i.requested_time for i in timeline.writes}
    last = max(active, default="")
    behind = [
        i
        for i in archived.writes.completed()
        if savepoint_time < i.requested_time < last and i.requested_time not in active
    ]
    if savepoint_time in active and behind:
        raise RefusedError(
            f"savepoint {savepoint_time} stays: archival has gone beyond it, and without it {len(behind)} archived "
            f"commits after it, the first is {behind[0]}, would look as if they had never been completed; "
            "hudi-py savepoint delete --archive-commit archives its commit too, and then lets go of it"
        )

"""
Decides which commit a savepoint is for, whether it may be created, and which files it protects. Pure.

Source: rules/table-services C; Hudi ``SavepointActionExecutor``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Final

from hudi_py.config.table import TableType
from hudi_py.errors import ConfigError, CorruptMetadata, RefusedError
from hudi_py.fsview.as_of import readable_slices
from hudi_py.fsview.build import PartitionView, ViewContext
from hudi_py.fsview.needs import Pending
from hudi_py.model.files import join_path
from hudi_py.model.holes import Holes
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.instant_time import EPOCH, parse_duration, resolve_time
from hudi_py.model.records import SavepointMetadata
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.pairs import Relation, Service, judge

NAME_LENGTH_MAX: Final = 128


def check_name(name: str, taken: Mapping[str, str], now: datetime) -> None:
    """
    Refuse a name that does not identify a savepoint.

    Args:
        name: The wanted name.
        taken: Existing names to the times of their savepoints.
        now: Any aware time; needed to parse relative times, which a name must not look like.

    Raises:
        ConfigError: It is too long, has characters that cannot be printed, or can be read as a time.
        RefusedError: Another savepoint has it.
    """
    if name != name.strip() or not name.isprintable() or not 0 < len(name) <= NAME_LENGTH_MAX:
        raise ConfigError(
            f"{name!r} cannot be the name of a savepoint: it needs 1 to {NAME_LENGTH_MAX} printable characters, "
            "and no space at its ends"
        )
    # Commands take a name or a time in the same place, and must not have to guess.
    if name.isdigit() or _is_time(name, now):
        raise ConfigError(f"{name!r} cannot be the name of a savepoint: it can be read as a time")
    if name in taken:
        raise RefusedError(
            f"savepoint {taken[name]} is called {name!r} already; choose another name, or delete that savepoint first"
        )


def expiry_ms(ttl: str | timedelta, now: datetime) -> int:
    """
    When a savepoint that is created now expires, in epoch milliseconds.

    Args:
        ttl: A span, or text as ``"90m"``, ``"36h"``, ``"30d"``.
        now: Aware.

    Raises:
        ConfigError: It is not a positive span, or ends beyond the last date.
    """
    span = parse_duration(ttl) if isinstance(ttl, str) else ttl
    if not isinstance(span, timedelta) or span <= timedelta(0):
        raise ConfigError(f"time to live {ttl!r} of a savepoint is not a positive span of time, as 36h or 30d")
    try:
        return (now + span - EPOCH) // timedelta(milliseconds=1)
    except OverflowError as error:
        raise ConfigError(
            f"time to live {ttl!r} of a savepoint ends after the last possible date; without it a savepoint never "
            "expires"
        ) from error


def time_of_name(name: str, savepoints: Iterable[tuple[Instant, SavepointMetadata]]) -> str | None:
    """
    Requested time of the savepoint of that name; None if there is none.

    Raises:
        RefusedError: Two savepoints have it, created by two processes at the same time.
    """
    times = [instant.requested_time for instant, content in savepoints if name and content.name == name]
    # Names are checked without a lock where the table has none, so two processes may take the same one.
    if len(times) > 1:
        raise RefusedError(f"{' and '.join(times)} are both called {name!r}; give the instant instead")
    return times[0] if times else None


def _is_time(text: str, now: datetime) -> bool:
    try:
        resolve_time(text, now=now, zone=timezone.utc)
    except ConfigError:
        return False
    return True


def savepoint_target(timeline: Timeline, table_type: TableType, requested_time: str | None) -> Instant:
    """
    The completed commit of a savepoint: the one of that time, or the last one (rule C-1).

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
        f"{requested_time} is not a completed commit of the active timeline, and only such commits can be savepointed"
    )


def check_bound(target: Instant, earliest_retained: str, holes: Holes) -> None:
    """
    Refuse a commit whose files a clean may have deleted already (rules C-2, C-3).

    Args:
        target: The commit of the savepoint.
        earliest_retained: First commit since which the last clean keeps everything; ``""`` if it names none, which
            allows any commit, as in Hudi.
        holes: Snapshots that the last clean kept before its window.
    """
    # Compared as text: a clean by file versions says "", and allows any commit (rule C-3).
    if target.requested_time < earliest_retained:
        raise RefusedError(
            f"{target} cannot be savepointed: the last clean keeps files from {earliest_retained} on, so some of its "
            "files may be deleted; savepoint that commit or a later one"
        )
    if holes.holds(target.requested_time):
        raise RefusedError(
            f"{target} cannot be savepointed: the last clean kept single snapshots before {holes.window} only, so some "
            f"of its files may be deleted; savepoint {', '.join(holes.snapshots)}, or a commit from {holes.window} on"
        )


def held_files(
    context: ViewContext, partitions: Iterable[PartitionView], pending_compactions: Collection[str] = ()
) -> dict[str, tuple[str, ...]]:
    """
    Files of the latest slices at the time of a savepoint (rule C-4): those that a read of this time needs.

    Args:
        context: The view at that time, see `context_as_of`.
        partitions: Every partition of the table, built with this context.
        pending_compactions: Requested times of the pending compactions that were planned by then.

    Returns:
        Partition path to file names, base file first; partitions without such a slice are left out.
    """
    held: dict[str, tuple[str, ...]] = {}
    for partition in partitions:
        # As a read of that time: what a restore brings back is what was to be seen then.
        slices = readable_slices(context, partition, pending_compactions)
        names = [file.name for each in slices for file in each.files]
        if names:
            held[partition.partition_path] = tuple(names)
    return held


def check_all_there(held: Mapping[str, tuple[str, ...]], there: Mapping[str, frozenset[str]], root: str) -> None:
    """
    Refuse a savepoint whose files exist in the metadata table only: a restore would lose their rows.

    Args:
        held: Partition path to names.
        there: Partition path to names of its files in the folder.
        root: Base path of the table, for messages.

    Raises:
        CorruptMetadata: One is missing.
    """
    for partition, names in held.items():
        for name in names:
            if name not in there.get(partition, frozenset()):
                raise CorruptMetadata(
                    f"{root}/{join_path(partition, name)} is missing, but the savepoint needs it: nothing was "
                    "changed; hudi-py check shows all lost files; savepoint another commit (hudi-py savepoint "
                    "create), or put the file back"
                )


def check_pending_cleans(held: Mapping[str, tuple[str, ...]], planned: Mapping[str, frozenset[str]]) -> None:
    """
    Refuse a savepoint whose files a pending clean is going to delete: its plan was made without the savepoint.

    Args:
        held: Partition path to names of the savepoint's files.
        planned: Requested time of each pending clean to the relative paths that it deletes.
    """
    for time, paths in planned.items():
        for partition, names in held.items():
            # Also of a clean that has begun: the files may still be there now.
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
    Refuse a commit that a pending rollback or restore undoes, or that is no longer completed.

    Args:
        timeline: The current timeline.
        target: The commit of the savepoint.
        undoing: Requested times of commits to the pending rollback or restore that undoes them.

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
        raise RefusedError(f"{target} cannot be savepointed: it was rolled back or archived in the meantime")


def check_nothing_is_gone(time: str, gone: str | None) -> None:
    """
    Refuse a savepoint if some files of its time are deleted: a restore would lose their rows. Hudi does not check this.

    Args:
        time: Requested time of the savepoint.
        gone: Relative path of a file with rows of that time that a clean deleted, or is going to delete.
    """
    if gone is not None:
        raise RefusedError(
            f"{time} cannot be savepointed: a clean deleted {gone}, which had rows of that time; savepoint a later "
            "commit"
        )


def begins_timeline(timeline: Timeline, savepoint_time: str) -> bool:
    """Whether all commits before the savepoint are archived or savepointed; only then later ones can be archived."""
    savepointed = {i.requested_time for i in timeline.of((Action.SAVEPOINT,)).instants}
    others = [i.requested_time for i in timeline.commits.completed() if i.requested_time not in savepointed]
    # With an older commit active that has no savepoint, archival has not come this far (rule D-11).
    return not others or savepoint_time < others[0]


def check_no_hole(timeline: Timeline, archived: Timeline, savepoint_time: str) -> None:
    """
    Refuse to delete a savepoint that archival has passed (rule D-7).

    Its commit would become the start of the active timeline, and commits archived after it would count as never
    completed: readers would not see their files, and cleans would not keep them.

    Args:
        timeline: The active timeline.
        archived: The archived timeline.
        savepoint_time: Requested time of the savepoint.

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
    # Without active instant of that time the timeline does not begin there anyway.
    if savepoint_time in active and behind:
        raise RefusedError(
            f"savepoint {savepoint_time} is kept: archival has gone beyond it, and without it {len(behind)} archived "
            f"commits after it, the first is {behind[0]}, would count as never completed; "
            "hudi-py savepoint delete --archive-commit archives its commit, too, and then deletes it"
        )

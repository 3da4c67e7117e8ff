"""
Decides what a restore has to undo. Pure.

Source: rules/table-services B-27 to B-29; Hudi ``SavepointHelpers``, ``RestorePlanActionExecutor``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hudi_py.errors import ConfigError, RefusedError
from hudi_py.model.files import join_path, parse_data_file
from hudi_py.model.instant import Action, Instant
from hudi_py.model.words import counted, shell_word
from hudi_py.services.rollback.before import Before
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.pairs import Relation, Service, judge


class FilesGone(RefusedError):
    """Files of the savepoint are missing."""


def restore_targets(
    timeline: Timeline,
    savepoint_time: str,
    *,
    by_completion: bool,
    is_merge_on_read: bool = False,
    clusterings: frozenset[str],
) -> tuple[Instant, ...]:
    """
    Return the writes after a savepoint in the order in which they are undone.

    These are pending clusterings, then all others, the newest first (B-29).

    Args:
        timeline: The active timeline.
        savepoint_time: Requested time of a completed savepoint.
        by_completion: Order by completion time, as in Hudi 1.1; otherwise by requested time. What was requested after
            the savepointed commit is undone in any case, also where it completed before: the savepoint does not show
            it. Apache Hudi leaves such a write, and then fails by B-32 with a restore that it cannot finish.
        is_merge_on_read: Whether the table is merge-on-read. There a ``commit`` is a compaction, which is undone only
            if it was requested after the savepoint: writes that completed since its request build on it.
        clusterings: Requested times of pending layout-1 replacecommits that are clusterings.

    Raises:
        ConfigError: There is no such savepoint.
    """
    savepoint = timeline.find(savepoint_time, Action.SAVEPOINT)
    if savepoint is None or not savepoint.is_completed:
        raise ConfigError(f"there is no savepoint {savepoint_time}; see hudi-py savepoint list")
    # Where completion times decide (Hudi 1.1), the commit's own is the limit; the savepoint has its requested time.
    commit = next((i for i in timeline.writes.completed() if i.requested_time == savepoint_time), None)
    # Layout 1 has no completion times.
    limit = (commit.completion_time if commit is not None else None) or savepoint_time
    after = [
        i
        for i in timeline.writes
        # The savepoint has the time of its commit, which stays.
        if i.requested_time != savepoint_time
        and (
            i.requested_time > savepoint_time
            or (
                by_completion
                and i.completion_time is not None
                and i.completion_time > limit
                and not (is_merge_on_read and i.comparable_action is Action.COMMIT)
            )
        )
    ]

    def newest_first(instant: Instant) -> str:
        return (instant.completion_time if by_completion else None) or instant.requested_time

    pending = [i for i in after if i.is_pending and _is_clustering(i, clusterings)]
    others = [i for i in after if i not in pending]
    return (
        *sorted(pending, key=newest_first, reverse=True),
        *sorted(others, key=newest_first, reverse=True),
    )


def check_savepoints_after(timeline: Timeline, savepoint_time: str, undone: Collection[str], location: str) -> None:
    """
    Raise if a commit to be undone has a savepoint: the savepoint would still be listed, but could not be read.

    Apache Hudi undoes everything newer, then stops at the commit with the savepoint with an error. The restore stays
    pending, and no commit can begin before it is finished. To avoid this, nothing is begun here.

    Args:
        timeline: The active timeline.
        savepoint_time: Requested time of the savepoint to restore.
        undone: Requested times of the writes that would be undone.
        location: Path or URL of the table, for the commands in the message.

    Raises:
        RefusedError: There are such savepoints, completed or pending; nothing was changed.
    """
    others = [i for i in timeline.of((Action.SAVEPOINT,)) if i.requested_time in undone]
    if others:
        times = [other.requested_time for other in others]
        reasons = {judge(Service.RESTORE, each, {Relation.SAME}).reason for each in others if each.is_pending}
        deletions = " && ".join(f"hudi-py savepoint delete {location} {time}" for time in times)
        raise RefusedError(
            f"restore to {savepoint_time} refused: it would undo {counted(len(times), 'commit')} with a savepoint, "
            f"{', '.join(times)}; nothing was changed. Delete these savepoints first: {deletions}"
            + "".join(f". About one that is not completed: {reason}" for reason in sorted(reasons))
        )


def check_nothing_is_archived_after(timeline: Timeline, archived: Timeline, savepoint_time: str, location: str) -> None:
    """
    Refuse if archival has passed the savepoint: archived commits cannot be undone.

    Args:
        timeline: The active timeline.
        archived: The archived timeline.
        savepoint_time: Requested time of the savepoint.
        location: Path or URL of the table, for the commands in the message.

    Raises:
        RefusedError: A commit after the savepoint is archived; nothing was changed.
    """
    active = {i.requested_time for i in timeline.writes}
    later = [
        i for i in archived.writes.completed() if i.requested_time > savepoint_time and i.requested_time not in active
    ]
    if later:
        raise RefusedError(
            f"restore to {savepoint_time} refused: it would undo "
            f"{counted(len(later), 'archived commit')} ({later[0]} to "
            f"{later[-1]}), which is not possible. The savepoint still has its rows: read them with "
            f"hudi-py read {shell_word(location)} --savepoint {savepoint_time} -o rows.parquet, and "
            "overwrite the table with them"
        )


def check_files_are_there(
    held: Mapping[str, Collection[str]],
    there: Mapping[str, Collection[str]],
    savepoint_time: str,
    undone: frozenset[str],
) -> None:
    """
    Refuse if files of the savepoint are missing (not checked by Hudi).

    Args:
        held: Partition path to names of the savepoint's files, with log files that its slices got before it was
            created.
        there: Partition path to names of the files that exist.
        savepoint_time: Requested time of the savepoint.
        undone: Requested times of writes that are undone, or were by an earlier restore: their files are not needed.

    Raises:
        FilesGone: A file of the savepoint is missing; nothing was changed.
    """

    def is_needed(name: str) -> bool:
        parsed = parse_data_file(name)
        return parsed is None or (parsed.instant_time <= savepoint_time and parsed.instant_time not in undone)

    # Hudi goes on without them, and the restored table silently lacks their rows.
    gone = [join_path(p, name) for p, names in held.items() for name in names if name not in there[p]]
    gone = [path for path in gone if is_needed(path.rpartition("/")[2])]
    if gone:
        raise FilesGone(
            f"restore refused: the savepoint has {counted(len(gone), 'missing file')}, the first is {gone[0]}; "
            "nothing was changed"
        )


def check_state_before(before: Before, savepoint_time: str) -> None:
    """
    Refuse if the rows at the time of the savepoint are not complete (not checked by Hudi).

    Hudi creates savepoints of commits of which a clean has deleted files already: for those file groups the savepoint
    has older files, or none.

    Args:
        before: The state before the writes that would be undone.
        savepoint_time: Requested time of the savepoint.

    Raises:
        FilesGone: Files of that state are missing; nothing was changed.
        RefusedError: Readers would not see files of that state; nothing was changed.
    """
    if before.lost:
        raise FilesGone(
            f"restore to {savepoint_time} refused: its rows need {counted(len(before.lost), 'missing file')}, which "
            f"the savepoint should have protected, the first is {before.lost[0]}; nothing was changed"
        )
    if before.hidden:
        raise RefusedError(
            f"restore to {savepoint_time} refused: {counted(len(before.hidden), 'file')} with its rows would be "
            f"hidden, the first is {before.hidden[0]}: the commits that wrote such files are archived behind an older "
            f"savepoint; nothing was changed. Read the rows with hudi-py read --savepoint {savepoint_time} and write "
            "them again"
        )


def _is_clustering(instant: Instant, clusterings: frozenset[str]) -> bool:
    return instant.action is Action.CLUSTERING or instant.requested_time in clusterings

"""
Finds pending writes that were completed once, and whose completed file is lost.

Readers would silently go back to the commit before, and the next write would roll the rows back for good. Only what
later instants recorded is proof: a clean names the last completed commit that it saw, a savepoint belongs to a
completed commit, and a commit replaces base files of completed commits. A delta commit of the metadata table alone
proves nothing, because it is completed before the write is, and a writer may die in between. Together with files of
the write whose markers are deleted it is proof, and so is the checksum of a completed file
(`hudi_py.mdt.lost_writes`). A rollback or restore deletes the completed file first, so writes that one of them names
are not lost but undone.

Source: rules/table-services A-25, G-3.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.formats.records_codec import decode_restore_metadata
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import (
    CleanerPlan,
    CleanMetadata,
    CommitMetadata,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPlan,
)
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline

WAY_OUT: Final = (
    "put the file back from a copy of the table, or, to give up its rows, roll the write back: hudi-py rollback"
)
_UNDOES: Final = (Action.ROLLBACK, Action.RESTORE)


class Undone(NamedTuple):
    """
    What undid a write.

    Args:
        by: The rollback or restore, for people.
        may_run_again: Whether a run under the same time may have completed since; see `may_run_again`.
    """

    by: str
    may_run_again: bool = False


def lost_completions(
    timeline: Timeline, contents: Iterable[tuple[Instant, object]], more: Mapping[str, str] | None = None
) -> dict[Instant, str]:
    """
    The pending writes that were completed once, each with the proof. Pure.

    Args:
        timeline: The active timeline.
        contents: Instants of the timeline with their contents (`model.records`), None if unreadable. Instants that are
            left out prove nothing, and undo nothing.
        more: Other proofs, by requested time.
    """
    # Only inflight ones: a write cannot be completed before it is inflight.
    waiting = {i.requested_time: i for i in timeline.writes.pending() if i.state is State.INFLIGHT}
    if not waiting:
        return {}
    proofs = dict(more or {})
    undone: set[str] = set()
    for instant, content in contents:
        if instant.action in _UNDOES:
            times = undone_by(content)
            if times is None:  # it may have undone any write
                return {}
            undone |= times
        else:
            for time, why in named_by(instant, content):
                # What an instant names of a later time is a mistake in its content, and proves nothing.
                if time < instant.requested_time:
                    proofs.setdefault(time, why)
    for savepoint in timeline.completed(Action.SAVEPOINT):
        proofs.setdefault(savepoint.requested_time, f"{savepoint} is of it")
    return {i: proofs[time] for time, i in waiting.items() if time in proofs and time not in undone}


def named_by(instant: Instant, content: object) -> Iterator[tuple[str, str]]:
    """Times of completed commits that an instant names, each with the proof as a sentence."""
    if isinstance(content, CleanMetadata | CleanerPlan):
        yield content.last_completed_commit_timestamp, f"{instant} saw it as the last completed commit"
    elif isinstance(content, CommitMetadata):
        for stats in content.partition_to_write_stats.values():
            for stat in stats:
                # Log files name the slice that they lie on, which a pending compaction may have opened; base files
                # replace one that was complete.
                if stat.prev_commit and not (stat.path or "").rpartition("/")[2].startswith("."):
                    yield stat.prev_commit, f"{instant} built on its file group {stat.file_id}"


def undone_by(content: object) -> set[str] | None:
    """Requested times of the writes that a rollback or restore undoes; None if its content does not say."""
    if isinstance(content, RollbackPlan):
        return set() if content.instant_to_rollback is None else {content.instant_to_rollback.requested_time}
    if isinstance(content, RollbackMetadata):
        return set(content.commits_rollback)
    if isinstance(content, RestorePlan):
        return {each.requested_time for each in content.instants_to_rollback}
    if isinstance(content, RestoreMetadata):
        return {*content.instants_to_rollback, *content.rollbacks}
    return None


def undone_writes(contents: Contents, timeline: Timeline, *, after: str = "") -> dict[str, Undone]:
    """
    The writes that completed rollbacks and restores undid, by requested time; a damaged rollback or restore names none.

    Args:
        contents: Reads the instants.
        timeline: The active timeline.
        after: Only those that were requested after this time.
    """
    later = (each for each in timeline.of(_UNDOES) if each.is_completed and each.requested_time > after)
    found: dict[str, Undone] = {}
    for instant, content in contents_of(contents, later):
        reruns = _reruns(content)
        for time in undone_by(content) or ():
            known = found.get(time)
            # Once is enough: which of its attempts wrote a file stays unknown after a later rollback or restore, too.
            found[time] = Undone(str(instant), time in reruns or (known is not None and known.may_run_again))
    return found


def undoing(contents: Contents, times: Iterable[str]) -> Instant | None:
    """
    The newest rollback or restore, pending or completed, that undoes a write of one of these requested times.

    Args:
        contents: Reads the table's instants; the timeline is loaded again.
        times: Requested times of writes.
    """
    wanted = frozenset(times)
    newest_first = sorted(contents.store.load().of(_UNDOES), key=lambda each: each.requested_time, reverse=True)
    return next(
        (by for by, content in contents_of(contents, newest_first) if wanted & (undone_by(content) or set())), None
    )


def _reruns(content: object) -> set[str]:
    """What a rollback undid and may have run again since. Restores go back to before a plan, which then is deleted."""
    if not isinstance(content, RollbackMetadata):
        return set()
    actions = {each.requested_time: each.action for each in content.instants_rollback}
    return {time for time in content.commits_rollback if may_run_again(actions.get(time, ""))}


def pending_targets(timeline: Timeline, contents: Contents) -> tuple[str, ...]:
    """Return the requested times that pending rollbacks undo; one whose plan does not decode was never begun (B-7)."""
    found = []
    for instant in timeline.pending(Action.ROLLBACK):
        try:
            target = contents.rollback_plan(instant).instant_to_rollback
        except (CorruptMetadata, NotFound):
            continue
        if target is not None:
            found.append(target.requested_time)
    return tuple(found)


def may_run_again(action: str) -> bool:
    """
    Whether a run under the same time can have completed after a rollback undid one (rules/table-services B-25).

    Writes get a new time when they are repeated; services keep theirs. A replacecommit may be either: in layout 1 a
    clustering is one.
    """
    return action not in ("commit", "deltacommit")


def refuse_lost_completions(
    timeline: Timeline,
    contents: Contents,
    times: Collection[str] | None = None,
    more: Mapping[str, str] | None = None,
) -> None:
    """
    Refuse a table if a write that was completed is pending again.

    Only the last clean and the savepoints are read for proof, and only if an older write is inflight; without a running
    write this costs nothing.

    Args:
        timeline: The active timeline.
        contents: Reads its instants.
        times: Requested times of the writes that matter; None for all.
        more: As for `lost_completions`.

    Raises:
        CorruptMetadata: There is such a write.
    """
    pending = timeline.writes.pending()
    inflight = [i for i in pending if i.state is State.INFLIGHT and (times is None or i.requested_time in times)]
    if not inflight:
        return
    cleans = [i for i in timeline.completed(Action.CLEAN)[-1:] if i.requested_time > inflight[0].requested_time]
    # The cheap half of the answer, and nearly always the whole of it.
    if not lost_completions(timeline, contents_of(contents, cleans), more):
        return
    # Rollbacks and restores only now: there may be many, and they matter only if something looks lost.
    undoing = [i for i in timeline.of(_UNDOES) if i.requested_time > inflight[0].requested_time]
    for instant, why in lost_completions(timeline, contents_of(contents, [*cleans, *undoing]), more).items():
        if instant not in inflight or contents.store.load().find(instant.requested_time, instant.action) != instant:
            continue  # another process has completed or undone it meanwhile
        store = contents.store
        raise CorruptMetadata(
            f"{store.storage.root}/{store.path(instant)}: {instant} was completed once ({why}), and its completed file "
            f"is missing: older rows would be shown as the latest. Nothing was changed; {WAY_OUT} TABLE "
            f"{instant.requested_time}"
        )


def contents_of(contents: Contents, instants: Iterable[Instant]) -> Iterator[tuple[Instant, object]]:
    """
    Contents of completed commits and cleans, and of rollbacks and restores in any state.

    Args:
        contents: Reads the instants of the table's timeline.
        instants: Instants of these actions and states.

    Returns:
        Each instant with its `model.records` value; None if it is damaged or deleted.
    """
    for instant in instants:
        try:
            yield instant, content_of(contents, instant)
        except (CorruptMetadata, NotFound):
            yield instant, None


def content_of(contents: Contents, instant: Instant) -> object:
    """
    Content of one such instant (see `contents_of`): metadata if it is completed, otherwise its plan.

    Raises:
        CorruptMetadata: It is damaged.
        NotFound: It is deleted.
    """
    if instant.action is Action.CLEAN:
        return contents.clean(instant)
    if instant.action is Action.ROLLBACK:
        return contents.rollback(instant) if instant.is_completed else contents.rollback_plan(instant)
    if instant.action is not Action.RESTORE:
        return contents.commit(instant)
    if instant.is_pending:
        return contents.restore_plan(instant)
    return decode_restore_metadata(contents.store.read(instant), contents.store.path(instant))

"""
Decides what is wrong with a table, and what to do about it. Pure.

Only what is proven to be garbage is deleted. Otherwise the evidence says why there is no proof, and what to do.
Source: rules/timeline 3.3, rules/table-services B, K-11, K-14, K-25.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from hudi_py.model.instant import Action, Instant, State
from hudi_py.services.check.facts import Health
from hudi_py.services.recovery.contradictions import contradictions
from hudi_py.services.recovery.facts import Lock, RecoveryFacts, may_run_again
from hudi_py.services.recovery.finding import ORDER, Problem, RecoveryFinding, Step
from hudi_py.timeline.markers import marker_folder

TEMPORARY_AGE_MS: Final = 3_600_000
"""A temporary file is renamed within moments; after an hour no process is writing it any more."""

_WRITES: Final = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
_SERVICES: Final = frozenset({Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING, Action.INDEXING})
_CLOUDING: Final = frozenset({Problem.DAMAGED_INSTANT, Problem.PENDING_RESTORE, Problem.PROPERTIES})
"""While one of these problems exists, comparing instants with files would report wrong findings."""
_HEARTBEATS: Final = ".hoodie/.heartbeat"


def plan_recovery(facts: RecoveryFacts) -> tuple[RecoveryFinding, ...]:
    """Return all findings, in the order in which their steps are taken."""
    found = [*_properties(facts), *_instants(facts), *_left_behind(facts), *_files(facts), *_metadata_table(facts)]
    found += _metafiles(facts)
    if not any(each.is_settled_by_us and each.problem in _CLOUDING for each in found):
        found += contradictions(facts.found, found)
    return tuple(sorted(found, key=lambda each: ORDER[each.step]))  # stable: newest writes first within a step


def _properties(facts: RecoveryFacts) -> Iterator[RecoveryFinding]:
    if facts.properties_problem is not None:
        yield RecoveryFinding(
            problem=Problem.PROPERTIES,
            step=Step.RESTORE_PROPERTIES,
            evidence=(facts.properties_problem, "the other file, with a valid checksum, is the state before"),
        )


def _instants(facts: RecoveryFacts) -> Iterator[RecoveryFinding]:
    judges = {
        Action.CLEAN: _pending_clean,
        Action.ROLLBACK: _pending_rollback,
        Action.RESTORE: _pending_restore,
        Action.SAVEPOINT: _pending_savepoint,
    }
    for instant in reversed(facts.timeline.instants):
        if instant.is_completed:
            yield from _completed(facts, instant)
        elif instant.action in _WRITES and instant.requested_time not in facts.clusterings:
            yield _pending_write(facts, instant)
        elif instant.action in _SERVICES or instant.requested_time in facts.clusterings:
            yield _pending_service(facts, instant)
        else:
            yield judges[instant.action](facts, instant)


def _completed(facts: RecoveryFacts, instant: Instant) -> Iterator[RecoveryFinding]:
    health = facts.health_of(instant, State.COMPLETED)
    if health in (Health.EMPTY, Health.DAMAGED):
        yield _damaged_completed(facts, instant, health)
        return
    states = facts.files_of(instant)
    if instant.action is not Action.SAVEPOINT and State.INFLIGHT not in states and State.REQUESTED not in states:
        yield RecoveryFinding(
            problem=Problem.INTERRUPTED_ARCHIVAL,
            step=Step.LEAVE,
            evidence=("only its completed file is left", "it counts as before; the next archival takes it"),
            instant=instant,
        )


def _damaged_completed(facts: RecoveryFacts, instant: Instant, health: Health) -> RecoveryFinding:
    why = facts.why(instant, State.COMPLETED)
    has_plan = facts.health_of(instant, State.REQUESTED) is Health.GOOD
    step, then = Step.DECIDE, "what it recorded cannot be told; put the file back from a copy of the table"
    if instant.action is Action.CLEAN:
        step, then = Step.QUARANTINE, "there is no plan to carry out again; the next clean plans anew"
        if has_plan:
            step, then = Step.REDO, "its plan is whole, and deleting what is gone already changes nothing"
    elif instant.action is Action.ROLLBACK:
        target = facts.rollback_targets.get(instant.requested_time)
        then = "what it took back cannot be told; put the file back from a copy of the table"
        if has_plan and target is not None:
            time = target.requested_time
            then = f"the write that it took back, {time}, is on the timeline again; put the file back from a copy"
            if all(each.requested_time != time for each in facts.timeline.instants):
                then = f"{target.action} {time}, which it took back, may have been run again, completed and archived"
                if not (may_run_again(target.action) and facts.may_be_archived(time)):
                    step, then = Step.REDO, f"its plan is whole, and {time}, which it took back, is gone"
    elif instant.action is Action.SAVEPOINT:
        then = "which files it holds cannot be told; delete the savepoint and create it again"
    elif health is Health.EMPTY:
        then = (
            "its files are visible, but not what it recorded; put the file back from a copy of the table, or take the "
            f"write back with hudi-py rollback {instant.requested_time}"
        )
    return RecoveryFinding(problem=Problem.DAMAGED_INSTANT, step=step, evidence=(why, then), instant=instant)


def _pending_write(facts: RecoveryFacts, instant: Instant) -> RecoveryFinding:
    time = instant.requested_time
    age = facts.heartbeats.get(time)
    if facts.is_alive(time):
        return RecoveryFinding(
            problem=Problem.LIVE_WRITE,
            step=Step.LEAVE,
            evidence=(f"its heartbeat is {_seconds(age)} old, and expires after {_seconds(facts.expiry_ms)}",),
            instant=instant,
        )
    lost = facts.completion_lost(instant)
    if lost is not None:
        return RecoveryFinding(
            problem=Problem.CONTRADICTION, step=Step.DECIDE, evidence=(lost.message, lost.fix), instant=instant
        )
    may_be_planned = instant.action is Action.REPLACE_COMMIT  # of others nobody reads what the requested file holds
    if may_be_planned and facts.health_of(instant, State.REQUESTED) is Health.DAMAGED:
        if instant.state is State.REQUESTED:
            return _unreadable(facts, instant, "it was only requested, so it has written no file")
        return RecoveryFinding(
            problem=Problem.DAMAGED_INSTANT,
            step=Step.DECIDE,
            evidence=(facts.why(instant, State.REQUESTED), "it may be a clustering, whose plan has to stay"),
            instant=instant,
        )
    heartbeat = "it has no heartbeat" if age is None else f"its heartbeat is {_seconds(age)} old"
    seen = [f"it is {instant.state.name.lower()}, and {heartbeat}"]
    if time in facts.markers:
        seen.append(f"{marker_folder(time)} names the files that it began")
    if facts.policy == "NEVER":
        return RecoveryFinding(
            problem=Problem.FAILED_WRITE,
            step=Step.LEAVE,
            evidence=(*seen, "hoodie.clean.failed.writes.policy=NEVER: failed writes are only reported"),
            instant=instant,
        )
    return RecoveryFinding(problem=Problem.FAILED_WRITE, step=Step.ROLL_BACK, evidence=tuple(seen), instant=instant)


def _pending_service(facts: RecoveryFacts, instant: Instant) -> RecoveryFinding:
    needs_plan = instant.action is not Action.INDEXING
    if needs_plan and facts.health_of(instant, State.REQUESTED) in (Health.EMPTY, Health.DAMAGED, Health.ABSENT):
        if instant.state is State.REQUESTED and instant.requested_time not in facts.carried:
            return _unreadable(
                facts, instant, "it was only requested, and no file carries its time; it is planned anew"
            )
        return RecoveryFinding(
            problem=Problem.DAMAGED_INSTANT,
            step=Step.DECIDE,
            evidence=(
                facts.why(instant, State.REQUESTED),
                "log files may have been written for what it plans; put the file back from a copy of the table",
            ),
            instant=instant,
        )
    if instant.state is State.REQUESTED:
        return RecoveryFinding(
            problem=Problem.PLANNED_SERVICE,
            step=Step.LEAVE,
            evidence=("its plan is carried out by whoever runs that service",),
            instant=instant,
        )
    return RecoveryFinding(
        problem=Problem.STARTED_SERVICE,
        step=Step.LEAVE,
        evidence=(
            "whether it is still at work cannot be told: services have no heartbeat",
            f"its next run starts it again; hudi-py rollback {instant.requested_time} takes it back to its plan",
        ),
        instant=instant,
    )


def _pending_clean(facts: RecoveryFacts, instant: Instant) -> RecoveryFinding:
    plan, copy = facts.health_of(instant, State.REQUESTED), facts.health_of(instant, State.INFLIGHT)
    if plan is Health.DAMAGED:
        if copy is Health.GOOD:
            return RecoveryFinding(
                problem=Problem.DAMAGED_INSTANT,
                step=Step.MEND_PLAN,
                evidence=(facts.why(instant, State.REQUESTED), "its inflight file holds a copy of the plan"),
                instant=instant,
            )
        return _unreadable(facts, instant, "the next clean plans anew what it did not delete")
    if plan is not Health.GOOD and copy is Health.DAMAGED:
        return _unreadable(facts, instant, "the next clean plans anew what it did not delete")
    needed = facts.stale_cleans.get(instant.requested_time)
    if needed is not None:
        is_begun = instant.state is State.INFLIGHT
        return RecoveryFinding(
            problem=Problem.PENDING_CLEAN,
            step=Step.SETTLE_CLEAN if is_begun else Step.WITHDRAW_CLEAN,
            evidence=(
                f"its plan is no longer right: {needed}",
                "what nobody needs goes, and only that is recorded as deleted"
                if is_begun
                else "nothing was deleted by it",
            ),
            instant=instant,
        )
    has_plan = Health.GOOD in (plan, copy)
    return RecoveryFinding(
        problem=Problem.PENDING_CLEAN,
        step=Step.FINISH_CLEAN,
        evidence=(
            f"it is {instant.state.name.lower()}",
            "its plan is whole; what is deleted already counts as deleted"
            if has_plan
            else "it has no plan, so nothing was deleted by it; its empty files go",
        ),
        instant=instant,
    )


def _pending_rollback(facts: RecoveryFacts, instant: Instant) -> RecoveryFinding:
    if facts.health_of(instant, State.REQUESTED) is not Health.GOOD:
        done = "nothing was done by it" if instant.state is State.REQUESTED else "what it undoes is not completed"
        return _unreadable(facts, instant, f"{done}; a write that is still pending gets a new plan")
    target = facts.rollback_targets.get(instant.requested_time)
    if target is None:
        return _unreadable(facts, instant, "its plan does not name what it undoes")
    return RecoveryFinding(
        problem=Problem.PENDING_ROLLBACK,
        step=Step.FINISH_ROLLBACK,
        evidence=(
            f"it is {instant.state.name.lower()}",
            f"its plan, which takes back {target.requested_time}, is whole",
        ),
        instant=instant,
    )


def _pending_restore(facts: RecoveryFacts, instant: Instant) -> RecoveryFinding:
    if facts.health_of(instant, State.REQUESTED) is Health.GOOD:
        return RecoveryFinding(
            problem=Problem.PENDING_RESTORE,
            step=Step.FINISH_RESTORE,
            evidence=(f"it is {instant.state.name.lower()}", "its plan is whole; no write can begin before it is done"),
            instant=instant,
        )
    if instant.state is State.REQUESTED:
        return _unreadable(facts, instant, "nothing was undone by it")
    return RecoveryFinding(
        problem=Problem.DAMAGED_INSTANT,
        step=Step.DECIDE,
        evidence=(
            facts.why(instant, State.REQUESTED),
            "some writes may be undone already: move its files out of the timeline, then restore to the savepoint",
        ),
        instant=instant,
    )


def _pending_savepoint(_: RecoveryFacts, instant: Instant) -> RecoveryFinding:
    return RecoveryFinding(
        problem=Problem.PENDING_SAVEPOINT,
        step=Step.REMOVE_SAVEPOINT,
        evidence=("an inflight savepoint holds no file: it was being created, or being deleted",),
        instant=instant,
    )


def _unreadable(facts: RecoveryFacts, instant: Instant, safe_because: str) -> RecoveryFinding:
    states = [
        state
        for state in (State.REQUESTED, State.INFLIGHT)
        if facts.health_of(instant, state) not in (Health.GOOD, Health.ABSENT)
    ]
    why = facts.why(instant, states[0] if states else State.REQUESTED)
    return RecoveryFinding(
        problem=Problem.DAMAGED_INSTANT,
        step=Step.QUARANTINE,
        evidence=(why, f"{safe_because}; a copy stays below .hoodie/.aux/hudi_py/quarantine"),
        instant=instant,
    )


def _left_behind(facts: RecoveryFacts) -> Iterator[RecoveryFinding]:
    pending = {each.requested_time for each in facts.timeline.instants if each.is_pending}
    completed = {each.requested_time for each in facts.timeline.instants if each.is_completed}
    for time in facts.markers:
        if time in pending:
            continue
        why = _is_over(facts, time, completed)
        yield RecoveryFinding(
            problem=Problem.STALE_MARKERS,
            step=Step.LEAVE if why is None else Step.REMOVE_FILES,
            evidence=(why or "no timeline tells what became of that write; the files are named in the folder",),
            requested_time=time,
            paths=(f"{marker_folder(time)}/",),
        )
    for time, age in sorted(facts.heartbeats.items()):
        if time in pending:
            continue
        why = _is_over(facts, time, completed)
        if why is None and age > facts.expiry_ms:
            why = f"no instant has that time, and the heartbeat is {_seconds(age)} old"
        yield RecoveryFinding(
            problem=Problem.STALE_HEARTBEAT,
            step=Step.LEAVE if why is None else Step.REMOVE_FILES,
            evidence=(why or f"a write may be about to begin: it is {_seconds(age)} old",),
            requested_time=time,
            paths=(f"{_HEARTBEATS}/{time}",),
        )
    old = [each for each in facts.temporary if each.age_ms > TEMPORARY_AGE_MS]
    if old:
        yield RecoveryFinding(
            problem=Problem.TEMPORARY_FILES,
            step=Step.REMOVE_FILES,
            evidence=(
                f"{len(old)} files of interrupted creations, all more than {_seconds(TEMPORARY_AGE_MS)} old",
                "nobody reads such names",
            ),
            paths=tuple(each.path for each in old),
        )
    yield from lock_findings(facts.locks)


def lock_findings(locks: Iterable[Lock]) -> Iterator[RecoveryFinding]:
    """A lock goes only when it is free for everyone by Hudi's own rule, or its holder is gone."""
    for lock in locks:
        step = Step.LEAVE if lock.way_out is None else Step.DECIDE
        yield RecoveryFinding(
            problem=Problem.LOCK,
            step=Step.REMOVE_FILES if lock.is_expired else step,
            evidence=(*lock.evidence, *([lock.way_out] if lock.way_out else [])),
            paths=(lock.path,),
        )


def _metafiles(facts: RecoveryFacts) -> Iterator[RecoveryFinding]:
    for path, content in facts.metafiles.items():
        yield RecoveryFinding(
            problem=Problem.PARTITION_METAFILE,
            step=Step.REWRITE_METAFILE,
            evidence=(
                "a completed commit names the folder as a partition, so its depth follows from its path",
                "a copy of the damaged file stays below .hoodie/.aux/hudi_py/quarantine",
            ),
            paths=(path,),
            content=content,
        )


def _is_over(facts: RecoveryFacts, time: str, completed: set[str]) -> str | None:
    if time in completed:
        return "that write is completed"
    undone = facts.undone.get(time)
    if undone is not None and not any(each.requested_time == time for each in facts.timeline.instants):
        return f"that write was taken back by {undone.by}"
    if facts.archived is not None and time in facts.archived:
        return "that write is completed and archived"
    return None


def _files(facts: RecoveryFacts) -> Iterator[RecoveryFinding]:
    for time, files in sorted(facts.strangers.items()):
        undone = facts.undone.get(time)
        if undone is None and facts.archived is not None and time in facts.archived:
            continue
        count = f"{len(files.paths)} files carry {time}, which is on no timeline"
        seen = f"nobody reads them now, and they look committed once archival passes {time}"
        if facts.may_be_archived(time):
            seen = "they are older than the active timeline, so readers take them for committed ones"
        missing = None
        if undone is None:
            missing = "no rollback or restore says that the write was taken back"
        elif facts.archived is None or time in facts.archived:
            missing = "whether the write completed after that cannot be told from the archive"
        elif undone.may_run_again and facts.may_be_archived(time):
            missing = f"{undone.by} took an attempt back, and the service may have been run again, and archived, since"
        elif files.logs_of_layout_1:
            missing = "other delta commits may have written into these log files"
        elif facts.is_alive(time):
            missing = "a heartbeat says that the write is at work"
        if missing is None and undone is not None:
            yield RecoveryFinding(
                problem=Problem.ORPHANS,
                step=Step.REMOVE_FILES,
                evidence=(count, f"{undone.by} took that write back, and no timeline has it since"),
                requested_time=time,
                paths=files.paths,
            )
            continue
        yield RecoveryFinding(
            problem=Problem.UNKNOWN_FILES,
            step=Step.DECIDE,
            evidence=(count, f"{missing}; {seen}"),
            requested_time=time,
            paths=files.paths,
        )


def _metadata_table(facts: RecoveryFacts) -> Iterator[RecoveryFinding]:
    if facts.lost:
        folders = {_folder(path) for path in facts.lost}
        hidden = [
            each for each in facts.found if each.code == "partition-metafile-missing" and _folder(each.where) in folders
        ]
        yield RecoveryFinding(
            problem=Problem.LOST_FILES,
            step=Step.DECIDE,
            evidence=(
                *(f"{each.where}: {each.message}; {each.fix}" for each in hidden),
                f"the metadata table lists {len(facts.lost)} files that are in no partition, and nothing removed them",
                "hudi-py check tells more; bring them back from a copy of the table, or restore to a savepoint",
                "the metadata table stays: without it, readers would pass over the loss",
            ),
            paths=facts.lost,
        )
    if facts.metadata_problem is None:
        return
    alive = [time for time in facts.heartbeats if facts.is_alive(time)]
    yield RecoveryFinding(
        problem=Problem.METADATA_TABLE,
        step=Step.LEAVE if alive else Step.DROP_METADATA_TABLE,
        evidence=(
            facts.metadata_problem,
            f"the write {alive[0]} is at work beside it; try again later"
            if alive
            else "it repeats what the folders hold; the next write with hoodie.metadata.enable=true makes it anew",
        ),
    )


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _seconds(ms: int | None) -> str:
    return f"{(ms or 0) // 1000} s"

"""
Judges the instants of a table: which are damaged or unfinished, and what that needs. Pure.

An instant is finished from its stored plan where that can be read, and is never planned again under its old time. One
whose plan is lost leaves the timeline only where it cannot have changed a file, or where the next run of its service
comes to the same result. Source: rules/timeline 3.3, rules/table-services B, K-11, K-14, K-25.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hudi_py.model.instant import Action, Instant, State
from hudi_py.services.check.facts import Health
from hudi_py.services.recovery.facts import RecoveryFacts
from hudi_py.services.recovery.finding import Problem, RecoveryFinding, Step, seconds
from hudi_py.timeline.completions import may_run_again
from hudi_py.timeline.markers import marker_folder

_WRITES: Final = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
_SERVICES: Final = frozenset({Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING, Action.INDEXING})


def judge_instants(facts: RecoveryFacts) -> Iterator[RecoveryFinding]:
    """Findings about instants, newest instant first: later writes are rolled back before the ones they build on."""
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
            evidence=("only its completed file is left", "readers still count it; the next archival deletes it"),
            instant=instant,
        )


def _damaged_completed(facts: RecoveryFacts, instant: Instant, health: Health) -> RecoveryFinding:
    why = facts.why(instant, State.COMPLETED)
    has_plan = facts.health_of(instant, State.REQUESTED) is Health.GOOD
    # By default a person decides: files of a completed instant are visible, and only its content says which.
    step, then = Step.DECIDE, "what it recorded is unknown; put the file back from a copy of the table"
    if instant.action is Action.CLEAN:
        step, then = Step.QUARANTINE, "there is no plan to carry out again; the next clean makes a new one"
        if has_plan:
            step, then = Step.REDO, "its plan is complete; files that are deleted already do not matter"
    elif instant.action is Action.ROLLBACK:
        target = facts.rollback_targets.get(instant.requested_time)
        then = "what it rolled back is unknown; put the file back from a copy of the table"
        if has_plan and target is not None:
            time = target.requested_time
            then = f"the write that it rolled back, {time}, is on the timeline again; put the file back from a copy"
            # Carrying the plan out again would delete the files of a second run under the same time (B-25).
            if all(fact.requested_time != time for fact in facts.timeline.instants):
                then = f"{target.action} {time}, which it rolled back, may have been run again, completed and archived"
                if not (may_run_again(target.action) and facts.may_be_archived(time)):
                    step, then = (
                        Step.REDO,
                        f"its plan is complete, and {time}, which it rolled back, is no longer on the timeline",
                    )
    elif instant.action is Action.SAVEPOINT:
        then = "which files it protects is unknown; delete the savepoint and create it again"
    elif health is Health.EMPTY:
        then = (
            "its files are visible, but not what it recorded; put the file back from a copy of the table, or roll the "
            f"write back with hudi-py rollback {instant.requested_time}"
        )
    return RecoveryFinding(problem=Problem.DAMAGED_INSTANT, step=step, evidence=(why, then), instant=instant)


def _pending_write(facts: RecoveryFacts, instant: Instant) -> RecoveryFinding:
    time = instant.requested_time
    age = facts.heartbeats.get(time)
    # Asked first: of a running write nothing else means anything.
    if facts.is_alive(time):
        return RecoveryFinding(
            problem=Problem.LIVE_WRITE,
            step=Step.LEAVE,
            evidence=(f"its heartbeat is {seconds(age)} old, and expires after {seconds(facts.expiry_ms)}",),
            instant=instant,
        )
    # A write that was completed once looks pending when its completed file is lost: a rollback would delete its rows.
    lost = facts.completion_lost(instant)
    if lost is not None:
        return RecoveryFinding(
            problem=Problem.CONTRADICTION, step=Step.DECIDE, evidence=(lost.message, lost.fix), instant=instant
        )
    # The requested files of other writes hold nothing that is needed.
    may_be_planned = instant.action is Action.REPLACE_COMMIT
    if may_be_planned and facts.health_of(instant, State.REQUESTED) is Health.DAMAGED:
        if instant.state is State.REQUESTED:
            return _unreadable(facts, instant, "it was only requested, so it has not written any file")
        return RecoveryFinding(
            problem=Problem.DAMAGED_INSTANT,
            step=Step.DECIDE,
            evidence=(facts.why(instant, State.REQUESTED), "it may be a clustering, whose plan must not be deleted"),
            instant=instant,
        )
    heartbeat = "it has no heartbeat" if age is None else f"its heartbeat is {seconds(age)} old"
    seen = [f"it is {instant.state.name.lower()}, and {heartbeat}"]
    if time in facts.markers:
        seen.append(f"{marker_folder(time)} names the files that it began to write")
    # Recovery follows the policy, too: whoever set it wants to look at failed writes.
    if facts.policy == "NEVER":
        return RecoveryFinding(
            problem=Problem.FAILED_WRITE,
            step=Step.LEAVE,
            evidence=(*seen, "hoodie.clean.failed.writes.policy=NEVER: failed writes are only reported"),
            instant=instant,
        )
    return RecoveryFinding(problem=Problem.FAILED_WRITE, step=Step.ROLL_BACK, evidence=tuple(seen), instant=instant)


def _pending_service(facts: RecoveryFacts, instant: Instant) -> RecoveryFinding:
    # In layout 1, log files written after a compaction was planned carry its time, even if it never began: they belong
    # on the base file that it will write. So its plan may go only while no file has that time.
    # Indexing changes no file of the table, whatever its plan said.
    needs_plan = instant.action is not Action.INDEXING
    if needs_plan and facts.health_of(instant, State.REQUESTED) in (Health.EMPTY, Health.DAMAGED, Health.ABSENT):
        if instant.state is State.REQUESTED and instant.requested_time not in facts.carried:
            return _unreadable(
                facts, instant, "it was only requested, and no file has its time; its service plans it again"
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
            evidence=("the process that runs this service carries out its plan",),
            instant=instant,
        )
    time = instant.requested_time
    # Only with proof: a service of Apache Hudi may be running without any sign.
    why = facts.failed.get(time)
    if why is not None and facts.policy != "NEVER":
        return RecoveryFinding(
            problem=Problem.STARTED_SERVICE,
            step=Step.ROLL_BACK,
            evidence=(why, "its plan stays, and its next run carries it out"),
            instant=instant,
        )
    evidence = "it may still be running: services of Apache Hudi have no heartbeat"
    if why is not None:
        evidence = f"{why}; hoodie.clean.failed.writes.policy=NEVER: failed attempts are only reported"
    elif facts.is_alive(time):
        age = seconds(facts.heartbeats[time])
        evidence = f"its heartbeat is {age} old, and expires after {seconds(facts.expiry_ms)}"
    return RecoveryFinding(
        problem=Problem.STARTED_SERVICE,
        step=Step.LEAVE,
        evidence=(evidence, f"its next run starts it again; hudi-py rollback {time} undoes the attempt only"),
        instant=instant,
    )


def _pending_clean(facts: RecoveryFacts, instant: Instant) -> RecoveryFinding:
    plan, copy = facts.health_of(instant, State.REQUESTED), facts.health_of(instant, State.INFLIGHT)
    # Hudi reads the plan from here, and fails on damaged bytes at every clean (rules/table-services A.8).
    if plan is Health.DAMAGED:
        if copy is Health.GOOD:
            return RecoveryFinding(
                problem=Problem.DAMAGED_INSTANT,
                step=Step.MEND_PLAN,
                evidence=(facts.why(instant, State.REQUESTED), "its inflight file holds a copy of the plan"),
                instant=instant,
            )
        return _unreadable(facts, instant, "the next clean plans again what it did not delete")
    if plan is not Health.GOOD and copy is Health.DAMAGED:
        return _unreadable(facts, instant, "the next clean plans again what it did not delete")
    # A savepoint or a rollback may have come after the plan, and now needs a file in it (docs/decisions).
    needed = facts.stale_cleans.get(instant.requested_time)
    if needed is not None:
        is_begun = instant.state is State.INFLIGHT
        return RecoveryFinding(
            problem=Problem.PENDING_CLEAN,
            step=Step.SETTLE_CLEAN if is_begun else Step.WITHDRAW_CLEAN,
            evidence=(
                f"its plan is no longer valid: {needed}",
                "only the files that nobody needs are deleted, and recorded as deleted"
                if is_begun
                else "it has not deleted anything",
            ),
            instant=instant,
        )
    has_plan = Health.GOOD in (plan, copy)
    return RecoveryFinding(
        problem=Problem.PENDING_CLEAN,
        step=Step.FINISH_CLEAN,
        evidence=(
            f"it is {instant.state.name.lower()}",
            "its plan is complete; what is deleted already counts as deleted"
            if has_plan
            else "it has no plan, so it has not deleted anything; its empty files are removed",
        ),
        instant=instant,
    )


def _pending_rollback(facts: RecoveryFacts, instant: Instant) -> RecoveryFinding:
    # Without its plan nobody can finish it, and Hudi makes a new one (B-7).
    if facts.health_of(instant, State.REQUESTED) is not Health.GOOD:
        done = "it has not done anything" if instant.state is State.REQUESTED else "what it undoes is not completed"
        return _unreadable(facts, instant, f"{done}; a write that is still pending gets a new plan")
    target = facts.rollback_targets.get(instant.requested_time)
    if target is None:
        return _unreadable(facts, instant, "its plan does not name what it undoes")
    return RecoveryFinding(
        problem=Problem.PENDING_ROLLBACK,
        step=Step.FINISH_ROLLBACK,
        evidence=(
            f"it is {instant.state.name.lower()}",
            f"its plan, which rolls back {target.requested_time}, is complete",
        ),
        instant=instant,
    )


def _pending_restore(facts: RecoveryFacts, instant: Instant) -> RecoveryFinding:
    if facts.health_of(instant, State.REQUESTED) is Health.GOOD:
        return RecoveryFinding(
            problem=Problem.PENDING_RESTORE,
            step=Step.FINISH_RESTORE,
            evidence=(
                f"it is {instant.state.name.lower()}",
                "its plan is complete; no write can begin before it is done",
            ),
            instant=instant,
        )
    if instant.state is State.REQUESTED:
        return _unreadable(facts, instant, "it has not undone anything")
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

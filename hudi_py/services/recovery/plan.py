"""
Decides what is wrong with a table, and what to do about it. Pure.

Only files that are proven to be garbage are deleted. Otherwise the evidence says why there is no proof, and what to do.
Source: rules/timeline 3.3, rules/table-services B, K-11, K-14, K-25.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from hudi_py.model.files import parse_base_file
from hudi_py.model.words import counted
from hudi_py.services.recovery.contradictions import contradictions
from hudi_py.services.recovery.facts import Lock, RecoveryFacts
from hudi_py.services.recovery.finding import ORDER, Problem, RecoveryFinding, Step, seconds
from hudi_py.services.recovery.judge_instants import judge_instants
from hudi_py.timeline.markers import marker_folder

TEMPORARY_AGE_MS: Final = 3_600_000
"""A temporary file is renamed within moments; one that is an hour old was left by a process that was stopped."""

_CLOUDING: Final = frozenset({Problem.DAMAGED_INSTANT, Problem.PENDING_RESTORE, Problem.PROPERTIES})
"""While one of these problems exists, a comparison of instants with files reports what the step itself will change."""
_HEARTBEATS: Final = ".hoodie/.heartbeat"


def plan_recovery(facts: RecoveryFacts) -> tuple[RecoveryFinding, ...]:
    """Return all findings, in the order in which their steps are taken."""
    found = [*_properties(facts), *judge_instants(facts), *_left_behind(facts), *_files(facts), *_metadata_table(facts)]
    found += [*_late_files(facts), *_metafiles(facts)]
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


def _left_behind(facts: RecoveryFacts) -> Iterator[RecoveryFinding]:
    pending = {instant.requested_time for instant in facts.timeline.instants if instant.is_pending}
    completed = {fact.requested_time for fact in facts.timeline.instants if fact.is_completed}
    for time in facts.markers:
        if time in pending:
            continue
        # Markers are the only list of what a failed write created, so they stay until it is known to be over.
        why = _is_over(facts, time, completed)
        yield RecoveryFinding(
            problem=Problem.STALE_MARKERS,
            step=Step.LEAVE if why is None else Step.REMOVE_FILES,
            evidence=(
                why or "no timeline says whether that write completed; its marker files name the files that it wrote",
            ),
            requested_time=time,
            paths=(f"{marker_folder(time)}/",),
        )
    for time, age in sorted(facts.heartbeats.items()):
        if time in pending:
            continue
        why = _is_over(facts, time, completed)
        # A writer beats before it creates its requested file: a young heartbeat without an instant may be its own.
        if why is None and age > facts.expiry_ms:
            why = f"no instant has that time, and the heartbeat is {seconds(age)} old"
        yield RecoveryFinding(
            problem=Problem.STALE_HEARTBEAT,
            step=Step.LEAVE if why is None else Step.REMOVE_FILES,
            evidence=(why or f"a write may be about to begin: it is {seconds(age)} old",),
            requested_time=time,
            paths=(f"{_HEARTBEATS}/{time}",),
        )
    old = [each for each in facts.temporary if each.age_ms > TEMPORARY_AGE_MS]
    if old:
        yield RecoveryFinding(
            problem=Problem.TEMPORARY_FILES,
            step=Step.REMOVE_FILES,
            evidence=(
                f"{counted(len(old), 'file')} of interrupted creations, all more than {seconds(TEMPORARY_AGE_MS)} old",
                "no reader looks at files with such names",
            ),
            paths=tuple(each.path for each in old),
        )
    yield from lock_findings(facts.locks)


def lock_findings(locks: Iterable[Lock]) -> Iterator[RecoveryFinding]:
    """A lock is deleted only when Hudi's own rule says that anyone may take it, or its process has ended."""
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
    # A compaction that was rolled back is run again under the same time, so an instant of that time may be a new run.
    if undone is not None and not any(instant.requested_time == time for instant in facts.timeline.instants):
        return f"that write was rolled back by {undone.by}"
    if facts.archived is not None and time in facts.archived:
        return "that write is completed and archived"
    return None


def _files(facts: RecoveryFacts) -> Iterator[RecoveryFinding]:
    for time, files in sorted(facts.strangers.items()):
        undone = facts.undone.get(time)
        # Of an archived commit, and newer than the start of the timeline because a savepointed commit is older (D-7).
        if undone is None and facts.archived is not None and time in facts.archived:
            continue
        count = f"the time {time}, which is on no timeline, is in the name of {counted(len(files.paths), 'file')}"
        seen = f"no reader sees them now, but they look committed as soon as archival has passed {time}"
        # Before the start of the active timeline every file counts as committed: Hudi does not ask the archive.
        if facts.may_be_archived(time):
            seen = "they are older than the active timeline, so readers take them for committed ones"
        missing = None
        if undone is None:
            missing = "no rollback or restore says that the write was rolled back"
        elif facts.archived is None or time in facts.archived:
            missing = "the archive does not show whether the write completed after that"
        elif undone.may_run_again and facts.may_be_archived(time):
            missing = f"{undone.by} rolled an attempt back, but the service may have been run again and archived since"
        elif files.logs_of_layout_1:
            missing = "other delta commits may have written into these log files"
        elif facts.is_alive(time):
            missing = "its heartbeat shows that the write is running"
        if missing is None and undone is not None:
            yield RecoveryFinding(
                problem=Problem.ORPHANS,
                step=Step.REMOVE_FILES,
                evidence=(count, f"{undone.by} rolled that write back, and it is on no timeline since"),
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


def _late_files(facts: RecoveryFacts) -> Iterator[RecoveryFinding]:
    """Files that a completed rewrite does not name; those of a write may hold the only copy of rows."""
    late: dict[str, list[str]] = {}
    for each in facts.found:
        parsed = parse_base_file(each.where.rpartition("/")[2]) if each.code == "file-unnamed" else None
        if parsed is not None and parsed.instant_time in facts.rewrites:
            late.setdefault(parsed.instant_time, []).append(each.where)
    for time, paths in sorted(late.items()):
        yield RecoveryFinding(
            problem=Problem.LATE_FILES,
            step=Step.REMOVE_FILES,
            evidence=(
                f"the completed {facts.rewrites[time]} {time} does not name {counted(len(paths), 'file')} of its time",
                "tasks of an attempt that was given up wrote them",
                "it only moves rows, and all of them are in the files that it names",
            ),
            requested_time=time,
            paths=tuple(sorted(paths)),
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
                f"the metadata table lists {counted(len(facts.lost), 'missing file')}, which no action deleted",
                "hudi-py check has the details; put the files back from a copy of the table, or restore to a savepoint",
                "the metadata table is kept: without it, readers would not notice the loss",
            ),
            paths=facts.lost,
        )
    if facts.metadata_problem is None:
        return
    # A running write keeps the table's properties in memory and would write into the folder that is deleted.
    alive = [time for time in facts.heartbeats if facts.is_alive(time)]
    yield RecoveryFinding(
        problem=Problem.METADATA_TABLE,
        step=Step.LEAVE if alive else Step.DROP_METADATA_TABLE,
        evidence=(
            facts.metadata_problem,
            f"the write {alive[0]} is running and updates it, too; try again later"
            if alive
            else "it repeats what the folders hold; the next write with hoodie.metadata.enable=true creates it again",
        ),
    )


def _folder(path: str) -> str:
    return path.rpartition("/")[0]

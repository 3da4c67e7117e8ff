"""Judges the instants and properties of a table, and files that actions left behind. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import RequestedReplaceMetadata
from hudi_py.services.check.facts import InstantFacts, TableFacts
from hudi_py.services.check.findings import ARCHIVE, Finding, finding
from hudi_py.timeline.before_start import Before
from hudi_py.timeline.completions import lost_completions
from hudi_py.timeline.timeline import WRITES

_PATIENT: Final = (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING)
"""Plans of these actions may wait for any time until their service carries them out."""


def judge_instants(facts: TableFacts, table_path: str) -> list[Finding]:
    """
    Findings about everything but data files and the metadata table.

    Args:
        facts: As gathered.
        table_path: Folder of the timeline, relative to the table.
    """
    found = list(_properties(facts))
    contents = [(fact.instant, fact.content) for fact in facts.instants]
    lost = lost_completions(facts.timeline, contents, facts.completed_once)
    unmarked = lost_completions(facts.timeline, contents, dict.fromkeys(facts.unmarked_times, ""))
    for each in facts.instants:
        outcome = _outcome(each.instant, lost.get(each.instant), is_unmarked=each.instant in unmarked)
        found += _instant(facts, each, table_path, outcome)
    found += [*_savepoints(facts, table_path), *_commits(facts, table_path)]
    for name in facts.unknown_names:
        found.append(finding("timeline-unknown-file", f"{table_path}/{name}"))
    if facts.archive_problem is not None:
        found.append(finding("archive-unreadable", ARCHIVE, facts.archive_problem))
    elif facts.is_archive_empty:
        # A lost archive looks like that of a table which never archived; what the active instants say of earlier ones
        # shows the difference.
        earlier = next(Before(facts.timeline, contents).earlier(), None)
        if earlier is not None:
            found.append(finding("archive-unreadable", ARCHIVE, f"it is missing as a whole: {earlier.why}"))
    writing = {i.requested_time for i in facts.timeline.of(WRITES).pending()}
    for time in facts.marker_times:
        if time not in writing:
            found.append(finding("leftover-markers", f".hoodie/.temp/{time}"))
    return found


def _savepoints(facts: TableFacts, folder: str) -> Iterator[Finding]:
    """Savepoints whose commit was rolled back. Archival keeps savepointed commits; an archived one is readable."""
    if facts.archived is None:
        return
    known = {each.requested_time for each in (*facts.timeline.writes.completed(), *facts.archived.writes.completed())}
    for savepoint in facts.timeline.completed(Action.SAVEPOINT):
        if savepoint.requested_time not in known:
            yield finding("savepoint-commit-missing", f"{folder}/{savepoint.file_name}", str(savepoint))


def _commits(facts: TableFacts, folder: str) -> Iterator[Finding]:
    """The only active commit may have been rolled back after all others were archived."""
    archived = () if facts.archived is None else facts.archived.commits.completed()
    if archived and not facts.timeline.commits.completed():
        yield finding("commits-all-archived", folder, f"the newest is {archived[-1]}")


def _properties(facts: TableFacts) -> Iterator[Finding]:
    if facts.properties_problem is not None:
        yield finding("properties-damaged", ".hoodie/hoodie.properties", facts.properties_problem)
    if facts.has_properties_backup:
        yield finding("properties-backup", ".hoodie/hoodie.properties.backup")


def _outcome(instant: Instant, completed_once: str | None, *, is_unmarked: bool) -> tuple[str, str] | None:
    """Code and message about a pending write that was completed, or may have been; None for others."""
    if completed_once is not None:
        return "instant-completion-lost", f"{instant}: {completed_once}"
    return ("instant-outcome-unknown", str(instant)) if is_unmarked else None


def _instant(facts: TableFacts, each: InstantFacts, folder: str, outcome: tuple[str, str] | None) -> Iterator[Finding]:
    instant = each.instant
    where = f"{folder}/{instant.file_name}"
    states = {file.state for file in each.files}
    completed = sorted(file.completion_time or "" for file in each.files if file.is_completed)
    # A savepoint begins as inflight, so it never has a requested file.
    lacks_request = State.REQUESTED not in states and instant.action is not Action.SAVEPOINT
    if each.lacks_plan:
        yield finding("instant-plan-missing", where)
    elif each.problem is not None:
        yield finding("instant-unreadable", where, each.problem)
    elif each.is_empty and instant.is_completed:
        yield finding("instant-empty", where)
    if instant.is_completed:
        if len(completed) > 1:
            yield finding("instant-twice", where, f"completion times {', '.join(completed)}")
        if lacks_request:
            yield finding("instant-states-missing", where)
        return
    if lacks_request:
        yield finding("instant-request-missing", where)
    # Instead of "stale" or "pending", whose advice would be to roll it back.
    if outcome is not None:
        yield finding(outcome[0], where, outcome[1])
        return
    # In layout 1, only its plan tells a clustering from an overwrite.
    is_patient = instant.action in _PATIENT or (
        isinstance(each.content, RequestedReplaceMetadata) and each.content.clustering_plan is not None
    )
    is_stale = instant.requested_time < facts.stale_before and not is_patient
    yield finding("instant-stale" if is_stale else "instant-pending", where, str(instant))

"""
Whether the metadata table's timeline is in step with the table's. Pure.

Each action that changes files has a delta commit of the same time there. Rollbacks and restores may do without: what
they leave is judged by the files. Source: rules/data-files 11.
"""

from __future__ import annotations

from collections.abc import Iterator

from hudi_py.mdt.in_step import TIME_LENGTH, has_records, is_first_listing, is_in_first_listing
from hudi_py.model.files import METADATA_TABLE_FOLDER
from hudi_py.model.instant import Action, Instant
from hudi_py.model.instant_time import INIT_TIME
from hudi_py.model.records import RestoreMetadata, RollbackMetadata
from hudi_py.services.check.facts import MetadataFacts, TableFacts
from hudi_py.services.check.findings import Finding, finding


def judge_metadata(facts: TableFacts) -> list[Finding]:
    """Findings about the metadata table itself; its listing is judged with the files."""
    metadata = facts.metadata
    if metadata is None:
        return [finding("mdt-leftover", METADATA_TABLE_FOLDER)] if facts.has_metadata_folder else []
    if not facts.has_metadata_folder:
        return [finding("mdt-folder-missing", METADATA_TABLE_FOLDER)]
    found = []
    if metadata.problem is not None:
        found.append(finding("mdt-unreadable", METADATA_TABLE_FOLDER, metadata.problem))
    found += [finding("mdt-instant-damaged", str(each), why) for each, why in metadata.damaged.items()]
    if metadata.problem is None:
        found += _missing(facts, metadata)
        found += _unknown(facts, metadata)
    return found


def _missing(facts: TableFacts, metadata: MetadataFacts) -> Iterator[Finding]:
    recorded = {i.requested_time for i in _delta_commits(metadata)}
    firsts = [i for i in _delta_commits(metadata) if is_first_listing(i)]
    for fact in facts.instants:
        instant = fact.instant
        if not instant.is_completed or instant.requested_time in recorded or not has_records(fact.content):
            continue
        if not is_in_first_listing(instant, firsts):
            yield finding("mdt-instant-missing", str(instant))


def _unknown(facts: TableFacts, metadata: MetadataFacts) -> Iterator[Finding]:
    if facts.archived is None:
        return
    known = {i.requested_time for i in (*facts.timeline, *facts.archived)}
    for fact in facts.instants:
        known |= _undone(fact.content)
    for instant in metadata.timeline.completed(Action.DELTA_COMMIT):
        time = instant.requested_time
        # Longer times are of what the metadata table does for itself, in layout 1 (rules/timeline 2.2).
        if time not in known and not time.startswith(INIT_TIME) and len(time) <= TIME_LENGTH:
            yield finding("mdt-instant-unknown", str(instant))


def _undone(content: object) -> set[str]:
    """Instants that a rollback or restore removed from the timeline; of a restore also its rollbacks."""
    if isinstance(content, RollbackMetadata):
        return {*content.commits_rollback, content.start_rollback_time}
    if isinstance(content, RestoreMetadata):
        inner = (_undone(each) for done in content.rollbacks.values() for each in done)
        return {*content.instants_to_rollback, *content.rollbacks, *(time for times in inner for time in times)}
    return set()


def _delta_commits(metadata: MetadataFacts) -> Iterator[Instant]:
    yield from metadata.timeline.completed(Action.DELTA_COMMIT)
    yield from metadata.archived.completed(Action.DELTA_COMMIT)

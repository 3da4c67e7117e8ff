"""
Whether the metadata table's timeline is in step with the table's. Pure.

Each action that changes files has a delta commit of the same time there. Rollbacks and restores may do without: what
they leave is judged by the files. Source: format/data-files section 11.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hudi_py.errors import CorruptMetadata
from hudi_py.mdt.changes import Changes, changes_of_clean, changes_of_commit, records_of
from hudi_py.mdt.table import INIT_TIME, METADATA_FOLDER
from hudi_py.model.instant import Action, Instant
from hudi_py.model.records import CleanMetadata, CommitMetadata
from hudi_py.services.check.facts import InstantFacts, MetadataFacts, TableFacts
from hudi_py.services.check.findings import Finding, finding

_TIME_LENGTH: Final = 17
"""Layout 1 adds three digits to the time of the last delta commit for what the metadata table does for itself."""


def judge_metadata(facts: TableFacts) -> list[Finding]:
    """Findings about the metadata table as a whole; its listing is judged with the files."""
    metadata = facts.metadata
    if metadata is None:
        return [finding("mdt-leftover", METADATA_FOLDER)] if facts.has_metadata_folder else []
    if not facts.has_metadata_folder:
        return [finding("mdt-folder-missing", METADATA_FOLDER)]
    found = []
    if metadata.problem is not None:
        found.append(finding("mdt-unreadable", METADATA_FOLDER, metadata.problem))
    found += [finding("mdt-instant-damaged", str(each), why) for each, why in metadata.damaged.items()]
    if metadata.problem is None:
        found += _missing(facts, metadata)
        found += _unknown(facts, metadata)
    return found


def _missing(facts: TableFacts, metadata: MetadataFacts) -> Iterator[Finding]:
    recorded = {i.requested_time for i in _delta_commits(metadata)}
    for each in facts.instants:
        instant = each.instant
        if not instant.is_completed or instant.requested_time in recorded or not _has_records(each):
            continue
        if not _is_in_first_listing(instant, metadata):
            yield finding("mdt-instant-missing", str(instant))


def _has_records(each: InstantFacts) -> bool:
    try:
        return bool(records_of(_changes(each)))
    except CorruptMetadata:  # a file without size: Hudi could not record it either
        return False


def _changes(each: InstantFacts) -> Changes:
    if isinstance(each.content, CommitMetadata):
        return changes_of_commit(each.content)
    if isinstance(each.content, CleanMetadata):
        return changes_of_clean(each.content)
    return Changes()


def _is_in_first_listing(instant: Instant, metadata: MetadataFacts) -> bool:
    """Whether the metadata table was made of a listing after the instant completed."""
    for first in _delta_commits(metadata):
        if first.requested_time.startswith(INIT_TIME):
            made = first.completion_time
            if made is not None and instant.completion_time is not None and instant.completion_time <= made:
                return True
        elif len(first.requested_time) > _TIME_LENGTH and instant.requested_time <= first.requested_time:
            return True
    return False


def _unknown(facts: TableFacts, metadata: MetadataFacts) -> Iterator[Finding]:
    if facts.archived is None:
        return
    known = {i.requested_time for i in (*facts.timeline, *facts.archived)}
    for instant in metadata.timeline.completed(Action.DELTA_COMMIT):
        time = instant.requested_time
        if time not in known and not time.startswith(INIT_TIME) and len(time) <= _TIME_LENGTH:
            yield finding("mdt-instant-unknown", str(instant))


def _delta_commits(metadata: MetadataFacts) -> Iterator[Instant]:
    yield from metadata.timeline.completed(Action.DELTA_COMMIT)
    yield from metadata.archived.completed(Action.DELTA_COMMIT)

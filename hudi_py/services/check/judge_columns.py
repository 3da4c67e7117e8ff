"""Finds damage in what a table with schema on read records of its columns: their ids, and the history of them."""

from __future__ import annotations

from collections.abc import Iterator

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.column_history import HISTORY_FOLDER, is_history_of, parse_columns, parse_history
from hudi_py.model.records import CommitMetadata
from hudi_py.services.check.facts import TableFacts
from hudi_py.services.check.findings import Finding, finding
from hudi_py.storage.base import Storage
from hudi_py.timeline.column_folder import history_path
from hudi_py.timeline.row_schema import IDS_ENTRY, records_schema


def judge_columns(storage: Storage, facts: TableFacts) -> Iterator[Finding]:
    """
    Findings about the columns of a table with schema on read, one at most; none about other tables.

    Args:
        storage: Of the table.
        facts: Its timeline.
    """
    writes = [
        (each.instant, each.content.extra_metadata)
        for each in facts.instants
        if each.instant.is_completed and isinstance(each.content, CommitMetadata) and records_schema(each.content)
    ]
    with_ids = [(instant, entries[IDS_ENTRY]) for instant, entries in writes if entries.get(IDS_ENTRY)]
    if not with_ids:
        return
    instant, latest = with_ids[-1]
    if instant != writes[-1][0]:
        yield finding("columns-ids-lost", str(writes[-1][0]), f"{instant} has them")
        return
    path = history_path(storage, facts.timeline)
    if path is None:
        yield finding("columns-history-missing", HISTORY_FOLDER, f"{instant} has ids, and no file there counts")
        return
    try:
        versions = parse_history(storage.read(path), storage.root)
        today = parse_columns(latest or "", storage.root)
    except CorruptMetadata as error:
        yield finding("columns-history-damaged", path, str(error))
        return
    if not is_history_of(versions, today):
        yield finding("columns-history-damaged", path, f"it lacks the version {today['version_id']} that {instant} has")

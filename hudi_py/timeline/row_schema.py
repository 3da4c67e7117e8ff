"""
What commits record of the columns of a table's rows: their Avro schema, and with schema on read their ids.

Source: rules/timeline 4.5 and 6.1a.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from hudi_py.errors import CorruptMetadata
from hudi_py.formats import column_history
from hudi_py.formats.column_history import MovedColumns
from hudi_py.model.records import CommitMetadata
from hudi_py.timeline.column_folder import has_history, read_history
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline

IDS_ENTRY: Final = "latest_schema"
"""Name of the columns with their ids among the entries of a commit."""
_NO_ROW_SCHEMA: Final = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX"})


def schema_entries(
    contents: Contents, timeline: Timeline, as_of: str | None, *, passes: AbstractSet[str] = _NO_ROW_SCHEMA
) -> Mapping[str, str | None]:
    """
    The entries of the newest commit that records a schema of rows; empty if none does.

    Args:
        as_of: Instant time of the last commit that counts; None for all.
        passes: Operations that are passed over: those that Hudi passes over when it resolves a table's schema.
    """
    for instant in reversed(timeline.commits.completed()):
        if as_of is not None and instant.requested_time > as_of:
            continue
        metadata = contents.commit(instant)
        if records_schema(metadata, passes):
            return metadata.extra_metadata
    return {}


def schema_entries_at(contents: Contents, timeline: Timeline, as_of: str) -> Mapping[str, str | None]:
    """
    As `schema_entries`, for the rows of an earlier time.

    A rewrite writes its rows with the columns of its time, and says so. That counts where the writes before it are
    archived: later columns are not those of that time.
    """
    return schema_entries(contents, timeline, as_of) or schema_entries(contents, timeline, as_of, passes=frozenset())


def records_schema(metadata: CommitMetadata, passes: AbstractSet[str] = _NO_ROW_SCHEMA) -> bool:
    """Whether a commit records a schema of rows, and is of none of the operations *passes*."""
    return bool(metadata.extra_metadata.get("schema")) and metadata.operation_type not in passes


def column_ids(contents: Contents, timeline: Timeline, as_of: str | None = None) -> str | None:
    """
    The columns with their ids as JSON, from the same commit as the Avro schema; None without schema on read.

    Before the first active commit they are those of today, as the Avro schema is. Where only rewrites of rows are
    active, those of the newest: a rollback of the last write, or an archival of Apache Hudi, may leave nothing else.

    Raises:
        CorruptMetadata: A commit that may record them is damaged or gone, and the table has a history of columns.
    """
    try:
        entries = {} if as_of is None else schema_entries_at(contents, timeline, as_of)
        if not entries:
            entries = schema_entries(contents, timeline, None)
        if not entries:
            entries = schema_entries(contents, timeline, None, passes=frozenset())
            if entries and not entries.get(IDS_ENTRY) and has_history(contents.store.storage):
                raise CorruptMetadata(
                    f"{contents.store.storage.root} uses schema on read, and no active commit has the ids of its "
                    "columns any more, so renamed columns of older files could not be found; restore the table to a "
                    "savepoint before that, or bring its timeline back from a copy"
                )
    except CorruptMetadata:
        # A commit with ids leaves its history behind before it completes: without one, no commit has any.
        if has_history(contents.store.storage):
            raise
        return None
    return entries.get(IDS_ENTRY) or None


def moved_columns(contents: Contents, timeline: Timeline, as_of: str | None = None) -> MovedColumns | None:
    """
    Where the columns of the table's files are at a time; None if all have the names that they have in the files.

    Raises:
        CorruptMetadata: The table uses schema on read, and its history of columns is damaged.
    """
    latest = column_ids(contents, timeline, as_of)
    if latest is None:  # without column ids nothing links a column to an earlier name
        return None
    storage = contents.store.storage
    entries = ((each.requested_time, contents.commit(each).extra_metadata) for each in timeline.commits.completed())
    written = {time: text for time, found in entries if (text := found.get(IDS_ENTRY))}
    return column_history.moved_columns(latest, read_history(storage, timeline), written, storage.root)

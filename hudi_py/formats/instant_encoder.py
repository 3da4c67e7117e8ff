"""From what an instant says to the bytes of its file, in the form that the table's version asks for. Pure."""

from __future__ import annotations

from typing import Final

from hudi_py.formats import records_codec as codec
from hudi_py.formats.commit_codec import encode_commit
from hudi_py.model import records

InstantRecord = (
    records.CommitMetadata
    | records.CleanerPlan
    | records.CleanMetadata
    | records.CompactionPlan
    | records.RequestedReplaceMetadata
    | records.RollbackPlan
    | records.RollbackMetadata
    | records.RestorePlan
    | records.RestoreMetadata
    | records.SavepointMetadata
)
"""What an instant file can hold; an empty one holds none of these."""

SYNC_BYTES: Final = 16


def encode_record(record: InstantRecord, *, table_version: int, layout_version: int, sync: bytes) -> bytes:
    """
    Encode what an instant says.

    Args:
        record: The plan, or what was done.
        table_version: 6, 8 or 9.
        layout_version: Of the timeline: commits are JSON in 1, Avro in 2.
        sync: `SYNC_BYTES` random bytes, for Avro files.
    """
    if isinstance(record, records.CommitMetadata):
        return encode_commit(record, as_json=layout_version == 1, sync=sync)
    if isinstance(record, records.CompactionPlan):
        return codec.encode_compaction_plan(record, sync, table_version=table_version)
    if isinstance(record, records.RequestedReplaceMetadata):
        return codec.encode_requested_replace(record, sync, table_version=table_version)
    if isinstance(record, records.CleanerPlan):
        return codec.encode_cleaner_plan(record, sync)
    if isinstance(record, records.CleanMetadata):
        return codec.encode_clean_metadata(record, sync)
    if isinstance(record, records.RollbackPlan):
        return codec.encode_rollback_plan(record, sync)
    if isinstance(record, records.RollbackMetadata):
        return codec.encode_rollback_metadata(record, sync)
    if isinstance(record, records.RestorePlan):
        return codec.encode_restore_plan(record, sync)
    if isinstance(record, records.RestoreMetadata):
        return codec.encode_restore_metadata(record, sync)
    return codec.encode_savepoint(record, sync)

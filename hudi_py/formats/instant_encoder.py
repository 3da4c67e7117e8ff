"""Encodes the content of instant files in the form of the table's version. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from hudi_py.formats import records_codec as codec
from hudi_py.formats.commit_codec import encode_commit
from hudi_py.model import records
from hudi_py.versions.format import TableFormat

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
"""The possible contents of an instant file that is not empty."""

SYNC_BYTES: Final = 16


_ENCODERS: Final[Mapping[type, Callable[[Any, bytes], bytes]]] = {
    records.CleanerPlan: codec.encode_cleaner_plan,
    records.CleanMetadata: codec.encode_clean_metadata,
    records.RollbackPlan: codec.encode_rollback_plan,
    records.RollbackMetadata: codec.encode_rollback_metadata,
    records.RestorePlan: codec.encode_restore_plan,
    records.RestoreMetadata: codec.encode_restore_metadata,
    records.SavepointMetadata: codec.encode_savepoint,
}


def encode_record(record: InstantRecord, *, table_format: TableFormat, sync: bytes) -> bytes:
    """
    Return the bytes of an instant file.

    Args:
        record: Plan or result.
        table_format: Format of the table.
        sync: Sync marker for Avro files, `SYNC_BYTES` random bytes.
    """
    if isinstance(record, records.CommitMetadata):
        return encode_commit(record, as_json=table_format.commits_are_json, sync=sync)
    if isinstance(record, records.CompactionPlan):
        # Only these schemas differ between table versions.
        return codec.encode_compaction_plan(record, sync, table_version=table_format.version)
    if isinstance(record, records.RequestedReplaceMetadata):
        return codec.encode_requested_replace(record, sync, table_version=table_format.version)
    return _ENCODERS[type(record)](record, sync)

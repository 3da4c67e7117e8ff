"""
Converts plans and results of table services between instant files and the frozen values of `hudi_py.model.records`.

Every ``decode_*`` takes the bytes and their source for messages, converts what older and newer releases of Hudi wrote
to our schema, and raises `CorruptMetadata` for anything else. Every ``encode_*`` takes the 16-byte sync marker and
returns the bytes that Hudi would write, with its conventions for nulls and defaults (rules/timeline 4.4).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.avro_file import encode_avro_file, frame_record, notes_of_avro_file
from hudi_py.formats.avro_registry import schema_text
from hudi_py.formats.commit_codec import decode_commit, decode_touched, encode_commit
from hudi_py.formats.instant_content import Content, decode_content
from hudi_py.formats.kept import kept_if_small
from hudi_py.formats.plan_codec import encode_plan_body
from hudi_py.formats.record_shapes import (
    ACTION_INSTANT,
    CLEAN_METADATA,
    COMPACTION_PLAN,
    REQUESTED_REPLACE,
    RESTORE_METADATA,
    RESTORE_PLAN,
    ROLLBACK_METADATA,
    ROLLBACK_PLAN,
)
from hudi_py.formats.savepoint_files import savepoint_files
from hudi_py.model import records
from hudi_py.model.instant import Action
from hudi_py.model.instant_time import is_time
from hudi_py.versions.served import NEWEST

__all__ = [
    "decode_clean_metadata",
    "decode_cleaner_plan",
    "decode_commit",
    "decode_compaction_plan",
    "decode_requested_replace",
    "decode_restore_metadata",
    "decode_restore_plan",
    "decode_rollback_metadata",
    "decode_rollback_plan",
    "decode_savepoint",
    "decode_savepoint_files",
    "decode_touched",
    "encode_clean_metadata",
    "encode_cleaner_plan",
    "encode_commit",
    "encode_compaction_plan",
    "encode_requested_replace",
    "encode_restore_metadata",
    "encode_restore_plan",
    "encode_rollback_metadata",
    "encode_rollback_plan",
    "encode_savepoint",
]

SAVEPOINT_NAME: Final = "hudi_py.savepoint.name"
SAVEPOINT_EXPIRY: Final = "hudi_py.savepoint.expires.at.ms"
_EPOCH_MS: Final = re.compile(rb"\d{1,15}")

_ACTIONS: Final = frozenset(action.value for action in Action)


@kept_if_small
def decode_cleaner_plan(data: bytes, source: str) -> records.CleanerPlan:
    """
    Decode ``T.clean.requested``, or the copy of it in ``T.clean.inflight``.

    A plan of version 1 keeps its file names without path: only the caller knows the base path of the table.
    """
    value = _read(data, source, "HoodieCleanerPlan")
    version = _version(value, source, newest=2)
    if version == 1:
        named = (value["filesToBeDeletedPerPartition"] or {}).items()
        files = {partition: tuple(map(records.CleanFileInfo, names)) for partition, names in named}
    else:
        infos = value["filePathsToBeDeletedPerPartition"] or {}
        # The schema allows null here. A plan with a file that cannot be named must not be carried out in part.
        if any(info["filePath"] is None for entries in infos.values() for info in entries):
            raise CorruptMetadata(f"{source}: the clean plan has a file without a path; nothing was deleted")
        files = {  # written out instead of using `Shape`, for speed: a plan may have a hundred thousand files
            partition: tuple(records.CleanFileInfo(e["filePath"], bool(e["isBootstrapBaseFile"])) for e in entries)
            for partition, entries in infos.items()
        }
    earliest = value["earliestInstantToRetain"]
    return records.CleanerPlan(
        policy=value["policy"],
        earliest_instant_to_retain=earliest and ACTION_INSTANT.decode(earliest),
        last_completed_commit_timestamp=value["lastCompletedCommitTimestamp"],
        files_to_delete=files,
        # Null in plans of releases that did not have this field yet.
        partitions_to_delete=tuple(value["partitionsToBeDeleted"] or ()),
        extra_metadata=value["extraMetadata"] or {},
        version=version,
    )


def encode_cleaner_plan(plan: records.CleanerPlan, sync: bytes) -> bytes:
    """Encode ``T.clean.requested``, in the version that *plan* has."""
    is_named = plan.version == 1
    named = plan.files_to_delete.items() if is_named else ()  # do not loop over the files of a large plan needlessly
    earliest = plan.earliest_instant_to_retain
    value = {
        "earliestInstantToRetain": earliest and ACTION_INSTANT.encode(earliest),
        "lastCompletedCommitTimestamp": plan.last_completed_commit_timestamp,
        "policy": plan.policy,
        "filesToBeDeletedPerPartition": {p: [info.path for info in infos] for p, infos in named},
        "version": plan.version,
        "filePathsToBeDeletedPerPartition": {},
        "partitionsToBeDeleted": list(plan.partitions_to_delete),
        "extraMetadata": plan.extra_metadata,
    }
    schema = schema_text("HoodieCleanerPlan")
    if is_named:
        return encode_avro_file(schema, value, sync)
    return frame_record(schema, encode_plan_body(schema, plan, value), sync)


@kept_if_small
def decode_clean_metadata(data: bytes, source: str) -> records.CleanMetadata:
    """Decode a completed clean; the full paths of version 1 become names (``CleanMetadataV2MigrationHandler``)."""
    value = _read(data, source, "HoodieCleanMetadata")
    metadata = CLEAN_METADATA.decode(value)
    if _version(value, source, newest=2) == 2:
        return metadata
    return attrs.evolve(
        metadata,
        version=2,
        partitions={path: _named(result) for path, result in metadata.partitions.items()},
        bootstrap_partitions={path: _named(result) for path, result in metadata.bootstrap_partitions.items()},
    )


def encode_clean_metadata(metadata: records.CleanMetadata, sync: bytes) -> bytes:
    """Encode a completed clean."""
    return encode_avro_file(schema_text("HoodieCleanMetadata"), CLEAN_METADATA.encode(metadata), sync)


def decode_compaction_plan(data: bytes, source: str) -> records.CompactionPlan:
    """Decode ``T.compaction.requested``; the full paths of version 1 become names (``CompactionPlanMigrator``)."""
    value = _read(data, source, "HoodieCompactionPlan")
    plan = COMPACTION_PLAN.decode(value)
    if _version(value, source, newest=2) == 2:
        return plan
    operations = (
        attrs.evolve(
            operation,
            delta_file_paths=tuple(map(_name, operation.delta_file_paths)),
            data_file_path=operation.data_file_path and _name(operation.data_file_path),
        )
        for operation in plan.operations
    )
    return attrs.evolve(plan, version=2, operations=tuple(operations))


def encode_compaction_plan(plan: records.CompactionPlan, sync: bytes, *, table_version: int = NEWEST) -> bytes:
    """Encode ``T.compaction.requested`` (and that of a log compaction)."""
    text = schema_text("HoodieCompactionPlan", table_version)
    return encode_avro_file(text, COMPACTION_PLAN.encode(plan), sync)


def decode_requested_replace(data: bytes, source: str) -> records.RequestedReplaceMetadata:
    """Decode ``T.replacecommit.requested`` or ``T.clustering.requested``."""
    return REQUESTED_REPLACE.decode(_read(data, source, "HoodieRequestedReplaceMetadata"))


def encode_requested_replace(
    metadata: records.RequestedReplaceMetadata, sync: bytes, *, table_version: int = NEWEST
) -> bytes:
    """Encode ``T.replacecommit.requested`` or ``T.clustering.requested``."""
    text = schema_text("HoodieRequestedReplaceMetadata", table_version)
    return encode_avro_file(text, REQUESTED_REPLACE.encode(metadata), sync)


def decode_rollback_plan(data: bytes, source: str) -> records.RollbackPlan:
    """Decode ``T.rollback.requested``."""
    plan = ROLLBACK_PLAN.decode(_read(data, source, "HoodieRollbackPlan"))
    if plan.instant_to_rollback is not None:
        _check_instant(plan.instant_to_rollback, source)
    return plan


def encode_rollback_plan(plan: records.RollbackPlan, sync: bytes) -> bytes:
    """Encode ``T.rollback.requested``."""
    return encode_avro_file(schema_text("HoodieRollbackPlan"), ROLLBACK_PLAN.encode(plan), sync)


def decode_rollback_metadata(data: bytes, source: str) -> records.RollbackMetadata:
    """Decode a completed rollback."""
    return ROLLBACK_METADATA.decode(_read(data, source, "HoodieRollbackMetadata"))


def encode_rollback_metadata(metadata: records.RollbackMetadata, sync: bytes) -> bytes:
    """Encode a completed rollback."""
    return encode_avro_file(schema_text("HoodieRollbackMetadata"), ROLLBACK_METADATA.encode(metadata), sync)


def decode_restore_plan(data: bytes, source: str) -> records.RestorePlan:
    """Decode ``T.restore.requested``."""
    plan = RESTORE_PLAN.decode(_read(data, source, "HoodieRestorePlan"))
    for instant in plan.instants_to_rollback:
        _check_instant(instant, source)
    if plan.savepoint_to_restore_timestamp is not None and not is_time(plan.savepoint_to_restore_timestamp):
        raise CorruptMetadata(
            f"{source}: the savepoint to restore is {plan.savepoint_to_restore_timestamp[:40]!r}, which is not a time"
        )
    return plan


def encode_restore_plan(plan: records.RestorePlan, sync: bytes) -> bytes:
    """Encode ``T.restore.requested``."""
    return encode_avro_file(schema_text("HoodieRestorePlan"), RESTORE_PLAN.encode(plan), sync)


def decode_restore_metadata(data: bytes, source: str) -> records.RestoreMetadata:
    """Decode a completed restore."""
    value = _read(data, source, "HoodieRestoreMetadata")
    # The schema allows null, but without the result it is unknown what was undone.
    if any(rollback is None for rollbacks in value["hoodieRestoreMetadata"].values() for rollback in rollbacks):
        raise CorruptMetadata(f"{source}: the restore contains an empty rollback result")
    return RESTORE_METADATA.decode(value)


def encode_restore_metadata(metadata: records.RestoreMetadata, sync: bytes) -> bytes:
    """Encode a completed restore."""
    return encode_avro_file(schema_text("HoodieRestoreMetadata"), RESTORE_METADATA.encode(metadata), sync)


def decode_savepoint(data: bytes, source: str) -> records.SavepointMetadata:
    """
    Decode a completed savepoint.

    Its name and expiry are in the header of the Avro file, which Hudi ignores: so they are copied and deleted together
    with the savepoint. An expiry that is not a number is ignored.
    """
    content = _read_content(data, source, "HoodieSavepointMetadata")
    value = content.value
    name, expires_at_ms = _name_and_expiry(content.notes)
    return records.SavepointMetadata(
        savepointed_by=value["savepointedBy"],
        savepointed_at_ms=value["savepointedAt"],
        comments=value["comments"],
        files={path: tuple(entry["savepointDataFile"]) for path, entry in value["partitionMetadata"].items()},
        version=value["version"],
        name=name,
        expires_at_ms=expires_at_ms,
    )


def decode_savepoint_files(data: bytes, source: str) -> Mapping[str, tuple[str, ...]]:
    """
    The files of a completed savepoint, as `decode_savepoint` has them, of which only partitions asked for are decoded.

    Raises:
        CorruptMetadata: It does not decode. If only names of one partition do not, that is raised when it is asked for.
    """
    return savepoint_files(data, source, lambda: decode_savepoint(data, source).files)


def decode_savepoint_head(data: bytes, source: str) -> tuple[str, int | None]:
    """
    Name and expiry of a completed savepoint alone, for which its files, maybe millions, are not decoded.

    Raises:
        CorruptMetadata: The header is damaged.
    """
    return _name_and_expiry(notes_of_avro_file(data, source))


def _name_and_expiry(notes: Mapping[str, bytes]) -> tuple[str, int | None]:
    # Never an error: the files of a savepoint matter more than its name.
    expiry = notes.get(SAVEPOINT_EXPIRY, b"")
    return notes.get(SAVEPOINT_NAME, b"").decode(errors="replace"), int(expiry) if _EPOCH_MS.fullmatch(expiry) else None


def encode_savepoint(metadata: records.SavepointMetadata, sync: bytes) -> bytes:
    """Encode a completed savepoint."""
    value = {
        "savepointedBy": metadata.savepointed_by,
        "savepointedAt": metadata.savepointed_at_ms,
        "comments": metadata.comments,
        "partitionMetadata": {
            path: {"partitionPath": path, "savepointDataFile": list(names)} for path, names in metadata.files.items()
        },
        "version": metadata.version,
    }
    # Only if set: a savepoint without name and expiry is equal to Hudi's, byte for byte.
    notes = {SAVEPOINT_NAME: metadata.name.encode()} if metadata.name else {}
    if metadata.expires_at_ms is not None:
        notes[SAVEPOINT_EXPIRY] = str(metadata.expires_at_ms).encode()
    return encode_avro_file(schema_text("HoodieSavepointMetadata"), value, sync, notes)


def _read(data: bytes, source: str, record: str) -> dict[str, Any]:
    """Return the one record of an Avro file, with all fields of our schema."""
    return _read_content(data, source, record).value


def _read_content(data: bytes, source: str, record: str) -> Content:
    # On some storages a process that dies leaves its file empty.
    if not data:
        raise CorruptMetadata(f"{source}: the file is empty instead of containing a {record}")
    content = decode_content(data, source, schema_text(record))
    if content.record_name != record:
        raise CorruptMetadata(f"{source}: contains {content.record_name or content.kind} instead of a {record}")
    return content


def _version(value: dict[str, Any], source: str, *, newest: int) -> int:
    """Return the record's own version. Raises `CorruptMetadata` for a newer version, whose meaning is unknown."""
    # Records had no version in the first releases.
    version = 1 if value["version"] is None else int(value["version"])
    if not 1 <= version <= newest:
        raise CorruptMetadata(f"{source}: has version {version}; supported are 1 to {newest}")
    return version


def _check_instant(instant: records.InstantInfo, source: str) -> None:
    """Raise unless action and time are valid: the instant to undo is looked up by them, and folders have its time."""
    if instant.action not in _ACTIONS:
        raise CorruptMetadata(
            f"{source}: the instant to undo is {instant.requested_time[:40]!r}, whose action {instant.action[:40]!r} "
            "is unknown; nothing was undone"
        )
    if not is_time(instant.requested_time):
        raise CorruptMetadata(
            f"{source}: the instant to undo is a {instant.action} at {instant.requested_time[:40]!r}, which is not a "
            "time; nothing was undone"
        )


def _named(result: records.CleanPartitionMetadata) -> records.CleanPartitionMetadata:
    return attrs.evolve(
        result,
        delete_path_patterns=tuple(map(_name, result.delete_path_patterns)),
        success_delete_files=tuple(map(_name, result.success_delete_files)),
        failed_delete_files=tuple(map(_name, result.failed_delete_files)),
    )


def _name(path: str) -> str:
    return path.rpartition("/")[2]

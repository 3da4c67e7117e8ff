"""
Commit metadata: JSON in layout 1, Avro in layout 2, with the same field names (rules/timeline 4.4, 4.5).

Decoding looks at the content, not at the layout: a table whose upgrade was interrupted has both forms.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.avro_file import encode_avro_file
from hudi_py.formats.avro_registry import schema_text
from hudi_py.formats.commit_json import encode_json
from hudi_py.formats.instant_content import decode_content
from hudi_py.formats.kept import kept_if_small
from hudi_py.model.records import CommitMetadata, RuntimeStats, WriteStat

_TEXTS: Final = ("fileId", "path", "prevCommit", "partitionPath", "tempPath", "baseFile", "prevBaseFile")
_NUMBERS: Final = ("logVersion", "logOffset", "minEventTime", "maxEventTime")
_COUNTERS: Final = (
    "numWrites",
    "numDeletes",
    "numUpdateWrites",
    "numInserts",
    "numUpdates",
    "totalWriteBytes",
    "totalWriteErrors",
    "totalLogRecords",
    "totalLogFilesCompacted",
    "totalLogSizeCompacted",
    "totalLogReadTimeMs",
    "totalUpdatedRecordsCompacted",
    "totalLogBlocks",
    "totalCorruptLogBlock",
    "totalRollbackBlocks",
    "fileSizeInBytes",
)
_NULLABLE: Final = _TEXTS + _NUMBERS
_SCALARS: Final = _NULLABLE + _COUNTERS
_ALLOWED: Final = ({str, type(None)},) * len(_TEXTS) + ({int, type(None)},) * (len(_NUMBERS) + len(_COUNTERS))
_RUNTIME: Final = ("totalScanTime", "totalCreateTime", "totalUpsertTime")

# fmt: off
_JSON_STAT: Final = (
    "fileId", "path", "cdcStats", "prevCommit", "numWrites", "numDeletes", "numUpdateWrites", "numInserts",
    "totalWriteBytes", "totalWriteErrors", "tempPath", "partitionPath", "totalLogRecords", "totalLogFilesCompacted",
    "totalLogSizeCompacted", "totalUpdatedRecordsCompacted", "totalLogBlocks", "totalCorruptLogBlock",
    "totalRollbackBlocks", "fileSizeInBytes", "minEventTime", "maxEventTime", "runtimeStats",
)
# fmt: on
_JSON_LOG_STAT: Final = (*_JSON_STAT, "logVersion", "logOffset", "baseFile", "logFiles", "recordsStats")
_JSON_RUNTIME: Final = ("totalScanTime", "totalUpsertTime", "totalCreateTime")
_RECORDS: Final = ("HoodieCommitMetadata", "HoodieReplaceCommitMetadata")


class Touched(NamedTuple):
    """The part of commit metadata that cleaning needs."""

    partition_paths: tuple[str, ...]  # partitions that the commit wrote to
    replaced_file_ids: Mapping[str, tuple[str, ...]]  # by partition path


@kept_if_small
def decode_commit(data: bytes, source: str) -> CommitMetadata:
    """
    Decode a commit, deltacommit or replacecommit, completed or inflight.

    Returns:
        The metadata; for an empty file a default object with operation ``UNKNOWN``, as in Hudi.

    Raises:
        CorruptMetadata: The content is not commit metadata, or a field has a wrong type.
    """
    return commit_of(_read(data, source), source)


def decode_commit_in(data: bytes, source: str, partitions: Collection[str]) -> CommitMetadata:
    """
    As `decode_commit`, with the files of some partitions only: for questions about few files of a large table.

    Args:
        data, source: As there.
        partitions: Paths of these partitions.

    Raises:
        CorruptMetadata: As there.
    """
    return commit_of(_read(data, source), source, partitions)


def commit_of(fields: Mapping[str, Any], source: str, partitions: Collection[str] | None = None) -> CommitMetadata:
    """
    As `decode_commit`, from fields under their names on disk.

    The archive of layout 1 keeps fewer of them, depending on the release that archived: a field that it lacks has its
    default here.

    Args:
        fields, source: As there.
        partitions: As for `decode_commit_in`; None for all.

    Raises:
        CorruptMetadata: A field has a wrong type.
    """
    try:
        stats_of = _map(fields.get("partitionToWriteStats"))
        return CommitMetadata(
            partition_to_write_stats={
                path: tuple(map(_decode_stat, stats))
                for path, stats in stats_of.items()
                if partitions is None or path in partitions
            },
            compacted=bool(fields.get("compacted")),
            extra_metadata={key: _text_or_none(text) for key, text in _map(fields.get("extraMetadata")).items()},
            operation_type=_text_or_none(fields.get("operationType", "UNKNOWN")),
            partition_to_replace_file_ids=_decode_replaced(fields),
        )
    except (TypeError, ValueError, AttributeError) as error:
        raise CorruptMetadata(f"{source}: not commit metadata: {error}") from error


@kept_if_small
def decode_touched(data: bytes, source: str) -> Touched:
    """
    Decode only which partitions a commit wrote to and which file groups it replaced; faster than `decode_commit`.

    Raises:
        CorruptMetadata: As `decode_commit`.
    """
    value = _read(data, source)
    try:
        return Touched(tuple(_map(value.get("partitionToWriteStats"))), _decode_replaced(value) or {})
    except (TypeError, ValueError, AttributeError) as error:
        raise CorruptMetadata(f"{source}: not commit metadata: {error}") from error


def encode_commit(metadata: CommitMetadata, *, as_json: bool, sync: bytes = b"") -> bytes:
    """
    Encode commit metadata as Hudi does.

    Args:
        metadata: If ``partition_to_replace_file_ids`` is set, it is written as that of a completed replacecommit.
        as_json: True for layout 1, False for layout 2.
        sync: Sync marker of 16 bytes, for Avro.
    """
    encode_stat = _encode_json_stat if as_json else _encode_avro_stat
    value: dict[str, Any] = {
        "partitionToWriteStats": {
            path: list(map(encode_stat, stats)) for path, stats in metadata.partition_to_write_stats.items()
        },
        "compacted": metadata.compacted,
        "extraMetadata": metadata.extra_metadata,
        "operationType": metadata.operation_type,
    }
    replaced = metadata.partition_to_replace_file_ids
    if replaced is not None:
        value["partitionToReplaceFileIds"] = {path: list(file_ids) for path, file_ids in replaced.items()}
    if as_json:
        return encode_json(value)
    return encode_avro_file(schema_text(_RECORDS[replaced is not None]), {**value, "version": None}, sync)


def _read(data: bytes, source: str) -> dict[str, Any]:
    content = decode_content(data, source)
    if content.kind == "avro" and content.record_name not in _RECORDS:
        raise CorruptMetadata(f"{source}: contains {content.record_name} instead of commit metadata")
    return content.value


def _decode_replaced(value: Mapping[str, Any]) -> dict[str, tuple[str, ...]] | None:
    replaced = value.get("partitionToReplaceFileIds")
    if replaced is None:
        return None
    return {path: tuple(map(_text, file_ids)) for path, file_ids in _map(replaced).items()}


def _decode_stat(value: dict[str, Any]) -> WriteStat:
    get = value.get
    # One call for all fields: a commit may have a hundred thousand stats.
    scalars: list[Any] = list(map(get, _SCALARS))
    _check_types(tuple(map(type, scalars)))
    split = len(_NULLABLE)
    log_files, cdc_stats, runtime = get("logFiles"), get("cdcStats"), get("runtimeStats")
    # A counter that is null or absent means 0.
    scalars[split:] = [number or 0 for number in scalars[split:]]
    scalars.append(None if log_files is None else tuple(map(_text, log_files)))
    scalars.append(None if cdc_stats is None else {path: int(size) for path, size in _map(cdc_stats).items()})
    scalars.append(None if runtime is None else RuntimeStats(*[int(runtime.get(name) or 0) for name in _RUNTIME]))
    return WriteStat(*scalars)


@functools.lru_cache(maxsize=256)
def _check_types(types: tuple[type, ...]) -> None:
    """Check the types of all fields. Cached: only a few combinations of types occur, so this costs almost nothing."""
    for name, found, allowed in zip(_SCALARS, types, _ALLOWED, strict=True):
        if found not in allowed:
            raise TypeError(f"{name} of a write stat cannot be {found.__name__}")


def _encode_avro_stat(stat: WriteStat) -> dict[str, Any]:
    value = dict(zip(_SCALARS, _scalars(stat), strict=True))
    value["logFiles"] = None if stat.log_files is None else list(stat.log_files)
    value["cdcStats"] = stat.cdc_stats
    value["runtimeStats"] = _encode_runtime(stat.runtime_stats, _RUNTIME)
    return value


def _encode_json_stat(stat: WriteStat) -> dict[str, Any]:
    value = _encode_avro_stat(stat)
    value["runtimeStats"] = _encode_runtime(stat.runtime_stats, _JSON_RUNTIME)
    value["recordsStats"] = {"val": None}
    names = _JSON_STAT if stat.log_version is None else _JSON_LOG_STAT
    return {name: value[name] for name in names}


def _encode_runtime(runtime: RuntimeStats | None, names: tuple[str, ...]) -> dict[str, int] | None:
    if runtime is None:
        return None
    times = {
        "totalScanTime": runtime.total_scan_time,
        "totalCreateTime": runtime.total_create_time,
        "totalUpsertTime": runtime.total_upsert_time,
    }
    return {name: times[name] for name in names}


def _scalars(stat: WriteStat) -> list[Any]:
    return [getattr(stat, name) for name in _ATTRIBUTES]


def _map(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is not a map")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _text_or_none(value: Any) -> str | None:
    return None if value is None else _text(value)


# The attributes of WriteStat have the order of _SCALARS; a unit test compares the two.
_ATTRIBUTES: Final = tuple(field.name for field in WriteStat.__attrs_attrs__)[: len(_SCALARS)]

"""
The archived timeline of layout 1: log files of ``HoodieArchivedMetaEntry`` records (rules/timeline 5.2).

An entry stands for a file that was on the active timeline, so an instant usually has three. The order of entries has no
meaning; files are numbered, see `archive_file_number`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import attrs

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.avro_file import decode_avro_file, decode_record, encode_avro_file, encode_record
from hudi_py.formats.avro_registry import schema_text
from hudi_py.formats.log_block import (
    BlockType,
    HeaderKey,
    LogBlock,
    encode_log_block,
    iterate_log_blocks,
    join_data_block,
    split_data_block,
)

_FILE_NAME: Final = re.compile(r"\.commits_\.archive\.(\d+)(?:_[^/]*)?")
_RECORD: Final = "HoodieArchivedMetaEntry"
_MERGE_PLAN: Final = "HoodieMergeArchiveFilePlan"
_STATES: Final = ("REQUESTED", "INFLIGHT", "COMPLETED")
_PAYLOADS: Final = {
    "hoodieCommitMetadata": "HoodieCommitMetadata",
    "hoodieCleanMetadata": "HoodieCleanMetadata",
    "hoodieCompactionMetadata": "HoodieCompactionMetadata",
    "hoodieRollbackMetadata": "HoodieRollbackMetadata",
    "hoodieSavePointMetadata": "HoodieSavepointMetadata",
    "hoodieCompactionPlan": "HoodieCompactionPlan",
    "hoodieCleanerPlan": "HoodieCleanerPlan",
    "hoodieReplaceCommitMetadata": "HoodieReplaceCommitMetadata",
    "hoodieRequestedReplaceMetadata": "HoodieRequestedReplaceMetadata",
    "HoodieInflightReplaceMetadata": "HoodieCommitMetadata",
    "hoodieIndexCommitMetadata": "HoodieIndexCommitMetadata",
}


@attrs.frozen(slots=True)
class ArchivedEntry:
    """
    An archived timeline file.

    Args:
        requested_time: Requested time of the instant, e.g. ``20260101120000000``.
        action: The action, as it was in the file name.
        state: ``REQUESTED``, ``INFLIGHT`` or ``COMPLETED``; old entries without a state are read as completed.
        state_transition_time: Modification time of the timeline file, 17 digits in the time zone of its writer; None
            in archives written before Hudi 0.13.
        record_name: Name of the record in *payload*; None without payload.
        payload: Fields of the file's record, under their names on disk; None if the file was empty.
    """

    requested_time: str
    action: str
    state: str
    state_transition_time: str | None = None
    record_name: str | None = None
    payload: dict[str, Any] | None = None


class MergePlan(NamedTuple):
    """Content of ``mergeArchivePlan``: full paths of the files to merge, and the name of the file they become."""

    candidates: tuple[str, ...]
    merged_name: str


def decode_merge_plan(data: bytes, source: str) -> MergePlan:
    """
    Decode ``mergeArchivePlan``.

    Raises:
        CorruptMetadata: The file is incomplete, or is not such a plan.
    """
    file = decode_avro_file(data, source)
    record = file.records[0] if file.records else {}
    candidates, merged = record.get("candidate"), record.get("mergedArchiveFileName")
    if file.record_name != _MERGE_PLAN or not candidates or not merged:
        raise CorruptMetadata(f"{source}: not a plan to merge archive files")
    return MergePlan(tuple(candidates), merged)


def encode_merge_plan(plan: MergePlan, sync: bytes) -> bytes:
    """Encode ``mergeArchivePlan``; the inverse of `decode_merge_plan`."""
    value = {"version": 1, "candidate": list(plan.candidates), "mergedArchiveFileName": plan.merged_name}
    return encode_avro_file(schema_text(_MERGE_PLAN), value, sync)


def archive_file_name(number: int) -> str:
    """Return the name of the archive file with this number."""
    # Readers look at the number alone; the token is the one that Hudi writes.
    return f".commits_.archive.{number}_1-0-1"


def archive_file_number(name: str) -> int | None:
    """Return N of ``.commits_.archive.<N>_<write token>``, None for other files. Later files have larger numbers."""
    match = _FILE_NAME.fullmatch(name)
    return int(match[1]) if match else None


def decode_archive_log(data: bytes, source: str) -> tuple[ArchivedEntry, ...]:
    """
    Decode one archive file, in the order of the file.

    Payloads have the fields of their writer's schema, which grew with every release, so read fields with ``get``.

    Raises:
        CorruptMetadata: A block is incomplete or has other content. Hudi fails here too: with a gap in the history,
            instants would look as if they had never existed.
    """
    entries: list[ArchivedEntry] = []
    for block in iterate_log_blocks(data, source):
        where = f"{source} (block at byte {block.offset})"
        if block.block_type is not BlockType.AVRO_DATA or HeaderKey.SCHEMA not in block.header:
            raise CorruptMetadata(f"{where}: {block.block_type.name.lower()} block instead of archived instants")
        schema = block.header[HeaderKey.SCHEMA]
        bodies = split_data_block(block.content, where)
        entries += [_entry(decode_record(body, schema, where), where) for body in bodies]
    return tuple(entries)


def encode_archive_log(entries: Sequence[ArchivedEntry], *, entries_per_block: int = 10) -> bytes:
    """
    Encode one archive file as a sequence of blocks with at most *entries_per_block* entries each.

    Raises:
        CorruptMetadata: A payload does not fit its record; the message names the entry.
    """
    schema = schema_text(_RECORD)
    blocks = []
    for start in range(0, len(entries), entries_per_block):
        bodies = [encode_entry(entry) for entry in entries[start : start + entries_per_block]]
        blocks.append(
            encode_log_block(LogBlock(BlockType.AVRO_DATA, {int(HeaderKey.SCHEMA): schema}, join_data_block(bodies)))
        )
    return b"".join(blocks)


def encode_entry(entry: ArchivedEntry) -> bytes:
    """
    Encode one entry, without a block around it.

    Raises:
        CorruptMetadata: The payload does not fit the schema.
    """
    value: dict[str, Any] = {
        "commitTime": entry.requested_time,
        "actionType": entry.action,
        "actionState": entry.state,
        "stateTransitionTime": entry.state_transition_time,
        "version": None,
    }
    if entry.record_name is not None:
        # Two fields can hold commit metadata; an inflight replacecommit has its own.
        is_profile = entry.action == "replacecommit" and entry.state == "INFLIGHT"
        names = [name for name, record in _PAYLOADS.items() if record == entry.record_name]
        # By the name of the field Hudi decides which class reads the record.
        value["HoodieInflightReplaceMetadata" if is_profile else names[0]] = entry.payload
    try:
        return encode_record(schema_text(_RECORD), value)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError) as error:
        raise CorruptMetadata(
            f"{entry.action} {entry.requested_time} ({entry.state.lower()}) cannot be archived as {entry.record_name}: "
            f"{error}"
        ) from error


def latest_entries(files: Iterable[tuple[ArchivedEntry, ...]]) -> tuple[ArchivedEntry, ...]:
    """
    Merge archive files, given newest first, into one history.

    Of entries with equal state, action and requested time the first one is used. Duplicates are normal: after a crash
    between archiving and deleting, the next run archives the same files again; and for a while after a merge, the
    merged file exists together with its inputs.

    Returns:
        Entries by requested time, then action, then state.

    Source: Hudi 0.15.0, ``HoodieArchivedTimeline``.
    """
    known: dict[tuple[str, str, int], ArchivedEntry] = {}
    for entries in files:
        for entry in entries:
            known.setdefault((entry.requested_time, entry.action, _STATES.index(entry.state)), entry)
    return tuple(known[key] for key in sorted(known))


def _entry(value: dict[str, Any], where: str) -> ArchivedEntry:
    get = value.get
    requested_time, action, state = get("commitTime"), get("actionType"), get("actionState") or "COMPLETED"
    if not isinstance(requested_time, str) or not isinstance(action, str) or state not in _STATES:
        raise CorruptMetadata(f"{where}: not an archived entry: {action!r} {requested_time!r} in state {state!r}")
    transition = get("stateTransitionTime")
    for field, record in _PAYLOADS.items():
        if get(field) is not None:
            return ArchivedEntry(requested_time, action, state, transition, record, value[field])
    return ArchivedEntry(requested_time, action, state, transition)

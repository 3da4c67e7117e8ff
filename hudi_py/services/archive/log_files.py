"""
Layout 1: archived instants as entries of a log file, one entry for each file of the active timeline.

Source: rules/timeline 5.2; Hudi ``TimelineArchiverV1``, ``MetadataConversionUtils``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from hudi_py.errors import AlreadyExists, ConflictError, CorruptMetadata
from hudi_py.formats.archive_log import (
    ArchivedEntry,
    archive_file_name,
    archive_file_number,
    encode_archive_log,
    encode_entry,
)
from hudi_py.formats.instant_content import decode_content
from hudi_py.model.files import OWN_FOLDER
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.instant_time import format_instant_time, moment_of
from hudi_py.runtime.log import log
from hudi_py.timeline.store import TimelineStore

_COMMIT: Final = "HoodieCommitMetadata"
_DAMAGED_FOLDER: Final = f"{OWN_FOLDER}/damaged"
_RECORDS: Final = {
    (Action.COMMIT, State.INFLIGHT): _COMMIT,
    (Action.COMMIT, State.COMPLETED): _COMMIT,
    (Action.DELTA_COMMIT, State.INFLIGHT): _COMMIT,
    (Action.DELTA_COMMIT, State.COMPLETED): _COMMIT,
    (Action.REPLACE_COMMIT, State.REQUESTED): "HoodieRequestedReplaceMetadata",
    (Action.REPLACE_COMMIT, State.INFLIGHT): _COMMIT,
    (Action.REPLACE_COMMIT, State.COMPLETED): "HoodieReplaceCommitMetadata",
    (Action.COMPACTION, State.REQUESTED): "HoodieCompactionPlan",
    (Action.LOG_COMPACTION, State.REQUESTED): "HoodieCompactionPlan",
    (Action.CLEAN, State.REQUESTED): "HoodieCleanerPlan",
    (Action.CLEAN, State.INFLIGHT): "HoodieCleanerPlan",
    (Action.CLEAN, State.COMPLETED): "HoodieCleanMetadata",
    (Action.ROLLBACK, State.COMPLETED): "HoodieRollbackMetadata",
}
"""Record of each state whose content is archived; other files are archived without content."""


class Group(NamedTuple):
    """A completed instant and all its files, in the order of their states."""

    instant: Instant
    files: tuple[Instant, ...]


def append_to_logs(
    store: TimelineStore,
    folder: str,
    groups: tuple[Group, ...],
    *,
    entries_per_block: int,
    fails_on_damage: bool = True,
) -> tuple[Group, ...]:
    """
    Write the next archive file.

    Args:
        store: Active timeline.
        folder: Folder of the archive.
        groups: Instants to archive, in order.
        entries_per_block: Entries per log block.
        fails_on_damage: False: a damaged commit is archived without its content, and its bytes are kept below
            ``.hoodie/.aux/hudi_py/damaged``.

    Returns:
        The groups that are archived. A clean or rollback whose completed file is damaged is left out; a commit with all
        later ones, because readers would take a commit in a gap of the active timeline for one that never completed.

    Raises:
        ConflictError: Another process archives the table at the same time.
    """
    moments = _modified(store)
    entries: list[ArchivedEntry] = []
    archived: list[Group] = []
    for group in groups:
        try:
            mine = [_entry(store, each, group, moments) for each in group.files]
            for each in mine:
                # Here, so that content that does not fit its schema counts as damage of this instant.
                encode_entry(each)
        except CorruptMetadata as error:
            log.warning("archive.instant.damaged", instant=group.instant.requested_time, why=str(error))
            # Left active alone: readers look for gaps among commits only.
            if group.instant.action in (Action.CLEAN, Action.ROLLBACK):
                continue
            if fails_on_damage:
                break
            _keep_aside(store, group)
            mine = [_without_content(file, moments, store) for file in group.files]
        entries += mine
        archived.append(group)
    if not entries:
        return ()
    # Always a new file, as Hudi does where it cannot append (rules/timeline 5.2): an append that is cut off would
    # damage entries that exist nowhere else any more.
    numbers = [archive_file_number(entry.name) or 0 for entry in store.storage.list(folder)]
    path = f"{folder}/{archive_file_name(1 + max(numbers, default=0))}"
    try:
        store.storage.create_new(path, encode_archive_log(entries, entries_per_block=entries_per_block))
    except AlreadyExists as error:
        raise ConflictError(f"{path} exists already: another process archives this table; try again") from error
    return tuple(archived)


def _entry(store: TimelineStore, file: Instant, group: Group, moments: Mapping[str, str]) -> ArchivedEntry:
    record, payload = _payload(store, file, group)
    name = store.path(file).rpartition("/")[2]
    return ArchivedEntry(
        file.requested_time, file.action.value, file.state.name, moments.get(name), record if payload else None, payload
    )


def _without_content(file: Instant, moments: Mapping[str, str], store: TimelineStore) -> ArchivedEntry:
    name = store.path(file).rpartition("/")[2]
    return ArchivedEntry(file.requested_time, file.action.value, file.state.name, moments.get(name))


def _keep_aside(store: TimelineStore, group: Group) -> None:
    """Copy the files of a damaged instant to a folder where they are never deleted."""
    for file in group.files:
        path = store.path(file)
        store.storage.replace(f"{_DAMAGED_FOLDER}/{path.rpartition('/')[2]}", store.storage.read(path))


def _payload(store: TimelineStore, file: Instant, group: Group) -> tuple[str | None, dict[str, Any] | None]:
    """
    Record name and fields of a file; neither for an empty one.

    Raises:
        CorruptMetadata: A completed file is damaged; damaged files of earlier states are archived without content.
    """
    record = _RECORDS.get((file.action, file.state))
    if record is None:
        return None, None
    data = store.storage.read(store.path(file))
    # 1.1.1 leaves it empty, and archives the plan in its place nevertheless (rules/timeline 5.2).
    if not data and file.action is Action.CLEAN and file.state is State.INFLIGHT:
        data = _plan_of(store, group)
    if not data:
        return None, None
    try:
        content = decode_content(data, f"{store.storage.root}/{store.path(file)}")
    except CorruptMetadata:
        if file.is_completed:
            raise
        return None, None
    value = dict(content.value)
    if record in (_COMMIT, "HoodieReplaceCommitMetadata"):
        value["extraMetadata"] = value.get("extraMetadata") or {}
        if any(each.action is Action.COMPACTION for each in group.files):
            # In the archive only this tells a compaction from a commit: its completed file has the same action
            # (rules/timeline 5.2).
            value["operationType"] = "COMPACT"
    elif content.record_name != record:
        raise CorruptMetadata(f"{store.path(file)}: holds {content.record_name or 'JSON'} instead of a {record}")
    return record, value


def _plan_of(store: TimelineStore, group: Group) -> bytes:
    requested = [file for file in group.files if file.state is State.REQUESTED]
    return store.storage.read(store.path(requested[0])) if requested else b""


def _modified(store: TimelineStore) -> dict[str, str]:
    """File name to modification time, which in layout 1 is the time of the transition."""
    return {
        entry.name: format_instant_time(moment_of(entry.modified_ms, store.zone))
        for entry in store.storage.list(store.folder, details=True)
        if entry.modified_ms is not None
    }

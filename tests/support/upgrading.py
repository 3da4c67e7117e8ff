"""
An upgrade from table version 6 as Apache Hudi does it: under the lock, one instant after the other, properties last.

First all failed writes are rolled back, running ones too, and a merge-on-read table is compacted. The metadata table is
deleted, as Hudi does with one that is behind; the archive is left where it is. Source: rules/timeline 4.6,
rules/table-services H; Hudi ``UpgradeDowngrade``, ``SevenToEightUpgradeHandler``.
"""

from __future__ import annotations

import random
from typing import Any

import attrs

from hudi_py.config.new_table import new_table_properties
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig, table_config
from hudi_py.formats.instant_encoder import SYNC_BYTES, encode_record
from hudi_py.model.instant import Action, Instant, State
from hudi_py.storage.base import Storage
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.properties_file import update_properties

_COMMITS = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
_OF_THE_TABLE = (
    "hoodie.table.name", "hoodie.table.type", "hoodie.table.checksum", "hoodie.table.metadata.", "hoodie.table.cdc.",
)  # fmt: skip
_BEFORE_NINE = {"hoodie.table.precombine.field": None}


def upgrade(opened: Any, version: int = 9, chance: random.Random | None = None) -> None:
    """
    Upgrade a table of `support.writes`; nothing happens to one that has this version.

    Args:
        opened: The table, with the lock of its writers, and a compaction due with each commit.
        version: 8 or 9.
        chance: In which order the instants move; in that of their names by default (Hudi moves them in parallel).
    """
    store = opened.contents.store
    with store.lock.held("upgrade"):
        if opened.refresh().config.version >= version:
            return
        _end_what_runs(opened)
        old = opened.refresh().config
        changes = _changes(old, version)
        if old.metadata_partitions:
            update_properties(store.storage, {"hoodie.table.metadata.partitions": None}, store.clock)
            store.storage.delete_folder(".hoodie/metadata")
        new = table_config({**old.properties, **changes}, store.storage.root)
        move(opened.contents, old, new, chance)
        update_properties(store.storage, changes, store.clock)


def move(contents: Contents, old: TableConfig, new: TableConfig, chance: random.Random | None = None) -> None:
    """Move the active instants from layout 1 to layout 2."""
    storage: Storage = contents.store.storage
    listed = sorted(entry.name for entry in storage.list(old.timeline_folder) if not entry.is_folder)
    if chance is not None:
        chance.shuffle(listed)
    for name in listed:
        instant = old.format.layout.parse(name)
        if instant is not None:
            data = storage.read(f"{old.timeline_folder}/{name}")
            target = new.format.layout.file_name(_moved(instant))
            storage.create_new(f"{new.timeline_folder}/{target}", _rewritten(contents, instant, data, new))
            storage.delete(f"{old.timeline_folder}/{name}")


def _moved(instant: Instant) -> Instant:
    # Hudi takes the time at which the file was modified, which in memory is not one of the table's clock.
    done = instant.requested_time if instant.is_completed else None
    is_plan = instant.action is Action.REPLACE_COMMIT and not instant.is_completed
    action = Action.CLUSTERING if is_plan else instant.action
    return attrs.evolve(instant, action=action, completion_time=done, file_name=None)


def _rewritten(contents: Contents, instant: Instant, data: bytes, new: TableConfig) -> bytes:
    if not data or instant.action not in _COMMITS or instant.state is State.REQUESTED:
        return data
    if instant.action is Action.REPLACE_COMMIT and not instant.is_completed:
        return data
    return encode_record(contents.commit(instant), table_format=new.format, sync=bytes(SYNC_BYTES))


def _end_what_runs(opened: Any) -> None:
    for each in opened.timeline.writes.pending():  # Hudi does not look at heartbeats here
        opened.storage.delete(f".hoodie/.heartbeat/{each.requested_time}")
    opened.rollback_failed_writes()
    if opened.refresh().is_merge_on_read:
        for each in opened.timeline.pending():
            opened.storage.delete(f".hoodie/.heartbeat/{each.requested_time}")
        opened.compact()


def _changes(old: TableConfig, version: int) -> dict[str, str | None]:
    properties = old.properties
    asked = {
        "hoodie.table.name": old.name,
        "hoodie.write.table.version": version,
        "hoodie.datasource.write.recordkey.field": ",".join(old.record_key_fields),
        "hoodie.datasource.write.partitionpath.field": ",".join(old.partition_fields),
        "hoodie.table.ordering.fields": "ts",
        "hoodie.table.type": old.table_type.value,
    }
    made = new_table_properties(Settings(asked))
    changes: dict[str, str | None] = {
        name: text for name, text in made.items() if properties.get(name) != text and not name.startswith(_OF_THE_TABLE)
    }
    return {**changes, "hoodie.table.initial.version": "6", **(_BEFORE_NINE if version > 8 else {})}

"""
Creates the record index of a table that has a metadata table without one.

The property that makes it count is set last; what a crash leaves before that is a folder that nobody looks into and
perhaps a pending instant, and the next call removes both and starts over.

Source: rules/data-files 11.3; Hudi 0.15.0 to 1.1.1 ``HoodieBackedTableMetadataWriter.initializeFromFilesystem``,
``initializeFileGroups``, ``HoodieTableMetadataUtil.createIndexInitTimestamp``, ``estimateFileGroupCount``; bytes of
tables of Hudi 0.15.0 to 1.1.1.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata, NotFound, RefusedError
from hudi_py.formats.log_block import BlockType, HeaderKey, LogBlock, encode_log_block
from hudi_py.formats.properties import format_properties
from hudi_py.fsview.as_of import readable_slices
from hudi_py.fsview.build import build_partition
from hudi_py.fsview.listing import walk_partitions
from hudi_py.fsview.loader import load_context
from hudi_py.mdt.base_file import Written, write_keyed_base_file
from hudi_py.mdt.create import EMPTY_DELETE, creation
from hudi_py.mdt.index_definitions import DEFINITIONS_KEY
from hudi_py.mdt.lookup import PREFIXES, RECORD_INDEX, group_numbers
from hudi_py.mdt.record_index import RecordLocation, encode_location, refuse_long_keys
from hudi_py.mdt.recorded import CREATES
from hudi_py.mdt.removal import PARTITIONS_KEY, UpdateProperties
from hudi_py.mdt.table import WRITE_TOKEN, MetadataTable
from hudi_py.model.files import METADATA_TABLE_FOLDER, PARTITION_METAFILE, BaseFile, join_path
from hudi_py.model.instant import Action
from hudi_py.model.instant_time import INIT_TIME, instant_epoch_ms
from hudi_py.model.json_document import parse_json
from hudi_py.model.records import CommitMetadata
from hudi_py.rows.file_keys import keys_of_base_file, texts
from hudi_py.storage.base import Storage
from hudi_py.timeline.archive import load_archived
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.commit import Begun, Prepared

_RECORD_BYTES: Final = 48
"""Size of a record in bytes, as Apache Hudi assumes it."""
_NUMBER_DIGITS: Final = 3
_DEFINITIONS: Final = ".hoodie/.index_defs/index.json"


@attrs.frozen(kw_only=True)
class IndexSizing:
    """
    Settings that decide on the number of file groups. The defaults are Hudi's.

    Args:
        groups_min: ``hoodie.metadata.global.record.level.index.min.filegroup.count``.
        groups_max: ``hoodie.metadata.global.record.level.index.max.filegroup.count``.
        growth: ``hoodie.metadata.record.index.growth.factor``.
        group_bytes_max: ``hoodie.metadata.record.index.max.filegroup.size``.
    """

    groups_min: int = 10
    groups_max: int = 10_000
    growth: float = 2.0
    group_bytes_max: int = 1 << 30

    def groups(self, record_count: int) -> int:
        """Return the number of file groups for that many records."""
        records_max = max(self.group_bytes_max // _RECORD_BYTES, 1)
        wanted = math.ceil(record_count * self.growth / records_max)
        return max(self.groups_min, min(wanted, self.groups_max), 1)


def create_record_index(
    storage: Storage,
    config: TableConfig,
    table: MetadataTable,
    timeline: Timeline,
    update_properties: UpdateProperties,
    places: Mapping[str, RecordLocation],
    sizing: IndexSizing,
) -> None:
    """
    Make the record index, with the place of every row of the table.

    Call it under the table's lock, while no action of the table is pending.

    Args:
        storage: Storage of the table.
        config: Configuration of the table, as just read; it has a metadata table without a record index.
        table: The metadata table.
        timeline: Timeline of the table.
        update_properties: See `UpdateProperties`.
        places: See `places_of_rows`.
        sizing: See `IndexSizing`.
    """
    table.store.lock.check()  # all rows were read meanwhile, and another process may have made one that is in use
    storage.delete_folder(f"{METADATA_TABLE_FOLDER}/{RECORD_INDEX}")
    metadata = table.store.load()
    for instant in metadata.pending(Action.DELTA_COMMIT):
        if timeline.find(instant.requested_time) is None:  # what a crash left of this
            Begun(table.store, instant).remove()
    time = _init_time(table, timeline)
    begun = Prepared(table.store, Action.DELTA_COMMIT, time).request().begin(CommitMetadata(operation_type=CREATES))
    written = _write(table, time, places, sizing.groups(len(places)))
    begun.in_step(timeline).publish(creation(table, RECORD_INDEX, written))
    changes: dict[str, str | None] = {}
    if config.format.metadata_table.defines_record_index:
        changes[DEFINITIONS_KEY] = _define(storage, config)
    update_properties({**changes, PARTITIONS_KEY: ",".join(sorted({*config.metadata_partitions, RECORD_INDEX}))})


def places_of_rows(storage: Storage, contents: Contents, timeline: Timeline) -> dict[str, RecordLocation]:
    """
    Return key to place of all rows.

    Raises:
        RefusedError: A row is in log files, whose keys are not merged here, a key has two rows or is too long, or a
            file's time is no date.
        CorruptMetadata: A file is damaged.
    """
    context = load_context(timeline, contents)
    found: dict[str, RecordLocation] = {}
    for path, entries in walk_partitions(storage, details=True):
        view = build_partition(
            context, path, ((entry.name, entry.size_bytes) for entry in entries if not entry.is_folder)
        )
        for file_slice in readable_slices(context, view, timeline.compacting):
            # Keys of log files count, too (rules/data-files 11.3), and whether a row is deleted takes merging with the
            # base file.
            if any(not log.is_cdc for log in file_slice.log_files):
                raise RefusedError(
                    f"{storage.root}: file group {file_slice.file_id} has log files, and the record index that "
                    "hoodie.metadata.record.index.enable asks for is made from base files alone; compact the table, or "
                    "let Apache Hudi make the index; nothing was written"
                )
            if file_slice.base_file is None:
                continue
            instant_ms = _epoch_ms(storage, contents, file_slice.base_file)
            at = RecordLocation(path, file_slice.file_id, instant_ms)
            for key in texts(keys_of_base_file(storage, join_path(path, file_slice.base_file.name))):
                # The index has one place for each key: the other row would be out of reach for updates and deletes.
                if key in found:
                    raise RefusedError(
                        f"{storage.root}: the key {key!r} has several rows, in file groups {found[key].file_id} and "
                        f"{file_slice.file_id}, and a record index knows one of them; remove the duplicates first; "
                        "nothing was written"
                    )
                found[key] = at
    refuse_long_keys(found, storage.root)
    return found


def _epoch_ms(storage: Storage, contents: Contents, base: BaseFile) -> int:
    try:
        return instant_epoch_ms(base.instant_time, contents.store.zone)
    except (ValueError, OverflowError) as error:
        raise RefusedError(
            f"{storage.root}: {base.name} was written at {base.instant_time}, which is not a date, and the record "
            "index that hoodie.metadata.record.index.enable asks for has the date of each row's file; leave the "
            "setting out; nothing was written"
        ) from error


def _init_time(table: MetadataTable, timeline: Timeline) -> str:
    """
    A time behind all that filled a partition, archived ones too.

    Files of other partitions have those times; of zeros, a reader takes what is behind the first instant of the active
    timeline, and not on it, for never completed.
    """
    archived = load_archived(table.storage, table.config)
    known = {instant.requested_time for timeline in (table.store.load(), archived) for instant in timeline.instants}
    completed = timeline.completed()
    base, number = INIT_TIME, 0
    suffix = table.format.metadata_table.init_suffix
    if suffix is not None:
        base, number = completed[-1].requested_time if completed else INIT_TIME, int(suffix)
    # The first ones are those of `files` and of the statistics; a dropped index may have used the next.
    used = [time.removeprefix(base) for time in known if time.startswith(base)]
    number = max([number, *(int(rest) + 1 for rest in used if rest.isdecimal() and len(rest) == _NUMBER_DIGITS)])
    return f"{base}{number:0{_NUMBER_DIGITS}}"


def _write(
    table: MetadataTable, time: str, places: Mapping[str, RecordLocation], count: int
) -> list[tuple[str, Written]]:
    """Write the file groups; return the id and base file of each that has records."""
    metafile = format_properties({"commitTime": time, "partitionDepth": "1"}, ("partition metadata",))
    table.storage.create_new(f"{RECORD_INDEX}/{PARTITION_METAFILE}", metafile)
    block = encode_log_block(LogBlock(BlockType.DELETE, {int(HeaderKey.INSTANT_TIME): time}, EMPTY_DELETE))
    groups: list[list[str]] = [[] for _ in range(count)]
    for key, number in zip(places, group_numbers(places, count), strict=True):
        groups[number].append(key)
    written = []
    for number, keys in enumerate(groups):
        file_id = f"{PREFIXES[RECORD_INDEX]}-{number:04}-0"
        # All groups must exist from the beginning: the number of groups is part of the hash, see `group_number`.
        table.storage.create_new(f"{RECORD_INDEX}/.{file_id}_{time}.log.1_{WRITE_TOKEN}", block)
        if keys:
            ordered = sorted(keys, key=str.encode)
            written.append(
                (file_id, write_keyed_base_file(table, RECORD_INDEX, file_id, time, _records(table, places, ordered)))
            )
    return written


def _records(
    table: MetadataTable, places: Mapping[str, RecordLocation], keys: list[str]
) -> Iterator[tuple[str, bytes]]:
    known: dict[RecordLocation, bytes] = {}
    for key in keys:
        at = places[key]
        # Encoded once for each place: its records are equal, and tables have far more keys than file groups.
        if at not in known:
            known[at] = encode_location(at, table.table_version)
        yield key, known[at]


def _define(storage: Storage, config: TableConfig) -> str:
    """Add the index to the definitions, as Hudi 1.1 does; return where these are."""
    path = config.properties.get(DEFINITIONS_KEY) or _DEFINITIONS
    definitions: Any = {"indexDefinitions": {}}
    try:
        definitions = parse_json(storage.read(path))
        # Of an index that was dropped; its options may be those of another form.
        definitions["indexDefinitions"].pop(RECORD_INDEX, None)
    except NotFound:
        pass
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise CorruptMetadata(f"{storage.root}/{path}: no index definitions: {error!r}") from error
    definitions["indexDefinitions"][RECORD_INDEX] = {
        "indexName": RECORD_INDEX,
        "indexType": RECORD_INDEX,
        "indexFunction": "",
        "sourceFields": [],
        "indexOptions": {"isPartitioned": "false"},
        "version": "V1",
    }
    storage.replace(path, json.dumps(definitions, indent=2).encode())
    return path

"""
Creates the metadata table of a table that has none.

The property that makes readers use it is set last; what a crash leaves before that is a folder that nobody looks into,
and the next call starts over.

Source: rules/timeline 1.3 and 2.2, rules/data-files 11; bytes of metadata tables of Hudi 0.15.0 to 1.1.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from hudi_py.config.table import TableConfig
from hudi_py.errors import RefusedError
from hudi_py.formats.log_block import BlockType, HeaderKey, LogBlock, encode_log_block
from hudi_py.formats.properties import checksum, format_properties
from hudi_py.mdt.base_file import Written, write_base_file
from hudi_py.mdt.changes import ListingChanges, records_of
from hudi_py.mdt.recorded import CREATES
from hudi_py.mdt.records import payload_schema
from hudi_py.mdt.removal import PARTITIONS_INFLIGHT_KEY, PARTITIONS_KEY, UpdateProperties
from hudi_py.mdt.table import FILES_GROUP, FILES_PARTITION, WRITE_TOKEN, MetadataTable
from hudi_py.model.files import METADATA_TABLE_FOLDER, PARTITION_METAFILE
from hudi_py.model.instant import Action
from hudi_py.model.instant_time import INIT_TIME
from hudi_py.model.records import CommitMetadata, RuntimeStats, WriteStat
from hudi_py.runtime.clock import Clock
from hudi_py.storage.base import Storage
from hudi_py.timeline.lock import NO_LOCK, Lock
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.commit import Prepared

EMPTY_DELETE: Final = b"\0\0\0\x03\0\0\0\x01\0"
"""Content of a delete block without records: block version 3, length 1, an empty list."""

_COMMON: Final = {
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.base.file.format": "HFILE",
    "hoodie.table.recordkey.fields": "key",
    "hoodie.populate.meta.fields": "false",
    "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
    "hoodie.datasource.write.drop.partition.columns": "false",
}


def create_metadata_table(
    storage: Storage,
    config: TableConfig,
    data_timeline: Timeline,
    listing: Mapping[str, Mapping[str, int]],
    update_properties: UpdateProperties,
    *,
    clock: Clock | None = None,
    lock: Lock = NO_LOCK,
) -> MetadataTable:
    """
    Create the metadata table, with the `files` partition only.

    Call it under the table's lock, before the first instant of a write.

    Args:
        storage: The table's storage.
        config: As just read.
        data_timeline: The table's timeline.
        listing: Partition path to file name to exact size in bytes, of every partition and every file there is.
        update_properties: See `UpdateProperties`.
        clock: Gives completion times.
        lock: The table's lock.

    Returns:
        The new metadata table; the caller reads the table's properties again.

    Raises:
        RefusedError: The table has a metadata table, or an action is pending (its files are of unknown fate).
    """
    if config.has_metadata_table:
        raise RefusedError(f"table {config.name} has a metadata table already; drop it first to create it again")
    pending = data_timeline.pending()
    if pending:
        raise RefusedError(
            f"{pending[0]} is not finished; finish it or roll it back before the metadata table is created"
        )
    # What an earlier attempt left, or a metadata table that was switched off: its log files would count as current.
    lock.check()  # the files were listed meanwhile, and another process may have created one that is in use
    storage.delete_folder(METADATA_TABLE_FOLDER)
    properties = format_properties(_properties(config), ("Properties of the metadata table",))
    storage.create_new(f"{METADATA_TABLE_FOLDER}/.hoodie/hoodie.properties", properties)
    table = MetadataTable(storage, clock, lock)
    _fill(table, data_timeline, listing)
    update_properties({PARTITIONS_KEY: FILES_PARTITION, PARTITIONS_INFLIGHT_KEY: ""})
    return table


def _properties(config: TableConfig) -> dict[str, str]:
    name = f"{config.name}_metadata"
    version = str(config.version)
    own = {"hoodie.table.name": name, "hoodie.table.version": version, "hoodie.table.checksum": checksum("", name)}
    # The keys below have to agree with the data table: instants of both timelines are compared.
    zone = config.properties.get("hoodie.table.timeline.timezone")
    shared = {} if zone is None else {"hoodie.table.timeline.timezone": zone}
    return {**_COMMON, **config.format.metadata_table.properties, **own, **shared}


def _fill(table: MetadataTable, data_timeline: Timeline, listing: Mapping[str, Mapping[str, int]]) -> None:
    """Write the first delta commit: a base file with the whole listing, and a log file without records."""
    time = _init_time(table, data_timeline)
    requested = Prepared(table.store, Action.DELTA_COMMIT, time).request()
    begun = requested.begin(CommitMetadata(operation_type=CREATES))
    metafile = format_properties({"commitTime": time, "partitionDepth": "1"}, ("partition metadata",))
    table.storage.create_new(f"{FILES_PARTITION}/{PARTITION_METAFILE}", metafile)
    # The groups of Hudi begin with a delete block without keys, too (rules/data-files 11): so a group has a file before
    # it has any record.
    block = encode_log_block(LogBlock(BlockType.DELETE, {int(HeaderKey.INSTANT_TIME): time}, EMPTY_DELETE))
    table.storage.create_new(f"{FILES_PARTITION}/.{FILES_GROUP}_{time}.log.1_{WRITE_TOKEN}", block)
    # Partitions without files, too: once the metadata table is in use, nobody lists folders to find them.
    records = records_of(ListingChanges(added=listing, written_partitions=tuple(listing)))
    written = write_base_file(table, time, ((key, records[key]) for key in sorted(records, key=str.encode)))
    begun.in_step(data_timeline).publish(creation(table, FILES_PARTITION, [(FILES_GROUP, written)]))


def _init_time(table: MetadataTable, data_timeline: Timeline) -> str:
    """After the last completed instant or, as for an empty table, at the zero of time."""
    completed = data_timeline.completed()
    suffix = table.format.metadata_table.init_suffix
    if suffix is not None:
        return (completed[-1].requested_time if completed else INIT_TIME) + suffix
    # Layout 2 needs no time of the data table: completion times say what the listing covers, see `is_in_first_listing`.
    return INIT_TIME.ljust(17, "0")


def creation(table: MetadataTable, partition: str, written: Iterable[tuple[str, Written]]) -> CommitMetadata:
    """
    Return the metadata of the commit that creates a partition of the metadata table.

    Args:
        table: The metadata table.
        partition: Its name; the commit has it without files, too, because it tells when the partition was made.
        written: File id of each file group, and its base file.
    """
    stats = tuple(
        WriteStat(
            file_id=file_id,
            path=f"{partition}/{each.name}",
            prev_commit="null",
            partition_path=partition,
            num_writes=each.record_count,
            num_inserts=each.record_count,
            total_write_bytes=each.size_bytes,
            file_size_in_bytes=each.size_bytes,
            runtime_stats=RuntimeStats(),
        )
        for file_id, each in written
    )
    return CommitMetadata(
        partition_to_write_stats={partition: stats},
        extra_metadata={"schema": payload_schema(table.table_version)},
        operation_type=CREATES,
    )

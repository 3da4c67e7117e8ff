"""
Switching off what we do not maintain: index partitions of the metadata table, or all of it.

The property goes first and the folder after it. The other way round a crash would leave a table that Apache Hudi
refuses to write to (the property names a metadata table that is not there); this way it leaves a folder that nobody
looks into, and the next call removes it.

Source: rules/data-files 10.1, 10.3 and 10.4.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from hudi_py.config.table import TableConfig
from hudi_py.errors import RefusedError
from hudi_py.mdt.index_definitions import forget_definitions, read_definitions
from hudi_py.mdt.table import FILES_PARTITION
from hudi_py.model.files import METADATA_TABLE_FOLDER
from hudi_py.runtime.log import log
from hudi_py.storage.base import Storage

PARTITIONS_KEY: Final = "hoodie.table.metadata.partitions"
PARTITIONS_INFLIGHT_KEY: Final = "hoodie.table.metadata.partitions.inflight"

UpdateProperties = Callable[[Mapping[str, "str | None"]], None]
"""Changes the table's properties through Hudi's backup protocol; None removes a key."""

_STATISTICS: Final = ("column_stats", "partition_stats", "bloom_filters")
_DEFINED: Final = ("secondary_index_", "expr_index_")
"""
What the names of secondary and expression indexes begin with. They are dropped with their definitions, as by DROP INDEX
of Apache Hudi: 1.1.1 creates what is defined and has no partition again, but 1.2.0 then fails at every write.
"""


def can_drop(name: str) -> bool:
    """Whether rows are found without this index partition, which can be created again; False if it is unknown."""
    return name in (*_STATISTICS, "record_index") or name.startswith(_DEFINED)


def unmaintained_partitions(config: TableConfig, kept: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """
    Index partitions that the table has, or is about to get, and that a commit of ours would leave stale.

    Args:
        config: As just read.
        kept: Index partitions that the commit keeps true.
    """
    named = (set(config.metadata_partitions) - kept) | set(config.metadata_partitions_inflight)
    return tuple(sorted(named - {FILES_PARTITION}))


def check_writable(config: TableConfig, kept: frozenset[str] = frozenset()) -> None:
    """
    Refuse to write data into a table with an index that we can neither maintain nor afford to drop.

    A clean needs no such check: entries of deleted files are never consulted.

    Args:
        config: As just read.
        kept: Index partitions that the write keeps true.

    Raises:
        RefusedError: The table has an index that this release does not know, or another process is just making a record
            index, a secondary or an expression index: it would complete one without the rows of the write.
    """
    building = set(config.metadata_partitions_inflight).difference(_STATISTICS)
    stale = [name for name in unmaintained_partitions(config, kept) if name in building or not can_drop(name)]
    if stale:
        raise RefusedError(
            f"table {config.name} has the index {', '.join(stale)} in its metadata table, which this release does not "
            "maintain or which is being made: rows written now would be missing from it. Nothing was written. Write "
            "with Apache Hudi, or, if nothing is making it, set "
            "hoodie.metadata.enable=false, which drops the metadata table with all indexes (Apache Hudi creates them "
            "again when it is configured to). Cleaning goes on working."
        )


def disable_unmaintained_partitions(
    storage: Storage,
    config: TableConfig,
    update_properties: UpdateProperties,
    *,
    folders: Iterable[str],
    kept: frozenset[str] = frozenset(),
) -> bool:
    """
    Drop the indexes that a commit of hudi_py would leave stale.

    Statistics are created again by Apache Hudi's next write; of other indexes a warning tells what they were.

    Call it under the table's lock, before the first instant of each write of data: after every write of Apache Hudi
    they are there again, and stale partition statistics hide new rows from readers.

    Args:
        storage: The table's storage.
        config: As just read.
        update_properties: See `UpdateProperties`.
        folders: See `partition_folders`.
        kept: Index partitions that the write keeps true.

    Returns:
        Whether the properties were changed: the caller reads them again.

    Raises:
        RefusedError, CorruptMetadata: As `check_writable`, or definitions do not decode; before anything is changed.
    """
    check_writable(config, kept)
    if config.has_metadata_table and FILES_PARTITION not in config.metadata_partitions:
        # Without `files` the other partitions are worth nothing: readers find files through it.
        return drop_metadata_table(storage, config, update_properties)  # it never became ready
    dropped = unmaintained_partitions(config, kept)
    # Only what the property names already: naming a partition that is not there would make readers fail.
    left = sorted({FILES_PARTITION, *kept} & set(config.metadata_partitions))
    if any(map(_is_costly, dropped)):
        _tell(dropped, read_definitions(storage, config))
    if dropped:
        update_properties({PARTITIONS_KEY: ",".join(left), PARTITIONS_INFLIGHT_KEY: ""})
    for name in leftovers(config, kept, folders):
        if name.startswith(_DEFINED):
            forget_definitions(storage, config, (name,))
        storage.delete_folder(f"{METADATA_TABLE_FOLDER}/{name}")
    return bool(dropped)


def leftovers(config: TableConfig, kept: frozenset[str], folders: Iterable[str]) -> list[str]:
    """
    Return the index partitions whose folders go before a commit of ours.

    Also those that no property names any more, or not yet: a crash between the two steps of dropping leaves them.

    Args:
        config: As just read, before anything was dropped.
        kept: Index partitions that the commit keeps true.
        folders: See `partition_folders`.
    """
    left = kept & set(config.metadata_partitions)
    return [name for name in folders if can_drop(name) and name not in left]


def statistics_of(config: TableConfig) -> list[str]:
    """Return the partitions of statistics that the properties name."""
    return [name for name in config.metadata_partitions if name in _STATISTICS]


def partition_folders(storage: Storage) -> list[str]:
    """Return the names of the folders of the metadata table; one listing."""
    return [entry.name for entry in storage.list(METADATA_TABLE_FOLDER) if entry.is_folder]


def _is_costly(name: str) -> bool:
    """Whether Apache Hudi does not make it again by itself, from the footers of the files."""
    return name not in _STATISTICS


def _tell(dropped: Iterable[str], definitions: Mapping[str, Any]) -> None:
    """Warn before indexes go, with what is needed to create them again."""
    for name in filter(_is_costly, dropped):
        of = definitions.get(name, {})
        log.warning(
            "metadata.index.dropped",
            partition=name,
            columns=",".join(of.get("sourceFields") or ()),
            function=of.get("indexFunction") or "",
            reason="this release does not keep it true; Apache Hudi creates it again by CREATE INDEX, or a record "
            "index at its next write if it is configured to",
        )


def drop_indexes(
    storage: Storage, config: TableConfig, update_properties: UpdateProperties, names: Collection[str]
) -> None:
    """
    Remove index partitions that are not true any more; whoever wants them creates them again.

    Args:
        storage: Of the table.
        config: As just read.
        update_properties: See `UpdateProperties`.
        names: Of the partitions.
    """
    left = [partition for partition in config.metadata_partitions if partition not in names]
    update_properties({PARTITIONS_KEY: ",".join(left)})
    forget_definitions(storage, config, [name for name in names if name.startswith(_DEFINED)])
    for name in names:
        storage.delete_folder(f"{METADATA_TABLE_FOLDER}/{name}")


def drop_metadata_table(storage: Storage, config: TableConfig, update_properties: UpdateProperties) -> bool:
    """
    Remove the metadata table; Apache Hudi creates it again from a listing, with its indexes, at its next write.

    Call it under the table's lock, never beside a running Apache Hudi writer, and before the first instant of the
    write. Also removes what an interrupted call left.

    Args:
        storage: The table's storage.
        config: As just read.
        update_properties: See `UpdateProperties`.

    Returns:
        Whether the properties were changed: the caller reads them again.
    """
    named = PARTITIONS_KEY in config.properties or PARTITIONS_INFLIGHT_KEY in config.properties
    if named:
        update_properties({PARTITIONS_KEY: None, PARTITIONS_INFLIGHT_KEY: None})
    storage.delete_folder(METADATA_TABLE_FOLDER)
    return named

"""
The configuration of a table, read from `hoodie.properties`.

Source: rules/timeline 1.2 and 1.3; Hudi ``HoodieTableConfig``.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from hudi_py.errors import ConfigError, CorruptMetadata, UnsupportedTable
from hudi_py.versions.format import TableFormat
from hudi_py.versions.served import FORMATS, NEWEST


class TableType(enum.Enum):
    """How updates are stored."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


@attrs.frozen(kw_only=True)
class TableConfig:
    """
    The configuration of a table.

    ``properties`` has all keys as on disk; the other fields are the parsed values that hudi_py uses.
    """

    name: str
    database: str
    table_type: TableType
    version: int
    timezone: str
    record_key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...]
    ordering_fields: tuple[str, ...]
    hive_style: bool
    url_encode: bool
    timeline_path: str
    history_path: str
    archive_folder: str
    metadata_partitions: tuple[str, ...]
    metadata_partitions_inflight: tuple[str, ...]
    base_file_format: str
    populate_meta_fields: bool
    properties: Mapping[str, str] = attrs.field(repr=False)

    @property
    def is_partitioned(self) -> bool:
        """Whether the table has partition columns."""
        return bool(self.partition_fields)

    def __reduce__(self) -> tuple[Any, ...]:
        # Parsed again from the properties, because a read-only mapping cannot be pickled.
        return table_config, (dict(self.properties), "hoodie.properties")

    @property
    def base_file_extensions(self) -> frozenset[str]:
        """File name extensions of the table's base files, without dot; empty if it can have several formats."""
        several = _flag(self.properties, "hoodie.table.multiple.base.file.formats.enable", default=False)
        return frozenset() if several else frozenset((self.base_file_format.lower(),))

    @property
    def has_metadata_table(self) -> bool:
        """Whether the table has a metadata table (``.hoodie/metadata``) that readers and writers have to use."""
        return bool(self.metadata_partitions or self.metadata_partitions_inflight)

    @property
    def format(self) -> TableFormat:
        """What is specific to the table's version."""
        return FORMATS[self.version]

    def is_laid_out_as(self, other: TableConfig) -> bool:
        """Whether instants have the same places, names, form and time zone: an upgrade or downgrade changes these."""

        def layout(config: TableConfig) -> tuple[object, ...]:
            return config.version, config.timeline_folder, config.history_folder, config.timezone

        return layout(self) == layout(other)

    @property
    def layout_version(self) -> int:
        """Version of the timeline layout, to show to people; code uses `format`."""
        return self.format.layout.version

    @property
    def may_be_upgraded_from_layout_1(self) -> bool:
        """Whether older log files may have the time of their slice in their names, as layout 1 has it."""
        initial = self.properties.get("hoodie.table.initial.version", "")
        return self.format.layout.has_completion_times and not (initial.isdecimal() and int(initial) >= _LAYOUT_2_SINCE)

    @property
    def timeline_folder(self) -> str:
        """Folder of the active timeline, relative to the table."""
        return self.format.timeline_folder.format(timeline=self.timeline_path)

    @property
    def history_folder(self) -> str:
        """Folder of the archived timeline, relative to the table."""
        return self.format.history_folder.format(
            timeline=self.timeline_path, history=self.history_path, archive=self.archive_folder
        )


_LAYOUT_2_SINCE: Final = 8


def table_config(properties: Mapping[str, str], source: str) -> TableConfig:
    """
    Parse the properties read from *source*.

    Raises:
        UnsupportedTable: The version or the layout is not supported.
        CorruptMetadata: A key that every table has is missing or invalid.
        ConfigError: A folder lies outside the table.
    """
    return _config(tuple(properties.items()), source)


# A write asks twenty times, because another one may have changed the properties; as a rule they are the same.
@functools.lru_cache(maxsize=16)
def _config(entries: tuple[tuple[str, str], ...], source: str) -> TableConfig:
    properties = dict(entries)
    version = _number(properties, "hoodie.table.version", source)
    # An unknown version may mean anything: nothing of such a table is read.
    if version not in FORMATS:
        raise UnsupportedTable(
            f"{source}: table version {version} is not supported (supported: {', '.join(map(str, FORMATS))}); "
            + ("upgrade the table with Apache Hudi first" if version < NEWEST else "upgrade hudi_py")
        )
    layout = _number(properties, "hoodie.timeline.layout.version", source)
    # An interrupted upgrade can leave the version of one and the layout of the other.
    if layout != FORMATS[version].layout.version:
        raise UnsupportedTable(f"{source}: timeline layout {layout} is invalid for table version {version}")
    name = properties.get("hoodie.table.name", "")
    if not name:
        raise CorruptMetadata(f"{source}: hoodie.table.name is missing; restore the file from its backup")
    return TableConfig(
        name=name,
        database=properties.get("hoodie.database.name", ""),
        table_type=_table_type(properties, source),
        version=version,
        # Tables of older releases do not have the property, and their times are local.
        timezone=properties.get("hoodie.table.timeline.timezone", "LOCAL").upper() or "LOCAL",
        record_key_fields=_names(properties, "hoodie.table.recordkey.fields"),
        partition_fields=tuple(
            field.partition(":")[0] for field in _names(properties, "hoodie.table.partition.fields")
        ),
        # The second name is that of releases before 1.1.
        ordering_fields=_names(properties, "hoodie.table.ordering.fields")
        or _names(properties, "hoodie.table.precombine.field"),
        hive_style=_flag(properties, "hoodie.datasource.write.hive_style_partitioning", default=False),
        url_encode=_flag(properties, "hoodie.datasource.write.partitionpath.urlencode", default=False),
        timeline_path=_folder(properties, "hoodie.timeline.path", "timeline", source),
        history_path=_folder(properties, "hoodie.timeline.history.path", "history", source),
        archive_folder=_folder(properties, "hoodie.archivelog.folder", "archived", source),
        metadata_partitions=_names(properties, "hoodie.table.metadata.partitions"),
        metadata_partitions_inflight=_names(properties, "hoodie.table.metadata.partitions.inflight"),
        base_file_format=properties.get("hoodie.table.base.file.format", "PARQUET").upper(),
        populate_meta_fields=_flag(properties, "hoodie.populate.meta.fields", default=True),
        properties=MappingProxyType(properties),
    )


def _number(properties: Mapping[str, str], key: str, source: str) -> int:
    raw = properties.get(key)
    if raw is None:
        raise CorruptMetadata(f"{source}: {key} is missing; restore the file from its backup")
    try:
        return int(raw)
    except ValueError as error:
        raise CorruptMetadata(f"{source}: {key}={raw!r} is not a number; restore the file from its backup") from error


def _table_type(properties: Mapping[str, str], source: str) -> TableType:
    raw = properties.get("hoodie.table.type", "")
    try:
        return TableType(raw)
    except ValueError as error:
        raise CorruptMetadata(
            f"{source}: hoodie.table.type={raw!r} is neither COPY_ON_WRITE nor MERGE_ON_READ"
        ) from error


def _folder(properties: Mapping[str, str], key: str, default: str, source: str) -> str:
    folder = properties.get(key) or default
    # The file may come from anywhere: a folder outside the table would let it choose what is deleted.
    if folder.startswith("/") or ".." in folder.split("/"):
        raise ConfigError(f"{source}: {key}={folder!r} is not a folder inside the table")
    return folder.strip("/")


def _names(properties: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in properties.get(key, "").split(",") if part.strip())


def _flag(properties: Mapping[str, str], key: str, *, default: bool) -> bool:
    raw = properties.get(key)
    return default if raw is None or raw == "" else raw.strip().lower() == "true"

"""Hudi settings for a table that exists, taken from its ``hoodie.properties``. Pure, except for reading that file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_FROM_PROPERTY: Final = {
    "hoodie.table.name": "hoodie.table.name",
    "hoodie.table.type": "hoodie.datasource.write.table.type",
    "hoodie.table.recordkey.fields": "hoodie.datasource.write.recordkey.field",
    "hoodie.table.partition.fields": "hoodie.datasource.write.partitionpath.field",
    "hoodie.table.precombine.field": "hoodie.datasource.write.precombine.field",
    "hoodie.table.ordering.fields": "hoodie.datasource.write.precombine.field",
    "hoodie.table.keygenerator.class": "hoodie.datasource.write.keygenerator.class",
    "hoodie.table.keygenerator.type": "hoodie.datasource.write.keygenerator.type",
    "hoodie.datasource.write.hive_style_partitioning": "hoodie.datasource.write.hive_style_partitioning",
    "hoodie.datasource.write.partitionpath.urlencode": "hoodie.datasource.write.partitionpath.urlencode",
}

_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))")

_SMALL: Final = {
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.insert.shuffle.parallelism": "2",
    "hoodie.bulkinsert.shuffle.parallelism": "2",
    "hoodie.delete.shuffle.parallelism": "2",
    "hoodie.clean.parallelism": "2",
    "hoodie.cleaner.parallelism": "2",
    "hoodie.rollback.parallelism": "2",
    "hoodie.metadata.index.column.stats.parallelism": "2",
    "hoodie.finalize.write.parallelism": "2",
    "hoodie.markers.delete.parallelism": "2",
}
"""Settings that change the speed on a small machine, not the result."""


def table_exists(table: str) -> bool:
    """Whether there is a ``hoodie.properties``."""
    return (Path(table) / ".hoodie" / "hoodie.properties").is_file()


def read_properties(table: str) -> dict[str, str]:
    """The table's properties."""
    properties = {}
    for line in (Path(table) / ".hoodie" / "hoodie.properties").read_text().splitlines():
        key, sign, value = line.partition("=")
        if sign and not line.startswith("#"):
            properties[key.strip()] = _ESCAPE.sub(_unescaped, value.strip())
    return properties


def _unescaped(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else escape[2]


def write_options(table: str, operation: str, given: dict[str, str], *, is_v1: bool) -> dict[str, str]:
    """
    Options of the data source for one write.

    Keys, partitioning, ordering, table version and whether there is a metadata table follow the table when it exists;
    *given* overrides everything.
    """
    options = {**_SMALL, "hoodie.datasource.write.operation": operation}
    if table_exists(table):
        properties = read_properties(table)
        options |= {option: properties[name] for name, option in _FROM_PROPERTY.items() if properties.get(name)}
        options["hoodie.metadata.enable"] = _has_metadata_table(properties)
        if is_v1:
            options |= _keep_version(properties)
    return options | given


def client_settings(table: str, given: dict[str, str], *, is_v1: bool) -> dict[str, str]:
    """
    Settings of a write client for table services on an existing table.

    Archival is out of the way (it would run after a clean) unless *given* brings its bounds.
    """
    properties = read_properties(table)
    settings = {
        **_SMALL,
        "hoodie.base.path": table,
        "hoodie.table.name": properties["hoodie.table.name"],
        "hoodie.metadata.enable": _has_metadata_table(properties),
        "hoodie.keep.min.commits": "1000",
        "hoodie.keep.max.commits": "1001",
        "hoodie.write.auto.upgrade": "false",
    }
    if is_v1:
        settings |= _keep_version(properties)
    return settings | given


def clean_settings(
    policy: str,
    commits_retained: int | None = None,
    file_versions_retained: int | None = None,
    hours_retained: int | None = None,
) -> dict[str, str]:
    """Settings for one clean, under the names that all releases know."""
    settings = {"hoodie.cleaner.policy": policy}
    for key, value in (
        ("hoodie.cleaner.commits.retained", commits_retained),
        ("hoodie.cleaner.fileversions.retained", file_versions_retained),
        ("hoodie.cleaner.hours.retained", hours_retained),
    ):
        if value is not None:
            settings[key] = str(value)
    return settings


def _has_metadata_table(properties: dict[str, str]) -> str:
    return "true" if properties.get("hoodie.table.metadata.partitions") else "false"


def _keep_version(properties: dict[str, str]) -> dict[str, str]:
    return {
        "hoodie.write.table.version": properties.get("hoodie.table.version", "6"),
        "hoodie.write.auto.upgrade": "false",
    }

"""
Properties of new tables. Pure.

Source: rules/data-files 14, compared with tables of three releases; Hudi ``HoodieTableMetaClient.TableBuilder``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hudi_py.config import keys
from hudi_py.config.key_generators import key_generator_asked_for
from hudi_py.config.payload_class import hudis_payload
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError, UnsupportedTable
from hudi_py.versions.format import TableFormat
from hudi_py.versions.served import FORMATS, format_of

_KEY_GENERATOR_CLASS: Final = {
    "SIMPLE": "org.apache.hudi.keygen.SimpleKeyGenerator",
    "COMPLEX": "org.apache.hudi.keygen.ComplexKeyGenerator",
    "NON_PARTITION": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "TIMESTAMP": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
    "CUSTOM": "org.apache.hudi.keygen.CustomKeyGenerator",
}
_MERGE_MODE_OF_PAYLOAD: Final = {
    "OverwriteWithLatestAvroPayload": "COMMIT_TIME_ORDERING",
    "DefaultHoodieRecordPayload": "EVENT_TIME_ORDERING",
}
_PAYLOAD_OF_MERGE_MODE: Final = {
    mode: f"org.apache.hudi.common.model.{payload}" for payload, mode in _MERGE_MODE_OF_PAYLOAD.items()
}
# Ids that Hudi gave to its two ways of merging; its readers choose the merger by them.
_EVENT_TIME: Final = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
_COMMIT_TIME: Final = "ce9acb64-bde0-424c-9b91-f6ebba25356d"


def new_table_properties(settings: Settings) -> dict[str, str]:
    """
    Return the properties of the table that *settings* describe, without the checksum.

    Raises:
        ConfigError: The name or the record key is missing, or the version is unknown.
        UnsupportedTable: hudi_py does not write this kind of table.
    """
    version = settings[keys.WRITE_TABLE_VERSION]
    if version not in FORMATS:
        known = ", ".join(map(str, FORMATS))
        raise ConfigError(f"hoodie.write.table.version={version}: only tables of versions {known} can be created")
    name = settings[keys.TABLE_NAME]
    if not name:
        raise ConfigError("hoodie.table.name is not set; a new table needs a name")
    common = {
        "hoodie.table.name": name,
        "hoodie.table.type": settings[keys.TABLE_TYPE],
        "hoodie.table.version": str(version),
        "hoodie.table.base.file.format": "PARQUET",
        "hoodie.populate.meta.fields": "true",
        "hoodie.table.cdc.enabled": _text(settings[keys.CDC_ENABLED]),
        "hoodie.table.timeline.timezone": settings[keys.TIMELINE_TIMEZONE],
        "hoodie.datasource.write.hive_style_partitioning": _text(settings[keys.HIVE_STYLE]),
        "hoodie.datasource.write.partitionpath.urlencode": _text(settings[keys.URL_ENCODE]),
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.partition.metafile.use.base.format": "false",
        "hoodie.database.name": settings[keys.DATABASE_NAME],
    }
    if settings[keys.RECORD_KEY_FIELDS]:  # else each row gets a generated key
        common["hoodie.table.recordkey.fields"] = _comma(settings[keys.RECORD_KEY_FIELDS])
    if settings[keys.PARTITION_FIELDS]:
        common["hoodie.table.partition.fields"] = _comma(_partition_fields(settings, FORMATS[version]))
    if settings[keys.CDC_ENABLED]:
        common[keys.CDC_LOGGING_MODE.name] = settings[keys.CDC_LOGGING_MODE]
    common |= {key.name: settings[key] for key in keys.TIME_KEYS if key in settings}
    table_format = FORMATS[version]
    specific = _by_mode(settings, table_format) if table_format.has_merge_mode else _by_payload(settings)
    return {**common, **table_format.properties, **specific}


def _partition_fields(settings: Settings, table_format: TableFormat) -> tuple[str, ...]:
    """Return them with their kinds (``day:TIMESTAMP``), which version 6 does not store."""
    fields = settings[keys.PARTITION_FIELDS]
    return fields if table_format.has_merge_mode else tuple(each.partition(":")[0] for each in fields)


def table_folders(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the folders to create with a new table, relative to its base path."""
    history = format_of(properties).history_folder.format(
        timeline=properties.get("hoodie.timeline.path"),
        history=properties.get("hoodie.timeline.history.path"),
        archive=properties["hoodie.archivelog.folder"],
    )
    return (history, ".hoodie/.aux", ".hoodie/.temp", ".hoodie/.schema")


def _by_payload(settings: Settings) -> dict[str, str]:
    generator = _key_generator(settings)
    properties = {
        "hoodie.table.keygenerator.class": settings[keys.KEY_GENERATOR_CLASS] or _KEY_GENERATOR_CLASS[generator],
    }
    mode = merge_mode_asked_for(settings)
    if mode == "EVENT_TIME_ORDERING" and not settings[keys.ORDERING_FIELDS]:
        raise ConfigError(f"{keys.MERGE_MODE.name}={mode} needs hoodie.table.ordering.fields")
    if mode is None and settings[keys.TABLE_TYPE] == "MERGE_ON_READ":  # its log files are merged by the class
        mode = "COMMIT_TIME_ORDERING"
    if mode is not None:
        properties["hoodie.compaction.payload.class"] = settings[keys.PAYLOAD_CLASS] or _PAYLOAD_OF_MERGE_MODE[mode]
    if settings[keys.ORDERING_FIELDS]:
        properties["hoodie.table.precombine.field"] = _comma(settings[keys.ORDERING_FIELDS])
    return properties


def _by_mode(settings: Settings, table_format: TableFormat) -> dict[str, str]:
    ordering = settings[keys.ORDERING_FIELDS]
    # Where no mode is set, Apache Hudi derives it from the ordering fields, too.
    mode = merge_mode_asked_for(settings) or ("EVENT_TIME_ORDERING" if ordering else "COMMIT_TIME_ORDERING")
    if mode == "EVENT_TIME_ORDERING" and not ordering:
        raise ConfigError("hoodie.record.merge.mode=EVENT_TIME_ORDERING needs hoodie.table.ordering.fields")
    properties = {
        "hoodie.table.keygenerator.type": _key_generator(settings),
        "hoodie.record.merge.mode": mode,
    }
    # Version 8 stores the mode beside the class that it took the place of, version 9 the mode alone.
    if table_format.names_payload:
        event_time = mode == "EVENT_TIME_ORDERING"
        properties["hoodie.record.merge.strategy.id"] = _EVENT_TIME if event_time else _COMMIT_TIME
        properties["hoodie.compaction.payload.class"] = _PAYLOAD_OF_MERGE_MODE[mode]
        if ordering:
            properties["hoodie.table.precombine.field"] = ",".join(ordering)
        return properties
    if ordering:
        properties["hoodie.table.ordering.fields"] = ",".join(ordering)
    return properties


def _key_generator(settings: Settings) -> str:
    """Return the key generator that is set, else the one that Hudi's Spark writer infers from the number of fields."""
    asked = key_generator_asked_for(settings)
    if asked is not None:
        return asked
    partitions = settings[keys.PARTITION_FIELDS]
    if not partitions:
        return "NON_PARTITION"
    if any(":" in each for each in partitions):  # of which kind each is: region:SIMPLE,day:TIMESTAMP
        return "CUSTOM"
    return "SIMPLE" if len(partitions) == 1 and len(settings[keys.RECORD_KEY_FIELDS]) <= 1 else "COMPLEX"


def merge_mode_asked_for(settings: Settings) -> str | None:
    """
    Return how rows of the same key are merged, set as a mode or as the payload class of it; None if neither is set.

    Raises:
        UnsupportedTable: The mode or the class is not supported.
        ConfigError: Both are given and differ.
    """
    payload = settings[keys.PAYLOAD_CLASS]
    if settings[keys.MERGE_MODE] == "CUSTOM":
        raise UnsupportedTable("hoodie.record.merge.mode=CUSTOM runs Java code; write the table with Apache Hudi")
    if not payload:
        return settings[keys.MERGE_MODE] or None
    mode = _MERGE_MODE_OF_PAYLOAD.get(hudis_payload(payload) or "")
    if mode is None:
        raise UnsupportedTable(f"{keys.PAYLOAD_CLASS.name}={payload} runs Java code; write the table with Apache Hudi")
    if settings[keys.MERGE_MODE] not in ("", mode):
        raise ConfigError(
            f"{keys.MERGE_MODE.name}={settings[keys.MERGE_MODE]} and {keys.PAYLOAD_CLASS.name}={payload} contradict "
            "each other; keep one"
        )
    return mode


def _comma(names: tuple[str, ...]) -> str:
    return ",".join(names)


def _text(flag: bool) -> str:
    return str(flag).lower()

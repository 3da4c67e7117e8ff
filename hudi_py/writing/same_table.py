"""Checks that the settings of a write agree with the table: a write cannot change what defines a table."""

from __future__ import annotations

from typing import Any, Final

from hudi_py.config import keys
from hudi_py.config.keys import Key
from hudi_py.config.new_table import merge_mode_asked_for
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig
from hudi_py.errors import ConfigError
from hudi_py.model.change_logging import logging_mode
from hudi_py.rows.precedence import MergeMode, merge_rules_of
from hudi_py.runtime.log import log

_COMMIT_TIME: Final = frozenset({MergeMode.COMMIT_TIME_ORDERING, MergeMode.OVERWRITE_WITH_LATEST})
"""With both, the row of a commit replaces the stored row; the second is the name in table version 6."""


def require_same_table(settings: Settings, table: TableConfig, source: str) -> None:
    """
    Raise if settings contradict the properties of the existing table.

    Args:
        settings: Settings of the writer; those that are not set are not compared.
        table: Configuration of the table.
        source: Path or URL of the table, for the message.

    Raises:
        ConfigError: A setting contradicts the table's properties.
        UnsupportedTable: The settings or the table merge rows in a way that hudi_py does not support.
    """
    mode = logging_mode(table.properties, source)
    defining: tuple[tuple[Key[Any], Any], ...] = (
        (keys.RECORD_KEY_FIELDS, table.record_key_fields),
        (keys.TABLE_NAME, table.name),
        (keys.WRITE_TABLE_VERSION, table.version),
        (keys.TABLE_TYPE, table.table_type.value),
        (keys.HIVE_STYLE, table.hive_style),
        (keys.URL_ENCODE, table.url_encode),
        (keys.TIMELINE_TIMEZONE, table.timezone),
        (keys.CDC_ENABLED, mode is not None),
        *(((keys.CDC_LOGGING_MODE, mode.name_of_hudi),) if mode is not None else ()),
        # Without ordering fields in the table there is a warning below.
        *(((keys.ORDERING_FIELDS, table.ordering_fields),) if table.ordering_fields else ()),
    )
    fields = tuple(each.partition(":")[0] for each in settings[keys.PARTITION_FIELDS])  # kinds: see key_generator_of
    if keys.PARTITION_FIELDS in settings and fields != table.partition_fields:
        raise _contradiction(
            keys.PARTITION_FIELDS, str(settings.raw(keys.PARTITION_FIELDS)), _text(table.partition_fields), source
        )
    for key, actual in defining:
        if key in settings and settings[key] != actual:
            raise _contradiction(key, str(settings.raw(key)), _text(actual), source)
    # No error: the rows are those that the table asks for, with the setting or without it.
    if not table.ordering_fields and keys.ORDERING_FIELDS in settings and settings[keys.ORDERING_FIELDS]:
        log.warning(
            "write.ordering.none",
            why=f"{keys.ORDERING_FIELDS.name}={settings.raw(keys.ORDERING_FIELDS)} has no effect: the table at "
            f"{source} has no ordering fields, so the later row wins",
        )
    asked = merge_mode_asked_for(settings)
    actual_mode = merge_rules_of(table.properties).mode
    if asked is not None and not _is_same(asked, actual_mode):
        key = keys.MERGE_MODE if keys.MERGE_MODE in settings else keys.PAYLOAD_CLASS
        raise _contradiction(key, str(settings.raw(key)), actual_mode.value, source)


def _is_same(asked: str, actual: MergeMode) -> bool:
    return asked == actual.value or (MergeMode[asked] in _COMMIT_TIME and actual in _COMMIT_TIME)


def _contradiction(key: Key[Any], asked: str, actual: str, source: str) -> ConfigError:
    return ConfigError(
        f"{key.name}={asked}, but the table at {source} has {actual!r}; leave the setting out or write to another table"
    )


def _text(actual: Any) -> str:
    if isinstance(actual, bool):
        return str(actual).lower()
    return str(actual) if isinstance(actual, str | int) else ",".join(actual)

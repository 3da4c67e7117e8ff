"""
Which indexes of keys an action of ours keeps true, by the table's properties and index definitions; and definitions of
indexes that are dropped.

Source: rules/data-files 11.3; Hudi 1.1.1 ``HoodieIndexDefinition``, ``HoodieRecordIndex.isPartitioned``.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final

from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.mdt.lookup import BLOOM_FILTERS, RECORD_INDEX
from hudi_py.model.json_document import parse_json
from hudi_py.storage.base import Storage

DEFINITIONS_KEY: Final = "hoodie.table.index.defs.path"


def kept_indexes(storage: Storage, config: TableConfig) -> frozenset[str]:
    """
    Return the indexes of keys that commits of ours keep true.

    Args:
        storage: Storage of the data table.
        config: Configuration of the data table, as just read.
    """
    ready = set(config.metadata_partitions) - set(config.metadata_partitions_inflight)
    kept = ready & {BLOOM_FILTERS, RECORD_INDEX}
    if RECORD_INDEX in kept and not _is_global(storage, config):
        kept.remove(RECORD_INDEX)
    return frozenset(kept)


def read_definitions(storage: Storage, config: TableConfig) -> dict[str, Any]:
    """
    Return name to definition of the indexes that the table defines; empty where it has no file of definitions.

    Raises:
        CorruptMetadata: The file does not decode.
    """
    path = config.properties.get(DEFINITIONS_KEY)
    try:
        return dict(parse_json(storage.read(path))["indexDefinitions"]) if path else {}
    except NotFound:
        return {}
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptMetadata(f"{storage.root}/{path}: no index definitions: {error!r}") from error


def forget_definitions(storage: Storage, config: TableConfig, names: Collection[str]) -> None:
    """
    Remove definitions of indexes that were dropped; those that are not there are passed over.

    Raises:
        CorruptMetadata: As `read_definitions`.
    """
    defined = read_definitions(storage, config)
    left = {name: each for name, each in defined.items() if name not in names}
    if len(left) < len(defined):
        content = json.dumps({"indexDefinitions": left}, indent=2).encode()
        storage.replace(config.properties[DEFINITIONS_KEY], content)


def _is_global(storage: Storage, config: TableConfig) -> bool:
    """Whether the record index is one for the whole table, of the only version there is; False on doubt."""
    # Only 1.1 has the other form, with groups numbered within each partition (rules/data-files 11.3), and says so here.
    if not config.format.layout.has_completion_times or DEFINITIONS_KEY not in config.properties:
        return True
    try:
        defined: Any = parse_json(storage.read(config.properties[DEFINITIONS_KEY]))["indexDefinitions"]
        definition = defined.get(RECORD_INDEX, {})  # before 1.1 it has none
        partitioned = definition.get("indexOptions", {}).get("isPartitioned", "false")
    except (NotFound, ValueError, KeyError, TypeError, AttributeError):
        return False
    return definition.get("version", "V1") == "V1" and str(partitioned).lower() == "false"

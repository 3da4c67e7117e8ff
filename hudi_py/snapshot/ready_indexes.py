"""
Whether a partition of the metadata table may be used. Apart from those that use it: few readers need any, and
their modules take long to load.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hudi_py.config import keys
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.mdt.table import MetadataTableMissing
from hudi_py.storage.base import Storage
from hudi_py.timeline.properties_file import read_table_config

R = TypeVar("R")


def is_ready(partition: str, config: TableConfig, settings: Settings) -> bool:
    """Whether a partition of the metadata table is complete and may be used."""
    # Inflight: Hudi is still filling it, so a key may be missing.
    is_made = partition in config.metadata_partitions and partition not in config.metadata_partitions_inflight
    return is_made and settings[keys.METADATA_ENABLED] is not False


def opened(partition: str, open_it: Callable[[], R], storage: Storage, settings: Settings) -> R | None:
    """
    Open a partition of the metadata table that was ready when the snapshot was; None if it was dropped since, or if
    there is no metadata table, which the listing has told.

    Args:
        open_it: Opens it.
        storage: The data table's storage.

    Raises:
        CorruptMetadata, NotFound: It is damaged: the properties still name it.
    """
    try:
        return open_it()
    except MetadataTableMissing:
        return None
    except (CorruptMetadata, NotFound):
        # Only now, for it costs a request: another process may have dropped it, which nothing is wrong with.
        if is_ready(partition, read_table_config(storage), settings):
            raise
        return None

"""What the settings of a write say about its files. Pure."""

from __future__ import annotations

from hudi_py.config import keys
from hudi_py.config.archive import archive_config
from hudi_py.config.clean import clean_config
from hudi_py.config.keys import Settings
from hudi_py.formats.bloom import BloomKind, BloomSizing
from hudi_py.rows.base_file import BaseFileOptions
from hudi_py.writing.assign import SizingLimits


def check_options(settings: Settings) -> None:
    """
    Ask for all that is only looked at in the middle of a write or after its commit, so that it fails before the write.

    Raises:
        ConfigError: A setting is wrong.
    """
    base_file_options(settings)
    if settings[keys.CLEAN_AUTOMATIC]:
        clean_config(settings)
    if settings[keys.ARCHIVE_AUTOMATIC]:
        archive_config(settings)


def base_file_options(settings: Settings) -> BaseFileOptions:
    """Layout of base files."""
    return BaseFileOptions(
        compression=settings[keys.PARQUET_COMPRESSION],
        bloom=BloomSizing(
            kind=BloomKind(settings[keys.BLOOM_TYPE]),
            entries=settings[keys.BLOOM_NUM_ENTRIES],
            false_positive_rate=settings[keys.BLOOM_FPP],
            entries_max=settings[keys.BLOOM_MAX_ENTRIES],
        ),
        max_file_bytes=settings[keys.PARQUET_MAX_FILE_SIZE],
    )


def sizing_limits(settings: Settings) -> SizingLimits:
    """Sizing of file groups."""
    return SizingLimits(
        max_file_bytes=settings[keys.PARQUET_MAX_FILE_SIZE],
        small_file_bytes=settings[keys.PARQUET_SMALL_FILE_LIMIT],
        insert_split_rows=settings[keys.INSERT_SPLIT_SIZE],
        auto_split=settings[keys.INSERT_AUTO_SPLIT],
    )

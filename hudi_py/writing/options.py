"""Options for data files, from the settings of a write. Pure."""

from __future__ import annotations

from hudi_py.config import keys
from hudi_py.config.archive import archive_config
from hudi_py.config.bulk_insert import bulk_insert_layout
from hudi_py.config.clean import clean_config
from hudi_py.config.clustering import check_inline_clustering
from hudi_py.config.compaction import compaction_config, compacts_after_writes
from hudi_py.config.settings import Settings
from hudi_py.formats.bloom import BloomKind, BloomSizing
from hudi_py.rows.base_file import BaseFileOptions
from hudi_py.rows.log_file import LogFileOptions
from hudi_py.writing.assign import SizingLimits
from hudi_py.writing.commit_words import copied_settings


def check_options(settings: Settings) -> None:
    """
    Check settings that are used only during a write or after its commit, so that errors are found before the write.

    Raises:
        ConfigError: A setting is invalid.
    """
    base_file_options(settings)
    bulk_insert_layout(settings)
    copied_settings(settings)
    if compacts_after_writes(settings):
        compaction_config(settings)
    check_inline_clustering(settings)
    # Only of services that will run: a wrong value of another one harms nobody.
    if settings[keys.CLEAN_AUTOMATIC]:
        clean_config(settings)
    if settings[keys.ARCHIVE_AUTOMATIC]:
        archive_config(settings)


def base_file_options(settings: Settings) -> BaseFileOptions:
    """Return the options for the layout of base files."""
    return BaseFileOptions(
        row_group_bytes=settings[keys.PARQUET_BLOCK_SIZE],
        page_bytes=settings[keys.PARQUET_PAGE_SIZE],
        has_dictionaries=settings[keys.PARQUET_DICTIONARY],
        compression=settings[keys.PARQUET_COMPRESSION],
        bloom=BloomSizing(
            kind=BloomKind(settings[keys.BLOOM_TYPE]),
            entries=settings[keys.BLOOM_NUM_ENTRIES],
            false_positive_rate=settings[keys.BLOOM_FPP],
            entries_max=settings[keys.BLOOM_MAX_ENTRIES],
        ),
        max_file_bytes=settings[keys.PARQUET_MAX_FILE_SIZE],
    )


def log_file_options(
    settings: Settings, ordering_fields: tuple[str, ...] = (), *, has_positions: bool = False
) -> LogFileOptions:
    """Return the options for the layout of log files; deletes of a write have the values of the *ordering_fields*."""
    return LogFileOptions(
        in_parquet=settings[keys.LOG_BLOCK_FORMAT] == "PARQUET",
        has_positions=has_positions,
        ordering_fields=ordering_fields,
        parquet=base_file_options(settings),
    )


def sizing_limits(settings: Settings) -> SizingLimits:
    """Return the limits for the size of files."""
    return SizingLimits(
        max_file_bytes=settings[keys.PARQUET_MAX_FILE_SIZE],
        small_file_bytes=settings[keys.PARQUET_SMALL_FILE_LIMIT],
        insert_split_rows=settings[keys.INSERT_SPLIT_SIZE],
        auto_split=settings[keys.INSERT_AUTO_SPLIT],
    )

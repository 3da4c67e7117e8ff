"""
Settings of clustering, as a typed value.

Source: rules/table-services E.3; Hudi ``HoodieClusteringConfig``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from hudi_py.config import keys
from hudi_py.config.arguments import check_kinds, chosen_of, texts_of
from hudi_py.config.keys import Key
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError

LAYOUTS: Final = {"linear": "LINEAR", "z-order": "ZORDER", "hilbert": "HILBERT"}
"""Orders of rows as users name them, to the values of Hudi's setting."""

_PLANNERS: Final = ("", "SparkSizeBasedClusteringPlanStrategy")
_RUNNERS: Final = ("", "SparkSortAndSizeExecutionStrategy")


@attrs.frozen(kw_only=True)
class ClusteringConfig:
    """
    Which file groups are rewritten, into which files.

    Args:
        small_bytes: Base files of at least this size stay as they are.
        group_bytes_max: Bytes that are rewritten together.
        target_bytes: Size of the new files.
        groups_max: Number of groups of a plan.
        single_group: Whether a file that nothing can be joined with is rewritten.
        sort_columns: Rows are sorted by these columns.
        layout: ``LINEAR``, ``ZORDER`` or ``HILBERT``.
        partitions: Only these, whatever *regex*; empty for all.
        regex: Only partitions whose whole path matches; empty for all.
        filter_mode: ``NONE``, ``RECENT_DAYS``, ``SELECTED_PARTITIONS`` or ``DAY_ROLLING``.
        lookback: RECENT_DAYS: number of partitions, counted from the last one; 0 for all.
        skip_latest: RECENT_DAYS: number of partitions that are left out at the end.
        begin, end: SELECTED_PARTITIONS: first and last partition, empty for no bound.
        no_base_bytes: What counts as the size of a slice without a base file.
        is_packed: Plan fewer and fuller groups than Apache Hudi.
        bytes_max: Bytes that one plan rewrites; None for no limit.
        memory_bytes: Rows of larger groups are sorted by way of temporary files.
        spill_folder: Folder of these files; None for the machine's.
        services_enabled: Whether table services run at all.
    """

    small_bytes: int = 300 << 20
    group_bytes_max: int = 2 << 30
    target_bytes: int = 1 << 30
    groups_max: int = 30
    single_group: bool = True
    sort_columns: tuple[str, ...] = ()
    layout: str = "LINEAR"
    partitions: tuple[str, ...] = ()
    regex: str = ""
    filter_mode: str = "NONE"
    lookback: int = 2
    skip_latest: int = 0
    begin: str = ""
    end: str = ""
    no_base_bytes: int = 120 << 20
    is_packed: bool = False
    bytes_max: int | None = None
    memory_bytes: int = 256 << 20
    spill_folder: str | None = None
    services_enabled: bool = True


def clustering_config(settings: Settings) -> ClusteringConfig:
    """
    Return the clustering configuration in *settings*.

    Raises:
        ConfigError: A value is invalid, or a class is named that plans or runs in another way.
    """
    # Java classes plan and run as they like: one that is not known here may sort, split or leave out rows in another
    # way.
    _require_class(settings, keys.CLUSTERING_PLAN_CLASS, _PLANNERS)
    _require_class(settings, keys.CLUSTERING_RUN_CLASS, _RUNNERS)
    return ClusteringConfig(
        small_bytes=settings[keys.CLUSTERING_SMALL_BYTES],
        group_bytes_max=settings[keys.CLUSTERING_GROUP_BYTES],
        target_bytes=settings[keys.CLUSTERING_TARGET_BYTES],
        groups_max=settings[keys.CLUSTERING_GROUPS_MAX],
        single_group=settings[keys.CLUSTERING_SINGLE_GROUP],
        sort_columns=settings[keys.CLUSTERING_SORT_COLUMNS],
        layout=settings[keys.CLUSTERING_LAYOUT],
        partitions=settings[keys.CLUSTERING_PARTITIONS],
        regex=settings[keys.CLUSTERING_PARTITION_REGEX],
        filter_mode=settings[keys.CLUSTERING_FILTER_MODE],
        lookback=settings[keys.CLUSTERING_LOOKBACK],
        skip_latest=settings[keys.CLUSTERING_SKIP_LATEST],
        begin=settings[keys.CLUSTERING_BEGIN],
        end=settings[keys.CLUSTERING_END],
        # As Hudi assumes of a slice that has log files only.
        no_base_bytes=settings[keys.PARQUET_MAX_FILE_SIZE],
        is_packed=settings[keys.CLUSTERING_PLANNER] == "PACKED",
        bytes_max=settings[keys.CLUSTERING_BYTES_MAX],
        memory_bytes=settings[keys.CLUSTERING_MEMORY_BYTES],
        spill_folder=settings[keys.SPILL_FOLDER] or None,
        services_enabled=settings[keys.TABLE_SERVICES_ENABLED],
    )


def check_inline_clustering(settings: Settings) -> None:
    """
    Check the settings of a writer that clusters after its commits.

    Raises:
        ConfigError: A value is invalid, two settings exclude each other, or the table has a bucket index.
    """
    asked = [key for key in (keys.CLUSTERING_INLINE, keys.CLUSTERING_SCHEDULE_INLINE) if settings[key]]
    if len(asked) > 1:
        raise ConfigError(f"{asked[0].name} and {asked[1].name} exclude each other; set one of them")
    if asked:
        clustering_config(settings)
        if settings[keys.INDEX_TYPE] == "BUCKET":
            raise ConfigError(f"{asked[0].name}=true, but rows of a bucket index stay in their files; leave it out")


def clustering_config_with(
    settings: Settings,
    *,
    sort_by: str | Sequence[str] = (),
    layout: str | None = None,
    partitions: Sequence[str] | None = None,
) -> ClusteringConfig:
    """
    Return the clustering configuration in *settings*, overridden by arguments, as for `hudi_py.Table.cluster`.

    Raises:
        ConfigError: A value is invalid.
    """
    config = clustering_config(settings)
    # One column is often given as a plain text.
    columns = (sort_by,) if isinstance(sort_by, str) else texts_of("sort_by", sort_by)
    if not all(name.strip() for name in columns):
        raise ConfigError("sort_by (--sort-by) names no column; name one, or leave it out")
    chosen = chosen_of("partitions", partitions)
    check_kinds(str, "the name of a layout", layout=layout)
    if layout is not None and layout not in LAYOUTS:
        raise ConfigError(f"layout {layout!r} is unknown; use one of {', '.join(LAYOUTS)}")
    if layout is not None and not (columns or config.sort_columns):
        raise ConfigError(f"layout {layout!r} orders rows by columns; name them with sort_by (--sort-by)")
    return attrs.evolve(
        config,
        sort_columns=columns or config.sort_columns,
        layout=config.layout if layout is None else LAYOUTS[layout],
        partitions=chosen or config.partitions,
    )


def _require_class(settings: Settings, key: Key[str], known: tuple[str, ...]) -> None:
    name = settings[key].strip()
    if name.rpartition(".")[2] not in known:
        raise ConfigError(
            f"{key.name}={name} is a Java class that clusters in another way than hudi_py, which does as {known[-1]}; "
            "leave the setting out"
        )

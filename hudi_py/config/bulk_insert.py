"""
How a bulk insert spreads and sorts its rows. Pure.

Source: Hudi 0.15.0, 1.0.2, 1.1.1 ``BulkInsertSortMode`` and the partitioners ``…WithRows``;
tests/interop/test_bulk_insert_order.py holds the files beside theirs.
"""

from __future__ import annotations

from typing import Final

import attrs

from hudi_py.config import keys
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError

_PACKAGE: Final = "org.apache.hudi.execution.bulkinsert."
_BY_COLUMNS: Final = ("RowCustomColumnsSortPartitioner", "RDDCustomColumnsSortPartitioner")
_REPARTITIONS: Final = ("PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT")
_SORTS: Final = ("GLOBAL_SORT", "PARTITION_SORT")


@attrs.frozen(kw_only=True)
class BulkInsertLayout:
    """
    What becomes of the rows before they are written to new files.

    Args:
        is_chosen: Whether the settings say it. Otherwise few files matter more than the order of the rows.
        gathers: Whether all rows of a table partition go to one task.
        is_global: Whether all rows of the write are sorted, not only those of each task.
        columns: Columns that rows of a table partition are sorted by.
        by_key: Whether they are sorted by their key, after these columns.
    """

    is_chosen: bool = False
    gathers: bool = False
    is_global: bool = False
    columns: tuple[str, ...] = ()
    by_key: bool = False

    @property
    def sorts(self) -> bool:
        """Whether the rows of a table partition are sorted."""
        return bool(self.columns) or self.by_key


def bulk_insert_layout(settings: Settings) -> BulkInsertLayout:
    """
    Return the layout that the settings ask for.

    Raises:
        ConfigError: They ask for a class that is not one of Apache Hudi's two, or for something without effect.
    """
    mode, partitioner = settings[keys.BULK_INSERT_SORT_MODE], settings[keys.BULK_INSERT_PARTITIONER].strip()
    columns, by_key = settings[keys.BULK_INSERT_SORT_COLUMNS], settings[keys.BULK_INSERT_SORT_SUFFIX]
    if not partitioner:
        idle = {keys.BULK_INSERT_SORT_COLUMNS.name: bool(columns), keys.BULK_INSERT_SORT_SUFFIX.name: by_key}
        name = next((name for name, is_given in idle.items() if is_given), None)
        if name is not None:
            raise ConfigError(
                f"{name} has an effect only with {keys.BULK_INSERT_PARTITIONER.name}={_PACKAGE}{_BY_COLUMNS[0]}; "
                f"set that, too, or leave it out and sort with {keys.BULK_INSERT_SORT_MODE.name}"
            )
        # Both of these modes sort by partition and key.
        sorts = mode in _SORTS
        return BulkInsertLayout(
            is_chosen=bool(mode), gathers=mode in _REPARTITIONS, is_global=mode == "GLOBAL_SORT", by_key=sorts
        )
    if partitioner.removeprefix(_PACKAGE) not in _BY_COLUMNS:
        known = " or ".join(_PACKAGE + name for name in _BY_COLUMNS)
        raise ConfigError(
            f"{keys.BULK_INSERT_PARTITIONER.name}={partitioner} is a Java class, which hudi_py cannot run; use {known}"
        )
    if not columns:
        raise ConfigError(f"{keys.BULK_INSERT_PARTITIONER.name} needs {keys.BULK_INSERT_SORT_COLUMNS.name}")
    # Hudi ignores the mode then; whoever sets it expects its effect.
    if mode:
        raise ConfigError(
            f"{keys.BULK_INSERT_SORT_MODE.name}={mode} has no effect beside {keys.BULK_INSERT_PARTITIONER.name}; "
            "leave one of them out"
        )
    return BulkInsertLayout(is_chosen=True, is_global=True, columns=columns, by_key=by_key)

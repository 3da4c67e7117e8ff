"""
Keys of rows that have none: ``<instant>_<task>_<number of the row in the task>``, as in Apache Hudi.

Source: Hudi 0.15.0, 1.0.2, 1.1.1 ``AutoRecordGenWrapperKeyGenerator``, ``AutoRecordKeyGenExpression``; real Hudi says
which operations it takes in tests/interop/test_generated_keys.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hudi_py.config import keys
from hudi_py.config.duplicates import combines_inserts, duplicates_of
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError
from hudi_py.formats.arrow_types import compute
from hudi_py.rows.keys import GENERATED, KeyGenerator

_INSERTS: Final = ("INSERT", "BULK_INSERT", "INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE")


def require_keys(settings: Settings, generator: KeyGenerator, operation: str) -> None:
    """
    Raise if a write needs keys that rows have, and the table's are generated.

    Args:
        settings: Settings of the write.
        generator: Of the table.
        operation: What is to be written.

    Raises:
        ConfigError: It does.
    """
    if not generator.generates:
        return
    name = keys.RECORD_KEY_FIELDS.name
    if operation not in _INSERTS:
        raise ConfigError(
            f"{operation.lower()} finds rows by their keys, and the table has no key columns ({name} is not set), so "
            "each row has a generated key; use insert, or delete and update by conditions; for a new table, name the "
            "columns that identify a row"
        )
    if combines_inserts(settings) or duplicates_of(settings, operation).value != "NONE":
        raise ConfigError(
            f"{keys.COMBINE_BEFORE_INSERT.name}, {keys.INSERT_DROPS_DUPLICATES.name} and {keys.INSERT_DUPLICATES.name} "
            f"compare keys, and generated ones all differ; leave them out, or name key columns ({name})"
        )


def with_generated_keys(batches: Iterable[pa.RecordBatch], instant_time: str) -> Iterator[pa.RecordBatch]:
    """Yield rows of one task with their keys in the column `GENERATED`."""
    start = 0
    # A stream is written by a single task, the one with number 0.
    prefix = pa.scalar(f"{instant_time}_0_")
    for batch in batches:
        numbers: Any = pa.array(np.arange(start, start + batch.num_rows)).cast(pa.string())
        start += batch.num_rows
        yield batch.append_column(GENERATED, compute.binary_join_element_wise(prefix, numbers, ""))

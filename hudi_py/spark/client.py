"""The write client: rows of a DataFrame into a table, every commit followed by the clean that the settings ask for."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hudi_py.config import keys
from hudi_py.config.door import admitted
from hudi_py.engine.choice import AutoEngine
from hudi_py.runtime.clock import Clock, SystemClock
from hudi_py.services.clean.executing.watch import OnProgress
from hudi_py.services.clean.result import CleanResult
from hudi_py.spark.engine import SparkEngine
from hudi_py.spark.incoming import SparkRows
from hudi_py.spark.session import require_classic
from hudi_py.storage.factory import open_storage
from hudi_py.table import Table
from hudi_py.write_service import WriteResult, WriteService

__all__ = ["WriteClient", "WriteResult"]


class WriteClient:
    """
    Writes to one copy-on-write table, which is created by the first write if it is not there.

    Args:
        spark: The session that does the work.
        location: Local path or URL of the table.
        settings: Under Hudi's own names, old and new spellings. A new table needs ``hoodie.table.name`` and
            ``hoodie.datasource.write.recordkey.field``; for a table that exists, what its properties say counts.
        storage_options: For the storage library.
        clock: Replaces the machine's clock.

    Raises:
        ConfigError: A setting is unknown, wrong or refused (see docs/settings.md), or contradicts the table.
        UnsupportedTable: A kind of table that is not written.
    """

    def __init__(
        self,
        spark: SparkSession,
        location: str | PathLike[str],
        settings: Mapping[str, Any] | None = None,
        *,
        storage_options: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        require_classic(spark)
        self._spark = spark
        self._settings = admitted(settings)
        storage = open_storage(location, storage_options, read_bytes_max=self._settings[keys.READ_BYTES_MAX])
        self._service = WriteService(storage, self._settings, clock or SystemClock(), self._cleaning)

    @property
    def table(self) -> Table:
        """
        The table, without Spark.

        Raises:
            TableNotFound: Nothing was written yet.
        """
        return self._service.table

    def upsert(self, rows: DataFrame) -> WriteResult:
        """
        Update rows whose key the table holds, insert the others.

        Of several rows with one key the one with the largest ordering value counts. Rows whose boolean column
        ``_hoodie_is_deleted`` is true are deleted.

        Raises:
            ConfigError, WriteError: The rows do not fit the table; nothing is visible.
            RefusedError: See `MetadataTableKeeper`.
            ConflictError: Another writer is at work.
            StorageError: The storage refused; nothing is visible, and the next write cleans up.
            ServiceFailed: The rows are committed, but the clean or the archival after the commit failed.
        """
        return self._write(rows, "UPSERT")

    def insert(self, rows: DataFrame) -> WriteResult:
        """Add rows without looking for their keys. Raises as `upsert`."""
        return self._write(rows, "INSERT")

    def bulk_insert(self, rows: DataFrame) -> WriteResult:
        """Add rows in new file groups only: the way to load much at once. Raises as `upsert`."""
        return self._write(rows, "BULK_INSERT")

    def delete(self, rows: DataFrame) -> WriteResult:
        """
        Delete the rows with these keys.

        Args:
            rows: At least the record key and partition columns; keys that the table does not hold are ignored.

        Raises:
            TableNotFound: There is no table.
            As `upsert`.
        """
        return self._write(rows, "DELETE")

    def clean(self, *, on_progress: OnProgress | None = None) -> list[CleanResult]:
        """
        Clean as the settings say; files are deleted on Spark executors.

        Args:
            on_progress: As for `hudi_py.Table.clean`; files are counted task by task.

        Returns:
            What was carried out, oldest first; empty when there was nothing to do.
        """
        return self.table.clean(engine=SparkEngine(self._spark), on_progress=on_progress)

    def _cleaning(self) -> AutoEngine:
        """Few files are deleted quicker by the driver's threads than through a Spark job, many on the executors."""
        return AutoEngine(lambda: SparkEngine(self._spark))

    def _write(self, rows: DataFrame, operation: str) -> WriteResult:
        return self._service.write(SparkRows(rows, self._settings), operation)

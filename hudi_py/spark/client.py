"""The write client: writes rows of a DataFrame to a table, then cleans and archives as the settings say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from hudi_py.config import keys
from hudi_py.config.door import admitted
from hudi_py.engine.choice import AutoEngine
from hudi_py.row_verbs import RowVerbs, Words
from hudi_py.runtime.clock import Clock, clock_of
from hudi_py.services.clean.executing.watch import OnProgress
from hudi_py.services.clean.result import CleanResult
from hudi_py.services.rewriting.result import RewriteResult
from hudi_py.spark.engine import SparkEngine
from hudi_py.spark.incoming import SparkRows
from hudi_py.spark.session import require_classic
from hudi_py.storage.factory import open_storage
from hudi_py.table import Table
from hudi_py.write_service import WriteService
from hudi_py.writing.commit_words import commit_words
from hudi_py.writing.result import WriteResult

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["WriteClient", "WriteResult"]


class WriteClient(RowVerbs[DataFrame]):
    """
    Writes to a table. The first write creates the table if it does not exist.

    All methods that write take *words*: ``write_key`` and ``extra_metadata``, see `hudi_py.write`. Rows are updated,
    merged and deleted by conditions without Spark, see `table`.

    Args:
        spark: The Spark session to use.
        location: Local path or URL of the table.
        settings: Settings under their names in Hudi, old or new. A new table needs ``hoodie.table.name`` and
            ``hoodie.datasource.write.recordkey.field``; for an existing table, its properties apply.
        storage_options: Options of the storage library.
        clock: Replaces the machine's clock.

    Raises:
        ConfigError: A setting is unknown, invalid or refused (see docs/settings.md), or contradicts the table.
        UnsupportedTable: hudi_py does not write this kind of table.
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
        # First, so that nothing is created for a session that cannot send tasks.
        require_classic(spark)
        self._spark = spark
        self._settings = admitted(settings)
        self._storage = open_storage(location, storage_options, read_bytes_max=self._settings[keys.READ_BYTES_MAX])
        self._clock = clock_of(clock)
        self._service = WriteService(self._storage, self._settings, self._clock, self._cleaning)

    @property
    def table(self) -> Table:
        """
        The table, which can be used without Spark.

        Raises:
            TableNotFound: The table does not exist yet.
        """
        return Table(self._storage, settings=self._settings.as_dict(), clock=self._clock)

    def delete(self, data: DataFrame, **words: Unpack[Words]) -> WriteResult:
        """
        Delete the rows with these keys.

        Args:
            data: At least the record key and partition columns; keys that are not in the table are ignored.

        Raises:
            TableNotFound: There is no table.
            As `upsert`.
        """
        return self._write(data, "DELETE", words)

    def clean(self, *, on_progress: OnProgress | None = None) -> list[CleanResult]:
        """
        Clean the table as the settings say; Spark executors delete the files.

        Args:
            on_progress: As for `hudi_py.Table.clean`; called after every task.

        Returns:
            The cleans that were run, oldest first; empty if there was nothing to do.
        """
        return self.table.clean(engine=SparkEngine(self._spark), on_progress=on_progress)

    def compact_logs(self) -> list[RewriteResult]:
        """
        Compact the log files of a merge-on-read table among themselves; log files are written on executors.

        Returns:
            The log compactions that were carried out, oldest first; empty if there was nothing to do.

        Raises:
            As `hudi_py.Table.compact_logs`.
        """
        return self.table.compact_logs(engine=SparkEngine(self._spark))

    def compact(self) -> list[RewriteResult]:
        """
        Compact the table as the settings say; Spark executors write the base files, a task for each file group.

        Returns:
            The compactions that were carried out, oldest first; empty if there was nothing to do.

        Raises:
            As `hudi_py.Table.compact`.
        """
        return self.table.compact(engine=SparkEngine(self._spark))

    def cluster(
        self, *, sort_by: str | Sequence[str] = (), layout: str | None = None, partitions: Sequence[str] | None = None
    ) -> list[RewriteResult]:
        """
        Cluster the table; Spark executors rewrite the files, a task for each group of the plan.

        Arguments, result and errors as for `hudi_py.Table.cluster`.
        """
        engine = SparkEngine(self._spark)
        return self.table.cluster(sort_by=sort_by, layout=layout, partitions=partitions, engine=engine)

    def _cleaning(self) -> AutoEngine:
        """Return the engine for the clean after a commit: threads for few files, because a Spark job takes longer."""
        return AutoEngine(lambda: SparkEngine(self._spark))

    def _write(self, data: DataFrame, operation: str, words: Words) -> WriteResult:
        return self._service.write(SparkRows(data, self._settings), operation, commit_words(**words))

    def _changed_by(self, write_with: Callable[[WriteService], WriteResult]) -> WriteResult:
        return write_with(self._service)

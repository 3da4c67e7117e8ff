"""Rows of a DataFrame that are to be written to a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
import pyarrow as pa

from hudi_py.config import keys
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError
from hudi_py.rows.keys import KeyGenerator
from hudi_py.rows.written import WrittenFile
from hudi_py.spark.rows import write_rows
from hudi_py.spark.scale import Scale
from hudi_py.spark.session import is_of_connect
from hudi_py.spark.shape import arrow_schema, shaped_rows
from hudi_py.writing.job import WriteJob
from hudi_py.writing.required import Required

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@attrs.frozen
class SparkRows:
    """
    Rows of a DataFrame; implements `IncomingRows`.

    Args:
        frame: The rows.
        settings: Settings of the write; they limit the number of tasks.
    """

    frame: DataFrame
    settings: Settings

    @property
    def schema(self) -> pa.Schema:
        """See `IncomingRows`."""
        return arrow_schema(self.frame)

    def shaped(self, table_schema: str | None, needed: Sequence[str], *, keys_only: bool) -> SparkRows:
        """See `IncomingRows`. Also raises `ConfigError` unless the rows are a DataFrame of the client's session."""
        # Not by class, because DataFrames of Spark Connect have another one and get a message of their own.
        if not hasattr(self.frame, "mapInArrow"):
            kind = type(self.frame).__name__
            raise ConfigError(f"rows are given as a Spark DataFrame, not as {kind}: see createDataFrame")
        if is_of_connect(self.frame):
            raise ConfigError("the rows are a DataFrame of Spark Connect; create it in the session of the client")
        return SparkRows(shaped_rows(self.frame, table_schema, needed, keys_only=keys_only), self.settings)

    def checked(self, required: Required, keys: KeyGenerator) -> SparkRows:
        """See `IncomingRows`; none of them are in this process yet."""
        return self

    def write(self, job: WriteJob) -> list[WrittenFile]:
        """See `IncomingRows`."""
        return write_rows(self.frame, job, self._scale(job.operation))

    def _scale(self, operation: str) -> Scale:
        parallelism = {
            "BULK_INSERT": keys.BULK_INSERT_PARALLELISM,
            "INSERT": keys.INSERT_PARALLELISM,
            "INSERT_OVERWRITE": keys.INSERT_PARALLELISM,
            "INSERT_OVERWRITE_TABLE": keys.INSERT_PARALLELISM,
            "DELETE": keys.DELETE_PARALLELISM,
        }.get(operation, keys.UPSERT_PARALLELISM)
        return Scale(
            parallelism=self.settings[parallelism] or None,
            slots=self.frame.sparkSession.sparkContext.defaultParallelism,
            driver_rows=self.settings[keys.DRIVER_ROWS],
            single_pass_bytes=self.settings[keys.SINGLE_PASS_BYTES],
        )

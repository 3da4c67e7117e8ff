"""
Streams of Spark 4 over a table: each micro-batch has the changes in a range of time, see `hudi_py.Table.changes`.

Offsets are times of commits: when they completed, in layout 1 (table version 6) when they were requested. A range that
was read once is the same range when it is read again, so that a query goes on from its checkpoint without gaps.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs
import pyarrow as pa

from hudi_py.errors import ConfigError, RefusedError
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.model.instant_time import is_beginning
from hudi_py.snapshot.deleted import DELETED
from hudi_py.spark.pieces import batches_of, in_tasks
from hudi_py.spark.python_sources import DataSourceStreamReader, InputPartition
from hudi_py.spark.same_columns import check_types, fitted, opened
from hudi_py.spark.source_options import LATEST, SourceOptions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from hudi_py.table import Table

_TASKS: Final = 32
_TIME: Final = "time"


class HudiStreamReader(DataSourceStreamReader):  # type: ignore[misc]
    """
    Plans micro-batches.

    Args:
        asked: What is read.
        schema: The columns as announced to Spark.

    Raises:
        ConfigError: An option asks for a snapshot, or for an end.
        RefusedError: Nothing was ever written to the table, so that its columns are unknown.
    """

    def __init__(self, asked: SourceOptions, schema: StructType) -> None:
        question = asked.question
        # Ignored, they would look as if they had been applied to each batch.
        for name in ("as_of", "savepoint", "read_optimized", "end"):
            if getattr(question, name) not in (None, False):
                raise ConfigError(f"a stream has no end, so {name} cannot be given; start says where it begins")
        if not set(schema.names).difference(META_COLUMNS, [DELETED]):
            raise RefusedError(
                f"{asked.location} has no columns yet; begin the stream when something was written to it"
            )
        self._asked = asked
        self._schema = schema
        self._table: Table | None = None

    def __getstate__(self) -> dict[str, Any]:
        # The table is opened again in each process: its clients must not be pickled.
        return {**vars(self), "_table": None}

    def _looked_at(self) -> Table:
        """The table as it is now."""
        # Refreshed instead of opened again: the store keeps contents of instants, which never change.
        self._table = opened(self._asked) if self._table is None else self._table.refresh()
        return self._table

    def initialOffset(self) -> dict[str, str]:  # noqa: N802  # Spark's name
        """Where a query without a checkpoint begins: before the first commit, or at *start*."""
        start = self._asked.question.start
        if start is None or is_beginning(start):
            return {_TIME: ""}
        if start == LATEST:
            return self.latestOffset()
        return {_TIME: self._looked_at().resolve_time(start)}

    def latestOffset(self) -> dict[str, str]:  # noqa: N802
        """The latest end to which no more commits can be added."""
        return {_TIME: self._looked_at().changed_until() or ""}

    def partitions(self, start: Mapping[str, str], end: Mapping[str, str]) -> list[Any]:
        """
        The tasks of one micro-batch.

        Raises:
            RefusedError: A clean deleted what the range needs, or commits that were read have been undone.
            ConfigError: A column has another type now.
        """
        after, until = start[_TIME], end[_TIME]
        # The end can only move back if commits that were read are undone, or a write before them has begun (layout 1).
        if until < after:
            raise RefusedError(
                f"{self._asked.location}: this query has read until {after}, and what was committed after {until} was "
                f"undone by a rollback or restore, or a write before {after} is under way; wait for that write, or "
                "start with a new checkpoint"
            )
        # Spark asks for an empty range, too, when nothing was committed.
        if until == after:
            return []
        question = attrs.evolve(fitted(self._asked.question, self._schema), start=after or "0", end=until)
        table = self._looked_at()
        try:
            batches = question.batches(table)
        except RefusedError as error:
            raise RefusedError(f"{error}. {self._way_on(after)}") from error
        check_types(batches, self._schema)
        found = batches.in_pieces()
        # Compressed, because the driver sends it with each task, and names of files resemble each other.
        return [InputPartition(zlib.compress(pickle.dumps((found.read, task)), 1)) for task in in_tasks(found, _TASKS)]

    def _way_on(self, after: str) -> str:
        """How a query goes on whose next range cannot be read; what it asks of the range decides from where."""
        if self._asked.question.change_log or self._asked.question.with_deletes:
            return "A query with a new checkpoint can begin there (option start), and lacks what was before"
        # A range without an end needs the newest files only, which no clean deletes.
        return (
            "No row is lost if a query with a new checkpoint begins where this one ended (option "
            f"start={after or 'earliest'}): its first range ends at the latest commit"
        )

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The rows of one task, on an executor."""
        read, pieces = pickle.loads(zlib.decompress(partition.value))  # noqa: S301 - our own bytes
        return batches_of(read, pieces)

    def commit(self, end: Mapping[str, str]) -> None:
        """Does nothing: the files that were read stay until a clean deletes them."""

    def stop(self) -> None:
        """Does nothing: no resources are open."""

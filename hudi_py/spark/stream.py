"""
Streams of Spark 4 over a table: each micro-batch has the changes in a range of time, see `hudi_py.Table.changes`.

Offsets are times of commits: when they completed, in layout 1 (table version 6) when they were requested. A range that
was read once is the same range when it is read again, so that a query goes on from its checkpoint without gaps. They
carry the commits up to that time, too, so that a query ends where one of them was undone since.
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
from hudi_py.model.progress import Progress, decoded
from hudi_py.snapshot.deleted import DELETED
from hudi_py.spark.pieces import batches_of, in_tasks
from hudi_py.spark.python_sources import DataSourceStreamReader, InputPartition
from hudi_py.spark.same_columns import check_types, fitted, opened, refuse_not_null
from hudi_py.spark.source_options import LATEST, SourceOptions
from hudi_py.timeline.following import next_begin, progress_at

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from hudi_py.table import Table

_TASKS: Final = 32
_TIME: Final = "time"
_WRITES: Final = "commits"


class HudiStreamReader(DataSourceStreamReader):  # type: ignore[misc]
    """
    Plans micro-batches.

    Args:
        asked: What is read.
        schema: The columns as announced to Spark.

    Raises:
        ConfigError: An option asks for a snapshot, or for an end; or the columns are said never to be null.
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
        refuse_not_null(schema)
        self._asked = asked
        self._schema = schema
        self._table: Table | None = None
        self._told: Progress | None = None

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
            time = ""
        elif start == LATEST:
            time = self._looked_at().changed_until() or ""
        else:
            time = self._looked_at().resolve_time(start)
        return _offset(Progress(until=time, writes={}))

    def latestOffset(self) -> dict[str, str]:  # noqa: N802
        """
        The latest end to which no more commits can be added, with the commits up to it.

        Raises:
            RefusedError: A commit that was there at the last look has been undone.
        """
        table = self._looked_at()
        found = progress_at(table.contents, table.timeline, table.changed_until() or "")
        told = self._told
        if told is not None and told != found and told.until == found.until:
            # Nothing undone, commits were only archived: another offset would make a batch without rows.
            next_begin(table.contents, table.timeline, told)
        else:
            self._told = told = found
        return _offset(told)

    def partitions(self, start: Mapping[str, str], end: Mapping[str, str]) -> list[Any]:
        """
        The tasks of one micro-batch.

        Raises:
            RefusedError: A clean deleted what the range needs, or commits that were read have been undone.
            ConfigError: A column has another type now.
        """
        table = self._looked_at()
        # Of the end, too: the batch may be a repeated one, whose rows somebody has seen.
        after, until = (
            next_begin(table.contents, table.timeline, decoded(each[_TIME], each.get(_WRITES))) for each in (start, end)
        )
        if until < after:
            raise RefusedError(f"{self._asked.location}: {_why_before(after, until)}")
        # Spark asks for an empty range, too, when nothing was committed.
        if until == after:
            return []
        question = attrs.evolve(fitted(self._asked.question, self._schema), start=after or "0", end=until)
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


def _offset(progress: Progress) -> dict[str, str]:
    return {_TIME: progress.until, _WRITES: progress.encoded()}


def _why_before(after: str, until: str) -> str:
    """Why a range ends before it begins although nothing that was read is undone."""
    return (
        f"this query begins after {after}, and the last commit that can be read is at {until or 'no time'}: that begin "
        "has not come yet, or a write before it is under way (table version 6), or commits before it were undone; wait "
        "for that write, or start with a new checkpoint"
    )

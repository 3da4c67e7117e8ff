"""
Chooses how rows are written to base files, by the size of the write.

===============  ============================================================================================
tiny             one task, no shuffle: 100 rows cost one Spark job of one task
small            one shuffle by partition, one task per share of the partitions; a single job
large            rows are counted, tagged with their file group, and written by file group: `two_passes`
global index     one task, which has all rows in memory: rows of any partition may meet the same stored row
bulk_insert      no look-up, so rows stream: one shuffle by partition; large partitions are spread over tasks
===============  ============================================================================================

If a small write turns out to touch a large part of the table, it stops before it has written anything, and is done as
a large write.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs

from hudi_py.rows.written import WrittenFile
from hudi_py.runtime.log import log
from hudi_py.spark.columns import UNKNOWN_BYTES, estimated_bytes, partitioning
from hudi_py.spark.engine import described
from hudi_py.spark.failures import executor_errors
from hudi_py.spark.session import use_own_python
from hudi_py.spark.tasks import run_tasks
from hudi_py.spark.two_passes import Counted, count_rows, write_in_two_passes
from hudi_py.writing.job import WriteJob
from hudi_py.writing.tasks import TooMuchForOneTask, run_bulk_task, run_task

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TINY_BYTES: Final = 1024 * 1024
_BULK_FILE_BYTES: Final = 32 * 1024 * 1024
"""Input of one task in a large bulk insert: enough for files of reasonable size, and a lost task is repeated soon."""


@attrs.frozen(kw_only=True)
class Scale:
    """
    Limits for the use of Spark.

    Args:
        parallelism: Number of tasks after a shuffle, set by the user; None to choose it here.
        slots: Number of tasks that run at the same time.
        single_pass_bytes: Rows larger than this, by Catalyst's estimate, are written in two passes; 0 for all rows.
    """

    parallelism: int | None
    slots: int
    single_pass_bytes: int

    @property
    def tasks(self) -> int:
        """Number of tasks after a shuffle in small writes: two per slot, because a hash distributes rows unevenly."""
        return self.parallelism or 2 * self.slots


def write_rows(frame: DataFrame, job: WriteJob, scale: Scale) -> list[WrittenFile]:
    """
    Write the rows of *frame*.

    Raises:
        HudiError: The first one that a task raised; other tasks may have written files, which markers name.
    """
    use_own_python(frame.sparkSession)
    with described(frame.sparkSession, f"{job.operation.lower()} {job.instant_time}"), executor_errors():
        guess = estimated_bytes(frame)
        if job.anywhere is not None and job.looks_up:
            return run_tasks(frame.coalesce(1), partial(run_task, is_alone=True), job)
        if job.operation == "BULK_INSERT" and job.buckets is None:
            return _bulk_insert(frame, job, scale, guess)
        if guess <= scale.single_pass_bytes:
            try:
                return _in_a_single_pass(frame, job, scale, guess)
            except TooMuchForOneTask:
                log.info("write.single_pass.refused", instant=job.instant_time, bytes_estimated=guess)
        # Cached, because counting and writing would otherwise compute the user's query twice, perhaps with different
        # rows.
        frame = frame.persist()
        try:
            counted = count_rows(frame, job)
            # The cache knows the real size; Catalyst's estimate of a query can be far too large.
            known = estimated_bytes(frame.select("*"))
            if guess > scale.single_pass_bytes >= known:
                try:
                    return _in_a_single_pass(frame, job, scale, known)
                except TooMuchForOneTask:
                    pass
            return write_in_two_passes(
                frame, Counted(counted, known), job, parallelism=scale.parallelism, slots=scale.slots
            )
        finally:
            frame.unpersist()


def _in_a_single_pass(frame: DataFrame, job: WriteJob, scale: Scale, guess: int) -> list[WrittenFile]:
    columns = partitioning(frame, job.keys)
    is_one_task = guess <= _TINY_BYTES or not columns
    frame = frame.coalesce(1) if is_one_task else frame.repartition(scale.tasks, *columns)
    return run_tasks(frame, run_task, job)


def _bulk_insert(frame: DataFrame, job: WriteJob, scale: Scale, guess: int) -> list[WrittenFile]:
    """
    Write rows into new file groups, partition by partition.

    For large writes Spark's rebalancing, which knows sizes after the shuffle, splits partitions that are larger than
    ``spark.sql.adaptive.advisoryPartitionSizeInBytes`` and combines small ones. If the user has set a number of tasks,
    that is used instead.
    """
    columns = partitioning(frame, job.keys)
    if scale.parallelism:
        frame = frame.repartition(scale.parallelism, *columns)
    elif guess <= _TINY_BYTES:
        frame = frame.coalesce(1)
    elif not columns and guess < UNKNOWN_BYTES:
        frame = frame.coalesce(max(scale.slots, guess // _BULK_FILE_BYTES))
    elif guess <= scale.single_pass_bytes:
        frame = frame.repartition(scale.tasks, *columns)
    else:
        return run_tasks(_rebalanced(frame, columns), run_bulk_task, job)
    if columns:
        frame = frame.sortWithinPartitions(*columns)
    return run_tasks(frame, run_bulk_task, job)


def _rebalanced(frame: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """Rebalance by SQL: in Spark 3.5 Python cannot pass columns to a hint. Hints take columns, not expressions."""
    names = [f"_hudi_py_partition_{number}" for number in range(len(columns))]
    named = frame.withColumns(dict(zip(names, columns, strict=True))) if names else frame
    hint = f"REBALANCE({', '.join(names)})" if names else "REBALANCE"
    rebalanced = frame.sparkSession.sql(f"SELECT /*+ {hint} */ * FROM {{rows}}", rows=named)  # noqa: S608 - our names
    return rebalanced.sortWithinPartitions(*names).drop(*names) if names else rebalanced

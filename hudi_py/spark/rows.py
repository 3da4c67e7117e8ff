"""
Chooses how rows are written to base files, by the size of the write.

===============  ============================================================================================
few              as many rows as the settings say are collected by the driver, which writes them: `few`
tiny             one task, no shuffle
small            one shuffle by partition, one task per share of the partitions; a single job
large            rows are counted, tagged with their file group, and written by file group: `two_passes`
global index     one task, which has all rows in memory: rows of any partition may meet the same stored row
bulk_insert      no look-up, so rows stream: `bulk`
===============  ============================================================================================

If a small write turns out to touch a large part of the table, it stops before it has written anything, and is done as
a large write.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hudi_py.rows.written import WrittenFile
from hudi_py.runtime.log import log
from hudi_py.spark.bulk import bulk_insert
from hudi_py.spark.columns import estimated_bytes, partitioning, with_generated_keys
from hudi_py.spark.engine import described
from hudi_py.spark.failures import executor_errors
from hudi_py.spark.few import few_rows, write_few
from hudi_py.spark.missing import counting_missing
from hudi_py.spark.scale import TINY_BYTES, Scale
from hudi_py.spark.session import use_own_python
from hudi_py.spark.tasks import run_tasks
from hudi_py.spark.two_passes import Counted, count_rows, write_in_two_passes
from hudi_py.writing.job import WriteJob
from hudi_py.writing.tasks import TooMuchForOneTask, run_task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_rows(frame: DataFrame, job: WriteJob, scale: Scale) -> list[WrittenFile]:
    """
    Write the rows of *frame*.

    Raises:
        HudiError: The first one that a task raised; other tasks may have written files, which markers name.
    """
    use_own_python(frame.sparkSession)
    with (
        described(frame.sparkSession, f"{job.operation.lower()} {job.instant_time}"),
        counting_missing(frame, job),
        executor_errors(),
    ):
        # Before columns are added, which Catalyst would estimate, too.
        guess = estimated_bytes(frame)
        if job.keys.generates:
            frame = with_generated_keys(frame, job.instant_time)
        written = _by_the_driver(frame, job, scale, guess)
        if written is not None:
            return written
        if job.anywhere is not None and job.searches:
            # Rows of any partition may meet the same stored row, so one task has to see all of them.
            return run_tasks(frame.coalesce(1), partial(run_task, is_alone=True), job)
        if job.operation == "BULK_INSERT" and job.buckets is None:
            return bulk_insert(frame, job, scale, guess)
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
                written = _by_the_driver(frame, job, scale, known)
                if written is not None:
                    return written
                try:
                    return _in_a_single_pass(frame, job, scale, known)
                except TooMuchForOneTask:
                    pass
            return write_in_two_passes(
                frame, Counted(counted, known), job, parallelism=scale.parallelism, slots=scale.slots
            )
        finally:
            frame.unpersist()


def _by_the_driver(frame: DataFrame, job: WriteJob, scale: Scale, guess: int) -> list[WrittenFile] | None:
    if not scale.driver_rows or guess > min(TINY_BYTES, scale.single_pass_bytes):
        return None
    rows = few_rows(frame, scale.driver_rows)
    if rows is None:
        return None
    try:
        return write_few(rows, job)
    except TooMuchForOneTask:  # they touch much of the table, so that tasks should share the work
        return None


def _in_a_single_pass(frame: DataFrame, job: WriteJob, scale: Scale, guess: int) -> list[WrittenFile]:
    columns = partitioning(frame, job.keys)
    # A shuffle costs more than a few rows, and without partitions there is nothing to shuffle by.
    is_one_task = guess <= TINY_BYTES or not columns
    frame = frame.coalesce(1) if is_one_task else frame.repartition(scale.tasks, *columns)
    return run_tasks(frame, run_task, job)

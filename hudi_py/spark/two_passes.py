"""
Large writes, with limited memory and work for all executors, even if partitions differ much in size.

1. Rows are counted per partition.
2. Tagging: rows are shuffled by partition and a bucket of their key. Tasks combine rows by key, look up the keys, and
   add the file group to each row. The result is kept in Spark's cache.
3. The driver collects the number of rows per file group, and assigns inserts to groups, and groups to tasks.
4. Writing: rows are shuffled to the task of their file group, which writes one group after another.

The driver has counts per partition and per file group in memory, never keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.types import StringType, StructField, StructType

from hudi_py.formats.texts import valid_texts
from hudi_py.rows.written import WrittenFile
from hudi_py.spark.columns import int_hashing_to, partitioning, quoted
from hudi_py.spark.tasks import run_tasks
from hudi_py.writing.assign import Bucket
from hudi_py.writing.assigned import assigned, with_filled
from hudi_py.writing.groups import TARGET, write_groups
from hudi_py.writing.job import WriteJob
from hudi_py.writing.share import share_out
from hudi_py.writing.tag import ARRIVAL, BUCKET, FILE_ID, PATH, tag_buckets, tag_inserts

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

_BUCKET_BYTES: Final = 64 * 1024 * 1024
_BUCKET_ROWS: Final = 500_000
_TASK_BYTES: Final = 256 * 1024 * 1024
_HASH: Final = "_hudi_py_hash"
_WHERE: Final = "_hudi_py_where"
_PLAN: Final = "path string, file string, bounds array<bigint>, ids array<string>, tasks array<int>, total bigint"

_Tag = Callable[[WriteJob, "Iterable[pa.RecordBatch]"], "Iterator[pa.RecordBatch]"]
PartitionCounts = list[tuple[tuple[str, ...], int]]


class Counted(NamedTuple):
    """Number of rows by partition (values of its expressions), and the size of all rows in Spark's cache."""

    rows: PartitionCounts
    size_bytes: int


def count_rows(frame: DataFrame, job: WriteJob) -> PartitionCounts:
    """Return the number of rows per partition; also fills the cache of a persisted *frame*."""
    columns = partitioning(frame, job.keys)
    counts = frame.groupBy(*columns).count().collect()
    return [(tuple(row)[:-1], row["count"]) for row in counts]


def write_in_two_passes(
    frame: DataFrame, counted: Counted, job: WriteJob, *, parallelism: int | None, slots: int
) -> list[WrittenFile]:
    """
    Write the rows of *frame*, which must be persisted.

    Raises:
        HudiError: The first one that a task raised.
    """
    schema = StructType([*frame.schema, StructField(PATH, StringType()), StructField(FILE_ID, StringType())])
    if job.combines or job.searches:
        rows = _bucketed(frame, counted, job, slots)
        tagged = rows.mapInArrow(partial(_tag_valid, tag_buckets, job), schema)
    else:
        # Nothing to look up, so rows stay in the tasks that have them.
        tagged = frame.mapInArrow(partial(_tag_valid, tag_inserts, job), schema)
    keys = [quoted(name) for name in job.keys.record_key_fields]
    # Kept in the cache: the counts and the second pass must see the same file groups, and looking keys up again would
    # double the work.
    tagged = tagged.withColumn(_HASH, F.xxhash64(*keys)).persist()
    try:
        groups = [(row[0], row[1], row[2]) for row in tagged.groupBy(PATH, FILE_ID).count().collect()]
        # Counting has filled the cache of the tagged rows, so the user's rows are not needed a second time.
        frame.unpersist()
        if not groups:
            return []
        return _write(tagged, groups, job, parallelism=parallelism, slots=slots)
    finally:
        tagged.unpersist()


def _tag_valid(tag: _Tag, job: WriteJob, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return tag(job, valid_texts(batches))


def _bucketed(frame: DataFrame, counted: Counted, job: WriteJob, slots: int) -> DataFrame:
    """
    Shuffle rows so that rows with the same key are in one bucket, in order of arrival, and a bucket fits into memory.

    The order of arrival is needed because of two rows with equal ordering values the later one is written.
    """
    columns = partitioning(frame, job.keys)
    total = max(sum(count for _, count in counted.rows), 1)
    # By bytes and by rows: a bucket is combined in the memory of one Python process.
    rows_max = max(min(_BUCKET_ROWS, _BUCKET_BYTES * total // max(counted.size_bytes, 1)), 1)
    cut: dict[int, list[tuple[str, ...]]] = {}
    for values, count in counted.rows:
        parts = max(-(-count // rows_max), count * 2 * slots // total, 1)
        # Rounded up to a power of two, so that the expression for the bucket has few branches.
        cut.setdefault(1 << (parts - 1).bit_length(), []).append(values)
    tasks = sum(parts * len(partitions) for parts, partitions in cut.items())
    bucket = _bucket(job, columns, cut)
    frame = frame.withColumn(ARRIVAL, F.monotonically_increasing_id()).withColumn(BUCKET, bucket)
    tasks = max(1, min(2 * tasks, max(2 * slots, 2 * total // rows_max)))
    return frame.repartition(tasks, *columns, quoted(BUCKET)).sortWithinPartitions(
        *columns, quoted(BUCKET), quoted(ARRIVAL)
    )


def _bucket(job: WriteJob, columns: Sequence[Column], cut: Mapping[int, Sequence[tuple[str, ...]]]) -> Column:
    """Return the expression for a row's bucket. It lists the few partitions with several buckets; others have one."""
    key = F.xxhash64(*(quoted(name) for name in job.keys.record_key_fields))
    # 0 for partitions with one bucket, which most are: the expression would grow with each that it lists.
    chosen: Any = F.lit(0)
    for parts, partitions in cut.items():
        if parts == 1:
            continue
        number = F.pmod(key, F.lit(parts)).cast("int")
        if not columns:
            return number
        # A separator that no partition value holds, so that different values never look the same.
        joined = F.concat_ws("\0", *columns)
        chosen = F.when(joined.isin(["\0".join(values) for values in partitions]), number).otherwise(chosen)
    return chosen


def _write(
    tagged: DataFrame,
    groups: Sequence[tuple[str, str | None, int]],
    job: WriteJob,
    *,
    parallelism: int | None,
    slots: int,
) -> list[WrittenFile]:
    buckets, weights = assigned(groups, job)
    count = parallelism or max(1, min(len(buckets), max(2 * slots, sum(weights) // _TASK_BYTES)))
    # Spark places rows by a hash, so each task gets a number whose hash leads exactly to it.
    codes = [int_hashing_to(task, count) for task in range(count)]
    tasks = [codes[task] for task in share_out(weights, count)]
    # Broadcast, because it has a row for each file group, far fewer than rows to be written.
    plan = tagged.sparkSession.createDataFrame(_plan_rows(groups, buckets, tasks), _PLAN)
    place = f"size(filter(bounds, bound -> bound <= pmod({_HASH}, total)))"
    condition = (quoted(PATH) == F.col("path")) & (F.coalesce(quoted(FILE_ID), F.lit("")) == F.col("file"))
    placed = tagged.join(F.broadcast(plan), condition, "left").withColumn(_WHERE, F.expr(place))
    kept = [quoted(field.name) for field in tagged.schema if field.name not in (FILE_ID, _HASH)]
    target = F.expr(f"element_at(ids, {_WHERE} + 1)").alias(TARGET)
    task = F.expr(f"element_at(tasks, {_WHERE} + 1)").alias(BUCKET)
    routed = placed.select(*kept, target, task).repartition(count, quoted(BUCKET)).drop(BUCKET)
    ordered = routed.sortWithinPartitions(quoted(PATH), quoted(TARGET))
    return run_tasks(ordered, write_groups, with_filled(job, buckets), are_texts_valid=True)


def _plan_rows(
    groups: Sequence[tuple[str, str | None, int]], buckets: Sequence[Bucket], tasks: Sequence[int]
) -> list[tuple[str, str, list[int], list[str], list[int], int]]:
    """
    Return the rows of the plan table: to which file group and task rows go, inserts by the hash of their key.

    ``bounds`` are the running sums of the buckets' inserts without the last sum, so that the position of a row's bucket
    is the number of bounds that are not larger than its hash.
    """
    task_of = {(bucket.partition_path, bucket.file_id): task for bucket, task in zip(buckets, tasks, strict=True)}
    taking: dict[str, list[Bucket]] = {}
    for bucket in buckets:
        if bucket.num_inserts:
            taking.setdefault(bucket.partition_path, []).append(bucket)
    rows: list[tuple[str, str, list[int], list[str], list[int], int]] = []
    for path, file_id, _ in groups:
        if file_id is not None:
            rows.append((path, file_id, [], [file_id], [task_of[path, file_id]], 1))
            continue
        bounds, total = [], 0
        for bucket in taking[path]:
            total += bucket.num_inserts
            bounds.append(total)
        ids = [bucket.file_id for bucket in taking[path]]
        rows.append((path, "", bounds[:-1], ids, [task_of[path, file_id] for file_id in ids], total))
    return rows

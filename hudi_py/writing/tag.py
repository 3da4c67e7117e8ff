"""
Large writes, first pass: keeps one row per key, and adds to each row its partition and file group.

Rows come in buckets: all rows with the same partition and key are in the same bucket, and a bucket fits into memory.
The result has the columns of the input and two more.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.config.duplicates import Duplicates
from hudi_py.errors import WriteError
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.formats.stored_values import conform_given
from hudi_py.rows.bucket_index import BucketIndex
from hudi_py.rows.precedence import combine_before_write, delete_mask, refuse_null_ordering
from hudi_py.writing.buckets import bucket_targets
from hudi_py.writing.duplicates import known_rows
from hudi_py.writing.job import WriteJob
from hudi_py.writing.partition import PartitionFiles, load_partition
from hudi_py.writing.pieces import by_value, runs

BUCKET: Final = "_hudi_py_bucket"
ARRIVAL: Final = "_hudi_py_arrival"
PATH: Final = "_hudi_py_path"
FILE_ID: Final = "_hudi_py_file"
_ROWS_PER_BATCH: Final = 16_384


def tag_buckets(job: WriteJob, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """
    Combine the rows of each bucket by key, and look up their keys.

    Args:
        job: The write.
        batches: Columns of the user's rows, `BUCKET` and `ARRIVAL`; rows of the same partition and bucket are adjacent,
            in order of arrival.

    Yields:
        The columns of the user's rows, `PATH`, and `FILE_ID`: null for a row whose key is not in the table. Deletes of
        such rows are left out.

    Raises:
        WriteError, ConfigError: Rows cannot be written.
        ConflictError: A file group is in a pending clustering.
    """
    partition: PartitionFiles | None = None
    for (path, _), parts in itertools.groupby(_buckets(job, batches), key=lambda part: part[0]):
        # Rows of a partition are adjacent, so one partition at a time is enough; with all of them in memory a task over
        # many partitions would hold the list of all their files.
        if partition is None or partition.path != path:
            partition = load_partition(job, path)
        yield from _tag(job, partition, pa.Table.from_batches([rows for _, rows in parts]))


def tag_inserts(job: WriteJob, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add the partition to rows that are inserted without look-up. Yields and raises as `tag_buckets`."""
    found: dict[str, PartitionFiles] = {}
    for batch in batches:
        if not batch.num_rows:
            continue
        if job.buckets is None:
            # Inserts look up no keys, so a row that asks for a deletion has nothing to delete.
            deletes = delete_mask(batch)
            kept = batch if deletes is None else batch.filter(compute.invert(deletes))
            yield _with_tags(kept, job.keys.partition_paths(kept), pa.nulls(kept.num_rows, pa.string()))
            continue
        for path, chosen in by_value(job.keys.partition_paths(batch)):
            part = batch if chosen is None else batch.take(chosen)
            if path not in found:
                found[path] = load_partition(job, path)
            targets = bucket_targets(job, found[path], job.buckets, job.keys.record_keys(part))
            found[path].refuse_clustering(targets.file_ids)
            tagged = _with_tags(part, pa.repeat(path, part.num_rows), targets.of_rows())
            # The number of the bucket says where a row to delete would be, as in small writes.
            dropped = targets.is_new() & _mask(delete_mask(part), part.num_rows)
            yield tagged.filter(pa.array(~dropped)) if dropped.any() else tagged


def _buckets(job: WriteJob, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[tuple[str, int], pa.RecordBatch]]:
    for batch in batches:
        if not batch.num_rows:
            continue
        paths: Any = job.keys.partition_paths(batch).dictionary_encode()
        buckets = batch.column(batch.schema.get_field_index(BUCKET)).to_numpy(zero_copy_only=False).astype(np.int64)
        codes = paths.indices.to_numpy(zero_copy_only=False)
        rows = batch.select([name for name in batch.schema.names if name not in (BUCKET, ARRIVAL)])
        # One number stands for both partition and bucket: it differs where either of them changes.
        for start, stop in runs(buckets * len(paths.dictionary) + codes):
            where = paths.dictionary[codes[start]].as_py(), int(buckets[start])
            yield where, rows.slice(start, stop - start)


def _tag(job: WriteJob, partition: PartitionFiles, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    keys: Any = pa.chunked_array([job.keys.record_keys(batch) for batch in rows.to_batches()])
    is_delete = job.operation == "DELETE"
    deletes = None if is_delete else delete_mask(rows)
    winners = None
    if is_delete:
        winners = combine_before_write(rows, keys, ())
    elif job.combines:
        # Ordering values are compared in the types of the table. The rows themselves go on as the user gave them,
        # because the second pass converts them.
        conformed = pa.Table.from_batches([conform_given(batch, job.schema) for batch in rows.to_batches()])
        refuse_null_ordering(conformed, job.rules.batch_fields, deletes)
        winners = combine_before_write(conformed, keys, job.rules.batch_fields)
    if winners is not None:
        rows, keys = rows.take(winners), keys.take(winners)
        deletes = None if deletes is None else deletes.take(winners)
    flat: Array = keys.combine_chunks()
    if job.buckets is not None:
        yield from _tag_by_number(job, partition, job.buckets, rows, flat, deletes)
        return
    # Combined before the look-up, so that each key is searched once.
    found = partition.owners_of(job.storage, flat) if job.searches else None
    owners = np.full(len(flat), -1, dtype=np.int64) if found is None else found.first
    known = known_rows(job, partition, flat, owners) if job.duplicates is not Duplicates.ADDED else None
    copies = None if found is None else found.with_copies()
    if known is not None:
        owners = np.full(len(flat), -1, dtype=np.int64)
    elif copies is not None:
        numbers, owners = copies
        rows = rows.take(pa.array(numbers, pa.int64()))
        deletes = None if deletes is None else deletes.take(pa.array(numbers, pa.int64()))
    file_ids = partition.file_ids
    partition.refuse_clustering(file_ids[position] for position in np.unique(owners[owners >= 0]))
    kept = owners >= 0
    if not is_delete:
        # A deletion of a key that the table does not have is nothing to write.
        kept |= True if deletes is None else ~deletes.to_numpy(zero_copy_only=False)
    if known is not None:
        kept &= ~known
    names: Any = pa.array(file_ids, pa.string())
    owned: Any = pa.array(owners, pa.int64(), mask=owners < 0)
    paths: Any = pa.repeat(partition.path, rows.num_rows)
    tagged = rows.append_column(PATH, paths).append_column(FILE_ID, names.take(owned))
    if not kept.all():
        tagged = tagged.filter(pa.array(kept))
    yield from tagged.to_batches(max_chunksize=_ROWS_PER_BATCH)


def _tag_by_number(
    job: WriteJob, partition: PartitionFiles, buckets: BucketIndex, rows: pa.Table, keys: Array, deletes: Array | None
) -> Iterator[pa.RecordBatch]:
    """As `_tag`, if the key determines the file group. Rows to delete are kept unless their bucket has no file."""
    targets = bucket_targets(job, partition, buckets, keys)
    partition.refuse_clustering(targets.file_ids)
    paths: Any = pa.repeat(partition.path, rows.num_rows)
    tagged = rows.append_column(PATH, paths).append_column(FILE_ID, targets.of_rows())
    # Here no file was searched, so whether the key exists is unknown; only a bucket without a file says that it does
    # not.
    dropped = targets.is_new() & (True if job.operation == "DELETE" else _mask(deletes, len(keys)))
    if dropped.any():
        tagged = tagged.filter(pa.array(~dropped))
    yield from tagged.to_batches(max_chunksize=_ROWS_PER_BATCH)


def _mask(deletes: Array | None, count: int) -> npt.NDArray[np.bool_]:
    if deletes is None:
        return np.zeros(count, dtype=np.bool_)
    mask: npt.NDArray[np.bool_] = deletes.to_numpy(zero_copy_only=False)
    return mask


def _with_tags(rows: pa.RecordBatch, paths: Array, file_ids: Array) -> pa.RecordBatch:
    # Not by names alone, which would let columns have nulls that the user's schema excludes.
    return rows.append_column(PATH, paths).append_column(FILE_ID, file_ids)


def refuse_untargeted(targets: Array) -> None:
    """
    Raise if a row has no target.

    Raises:
        WriteError: Spark computed the rows a second time, and they differ from the first time.
    """
    if targets.null_count:
        raise WriteError(
            "the rows changed between the two passes of the write (an expression with randomness or the current time, "
            "computed again after an executor was lost); write the rows to a file first, or persist them"
        )

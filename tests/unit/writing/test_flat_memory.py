"""What a write beyond memory holds does not grow with its rows."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_py.local.spilled import Inserts
from hudi_py.rows.spill import Spill
from hudi_py.rows.written import of_their_own
from support import writes

BATCH_ROWS = 500
LIMITS = {"hoodie.memory.merge.max.size": 100_000, "hoodie.parquet.block.size": 30_000, **writes.ALONE}
ONE_FILE = {"hoodie.copyonwrite.record.size.estimate": 1}


def batches(rows, start=0):
    """Rows of one partition with keys of their own."""
    for first in range(start, start + rows, BATCH_ROWS):
        numbers = np.arange(first, min(first + BATCH_ROWS, start + rows))
        columns = [np.char.mod("key-%09d", numbers), np.full(len(numbers), "eu"), numbers]
        yield pa.RecordBatch.from_arrays([pa.array(each) for each in columns], schema=writes.SCHEMA)


def bytes_held(rows):
    """What the pool holds of *rows* spilled rows that are handed out, when all files but the last have theirs."""
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    made = (pa.RecordBatch.from_arrays([pa.array(range(10), memory_pool=pool)], ["n"]) for _ in range(rows // 10))
    inserts = Inserts(made)
    for _ in range(rows // 7 - 1):
        for batch in inserts.take(7):
            assert batch.num_rows <= 7
    del batch
    return pool.bytes_allocated()


def test_of_rows_that_are_handed_out_only_the_batch_in_hand_is_held():
    """However many files take rows: before, each file held the batch in which its rows end."""
    assert bytes_held(700) == bytes_held(2800) <= 2 * 128


def test_rows_handed_out_are_all_rows_in_order():
    """With counts that end inside, at the end of and beyond batches, and are 0."""
    inserts = Inserts(batches(1_700))
    counts = [0, 1, 499, 500, 0, 650, 50]
    parts = [[batch for batch in inserts.take(count) if batch.num_rows] for count in counts]
    assert [sum(batch.num_rows for batch in part) for part in parts] == counts
    found = [number for part in parts for batch in part for number in batch.column(2).to_pylist()]
    assert found == list(range(1_700))


def peak_of(rows, operation, kind):
    """Bytes of Arrow at the peak of a write whose rows go into one small file, which is checked."""
    storage = writes.create_table(9, **{"hoodie.table.type": kind})
    settings = {**LIMITS, **ONE_FILE}
    writes.open_table(storage, **settings).bulk_insert(pa.Table.from_batches(batches(10)))
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    try:
        # The first rows of an upsert are updates of those that the file has.
        start = 5 if operation == "upsert" else 10
        done = getattr(writes.open_table(storage, **settings), operation)(batches(rows, start))
    finally:
        pa.set_memory_pool(before)
    assert (done.rows_inserted, done.rows_updated) == ((rows - 5, 5) if operation == "upsert" else (rows, 0))
    table = writes.open_table(storage)
    ((_, base),) = table.base_files()
    found = pq.read_table(io.BytesIO(storage.read(f"eu/{base.name}")))
    assert sorted(found.column("ts").to_pylist()) == list(range(10 + rows - (5 if operation == "upsert" else 0)))
    assert len(found.column("_hoodie_commit_seqno").unique()) == found.num_rows
    return pool.max_memory()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("operation", ["insert", "upsert"])
def test_a_small_file_takes_any_number_of_new_rows_in_the_same_memory(operation, kind):
    """Before, all rows that fill a file were held at once, several times."""
    assert peak_of(8_000, operation, kind) < 1.5 * peak_of(2_000, operation, kind)


def test_kept_keys_hold_no_other_columns():
    """Those for a record index are kept until the commit, and a slice of read rows holds all that was read with it."""
    with Spill(writes.SCHEMA) as spill:
        for batch in batches(BATCH_ROWS):
            spill.add(batch, np.zeros(batch.num_rows, dtype=np.int64))
        (read,) = spill.read(0)
        kept = of_their_own(read.column(0).slice(100, 10))
        assert kept.equals(read.column(0).slice(100, 10))
        assert kept.get_total_buffer_size() < 300 < read.column(0).slice(100, 10).get_total_buffer_size()

"""What a write beyond memory holds does not grow with its rows."""

import numpy as np
import pyarrow as pa

from hudi_py.local.spilled import Inserts
from support import writes

BATCH_ROWS = 500


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

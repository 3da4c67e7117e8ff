"""Rows of many partitions, written by several threads."""

import pyarrow as pa

from hudi_py.local import rows as local_rows
from support import writes


def test_threads_write_what_one_would(monkeypatch):
    """Every row once, in its partition, with a sequence number of its own; whatever the operation."""
    monkeypatch.setattr(local_rows, "_ROWS_PER_THREAD", 5)
    monkeypatch.setattr(local_rows.os, "cpu_count", lambda: 3)
    storage = writes.create_table(9)
    table = writes.open_table(storage, **writes.ALONE)
    rows = [{"id": str(number), "region": f"r{number % 7}", "ts": 1} for number in range(40)]
    table.bulk_insert(pa.Table.from_pylist(rows, schema=writes.SCHEMA))
    changed = [{**row, "ts": 2} for row in rows[:20]]
    done = table.upsert(pa.Table.from_pylist(changed, schema=writes.SCHEMA))
    assert (done.rows_updated, done.files_written) == (20, 7)
    assert writes.rows_of(storage) == sorted([*changed, *rows[20:]], key=lambda row: row["id"])
    stored = table.rows(with_meta=True).to_arrow()
    assert len(stored.column("_hoodie_commit_seqno").unique()) == len(rows)

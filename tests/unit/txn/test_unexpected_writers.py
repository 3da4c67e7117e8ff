"""A write that expects nobody else, and meets another writer all the same: a job that the set-up of the lock forgot."""

from contextvars import Context

import pyarrow as pa
import pytest

from hudi_py.errors import ConflictError
from hudi_py.local.rows import ArrowRows
from support.writes import CHANGES, OLD, SCHEMA, create_table, merged_rows_of, open_table, upsert, write

SHARED = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
}


class OvertakenRows:
    """Rows; once their files are written, something else happens to the table."""

    schema = SCHEMA

    def __init__(self, rows, other):
        self.rows, self.other = ArrowRows(pa.Table.from_pylist(rows, schema=SCHEMA)), other

    def shaped(self, *_, **__):
        return self

    def write(self, job):
        results = self.rows.write(job)
        Context().run(self.other)  # another process knows nothing of what this one is doing
        return results


def overtaken(storage, rows, other, operation="UPSERT", **settings):
    return write(storage, OvertakenRows(rows, other), open_table(storage, **settings), operation)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_single_writer_does_not_complete_over_the_rows_of_another(version, kind):
    """Only the newest file of a file group is read, so the other row was lost; the error says how to run beside."""
    storage = create_table(version, **{"hoodie.table.type": kind})
    upsert(storage, OLD)
    theirs = {**OLD[0], "id": "n", "ts": 7}
    with pytest.raises(ConflictError, match=r"was not committed.*hoodie\.write\.lock\.provider for all writers"):
        overtaken(storage, CHANGES, lambda: upsert(storage, [theirs], **SHARED))
    assert merged_rows_of(storage) == [OLD[0], theirs, OLD[1]]
    upsert(storage, CHANGES)  # again: what was left of the first attempt is rolled back
    assert merged_rows_of(storage) == [CHANGES[1], CHANGES[0], theirs, OLD[1]]


@pytest.mark.parametrize("version", [6, 9])
def test_a_single_writer_completes_beside_what_it_does_not_touch(version):
    """An insert into another partition, and a clean, take nothing away from it."""
    storage = create_table(version)
    upsert(storage, OLD)

    def other():
        upsert(storage, [{"id": "n", "region": "us", "ts": 7}], operation="INSERT", **SHARED)
        open_table(storage).clean(commits_retained=1)

    overtaken(storage, CHANGES, other)
    assert [row["id"] for row in merged_rows_of(storage)] == ["c", "a", "b", "n"]

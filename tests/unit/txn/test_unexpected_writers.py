"""A write that expects nobody else, and meets another writer all the same: a job that the set-up of the lock forgot."""

from contextvars import Context

import pyarrow as pa
import pytest

from hudi_py.errors import ConfigError, ConflictError
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

    def checked(self, *_, **__):
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


FILE = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"}
DONE = {
    "upsert": lambda table: upsert(table.storage, CHANGES),
    "clean": lambda table: table.clean(file_versions_retained=1),
    "compact": lambda table: table.compact(),
    "cluster": lambda table: table.cluster(),
    "savepoint": lambda table: table.create_savepoint(table.timeline.commits.completed()[-1].requested_time),
    "rollback": lambda table: table.rollback(table.timeline.commits.completed()[-1].requested_time),
}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("what", DONE)
def test_who_has_no_lock_changes_nothing_beside_a_holder(version, what):
    """The other job is completing something at that moment; afterwards the same is done."""
    storage = create_table(version, **{"hoodie.table.type": "MERGE_ON_READ"})
    now = {"hoodie.compact.inline.max.delta.commits": 1}
    for ts in (1, 2):
        upsert(storage, [{**OLD[0], "ts": ts}])
    open_table(storage, **now).compact()
    upsert(storage, [{**OLD[0], "ts": 3}])
    lock = open_table(storage, **FILE).contents.store.lock
    with lock.held("commit"):
        before = storage.files()
        with pytest.raises(ConfigError, match="another writer's lock"):
            DONE[what](open_table(storage, **now))
        times = ".hoodie/.aux/hudi_py/times/"
        assert {path for path in storage.files() if not path.startswith(times)} == {
            path for path in before if not path.startswith(times)
        }
    DONE[what](open_table(storage, **now))


@pytest.mark.parametrize("version", [6, 9])
def test_who_has_no_lock_completes_nothing_beside_a_holder(version):
    """The holder came while the rows were written; they are invisible, and the next write removes them."""
    storage = create_table(version)
    upsert(storage, OLD)
    lock = open_table(storage, **FILE).contents.store.lock
    held = lock.held("commit")
    with pytest.raises(ConfigError, match="was not completed"):
        overtaken(storage, CHANGES, held.__enter__)
    held.__exit__(None, None, None)
    assert merged_rows_of(storage) == OLD
    upsert(storage, CHANGES)
    assert [row["id"] for row in merged_rows_of(storage)] == ["c", "a", "b"]

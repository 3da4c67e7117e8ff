"""
A task that nobody waits for any more, beside the commit or the rollback of its write, at every call of either.

Whatever the two overtake each other with, no data file is left that the timeline does not name (rules G-3, B-19).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TypeVar

import attrs
import pyarrow as pa
import pytest

from hudi_py.errors import ConflictError
from hudi_py.storage.base import Storage
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import DelegatingStorage, Paths
from hudi_py.testing import Crash
from hudi_py.timeline.fence import put_up_fence
from hudi_py.txn.commit import Begun
from hudi_py.writing.tasks import TaskIdentity, run_task
from hudi_py.writing.transaction import WriteTransaction, begin_write
from support.crash_points import interruptions
from support.writes import CHANGES, NEW, OLD, SCHEMA, create_table, open_table, rows_of, upsert, write

T = TypeVar("T")


class Overtaken(DelegatingStorage):
    """Before call *n*, from 0, something else happens to the table."""

    def __init__(self, inner: Storage, n: int, meanwhile: Callable[[], None]) -> None:
        super().__init__(inner)
        self.left, self.meanwhile = n, meanwhile

    def _around(self, verb: str, paths: Paths, call: Callable[[], T]) -> T:
        self.left -= 1
        if self.left == -1:
            self.meanwhile()
        return call()

    @property
    def was_overtaken(self) -> bool:
        return self.left < 0


class Write:
    """An upsert whose task has ended, while a twin of that task is still there to run."""

    def __init__(self, original: MemoryStorage) -> None:
        self.storage = original.copy()
        with contextlib.suppress(Crash):
            write(self.storage, self, open_table(self.storage), "UPSERT")

    schema = SCHEMA

    def shaped(self, *_, **__):
        return self

    def checked(self, *_, **__):
        return self

    def write(self, job):
        """As the engine of the write: its task ends, and then the process that would commit."""
        self.job, self.time = job, job.instant_time
        self.results = self.task(self.storage, TaskIdentity(0, 1, 2))
        raise Crash("after the task")

    def task(self, storage, task):
        batch = pa.RecordBatch.from_pylist(CHANGES, schema=SCHEMA)
        return list(run_task(attrs.evolve(self.job, storage=storage), [batch], task))

    def straggle(self, storage=None):
        with contextlib.suppress(ConflictError):
            self.task(storage or self.storage, TaskIdentity(0, 9, 9))

    def transaction(self, storage=None):
        table = open_table(storage or self.storage)
        (instant,) = table.timeline.pending("commit")
        begun = Begun(table.contents.store, instant)
        return WriteTransaction(
            contents=table.contents, table=table.config, metadata_table=table.services.metadata_table, begun=begun
        )

    def commit(self, storage=None):
        transaction = self.transaction(storage)
        stats = [each.stat for each in self.results]
        transaction.commit(stats, operation="UPSERT", extra_metadata={"schema": self.job.avro_schema})

    def rollback(self, storage=None):
        open_table(storage or self.storage).rollback(self.time)

    def next_write(self, storage=None):
        table = open_table(storage or self.storage)
        begin_write(table.contents, table.config, table.settings, table.services.metadata_table)


class RefusedWrite(Write):
    """The engine refused the rows before a task announced a file, and one of its tasks is still there to run."""

    def write(self, job):
        self.job, self.time, self.results = job, job.instant_time, []
        raise Crash("rows are refused")

    def abandon(self, storage=None):
        self.transaction(storage).abandon_untouched()


@pytest.fixture(scope="module", params=[6, 9])
def original(request):
    storage = create_table(request.param)
    upsert(storage, OLD)
    return storage


@pytest.mark.slow
@pytest.mark.parametrize("end", ["commit", "rollback", "next_write"])
@pytest.mark.parametrize("who", ["the task is overtaken", "the end is overtaken"])
def test_no_file_of_a_late_task_outlives_the_end_of_its_write(record_property, original, end, who):
    """It finds the fence and removes its files itself, or whoever put the fence up finds its markers."""
    for n in range(1000):
        write = Write(original)
        finish = getattr(write, end)
        first, second = (write.straggle, finish) if who == "the task is overtaken" else (finish, write.straggle)
        overtaken = Overtaken(write.storage, n, second)
        first(overtaken)
        if not overtaken.was_overtaken:
            break
        assert rows_of(write.storage) == (NEW if end == "commit" else OLD), n
        left = [path for path in write.storage.files() if write.time in path and path.endswith(".parquet")]
        assert sorted(left) == sorted(each.stat.path for each in write.results if end == "commit"), n
    record_property("interruptions", n)
    assert n > 10


@pytest.mark.slow
def test_a_task_that_begins_after_the_end_and_dies_leaves_no_file(record_property, original):
    """It looks for the fence before it creates anything, for it may not live to look again."""
    write = Write(original)
    put_up_fence(write.storage, write.time)
    before = {path for path in write.storage.files() if path.endswith(".parquet")}
    count = 0
    for case in interruptions(write.storage.copy):
        with contextlib.suppress(Crash):
            case.run(write.straggle)
        count += 1
        assert {path for path in case.storage.files() if path.endswith(".parquet")} == before, case
    record_property("interruptions", count)


@pytest.mark.slow
@pytest.mark.parametrize("who", ["the task is overtaken", "the end is overtaken"])
def test_a_late_task_leaves_no_file_of_an_abandoned_write(record_property, original, who):
    """Files may stay only while the write is pending, so that a rollback finds them by their markers."""
    abandoned = 0
    for n in range(1000):
        write = RefusedWrite(original)
        first, second = (
            (write.straggle, write.abandon) if who == "the task is overtaken" else (write.abandon, write.straggle)
        )
        overtaken = Overtaken(write.storage, n, second)
        first(overtaken)
        if not overtaken.was_overtaken:
            break
        table = open_table(write.storage)
        is_pending = bool(table.timeline.pending())
        abandoned += not is_pending
        if is_pending:
            table.rollback_failed_writes()
        assert rows_of(write.storage) == OLD
        assert not [path for path in write.storage.files() if write.time in path and path.endswith(".parquet")], n
    record_property("interruptions", n)
    assert abandoned

"""A write that another process rolls back before it can commit."""

from contextlib import suppress
from contextvars import Context

import pyarrow as pa
import pytest

from hudi_py.errors import ConflictError, RefusedError
from hudi_py.local.rows import ArrowRows
from hudi_py.storage.wrappers import DelegatingStorage
from support.writes import CHANGES, OLD, SCHEMA, create_table, open_table, rows_of, upsert, write

WITH_METADATA = {"hoodie.metadata.enable": True}


class OvertakenRows:
    """Rows whose write is rolled back by another process once its files are written."""

    schema = SCHEMA

    def __init__(self, storage):
        self.storage, self.rows = storage, ArrowRows(pa.Table.from_pylist(CHANGES, schema=SCHEMA))

    def shaped(self, *_, **__):
        return self

    def checked(self, *_, **__):
        return self

    def write(self, job):
        results = self.rows.write(job)
        table = open_table(self.storage, **WITH_METADATA)
        Context().run(table.rollback, job.instant_time)  # another process knows nothing of what this one is doing
        return results


class UndoneAtRead(DelegatingStorage):
    """Right before that file is read for the *n*-th time, another process has left the table as in *after*."""

    def __init__(self, inner, path, n, after):
        super().__init__(inner)
        self.path, self.n, self.after = path, n, after

    def read(self, path):
        if path == self.path:
            self.n -= 1
            if self.n == 0:
                for each in self.inner.files().keys() - self.after:
                    self.inner.delete(each)
                for each in self.after.keys() - self.inner.files():
                    self.inner.create_new(each, self.after[each])
        return self.inner.read(path)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("verb", ["upsert", "clean", "savepoint", "check", "rows", "as of"])
def test_a_commit_that_goes_while_it_is_read_is_a_conflict(version, verb):
    """Or it is not needed: no file that storage misses is the answer, and no other rows are."""
    verbs = {
        "upsert": lambda storage, _: upsert(storage, [{"id": "d", "region": "eu", "ts": 5}]),
        "clean": lambda storage, _: open_table(storage).clean(file_versions_retained=1),
        "savepoint": lambda storage, time: open_table(storage).create_savepoint(time),
        "check": lambda storage, _: open_table(storage).check(),
        "rows": lambda storage, _: open_table(storage).rows().to_arrow(),
        "as of": lambda storage, time: open_table(storage).as_of(time).rows().to_arrow(),
    }
    before = create_table(version)
    for rows in (OLD, CHANGES):
        upsert(before, rows)
    newest = open_table(before).timeline.commits.completed()[-1]
    undone = before.copy()
    open_table(undone).rollback(newest.requested_time)
    path = open_table(before).contents.store.path(newest)
    for n in (1, 2, 3):
        storage = UndoneAtRead(before.copy(), path, n, undone.files())
        with suppress(ConflictError, RefusedError):
            verbs[verb](storage, newest.requested_time)
        if storage.n > 0:
            break
        assert rows_of(storage.inner) in (OLD, [*OLD, {"id": "d", "region": "eu", "ts": 5}]), n


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_write_that_was_rolled_back_is_not_recorded(version):
    """Its record would count in the metadata table, for its instant is gone: deleted files would be listed."""
    storage = create_table(version)
    upsert(storage, OLD, **WITH_METADATA)
    with pytest.raises(ConflictError, match="rolled"):
        write(storage, OvertakenRows(storage), open_table(storage, **WITH_METADATA), "UPSERT")
    assert open_table(storage).check() == ()
    assert rows_of(storage) == OLD

"""Two writers that create one table, as streams that are started together: each ends as if it had come second."""

from __future__ import annotations

from contextvars import Context

import pytest

from hudi_py.config.door import admitted
from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import ConfigError, StorageError
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.timeline.properties_file import PROPERTIES_FILE
from hudi_py.write_service import WriteService
from support import writes
from support.many_writers import AT_ONCE, SEVERAL, contents, rows

NEW = {
    **SEVERAL,
    **writes.ALONE,
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.table.ordering.fields": "ts",
}


def creator(storage, version, **more):
    settings = admitted({**NEW, "hoodie.write.table.version": version, **more})
    return WriteService(storage, settings, FixedClock(writes.START), LocalEngine, delays=AT_ONCE)


class Before(DelegatingStorage):
    """Something happens before the *n*-th call; None once it has happened."""

    def __init__(self, inner, n, act):
        super().__init__(inner)
        self.n, self.act = n, act

    def _around(self, verb, paths, call):
        self.n -= 1
        if self.n == 0 and self.inner.size(PROPERTIES_FILE) is None:
            act, self.act = self.act, None
            Context().run(act)
        return call()


@pytest.mark.parametrize("version", [6, 9])
def test_a_table_is_created_once_and_both_write_to_it(version):
    """Whenever the other one comes, up to the properties; neither sees a damaged table."""
    number, met = 0, 0
    while met == number:
        number, inner = number + 1, MemoryStorage()

        def act(inner=inner):
            creator(inner, version).write(rows(("b", "us", 2)), "UPSERT")

        storage = Before(inner, number, act)
        creator(storage, version).write(rows(("a", "eu", 1)), "UPSERT")
        met += storage.act is None
        assert contents(inner) == [("eu", "a", 1), ("us", "b", 2)][: 2 if storage.act is None else 1], number
        writes.assert_tidy(inner, number)
    assert met > 20


def test_a_writer_with_other_keys_is_refused_and_touches_nothing():
    """As by a table that was there before."""
    inner = MemoryStorage()

    def act():
        creator(inner, 9, **{"hoodie.datasource.write.recordkey.field": "ts"}).write(rows(("b", "us", 2)), "UPSERT")

    with pytest.raises(ConfigError, match="recordkey"):
        creator(Before(inner, 12, act), 9).write(rows(("a", "eu", 1)), "UPSERT")
    assert contents(inner) == [("us", "b", 2)]


@pytest.mark.parametrize("version", [6, 9])
def test_a_creation_that_was_interrupted_anywhere_is_done_again(version):
    """Until the properties are there it is no table, whatever was left."""
    number, met = 0, 0
    while met == number:
        number, inner = number + 1, MemoryStorage()

        def act():
            raise StorageError("away")

        storage = Before(inner, number, act)
        try:
            creator(storage, version).write(rows(("a", "eu", 1)), "UPSERT")
        except StorageError:
            met += 1
            creator(inner, version).write(rows(("a", "eu", 1)), "UPSERT")
        assert contents(inner) == [("eu", "a", 1)], number
    assert met > 20

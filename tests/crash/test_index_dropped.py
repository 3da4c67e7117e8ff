"""The record index is dropped, or made again, while a write looks its keys up there: nothing is damaged by that."""

import pytest

from hudi_py.mdt.lookup import RECORD_INDEX
from hudi_py.mdt.removal import drop_indexes
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.timeline.properties_file import read_table_config, update_properties
from support import writes
from support.many_writers import METADATA, contents, rows, service, table

INDEXED = {**METADATA, "hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.compact.max.delta.commits": 1}
LOCK = ".hoodie/lock"


class Meanwhile(DelegatingStorage):
    """Before its *n*-th call on the metadata table without the lock, another process does something under it."""

    def __init__(self, inner, n, then):
        super().__init__(inner)
        self.n, self.then = n, then

    def _around(self, verb, paths, call):
        path = paths if isinstance(paths, str) else next(iter(paths), "")
        if path.startswith(".hoodie/metadata/") and self.inner.size(LOCK) is None:
            self.n -= 1
            if self.n == 0:
                self.then(self.inner)
        return call()


def drop(storage):
    """As `drop index` of Apache Hudi: first the properties, then the folder."""

    def update(changes):
        update_properties(storage, changes, FixedClock(writes.START))

    drop_indexes(storage, read_table_config(storage), update, [RECORD_INDEX])


def make_again(storage):
    """By the next write that asks for one."""
    drop(storage)
    service(storage, **INDEXED).write(rows(("z", "us", 1)), "INSERT")


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("then", [drop, make_again])
def test_a_write_ends_as_if_it_had_come_before_or_after(version, then):
    """The keys are looked for in the files, or the write is done again."""
    start = table(version, settings=INDEXED)
    given = [("a", "eu", 20), ("n", "eu", 20)]
    number = 0
    while True:
        number += 1
        meanwhile = Meanwhile(start.copy(), number, then)
        service(meanwhile, **INDEXED).write(rows(*given), "UPSERT")
        if meanwhile.n > 0:
            break
        found = [row for row in contents(meanwhile.inner) if row[1] != "z"]
        assert found == [("eu", "a", 20), ("eu", "d", 4), ("eu", "n", 20), ("us", "b", 1)], number
        assert not [each for each in writes.open_table(meanwhile.inner).check() if each.severity.name == "ERROR"]
    assert number > 3

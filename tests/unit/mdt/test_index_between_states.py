"""The record index while a commit is undone: it is not asked, because it may be compacted with that commit."""

import pyarrow as pa
import pytest

from hudi_py.mdt.lookup import RECORD_INDEX
from hudi_py.model.instant import Action
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from hudi_py.testing import INTERRUPTION_MODES, interruptions
from support import writes
from support.crash_points import IS_SAMPLE

ASKED = {
    "hoodie.metadata.record.index.enable": True,
    "hoodie.metadata.record.index.min.filegroup.count": 1,
    "hoodie.metadata.record.index.max.filegroup.count": 1,
}
COMPACTED = {"hoodie.metadata.compact.max.delta.commits": 1}
LEFT = {"hoodie.clean.failed.writes.policy": "NEVER", "hoodie.index.type": "RECORD_INDEX"}


@pytest.fixture(scope="module", params=[6, 9])
def deleted(request):
    """A table whose last commit deleted a row, and whose index is compacted with that commit; the deleted key."""
    storage = writes.create_table(request.param)
    writes.upsert(storage, writes.OLD, **ASKED)
    writes.upsert(storage, writes.CHANGES)
    writes.upsert(storage, writes.OLD[:1], operation="DELETE")
    table = Table(storage, settings=COMPACTED)
    assert table.services.metadata_table.compact(table.timeline)
    return storage.files(), writes.OLD[0]["id"]


def undo(storage):
    table = Table(storage)
    table.rollback(table.timeline.writes.completed()[-1].requested_time)


def ids(table, **words):
    return sorted(table.rows(columns=["id"], **words).to_arrow().column("id").to_pylist())


def half_undone(files):
    """The table with the commit off the timeline and the rollback not completed, of all moments of the rollback."""
    for case in interruptions(lambda: MemoryStorage.from_files(files), modes=INTERRUPTION_MODES[:1]):
        case.run(undo)
        table = Table(case.storage)
        if len(table.timeline.writes.completed()) == 2 and RECORD_INDEX in table.config.metadata_partitions:
            assert table.timeline.pending(Action.ROLLBACK)
            return case.storage
    raise AssertionError("no such state")


def test_a_row_that_comes_back_is_found_by_its_key_at_every_step(deleted):
    """As without an index; and a check does not miss the key that is still being brought back."""
    files, key = deleted
    seen = set()
    for case in interruptions(lambda: MemoryStorage.from_files(files), modes=INTERRUPTION_MODES[:1]):
        case.run(undo)
        table = Table(case.storage)
        there = ids(table)
        assert ids(table, where=f"id = '{key}'") == [each for each in there if each == key], case
        assert [] == [each for each in table.check() if each.code.startswith("mdt-index")], case
        seen.add((key in there, bool(table.timeline.pending(Action.ROLLBACK))))
    assert IS_SAMPLE or {(False, True), (True, True), (True, False)} <= seen


def test_a_write_that_leaves_the_rollback_alone_finds_the_row(deleted):
    """It would insert the key again, or delete nothing and say that it did."""
    files, key = deleted
    before = half_undone(files)
    for statement in (
        lambda table: table.delete(where=f"id = '{key}'"),
        lambda table: table.delete(pa.table({"id": [key], "region": ["eu"]})),
    ):
        storage = MemoryStorage.from_files(before.files())
        assert key in ids(Table(storage))
        assert statement(writes.open_table(storage, **LEFT)).rows_deleted == 1
        assert key not in ids(Table(storage))
        Table(storage).recover()
        assert key not in ids(Table(storage))

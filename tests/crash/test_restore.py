"""Restore interrupted at every storage call, in every way; resumed twice; states compared."""

from __future__ import annotations

import pytest

from hudi_py.model.instant import Action
from hudi_py.storage.memory import MemoryStorage
from hudi_py.testing import INTERRUPTION_MODES
from support.crash_points import interruptions
from support.history_tables import fixture_in_memory, open_in, state_of
from support.tables import TableBuilder, at

TABLES = [
    "layout 1",
    "layout 2",
    "cow_partitioned-0.15.0",
    "cow_partitioned-1.0.2",
    "cow_partitioned-1.1.1",
    "cow_partitioned-1.2.0",
]


def fresh(name: str) -> tuple[MemoryStorage, str]:
    """A table with a savepoint and writes after it; a replacecommit among those made by hand."""
    if not name.startswith("layout"):
        storage = fixture_in_memory(name)
        table = open_in(storage)
        commits = [i.requested_time for i in table.timeline.completed("commit")]
        table.create_savepoint(commits[-3])
        return storage, commits[-3]
    builder = TableBuilder(int(name[-1]))
    builder.commit(at(1), {"eu": ["a"], "us": ["b"]})
    builder.table().create_savepoint(at(1))
    builder.commit(at(2), {"eu": ["a"]})
    builder.commit(at(3), {"us": ["n"]}, replaced={"us": ["b"]})
    return builder.storage, at(1)


@pytest.mark.parametrize("name", TABLES)
def test_restore_survives_every_interruption(name, record_property):
    """Asked for again after any interruption, the table is as after a calm restore; one restore on the timeline."""
    calm, time = fresh(name)
    open_in(calm).restore(time)
    wanted = state_of(calm)
    assert wanted["writes"][-1][0] == time
    cases = 0
    modes = INTERRUPTION_MODES if name.startswith("layout") else INTERRUPTION_MODES[:2]
    for cases, case in enumerate(interruptions(lambda: fresh(name)[0], modes), 1):  # noqa: B007 - reported below
        case.run(lambda faulty: open_in(faulty).restore(time))
        for _ in range(2):
            open_in(case.storage).restore(time)
            assert wanted == state_of(case.storage), case
        timeline = open_in(case.storage).timeline
        assert len(timeline.completed(Action.RESTORE)) == 1, case
        assert not [i for i in timeline if i.action is Action.ROLLBACK and i.requested_time > time], case
    record_property("interruptions", cases)


@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.1.1"])
def test_metadata_table_that_cannot_forget_is_dropped(version):
    """B-28: made after the commit, it has no delta commit to take back: it would list the files for ever."""
    storage = fixture_in_memory(f"cow_partitioned-{version}")
    last = open_in(storage).timeline.writes.completed()[-1].requested_time
    for path in [p for p in storage.files() if p.startswith(".hoodie/metadata/.hoodie/") and f"/{last}" in p]:
        if "deltacommit" in path:
            storage.delete(path)
    assert open_in(storage).config.has_metadata_table
    open_in(storage).rollback(last)
    assert not open_in(storage).config.has_metadata_table
    assert state_of(storage)["pending"] == []

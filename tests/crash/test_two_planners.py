"""Two processes that plan a clustering at the same moment: rows of a file group are written by one of them only."""

from contextlib import suppress

import pytest

from hudi_py.errors import ConflictError
from hudi_py.table import Table
from support.history_steps import Meanwhile
from support.writes import OLD, create_table, merged_rows_of, open_table, upsert


class BeforeThePlan(Meanwhile):
    """Another process is at work right before the requested file of a clustering is created."""

    def create_new(self, path, data):
        if self.fired is None and path.endswith(("replacecommit.requested", "clustering.requested")):
            self.fired = path
            self.action()
        self.inner.create_new(path, data)

    def _is_hit(self, position):
        return False


@pytest.mark.parametrize("version", [6, 8, 9])
def test_group_is_planned_once_however_two_planners_meet(version):
    """Without a lock, as after ours was lost while this process was stopped between its plan and its file."""
    storage = create_table(version)
    for _ in range(2):
        upsert(storage, OLD)
    rows = merged_rows_of(storage)
    clock = open_table(storage).services.metadata_table.clock
    others = []

    def other():
        others.append(Table(storage, clock=clock).services.clustering().schedule())

    ours = BeforeThePlan(storage, 0, other)
    with pytest.raises(ConflictError, match="was planned at this moment for file group"):
        Table(ours, clock=clock).services.clustering().schedule()
    table = open_table(storage)
    assert [each.requested_time for each in table.services.clustering().pending()] == [others[0].requested_time]
    with suppress(ConflictError):
        table.cluster()
    assert merged_rows_of(storage) == rows

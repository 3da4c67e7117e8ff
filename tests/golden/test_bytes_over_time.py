"""Bytes over time, from what instants hold: they end in what the files themselves have."""

from __future__ import annotations

import pytest

import hudi_py
from hudi_py.model.instant import State
from hudi_py.services.usage.facts import Holder
from hudi_py.snapshot.bytes_over_time import BytesOverTime
from support import fixtures
from support.tables import TableBuilder, at

OLDER = (Holder.RETAINED, Holder.SAVEPOINT, Holder.LEASE, Holder.PENDING, Holder.REMOVABLE, Holder.UNEXAMINED)
# An unfinished clean has deleted files that no completed one names yet; a failed write has appended to log files.
BEHIND = ("clean_inflight", "failed_write", "rolled_back")
NAMES = [name for name in fixtures.fixture_names() if not any(each in name for each in BEHIND)]


def points(table):
    """After each action."""
    found = BytesOverTime()
    for instant, content, *_ in table.instant_contents(archived=True):
        found.add(instant, content)
    return found.points()


@pytest.mark.parametrize("name", NAMES[::9])
def test_it_ends_in_what_is_there(name, tmp_path):
    """The newest rows and older versions of tables of real Hudi, each equal to the sums of their files."""
    table = hudi_py.open_table(str(fixtures.unpack(name, tmp_path))).read_only()
    usage, found = table.usage(), points(table)
    last = (found[-1].live, found[-1].older) if found else (0, 0)
    assert last == (usage.of(Holder.LIVE).bytes, usage.of(*OLDER).bytes)


@pytest.mark.parametrize("layout", [1, 2])
def test_each_action_changes_what_it_says(layout):
    """A commit makes older what it writes again, an overwrite what it replaces; what is pending changes nothing."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"p": ["f", "g"]})
    builder.commit(at(2), {"p": ["f"]})
    builder.commit(at(3), {"p": ["h"]}, replaced={"p": ["g"]})
    builder.commit(at(4), {"p": ["f"]}, state=State.INFLIGHT)
    found = points(builder.table())
    assert found
    size = found[0].live // 2
    assert [(each.live // size, each.older // size) for each in found] == [(2, 0), (2, 1), (2, 2)]

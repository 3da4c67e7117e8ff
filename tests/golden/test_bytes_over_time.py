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


def older(point):
    """Bytes that readers of the latest snapshot do not open."""
    return point.superseded + point.replaced + point.savepoint


def of_each(point):
    """Bytes of each reason."""
    return (point.live, point.superseded, point.replaced, point.savepoint)


@pytest.mark.parametrize("name", NAMES[::9])
def test_it_ends_in_what_is_there(name, tmp_path):
    """The newest rows and older versions of tables of real Hudi, each equal to the sums of their files."""
    table = hudi_py.open_table(str(fixtures.unpack(name, tmp_path))).read_only()
    usage, found = table.usage(), points(table)
    last = (found[-1].live, older(found[-1])) if found else (0, 0)
    assert last == (usage.of(Holder.LIVE).bytes, usage.of(*OLDER).bytes)


@pytest.mark.parametrize("layout", [1, 2])
def test_each_action_changes_what_it_says(layout):
    """A commit makes older what it writes again, an overwrite what it replaces; what is pending changes nothing.

    What a savepoint holds counts as its own once it is not the newest.
    """
    builder = TableBuilder(layout)
    builder.commit(at(1), {"p": ["f", "g"]})
    builder.commit(at(2), {"p": ["f"]})
    builder.commit(at(3), {"p": ["h"]}, replaced={"p": ["g"]})
    builder.commit(at(4), {"p": ["f"]}, state=State.INFLIGHT)
    builder.savepoint(at(2), {"p": [builder.base_name("f", at(2)), builder.base_name("g", at(1))]})
    builder.commit(at(5), {"p": ["f"]})
    found = points(builder.table())
    assert found
    size = found[0].live // 2
    assert [tuple(each // size for each in of_each(point)) for point in found] == [
        (2, 0, 0, 0),
        (2, 1, 0, 0),
        (2, 1, 0, 0),  # the savepoint holds newest rows
        (2, 1, 0, 1),  # replaced, and in the savepoint
        (2, 1, 0, 2),  # the second version of f, which was the newest
    ]


@pytest.mark.parametrize("layout", [1, 2])
def test_what_is_deleted_is_gone_from_its_reason(layout):
    """A clean takes superseded and replaced files; a savepoint that is made later takes what is left of both."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"p": ["f", "g", "k"]})
    builder.commit(at(2), {"p": ["f", "k"]})
    builder.commit(at(3), {"p": ["h"]}, replaced={"p": ["g"]})
    size = points(builder.table())[0].live // 3
    assert [each // size for each in of_each(points(builder.table())[-1])] == [3, 2, 1, 0]
    builder.savepoint(at(3), {"p": [builder.base_name("f", at(1)), builder.base_name("g", at(1))]})
    assert [each // size for each in of_each(points(builder.table())[-1])] == [3, 1, 0, 2]
    builder.table().clean(file_versions_retained=1)
    assert [each // size for each in of_each(points(builder.table())[-1])] == [3, 0, 0, 2]

"""What is in quarantine, while one process puts it back and another one does something else."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hudi_py.errors import HudiError, RefusedError
from hudi_py.runtime.clock import FixedClock
from hudi_py.table import Table
from hudi_py.testing import Crash, StopBefore
from hudi_py.timeline import quarantine
from support.meanwhile import Meanwhile
from support.tables import NOW, TableBuilder, at

LAYOUTS = pytest.mark.parametrize("layout", [1, 2])


def history(layout=2):
    builder = TableBuilder(layout)
    for number in range(1, 4):
        builder.commit(at(number), {"r0": ["f"], "r1": ["g"]})
    return builder


def opened(storage, clock, **settings):
    return Table(storage, settings={"hoodie_py.clean.quarantine": True, **settings}, clock=clock)


@LAYOUTS
@pytest.mark.parametrize("kind", ["clean", "orphans"])
@pytest.mark.parametrize("first", ["undo", "emptying"])
@pytest.mark.parametrize("call", range(5))
def test_undo_and_emptying_see_each_other_without_a_lock(layout, kind, first, call):
    """Its time is over in the middle: what is undone is there as a whole, or the undo says that it is not."""
    builder, name = history(layout), None
    if kind == "clean":
        name = opened(builder.storage, builder.clock).clean(commits_retained=1)[0].instant
    else:
        builder.put(f"r0/{builder.base_name('x', at(2)[:-7] + '1500000')}")
        late = builder.clock.now() + timedelta(days=9000)
        assert opened(builder.storage, builder.clock).orphans(older_than="0m", now=late).done
        (name,) = quarantine.removals(builder.storage)
    manifest = quarantine.load_manifest(builder.storage, name)
    in_time, late = FixedClock(NOW + timedelta(days=6)), FixedClock(NOW + timedelta(days=8))
    is_refused = []

    def undo(storage):
        try:
            opened(storage, in_time).undo(name)
        except HudiError:
            is_refused.append(True)

    def empty(storage):
        opened(storage, late).empty_quarantine()

    one, other = (undo, empty) if first == "undo" else (empty, undo)
    one(Meanwhile(builder.storage, lambda: other(builder.storage), n=call))
    there = set(builder.storage.files())
    assert is_refused or there.issuperset(manifest.paths())
    table = opened(builder.storage, FixedClock(NOW + timedelta(days=9)))
    assert not table.timeline.pending()
    assert not [each for each in table.check() if each.severity.value == "error"]


@LAYOUTS
def test_the_switch_against_deletion_stops_the_emptying_between_two_removals(layout):
    """As it stops a clean between two rounds."""
    builder = history(layout)
    for number in (4, 5):
        opened(builder.storage, builder.clock).clean(commits_retained=1)
        builder.clock.move(timedelta(seconds=1))
        builder.commit(at(number), {"r0": ["f"], "r1": ["g"]})
    _, second = quarantine.removals(builder.storage)
    late = FixedClock(NOW + timedelta(days=9))
    asked = []

    def may(sizes):
        asked.append(sizes)
        if len(asked) == 2:
            opened(builder.storage, late).forbid_deletion()
        return True

    with pytest.raises(RefusedError):
        opened(builder.storage, late).empty_quarantine(may=may)
    assert quarantine.removals(builder.storage) == (second,)
    assert len(asked) == 2


def test_a_search_that_was_stopped_before_it_moved_a_file_has_none_to_give_back():
    """Another one took it since; the undo of the first says so and changes nothing, that of the second works."""
    builder = history()
    path = f"r0/{builder.base_name('x', at(2)[:-7] + '1500000')}"
    builder.storage._clock_ms = lambda: int((NOW - timedelta(days=30)).timestamp() * 1000)
    builder.put(path, b"bytes")
    with pytest.raises(Crash):
        opened(StopBefore(builder.storage, 0, verbs=("move_many",)), builder.clock).orphans()
    (first,) = quarantine.removals(builder.storage)
    second = opened(builder.storage, builder.clock).orphans().quarantine.rpartition("/")[2]
    before = builder.storage.files()
    with pytest.raises(RefusedError, match=f"none of its files is in quarantine.* as {path}"):
        opened(builder.storage, builder.clock).undo(first)
    assert builder.storage.files() == before
    assert opened(builder.storage, builder.clock).undo(second).restored == (path,)
    assert opened(builder.storage, builder.clock).undo(first).restored == ()  # it is in the table
    assert quarantine.removals(builder.storage) == ()

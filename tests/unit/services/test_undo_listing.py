"""An undo has the table's lock for as long as it lists folders."""

from datetime import datetime, timedelta, timezone

import pytest

from hudi_py.table import Table
from hudi_py.timeline import quarantine
from support.tables import TableBuilder, at
from support.together import LOCKED, Together

LAYOUTS = pytest.mark.parametrize("layout", [1, 2])


def removed(layout, kind):
    """Files of two partitions are in quarantine."""
    builder = TableBuilder(layout)
    for number in (1, 2, 3):
        builder.commit(at(number), {"r0": ["f"], "r1": ["g"]})
    if kind == "clean":
        Table(builder.storage, settings={"hoodie_py.clean.quarantine": True}, clock=builder.clock).clean(
            commits_retained=1
        )
    else:
        for partition in ("r0", "r1"):
            builder.put(f"{partition}/{builder.base_name('x', at(1)[:-7] + '1500000')}")
        builder.table().orphans(now=datetime(2099, 1, 1, tzinfo=timezone.utc))
    builder.clock.move(timedelta(seconds=1))
    return builder


@LAYOUTS
@pytest.mark.parametrize("kind", ["clean", "orphans"])
def test_folders_in_an_object_store_are_listed_at_once_while_writers_wait(layout, kind):
    """Those of the table, and those in quarantine."""
    builder = removed(layout, kind)
    (name,) = quarantine.removals(builder.storage)
    storage = Together(builder.storage.files())
    report = Table(storage, settings=LOCKED, clock=builder.clock).undo(name)
    assert {path.partition("/")[0] for path in report.restored} == {"r0", "r1"}
    assert storage.is_locked

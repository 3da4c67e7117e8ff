"""
Rows of a write that was requested before a compaction and completed behind its plan, in layout 2: their log file is on
the slice that the compaction opened, though everything before it is read as of that write.
"""

from contextvars import Context
from datetime import timedelta

import pyarrow as pa
import pytest

from hudi_py.local.rows import ArrowRows
from hudi_py.runtime.clock import FixedClock
from hudi_py.table import Table
from support.meanwhile import Meanwhile
from support.writes import OLD, SCHEMA, START, create_table, merged_rows_of, upsert, write

EVERY_TIME = {"hoodie.compact.inline.max.delta.commits": 1}


def on_day(storage, day, minutes=0, **settings):
    """The table on a day after the test's first one."""
    clock = FixedClock(START + timedelta(days=day, minutes=minutes))
    return Table(storage, settings={**EVERY_TIME, **settings}, clock=clock)


@pytest.fixture(params=[8, 9])
def storage(request):
    """Each row is in a base file and in the log file of the write; a compaction is pending."""
    storage = create_table(request.param, **{"hoodie.table.type": "MERGE_ON_READ"})
    upsert(storage, OLD, on_day(storage, 0))
    upsert(storage, [{**row, "ts": 5} for row in OLD], on_day(storage, 0, 1))
    planned = []
    beside = Meanwhile(
        storage,
        lambda: planned.append(Context().run(on_day(storage, 1).schedule_compaction)),
        before=lambda path, _: ".log." in path and ".hoodie" not in path,
    )
    rows = ArrowRows(pa.Table.from_pylist([{**row, "ts": 6} for row in OLD], schema=SCHEMA))
    write(beside, rows, on_day(beside, 0, 2), "UPSERT")
    assert planned[0]
    return storage


def supersede(storage):
    """Carry the compaction out and another one on its day, and one of a later write."""
    on_day(storage, 1, 30).compact()
    upsert(storage, [{**row, "ts": 7} for row in OLD], on_day(storage, 3))
    on_day(storage, 3, 1).compact()
    assert merged_rows_of(storage) == [{**row, "ts": 7} for row in OLD]


def test_a_lease_keeps_them(storage):
    """It is taken while the compaction is pending."""
    shown = [{**row, "ts": 6} for row in OLD]
    with on_day(storage, 1, 1).lease(ttl="9d") as snapshot:
        supersede(storage)
        for minutes in (2, 3):
            on_day(storage, 3, minutes).clean(file_versions_retained=1)
            assert snapshot.rows().to_arrow().select(SCHEMA.names).sort_by("id").to_pylist() == shown


def test_a_lease_on_the_past_keeps_them(storage):
    """It is taken as of the write, when the compaction is completed."""
    of_write = on_day(storage, 1).timeline.writes.completed("deltacommit")[-1].requested_time
    on_day(storage, 1, 30).compact()
    shown = [{**row, "ts": 6} for row in OLD]
    assert merged_rows_of(storage, as_of=of_write) == shown
    with on_day(storage, 1, 40).lease(ttl="9d", at=of_write) as snapshot:
        supersede(storage)
        on_day(storage, 3, 2).clean(file_versions_retained=1)
        assert snapshot.rows().to_arrow().select(SCHEMA.names).sort_by("id").to_pylist() == shown
        assert merged_rows_of(storage, as_of=of_write) == shown


@pytest.mark.parametrize("verifies", [False, True])
def test_a_snapshot_of_the_ladder_keeps_them(storage, verifies):
    """The write is the last commit of its day; that of the next day is the second compaction."""
    of_write = on_day(storage, 1).timeline.writes.completed("deltacommit")[-1].requested_time
    supersede(storage)
    on_day(storage, 3, 2, **{"hoodie_py.clean.verify": verifies}).clean(file_versions_retained=1, keep_daily=9)
    assert merged_rows_of(storage, as_of=of_write) == [{**row, "ts": 6} for row in OLD]

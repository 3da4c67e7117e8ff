"""What a plan is expected to write and to take: as the rewrites before it, by the timeline that they left."""

from datetime import timedelta

import pytest

from hudi_py.runtime.clock import FixedClock
from hudi_py.services.rewriting.expected import Measured, expected
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from support.meanwhile import Meanwhile
from support.writes import ALONE, START, create_table, upsert

OFTEN = {"hoodie.compact.inline.max.delta.commits": 1, "hoodie.log.compaction.blocks.threshold": 1}
RUNS = {
    "compaction": lambda table: table.compact(),
    "log_compaction": lambda table: table.compact_logs(),
    "clustering": lambda table: table.cluster(sort_by="ts"),
}


def rows(number):
    return [{"id": f"k{each}", "region": "eu", "ts": number} for each in range(20)]


def is_marker(path, _data):
    return "/.temp/" in path and ".marker." in path


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("what", RUNS)
def test_the_next_one_takes_as_long_for_its_bytes_as_the_last(what, version):
    """Its clock stood at 40 s while files were written; twice the bytes are expected to take twice the time."""
    clock = FixedClock(START)
    storage = MemoryStorage(clock_ms=lambda: int(clock.moment.timestamp() * 1000))
    kind = "COPY_ON_WRITE" if what == "clustering" else "MERGE_ON_READ"
    create_table(version, storage, clock, **{"hoodie.table.type": kind})

    def opened(on=storage):
        clock.move(timedelta(minutes=1))
        return Table(on, settings=ALONE | OFTEN | {"hoodie.parquet.small.file.limit": 0}, clock=clock)

    def expectation():
        service = getattr(opened().services, what)()
        return service.expected(service.plan())

    for number in range(2):
        upsert(storage, [{**row, "id": f"{row['id']}-{number * (kind == 'COPY_ON_WRITE')}"} for row in rows(number)],
               opened())  # fmt: skip
    before = expectation()
    assert (before.files, before.bytes_written, before.seconds, before.measured) == (1, None, None, ())
    (done,) = RUNS[what](opened(Meanwhile(storage, lambda: clock.move(timedelta(seconds=40)), before=is_marker)))
    assert done.bytes_before == before.bytes_read
    upsert(storage, [{**row, "id": f"{row['id']}-{2 * (kind == 'COPY_ON_WRITE')}"} for row in rows(3)], opened())
    after = expectation()
    assert after.measured == (done.instant,)
    assert after.seconds == pytest.approx(40 * after.bytes_read / done.bytes_before)
    assert after.bytes_written == round(after.bytes_read * done.bytes_after / done.bytes_before)


def test_rewrites_without_a_measurable_time_tell_nothing_of_a_longer_one():
    """Zero seconds would promise zero seconds for any size; those that are measured count alone."""
    quick = Measured(instant="1", bytes_read=100, bytes_written=50, seconds=0.0)
    unknown = Measured(instant="2", bytes_read=100, bytes_written=150, seconds=None)
    slow = Measured(instant="3", bytes_read=100, bytes_written=100, seconds=8.0)
    assert expected([quick], files=1, bytes_read=1000).seconds is None
    found = expected([slow, unknown, quick], files=1, bytes_read=300)
    assert (found.seconds, found.bytes_written) == (12.0, 300)
    assert found.measured == ("3", "2", "1")

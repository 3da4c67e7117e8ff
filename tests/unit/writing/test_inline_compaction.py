"""Compaction after commits, as ``hoodie.compact.inline`` and its kin ask for."""

import pytest

from hudi_py.config.settings import Settings
from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import ConfigError
from hudi_py.write_service import WriteService
from support import writes

MOR = {"hoodie.table.type": "MERGE_ON_READ", "hoodie.index.bloom.num_entries": 100}
SOON = {"hoodie.compact.inline.max.delta.commits": 2}


def upserts(version, numbers, **settings):
    """A table that the same row was written to with each number."""
    storage = writes.create_table(version, **MOR)
    for number in numbers:
        writes.upsert(storage, [{"id": "a", "region": "eu", "ts": number}], **MOR, **settings)
    return storage


@pytest.mark.parametrize("version", [6, 9])
def test_inline_compaction_runs_when_it_is_due(version):
    """After the second and the fourth delta commit: the newest slice has one base file and no log file."""
    storage = upserts(version, range(1, 5), **SOON, **{"hoodie.compact.inline": True})
    assert len(writes.open_table(storage).timeline.completed("commit")) == 2
    (file_slice,) = writes.open_table(storage).file_slices("eu")
    assert file_slice.base_file is not None
    assert not file_slice.log_files
    assert [row["ts"] for row in writes.merged_rows_of(storage)] == [4]
    writes.upsert(storage, [{"id": "a", "region": "eu", "ts": 5}], **MOR, **SOON, **{"hoodie.compact.inline": True})
    assert [row["ts"] for row in writes.merged_rows_of(storage)] == [5]
    assert len(writes.open_table(storage).timeline.completed("commit")) == 2


@pytest.mark.parametrize("version", [6, 9])
def test_schedule_inline_stores_one_plan(version):
    """No second one while the first is pending; later log files go to the slice that it opens, and stay."""
    storage = upserts(version, range(1, 6), **SOON, **{"hoodie.compact.schedule.inline": True})
    (pending,) = writes.open_table(storage).timeline.pending("compaction")
    assert [row["ts"] for row in writes.merged_rows_of(storage)] == [5]
    (done,) = writes.open_table(storage).compact(instant=pending.requested_time)
    assert (done.instant, done.file_groups, done.rows) == (pending.requested_time, 1, 1)
    (file_slice,) = writes.open_table(storage).file_slices("eu")
    assert file_slice.base_file.instant_time == pending.requested_time
    assert file_slice.log_files
    assert [row["ts"] for row in writes.merged_rows_of(storage)] == [5]


def test_both_at_once_are_refused():
    """As by Apache Hudi."""
    settings = {"hoodie.compact.inline": "true", "hoodie.compact.schedule.inline": "true"}
    with pytest.raises(ConfigError, match="exclude each other"):
        WriteService(writes.create_table(9, **MOR), Settings(settings), writes.FixedClock(writes.START), LocalEngine)

"""
A table object that was opened before another process dropped or made the metadata table acts as one opened now.

Its properties are older than the table: they name a metadata table that is gone, or none where there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pyarrow as pa
import pytest

from hudi_py.config.new_table import new_table_properties
from hudi_py.config.settings import Settings
from hudi_py.mdt.table import FILES_PARTITION
from hudi_py.runtime.clock import FixedClock
from hudi_py.services.check.findings import Severity
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from hudi_py.timeline.properties_file import create_properties
from support.history_tables import fixture_in_memory
from support.tables import NOW

_QUIET = {"hoodie.clean.automatic": False, "hoodie.archive.automatic": False}


def _write(storage: MemoryStorage, clock: FixedClock, number: int, *, metadata: bool) -> str:
    clock.move(timedelta(minutes=7))
    rows = pa.table({"id": ["a", "b", "c"], "city": ["Rome", "Oslo", "Rome"], "ts": [number] * 3})
    table = Table(storage, settings={**_QUIET, "hoodie.metadata.enable": metadata}, clock=clock)
    time = table.upsert(rows).instant
    assert time is not None
    return time


def _opened_before(version: int, *, metadata: bool, loaded: bool) -> tuple[Table, MemoryStorage, FixedClock, str]:
    """A table of ten commits; the object was opened after the fifth, then the metadata table was dropped or made."""
    clock, storage = FixedClock(NOW), MemoryStorage()
    settings = {
        "hoodie.table.name": "trips",
        "hoodie.write.table.version": version,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.table.ordering.fields": "ts",
    }
    create_properties(storage, new_table_properties(Settings(settings)), clock)
    times = [_write(storage, clock, number, metadata=metadata) for number in range(5)]
    table = Table(storage, settings=_QUIET, clock=clock)
    assert (FILES_PARTITION in table.config.metadata_partitions) is metadata
    if loaded:
        assert table.partitions()
    for number in range(5, 10):
        _write(storage, clock, number, metadata=not metadata)
    return table, storage, clock, times[3]


_ACTIONS: dict[str, Callable[[Table], object]] = {
    "archive": lambda table: table.archive(keep_min_commits=3, keep_max_commits=4),
    "clean": lambda table: table.clean(file_versions_retained=1),
    "cluster": lambda table: table.cluster(),
    "savepoint": lambda table: table.create_savepoint(),
    "delete rows": lambda table: table.delete(where="ts = 9 and id = 'a'"),
    "recover": lambda table: table.recover(),
    "roll back": lambda table: table.rollback(table.refresh().timeline.commits.completed()[-1].requested_time),
}


@pytest.mark.parametrize("metadata", [True, False], ids=["dropped", "made"])
@pytest.mark.parametrize(("version", "loaded"), [(6, True), (9, False)])
@pytest.mark.parametrize("action", _ACTIONS)
def test_changes_the_table_as_one_that_is_opened_now(action: str, version: int, metadata: bool, loaded: bool) -> None:
    """An object that was opened before another process dropped or made the metadata table does what a new one does."""
    before, storage, clock, _ = _opened_before(version, metadata=metadata, loaded=loaded)
    clock.move(timedelta(minutes=7))
    copy = storage.copy()
    _ACTIONS[action](before)
    now = Table(copy, settings=_QUIET, clock=clock)
    _ACTIONS[action](now)
    changed = Table(storage, clock=clock)
    assert _instants(changed) == _instants(Table(copy, clock=clock))
    assert _rows(changed) == _rows(Table(copy, clock=clock)) == _rows(_by_folders(storage, clock))
    assert [each for each in changed.check() if each.severity is not Severity.INFO] == []


@pytest.mark.parametrize("version", [6, 9])
def test_reads_what_is_there_after_the_metadata_table_was_dropped(version: int) -> None:
    """Rows, an earlier time and a plan, through an object that still takes the metadata table for there."""
    before, storage, clock, earlier = _opened_before(version, metadata=True, loaded=False)
    now = _by_folders(storage, clock)
    assert _rows(before) == _rows(now)
    assert before.as_of(earlier).rows().to_arrow() == now.as_of(earlier).rows().to_arrow()
    plans = [table.plan_clean(file_versions_retained=1) for table in (before, now)]
    assert plans[0].file_count > 0
    assert plans[0].files == plans[1].files


@pytest.mark.parametrize("metadata", [True, False], ids=["dropped", "made"])
@pytest.mark.parametrize("version", [6, 9])
def test_check_judges_the_properties_as_they_are_now(version: int, metadata: bool) -> None:
    """The folder of a dropped metadata table is not missing, and that of a new one is not left over."""
    before, storage, clock, _ = _opened_before(version, metadata=metadata, loaded=True)
    assert before.check() == Table(storage, settings=_QUIET, clock=clock).check()


@pytest.mark.parametrize("name", ["cow_all_indexes-0.15.0", "cow_all_indexes-1.1.1"])
def test_statistics_and_bloom_filters_that_were_dropped_are_none(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """They are no damage to warn of, and rows are found without them; so they are where the metadata table is lost."""
    storage = fixture_in_memory(f"rows/{name}")
    before = Table(storage, settings=_QUIET)
    snapshot = before.snapshot()
    lost = MemoryStorage.from_files({path: storage.read(path) for path in storage.files() if "/metadata/" not in path})
    rows = before.rows().to_arrow()
    key = rows.column("id")[0].as_py()
    Table(storage, settings={**_QUIET, "hoodie.metadata.enable": False}).delete(where="id = 'not there'")
    Table(storage, settings={**_QUIET, "hoodie.metadata.enable": False}).delete(where=f"id = '{key}'")
    assert not [path for path in storage.files() if "/metadata/" in path]
    caplog.clear()
    assert snapshot.column_statistics() is None
    assert snapshot.rows(where=f"id = '{key}' and ts > 0").to_arrow().num_rows == 1
    assert not [record for record in caplog.records if "unusable" in record.getMessage()]
    assert Table(lost, settings={**_QUIET}).snapshot().column_statistics() is None


def _instants(table: Table) -> list[tuple[str, str]]:
    active = {(each.requested_time, str(each.action)) for each in table.timeline.completed()}
    return sorted(active)


def _rows(table: Table) -> list[dict[str, object]]:
    return sorted(table.rows().to_arrow().to_pylist(), key=lambda row: str(row["id"]))


def _by_folders(storage: MemoryStorage, clock: FixedClock) -> Table:
    return Table(storage, settings={"hoodie.metadata.enable": False}, clock=clock)

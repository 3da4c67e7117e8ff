"""
Writes without Spark: the write service with rows of this process, for whoever needs a table that is written to.

Each write is a process of its own. Cleans and archivals are left to the caller, who wants to see one thing at a time.
"""

import itertools
from datetime import datetime, timedelta, timezone

import pyarrow as pa

from hudi_py.config.new_table import new_table_properties
from hudi_py.config.settings import Settings
from hudi_py.engine.inline import LocalEngine
from hudi_py.local.rows import ArrowRows
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from hudi_py.timeline.markers import instants_with_markers
from hudi_py.timeline.properties_file import create_properties
from hudi_py.write_service import WriteService
from support import tables

SCHEMA = pa.schema([("id", pa.string()), ("region", pa.string()), ("ts", pa.int64())])
OLD = [{"id": "a", "region": "eu", "ts": 1}, {"id": "b", "region": "us", "ts": 1}]
CHANGES = [{"id": "a", "region": "eu", "ts": 2}, {"id": "c", "region": "ap", "ts": 2}]
NEW = [CHANGES[0], OLD[1], CHANGES[1]]
START = datetime(2026, 1, 1, tzinfo=timezone.utc)
LAZY = {"hoodie.clean.failed.writes.policy": "LAZY"}
ROLLBACK_TOKEN = "_1-0-1"
ALONE = {"hoodie.clean.automatic": False, "hoodie.archive.automatic": False}
minutes = itertools.count(1)


def open_table(storage, **settings):
    """Each process finds its clock a minute later."""
    return Table(storage, settings=settings, clock=FixedClock(START + timedelta(minutes=next(minutes))))


def create_table(version, storage=None, clock=None, **more):
    """An empty table, in memory unless a *storage* is given; *more* are further settings."""
    storage = MemoryStorage() if storage is None else storage
    settings = Settings(
        {
            "hoodie.table.name": "t",
            "hoodie.write.table.version": version,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "region",
            "hoodie.table.ordering.fields": "ts",
            **more,
        }
    )
    create_properties(storage, new_table_properties(settings), clock or FixedClock(START))
    return storage


def filled_table(version=9):
    """A table with the `OLD` rows."""
    storage = create_table(version)
    upsert(storage, OLD)
    return open_table(storage, **ALONE)


def upsert(storage, rows, opened=None, operation="UPSERT", **settings):
    """One write; *opened* lends its settings and its clock."""
    table = opened or open_table(storage, **settings)
    write(storage, ArrowRows(pa.Table.from_pylist(rows, schema=SCHEMA)), table, operation)


def write(storage, rows, opened, operation):
    """One write of *rows* that an engine holds."""
    service = WriteService(storage, opened.settings.merged(ALONE), opened.services.metadata_table.clock, LocalEngine)
    return service.write(rows, operation)


def rows_of(storage, **settings):
    """All rows, by their keys."""
    return sorted(tables.rows_of(open_table(storage, **settings)), key=lambda row: row["id"])


def merged_rows_of(storage, as_of=None, **settings):
    """All rows, by their keys; of a merge-on-read table too."""
    rows = open_table(storage, **settings).rows(as_of=as_of).to_arrow().select(SCHEMA.names).to_pylist()
    return sorted(rows, key=lambda row: (row["region"], row["id"]))


def assert_tidy(storage, case):
    """Nothing is pending, no marker is left, and every data file belongs to a completed commit."""
    timeline = open_table(storage).timeline
    assert not timeline.pending(), case
    assert not instants_with_markers(storage), case
    contents = open_table(storage).contents
    stats = [
        path
        for instant in timeline.completed("commit", "deltacommit")
        for each in contents.commit(instant).partition_to_write_stats.values()
        for stat in each
        for path in (stat.path, *(stat.cdc_stats or ()))
    ]
    assert sorted(stats) == sorted(path for path in storage.files() if is_data(path)), case


def is_data(path):
    """Whether it is a data file of a write: what takes back log blocks is one of a rollback."""
    is_log = ".log." in path and not path.endswith(ROLLBACK_TOKEN) and not path.startswith(".hoodie/")
    return is_log or path.endswith(".parquet")


class LazyWorld:
    """Writers under the policy LAZY; one clock for the processes and for the storage's modification times."""

    def __init__(self):
        self.clock = FixedClock(START)
        self.storage = MemoryStorage(clock_ms=lambda: int(self.clock.moment.timestamp() * 1000))

    def open(self, storage):
        self.clock.move(timedelta(seconds=1))
        return Table(storage, settings=LAZY, clock=self.clock)

    def rows(self, storage):
        return sorted(tables.rows_of(self.open(storage)), key=lambda row: row["id"])

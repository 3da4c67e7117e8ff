"""A write interrupted at every call that changes something: nothing of it is visible, or all of it."""

import io
import itertools
from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tables
from hudi_py.config.keys import Settings
from hudi_py.config.new_table import new_table_properties
from hudi_py.errors import CorruptMetadata
from hudi_py.formats.record_schema import format_record_schema
from hudi_py.fsview.needed import NeededFiles
from hudi_py.model.files import parse_base_file
from hudi_py.rows.base_file import BaseFileOptions
from hudi_py.rows.keys import key_generator_of
from hudi_py.rows.precedence import merge_rules_of
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from hudi_py.testing import interruptions
from hudi_py.timeline.markers import instants_with_markers, read_markers
from hudi_py.timeline.properties_file import create_properties
from hudi_py.writing.assign import SizingLimits
from hudi_py.writing.replaced import check_replaced
from hudi_py.writing.stats import write_stat
from hudi_py.writing.tasks import TaskIdentity, WriteJob, run_task
from hudi_py.writing.transaction import begin_write

SCHEMA = pa.schema([("id", pa.string()), ("region", pa.string()), ("ts", pa.int64())])
OLD = [{"id": "a", "region": "eu", "ts": 1}, {"id": "b", "region": "us", "ts": 1}]
CHANGES = [{"id": "a", "region": "eu", "ts": 2}, {"id": "c", "region": "ap", "ts": 2}]
NEW = [CHANGES[0], OLD[1], CHANGES[1]]
START = datetime(2026, 1, 1, tzinfo=timezone.utc)
minutes = itertools.count(1)


def open_table(storage, **settings):
    """Each process finds its clock a minute later."""
    return Table(storage, settings=settings, clock=FixedClock(START + timedelta(minutes=next(minutes))))


def create_table(version):
    """An empty table in memory."""
    storage = MemoryStorage()
    settings = Settings(
        {
            "hoodie.table.name": "t",
            "hoodie.write.table.version": version,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "region",
            "hoodie.table.ordering.fields": "ts",
        }
    )
    create_properties(storage, new_table_properties(settings), FixedClock(START))
    return storage


def upsert(storage, rows, opened=None, operation="UPSERT", **settings):
    """What the Spark client does, in this process."""
    table = opened or open_table(storage, **settings)
    with begin_write(table.contents, table.config, table.settings, table.metadata_table) as transaction:
        _write(storage, table, transaction, rows, operation)


def _write(storage, table, transaction, rows, operation="UPSERT"):
    table.refresh()
    job = write_job(storage, table, transaction, operation)
    results = list(run_task(job, batches_of(rows), TaskIdentity(0, 1, 2)))
    check_replaced(results, table.timeline, table.contents)
    stats = [write_stat(each, with_prev_base_file=table.config.version >= 8) for each in results]
    transaction.commit(stats, operation=operation, extra_metadata={"schema": job.avro_schema})


def write_job(storage, table, transaction, operation="UPSERT"):
    """What tasks get to know of a write."""
    return WriteJob(
        storage=storage,
        instant_time=transaction.instant_time,
        operation=operation,
        context=table.view_context,
        needed=NeededFiles(table.contents, table.timeline).of_write(),
        schema=SCHEMA,
        avro_schema=format_record_schema(SCHEMA, "t"),
        keys=key_generator_of(dict(table.config.properties), single_field_prefixed=None),
        rules=merge_rules_of(table.config.properties),
        options=BaseFileOptions(compression="snappy"),
        limits=SizingLimits(),
        record_bytes=100,
    )


def batches_of(rows):
    """As a task gets them: in the order of their partitions."""
    return [pa.RecordBatch.from_pylist(sorted(rows, key=lambda row: row["region"]), schema=SCHEMA)]


def rows_of(storage, **settings):
    return sorted(tables.rows_of(open_table(storage, **settings)), key=lambda row: row["id"])


def assert_tidy(storage, case):
    """Nothing is pending, no marker is left, and every data file belongs to a completed commit."""
    timeline = open_table(storage).timeline
    assert not timeline.pending(), case
    assert not instants_with_markers(storage), case
    contents = open_table(storage).contents
    stats = [
        stat.path
        for instant in timeline.completed("commit")
        for each in contents.commit(instant).partition_to_write_stats.values()
        for stat in each
    ]
    assert sorted(stats) == sorted(path for path in storage.files() if path.endswith(".parquet")), case


def assert_marked(storage, case):
    """Every data file of a write that is not completed has its marker: that is how the next write finds it (G-3)."""
    completed = {instant.requested_time for instant in open_table(storage).timeline.completed("commit")}
    for path in storage.files():
        file = parse_base_file(path.rpartition("/")[2])
        if file is not None and not path.startswith(".hoodie/") and file.instant_time not in completed:
            markers = read_markers(storage, file.instant_time) or frozenset()
            assert path in {marker.path for marker in markers}, case


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 8, 9])
def test_write_interrupted_anywhere_is_invisible_or_whole(record_property, version):
    """Requested, inflight, markers, data files, completion; the next write rolls back what was left (G-1 to G-3)."""
    original = create_table(version)
    upsert(original, OLD)
    assert rows_of(original) == OLD
    committed = {path: data for path, data in original.files().items() if path.endswith(".parquet")}
    count = 0
    for case in interruptions(original.copy):
        count += case.run(lambda storage: upsert(storage, CHANGES))
        assert rows_of(case.storage) in (OLD, NEW), case
        assert_marked(case.storage, case)
        commits = len(open_table(case.storage).timeline.completed("commit"))
        assert rows_of(case.storage) == (OLD if commits == 1 else NEW), case
        for number in (1, 2):
            upsert(case.storage, CHANGES)
            assert rows_of(case.storage) == NEW, case
            assert_tidy(case.storage, case)
            assert len(open_table(case.storage).timeline.completed("commit")) == commits + number, case
        assert committed.items() <= case.storage.files().items(), case
    record_property("interruptions", count)
    assert count > 60


@pytest.mark.parametrize("operation", ["UPSERT", "INSERT", "DELETE"])
@pytest.mark.parametrize("version", [6, 9])
def test_nothing_is_written_over_a_base_file_that_is_lost_or_another(version, operation):
    """Else the version before it, or what lies there instead, would be merged and committed as the latest rows."""
    whole = create_table(version)
    upsert(whole, OLD)
    upsert(whole, CHANGES[:1])
    newest = max(
        (path for path in whole.files() if path.startswith("eu/") and path.endswith(".parquet")),
        key=lambda path: path.rpartition("_")[2],
    )
    for what, damage in (
        ("is missing, which the completed commit", lambda storage: storage.delete(newest)),
        ("bytes, and the completed commit", lambda storage: storage.replace(newest, compressed(whole.read(newest)))),
    ):
        storage = whole.copy()
        damage(storage)
        with pytest.raises(CorruptMetadata, match=f"{newest}.*{what}.*hudi-py check"):
            upsert(storage, [{"id": "a", "region": "eu", "ts": 9}], operation=operation)
        assert len(open_table(storage).timeline.completed("commit")) == 2
        upsert(storage, [{"id": "z", "region": "us", "ts": 9}])  # the others are whole, and the way is free


def compressed(parquet):
    """The same rows in other bytes."""
    sink = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(parquet)), sink, compression="gzip")
    return sink.getvalue()

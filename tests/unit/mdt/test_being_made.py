"""Apache Hudi fills a partition of the metadata table without the lock, beside our writes."""

import os
import shutil
import time
from datetime import datetime, timezone

import pytest

import hudi_py
from hudi_py.errors import ConflictError
from hudi_py.mdt.statistics import COLUMN_STATS, PARTITION_STATS
from support import fixtures

INIT = "00000000000000099"
SEVERAL = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.num.retries.on.conflict.failures": 0,
}
STATISTICS = {COLUMN_STATS, PARTITION_STATS}


@pytest.fixture
def table(tmp_path):
    """A table of Apache Hudi 1.2.0 with statistics, for several writers."""
    folder = fixtures.unpack("cow_partitioned-1.2.0", tmp_path)
    assert {*opened(folder).config.metadata_partitions} >= STATISTICS
    return folder


def opened(folder, **settings):
    return hudi_py.open_table(str(folder), settings=SEVERAL | settings)


def statistics(folder):
    return STATISTICS & {*opened(folder).config.metadata_partitions}


def some_rows(folder):
    rows = opened(folder).rows().to_arrow()
    return rows.select([name for name in rows.column_names if not name.startswith("_hoodie_")]).slice(0, 2)


def write(folder, **settings):
    return opened(folder, **settings).upsert(some_rows(folder))


def heartbeat(folder, began, *, age_s=0):
    """Of a running write of Apache Hudi, which has begun and chosen its files."""
    timeline = folder / ".hoodie" / "timeline"
    (timeline / f"{began}.commit.requested").touch()
    (timeline / f"{began}.inflight").touch()
    path = folder / ".hoodie" / ".heartbeat" / began
    path.parent.mkdir(exist_ok=True)
    path.touch()
    then = path.stat().st_mtime - age_s
    os.utime(path, (then, then))


def begin_filling(folder):
    """What is there while Apache Hudi fills `partition_stats` once more: named nowhere, and not completed."""
    properties = folder / ".hoodie" / "hoodie.properties"
    hudi_py.open_table(str(folder)).check()
    text = properties.read_text()
    lines = [line for line in text.splitlines() if not line.startswith("hoodie.table.metadata.partitions=")]
    properties.write_text("\n".join([*lines, "hoodie.table.metadata.partitions=column_stats,files", ""]))
    for state in ("requested", "inflight"):
        (folder / f".hoodie/metadata/.hoodie/timeline/{INIT}.deltacommit.{state}").touch()


def later(folder):
    """A time behind all instants, and before now."""
    return str(int(max(each.requested_time for each in opened(folder).timeline.instants)) + 1)


@pytest.mark.parametrize("gone", [{PARTITION_STATS}, {COLUMN_STATS}, STATISTICS])
@pytest.mark.parametrize("action", ["upsert", "clean", "rollback"])
def test_statistics_without_a_folder_are_not_in_the_way(action, gone, table):
    """They are named no more, instead of an error for every write to come; the rows are those that were written."""
    before = opened(table).rows().to_arrow().num_rows
    for name in gone:
        shutil.rmtree(table / ".hoodie/metadata" / name)
    if action == "upsert":
        write(table)
    elif action == "clean":
        opened(table, **{"hoodie.clean.commits.retained": 1}).clean()
    else:
        opened(table).rollback(opened(table).timeline.commits.completed()[-1].requested_time)
        before = opened(table).rows().to_arrow().num_rows
    assert not statistics(table) & gone
    assert opened(table).rows().to_arrow().num_rows == before
    write(table)
    assert not [finding for finding in opened(table).check() if finding.code.startswith("mdt")]


def test_a_write_gives_way_to_a_running_writer_that_fills_a_partition(table):
    """Nothing is written, and the folder that is being filled stays; trying again helps once its heart is still."""
    began = later(table)
    begin_filling(table)
    heartbeat(table, began)
    with pytest.raises(ConflictError, match=rf"{INIT} fills a partition .*{began}"):
        write(table)
    assert (table / ".hoodie/metadata" / PARTITION_STATS).is_dir()
    heartbeat(table, began, age_s=3600)
    assert write(table).instant
    assert not (table / ".hoodie/metadata" / PARTITION_STATS).exists()
    assert not [finding for finding in opened(table).check() if finding.severity == "error"]


def test_a_write_does_not_complete_beside_one_that_began_to_fill_a_partition(table, monkeypatch):
    """It would be missing there: it is taken back, and made anew as often as the settings say."""
    from hudi_py.mdt.keeper import MetadataTableKeeper

    began, rows, begun = later(table), some_rows(table), []
    record = MetadataTableKeeper.record_commit

    def recorded(*args, **kwargs):
        if not begun:
            begun.append(True)
            begin_filling(table)
            heartbeat(table, began)
        return record(*args, **kwargs)

    monkeypatch.setattr(MetadataTableKeeper, "record_commit", recorded)
    known = opened(table).timeline.commits.completed()
    with pytest.raises(ConflictError, match="fills a partition"):
        opened(table).upsert(rows)
    assert opened(table).timeline.commits.completed() == known


def test_a_writer_that_began_after_the_filling_is_not_suspected(table):
    """Else what a dead writer left would stop all others for as long as any of them runs."""
    begin_filling(table)
    for path in (table / ".hoodie/metadata/.hoodie/timeline").glob(f"{INIT}*"):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    heartbeat(table, later(table))
    assert write(table).instant


def test_times_of_writes_are_those_of_the_table(table, monkeypatch):
    """Its properties say in which zone, and not those of the metadata table: else the writer seems to begin later."""
    properties = table / ".hoodie" / "hoodie.properties"
    lines = [line for line in properties.read_text().splitlines() if "timeline.timezone" not in line]
    properties.write_text("\n".join([*lines, "hoodie.table.timeline.timezone=UTC", ""]))
    monkeypatch.setenv("TZ", "America/Los_Angeles")
    time.tzset()
    try:
        begin_filling(table)
        heartbeat(table, f"{datetime.now(timezone.utc):%Y%m%d%H%M%S}000")
        with pytest.raises(ConflictError, match="fills a partition"):
            write(table)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_what_a_dead_writer_left_half_filled_is_removed(table):
    """Nobody is at work: it has no heartbeat."""
    begin_filling(table)
    assert write(table).instant
    assert not (table / ".hoodie/metadata" / PARTITION_STATS).exists()
    assert statistics(table) == {COLUMN_STATS}

"""Several real processes on one table of the local disk."""

import json
import time
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import CorruptMetadata
from hudi_py.model.instant import Action
from hudi_py.model.instant_time import format_instant_time, next_instant_time, parse_instant_time
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.local import LocalStorage
from hudi_py.table import Table
from support import fixtures
from support.races import race
from support.tables import TableBuilder


def on_disk(builder, folder):
    """The built table as files."""
    for path, data in builder.storage.files().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


@pytest.mark.slow
def test_times_of_several_processes_only_grow_whatever_their_clocks_say(tmp_path):
    """rules/timeline 2.4: none is given twice, and each process sees its own grow."""
    table = on_disk(TableBuilder(2), tmp_path)
    printed = [output.split() for output in race(*(("mint", table, seed, 80) for seed in range(4)))]
    times = [one for each in printed for one in each]
    assert len(times) == 320
    assert len(set(times)) == 320
    for each in printed:
        assert each == sorted(each)
    later = Table(LocalStorage(table), clock=FixedClock(datetime(2020, 1, 1, tzinfo=timezone.utc)))
    assert later.contents.store.new_time() > max(times)


@pytest.mark.parametrize("zone", ["UTC", "LOCAL"])
def test_times_grow_through_the_hour_that_comes_twice(monkeypatch, zone):
    """When summer time ends, local clocks show one hour twice; requested and completion times go on growing."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        builder = TableBuilder(2)
        data = builder.storage.read(".hoodie/hoodie.properties")
        builder.put(".hoodie/hoodie.properties", data.replace(b"timezone=UTC", b"timezone=" + zone.encode()))
        builder.clock.moment = datetime(2026, 10, 25, 0, 30, tzinfo=timezone.utc)
        store = builder.table().contents.store
        times = []
        for _ in range(6):  # half past two in summer, then in winter
            instant = store.request(Action.COMMIT, store.new_time(), b"")
            done = store.complete(store.transition(instant, b""), b"")
            times += [instant.requested_time, done.completion_time]
            builder.clock.move(timedelta(minutes=20))
        assert times == sorted(set(times))
        first = {"UTC": "20261025003000000", "LOCAL": "20261025023000000"}[zone]
        assert times[0] == first
    finally:
        monkeypatch.undo()
        time.tzset()


@given(st.datetimes(), st.from_regex(r"[0-9]{14,20}", fullmatch=True))
def test_next_time_is_larger_or_an_error(now, last):
    """Whatever digits stand on the timeline, it is a date; an error says so where no larger one exists."""
    now = now.replace(tzinfo=timezone.utc)
    try:
        following = next_instant_time(now, last)
    except CorruptMetadata as error:
        assert last in str(error)
        assert last > format_instant_time(now)
        if last < "9999":
            with pytest.raises(ValueError):
                parse_instant_time(last, timezone.utc)
        return
    assert parse_instant_time(following, timezone.utc)
    assert following > last
    assert len(following) == 17


CLEANABLE = [f"{table}-{v}" for table in ("cow_nomdt", "cow_clean_requested") for v in ("0.15.0", "1.1.1")]


@pytest.mark.slow
@pytest.mark.parametrize("name", CLEANABLE)
def test_two_cleaners_at_once_end_well(tmp_path, name):
    """A-73, A-75: all planned files are gone, nothing else is, every clean is completed."""
    path = fixtures.unpack(name, tmp_path)
    table = Table(LocalStorage(path), settings={"hoodie.metadata.enable": "false"})
    pending = table.timeline.pending("clean")
    planned = {
        f"{partition}/{file.name}"
        for instant in pending
        for partition, files in table.contents.clean_plan(instant).files_to_delete.items()
        for file in files
    }
    if not pending:
        plan = table.plan_clean(commits_retained=1)
        planned = {file.path for files in plan.files.values() for file in files}
    assert planned
    before = {p.relative_to(path).as_posix() for p in path.rglob("*.parquet") if ".hoodie" not in p.parts}
    outputs = [json.loads(output) for output in race(("clean", path, 1), ("clean", path, 2))]
    after = {p.relative_to(path).as_posix() for p in path.rglob("*.parquet") if ".hoodie" not in p.parts}
    done = table.refresh()
    assert not done.timeline.pending("clean")
    deleted = before - after
    first = min((instant.requested_time for instant in pending), default="")
    new = [instant for instant in done.timeline.completed("clean") if instant.requested_time >= first]
    recorded = set()
    for instant in new:
        for partition, record in done.contents.clean(instant).partitions.items():
            recorded |= {f"{partition}/{file}" for file in (*record.success_delete_files, *record.failed_delete_files)}
    assert planned & before <= deleted <= recorded
    assert not any("conflict" in output for output in outputs), outputs
    finished = [flag for output in outputs for flag in output["superseded"]]
    assert False in finished or len(new) == 1


@pytest.mark.slow
@pytest.mark.parametrize("version", ["0.15.0", "1.1.1"])
def test_cleaner_and_rollback_at_once_end_well(tmp_path, version):
    """Neither touches the other's files."""
    name = f"cow_failed_write-{version}"
    path = fixtures.unpack(name, tmp_path)
    table = Table(LocalStorage(path), settings={"hoodie.metadata.enable": "false"})
    table.services.metadata_table.prepare(writes_data=False)
    (failed,) = table.timeline.commits.pending()
    plan = table.plan_clean(commits_retained=1)
    planned = {file.path for files in plan.files.values() for file in files}
    files = {p.relative_to(path).as_posix() for p in path.rglob("*.parquet") if ".hoodie" not in p.parts}
    outputs = [json.loads(output) for output in race(("clean", path, 3), ("rollback", path, 4))]
    left = {p.relative_to(path).as_posix() for p in path.rglob("*.parquet") if ".hoodie" not in p.parts}
    gone = {file for file in files if failed.requested_time in file} | planned
    assert files - left == gone, outputs
    assert not table.refresh().timeline.pending()
    assert outputs[1] == {"rolled_back": 1}


@pytest.mark.slow
def test_two_rollbacks_at_once_end_well(tmp_path):
    """One does it, the other finds nothing or says that another was faster; afterwards nothing is pending."""
    path = fixtures.unpack("cow_failed_write-1.1.1", tmp_path)
    table = Table(LocalStorage(path), settings={"hoodie.metadata.enable": "false"})
    table.services.metadata_table.prepare(writes_data=False)
    (failed,) = table.timeline.commits.pending()
    race(("rollback", path, 5), ("rollback", path, 6))
    table.rollback_failed_writes()
    assert not table.timeline.pending()
    assert not [file for file in path.rglob("*.parquet") if failed.requested_time in file.name]
    assert not list((path / ".hoodie/.temp").glob("*"))

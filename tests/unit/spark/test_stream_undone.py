"""Streams over a table that goes back, is made anew or archived: what was told stays true, or the stream ends."""

import json
import shutil

import pytest

pytest.importorskip("pyspark", reason="needs Spark")

from hudi_py.errors import RefusedError
from hudi_py.spark.source import HudiDataSource
from hudi_py.storage.local import LocalStorage
from hudi_py.timeline.following import progress_at
from hudi_py.timeline.timeline import Timeline
from support.writes import create_table, open_table, upsert

ROW = {"id": "a", "region": "eu", "ts": 0}


@pytest.fixture(params=[6, 9], ids=["version 6", "version 9"])
def storage(request, tmp_path):
    return create_table(request.param, LocalStorage(str(tmp_path / "t")))


def write(storage, *stamps):
    for ts in stamps:
        upsert(storage, [{**ROW, "ts": ts}])


def started(storage, **options):
    """A reader as Spark makes it when a query is started, or started again from its checkpoint."""
    made = HudiDataSource({"path": storage.root, **options})
    return made.streamReader(made.schema())


def stamps_of(reader, start, end):
    parts = reader.partitions(start, end)
    return sorted(row["ts"] for each in parts for batch in reader.read(each) for row in batch.to_pylist())


def kept(offset):
    """As it comes from a checkpoint."""
    return json.loads(json.dumps(offset))


def times_of(storage):
    return [each.requested_time for each in open_table(storage).timeline.writes.completed()]


def roll_back(storage):
    open_table(storage).rollback(times_of(storage)[-1])


def restore_first(storage):
    open_table(storage).restore(times_of(storage)[0])


@pytest.mark.parametrize("starts_again", [False, True])
@pytest.mark.parametrize(("undo", "by"), [(roll_back, "rollback"), (restore_first, "restore")])
def test_a_newer_commit_does_not_hide_that_one_was_undone(storage, undo, by, starts_again):
    """What was told of it is no longer true, and the rows of the newer one do not say so."""
    write(storage, 1)
    open_table(storage).create_savepoint(times_of(storage)[0])
    write(storage, 2)
    reader = started(storage)
    offset = reader.latestOffset()
    read = times_of(storage)
    undo(storage)
    write(storage, 3)
    reader = started(storage) if starts_again else reader
    with pytest.raises(RefusedError, match=rf"commit {read[-1]}, which {by} .* undone since.*new checkpoint"):
        reader.partitions(kept(offset), kept(reader.latestOffset()))


def test_an_undone_commit_before_the_newest_is_seen(storage):
    """As Apache Hudi allows it under the policy LAZY: the end of the range stays where it was."""
    write(storage, 1, 2, 3)
    reader = started(storage)
    offset = reader.latestOffset()
    middle = open_table(storage).timeline.writes.completed()[1]
    folder = open_table(storage).config.timeline_folder
    for each in storage.list(folder):
        if each.name.startswith(middle.requested_time):
            storage.delete(f"{folder}/{each.name}")
    with pytest.raises(RefusedError, match=rf"commit {middle.requested_time}, which is no longer on the timeline"):
        reader.latestOffset()
    with pytest.raises(RefusedError, match=rf"commit {middle.requested_time}, "):
        started(storage).partitions(offset, started(storage).latestOffset())


def test_a_batch_that_comes_again_without_an_undone_commit_ends_the_stream(storage):
    """Whoever took its rows the first time keeps them otherwise."""
    write(storage, 1)
    reader = started(storage)
    start = reader.latestOffset()
    write(storage, 2)
    end = reader.latestOffset()
    assert stamps_of(reader, start, end) == [2]
    roll_back(storage)
    write(storage, 3)
    with pytest.raises(RefusedError, match="undone since"):
        started(storage).partitions(start, end)


def test_a_table_that_was_made_anew_at_the_same_place_is_another_one(storage):
    """Its rows are no changes of what was read."""
    write(storage, 1)
    reader = started(storage)
    offset = reader.latestOffset()
    version = open_table(storage).config.version
    shutil.rmtree(storage.root)
    write(create_table(version, LocalStorage(storage.root)), 2, 3)
    for each in (reader, started(storage)):
        with pytest.raises(RefusedError, match="made anew"):
            each.partitions(offset, each.latestOffset())


def test_archived_commits_are_not_undone(storage):
    """A stream goes on behind them, and archival alone gives no batch."""
    write(storage, 1, 2, 3, 4, 5)
    reader = started(storage)
    offset = reader.latestOffset()
    write(storage, 6, 7, 8, 9)
    latest = reader.latestOffset()
    open_table(storage).archive(keep_min_commits=1, keep_max_commits=2)
    assert not set(times_of(storage)[:-1]) & set(times_of(storage)[:5])
    assert stamps_of(started(storage), kept(offset), started(storage).latestOffset()) == [9]
    assert reader.latestOffset() == latest
    write(storage, 10)
    assert stamps_of(reader, latest, reader.latestOffset()) == [10]


def test_a_table_whose_commits_are_all_archived_is_still_known(storage):
    """Its newest one tells it from another table."""
    write(storage, 1, 2, 3, 4)
    table = open_table(storage)
    table.archive(keep_min_commits=1, keep_max_commits=2)
    until = open_table(storage).archived_timeline().completed("commit")[-1]
    found = progress_at(table.contents, Timeline(()), until.completion_time or until.requested_time)
    assert list(found.writes) == [until.requested_time]


def test_checkpoints_of_earlier_releases_go_on(storage):
    """They hold times alone."""
    write(storage, 1, 2)
    reader = started(storage)
    old = {"time": reader.latestOffset()["time"]}
    write(storage, 3)
    assert stamps_of(reader, {"time": ""}, old) == [2]
    assert stamps_of(started(storage), old, reader.latestOffset()) == [3]
    given = {"time": "20200101000000999"}  # an option, and no time of a commit
    assert stamps_of(started(storage), given, reader.latestOffset()) == [3]


def test_checkpoints_of_earlier_releases_tell_that_their_last_commit_was_undone(storage):
    """Its time is that of no commit any more."""
    write(storage, 1, 2)
    reader = started(storage)
    old, read = {"time": reader.latestOffset()["time"]}, times_of(storage)[-1]
    roll_back(storage)
    write(storage, 3)
    with pytest.raises(RefusedError, match=rf"commit {read}, which rollback .* undone since"):
        started(storage).partitions(old, reader.latestOffset())


def test_a_begin_that_has_not_come_is_no_undone_commit(storage):
    """Commits until then would be left out, or told although they come before it."""
    write(storage, 1)
    reader = started(storage, start="20990101000000000")
    with pytest.raises(RefusedError, match="that begin has not come yet"):
        reader.partitions(reader.initialOffset(), reader.latestOffset())

"""Times before the active timeline: answered while the archive tells that nothing is missing."""

from collections import Counter

import pytest

from hudi_py.errors import RefusedError
from hudi_py.services.archive.plan import Bound
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import RecordingStorage
from support import writes


def archived_table(version):
    """A table of four versions of one row, and the requested times of the archived ones."""
    storage = writes.create_table(version)
    for ts in range(4):
        writes.upsert(storage, [{"id": "a", "region": "eu", "ts": ts}])
    writes.open_table(storage).archive(keep_min_commits=1, keep_max_commits=2)
    table = writes.open_table(storage)
    return storage, sorted({each.requested_time for each in table.archived_timeline() if each.is_completed})


@pytest.mark.parametrize("version", [6, 8, 9])
def test_an_archived_time_is_answered_while_its_files_are_there(version):
    """Archival removes no rows."""
    storage, times = archived_table(version)
    assert times
    for number, time in enumerate(times):
        rows = writes.open_table(storage).as_of(time).rows().to_arrow()
        assert rows["ts"].to_pylist() == [number]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_without_its_archive_a_table_tells_nothing_of_archived_times(version):
    """The cleans that took files of that time may be recorded there only."""
    storage, times = archived_table(version)
    left, folder = without_archive(storage), writes.open_table(storage).config.history_folder
    with pytest.raises(RefusedError, match=f"{folder}, is missing"):
        writes.open_table(left).as_of(times[-1]).base_files()
    assert writes.rows_of(left) == writes.rows_of(storage)
    assert [each.where for each in writes.open_table(left).check() if each.code == "archive-unreadable"]


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("witness", ["commit", "metafile"])
def test_a_lost_archive_is_missed_where_no_file_of_that_time_is_left(version, witness):
    """No rows is no answer: the newest commit built on an archived one, and partitions tell who created them."""
    storage, times = archived_table(version)
    if witness == "metafile":
        for region in ("as", "us"):
            writes.upsert(storage, [{"id": "b", "region": region, "ts": 9}])
        writes.open_table(storage).archive(keep_min_commits=1, keep_max_commits=2)
    table = writes.open_table(storage)
    active = {each.requested_time for each in table.timeline.commits}
    gone = [p for p in storage.files() if p.endswith(".parquet") and p.rpartition("_")[2][:17] not in active]
    lost = [p for p in storage.files() if p.startswith(table.config.history_folder)]
    for path in (*gone, *lost):
        storage.delete(path)
    told = "created the partition" if witness == "metafile" else "built on"
    with pytest.raises(RefusedError, match=f"is missing.*{told}"):
        writes.open_table(storage).as_of(times[0]).rows().to_arrow()


@pytest.mark.parametrize("version", [6, 8, 9])
def test_before_its_first_commit_a_table_held_nothing(version):
    """It was never archived; a first write that was rolled back has left its time in a partition, and no rows."""
    storage = writes.create_table(version)
    writes.upsert(storage, [{"id": "a", "region": "eu", "ts": 0}])
    first = writes.open_table(storage).timeline.commits.completed()[0]
    writes.open_table(storage).rollback(first.requested_time)
    writes.upsert(storage, [{"id": "a", "region": "eu", "ts": 1}])
    assert first.requested_time.encode() in storage.read("eu/.hoodie_partition_metadata")
    assert writes.open_table(storage).as_of(first.requested_time).rows().to_arrow().num_rows == 0
    assert "archive-unreadable" not in {each.code for each in writes.open_table(storage).check()}


@pytest.mark.parametrize("version", [6, 8, 9])
def test_an_archived_time_whose_files_went_unrecorded_is_refused(version):
    """What its commits wrote stands in the archive; whoever deleted it, fewer rows are not the rows of that time."""
    storage, times = archived_table(version)
    (name,) = (path for path in storage.files() if path.startswith("eu/") and path.endswith(f"_{times[-1]}.parquet"))
    storage.delete(name)
    with pytest.raises(RefusedError, match=name):
        writes.open_table(storage).as_of(times[-1]).base_files()
    assert writes.open_table(storage).as_of(times[-2]).rows().to_arrow()["ts"].to_pylist() == [len(times) - 2]


def without_archive(storage):
    """The same table, of which somebody deleted the archive."""
    folder = writes.open_table(storage).config.history_folder
    return MemoryStorage.from_files(
        {path: data for path, data in storage.files().items() if not path.startswith(folder)}
    )


@pytest.mark.parametrize("version", [6, 8, 9])
def test_no_new_archive_hides_that_one_is_lost(version):
    """Nothing is archived, and the way out works: times from before are given up, never answered with other rows."""
    storage, times = archived_table(version)
    left = without_archive(storage)
    for ts in (7, 8, 9):
        writes.upsert(left, [{"id": "a", "region": "eu", "ts": ts}])
    start = writes.open_table(left).timeline.start
    before = left.files()
    for run in ("plan", "run"):
        done = getattr(writes.open_table(left).services.archive(keep_min_commits=1, keep_max_commits=2), run)()
        assert (done.instants, done.bound) == ((), Bound.LOST_ARCHIVE)
    assert left.files() == before
    given_up = writes.open_table(left, **{"hoodie_py.archive.anew": True})
    assert given_up.archive(keep_min_commits=1, keep_max_commits=2).instants
    with pytest.raises(RefusedError, match=f"begins at {start}, and eu/.* was written before"):
        writes.open_table(left).as_of(times[-1]).base_files()
    assert writes.open_table(left).as_of(start).rows().to_arrow()["ts"].to_pylist() == [3]
    assert writes.open_table(left).archive(keep_min_commits=1, keep_max_commits=2).bound is not Bound.LOST_ARCHIVE


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_first_archive_asks_for_none_before(version):
    """Whatever was rolled back or savepointed: of a table that was never archived none is lost."""
    storage = writes.create_table(version)
    for ts in range(5):
        writes.upsert(storage, [{"id": "a", "region": "eu", "ts": ts}])
        if ts in (0, 3):
            last = writes.open_table(storage).timeline.commits.completed()[-1]
            writes.open_table(storage).rollback(last.requested_time)
        if ts == 1:
            writes.open_table(storage).create_savepoint()
    done = writes.open_table(storage).archive(keep_min_commits=1, keep_max_commits=2, archive_beyond_savepoint=True)
    assert done.instants
    first = writes.open_table(storage).timeline.commits.completed()[0].requested_time
    assert writes.open_table(storage).as_of(first).rows().to_arrow()["ts"].to_pylist() == [1]


def reads_of_archive(storage, folder):
    """How often each of its files was read that holds instants."""
    names = [path.rpartition("/")[2] for verb, path in storage.calls if verb.endswith("read") and folder in path]
    return Counter(name for name in names if "manifest" not in name and "version" not in name)


@pytest.mark.parametrize("version", [6, 9])
def test_the_archive_is_read_once_for_an_earlier_time(version):
    """Cleans, base files and replaced groups in one pass, also where a file is missing; a check reads it twice."""
    inner, times = archived_table(version)
    storage = RecordingStorage(inner)
    folder = writes.open_table(inner).config.history_folder
    earlier = writes.open_table(storage).as_of(times[-1])
    storage.clear()
    earlier.base_files()
    assert set(reads_of_archive(storage, folder).values()) == {1}
    inner.delete(next(path for path in inner.files() if path.endswith(f"_{times[-1]}.parquet")))
    storage.clear()
    with pytest.raises(RefusedError):
        earlier.base_files()
    assert set(reads_of_archive(storage, folder).values()) == {1}
    storage.clear()
    writes.open_table(storage).check()
    assert set(reads_of_archive(storage, folder).values()) == {2}

"""A consumer is told what was undone of the commits that it has read, and nothing else counts as undone."""

import json
import shutil

import pytest

from hudi_py.errors import CorruptMetadata, RefusedError
from hudi_py.model.lease import decode_lease, encode_lease
from hudi_py.storage.local import LocalStorage
from hudi_py.timeline.leases import FOLDER
from support.upgrading import upgrade
from support.writes import create_table, open_table, upsert

ROW = {"id": "a", "region": "eu", "ts": 0}


@pytest.fixture(params=[6, 8, 9])
def storage(request, tmp_path):
    return create_table(request.param, LocalStorage(str(tmp_path / "t")))


def write(storage, *stamps):
    for ts in stamps:
        upsert(storage, [{**ROW, "ts": ts}])


def times_of(storage):
    return [each.requested_time for each in open_table(storage).timeline.writes.completed()]


def job(storage):
    return open_table(storage).consumer("job-7")


def has_read_all(storage):
    job(storage).at(open_table(storage).changed_until())


def roll_back(storage):
    open_table(storage).rollback(times_of(storage)[-1])


def restore_first(storage):
    open_table(storage).restore(times_of(storage)[0])


@pytest.mark.parametrize(("undo", "by"), [(roll_back, "rollback"), (restore_first, "restore")])
@pytest.mark.parametrize("goes_on", [False, True])
def test_what_was_undone_is_told_by_name(storage, undo, by, goes_on):
    """On the next use, by the list and by doctor; also once newer commits are there. Deleted, it begins anew."""
    write(storage, 1)
    open_table(storage).create_savepoint(times_of(storage)[0])
    write(storage, 2)
    has_read_all(storage)
    lost = times_of(storage)[-1]
    undo(storage)
    if goes_on:
        write(storage, 3)
    told = rf"commit {lost}, which {by} .* undone since.*hudi-py consumer delete TABLE job-7"
    with pytest.raises(RefusedError, match=told):
        _ = job(storage).instant
    with pytest.raises(RefusedError, match=told):
        has_read_all(storage)
    assert f"commit {lost}, which {by} " in job(storage).undone
    (found,) = [each for each in open_table(storage).doctor() if each.code == "consumer-undone"]
    assert lost in found.message and "job-7" in found.message
    assert job(storage).delete()
    has_read_all(storage)
    assert job(storage).instant == open_table(storage).changed_until()
    assert job(storage).undone is None
    assert "consumer-undone" not in {each.code for each in open_table(storage).doctor()}


def test_what_is_undone_between_reading_and_noting_is_told(storage):
    """By the timeline that the process has read."""
    write(storage, 1, 2)
    table = open_table(storage)
    until = table.changed_until()
    roll_back(storage)
    with pytest.raises(RefusedError, match="undone since"):
        table.consumer("job-7").at(until)
    assert job(storage).instant is None


def test_what_it_has_not_read_may_be_undone(storage):
    """A later commit, one that failed, and archived ones: it goes on."""
    write(storage, 1, 2)
    has_read_all(storage)
    before = job(storage).instant
    write(storage, 3)
    roll_back(storage)
    assert (before, None) == (job(storage).instant, job(storage).undone)
    write(storage, 4, 5, 6, 7)
    open_table(storage).archive(keep_min_commits=1, keep_max_commits=2)
    assert (before, None) == (job(storage).instant, job(storage).undone)
    has_read_all(storage)


def test_any_time_may_be_noted(storage):
    """Between commits, too; undoing what came later changes nothing."""
    write(storage, 1, 2)
    second = job(storage).at("2020-01-01").instant
    roll_back(storage)
    assert job(storage).instant == second


def test_a_table_made_anew_is_another_one(storage):
    """Its commits were never read."""
    write(storage, 1)
    has_read_all(storage)
    folder = f"{storage.root}/{FOLDER}"
    shutil.copytree(folder, f"{storage.root}-leases")
    version = open_table(storage).config.version
    shutil.rmtree(storage.root)
    write(create_table(version, LocalStorage(storage.root)), 2)
    shutil.copytree(f"{storage.root}-leases", folder)
    with pytest.raises(RefusedError, match="made anew"):
        _ = job(storage).instant


def test_progress_of_earlier_releases_goes_on(storage):
    """They noted times alone, which do not say what was read."""
    write(storage, 1, 2)
    has_read_all(storage)
    (lease,) = open_table(storage).consumers()
    path = f"{FOLDER}/{lease.id}.json"
    document = json.loads(storage.read(path))
    del document["writes"]
    storage.replace(path, json.dumps(document).encode())
    roll_back(storage)
    assert (lease.instant, None) == (job(storage).instant, job(storage).undone)


def test_its_file_keeps_what_was_read(storage):
    """The same value comes back; one whose commits do not decode stops what deletes, as any damaged lease."""
    write(storage, 1, 2)
    has_read_all(storage)
    (lease,) = open_table(storage).consumers()
    assert sorted(lease.read) == times_of(storage)
    assert decode_lease(encode_lease(lease), f"{lease.id}.json").read == lease.read
    document = json.loads(encode_lease(lease))
    for damaged in ("x", 7, None, document["writes"][:-8]):
        with pytest.raises(CorruptMetadata):
            decode_lease(json.dumps({**document, "writes": damaged}).encode(), f"{lease.id}.json")


@pytest.mark.parametrize("storage", [6], indirect=True)
def test_its_progress_outlasts_an_upgrade(storage):
    """Ranges compare other times then: the next one begins behind what was read, and misses nothing."""
    write(storage, 1, 2)
    consumer = job(storage)
    has_read_all(storage)
    write(storage, 3)
    upgrade(open_table(storage))
    for each in (consumer, job(storage)):
        rows = open_table(storage).changes(each.instant).to_arrow()
        assert rows["ts"].to_pylist() == [3]

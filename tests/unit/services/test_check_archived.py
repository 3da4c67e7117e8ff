"""What archived commits wrote is looked for too: nothing on the active timeline names it any more."""

import pytest

from hudi_py.services.check.findings import Severity
from support import writes


def archived_table(version):
    """A file of partition us that only an archived commit names; eu is written again and again."""
    storage = writes.create_table(version)
    writes.upsert(storage, writes.OLD)
    for ts in range(2, 6):
        writes.upsert(storage, [{"id": "a", "region": "eu", "ts": ts}])
    writes.open_table(storage).archive(keep_min_commits=1, keep_max_commits=2)
    (name,) = (path for path in storage.files() if path.startswith("us/") and path.endswith(".parquet"))
    return storage, name


def told(storage):
    """Code and place of what is wrong."""
    return {
        (each.code, each.where) for each in writes.open_table(storage).check() if each.severity is not Severity.INFO
    }


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_lost_file_of_an_archived_commit_is_missing(version):
    """Readers see one file group less, and nothing of them fails."""
    storage, path = archived_table(version)
    assert told(storage) == set()
    storage.delete(path)
    assert told(storage) == {("file-missing", path)}


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_cut_off_file_of_an_archived_commit_is_found(version):
    """Its size stands in the archive."""
    storage, path = archived_table(version)
    storage.replace(path, storage.read(path)[:-1])
    assert told(storage) == {("file-size-differs", path)}


@pytest.mark.parametrize("version", [6, 8, 9])
def test_files_that_were_replaced_or_cleaned_since_are_not_missed(version):
    """Before and after the commits that did it are archived."""
    storage, _ = archived_table(version)
    writes.upsert(storage, [{"id": "b", "region": "us", "ts": 9}])
    writes.open_table(storage).clean(file_versions_retained=1)
    assert told(storage) == set()
    for ts in range(10, 14):
        writes.upsert(storage, [{"id": "a", "region": "eu", "ts": ts}])
        writes.open_table(storage).clean(file_versions_retained=1)
        writes.open_table(storage).archive(keep_min_commits=1, keep_max_commits=2)
        assert told(storage) == set()

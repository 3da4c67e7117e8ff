"""Rows that archived commits wrote last are missed where no active commit names their files."""

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.model.files import bases_of
from hudi_py.storage.memory import MemoryStorage
from support import writes
from support.tables import TableBuilder, at

VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])
SETTING = "hoodie_py.read.archive.max.bytes"
LISTED = {"hoodie.metadata.enable": "false"}


def archived_table(version):
    """Row b was written twice, then archived; its two files, older first, and the table."""
    storage = writes.create_table(version)
    for ts in (0, 1):
        writes.upsert(storage, [{"id": "b", "region": "us", "ts": ts}])
    files = sorted(
        (p for p in storage.files() if p.startswith("us/") and p.endswith(".parquet")), key=lambda p: p[-25:]
    )
    for ts in range(2, 6):
        writes.upsert(storage, [{"id": "a", "region": "eu", "ts": ts}])
    writes.open_table(storage).archive(keep_min_commits=1, keep_max_commits=2)
    assert len(files) == 2
    return storage, files


def read(storage, **settings):
    return sorted(writes.open_table(storage, **LISTED, **settings).rows().to_arrow()["ts"].to_pylist())


@VERSIONS
@pytest.mark.parametrize("left", [0, 1])
def test_neither_an_older_version_nor_nothing_is_shown_for_a_lost_file(version, left):
    """The archive is small, so it is asked; without it readers see what was before, as Apache Hudi does."""
    storage, files = archived_table(version)
    assert read(storage) == [1, 5]
    for path in files[left:]:
        storage.delete(path)
    with pytest.raises(CorruptMetadata, match=rf"us/.*{files[1][-25:-8]}.* is missing, which the archived commit"):
        read(storage)
    assert read(storage, **{SETTING: 0}) == ([5] if left == 0 else [0, 5])


@VERSIONS
def test_an_archive_larger_than_the_setting_is_not_asked(version):
    """Its size is looked at, its content is not read."""
    storage, files = archived_table(version)
    storage.delete(files[1])
    for most, shown in ((1, [0, 5]), (10**6, None)):
        if shown is not None:
            assert read(storage, **{SETTING: most}) == shown
            continue
        with pytest.raises(CorruptMetadata, match="archived commit"):
            read(storage, **{SETTING: most})


@pytest.mark.parametrize("layout", [1, 2])
def test_what_was_replaced_is_not_missed(layout):
    """By an active replacecommit, and once that is archived too; the files of the replaced group are deleted."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"], "us": ["b"]})
    for number in (2, 3, 4):
        builder.commit(at(number), {"eu": ["a"]})
    builder.table().archive(keep_min_commits=1, keep_max_commits=2)
    builder.commit(at(5), {"us": ["c"]}, replaced={"us": ["b"]})
    builder.storage.delete(f"us/{builder.base_name('b', at(1))}")
    shown = [("eu", at(4)), ("us", at(5))]
    assert [(path, base.instant_time) for path, base in bases_of(builder.table().snapshot().sized_slices())] == shown
    for number in (6, 7, 8):
        builder.commit(at(number), {"eu": ["a"]})
    builder.table().clean(file_versions_retained=1)
    builder.table().archive(keep_min_commits=1, keep_max_commits=2)
    assert builder.table().timeline.completed("replacecommit") == ()
    assert [each.partition_path for each in builder.table().snapshot().sized_slices()] == ["eu", "us"]
    builder.storage.delete(f"us/{builder.base_name('c', at(5))}")
    with pytest.raises(CorruptMetadata, match=rf"us/c\*_{at(5)}"):
        builder.table().snapshot().sized_slices()


@VERSIONS
def test_a_damaged_archive_stops_no_reader_of_the_latest_rows(version):
    """The check reports it."""
    storage, _ = archived_table(version)
    folder = writes.open_table(storage).config.history_folder
    torn = {p: d[:-1] if p.startswith(folder) else d for p, d in storage.files().items()}
    assert read(MemoryStorage.from_files(torn)) == [1, 5]
